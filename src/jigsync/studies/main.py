"""Study `main`: every solver over the sweep, position and turns scored, the grid unknown.

One fixed run of `jigsync eval`: all severities, turned fragments, the default measurer; predictions first, then scores
from the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isqrt
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.cutting.options import SEVERITIES
from jigsync.evaluate.progress import Progress
from jigsync.evaluate.run import Evaluation
from jigsync.evaluate.scores import Scored
from jigsync.evaluate.table import ALL_KINDS, Line
from jigsync.evaluate.wanted import Wanted
from jigsync.measure import registry
from jigsync.score.cells import GAUGES
from jigsync.score.intervals import bootstrap_mean, paired_difference
from jigsync.studies.evaluated import run_wanted
from jigsync.studies.figure import figure, line_style
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.rows import points
from jigsync.values.layout import Grid

SOLVERS: Final = ("jigsync", "jigsync-paper", "exact", "tree", "greedy", "genetic")
"""Ours first: the others are compared with it. `exhaustive` is the yardstick of `exact` and takes no 9 turned."""
SIZES: Final = (3, 5)
FULL_SIZES: Final = (3, 4, 5, 6, 8, 10)
PUZZLES: Final = 12
FULL_PUZZLES: Final = 500
"""Puzzles a size and severity; over all severities 3000 a size, as in the paper's test splits."""
SHOWN: Final = ("PA", "AA", "SRA", "rotation", "AA+rot", "PA+rot")
PAPER: Final = {
    ("greedy", 3): (0.0, 11.6, 8.6),
    ("genetic", 3): (0.0, 11.1, 8.5),
    ("jigsync-paper", 3): (27.0, 63.8, 51.0),
    ("greedy", 5): (0.0, 4.1, 3.7),
    ("genetic", 5): (0.0, 11.1, 8.5),
    ("jigsync-paper", 5): (0.1, 31.8, 21.5),
}
"""(solver, n) -> PA, AA, SRA in per cent on GAP, upright; its genetic row for GAP-5 repeats that for GAP-3."""


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """All severities."""
    sizes, puzzles = (FULL_SIZES, FULL_PUZZLES) if full else (SIZES, PUZZLES)
    return run_sizes(sizes, tuple(SEVERITIES), puzzles, None, workers, seed, progress, images)


def run_sizes(
    sizes: Sequence[int],
    severities: Sequence[str],
    puzzles: int,
    cell: int | None,
    workers: int,
    seed: int,
    progress: Progress,
    images: Path | None = None,
    measurer: str = registry.DEFAULT,
) -> StudyResult:
    """The study at chosen sizes; `cell` None goes by the grid."""
    wanted = Wanted(tuple(Grid(n, n) for n in sizes), tuple(severities), puzzles, cell, seed=seed)
    found = run_wanted("main", wanted, SOLVERS, (measurer,), workers, progress, images)
    rows = [_row(line) for line in found.lines if line.kind == ALL_KINDS and line.by_gauge]
    rng = np.random.default_rng(seed)
    return StudyResult(
        name="main",
        title="every solver over the sweep, turned, grid unknown",
        rows=rows,
        compared=[_compare(solver, n, _of(found, solver, n), rng) for n in sizes for solver in SOLVERS],
        verdict=_verdict(found, sizes, rng),
        settings={
            "puzzles": puzzles,
            "sizes": list(sizes),
            "severities": list(severities),
            "seed": seed,
            "pictures": len({spec.picture for spec in found.specs}),
            "measurer": measurer,
        },
        plot=partial(_plot, rows),
    )


def _row(line: Line) -> dict[str, Any]:
    figures = {
        f"{measure}{'' if gauge == 'model' else '_best4'}{end}": value
        for gauge in GAUGES
        for measure in SHOWN
        for end, value in zip(
            ("", "_low", "_high"),
            (getattr(line.by_gauge[gauge][measure], name) for name in ("estimate", "low", "high")),
            strict=True,
        )
    }
    return {
        "solver": line.method.solver,
        "measurer": line.method.measurer,
        "n": isqrt(line.setting.fragments),
        "severity": line.setting.severity,
        "puzzles": line.puzzles,
        **figures,
        "gauge_right": None if line.gauge_right is None else line.gauge_right.estimate,
        "right_grid": line.right_grid,
        "seconds": line.seconds,
    }


