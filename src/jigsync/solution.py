"""A solver's whole answer, as the interface gives it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, get_args

from jigsync.values.errors import FormatError, bad_value
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid, Layout
from jigsync.values.picture import Picture
from jigsync.values.placement import Pitch, Placed, Placement, Status, check_placement, turn_placement, turned_pitch
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class Solution:
    """A solver's answer: placement, status and reason. Falsy when it failed, which `status` alone says.

    Attributes:
        status: "ok" (probably right), "partial" (probably right, but fragments are left out, or several components),
            "unsure" (probably not right), "failed" (nothing to show).
        reason: a sentence that names the likeliest reason and what to do, when the status is not "ok".
        layout: what the poses fit: a grid, or free.
        placement: id -> Placed, every fragment of the puzzle named.
        energy: negative log-probability of the placement under the measurements, lower is better; None if unknown.
        pitch: of a grid's cells in pixels; None where poses are free, or known in cells only (old files).
        confidence: the probability that four fifths of the fragments are right, or None when nobody said.
        whole: where there is one picture: the probability that it is whole (`Picture.whole`).
        parts: the pictures where there are several; empty for one.
    """

    status: Status
    reason: str
    layout: Layout
    placement: Placement
    gauge: Gauge = field(default_factory=Gauge)
    solver: str = ""
    seconds: float = 0.0
    energy: float | None = None
    pitch: Pitch | None = None
    confidence: float | None = None
    whole: float | None = None
    parts: tuple[Picture, ...] = ()
    puzzle: Puzzle | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            allowed = ", ".join(repr(status) for status in get_args(Status))
            raise bad_value("status", "a solution", f"one of {allowed}", self.status)
        if isinstance(self.layout, Grid):
            check_placement(self.placement, self.layout)
        elif any(placed.cell is not None for placed in self.placement.values()):
            raise FormatError("The solution places fragments in cells but names no grid.")

    def __bool__(self) -> bool:
        return self.status != "failed"

    @property
    def grid(self) -> Grid | None:
        """The grid, where the layout is one."""
        return self.layout if isinstance(self.layout, Grid) else None

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """What is known about every component that is a picture, the first one first."""
        if self.parts or not self:
            return self.parts
        cells = {name: placed.cell for name, placed in self.placement.items() if placed.cell is not None}
        number = next((placed.component for placed in self.placement.values() if placed.pose is not None), 0)
        return (Picture(number, self.layout, self.gauge, self.pitch, cells, self.whole),)

    def first(self) -> Solution:
        """The first of several pictures alone, in its grid where it has one; the other fragments have no place."""
        if not self.parts:
            return self
        picture = self.parts[0]
        placement = {}
        for name, placed in self.placement.items():
            mine = placed.pose is not None and placed.component == picture.component
            placement[name] = replace(placed, cell=picture.cells.get(name)) if mine else Placed.nowhere(0.0)
        return replace(
            self,
            layout=picture.layout,
            placement=placement,
            gauge=picture.gauge,
            pitch=picture.pitch,
            whole=picture.whole,
            parts=(),
        )

    @classmethod
    def failure(cls, puzzle: Puzzle, solver: str, reason: str, seconds: float = 0.0) -> Solution:
        """Nothing could be placed, and why."""
        placement = {name: Placed.nowhere(0.0) for name in puzzle.ids}
        return cls("failed", reason, FREE, placement, Gauge(turns=None), solver, seconds, puzzle=puzzle)

    def turned(self, turns: int) -> Solution:
        """The same assembly after a further global turn: how a person flips through the four gauges."""
        gauge = self.gauge.turned(turns)
        if isinstance(self.layout, Grid):
            placement, grid = turn_placement(self.placement, self.layout, turns, self.pitch)
            pitch = turned_pitch(self.pitch, turns)
            return replace(self, layout=grid, placement=placement, gauge=gauge, pitch=pitch)
        parts = tuple(part.turned(turns) for part in self.parts)
        return replace(self.moved(Pose.of_turns(turns, (0.0, 0.0)), gauge), parts=parts)

    def assemble(self, puzzle: Puzzle | None = None) -> Image.Image:
        """The assembled picture as an RGBA image; needs the puzzle when the solution was read from a file."""
        from jigsync.render.assemble import assemble  # here: a solution is of use without cv2

        source = puzzle or self.puzzle
        if source is None:
            raise FormatError("This solution was read from a file and holds no pixels: pass the puzzle to assemble().")
        return assemble(source, self)

    def moved(self, new_from_old: Pose, gauge: Gauge) -> Solution:
        """The same free assembly in another frame."""
        placement = {name: placed.moved(new_from_old) for name, placed in self.placement.items()}
        parts = tuple(replace(part, layout=FREE, pitch=None, cells={}) for part in self.parts)
        return replace(self, layout=FREE, placement=placement, gauge=gauge, pitch=None, parts=parts)
