"""Study `frame`: what every measurer loses when fragments no longer say where their cells are (erratum 12).

The paper centres every cell in a container, so that a fragment's picture tells where its cell is. Here the same puzzles
are handed over as cut, with the content of every container shifted by 2, 4, 8 and 16 pixels in a random direction,
cropped to the content, and turned by any angle. Scored by slots and turns in the best of the four gauges, as the
containers' centres are what is taken away; an answer without a grid by the share of its poses that are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.api import solve
from jigsync.corpus.pool import run_units
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.handed import Presentation
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.fingerprint import AUTO
from jigsync.evaluate.progress import Progress
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.measure import registry
from jigsync.measure.backbone import get as backbone
from jigsync.score.cells import score
from jigsync.score.intervals import Interval, bootstrap_mean
from jigsync.score.poses import score_poses
from jigsync.solution import Solution
from jigsync.studies.cues import pictures_of
from jigsync.studies.figure import figure, line_style
from jigsync.studies.result import Compared, StudyResult
from jigsync.values.errors import JigsyncError, MissingExtraError
from jigsync.values.layout import Grid
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth

GRID: Final = Grid(3, 4)
CELL: Final = 96
SHIFTS: Final = (2, 4, 8, 16)
"""Pixels at a cell of 128; they scale with the cell."""
REFERENCE: Final = 128
SHOWN: Final = ("as cut", "shifted 8", "cropped", "any")
"""In the verdict."""
HANDED: Final = ("as cut", *(f"shifted {shift}" for shift in SHIFTS), "cropped", "any")
DAMAGES: Final = ("medium",)
FULL_DAMAGES: Final = ("light", "medium", "heavy", "severe", "eroded")
PICTURES: Final = 4
FULL_PICTURES: Final = 40
CONTENT: Final = ("content", "content-band", "seam+content")
"""They need an extra; without it they are left out, and it is said."""


@dataclass(frozen=True)
class Task:
    """One picture at one severity, by all measurers."""

    picture: Path
    severity: str
    measurers: tuple[str, ...]
    cell: int
    seed: int
    threads: int


def handed_over(task: Task, how: str) -> tuple[Puzzle, Truth]:
    """The puzzle as one of HANDED."""
    loose: dict[str, Presentation] = {"cropped": "cropped", "any": "any"}
    options = CutOptions(GRID, task.cell, SEVERITIES[task.severity], presentation=loose.get(how, "cell"))
    puzzle, truth = cut_picture(read_rgb(task.picture), options, task.seed, name=f"The picture '{task.picture}'")
    if not how.startswith("shifted"):
        return puzzle, truth
    return shifted(puzzle, truth, int(how.split()[1]) * task.cell / REFERENCE, task.seed)


def shifted(puzzle: Puzzle, truth: Truth, away: float, seed: int) -> tuple[Puzzle, Truth]:
    """Every fragment's content moved so far in its container, in a random direction, by whole pixels."""
    rng = np.random.default_rng([seed, 0])
    pixels, placement = [], {}
    for name, stored in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        angle = rng.uniform(0, 2 * np.pi)
        right, down = round(away * float(np.cos(angle))), round(away * float(np.sin(angle)))
        pixels.append(_moved(stored, right, down))
        home = truth.placement[name]
        assert home.pose is not None  # Truth sees to it
        placement[name] = replace(home, pose=home.pose.compose(Pose.of_turns(0, (-right, -down))))
    moved = Puzzle(Fragments(puzzle.ids, tuple(pixels)), puzzle.cell, puzzle.container, puzzle.name)
    return moved, replace(truth, placement=placement)


def _moved(stored: Pixels, right: int, down: int) -> Pixels:
    """What leaves the container is lost."""
    wide = max(abs(right), abs(down))
    padded = np.pad(stored, ((wide, wide), (wide, wide), (0, 0)))
    height, width = stored.shape[:2]
    return np.ascontiguousarray(padded[wide - down : wide - down + height, wide - right : wide - right + width])


def in_place(solution: Solution, truth: Truth, puzzle: Puzzle) -> float:
    """Fragments in their slot and turned right, best of four gauges; without a grid, of poses right."""
    if solution.grid is None:
        return score_poses(solution, truth, puzzle).right
    return score(solution, truth).best4.aa_rot


def run_task(task: Task) -> list[dict[str, Any]]:
    """A row a way of handing over and measurer."""
    rows = []
    for how in HANDED:
        puzzle, truth = handed_over(task, how)
        for measurer in task.measurers:
            try:
                meter = None if measurer == AUTO else measurer
                solution = solve(puzzle, measurer=meter, seed=task.seed % 2**31, threads=task.threads)
            except JigsyncError as error:  # it does not take such fragments
                solution = Solution.failure(puzzle, measurer, str(error))
            sure = [placed.confidence for placed in solution.placement.values() if placed.confidence is not None]
            rows.append(
                {
                    "picture": task.picture.name,
                    "severity": task.severity,
                    "handed": how,
                    "measurer": measurer,
                    "in_place": in_place(solution, truth, puzzle) if solution else 0.0,
                    "confidence": float(np.mean(sure)) if sure else None,
                    "status": solution.status,
                }
            )
    return rows


