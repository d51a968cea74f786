"""Study `loops`: what is kept when an edge must close s triangles, and what it costs in connectivity.

Two graphs, all ordered pairs and each fragment's four strongest. Precision in two readings: the share of kept edges
whose whole relation is right, and the share that joins direct neighbours. The second is 2 * 2n(n-1) / (N(N-1)) on the
complete graph without any filter, 24/72 at n = 3, whatever the network: which is the paper's figure at s = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.evaluate.progress import Progress
from jigsync.score.intervals import Interval, bootstrap_mean, wilson
from jigsync.studies import decoding
from jigsync.studies.decoding import BASE, Answer, Sample, Setup
from jigsync.studies.figure import figure, line_style
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.rows import OTHER_DATA

TOP: Final = 4
SUPPORTS: Final = (0, 1, 2, 3)
COMPLETE: Final = "complete"
STRONGEST: Final = f"top {TOP}"
GRAPHS: Final = {COMPLETE: None, STRONGEST: TOP}
PAPER: Final = {
    (COMPLETE, 0): (0.333, 12.17, None),
    (COMPLETE, 1): (0.370, 10.94, None),
    (COMPLETE, 2): (0.389, 14.61, 410 / 2000),
    (STRONGEST, 0): (0.400, 12.28, None),
    (STRONGEST, 1): (0.524, 9.17, None),
    (STRONGEST, 2): (0.614, 11.22, 1790 / 2000),
}
"""n = 3: (graph, s) -> precision, AA in per cent, share of puzzles that fall apart."""


def _setup(graph: str, support: int) -> Setup:
    return Setup(f"{graph}, s = {support}", replace(BASE, top_k=GRAPHS[graph], loop_support=support), every_pair=True)


SETUPS: Final = tuple(_setup(graph, support) for graph in GRAPHS for support in SUPPORTS)


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Both sizes, every measurer of relations."""
    return run_sample(Sample.of(full, workers, seed, progress, images))


def run_sample(sample: Sample) -> StudyResult:
    """The study on chosen puzzles."""
    measurers = decoding.available()
    found = sample.run("loops", SETUPS, measurers)
    rng = sample.rng()
    rows = [
        _row(measurer, n, graph, support, group, rng)
        for (measurer, n), group in found.items()
        for graph in GRAPHS
        for support in SUPPORTS
    ]
    return StudyResult(
        name="loops",
        title="precision and connectivity against the support threshold",
        rows=rows,
        compared=[_compare(row) for row in rows],
        verdict=_verdict(rows),
        settings=sample.settings(measurers),
        plot=partial(_plot, rows),
    )


def _row(
    measurer: str, n: int, graph: str, support: int, group: Sequence[Answer], rng: np.random.Generator
) -> dict[str, Any]:
    name = _setup(graph, support).name
    found = [answer.decoded[name] for answer in group]
    held = [one for one in found if one.edges]
    right = bootstrap_mean([one.right for one in held], rng) if held else None
    adjacent = bootstrap_mean([one.adjacent for one in held], rng) if held else None
    apart = wilson(sum(not one.connected for one in found), len(found))
    aa = decoding.interval(group, name, "AA", "true", rng)
    precision, theirs, fell = PAPER.get((graph, support), (None, None, None)) if n == 3 else (None, None, None)
    return {
        "measurer": measurer,
        "unit_only": group[0].unit_only,
        "n": n,
        "graph": graph,
        "support": support,
        "puzzles": len(group),
        "edges": float(np.mean([one.edges for one in found])),
        **_columns("right", right),
        **_columns("adjacent", adjacent),
        **_columns("disconnected", apart),
        **_columns("AA_true", aa),
        "paper_precision": precision,
        "paper_disconnected": fell,
        "paper_AA": None if theirs is None else theirs / 100,
    }


