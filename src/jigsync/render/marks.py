"""What is wrong with an assembly, drawn on it.

A fragment in the wrong place, or one that does not belong to the picture, gets a solid red line with white edges along
its own contour; one in its place but turned wrong gets a tape of amber and black stripes. The two differ in pattern and
lightness, not only in hue, and each carries a light and a dark colour, so that they can be read by every eye and on
every picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.render.drawn import drawn_fragments
from jigsync.render.layout import Layout
from jigsync.render.style import AMBER, BLACK, BLUE, INK, PAPER, RED, RGB, WHITE, text_size, write
from jigsync.score.poses import Verdict
from jigsync.values.placement import Assembly
from jigsync.values.puzzle import Puzzle

TINT: Final = 0.65
"""Opacity of the tint over a fragment of confidence 0."""


@dataclass(frozen=True)
class _Pen:
    """Widths in pixels: white `outside` and `inside` of a line `width` wide; a tape is as wide as all three."""

    outside: float
    width: float
    inside: float

    @property
    def tape(self) -> float:
        """Width of a tape."""
        return self.outside + self.width + self.inside

    @property
    def stripe(self) -> float:
        """Period of a tape's stripes, along a row."""
        return max(4.0, 3.2 * self.tape)

    @classmethod
    def of_width(cls, width: float) -> _Pen:
        """Thin lines have no white outside: next to nothing would be left of the red."""
        edge = 0.35 * width
        return cls(edge if edge >= 1.0 else 0.0, max(1.0, width), max(0.5, edge))

    @classmethod
    def of(cls, layout: Layout, bold: float = 1.0) -> _Pen:
        """Thick enough to be seen when the whole picture fills a screen, thin enough to leave the fragment to see."""
        cell = min(layout.pitch) * layout.zoom / layout.shrink
        return cls.of_width(min(bold * max(0.035 * cell, 0.0025 * max(layout.size)), 0.10 * cell, 24.0))


def mark(
    picture: Image.Image,
    puzzle: Puzzle,
    solution: Assembly,
    layout: Layout,
    wrong: Mapping[str, Verdict] | None = None,
    confidence: bool = False,
    bold: float = 1.0,
) -> Image.Image:
    """The assembled picture with wrong fragments outlined along their own contours.

    Args:
        picture: what `assemble_in` made of the same puzzle, solution and layout.
        wrong: `verdicts`; None outlines nothing.
        confidence: tint fragments in blue, the stronger the less sure the solver was of them.
        bold: how much wider than usual the lines are.
    """
    canvas = np.array(picture.convert("RGBA"))
    pen = _Pen.of(layout, bold)
    for drawn in drawn_fragments(puzzle, solution, layout):
        verdict = (wrong or {}).get(drawn.name, "right")
        sure = drawn.placed.confidence
        tinted = confidence and sure is not None and sure < 1.0
        if verdict == "right" and not tinted:
            continue
        alpha = drawn.pixels[..., 3]
        region = canvas[drawn.region]
        if tinted and sure is not None:
            _blend(region, BLUE, alpha / 255 * TINT * (1.0 - sure))
        if verdict in ("slot", "foreign", "turn"):
            _outline(region, alpha, verdict == "turn", pen, (drawn.top, drawn.left))
    return Image.fromarray(canvas)


def _outline(
    region: NDArray[np.uint8], alpha: NDArray[np.uint8], striped: bool, pen: _Pen, corner: tuple[int, int]
) -> None:
    """Draws between two depths below the contour, so the line follows it and never runs into the neighbour."""
    solid = np.pad((alpha > 0).astype(np.uint8), 1)
    depth = np.asarray(cv2.distanceTransform(solid, cv2.DIST_L2, cv2.DIST_MASK_PRECISE))[1:-1, 1:-1] - 0.5
    # The soft rim of the fragment stays soft, and little of its own colour shows through the mark.
    rim = np.minimum(alpha / np.float32(128), 1)
    ribbon = rim * _between(depth, 0.0, pen.tape)
    if not striped:
        _blend(region, WHITE, ribbon)
        _blend(region, RED, rim * _between(depth, pen.outside, pen.outside + pen.width))
        return
    rows, cols = np.indices(depth.shape)
    along = np.asarray((rows + cols + sum(corner)) % pen.stripe)
    _blend(region, BLACK, ribbon)
    _blend(region, AMBER, ribbon * _between(along, 0.0, 0.6 * pen.stripe))


