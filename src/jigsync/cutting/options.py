"""The generator's options: what exists (grid, cell, presentation) apart from what is damaged (three axes).

Every axis is independent and zero is the identity. `shape` is the paper's A, in pixels at a cell of 128 px; it
scales with the cell, so that one severity looks the same at every size. `erosion` and `photo` are eps_geo and
eps_photo, without unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

from jigsync.cutting.handed import PRESENTATIONS, Presentation
from jigsync.values.errors import OptionError, bad_value
from jigsync.values.layout import Grid
from jigsync.values.placement import Pitch

REFERENCE_CELL: Final = 128
"""The cell, in pixels, that `shape` is stated for."""
HARMONICS: Final = 4
"""K of the fracture curves (open in the paper)."""
MAX_SHAPE: Final = 32.0
"""The largest A: its 2.5 sigma still fits the container's margin."""
MAX_CELL: Final = 1024
MAX_FRAGMENTS: Final = 40_000
MAX_CANVAS_PIXELS: Final = 200_000_000
"""Largest canvas that is cut, 200 megapixels; 600 MB of RGB."""

Preset = Literal["fracture", "gap"]


@dataclass(frozen=True)
class Damage:
    """The three damage axes.

    Attributes:
        shape: A, standard deviation of the first harmonic of a fracture curve, px at a cell of 128; 0 .. 32.
        erosion: eps_geo, mean inward erosion is eps_geo / 2 of a cell; 0 .. 0.4.
        photo: eps_photo, strength of fade, sepia, gain, noise and JPEG; 0 .. 1.
    """

    shape: float = 0.0
    erosion: float = 0.0
    photo: float = 0.0

    def __post_init__(self) -> None:
        for name, top in (("shape", MAX_SHAPE), ("erosion", 0.4), ("photo", 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
                raise bad_value(name, "the damage", f"a number from 0 to {top:g}", value)
            if not 0 <= value <= top:
                raise bad_value(name, "the damage", f"from 0 to {top:g}", value)
            object.__setattr__(self, name, float(value))


SEVERITIES: Final[Mapping[str, Damage]] = {
    "clean": Damage(0, 0, 0),
    "light": Damage(8, 0.05, 0.05),
    "medium": Damage(16, 0.10, 0.10),
    "heavy": Damage(24, 0.10, 0.20),
    "severe": Damage(32, 0.20, 0.20),
    "eroded": Damage(0, 0.20, 0.10),
}
"""Named severities; fixed, because tables are compared across versions."""


def severity(name: str) -> Damage:
    """The damage of a named severity."""
    try:
        return SEVERITIES[name]
    except KeyError:
        raise bad_value("severity", "the damage", f"one of {', '.join(SEVERITIES)}", name) from None


@dataclass(frozen=True)
class CutOptions:
    """How a picture becomes a puzzle.

    Attributes:
        grid: rows and cols.
        cell: cell pitch P in pixels.
        damage: the three axes.
        turns: turn every fragment by a random multiple of 90 degrees.
        shuffle: present the fragments in random order.
        paper_order: noise and JPEG before the turn, as the paper did (leaks the orientation), instead of after.
        preset: "fracture" cuts along shared curves; "gap" puts a blob inside every square cell, as GAP does.
        presentation: "cell" centres each cell in a container, quarter turns; "cropped" is trimmed to the content,
            quarter turns; "any" is trimmed and turned by any angle.
    """

    grid: Grid
    cell: int = REFERENCE_CELL
    damage: Damage = field(default_factory=Damage)
    turns: bool = True
    shuffle: bool = True
    paper_order: bool = False
    preset: Preset = "fracture"
    presentation: Presentation = "cell"

    def __post_init__(self) -> None:
        if isinstance(self.cell, bool) or not isinstance(self.cell, int) or not 8 <= self.cell <= MAX_CELL:
            raise bad_value("cell", "the puzzle", f"an integer from 8 to {MAX_CELL} pixels", self.cell)
        if self.grid.size > MAX_FRAGMENTS:
            raise bad_value("grid", "the puzzle", f"of at most {MAX_FRAGMENTS} fragments", str(self.grid))
        if self.grid.size * self.cell**2 > MAX_CANVAS_PIXELS:
            raise OptionError(
                f"A {self.grid} grid of {self.cell}-pixel cells is a canvas of {self.grid.size * self.cell**2:,}"
                f" pixels: at most {MAX_CANVAS_PIXELS:,} are allowed."
            )
        for name in ("turns", "shuffle", "paper_order"):
            if not isinstance(getattr(self, name), bool):
                raise bad_value(name, "the puzzle", "true or false", getattr(self, name))
        if self.preset not in ("fracture", "gap"):
            raise bad_value("preset", "the puzzle", "'fracture' or 'gap'", self.preset)
        if self.presentation not in PRESENTATIONS:
            raise bad_value("presentation", "the puzzle", f"one of {', '.join(PRESENTATIONS)}", self.presentation)
        if self.paper_order and self.presentation == "any":
            raise bad_value("presentation", "the paper's order", "cell or cropped: it turns by quarters", "any")
        if self.preset == "gap" and self.damage.shape:
            raise bad_value("shape", "the gap preset", "0, because its cells are square", self.damage.shape)

    @property
    def shape_px(self) -> float:
        """A in pixels at this cell."""
        return self.damage.shape * self.cell / REFERENCE_CELL

    @property
    def pitch(self) -> Pitch:
        """(height, width) of a cell in pixels."""
        return float(self.cell), float(self.cell)

    @property
    def margin(self) -> int:
        """Pixels between cell and container: 96 at a cell of 128, holding 2.5 sigma at the largest A; 0 for gap."""
        return 0 if self.preset == "gap" else math.ceil(0.75 * self.cell)

    @property
    def container(self) -> int:
        """Side of the square every fragment is centred in: 320 at a cell of 128."""
        return self.cell + 2 * self.margin

    def to_json(self) -> dict[str, Any]:
        """Plain values; from_json gives the same options back. Without a presentation it is "cell"."""
        value = {**asdict(self), "grid": [self.grid.rows, self.grid.cols]}
        if self.presentation == "cell":  # as in manifests from before there was another one
            del value["presentation"]
        return value

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CutOptions:
        """The inverse of to_json; an unknown key raises."""
        unknown = set(data) - {f.name for f in fields(cls)}
        if unknown:
            raise OptionError(f"Unknown generator option '{sorted(unknown)[0]}'.")
        try:
            rows, cols = data["grid"]
            damage = Damage(**data.get("damage", {}))
        except (KeyError, TypeError, ValueError) as error:
            raise OptionError(f"The generator options are not of the form that to_json writes: {error}.") from None
        rest = {key: value for key, value in data.items() if key not in ("grid", "damage")}
        return cls(grid=Grid(rows, cols), damage=damage, **{"presentation": "cell", **rest})
