"""Study `continuous-puzzles`: clean squares at any angle, put together again.

The paper's supplement draws two such puzzles "at the real position accuracy" of upright ones, 6 of 9 and 6 of 25, and
has no method that places fragments which lie at any angle. Here such puzzles are solved: the default solver, which is
not told that there is a grid, nor that fragments are squares.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from jigsync.evaluate.progress import Progress
from jigsync.evaluate.table import Line
from jigsync.evaluate.wanted import Wanted
from jigsync.score.intervals import Interval
from jigsync.studies.evaluated import by_method, line_row, plot_lines, run_wanted, told, whole
from jigsync.studies.result import Compared, StudyResult
from jigsync.values.layout import Grid

SIZES: Final = (3, 5)
CELL: Final = 96
PUZZLES: Final = 12
FULL_PUZZLES: Final = 150
SOLVERS: Final = ("jigsync", "free:contours-plain")
PAPER: Final = {3: 6, 5: 6}
"""n -> fragments in place, of n * n."""


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """n = 3 and 5."""
    return run_sizes(SIZES, FULL_PUZZLES if full else PUZZLES, CELL, workers, seed, progress, images)


def run_sizes(
    sizes: tuple[int, ...],
    puzzles: int,
    cell: int,
    workers: int,
    seed: int,
    progress: Progress,
    images: Path | None = None,
) -> StudyResult:
    """The study at chosen sizes."""
    grids = tuple(Grid(n, n) for n in sizes)
    wanted = Wanted(grids, ("clean",), puzzles, cell, seed=seed, presentations=("any",))
    found = run_wanted("continuous-puzzles", wanted, SOLVERS, (), workers, progress, images)
    lines = whole(found)
    return StudyResult(
        name="continuous-puzzles",
        title="clean squares at any angle, no grid told: fragments right",
        rows=[line_row(line) for line in lines],
        compared=[_compared(line) for line in lines],
        verdict=_verdict(lines),
        settings={
            "puzzles": puzzles,
            "sizes": list(sizes),
            "cell": cell,
            "seed": seed,
            "pictures": len({spec.picture for spec in found.specs}),
        },
        plot=partial(_plot, lines),
    )


def _n(line: Line) -> int:
    assert line.setting.grid is not None
    return line.setting.grid.rows


def _of(interval: Interval, n: int) -> str:
    """A share as so many of the fragments."""
    count = n * n
    return f"{count * interval.estimate:.1f} of {count} [{count * interval.low:.1f}, {count * interval.high:.1f}]"


def _compared(line: Line) -> Compared:
    n = _n(line)
    paper = f"{PAPER[n]} of {n * n}" if n in PAPER else "-"
    what = f"{line.method.label}, {n} x {n}: fragments right, {line.puzzles} puzzles"
    return Compared(what, _of(line.poses["right"], n), paper, told(line))


def _verdict(lines: list[Line]) -> str:
    ours: list[Any] = [line for line in lines if line.method.label == SOLVERS[0]]
    shown = "; ".join(f"{_n(line)} x {_n(line)} {_of(line.poses['right'], _n(line))}" for line in ours)
    return (
        f"Fragments right of clean squares at any angle: {shown}. The paper's figures are one drawn puzzle each, its"
        " places taken over from upright puzzles of another data set: they say what its authors expect, not what was"
        " solved. Right means within 5 degrees and 10 % of the size, after one motion of the whole."
    )


def _plot(lines: list[Line], path: Path) -> None:
    plot_lines({"clean squares at any angle": by_method(lines)}, "form", path)
