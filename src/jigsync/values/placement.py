"""Where fragments go: slot + turns, or unplaced; and a solver's whole answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from jigsync.values import z4
from jigsync.values.errors import FormatError, bad_value
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Grid, Puzzle

if TYPE_CHECKING:
    from PIL import Image

Status = Literal["ok", "partial", "failed"]


@dataclass(frozen=True)
class Placed:
    """One fragment's row, col and turns; np.rot90(stored, turns) is as it stands in the assembled picture.

    An unplaced fragment has row = col = None. `confidence` is the probability that slot and turn are right.
    """

    row: int | None
    col: int | None
    turns: int
    confidence: float | None = None

    def __post_init__(self) -> None:
        if (self.row is None) != (self.col is None):
            raise FormatError(f"A fragment has row {self.row} and col {self.col}: both or neither must be null.")
        if not 0 <= self.turns < z4.ORDER:
            raise bad_value("turns", "a fragment", "0, 1, 2 or 3", self.turns)
        if self.confidence is not None and not 0.0 <= self.confidence <= 1.0:
            raise bad_value("confidence", "a fragment", "between 0 and 1", self.confidence)

    @property
    def cell(self) -> tuple[int, int] | None:
        """(row, col), or None when unplaced."""
        return None if self.row is None or self.col is None else (self.row, self.col)

    @property
    def canvas_from_frag(self) -> Pose | None:
        """The pose in cell pitches, or None when unplaced."""
        return None if self.row is None or self.col is None else Pose.of_cell(self.row, self.col, self.turns)


Placement = Mapping[str, Placed]


def check_placement(placement: Placement, grid: Grid) -> None:
    """Raises FormatError when a cell lies outside the grid or holds two fragments."""
    taken: dict[tuple[int, int], str] = {}
    for name, placed in placement.items():
        if placed.cell is None:
            continue
        if not grid.contains(*placed.cell):
            raise FormatError(f"The fragment '{name}' is at cell {placed.cell}, outside the {grid} grid.")
        if placed.cell in taken:
            raise FormatError(f"The fragments '{taken[placed.cell]}' and '{name}' are both at cell {placed.cell}.")
        taken[placed.cell] = name


def turn_placement(placement: Placement, grid: Grid, turns: int) -> tuple[dict[str, Placed], Grid]:
    """The same assembly in another gauge: cells turn as a whole, every fragment's turns grow by `turns`."""
    turned = {}
    for name, placed in placement.items():
        row, col = placed.row, placed.col
        if placed.cell is not None:
            row, col = (int(v) for v in z4.turn_cells(np.array(placed.cell), grid.shape, turns))
        turned[name] = Placed(row, col, z4.compose(turns, placed.turns), placed.confidence)
    return turned, grid.turned(turns)


@dataclass(frozen=True)
class Gauge:
    """The one global turn that no pairwise residual can see.

    Attributes:
        turns: turns of the first fragment of the puzzle in the reported frame.
        probabilities: of a further global turn g = 0..3 of the reported frame being upright; index 0 is "as
            reported". Without evidence all four are 0.25: the gauge is undetermined.
    """

    turns: int = 0
    probabilities: tuple[float, float, float, float] = (0.25, 0.25, 0.25, 0.25)

    @property
    def confidence(self) -> float:
        """Probability that the reported frame is the upright one."""
        return self.probabilities[0]

    @property
    def determined(self) -> bool:
        """Does the evidence prefer the reported frame to every other?"""
        return self.probabilities[0] > max(self.probabilities[1:]) + 1e-9


@dataclass(frozen=True)
class Solution:
    """A solver's answer: placement, status and reason. Falsy when it failed.

    Attributes:
        status: "ok" (all placed), "partial" (some unplaced or a disconnected graph), "failed" (nothing to show).
        reason: one sentence when the status is not "ok".
        grid: the grid the fragments are placed in; None when failed.
        placement: id -> Placed, every fragment of the puzzle named.
        energy: negative log-probability of the placement under the measurements, lower is better; None if unknown.
    """

    status: Status
    reason: str
    grid: Grid | None
    placement: Placement
    gauge: Gauge = field(default_factory=Gauge)
    solver: str = ""
    seconds: float = 0.0
    energy: float | None = None
    puzzle: Puzzle | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.status not in ("ok", "partial", "failed"):
            raise bad_value("status", "a solution", "'ok', 'partial' or 'failed'", self.status)
        if self.grid is not None:
            check_placement(self.placement, self.grid)
        elif any(placed.cell is not None for placed in self.placement.values()):
            raise FormatError("The solution places fragments but names no grid.")

    def __bool__(self) -> bool:
        return self.status != "failed"

    @classmethod
    def failure(cls, puzzle: Puzzle, solver: str, reason: str, seconds: float = 0.0) -> Solution:
        """Nothing could be placed, and why."""
        placement = {name: Placed(None, None, 0, 0.0) for name in puzzle.ids}
        return cls("failed", reason, None, placement, solver=solver, seconds=seconds, puzzle=puzzle)

    def turned(self, turns: int) -> Solution:
        """The same assembly after a further global turn: how a person flips through the four gauges."""
        if self.grid is None:
            return self
        placement, grid = turn_placement(self.placement, self.grid, turns)
        p = self.gauge.probabilities
        gauge = Gauge(
            z4.compose(turns, self.gauge.turns),
            (p[turns % 4], p[(turns + 1) % 4], p[(turns + 2) % 4], p[(turns + 3) % 4]),
        )
        return Solution(
            self.status, self.reason, grid, placement, gauge, self.solver, self.seconds, self.energy, self.puzzle
        )

    def assemble(self, puzzle: Puzzle | None = None) -> Image.Image:
        """The assembled picture as an RGBA image; needs the puzzle when the solution was read from a file."""
        from jigsync.render.assemble import assemble

        source = puzzle or self.puzzle
        if source is None:
            raise FormatError("This solution was read from a file and holds no pixels: pass the puzzle to assemble().")
        return assemble(source, self)