def able() -> tuple[tuple[str, ...], str]:
    """The measurers that can be run here, and why others cannot."""
    try:
        backbone(None)
    except MissingExtraError as missing:
        return tuple(name for name in (AUTO, *registry.names()) if name not in CONTENT), str(missing)
    return (AUTO, *registry.names()), ""


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Every measurer; `full` takes all severities."""
    measurers, missing = able()
    pictures = evenly_spaced(pictures_of(images), FULL_PICTURES if full else PICTURES)
    damages = FULL_DAMAGES if full else DAMAGES
    return run_pictures(pictures, damages, measurers, CELL, workers, seed, progress, missing)


def run_pictures(
    pictures: Sequence[Path],
    severities: Sequence[str],
    measurers: tuple[str, ...],
    cell: int,
    workers: int,
    seed: int,
    progress: Progress,
    missing: str = "",
) -> StudyResult:
    """The study on chosen pictures; `missing` says why measurers were left out."""
    threads = 1 if workers > 1 else 2
    tasks = [
        Task(picture, severity, measurers, cell, derive_seed(seed, "frame", severity, picture.name), threads)
        for picture in pictures
        for severity in severities
    ]
    rows: list[dict[str, Any]] = []
    progress("frame", 0, len(tasks))
    for done, (_, found) in enumerate(run_units(run_task, tasks, workers), start=1):
        rows += found
        progress("frame", done, len(tasks))
    rows.sort(
        key=lambda row: (measurers.index(row["measurer"]), row["severity"], HANDED.index(row["handed"]), row["picture"])
    )
    rng = np.random.default_rng(seed)
    shares = {
        (measurer, how): bootstrap_mean([row["in_place"] for row in _of(rows, measurer, how)], rng)
        for measurer in measurers
        for how in HANDED
    }
    return StudyResult(
        name="frame",
        title="what is in place when fragments do not say where their cells are",
        rows=rows,
        compared=[_compared(measurer, shares, rows) for measurer in measurers],
        verdict=_verdict(measurers, shares, missing),
        settings={
            "pictures": len(pictures),
            "measurers": list(measurers),
            "severities": list(severities),
            "grid": str(GRID),
            "cell": cell,
            "seed": seed,
        },
        plot=partial(_plot, measurers, shares),
    )


Shares = dict[tuple[str, str], Interval]


def _of(rows: Sequence[dict[str, Any]], measurer: str, how: str) -> list[dict[str, Any]]:
    return [row for row in rows if (row["measurer"], row["handed"]) == (measurer, how)]


def _compared(measurer: str, shares: Shares, rows: Sequence[dict[str, Any]]) -> Compared:
    told = ", ".join(f"{how} {100 * shares[measurer, how].estimate:.0f}" for how in HANDED[1:])
    sure = [row["confidence"] for row in _of(rows, measurer, "any") if row["confidence"] is not None]
    confident = f"; confidence at any angle {np.mean(sure):.2f}" if sure else ""
    what = f"{measurer}, as cut: fragments in place"
    return Compared(what, shares[measurer, "as cut"].percent(), "-", f"{told} %{confident}")


def _verdict(measurers: Sequence[str], shares: Shares, missing: str) -> str:
    lost = {name: shares[name, "as cut"].estimate - shares[name, "shifted 8"].estimate for name in measurers}
    most = max(lost, key=lambda name: lost[name])
    told = "; ".join(
        f"{name} {' / '.join(f'{100 * shares[name, how].estimate:.0f}' for how in SHOWN)}" for name in measurers
    )
    left = f" Left out: {', '.join(CONTENT)}. {missing}" if missing else ""
    return (
        "Per cent in place as cut / shifted by 8 px / cropped / at any angle:"
        f" {told}. A shift of 8 px costs {most} most, {100 * lost[most]:.0f} points: what it reads as cut is in part"
        f" the container, which no scan of a real fragment has (erratum 12).{left}"
    )


def _plot(measurers: Sequence[str], shares: Shares, path: Path) -> None:
    with figure(path, 1, 1, (8.5, 4.4)) as (drawn, axis):
        for k, measurer in enumerate(measurers):
            values = [shares[measurer, how] for how in HANDED]
            at = [place + 0.05 * (k - (len(measurers) - 1) / 2) for place in range(len(HANDED))]
            ends = [[100 * abs(v.estimate - getattr(v, end)) for v in values] for end in ("low", "high")]
            style = {**line_style(k), "lw": 1.0}
            axis.errorbar(at, [100 * v.estimate for v in values], ends, capsize=2, label=measurer, **style)
        axis.set(title="Fragments in place, by how they are handed over", ylabel="per cent", ylim=(-2, 102))
        axis.set_xticks(range(len(HANDED)), HANDED)
        drawn.legend(*axis.get_legend_handles_labels(), loc="outside right center")
