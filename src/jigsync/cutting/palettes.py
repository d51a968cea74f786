"""What tables are made of: their kinds, tones and colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Colour = tuple[int, int, int]
"""sRGB."""

ANY: Final = "any"
"""A tone drawn by the seed."""

PALETTES: Final[Mapping[str, Mapping[str, tuple[Colour, ...]]]] = {
    "plain": {
        "light": ((236, 234, 229), (226, 221, 210), (214, 220, 226)),
        "dark": ((38, 39, 43), (52, 44, 40), (28, 36, 48)),
        "green": ((60, 122, 82), (48, 92, 70), (122, 158, 108)),
        "grey": ((128, 129, 132), (164, 163, 160), (96, 100, 106)),
    },
    "paper": {
        "light": ((240, 238, 232), (232, 224, 206), (226, 229, 232)),
        "dark": ((54, 52, 51), (46, 50, 60), (70, 54, 46)),
        "green": ((150, 172, 140), (92, 128, 104)),
        "grey": ((170, 168, 164), (136, 138, 140)),
        "brown": ((186, 150, 108), (166, 128, 88)),
    },
    "linoleum": {
        "light": ((206, 201, 190), (196, 202, 202)),
        "dark": ((64, 66, 70), (74, 62, 56)),
        "green": ((104, 128, 108), (76, 104, 92)),
        "grey": ((146, 146, 146), (122, 126, 130)),
        "brown": ((158, 128, 100), (136, 104, 82)),
    },
    "wood": {
        "light": ((214, 182, 138), (226, 200, 160), (198, 168, 128)),
        "dark": ((92, 62, 44), (70, 50, 40), (112, 74, 52)),
        "grey": ((156, 146, 134), (130, 122, 114)),
        "brown": ((168, 116, 72), (150, 98, 60)),
    },
    "cloth": {
        "light": ((226, 220, 208), (212, 214, 220)),
        "dark": ((46, 50, 62), (52, 44, 48)),
        "green": ((84, 116, 92), (116, 132, 96)),
        "grey": ((146, 144, 142), (112, 116, 122)),
        "brown": ((164, 132, 100), (132, 92, 74)),
    },
}
"""kind -> tone -> colours; the seed draws one of them."""

KINDS: Final = tuple(PALETTES)
TONES: Final = tuple(dict.fromkeys(tone for tones in PALETTES.values() for tone in tones))
