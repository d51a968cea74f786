"""Study `clean`: clean, turned puzzles with the default solver, nothing learned, the grid unknown.

AA+rot in the best of the four gauges: boundary cues say nothing about which side is up. Pictures are grouped by their
kind when a `manifest.csv` with the columns file and kind lies beside their folder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.api import solve
from jigsync.corpus.pool import run_units
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.progress import Progress
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.score.cells import score
from jigsync.score.intervals import Interval, bootstrap_mean
from jigsync.score.kinds import kinds_of
from jigsync.studies.cues import pictures_of
from jigsync.studies.figure import COLOURS, figure
from jigsync.studies.result import Compared, StudyResult
from jigsync.values.layout import Grid

SIZES: Final = ((3, 128), (5, 128), (10, 64))
"""Grid side and cell in pixels: the canvas is never larger than 640 pixels."""
PICTURES: Final = 24
"""Taken from a folder unless --full; evenly spaced."""
GOAL: Final = 0.98
MEASURER: Final = "boundary"


@dataclass(frozen=True)
class Task:
    """One puzzle."""

    picture: Path
    kind: str
    n: int
    cell: int
    seed: int
    threads: int


def run_task(task: Task) -> dict[str, Any]:
    """Cuts, solves and scores one puzzle: a row."""
    options = CutOptions(Grid(task.n, task.n), task.cell)
    puzzle, truth = cut_picture(read_rgb(task.picture), options, task.seed, name=f"The picture '{task.picture}'")
    start = time.perf_counter()
    solution = solve(puzzle, measurer=MEASURER, seed=task.seed % 2**31, threads=task.threads)
    seconds = time.perf_counter() - start
    scores = score(solution, truth).best4
    return {
        "picture": task.picture.name,
        "kind": task.kind,
        "n": task.n,
        "cell": task.cell,
        "AA+rot": scores.aa_rot,
        "PA+rot": scores.pa_rot,
        "SRA": scores.sra,
        "right_grid": solution.grid == truth.grid,
        "seconds": seconds,
    }


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """All three sizes; of a folder, all pictures when `full`."""
    pictures = pictures_of(images)
    if not full:
        pictures = evenly_spaced(pictures, PICTURES)
    return run_pictures(pictures, SIZES, workers, seed, progress)


def run_pictures(
    pictures: Sequence[Path], sizes: Sequence[tuple[int, int]], workers: int, seed: int, progress: Progress
) -> StudyResult:
    """The study on chosen pictures and sizes."""
    kinds = kinds_of(pictures)
    tasks = [
        Task(picture, kinds[picture], n, cell, derive_seed(seed, "clean", n, picture.name), 1 if workers > 1 else 2)
        for n, cell in sorted(sizes, reverse=True)  # the long ones first, so that no core waits at the end
        for picture in pictures
    ]
    found: dict[Task, dict[str, Any]] = {}
    progress("clean", 0, len(tasks))
    for task, row in run_units(run_task, tasks, workers):
        found[task] = row
        progress("clean", len(found), len(tasks))
    rows = sorted(found.values(), key=lambda row: (row["n"], row["kind"], row["picture"]))
    rng = np.random.default_rng(seed)
    groups = [
        (n, kind, bootstrap_mean([row["AA+rot"] for row in chosen], rng), chosen)
        for n, _ in sorted(sizes)
        for kind in sorted(set(kinds.values()))
        if (chosen := [row for row in rows if (row["n"], row["kind"]) == (n, kind)])
    ]
    return StudyResult(
        name="clean",
        title="clean turned puzzles, nothing learned, grid unknown: AA+rot, best of four gauges",
        rows=rows,
        compared=[_compare(*group) for group in groups],
        verdict=_verdict(groups),
        settings={"seed": seed, "pictures": len(pictures), "sizes": [list(size) for size in sizes]},
        plot=partial(_plot, groups),
    )


Group = tuple[int, str, Interval, Sequence[dict[str, Any]]]


def _compare(n: int, kind: str, aa: Interval, rows: Sequence[dict[str, Any]]) -> Compared:
    perfect = sum(row["PA+rot"] == 1 for row in rows)
    seconds = [row["seconds"] for row in rows]
    wrong = sum(not row["right_grid"] for row in rows)
    said = f"{perfect} of {len(rows)} perfect, {np.mean(seconds):.2f} s a puzzle (most {max(seconds):.1f})"
    if wrong:
        said += f", {wrong} in another grid"
    return Compared(f"{n} x {n}, {kind}: AA+rot of {aa.n} puzzles", aa.percent(), "-", said)


def _verdict(groups: Sequence[Group]) -> str:
    ordinary = [group for group in groups if group[1] != "met-flat"]
    short = [f"{n} x {n} {kind} ({100 * aa.estimate:.1f} %)" for n, kind, aa, _ in ordinary if aa.estimate < GOAL]
    together = ", ".join(f"{n} x {n} {100 * _mean(ordinary, n):.1f} %" for n in dict.fromkeys(g[0] for g in ordinary))
    rest = " met-flat (objects on a plain backdrop, whose blank fragments are truly ambiguous) is reported apart."
    return (
        f"The goal is a mean AA+rot of at least {100 * GOAL:.0f} % on ordinary pictures."
        f" All of them together: {together}. By kind:"
        f" {'reached in every group.' if not short else 'missed by ' + ', '.join(short) + '.'}"
        f"{rest if len(ordinary) < len(groups) else ''} Not a study of the paper's: it has no such table."
    )


def _mean(groups: Sequence[Group], n: int) -> float:
    """Mean AA+rot over all pictures of the groups of one size."""
    return sum(aa.estimate * aa.n for m, _, aa, _ in groups if m == n) / sum(aa.n for m, _, aa, _ in groups if m == n)


def _plot(groups: Sequence[Group], path: Path) -> None:
    kinds = list(dict.fromkeys(kind for _, kind, _, _ in groups))
    sizes = list(dict.fromkeys(n for n, _, _, _ in groups))
    with figure(path, 1, 1, (6.5, 3.6)) as (_, axis):
        width = 0.8 / len(kinds)
        for n, kind, aa, _ in groups:
            k = kinds.index(kind)
            at = sizes.index(n) + width * (k - (len(kinds) - 1) / 2)
            low, high = 100 * (aa.estimate - aa.low), 100 * (aa.high - aa.estimate)
            axis.bar(
                at,
                100 * aa.estimate,
                0.92 * width,
                color=(COLOURS[0], "#c9d7e3", "#ffffff")[k % 3],
                hatch=("", "///", "...")[k % 3],
                edgecolor="#333333",
                linewidth=0.6,
                yerr=[[low], [high]],
                error_kw={"lw": 1, "capsize": 3},
                label=kind if n == sizes[0] else None,
            )
            axis.text(
                at, 2, f"{100 * aa.estimate:.1f}", ha="center", fontsize=8, bbox={"fc": "white", "lw": 0, "pad": 1}
            )
        axis.axhline(100 * GOAL, color="#555555", linestyle=":", lw=1.2)
        axis.text(-0.48, 100 * GOAL - 1, f"{100 * GOAL:.0f}", va="top", fontsize=8, color="#555555")
        axis.set_xticks(range(len(sizes)), [f"{n} x {n}" for n in sizes])
        axis.set(ylabel="AA+rot, per cent", ylim=(0, 112), yticks=range(0, 101, 20), title="Clean turned puzzles")
        axis.legend(loc="upper center", ncols=len(kinds))
