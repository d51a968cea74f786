"""Options of `tear`: how many pieces, how they part, and what is damaged. Zero is the identity of every kind of damage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

from jigsync.cutting.options import MAX_CELL
from jigsync.values.errors import OptionError, bad_value

Style = Literal["tear", "cuts", "knobs"]
STYLES: Final = ("tear", "cuts", "knobs")
LOOSE: Final = ("cropped", "any")
"""Presentations without a frame: trimmed to the content; quarter turns, or any angle."""
MOST_PIECES: Final = 1000
LEAST_SIZE: Final = 16
MAX_EROSION: Final = 0.15
MAX_RIM: Final = 0.15
"""Of the piece's size."""
MAX_TORN_PIXELS: Final = 64_000_000
"""Largest picture that is torn: some 25 bytes are held for each of its pixels."""


@dataclass(frozen=True)
class TearOptions:
    """How a picture becomes a puzzle without a frame.

    Attributes:
        pieces: number of fragments, 2 .. 1000.
        size: the picture is scaled so that the mean piece has size^2 pixels.
        style: "tear" is torn paper, "cuts" are straight cuts, "knobs" is a classic jigsaw.
        erosion: mean depth taken off every edge, as a share of the size; 0 .. 0.15.
        rim: mean width in pixels of the white rims of torn paper, on one side of each seam; 0 .. 0.15 of the size.
        photo: eps_photo of the photometry, with P = size; 0 .. 1.
        presentation: "any" is trimmed and turned by any angle, "cropped" trimmed and turned by quarter turns.
        turns: turn the fragments at all.
        shuffle: present the fragments in random order.
    """

    pieces: int = 12
    size: int = 128
    style: Style = "tear"
    erosion: float = 0.0
    rim: float = 0.0
    photo: float = 0.0
    presentation: Literal["cropped", "any"] = "any"
    turns: bool = True
    shuffle: bool = True

    def __post_init__(self) -> None:
        for name, low, top in (("pieces", 2, MOST_PIECES), ("size", LEAST_SIZE, MAX_CELL)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= top:
                raise bad_value(name, "a torn puzzle", f"an integer from {low} to {top}", value)
        if self.pieces * self.size**2 > MAX_TORN_PIXELS:
            raise OptionError(
                f"{self.pieces} pieces of {self.size} x {self.size} pixels are a picture of"
                f" {self.pieces * self.size**2:,} pixels: at most {MAX_TORN_PIXELS:,} are allowed."
            )
        for name, limit in (("erosion", MAX_EROSION), ("rim", MAX_RIM * self.size), ("photo", 1.0)):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not number or not 0 <= value <= limit:
                raise bad_value(name, "a torn puzzle", f"a number from 0 to {limit:g}", value)
            object.__setattr__(self, name, float(value))
        for name, allowed in (("style", STYLES), ("presentation", LOOSE)):
            if getattr(self, name) not in allowed:
                raise bad_value(name, "a torn puzzle", f"one of {', '.join(allowed)}", getattr(self, name))
        for name in ("turns", "shuffle"):
            if not isinstance(getattr(self, name), bool):
                raise bad_value(name, "a torn puzzle", "true or false", getattr(self, name))

    def to_json(self) -> dict[str, Any]:
        """Plain values; from_json gives the same options back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TearOptions:
        """The inverse of to_json; an unknown key raises."""
        unknown = set(data) - {f.name for f in fields(cls)}
        if unknown:
            raise OptionError(f"Unknown tearing option '{sorted(unknown)[0]}'.")
        return cls(**data)
