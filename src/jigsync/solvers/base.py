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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.energy import placement_energy
from jigsync.values import z4
from jigsync.values.errors import OptionError, bad_value
from jigsync.values.placement import Status
from jigsync.values.puzzle import Grid

if TYPE_CHECKING:
    from jigsync.values.measurements import Measurements

__all__ = [
    "Assignment",
    "Budget",
    "Found",
    "Pin",
    "Pins",
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


class Pin(NamedTuple):
    """A hard constraint: this fragment is at (row, col) with these turns."""

    row: int
    col: int
    turns: int


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
        grid: rows x cols of the answer; None when unknown: every factorization is tried, the energy decides.
        pins: id -> Pin, hard constraints in the answer's frame.
        excluded: ids that do not belong to the picture; they stay unplaced.
        upright: all turns are known to be 0.
        time_limit: seconds; None for none.
        progress: called now and then; returning False cancels, and the best answer so far is returned.
    """

    ids: tuple[str, ...]
    measurements: Measurements
    grid: Grid | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict)
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
        cells: dict[tuple[int, int], str] = {}
        for name, pin in self.pins.items():
            if name not in known:
                raise OptionError(f"The pinned fragment '{name}' is not in the puzzle.")
            if name in self.excluded:
                raise OptionError(f"The fragment '{name}' is both pinned and excluded.")
            if min(pin.row, pin.col) < 0 or (self.grid is not None and not self.grid.contains(pin.row, pin.col)):
                where = "the grid" if self.grid is None else f"the {self.grid} grid"
                raise OptionError(f"The pin of fragment '{name}' is at cell ({pin.row}, {pin.col}), outside {where}.")
            if not 0 <= pin.turns < z4.ORDER:
                raise bad_value("turns", f"the pin of fragment '{name}'", "0, 1, 2 or 3", pin.turns)
            if self.upright and pin.turns != 0:
                raise OptionError(f"The pin of fragment '{name}' has {pin.turns} turns in a puzzle said to be upright.")
            other = cells.setdefault((pin.row, pin.col), name)
            if other != name:
                raise OptionError(
                    f"The fragments '{other}' and '{name}' are both pinned to cell ({pin.row}, {pin.col})."
                )
        if self.time_limit is not None and not self.time_limit > 0:
            raise bad_value("time_limit", "a solve", "a number of seconds above 0", self.time_limit)
        if self.threads < 1:
            raise bad_value("threads", "a solve", "an integer of at least 1", self.threads)

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
        candidates = grids_to_try(len(self.belonging), self.grid, self.gauge_fixed or both_ways)
        fitting = [grid for grid in candidates if all(grid.contains(pin.row, pin.col) for pin in self.pins.values())]
        if not fitting:
            tried = ", ".join(str(grid) for grid in candidates) or "none"
            raise OptionError(f"No grid holds all the pinned cells; the grids of {len(self.ids)} fragments: {tried}.")
        return fitting

    def pinned(self, grid: Grid) -> dict[int, tuple[int, int]]:
        """Fragment index -> (slot in this grid, turns) of every pin."""
        index = {name: i for i, name in enumerate(self.ids)}
        return {index[name]: (grid.slot(pin.row, pin.col), pin.turns) for name, pin in self.pins.items()}


@dataclass(frozen=True, eq=False)
class Assignment:
    """What a solver returns.

    Attributes:
        grid: the grid the slots belong to; None when nothing could be placed.
        slots: (N,) int64, slot = row * cols + col, -1 when unplaced.
        turns: (N,) int64 in 0..3; 0 for an unplaced fragment.
        energy: of this placement under the solver's own scores; None when it has none.
        confidences: (N,) float64 in [0, 1], or None when the solver has no opinion.
        status, reason: as in `jigsync.values.placement.Solution`.
        note: one sentence about how the answer was reached (proof, time limit, restarts), or "".
        proven: True only when the solver proved that no placement has a lower energy.
    """

    grid: Grid | None
    slots: Ints
    turns: Ints
    energy: float | None = None
    confidences: NDArray[np.float64] | None = None
    status: Status = "ok"
    reason: str = ""
    note: str = ""
    proven: bool = False

    def __bool__(self) -> bool:
        return self.status != "failed"

    @classmethod
    def failure(cls, n: int, reason: str) -> Assignment:
        """Nothing placed, and why."""
        return cls(None, np.full(n, -1, np.int64), np.zeros(n, np.int64), status="failed", reason=reason)

    @classmethod
    def of(
        cls,
        request: SolveRequest,
        grid: Grid,
        slots: Ints,
        turns: Ints,
        energy: float,
        *,
        note: str = "",
        proven: bool = False,
    ) -> Assignment:
        """An answer for the fragments that belong, with its status worked out: "partial" when some have no slot.

        Shapes: slots, turns (len(request.belonging),).
        """
        chosen = request.belonging
        all_slots, all_turns = np.full(len(request.ids), -1, np.int64), np.zeros(len(request.ids), np.int64)
        all_slots[chosen], all_turns[chosen] = slots, np.where(slots >= 0, turns, 0)
        left = int(np.sum(slots < 0))
        reason = f"{left} of {len(chosen)} fragments found no slot in the {grid} grid." if left else ""
        status: Status = "partial" if left else "ok"
        return cls(grid, all_slots, all_turns, energy, None, status, reason, note, proven)


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
            self.stopped = f"The time limit of {self._request.time_limit:g} s came first."
        elif self._request.progress is not None and not self._request.progress(
            Progress(stage, min(1.0, max(0.0, fraction)), energy, self.best)
        ):
            self.stopped = "It was cancelled."
        return not self.stopped


def grids_to_try(n: int, grid: Grid | None, gauge_fixed: bool) -> list[Grid]:
    """The given grid alone, or every rows x cols = n, the squarest first.

    While the global turn is free, a turn by 90 degrees makes rows x cols the same puzzle as cols x rows, so only
    rows <= cols are listed; with a fixed gauge (`upright` or pins) both are.
    """
    if grid is not None:
        return [grid]
    found = [Grid(rows, n // rows) for rows in range(1, n + 1) if n % rows == 0 and (gauge_fixed or rows * rows <= n)]
    return sorted(found, key=lambda g: (abs(g.rows - g.cols), g.rows))


class Found(NamedTuple):
    """A placement of the fragments that belong (not of all ids), with its energy."""

    slots: Ints
    turns: Ints
    energy: float


Pins = Mapping[int, tuple[int, int]]
"""Index among the fragments that belong -> (slot, turns)."""


def over_grids(
    request: SolveRequest, budget: Budget, attempt: Callable[[Grid, Pins, float], Found | None], *, proof: str = ""
) -> Assignment:
    """Makes one attempt per grid and keeps the one of least energy.

    Args:
        attempt: (grid, pins, energy to beat) -> a placement, or None when nothing beats that energy. The first grid
            is always attempted; later ones only while the budget lasts.
        proof: for a solver that proves its answers: the note to give when no attempt was cut short.
    """
    chosen = request.belonging
    best: tuple[Grid, Found] | None = None
    grids = request.grids()
    for done, grid in enumerate(grids):
        if done and not budget.go_on("grids", done / len(grids), best[1].energy if best else None):
            break
        pins = {int(np.searchsorted(chosen, i)): pin for i, pin in request.pinned(grid).items()}
        found = attempt(grid, pins, best[1].energy if best else np.inf)
        if found is not None and (best is None or found.energy < best[1].energy):
            best = grid, found
            budget.best = Assignment.of(request, grid, *found)
    if best is None:
        return Assignment.failure(len(request.ids), f"No placement was found. {budget.stopped}".strip())
    grid, found = best
    note = budget.stopped or proof
    return Assignment.of(request, grid, *found, note=note, proven=bool(proof) and not budget.stopped)


_REGISTRY: dict[str, str] = {
    "jigsync": "jigsync.solvers.joint:Joint",
    "jigsync-paper": "jigsync.solvers.paper:Paper",
    "exact": "jigsync.solvers.exact:Exact",
    "exhaustive": "jigsync.solvers.exhaustive:Exhaustive",
    "greedy": "jigsync.solvers.greedy:Greedy",
    "genetic": "jigsync.solvers.genetic:Genetic",
    "tree": "jigsync.solvers.tree:Tree",
}
"""name -> "module:attribute" of a class without required arguments; the module is imported when it is asked for."""


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
