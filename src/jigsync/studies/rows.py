"""Tables of setups: our rows beside the paper's, effects of switches on the same puzzles, one form of picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.score.intervals import Interval
from jigsync.studies import decoding
from jigsync.studies.decoding import Answers, GaugeChoice, Setup
from jigsync.studies.figure import COLOURS, MARKERS, figure
from jigsync.studies.result import Compared

NULL: Final = 1.2
"""Points of AA up to which the paper calls an effect null."""
OTHER_DATA: Final = (
    "The paper's figures are of GAP (other pictures, other masks, its own network), ours of turned Met-Sweep puzzles of"
    f" the severity '{decoding.SEVERITY}': absolute values cannot be compared, the order of rows and the effects can."
)
POINTS: Final = ": points of AA"
TRUE_GAUGE: Final = " Effects are taken in the true gauge, so that wrong gauges do not hide them."
UNTOLD: Final = (
    " Nothing tells which side of a fragment is up here, so the deployable rows would be a guess in four: they are"
    " given in the true gauge too."
)

Paper = Mapping[int, Mapping[str, Sequence[float]]]
"""n -> row -> PA, AA, SRA in per cent (or AA alone)."""


def points(gain: Interval) -> str:
    """'+8.1 [+2.0, +14.2]', in points."""
    return f"{100 * gain.estimate:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"


def says(ours: Interval, paper: float | None) -> str:
    """A plain verdict on an effect: paper's in points, None when it reports none."""
    low, high = 100 * ours.low, 100 * ours.high
    none = low <= 0 <= high
    if paper is None:
        return "the paper has no such figure"
    if abs(paper) <= NULL:
        if none:
            return f"agrees: none that {ours.n} puzzles show"
        if abs(100 * ours.estimate) <= NULL:
            return "agrees: next to none"
        return "differs: it helps here" if ours.estimate > 0 else "differs: it costs here"
    if none:
        return f"open: {ours.n} puzzles do not decide it"
    return "agrees in sign" if (ours.estimate > 0) == (paper > 0) else "differs in sign"


def named(effect: Compared) -> str:
    """An effect within a sentence."""
    return f"{effect.what.partition(POINTS)[0]} ({effect.ours})"


def table(answers: Answers, setups: Sequence[Setup], paper: Paper, rng: np.random.Generator) -> list[dict[str, Any]]:
    """One row a measurer, size and setup, ours and the paper's."""
    rows = []
    for (measurer, n), group in answers.items():
        for setup in setups:
            theirs = paper.get(n, {}).get(setup.name, ())
            names = ("PA", "AA", "SRA") if len(theirs) == 3 else ("AA",)
            rows.append(
                {
                    "measurer": measurer,
                    "n": n,
                    "row": setup.name,
                    "gauge_told": decoding.told(group),
                    **decoding.columns(group, setup.name, rng),
                    **{f"paper_{name}": value / 100 for name, value in zip(names, theirs, strict=False)},
                }
            )
    return rows


def beside(row: Mapping[str, Any]) -> Compared:
    """A row of ours beside the paper's: AA, with PA and SRA in the last column."""
    ending = "" if row["gauge_told"] else "_true"
    aa = Interval(row[f"AA{ending}"], row[f"AA{ending}_low"], row[f"AA{ending}_high"], row["puzzles"])
    said = f"PA {100 * row[f'PA{ending}']:.1f}, SRA {100 * row[f'SRA{ending}']:.1f} %"
    if "paper_PA" in row:
        said += f" (paper {100 * row['paper_PA']:.1f}, {100 * row['paper_SRA']:.1f}); other puzzles"
    theirs = f"{100 * row['paper_AA']:.2f} %" if "paper_AA" in row else "-"
    if not ending and row["AA_true"] != row["AA"]:
        said += f"; in the true gauge AA {100 * row['AA_true']:.1f} %"
    where = "AA" if not ending else "AA in the true gauge"
    return Compared(f"{row['measurer']}, {row['n']} x {row['n']}, {row['row']}: {where}", aa.percent(), theirs, said)


def gained(
    answers: Answers,
    first: str,
    second: str,
    paper: Paper,
    rng: np.random.Generator,
    what: str,
    gauge: GaugeChoice = "true",
) -> list[tuple[str, int, Interval, Compared]]:
    """First minus second in AA, every measurer and size, beside the paper's difference."""
    found = []
    for (measurer, n), group in answers.items():
        ours = decoding.effect(group, first, second, gauge, rng)
        theirs = [paper.get(n, {}).get(name) for name in (first, second)]
        both = None if None in theirs else _aa(theirs[0]) - _aa(theirs[1])
        shown = "-" if both is None else f"{both:+.2f}"
        name = f"{measurer}, {n} x {n}, {what}{POINTS}{'' if gauge == 'model' else ', true gauge'}"
        found.append((measurer, n, ours, Compared(name, points(ours), shown, says(ours, both))))
    return found


def _aa(theirs: Sequence[float] | None) -> float:
    assert theirs
    return theirs[1] if len(theirs) == 3 else theirs[0]


def plot_rows(rows: Sequence[Mapping[str, Any]], title: str, path: Path, gauge: GaugeChoice = "true") -> None:
    """AA of every row with its interval, one panel a size, one marker a measurer, the paper's beside them."""
    ending = "_true" if gauge == "true" else ""
    names = list(dict.fromkeys(row["row"] for row in rows))
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    measurers = list(dict.fromkeys(row["measurer"] for row in rows))
    height = 1.5 + 0.42 * len(names)
    with figure(path, 1, len(sizes), (9.0, height), sharey=True, squeeze=False) as (drawn, axes):
        for axis, n in zip(axes[0], sizes, strict=True):
            for k, measurer in enumerate(measurers):
                chosen = [row for row in rows if (row["n"], row["measurer"]) == (n, measurer)]
                at = [names.index(row["row"]) + 0.22 * (k - (len(measurers) - 1) / 2) for row in chosen]
                aa = [100 * row[f"AA{ending}"] for row in chosen]
                low = [100 * (row[f"AA{ending}"] - row[f"AA{ending}_low"]) for row in chosen]
                high = [100 * (row[f"AA{ending}_high"] - row[f"AA{ending}"]) for row in chosen]
                axis.errorbar(
                    aa,
                    at,
                    xerr=[low, high],
                    linestyle="",
                    marker=MARKERS[k],
                    color=COLOURS[k],
                    markerfacecolor=COLOURS[k] if k % 2 == 0 else "white",
                    capsize=3,
                    label=f"{measurer}, true gauge" if ending else measurer,
                )
            theirs = [
                (100 * row["paper_AA"], names.index(row["row"])) for row in rows if row["n"] == n and "paper_AA" in row
            ]
            axis.plot([x for x, _ in theirs], [y for _, y in theirs], "kx", markersize=7, label="paper, GAP")
            axis.set(title=f"{title}, {n} x {n}", xlabel="AA, per cent", xlim=(-2, 102))
            axis.set_yticks(range(len(names)), names)
        axes[0][0].set_ylim(len(names) - 0.5, -0.5)
        handles, labels = axes[0][0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels))