def _of(found: Evaluation, solver: str, n: int) -> list[Scored]:
    """A solver's answers at a size, all severities, in the order of the puzzles."""
    return [
        one
        for one in found.scored
        if one.method.solver == solver and one.spec.grid == Grid(n, n) and one.outcome != "refused"
    ]


def _compare(solver: str, n: int, scored: Sequence[Scored], rng: np.random.Generator) -> Compared:
    what = f"{solver}, {n} x {n}, all severities"
    theirs = PAPER.get((solver, n))
    paper = "-" if theirs is None else f"{theirs[1]:.1f} %"
    if not scored:
        return Compared(f"{what}: AA, best4", "refused", paper, "takes no puzzles of this size")
    best = bootstrap_mean([one.slot("AA", "best4") for one in scored], rng)
    said = ", ".join(
        f"{name} {100 * np.mean([one.slot(name, 'best4') for one in scored]):.1f}"
        for name in ("PA+rot", "AA+rot", "SRA")
    )
    model = 100 * np.mean([one.slot("AA+rot", "model") for one in scored])
    seconds = np.median([one.seconds for one in scored])
    tail = "; cannot be compared: GAP, upright" if theirs else ""
    if n != 3 and theirs is not None and theirs == PAPER.get((solver, 3)):
        tail += ", and a copy of its 3 x 3 row"
    return Compared(
        f"{what}: AA, best4",
        best.percent(),
        paper,
        f"{said} %; as answered AA+rot {model:.1f} %; {seconds:.2f} s{tail}",
    )


def _verdict(found: Evaluation, sizes: Sequence[int], rng: np.random.Generator) -> str:
    text = (
        "The paper's table is of GAP: upright fragments, its own pictures and masks, so none of its figures can be set"
        " against these. Here every fragment is turned, the grid is unknown, and all solvers read the same measurements"
        f" ({found.methods[0].measurer}). {SOLVERS[0]} against the others on the same puzzles, points of AA+rot in the"
        " best of four gauges:"
    )
    told = []
    for n in sizes:
        ours = {one.spec.name: one.slot("AA+rot", "best4") for one in _of(found, SOLVERS[0], n)}
        for solver in SOLVERS[1:]:
            theirs = {one.spec.name: one.slot("AA+rot", "best4") for one in _of(found, solver, n)}
            common = [name for name in ours if name in theirs]
            if common:
                gain = paired_difference([ours[name] for name in common], [theirs[name] for name in common], rng)
                told.append(f"{n} x {n} {solver} {points(gain)}")
    turned = [one.gauge_right for one in found.scored if one.method.solver == SOLVERS[0]]
    right = float(np.mean([value for value in turned if value is not None]))
    return f"{text} {'; '.join(told)}. {SOLVERS[0]} answers in the right gauge in {100 * right:.0f} % of the puzzles."


def _plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    names = list(dict.fromkeys(row["severity"] for row in rows))
    solvers = [solver for solver in SOLVERS if any(row["solver"] == solver for row in rows)]
    across = min(3, len(sizes))
    down = -(-len(sizes) // across)
    with figure(path, down, across, (4.6 * across, 3.4 * down + 0.5), sharey=True, squeeze=False) as (drawn, axes):
        for axis, n in zip(axes.ravel(), sizes, strict=False):
            for k, solver in enumerate(solvers):
                own = {row["severity"]: row for row in rows if (row["solver"], row["n"]) == (solver, n)}
                if not own:
                    continue
                at = [names.index(name) + 0.1 * (k - (len(solvers) - 1) / 2) for name in own]
                aa = [100 * row["AA+rot_best4"] for row in own.values()]
                ends = [
                    [100 * abs(row["AA+rot_best4"] - row[f"AA+rot_best4_{end}"]) for row in own.values()]
                    for end in ("low", "high")
                ]
                axis.errorbar(at, aa, ends, capsize=2, label=solver, **{**line_style(k), "lw": 1.1})
            axis.set(title=f"AA+rot, best4, {n} x {n}", ylim=(-2, 102))
            axis.set_xticks(range(len(names)), names, fontsize=9)
        axes[0][0].set(ylabel="per cent")
        for axis in axes.ravel()[len(sizes) :]:
            axis.set_axis_off()
        handles, labels = axes[0][0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels))