def _between(values: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    """1 where low < value < high, with soft ends a pixel wide."""
    return np.asarray(np.clip(values - low + 0.5, 0, 1) * np.clip(high - values + 0.5, 0, 1), dtype=np.float32)


def _blend(region: NDArray[np.uint8], colour: RGB, opacity: NDArray[Any]) -> None:
    """Straight-alpha *over*, in place: a = o + A (1 - o), c = (colour o + C A (1 - o)) / a."""
    touched = opacity > 0
    o = opacity[touched][:, None]
    old = region[touched].astype(np.float32)
    below = old[:, 3:] / 255 * (1 - o)
    alpha = o + below
    region[touched, :3] = np.rint((np.array(colour) * o + old[:, :3] * below) / alpha).astype(np.uint8)
    region[touched, 3:] = np.rint(255 * alpha).astype(np.uint8)


# ---------------------------------------------------------------------------------------------- legend


def legend(
    picture: Image.Image, wrong: Mapping[str, Verdict], confidence: bool = False, place: str = "slot"
) -> Image.Image:
    """The picture with a line below that says what the marks mean and how many of each there are."""
    strip = legend_strip(picture.width, wrong, confidence, place=place)
    page = Image.new("RGBA", (strip.width, picture.height + strip.height))
    page.paste(picture, ((strip.width - picture.width) // 2, 0))
    page.paste(strip, (0, picture.height))
    return page


def legend_strip(
    width: int, wrong: Mapping[str, Verdict], confidence: bool = False, size: int | None = None, place: str = "slot"
) -> Image.Image:
    """The legend alone, on paper, `width` pixels wide or as much wider as its longest entry needs.

    Args:
        size: of the letters in pixels; None goes by the width.
        place: what a fragment is in: a "slot" of a grid, or just a "place".
    """
    count = {kind: sum(v == kind for v in wrong.values()) for kind in get_args(Verdict)}
    entries: list[tuple[str, str]] = []
    if wrong:
        entries.append(("", f"{count['right']} of {len(wrong) - count['foreign']} right"))
        entries += [("slot", f"{count['slot']} in the wrong {place}")] if count["slot"] else []
        entries += [("slot", f"{count['foreign']} foreign")] if count["foreign"] else []
        entries += [("turn", f"{count['turn']} turned wrong")] if count["turn"] else []
        entries += [("", f"{count['unplaced']} not placed")] if count["unplaced"] else []
    if confidence:
        entries.append(("tint", "blue: less sure"))
    size = size or max(12, min(40, round(width / 48)))
    width = max([width, *(math.ceil(_length(entry, size) + 2 * size) for entry in entries)])
    lines = _wrap(entries, size, width - 2 * size)
    strip = Image.new("RGB", (width, round(size * (1.8 * len(lines) + 0.8))), PAPER)
    for number, line in enumerate(lines):
        x, y = float(size), size * (1.8 * number + 1.3)
        for kind, text in line:
            start = x + _length((kind, ""), size)
            if kind:
                strip.paste(_swatch(kind, size), (round(x), round(y - size / 2)))
            write(strip, text, (start, y), size, INK, "lm")
            x += _length((kind, text), size) + 1.6 * size
    return strip


def _length(entry: tuple[str, str], size: int) -> float:
    """Width of an entry: its swatch and its words."""
    kind, text = entry
    return text_size(text, size)[0] + (1.5 * size if kind else 0.0)


def _wrap(entries: list[tuple[str, str]], size: int, room: float) -> list[list[tuple[str, str]]]:
    lines: list[list[tuple[str, str]]] = [[]]
    x = 0.0
    for entry in entries:
        length = _length(entry, size)
        if lines[-1] and x + length > room:
            lines.append([])
            x = 0.0
        lines[-1].append(entry)
        x += length + 1.6 * size
    return lines


def _swatch(kind: str, size: int) -> Image.Image:
    """A little square fragment that carries the mark."""
    pixels = np.full((size, size, 4), (176, 172, 164, 255), dtype=np.uint8)
    if kind == "tint":
        _blend(pixels, BLUE, np.full((size, size), TINT))
    else:
        _outline(pixels, pixels[..., 3], kind == "turn", _Pen.of_width(0.17 * size), (0, 0))
    return Image.fromarray(pixels).convert("RGB")
