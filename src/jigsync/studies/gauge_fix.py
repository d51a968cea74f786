"""Study `gauge-fix`: the paper's Table 1, three ways to choose the global turn, all else alike.

Variant A (the true neighbours are given as edges, their poses are not): the fitting penalty, which its theorem calls
vacuous; what single fragments tell; and the true gauge, a ceiling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from jigsync.evaluate.progress import Progress
from jigsync.score.intervals import Interval, wilson
from jigsync.studies import decoding
from jigsync.studies.decoding import BASE, Answer, Answers, Sample, Setup
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.rows import OTHER_DATA, Paper, beside, gained, plot_rows, table

PENALTY: Final = "fitting penalty (vacuous)"
ANCHOR: Final = "unary anchor (deployable)"
CEILING: Final = "true gauge (ceiling)"
SETUPS: Final = (
    Setup(PENALTY, replace(BASE, edges="given", gauge="residual")),
    Setup(ANCHOR, replace(BASE, edges="given")),
)
PAPER: Final[Paper] = {
    3: {PENALTY: (2.50, 16.61, 17.46), ANCHOR: (11.00, 36.72, 31.54), CEILING: (11.00, 41.94, 31.87)},
    5: {PENALTY: (0.00, 5.38, 6.21), ANCHOR: (0.00, 10.66, 8.88), CEILING: (0.00, 12.84, 9.03)},
}
GUESS: Final = 0.25


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Both sizes, every measurer of relations."""
    return run_sample(Sample.of(full, workers, seed, progress, images))


def run_sample(sample: Sample) -> StudyResult:
    """The study on chosen puzzles."""
    measurers = decoding.available()
    found = sample.run("gauge-fix", SETUPS, measurers)
    rng = sample.rng()
    rows = _with_ceiling(table(found, SETUPS, PAPER, rng))
    chosen = {key: _in_true_gauge(group, PENALTY) for key, group in found.items()}
    effects = gained(found, ANCHOR, PENALTY, PAPER, rng, "anchor against penalty", "model") if _told(found) else []
    return StudyResult(
        name="gauge-fix",
        title="three ways to choose the global turn, true neighbours given",
        rows=[{**row, "gauge_right": _right(found, row).estimate} for row in rows],
        compared=[
            *(_row(row) for row in rows),
            *(_guess(measurer, n, share) for (measurer, n), share in chosen.items()),
            *(compared for _, _, _, compared in effects),
        ],
        verdict=_verdict(found, chosen),
        settings=sample.settings(measurers),
        plot=partial(plot_rows, rows, "Gauge", gauge="model"),
    )


def _told(found: Answers) -> bool:
    return all(decoding.told(group) for group in found.values())


def _with_ceiling(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The anchored row once more in the true gauge; without anyone to tell the turns, the anchor has no row."""
    out: list[dict[str, Any]] = []
    for row in rows:
        if row["row"] == PENALTY or row["gauge_told"]:
            out.append(row)
        if row["row"] == ANCHOR:
            theirs = PAPER.get(row["n"], {}).get(CEILING, ())
            paper = {f"paper_{name}": p / 100 for name, p in zip(("PA", "AA", "SRA"), theirs, strict=False)}
            aligned = {key.replace("_true", ""): value for key, value in row.items() if "_true" in key}
            out.append({**row, "row": CEILING, **aligned, **paper})
    return out


def _as_model(row: dict[str, Any]) -> dict[str, Any]:
    """Rows of this table are all in the gauge of their name."""
    return {**row, "gauge_told": True}


def _row(row: dict[str, Any]) -> Compared:
    return beside(_as_model(row))


def _in_true_gauge(group: Sequence[Answer], setup: str) -> Interval:
    return wilson(sum(answer.decoded[setup].true_gauge == 0 for answer in group), len(group))


def _right(found: Answers, row: dict[str, Any]) -> Interval:
    if row["row"] == CEILING:
        return Interval(1.0, 1.0, 1.0, row["puzzles"])
    return _in_true_gauge(found[row["measurer"], row["n"]], row["row"])


def _guess(measurer: str, n: int, share: Interval) -> Compared:
    fair = share.low <= GUESS <= share.high
    said = "agrees: a guess in four" if fair else "differs: not a fair guess; ties go to the lowest turn"
    return Compared(
        f"{measurer}, {n} x {n}, penalty: puzzles in the true gauge", share.percent(), "25 % by theorem", said
    )


def _verdict(found: Answers, chosen: dict[tuple[str, int], Interval]) -> str:
    fair = all(share.low <= GUESS <= share.high for share in chosen.values())
    where = "everywhere, as the theorem says" if fair else "in some rows only: rounding decides, and need not be fair"
    text = f"{OTHER_DATA} The fitting penalty picks the true gauge as often as a guess in four {where}."
    if not _told(found):
        return (
            f"{text} The anchored row is left out: no registered measurer tells the turns of single fragments. The"
            " ceiling is what a perfect anchor would give."
        )
    shares = ", ".join(
        f"{measurer} {n} x {n} {_in_true_gauge(group, ANCHOR).percent()}" for (measurer, n), group in found.items()
    )
    return f"{text} The anchor picks it in: {shares}."
