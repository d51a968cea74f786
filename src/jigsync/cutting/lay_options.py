"""What a photograph of the table shows: what there is (frame, table, fragments, card) apart from what spoils it.

Everything that spoils is independent of the rest, and zero is the identity: with `turn` 0, `scale` 1 and every severity
0 the fragments' opaque pixels are the photograph's, bit for bit, on a table of one colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from jigsync.cutting.palettes import ANY, KINDS, PALETTES, TONES
from jigsync.values.errors import OptionError, bad_value

MIN_SIDE: Final = 64
MAX_SIDE: Final = 12_000
MAX_PIXELS: Final = 50_000_000
"""Largest photograph, 50 megapixels."""

MAX_PAIRS: Final = 2500

CARDS: Final[Mapping[str, tuple[float, float] | None]] = {
    "none": None,
    "bank": (85.6, 53.98),
    "a6": (148.0, 105.0),
    "a5": (210.0, 148.0),
    "a4": (297.0, 210.0),
}
"""Longer and shorter side in millimetres."""

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "table_mm": (10.0, 5000.0),
    "share": (0.001, 0.95),
    "scale": (0.01, 32.0),
    "gap": (0.0, 1000.0),
    "turn": (0.0, 180.0),
    "texture": (0.0, 1.0),
    "shadow": (0.0, 1.0),
    "lift": (0.0, 20.0),
    "softness": (0.0, 1.0),
    "light_from": (-360.0, 360.0),
    "falloff": (0.0, 0.9),
    "tilt": (0.0, 15.0),
    "balance": (0.0, 0.5),
    "exposure": (0.0, 2.0),
    "blur": (0.0, 10.0),
    "noise": (0.0, 10.0),
}
"""What each number may be, both ends included."""

MAY_BE_NONE: Final = ("scale", "light_from")


@dataclass(frozen=True)
class LayOptions:
    """How the fragments of a puzzle are laid out, lit and photographed.

    Attributes:
        width, height: of the photograph, px.
        table_mm: width of the table that the photograph shows, mm.
        background: kind of table, a key of PALETTES.
        tone: of the table, or "any": the seed draws one.
        texture: how much of the table's texture and of its gradient is seen; 0 is one colour.
        share: of the photograph that fragments cover; sets their scale.
        scale: pixels of the photograph for one pixel of the fragments, instead of `share`.
        gap: least distance between fragments, and from them to the photograph's rim, mm.
        touching: so many pairs of fragments touch; no fragment is in two of them.
        turn: every fragment is turned by up to so many degrees either way.
        card: a white card of known size lies beside the fragments, a key of CARDS.
        shadow: how dark shadows are; 1 is black.
        lift: mm; the fragments' rims stand off the table by up to so much, as paper that curls does.
        softness: how wide penumbras are; 1 is a window, 0 a point of light.
        light_from: degrees counter-clockwise from the right where the light comes from; None: the seed draws it.
        falloff: how much darker the photograph's darkest corner is than its brightest place.
        tilt: the camera is off the vertical by up to so many degrees.
        balance: standard deviation of the colour channels' gains.
        exposure: up to so many stops too bright or too dark.
        blur: standard deviation of the lens's blur, px.
        noise: of the camera; 1 is a telephone's indoors.
        jpeg: quality 1 .. 100; 0 keeps the photograph as a PNG.
    """

    width: int = 4000
    height: int = 3000
    table_mm: float = 400.0
    background: str = "plain"
    tone: str = ANY
    texture: float = 1.0
    share: float = 0.3
    scale: float | None = None
    gap: float = 4.0
    touching: int = 0
    turn: float = 180.0
    card: str = "none"
    shadow: float = 0.6
    lift: float = 2.0
    softness: float = 0.5
    light_from: float | None = None
    falloff: float = 0.3
    tilt: float = 2.0
    balance: float = 0.04
    exposure: float = 0.25
    blur: float = 0.8
    noise: float = 1.0
    jpeg: int = 90

    def __post_init__(self) -> None:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is None and name in MAY_BE_NONE:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or not low <= value <= high:
                raise bad_value(name, "the photograph", f"a number from {low:g} to {high:g}", value)
            object.__setattr__(self, name, float(value))
        for name, least, most in (
            ("width", MIN_SIDE, MAX_SIDE),
            ("height", MIN_SIDE, MAX_SIDE),
            ("touching", 0, MAX_PAIRS),
            ("jpeg", 0, 100),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise bad_value(name, "the photograph", f"an integer from {least} to {most}", value)
        if self.width * self.height > MAX_PIXELS:
            raise OptionError(
                f"A photograph of {self.width} x {self.height} has {self.width * self.height:,} pixels:"
                f" at most {MAX_PIXELS:,} are allowed."
            )
        for name, known in (("background", KINDS), ("card", tuple(CARDS)), ("tone", (ANY, *TONES))):
            if getattr(self, name) not in known:
                raise bad_value(name, "the photograph", f"one of {', '.join(known)}", getattr(self, name))
        tones = PALETTES[self.background]
        if self.tone != ANY and self.tone not in tones:
            raise bad_value("tone", f"a table of {self.background}", f"one of {', '.join((ANY, *tones))}", self.tone)

    @property
    def mm_per_pixel(self) -> float:
        """At the photograph's centre."""
        return self.table_mm / self.width

    def to_json(self) -> dict[str, Any]:
        """Plain values; from_json gives the same options back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LayOptions:
        """The inverse of to_json; an unknown key raises."""
        unknown = set(data) - {f.name for f in fields(cls)}
        if unknown:
            raise OptionError(f"Unknown option of a photograph '{sorted(unknown)[0]}'.")
        return cls(**data)
