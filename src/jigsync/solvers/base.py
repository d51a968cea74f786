"""What every solver gets, what it returns, and the registry that finds it by name.

    request = SolveRequest(ids, measurements, grid=Grid(3, 4))
    assignment = get("tree").solve(request)

A solver sees measurements and constraints, never pixels and never the truth. Rules that all solvers share:

* Every fragment that is not excluded is placed as long as there is a slot; surplus slots stay holes and score 0;
  surplus fragments stay unplaced.
* energy = -(sum of the side scores over all touching sides), see `energy.placement_energy`; lower is better.
* Without pins and without `upright` the answer is known up to one global turn; the caller fixes the gauge.
* Same request and seed, same answer (a time limit that strikes can change what was reached by then).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.energy import placement_energy
from jigsync.values.arrangement import Arrangement, Poses
from jigsync.values.errors import OptionError, bad_value
from jigsync.values.layout import FREE, Free, Grid, Layout
from jigsync.values.measurements import Measurements
from jigsync.values.placement import Pitch, Placed, Status, cell_pitch
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.sides import SideScores

__all__ = [
    "Assignment",
    "Budget",
    "Pins",
    "Poses",
    "Progress",
    "SolveRequest",
    "Solver",
    "get",
    "grids_to_try",
    "names",
    "over_grids",
    "placement_energy",
    "register",
]

Ints = NDArray[np.int64]
LONGEST: Final = 64
"""Fragments of a side up to which grids of any shape are tried: a film strip, a timeline."""
MOST_SLENDER: Final = 4
"""Longer grids are tried only up to so many times the shorter side of the squarest one, which for a square number of
fragments is 16 : 1. Of 1 000 fragments a prior puts 1 x 1000 thousands of nats behind (`joint`), and to search there
takes as long as anywhere."""
LEAST_SLOTS, SLOTS_EACH = 100, 4
"""Most slots of a grid: LEAST_SLOTS, or SLOTS_EACH for each fragment where that is more. Time and memory of a search go
with its slots, and holes say nothing."""


class Progress(NamedTuple):
    """Where a solver is: the stage's name, how much of it is done (0..1), the stage's best energy so far, and the best
    placement so far where the solver has one to show."""

    stage: str
    fraction: float
    energy: float | None = None
    best: Assignment | None = None


@dataclass(frozen=True, eq=False)
class SolveRequest:
    """All that a solver may see.

    Attributes:
        ids: fragment ids; index i of every array below is the fragment ids[i].
        measurements: pair measurements; solvers that only need direct neighbours ask `measurements.sides()`.
        layout: what the answer must fit: rows x cols; None for a grid that is unknown, where every factorization is
            tried and the energy decides; or free.
        pins: id -> canvas_from_frag, hard constraints in the answer's frame; `Pose.of_cell` where the layout is a grid.
        excluded: ids that do not belong to the picture; they stay unplaced.
        upright: all turns are known to be 0.
        time_limit: seconds; None for none.
        progress: called now and then; returning False cancels, and the best answer so far is returned.
    """

    ids: tuple[str, ...]
    measurements: Measurements
    layout: Layout | None = None
    pins: Mapping[str, Pose] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()
    upright: bool = False
    time_limit: float | None = None
    seed: int = 0
    threads: int = 2
    progress: Callable[[Progress], bool] | None = None

    def __post_init__(self) -> None:
        known = set(self.ids)
        for name in sorted(self.excluded - known):
            raise OptionError(f"The excluded fragment '{name}' is not in the puzzle.")
        if len(self.excluded) == len(self.ids):
            raise OptionError(
                f"There is nothing to solve: {len(self.excluded)} of {len(self.ids)} fragments are excluded."
            )
        most = max(LEAST_SLOTS, SLOTS_EACH * len(self.belonging))
        if self.grid is not None and self.grid.size > most:
            raise OptionError(
                f"The grid {self.grid} has {self.grid.size} slots: {len(self.belonging)} fragments take at most {most}."
            )
        cells: dict[tuple[int, int], str] = {}
        for name, pin in self.pins.items():
            if name not in known:
                raise OptionError(f"The pinned fragment '{name}' is not in the puzzle.")
            if name in self.excluded:
                raise OptionError(f"The fragment '{name}' is both pinned and excluded.")
            if self.upright and pin.turns != 0:
                turned = f"{pin.degrees:g} degrees" if pin.turns is None else f"{pin.turns} turns"
                raise OptionError(f"The pin of fragment '{name}' has {turned} in a puzzle said to be upright.")
            if isinstance(self.layout, Free):
                continue
            row, col, _ = cell = _pinned_cell(name, pin)
            if min(row, col) < 0 or (self.grid is not None and not self.grid.contains(row, col)):
                where = "the grid" if self.grid is None else f"the {self.grid} grid"
                raise OptionError(f"The pin of fragment '{name}' is at cell ({row}, {col}), outside {where}.")
            other = cells.setdefault(cell[:2], name)
            if other != name:
                raise OptionError(f"The fragments '{other}' and '{name}' are both pinned to cell ({row}, {col}).")
        if self.time_limit is not None and not self.time_limit > 0:
            raise bad_value("time_limit", "a solve", "a number of seconds above 0", self.time_limit)
        if self.threads < 1:
            raise bad_value("threads", "a solve", "an integer of at least 1", self.threads)

    @property
    def grid(self) -> Grid | None:
        """The grid of the answer, where it is known."""
        return self.layout if isinstance(self.layout, Grid) else None

    @property
    def pinned_cells(self) -> dict[str, tuple[int, int, int]]:
        """id -> (row, col, turns) of every pin; OptionError for a pose that is no cell."""
        return {name: _pinned_cell(name, pin) for name, pin in self.pins.items()}

    @property
    def belonging(self) -> Ints:
        """Indices of the fragments that are not excluded, ascending."""
        return np.array([i for i, name in enumerate(self.ids) if name not in self.excluded], dtype=np.int64)

    @property
    def gauge_fixed(self) -> bool:
        """Is the global turn given, by `upright` or by a pin?"""
        return self.upright or bool(self.pins)

    def grids(self, both_ways: bool = False) -> list[Grid]:
        """The grids to try, those that hold every pinned cell; OptionError when there is none.

        `both_ways`: rows x cols and cols x rows are different answers although the gauge is not given.
        """
        candidates, fitting = self._grids(both_ways)
        if not fitting:
            tried = ", ".join(str(grid) for grid in candidates) or "none"
            raise OptionError(f"No grid holds all the pinned cells; the grids of {len(self.ids)} fragments: {tried}.")
        return fitting

    def exact_grids(self, both_ways: bool = False) -> list[Grid]:
        """`grids` without the error: for solvers that know of others."""
        return self._grids(both_ways)[1]

    def _grids(self, both_ways: bool) -> tuple[list[Grid], list[Grid]]:
        """Grids without holes, and those of them that hold every pin."""
        reach = 1 + max((max(cell[:2]) for cell in self.pinned_cells.values()), default=0)
        candidates = grids_to_try(len(self.belonging), self.grid, self.gauge_fixed or both_ways, reach)
        return candidates, [grid for grid in candidates if self.holds_pins(grid)]

    def holds_pins(self, grid: Grid) -> bool:
        """Are all pinned cells in the grid?"""
        return all(grid.contains(row, col) for row, col, _ in self.pinned_cells.values())

    def pinned(self, grid: Grid) -> dict[int, tuple[int, int]]:
        """Fragment index -> (slot in this grid, turns) of every pin."""
        index = {name: i for i, name in enumerate(self.ids)}
        return {index[name]: (grid.slot(row, col), turns) for name, (row, col, turns) in self.pinned_cells.items()}


def _pinned_cell(name: str, pin: Pose) -> tuple[int, int, int]:
    """(row, col, turns) of a pin in a grid."""
    x, y = pin.xy
    if pin.turns is None or not x.is_integer() or not y.is_integer():
        raise OptionError(
            f"The pin of fragment '{name}' is at {pin.degrees:g} degrees and ({x:g}, {y:g}): a grid takes cells only."
        )
    return int(y), int(x), pin.turns


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignment(Arrangement):
    """What a solver returns: an arrangement, and what there is to say about it.

    Attributes:
        energy: of this placement under the solver's own scores; None when it has none.
        confidences: (N,) float64 in [0, 1], or None when the solver has no opinion.
        status, reason: as in `jigsync.solution.Solution`; the status alone says whether it failed.
        note: one sentence about how the answer was reached (proof, time limit, restarts), or "".
        proven: True only when the solver proved that no placement has a lower energy.
        stopped: did a time limit or a cancel end the search?
        more: other pictures that were in the pile, each an answer about all fragments; those of this picture and of
            the others have no place in it.
    """

    energy: float | None = None
    confidences: NDArray[np.float64] | None = None
    status: Status = "ok"
    reason: str = ""
    note: str = ""
    proven: bool = False
    stopped: bool = False
    more: tuple[Assignment, ...] = ()

    def __bool__(self) -> bool:
        return self.status != "failed"

    def placed(self, puzzle: Puzzle) -> tuple[dict[str, Placed], Pitch | None]:
        """id -> Placed, in pixels, and the pitch of a grid's cells."""
        sure = [None] * len(puzzle) if self.confidences is None else [float(c) for c in self.confidences]
        if self.poses is not None:
            free = self.poses
            placement = {}
            for k, (name, c) in enumerate(zip(puzzle.ids, sure, strict=True)):
                cell = self.grid.cell(int(self.slots[k])) if self.slots[k] >= 0 else None
                xy, turns = (float(free.xy[k, 0]), float(free.xy[k, 1])), int(self.turns[k]) if free.quarter else None
                pose = None if free.component[k] < 0 else Pose(float(free.angle[k]), xy, turns)
                placement[name] = Placed.nowhere(c) if pose is None else Placed(pose, cell, c, int(free.component[k]))
            return placement, None if free.pitch is None else (free.pitch, free.pitch)

        def at(pitch: Pitch | None) -> dict[str, Placed]:
            return {
                name: Placed.nowhere(c) if slot < 0 else Placed.at(*self.grid.cell(slot), turns, c, pitch=pitch)
                for name, c, slot, turns in zip(puzzle.ids, sure, self.slots.tolist(), self.turns.tolist(), strict=True)
            }

        pitch = cell_pitch(puzzle, at(None))
        return at(pitch), pitch

    @classmethod
    def failure(cls, n: int, reason: str) -> Assignment:
        """Nothing placed, and why."""
        return cls(FREE, np.full(n, -1, np.int64), np.zeros(n, np.int64), status="failed", reason=reason)

    @classmethod
    def free(
        cls, poses: Poses, confidences: NDArray[np.float64] | None, energy: float | None, *, reason: str = ""
    ) -> Assignment:
        """Free poses; "partial" when a reason is given."""
        n = len(poses.angle)
        said: Status = "partial" if reason else "ok"
        nowhere, turns = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        return cls(FREE, nowhere, turns, poses, energy=energy, confidences=confidences, status=said, reason=reason)

    @classmethod
    def of(
        cls, request: SolveRequest, found: Arrangement, energy: float, *, note: str = "", proven: bool = False
    ) -> Assignment:
        """An answer in cells for the fragments that belong, with its status worked out: "partial" when some have no
        slot.

        Args:
            found: of the fragments `request.belonging`, not of all ids.
        """
        every, left = found.among(len(request.ids), request.belonging), int(np.sum(found.slots < 0))
        reason = f"{left} of {found.n} fragments found no slot in the {found.layout} grid." if left else ""
        said: Status = "partial" if left else "ok"
        verdict = cls(every.layout, every.slots, every.turns, energy=energy, status=said, reason=reason)
        return replace(verdict, note=note, proven=proven)


