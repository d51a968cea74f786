"""What a solver must never see. No module of measure/, sync/, engine/ or solvers/ may import this one (tested)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jigsync.values.errors import FormatError
from jigsync.values.layout import Grid, Layout
from jigsync.values.placement import Pitch, Placed, check_placement


@dataclass(frozen=True)
class Truth:
    """Where every fragment belongs.

    Attributes:
        layout: rows and cols of the upright picture, or free.
        placement: id -> Placed; the picture that the poses make is upright.
        options: the generator's options as plain JSON values.
        seed: the seed the puzzle was asked for with.
        source_sha256: hash of the picture's bytes.
        flags: what the generator noticed: {"redraws": int, "below_area_floor": bool}.
        pitch: of a grid's cells in pixels; None where poses are free, or known in cells only (old files).
        contacts: pairs of ids that touched, where whoever made the file knew; None: to be found from the poses.
    """

    layout: Layout
    placement: Mapping[str, Placed]
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    source_sha256: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)
    pitch: Pitch | None = None
    contacts: frozenset[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.layout, Grid):
            check_placement(self.placement, self.layout)
        for name, placed in self.placement.items():
            if placed.pose is None:
                raise FormatError(f"The truth has no pose for fragment '{name}': every fragment needs one.")
            if isinstance(self.layout, Grid) and placed.cell is None:
                raise FormatError(f"The truth has no cell for fragment '{name}': every fragment needs one.")

    @property
    def grid(self) -> Grid:
        """The grid; FormatError where the layout is free."""
        if not isinstance(self.layout, Grid):
            raise FormatError("This truth has no grid: its fragments lie freely.")
        return self.layout
