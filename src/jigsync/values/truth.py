"""What a solver must never see. No module of measure/, sync/ or solvers/ may import this one (tested)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jigsync.values.errors import FormatError
from jigsync.values.placement import Placed, check_placement
from jigsync.values.puzzle import Grid


@dataclass(frozen=True)
class Truth:
    """Where every fragment belongs.

    Attributes:
        grid: rows and cols of the upright picture.
        placement: id -> row, col, turns; np.rot90(stored, turns) is upright.
        options: the generator's options as plain JSON values.
        seed: the seed the puzzle was asked for with.
        source_sha256: hash of the picture's bytes.
        flags: what the generator noticed: {"redraws": int, "below_area_floor": bool}.
    """

    grid: Grid
    placement: Mapping[str, Placed]
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    source_sha256: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_placement(self.placement, self.grid)
        missing = [name for name, placed in self.placement.items() if placed.cell is None]
        if missing:
            raise FormatError(f"The truth has no cell for fragment '{missing[0]}': every fragment needs one.")