class Solver(Protocol):
    """One way from measurements to an assignment; stateless, so one object serves any number of requests."""

    @property
    def name(self) -> str:
        """What `--solver` calls it."""

    @property
    def summary(self) -> str:
        """One line."""

    @property
    def assumes(self) -> str:
        """What has to hold for the answer to mean anything."""

    def solve(self, request: SolveRequest) -> Assignment:
        """Places the fragments of a request."""


class Budget:
    """A request's time limit and its cancel button, in one place.

    `go_on` is called from a solver's outer loop; once it has said False, it keeps saying so.
    """

    def __init__(self, request: SolveRequest) -> None:
        self._request = request
        self._deadline = None if request.time_limit is None else time.monotonic() + request.time_limit
        self.stopped = ""
        """Why it was stopped early, a sentence; empty while it was not."""
        self.best: Assignment | None = None
        """The best placement so far, for whoever watches; solvers set it when they have one."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time limit (never negative); None when there is none."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def go_on(self, stage: str, fraction: float, energy: float | None = None) -> bool:
        """Reports progress; False when the time is over or the caller cancelled."""
        if self.stopped:
            return False
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.stopped = "The time limit came first."
        elif self._request.progress is not None and not self._request.progress(
            Progress(stage, min(1.0, max(0.0, fraction)), energy, self.best)
        ):
            self.stopped = "It was cancelled."
        return not self.stopped


def grids_to_try(n: int, grid: Grid | None, gauge_fixed: bool, reach: int = 1) -> list[Grid]:
    """The given grid alone, or every rows x cols = n that is not too long, the squarest first.

    While the global turn is free, a turn by 90 degrees makes rows x cols the same puzzle as cols x rows, so only
    rows <= cols are listed; with a fixed gauge (`upright` or pins) both are. Where all are too long, as for a prime
    number of fragments, the squarest is listed all the same; so are those that pins ask for, which reach so many cells.
    """
    if grid is not None:
        return [grid]
    found = [Grid(rows, n // rows) for rows in range(1, n + 1) if n % rows == 0 and (gauge_fixed or rows * rows <= n)]
    found.sort(key=lambda g: (abs(g.rows - g.cols), g.rows))
    longest = max(LONGEST, MOST_SLENDER * min(found[0].shape))
    if longest < reach:
        longest = min((max(g.shape) for g in found if max(g.shape) >= reach), default=longest)
    return [g for g in found if max(g.shape) <= longest or set(g.shape) == set(found[0].shape)]


Pins = Mapping[int, tuple[int, int]]
"""Index among the fragments that belong -> (slot, turns)."""


Attempt = Callable[[Grid, Pins, float], Arrangement | None]
"""(grid, pins, energy to beat) -> the fragments that belong (not all ids), or None when nothing beats that energy."""


def over_grids(
    request: SolveRequest, budget: Budget, scores: SideScores, attempt: Attempt, *, proof: str = ""
) -> Assignment:
    """Makes one attempt per grid and keeps the one of least energy.

    Args:
        scores: of the fragments that belong.
        attempt: the first grid is always attempted; later ones only while the budget lasts.
        proof: for a solver that proves its answers: the note to give when no attempt was cut short.
    """
    chosen = request.belonging
    best: Arrangement | None = None
    least = np.inf
    grids = request.grids()
    for done, grid in enumerate(grids):
        if done and not budget.go_on("grids", done / len(grids), least if best is not None else None):
            break
        pins = {int(np.searchsorted(chosen, i)): pin for i, pin in request.pinned(grid).items()}
        found = attempt(grid, pins, least)
        if found is None or (energy := placement_energy(scores, found)) >= least:
            continue
        best, least = found, energy
        budget.best = Assignment.of(request, best, least)
    if best is None:
        return Assignment.failure(len(request.ids), f"No placement was found. {budget.stopped}".strip())
    note = budget.stopped or proof
    return Assignment.of(request, best, least, note=note, proven=bool(proof) and not budget.stopped)


DEFAULT: Final = "jigsync"
DEFAULT_FREE: Final = "free"
"""What DEFAULT hands fragments to that lie freely."""

_REGISTRY: dict[str, str] = {
    "jigsync": "jigsync.solvers.joint:Joint",
    "free": "jigsync.solvers.free.solver:Free",
    "jigsync-paper": "jigsync.solvers.paper:Paper",
    "exact": "jigsync.solvers.exact:Exact",
    "exhaustive": "jigsync.solvers.exhaustive:Exhaustive",
    "greedy": "jigsync.solvers.greedy:Greedy",
    "genetic": "jigsync.solvers.genetic:Genetic",
    "tree": "jigsync.solvers.tree:Tree",
}
"""name -> "module:attribute" of a class without required arguments; the module is imported when it is asked for."""


def layouts_of(solver: Solver) -> tuple[str, ...]:
    """The kinds of layout that a solver fills, "grid" or "free": its attribute `layouts`, grids alone without one."""
    return tuple(getattr(solver, "layouts", ("grid",)))


def check_layout(solver: Solver, layout: Layout | None) -> None:
    """OptionError when a solver cannot fill the layout that is asked for."""
    kind = "free" if isinstance(layout, Free) else "grid"
    if kind not in layouts_of(solver):
        able = "gives free poses only" if kind == "grid" else "fills grids only"
        raise OptionError(f"The solver '{solver.name}' {able}; the layout asked for is '{kind}'.")


def register(name: str, target: str) -> None:
    """Adds a solver by its "module:attribute", without importing it."""
    if ":" not in target:
        raise bad_value("target", "a solver", "of the form 'module:attribute'", target)
    _REGISTRY[name] = target


def names() -> tuple[str, ...]:
    """All registered names, in the order they were registered."""
    return tuple(_REGISTRY)


def get(name: str) -> Solver:
    """The solver of this name; OptionError listing the names when there is none."""
    if name not in _REGISTRY:
        raise OptionError(f"There is no solver '{name}'; the solvers are {', '.join(names())}.")
    module, attribute = _REGISTRY[name].split(":")
    solver: Solver = getattr(importlib.import_module(module), attribute)()
    return solver
