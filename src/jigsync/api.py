"""The public interface: load, extract, cut, tear, solve, candidates."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np

from jigsync import belief
from jigsync.advice import advised
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.cutting.options import severity as named_severity
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import Style, TearOptions
from jigsync.io.files import read_bytes
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb, read_rgba
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.measure import registry as measurers
from jigsync.measure.choice import readings
from jigsync.measure.parts import using_threads
from jigsync.pictures import stand_up
from jigsync.scan.extract import Extracted, extract_fragments
from jigsync.solution import Solution
from jigsync.solvers import base as solvers
from jigsync.solvers.base import Assignment, Progress, Solver, SolveRequest
from jigsync.solvers.candidates import Candidate, candidates_for
from jigsync.solvers.lattice import gridded, in_frames
from jigsync.solvers.split import confidences
from jigsync.values import z4
from jigsync.values.errors import FormatError, OptionError, bad_value
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.layout import FREE, Free, Grid, Layout, check_cells
from jigsync.values.measurements import Measurements, Measurer
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

GridLike = Grid | int | str | tuple[int, int]
LayoutName = Literal["auto", "grid", "free"]

DOUBTFUL: Final = 0.7
"""Of fragments of which an answer is less sure than this on average, another way of reading them is tried."""
LEAST_SECONDS: Final = 0.01
"""What a solver gets when measuring took all of the time."""


def load(path: str | PathLike[str]) -> Puzzle:
    """A puzzle folder, its puzzle.json, or a plain folder of images of any names and sizes."""
    return load_puzzle(Path(path))


def extract(scan: str | PathLike[str], *, straighten: bool = True) -> Extracted:
    """Cuts the fragments out of one scan that shows many of them on a plain background.

    Args:
        scan: a picture; the background is told by its colour, or by its transparency when the picture has any.
        straighten: turn every fragment whose outline tells its skew to its nearest right angle.
    """
    return extract_fragments(read_rgba(Path(scan), name=str(scan)), str(scan), straighten=straighten)


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


def tear(
    image: str | PathLike[str],
    pieces: int = 12,
    seed: int = 0,
    *,
    size: int = 128,
    style: Style = "tear",
    erosion: float = 0.0,
    rim: float = 0.0,
    photo: float = 0.0,
) -> Puzzle:
    """Tears a picture into pieces of any shape that lie at any angle, and forgets the truth.

    Args:
        image: the picture.
        pieces: 2 .. 1000.
        seed: the same picture, options and seed give the same puzzle.
        size: the picture is scaled so that pieces have about size x size pixels.
        style: "tear" is torn paper, "cuts" are straight cuts, "knobs" is a classic jigsaw.
        erosion: mean depth taken off every edge, as a share of the size.
        rim: mean width of the white rims of torn paper, px.
        photo: photometric damage, 0 .. 1.
    """
    return tear_with_truth(image, pieces, seed, size=size, style=style, erosion=erosion, rim=rim, photo=photo)[0]


def tear_with_truth(
    image: str | PathLike[str],
    pieces: int = 12,
    seed: int = 0,
    *,
    size: int = 128,
    style: Style = "tear",
    erosion: float = 0.0,
    rim: float = 0.0,
    photo: float = 0.0,
) -> tuple[Puzzle, Truth]:
    """`tear`, and where every fragment belongs: for measuring."""
    data = read_bytes(Path(image), MAX_BYTES)
    options = TearOptions(pieces, size, style, erosion, rim, photo)
    rgb = read_rgb(data, name=str(image))
    return tear_picture(rgb, options, seed, image_bytes_sha256(data), f"The picture '{image}'")


def as_grid(grid: GridLike) -> Grid:
    """A grid from 5, "4x6", (4, 6) or a Grid."""
    if isinstance(grid, Grid):
        return grid
    if isinstance(grid, int | np.integer):
        return Grid(int(grid), int(grid))
    if isinstance(grid, str):
        return Grid.parse(grid)
    try:
        rows, cols = grid
    except (TypeError, ValueError):
        raise OptionError(f"The 'grid' must be 5, '4x6' or (4, 6). Got {grid!r} instead.") from None
    return Grid(rows, cols)


def solve(
    puzzle: Puzzle,
    solver: str | Solver = "jigsync",
    *,
    measurer: str | Measurer | None = None,
    measurements: Measurements | Iterable[Measurements] | None = None,
    grid: GridLike | None = None,
    layout: LayoutName = "auto",
    pins: Mapping[str, Pose | tuple[int, int, int]] | None = None,
    exclude: Iterable[str] = (),
    upright: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 2,
    progress: Callable[[Progress], bool] | None = None,
) -> Solution:
    """Puts a puzzle back together, and says how far the answer can be believed.

    Args:
        puzzle: what `load` or `cut` gave.
        solver: a name that `jigsync solvers` lists, or any object with the methods of `solvers.base.Solver`.
        measurer: a name, or any object with a `measure(puzzle) -> Measurements`; None takes what fits the fragments.
        measurements: what was measured already, or several ways of reading the puzzle, which are tried in turn while
            the answer is doubtful; nothing is measured then.
        grid: rows and cols, at most four cells for every fragment; None tries all that the number of fragments allows.
        layout: "grid" puts fragments into cells, "free" gives every fragment a pose and nothing else; "auto" goes by
            what was measured: free poses from outlines, cells from sides, or where a grid is asked or cells are pinned.
        pins: id -> (row, col, turns) of a cell, or a pose; hard constraints.
        exclude: ids that do not belong to the picture.
        upright: the fragments are known not to be turned.
        time_limit: seconds, measuring included; the best answer by then is returned.
        seed: the same puzzle, options and seed give the same answer, unless the time limit strikes.
        threads: of measuring and searching alike; the answer does not depend on it.
        progress: called with a `Progress` now and then; returning False stops, the best answer so far is returned.

    Returns:
        A Solution; falsy, with a reason, when nothing could be placed. `solution.gauge` says how likely each of the
        four global turns is, by what the assembled picture shows and what the measurer knows of single fragments.
    """
    given: dict[str, Any] = {
        "measurer": measurer, "measurements": measurements, "grid": grid, "layout": layout, "pins": pins,
        "exclude": exclude, "upright": upright, "time_limit": time_limit, "seed": seed, "threads": threads,
        "progress": progress,
    }  # fmt: skip
    draft = drafted(puzzle, solver, **given)
    solution = draft.solution
    if draft.reading is not None and draft.request is not None:
        solution = belief.shipped().believed(
            solution, draft.reading, frozenset(draft.request.pins), draft.request.excluded
        )
        solution = advised(solution, puzzle, draft.request.grid, draft.request.excluded)
    reason = " ".join(part for part in (solution.reason, *draft.remarks) if part)
    return replace(solution, reason=reason)


@dataclass(frozen=True, eq=False)
class Draft:
    """An answer before anybody asked how far it can be believed.

    Attributes:
        reading: how the puzzle was read; None where the solver's confidences were never calibrated, or it failed.
        remarks: sentences for whoever asked.
    """

    solution: Solution
    request: SolveRequest | None = None
    reading: belief.Reading | None = None
    remarks: tuple[str, ...] = ()


def drafted(
    puzzle: Puzzle,
    solver: str | Solver = "jigsync",
    *,
    measurer: str | Measurer | None = None,
    measurements: Measurements | None = None,
    grid: GridLike | None = None,
    layout: LayoutName = "auto",
    pins: Mapping[str, Pose | tuple[int, int, int]] | None = None,
    exclude: Iterable[str] = (),
    upright: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 2,
    progress: Callable[[Progress], bool] | None = None,
) -> Draft:
    """What `solve` is made of: the solver's own answer, stood upright. Options as there."""
    start = time.perf_counter()
    tool, called = (solvers.get(solver), solver) if isinstance(solver, str) else (solver, solver.name)
    asked = _asked(grid, layout)
    if isinstance(asked, Grid):
        check_cells(asked, len(puzzle))
    fixed = {name: _pin(name, pin) for name, pin in (pins or {}).items()}
    in_cells = layout == "grid" or asked is not None or any(not isinstance(pin, Pose) for pin in (pins or {}).values())
    in_cells = in_cells and not isinstance(asked, Free)
    measured = _readings(puzzle, measurer, measurements)
    if time_limit is not None and not time_limit > 0:
        raise bad_value("time_limit", "a solve", "a number of seconds above 0", time_limit)

    def request_of(known: Measurements, wanted: Layout | None) -> SolveRequest:
        return SolveRequest(
            puzzle.ids,
            known,
            layout=wanted,
            pins=fixed,
            excluded=frozenset([exclude] if isinstance(exclude, str) else exclude),
            upright=upright,
            time_limit=None if time_limit is None else max(LEAST_SECONDS, start + time_limit - time.perf_counter()),
            seed=seed,
            threads=threads,
            progress=progress,
        )

    if progress is not None and not progress(Progress("measuring", 0.0)):
        return Draft(Solution.failure(puzzle, called, "It was cancelled before anything was measured."))

    best: tuple[SolveRequest, Assignment] | None = None
    while best is None or (_doubtful(best[1]) and not fixed):
        with using_threads(threads):
            known = next(measured, None)
        if known is None:
            break
        known = _checked(puzzle, known)
        free = isinstance(asked, Free) or (layout == "auto" and not in_cells and isinstance(known.pairs, Hypothesised))
        if free and solver == solvers.DEFAULT:
            used, request = solvers.get(solvers.DEFAULT_FREE), request_of(known, FREE)
        elif free and "free" in solvers.layouts_of(tool):
            used, request = tool, request_of(known, FREE)
        else:
            used, request = tool, request_of(known, asked)
        solvers.check_layout(used, request.layout)
        answer = used.solve(request)
        if known.frames is not None:
            answer = in_frames(answer, known.frames)
        if layout == "auto" and not fixed:
            answer = gridded(answer)
        if best is None or _sureness(answer) > _sureness(best[1]):
            best = request, answer
        if answer.stopped or solver != solvers.DEFAULT:
            break
    assert best is not None
    request, answer = best
    if not answer:
        return Draft(Solution.failure(puzzle, called, answer.reason, time.perf_counter() - start), request)
    with using_threads(threads):
        made, remark = stand_up(puzzle, request, answer)
    seconds = time.perf_counter() - start
    made = replace(made, solver=called, seconds=seconds, energy=answer.energy)
    remarks = tuple(part for part in (request.measurements.note, remark) if part)
    if solver != solvers.DEFAULT and used.name not in (solvers.DEFAULT, solvers.DEFAULT_FREE):
        return Draft(made, request, None, remarks)
    reading: belief.Reading = "free" if isinstance(request.layout, Free) else "cells"
    if request.measurements.frames is not None:
        reading = "framed"
    return Draft(made, request, reading, remarks)


