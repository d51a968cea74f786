"""Study `reliability`: is a fragment of which the default solver is 80 % sure right in 80 % of the cases?

Puzzles of every named severity, the grid unknown. A fragment is right when its slot and turns are, in the gauge in
which most fragments of its puzzle are right: which side is up is the gauge's business, not the fragment's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.api import solve
from jigsync.corpus.pool import run_units
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.progress import Progress
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.learn.fit.confidence import BINS, calibration_error, right_fragments
from jigsync.score.intervals import bootstrap_mean, wilson
from jigsync.studies.cues import pictures_of
from jigsync.studies.figure import COLOURS, figure
from jigsync.studies.result import Compared, StudyResult
from jigsync.values.layout import Grid

SIZES: Final = ((3, 96), (4, 64), (6, 48))
"""Grid side and cell in pixels."""
PICTURES: Final = 12
"""Taken from a folder unless --full; evenly spaced."""
REPEATS: Final = 2
"""Puzzles a picture, severity and size."""
ALL: Final = "all"


@dataclass(frozen=True)
class Task:
    """One puzzle."""

    picture: Path
    severity: str
    n: int
    cell: int
    seed: int


@dataclass(frozen=True, eq=False)
class Judged:
    """Confidences of one solved puzzle and which fragments are right. Shapes: (N,) each."""

    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]


def run_task(task: Task, threads: int) -> Judged:
    """Cuts and solves one puzzle."""
    options = CutOptions(Grid(task.n, task.n), task.cell, SEVERITIES[task.severity])
    puzzle, truth = cut_picture(read_rgb(task.picture), options, task.seed, name=f"The picture '{task.picture}'")
    found = solve(puzzle, seed=task.seed % 2**31, threads=threads)
    right = right_fragments(found.placement, found.grid, truth.placement, truth.grid, puzzle.ids)
    return Judged(np.array([found.placement[name].confidence or 0.0 for name in puzzle.ids]), right)


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """All severities and sizes; of a folder, all pictures when `full`."""
    pictures = pictures_of(images)
    if not full:
        pictures = evenly_spaced(pictures, PICTURES)
    return run_pictures(pictures, SIZES, REPEATS, workers, seed, progress)


def run_pictures(
    pictures: Sequence[Path],
    sizes: Sequence[tuple[int, int]],
    repeats: int,
    workers: int,
    seed: int,
    progress: Progress,
) -> StudyResult:
    """The study on chosen pictures and sizes."""
    tasks = [
        Task(picture, severity, n, cell, derive_seed(seed, "reliability", severity, n, k, picture.name))
        for n, cell in sorted(sizes, reverse=True)  # the long ones first, so that no core waits at the end
        for severity in SEVERITIES
        for picture in pictures
        for k in range(repeats)
    ]
    done: dict[Task, Judged] = {}
    progress("reliability", 0, len(tasks))
    for task, judged in run_units(partial(run_task, threads=1 if workers > 1 else 2), tasks, workers):
        done[task] = judged
        progress("reliability", len(done), len(tasks))
    groups = {severity: [done[task] for task in tasks if task.severity == severity] for severity in SEVERITIES}
    groups[ALL] = [done[task] for task in tasks]
    rows = [row for name, group in groups.items() for row in table(name, group)]
    rng = np.random.default_rng(seed)
    return StudyResult(
        name="reliability",
        title="confidence of single fragments against how often they are right",
        rows=rows,
        compared=[_compare(name, group, rng) for name, group in groups.items()],
        verdict=_verdict(groups[ALL]),
        settings={"seed": seed, "pictures": len(pictures), "puzzles": len(tasks), "sizes": [list(s) for s in sizes]},
        plot=partial(_plot, [row for row in rows if row["severity"] == ALL]),
    )


def table(name: str, group: Sequence[Judged]) -> list[dict[str, Any]]:
    """The reliability table: one row a bin of confidence that holds fragments."""
    confidence, right = _flat(group)
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    rows = []
    for k in range(BINS):
        inside = bins == k
        if not inside.any():
            continue
        share = wilson(int(right[inside].sum()), int(inside.sum()))
        rows.append(
            {
                "severity": name,
                "from": k / BINS,
                "to": (k + 1) / BINS,
                "fragments": share.n,
                "confidence": float(confidence[inside].mean()),
                "right": share.estimate,
                "right_low": share.low,
                "right_high": share.high,
            }
        )
    return rows


def _flat(group: Sequence[Judged]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.concatenate([g.confidence for g in group]), np.concatenate([g.right for g in group])


def _compare(name: str, group: Sequence[Judged], rng: np.random.Generator) -> Compared:
    """Mean confidence beside the share right; fragments of a puzzle go wrong together, so puzzles are resampled."""
    confidence, right = _flat(group)
    surplus = bootstrap_mean([float(np.mean(g.confidence - g.right)) for g in group], rng)
    said = f"{confidence.mean():.1%} sure, {right.mean():.1%} right"
    return Compared(
        f"{name}: confidence above share right, {len(group)} puzzles, {len(right)} fragments",
        surplus.percent(),
        "-",
        f"{said}; calibration error {calibration_error(confidence, right):.3f}",
    )


def _verdict(group: Sequence[Judged]) -> str:
    confidence, right = _flat(group)
    sure = confidence >= 0.9
    told = f"{right[sure].mean():.1%} of the {sure.sum()} fragments with a confidence of 90 % or more are right"
    return (
        f"Over all severities the calibration error is {calibration_error(confidence, right):.3f} and the Brier score"
        f" {np.mean((confidence - right) ** 2):.3f}; {told if sure.any() else 'no fragment has a confidence of 90 %'}."
        " Errors come by the puzzle: a group is calibrated as far as its puzzles are like those of the fit. Not a study"
        " of the paper's: it has no confidences."
    )


def _plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    with figure(path, 1, 2, (8.5, 3.8)) as (_, (left, right)):
        at, share = [row["confidence"] for row in rows], [row["right"] for row in rows]
        below = [row["right"] - row["right_low"] for row in rows]
        above = [row["right_high"] - row["right"] for row in rows]
        left.plot([0, 1], [0, 1], color="#888888", linestyle=":", lw=1.2)
        left.errorbar(at, share, yerr=[below, above], color=COLOURS[0], marker="o", lw=1.4, capsize=3)
        left.set(
            xlabel="confidence", ylabel="share right", xlim=(0, 1), ylim=(0, 1), title="Reliability, all severities"
        )
        left.set_aspect("equal")
        right.bar(
            [(row["from"] + row["to"]) / 2 for row in rows],
            [row["fragments"] for row in rows],
            0.9 / BINS,
            color=COLOURS[0],
        )
        right.set(xlabel="confidence", ylabel="fragments", xlim=(0, 1), title="How many")
