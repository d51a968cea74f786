"""Colours, type and paper shared by every picture JigSync draws."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

RGB = tuple[int, int, int]

PAPER: Final[RGB] = (236, 235, 232)
"""Background of sheets: neutral, so that it colours no fragment."""
INK: Final[RGB] = (54, 53, 50)
FAINT: Final[RGB] = (126, 124, 118)
RED: Final[RGB] = (214, 24, 42)
AMBER: Final[RGB] = (255, 176, 0)
BLUE: Final[RGB] = (38, 98, 214)
WHITE: Final[RGB] = (255, 255, 255)
BLACK: Final[RGB] = (24, 22, 18)


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own typeface, so that pictures look the same on every machine."""
    return ImageFont.load_default(size)


def text_size(text: str, size: int) -> tuple[int, int]:
    """(width, line height) of one line of text in pixels."""
    left, _, right, _ = font(size).getbbox(text)
    return int(np.ceil(right - left)), int(np.ceil(1.3 * size))


def fit_text(text: str, size: int, width: int) -> str:
    """The text, its middle left out when it is wider than `width`."""
    if text_size(text, size)[0] <= width:
        return text
    for kept in range(len(text) - 1, 0, -1):
        short = text[: (kept + 1) // 2] + "…" + text[len(text) - kept // 2 :]
        if text_size(short, size)[0] <= width:
            return short
    return ""


def write(
    page: Image.Image, text: str, xy: tuple[float, float], size: int, colour: RGB = INK, anchor: str = "lt"
) -> None:
    """Writes one line; `anchor` as in Pillow (l, m, r and t, m, s)."""
    ImageDraw.Draw(page).text(xy, text, fill=colour, font=font(size), anchor=anchor)


def over_paper(premultiplied: NDArray[np.uint8], paper: RGB = PAPER) -> NDArray[np.uint8]:
    """Premultiplied RGBA on opaque paper: C + paper (1 - alpha).

    Shapes: (H, W, 4) -> (H, W, 3) uint8.
    """
    rest = 255 - premultiplied[..., 3:].astype(np.uint16)
    mixed = premultiplied[..., :3] + (rest * np.array(paper, dtype=np.uint16) + 127) // 255
    return np.asarray(np.minimum(mixed, 255), dtype=np.uint8)