def _readings(
    puzzle: Puzzle, measurer: str | Measurer | None, measurements: Measurements | Iterable[Measurements] | None
) -> Iterator[Measurements]:
    """What is measured: one way where somebody says which, else one after the other, as they are asked for."""
    if isinstance(measurements, Measurements):
        yield measurements
    elif measurements is not None:
        yield from measurements
    elif measurer is not None:
        meter = measurers.get(measurer) if isinstance(measurer, str) else measurer
        yield meter.measure(puzzle)
    else:
        yield from readings(puzzle)


def _doubtful(answer: Assignment) -> bool:
    """Is it worth trying another way of reading the puzzle?"""
    return _sureness(answer) < DOUBTFUL


def _sureness(answer: Assignment) -> float:
    """Mean confidence of all fragments; an answer that failed is not sure at all."""
    sure = confidences(answer) if answer else None
    return 0.0 if sure is None else float(sure.mean())


def candidates(
    puzzle: Puzzle,
    solution: Solution,
    row: int,
    col: int,
    *,
    measurer: str | Measurer | None = None,
    measurements: Measurements | Iterable[Measurements] | None = None,
    limit: int = 6,
) -> list[Candidate]:
    """The fragments that fit a cell of a solution best, given its neighbours, best first.

    Args:
        measurer, measurements: as in `solve`; pass measurements to ask about many cells.
        limit: list at most so many, each fragment once with its best turns; what stands in the cell comes last when
            it is not among them as it stands.
    """
    if solution.grid is None:
        why = "has no grid" if solution else "failed"
        raise OptionError(f"There is no cell to ask about: the solution {why}.")
    known = _checked(puzzle, next(_readings(puzzle, measurer, measurements)))
    return candidates_for(known, solution.grid, solution.placement, (row, col), limit)


def _asked(grid: GridLike | None, layout: str) -> Layout | None:
    """The layout that was asked for, None where that is for the solver to find out."""
    if layout not in get_args(LayoutName):
        raise bad_value("layout", "a solve", "'auto', 'grid' or 'free'", layout)
    if layout == "free" and grid is not None:
        raise OptionError("A solve with layout 'free' takes no grid.")
    return FREE if layout == "free" else None if grid is None else as_grid(grid)


def _checked(puzzle: Puzzle, measurements: Measurements) -> Measurements:
    if measurements.ids != puzzle.ids:
        raise FormatError(f"The measurements of the puzzle '{puzzle.name}' must be of its fragments, in their order.")
    return measurements


def _pin(name: str, pin: Pose | tuple[int, int, int]) -> Pose:
    if isinstance(pin, Pose):
        return pin
    try:
        row, col, turns = (operator.index(part) for part in pin)
    except (TypeError, ValueError):
        raise bad_value("pins", "a solve", "id -> (row, col, turns) or a pose", {name: pin}) from None
    if not 0 <= turns < z4.ORDER:
        raise bad_value("turns", f"the pin of fragment '{name}'", "0, 1, 2 or 3", turns)
    return Pose.of_cell(row, col, turns)
