"""The public interface: load, cut, solve. The command line and the page call nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from jigsync import z4
from jigsync.errors import OptionError
from jigsync.io.files import read_bytes
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.measure import registry as measurers
from jigsync.measure.measurements import Measurements, Measurer
from jigsync.placement import Gauge, Placed, Solution, turn_placement
from jigsync.puzzle import Grid, Puzzle
from jigsync.solvers import base as solvers
from jigsync.solvers.base import Assignment, Pin, Progress, SolveRequest
from jigsync.sweep.generate import cut_picture
from jigsync.sweep.options import CutOptions
from jigsync.sweep.options import severity as named_severity
from jigsync.sync.gauge import evidence, fix_by_evidence
from jigsync.truth import Truth

GridLike = Grid | int | str | tuple[int, int]


def load(path: str | PathLike[str]) -> Puzzle:
    """A puzzle folder, its puzzle.json, or a plain folder of images of any names and sizes."""
    return load_puzzle(Path(path))


def cut(
    image: str | PathLike[str], grid: GridLike = 3, severity: str = "medium", *, cell: int = 128, seed: int = 0
) -> Puzzle:
    """Cuts a picture into a damaged, turned, shuffled puzzle and forgets the truth."""
    return cut_with_truth(image, grid, severity, cell=cell, seed=seed)[0]


def cut_with_truth(
    image: str | PathLike[str], grid: GridLike = 3, severity: str = "medium", *, cell: int = 128, seed: int = 0
) -> tuple[Puzzle, Truth]:
    """`cut`, and where every fragment belongs: for measuring."""
    data = read_bytes(Path(image), MAX_BYTES)
    options = CutOptions(as_grid(grid), cell=cell, damage=named_severity(severity))
    rgb = read_rgb(data, name=str(image))
    return cut_picture(rgb, options, seed, image_bytes_sha256(data), f"The picture '{image}'")


def as_grid(grid: GridLike) -> Grid:
    """A grid from 5, "4x6", (4, 6) or a Grid."""
    if isinstance(grid, Grid):
        return grid
    if isinstance(grid, int):
        return Grid(grid, grid)
    if isinstance(grid, str):
        return Grid.parse(grid)
    try:
        rows, cols = grid
    except (TypeError, ValueError):
        raise OptionError(f"The 'grid' must be 5, '4x6' or (4, 6). Got {grid!r} instead.") from None
    return Grid(rows, cols)


def solve(
    puzzle: Puzzle,
    solver: str = "jigsync",
    *,
    measurer: str | Measurer | None = None,
    grid: GridLike | None = None,
    pins: Mapping[str, tuple[int, int, int]] | None = None,
    exclude: Iterable[str] = (),
    upright: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 2,
    progress: Callable[[Progress], bool] | None = None,
) -> Solution:
    """Puts a puzzle back together.

    Args:
        puzzle: what `load` or `cut` gave.
        solver: a name that `jigsync solvers` lists.
        measurer: a name, or any object with a `measure(puzzle) -> Measurements`; None takes the default.
        grid: rows and cols; None tries all that the number of fragments allows.
        pins: id -> (row, col, turns), hard constraints.
        exclude: ids that do not belong to the picture.
        upright: the fragments are known not to be turned.
        time_limit: seconds; the best answer by then is returned.
        progress: called with a `Progress` now and then; returning False stops, the best answer so far is returned.

    Returns:
        A Solution; falsy, with a reason, when nothing could be placed. Without evidence about single fragments the
        global turn is undetermined: `solution.gauge` says so.
    """
    start = time.perf_counter()
    tool = solvers.get(solver)
    meter = measurers.get(measurer or measurers.DEFAULT) if measurer is None or isinstance(measurer, str) else measurer
    asked = None if grid is None else as_grid(grid)
    if progress is not None:
        progress(Progress("measuring", 0.0))
    measurements = meter.measure(puzzle)
    request = SolveRequest(
        puzzle.ids,
        measurements,
        grid=asked,
        pins={name: Pin(*pin) for name, pin in (pins or {}).items()},
        excluded=frozenset(exclude),
        upright=upright,
        time_limit=time_limit,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    answer = tool.solve(request)
    seconds = time.perf_counter() - start
    if not answer or answer.grid is None:
        return Solution.failure(puzzle, solver, answer.reason, seconds)
    return _solution(puzzle, request, answer, solver, seconds)


def _solution(puzzle: Puzzle, request: SolveRequest, answer: Assignment, solver: str, seconds: float) -> Solution:
    """Fixes the gauge by evidence and names every fragment's place."""
    assert answer.grid is not None
    placement = {}
    for k, name in enumerate(puzzle.ids):
        slot = int(answer.slots[k])
        cell = answer.grid.cell(slot) if slot >= 0 else (None, None)
        confidence = None if answer.confidences is None else float(answer.confidences[k])
        placement[name] = Placed(*cell, int(answer.turns[k]), confidence)
    turns, probabilities = _gauge(request, answer, request.measurements)
    placed, grid = turn_placement(placement, answer.grid, turns)
    gauge = Gauge(placed[puzzle.ids[0]].turns if len(puzzle) else 0, probabilities)
    return Solution(answer.status, answer.reason, grid, placed, gauge, solver, seconds, answer.energy, puzzle)


def _gauge(
    request: SolveRequest, answer: Assignment, measurements: Measurements
) -> tuple[int, tuple[float, float, float, float]]:
    """The further global turn to apply and the probabilities of the four afterwards.

    Turns that would break the asked grid are impossible; a pin or `upright` fixes the gauge outright.
    """
    if request.gauge_fixed:
        return 0, (1.0, 0.0, 0.0, 0.0)
    assert answer.grid is not None
    possible = [request.grid is None or answer.grid.turned(g) == request.grid for g in range(z4.ORDER)]
    placed = answer.slots >= 0
    unary = None if measurements.unary_turns is None else measurements.unary_turns[placed]
    p = np.where(possible, evidence(answer.turns[placed], unary), 0.0)
    p /= p.sum()
    best = fix_by_evidence(p)
    a, b, c, d = (float(p[(best + g) % z4.ORDER]) for g in range(z4.ORDER))
    return best, (a, b, c, d)