def _columns(name: str, found: Interval | None) -> dict[str, float | None]:
    ends = (None, None, None) if found is None else (found.estimate, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _compare(row: dict[str, Any]) -> Compared:
    what = f"{row['measurer']}, {row['n']} x {row['n']}, {row['graph']}, s = {row['support']}"
    apart = f"{100 * row['disconnected']:.0f} % fall apart"
    if row["paper_disconnected"] is not None:
        apart += f" (paper {100 * row['paper_disconnected']:.0f})"
    if row["right"] is None:
        return Compared(f"{what}: edges right", "no edge left", _share(row["paper_precision"]), apart)
    right = Interval(row["right"], row["right_low"], row["right_high"], row["puzzles"])
    said = f"{row['edges']:.1f} edges, {100 * row['adjacent']:.1f} % of them between neighbours; {apart};"
    said += f" AA {100 * row['AA_true']:.1f} %"
    return Compared(f"{what}: edges right", right.percent(), _share(row["paper_precision"]), said)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _verdict(rows: Sequence[dict[str, Any]]) -> str:
    text = (
        f"{OTHER_DATA} The paper's precision at s = 0 on the complete graph, 0.333, is 24/72: the share of ordered"
        " pairs of nine that are neighbours, true of any network. So its precision seems to count edges between"
        " neighbours, not relations that are right; both are given here, AA in the true gauge."
    )
    for measurer in dict.fromkeys(row["measurer"] for row in rows):
        own = [row for row in rows if row["measurer"] == measurer and row["n"] == min(r["n"] for r in rows)]
        first, last = (next(r for r in own if (r["graph"], r["support"]) == (COMPLETE, s)) for s in (0, 2))
        if last["right"] is None:
            text += f" With {measurer} no edge of the complete graph is left at s = 2.{_units(first)}"
            continue
        pays = last["right"] > first["right"] and last["disconnected"] > first["disconnected"]
        text += (
            f" With {measurer} at {first['n']} x {first['n']}, from s = 0 to 2 on the complete graph, edges right go"
            f" from {100 * first['right']:.1f} to {100 * last['right']:.1f} %, puzzles that fall apart from"
            f" {100 * first['disconnected']:.0f} to {100 * last['disconnected']:.0f} %, AA from"
            f" {100 * first['AA_true']:.1f} to {100 * last['AA_true']:.1f} %:"
            f" {'agrees, precision climbs and connectivity pays for it' if pays else 'differs'}."
        )
        text += _units(first)
    return text


def _units(row: dict[str, Any]) -> str:
    if not row["unit_only"]:
        return ""
    return (
        " It tells direct neighbours only, and three cells are never all neighbours: no triangle can close, and for"
        " such measurements this filter is wrong in principle."
    )


def _plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    n = sizes[0]
    with figure(path, 1, 3, (10.5, 3.6)) as (drawn, axes):
        panels = (("right", "edges right"), ("disconnected", "puzzles that fall apart"), ("AA_true", "AA, true gauge"))
        for axis, (column, title) in zip(axes, panels, strict=True):
            k = 0
            for measurer in dict.fromkeys(row["measurer"] for row in rows):
                for graph in GRAPHS:
                    own = [
                        row
                        for row in rows
                        if (row["measurer"], row["n"], row["graph"]) == (measurer, n, graph) and row[column] is not None
                    ]
                    values = [100 * row[column] for row in own]
                    ends = [[100 * abs(row[column] - row[f"{column}_{end}"]) for row in own] for end in ("low", "high")]
                    at = [row["support"] for row in own]
                    axis.errorbar(at, values, yerr=ends, capsize=3, label=f"{measurer}, {graph}", **line_style(k))
                    k += 1
            paper = {"right": 0, "AA_true": 1, "disconnected": 2}[column]
            for graph, mark in ((COMPLETE, "x"), (STRONGEST, "+")):
                points = [
                    (support, value * (1 if paper == 1 else 100))
                    for (name, support), found in PAPER.items()
                    if name == graph and (value := found[paper]) is not None
                ]
                axis.plot(*zip(*points, strict=True), f"k{mark}", markersize=8, linestyle="", label=f"paper, {graph}")
            axis.set(title=f"{title}, {n} x {n}", xlabel="support threshold s", xticks=SUPPORTS, ylim=(-3, 103))
        axes[0].set(ylabel="per cent")
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
