"""The sheet to print: the assembled picture with every fragment numbered, and a list of the numbered fragments.

A4 pages. On the first the picture fills the page, outlines and numbers over it; on the others every fragment stands as
it stands in the picture, with its number, its id and how it was turned as it was received.
"""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from jigsync.render.assemble import composed
from jigsync.render.drawn import Drawn, drawn_fragments
from jigsync.render.layout import Layout, layout_of
from jigsync.render.style import BLACK, FAINT, INK, WHITE, fit_text, font, over_paper, text_size, write
from jigsync.values.placement import Assembly
from jigsync.values.puzzle import Puzzle

DPI: Final = 200
A4: Final = (1654, 2339)
"""(width, height) of an upright page, px."""
MARGIN: Final = 90
COLS, ROWS = 5, 7
"""Fragments on a page of the list."""


def sheet_bytes(puzzle: Puzzle, solution: Assembly) -> bytes:
    """The sheet as a PDF."""
    layout = layout_of(puzzle, solution)
    numbers = {name: k + 1 for k, name in enumerate(puzzle.ids)}
    pages = [_overview(puzzle, solution, layout, numbers), *_list(puzzle, solution, layout, numbers)]
    buffer = io.BytesIO()
    pages[0].save(buffer, "PDF", resolution=DPI, save_all=True, append_images=pages[1:], title=puzzle.name)
    return buffer.getvalue()


def _overview(puzzle: Puzzle, solution: Assembly, layout: Layout, numbers: dict[str, int]) -> Image.Image:
    """The picture as large as the page allows, upright or on its side."""
    height, width = layout.size
    page = Image.new("RGB", A4 if height >= width else A4[::-1], WHITE)
    head = _title(page, f"{puzzle.name}: {len(layout.poses)} of {len(puzzle)} fragments")
    room = page.width - 2 * MARGIN, page.height - head - MARGIN
    scale = min(room[0] / width, room[1] / height)
    size = max(1, round(scale * width)), max(1, round(scale * height))
    picture = Image.fromarray(over_paper(composed(puzzle, solution, layout), WHITE)).resize(size)
    corner = (page.width - size[0]) // 2, head
    page.paste(picture, corner)
    pen = ImageDraw.Draw(page)
    # The outlines are drawn at the page's size, so that a large picture does not thin them out.
    shapes = [(drawn.name, _outline(drawn, scale, corner)) for drawn in drawn_fragments(puzzle, solution, layout)]
    for _, outline in shapes:
        if len(outline) > 1:
            pen.line([*map(tuple, outline), tuple(outline[0])], fill=WHITE, width=5)
            pen.line([*map(tuple, outline), tuple(outline[0])], fill=BLACK, width=2)
    typical = math.sqrt(size[0] * size[1] / max(1, len(shapes)))
    letters = int(max(11, min(40, typical / 4)))
    for name, outline in shapes:
        _number(pen, numbers[name], outline.mean(axis=0), letters)
    return page


def _outline(drawn: Drawn, scale: float, corner: tuple[int, int]) -> NDArray[Any]:
    """The fragment's largest contour on the page. Shapes: -> (K, 2)."""
    solid = (drawn.pixels[..., 3] >= 128).astype(np.uint8)
    contours, _ = cv2.findContours(solid, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    if not contours:
        height, width = solid.shape
        return scale * np.array([[drawn.left + width / 2, drawn.top + height / 2]]) + corner
    largest = max(contours, key=cv2.contourArea)[:, 0].astype(np.float64)
    return np.asarray(scale * (largest + np.array([drawn.left + 0.5, drawn.top + 0.5])) + corner)


def _number(pen: ImageDraw.ImageDraw, number: int, at: NDArray[Any], size: int) -> None:
    text = str(number)
    reach = max(text_size(text, size)[0] / 2 + 0.35 * size, 0.85 * size)
    x, y = (float(value) for value in at)
    pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=WHITE, outline=BLACK, width=2)
    pen.text((x, y), text, fill=BLACK, font=font(size), anchor="mm")


def _title(page: Image.Image, text: str) -> int:
    """Writes a page's title; where the rest begins."""
    write(page, fit_text(text, 34, page.width - 2 * MARGIN), (MARGIN, MARGIN / 2), 34)
    return MARGIN + 40


def _list(puzzle: Puzzle, solution: Assembly, layout: Layout, numbers: dict[str, int]) -> list[Image.Image]:
    """Pages with the fragments one by one, those that are not placed as they were received."""
    standing = {d.name: d.pixels for d in drawn_fragments(puzzle, solution, replace(layout, shrink=1, zoom=1))}
    side = (A4[0] - 2 * MARGIN) // COLS, (A4[1] - 2 * MARGIN - 40) // ROWS
    pages: list[Image.Image] = []
    head = 0
    for k, name in enumerate(puzzle.ids):
        at = k % (COLS * ROWS)
        if at == 0:
            pages.append(Image.new("RGB", A4, WHITE))
            head = _title(pages[-1], f"{puzzle.name}: what the numbers are")
        left, top = MARGIN + at % COLS * side[0], head + at // COLS * side[1]
        picture = Image.fromarray(over_paper(standing.get(name, puzzle.fragments[name]), WHITE))
        picture.thumbnail((side[0] - 30, side[1] - 90))
        pages[-1].paste(picture, (left + (side[0] - picture.width) // 2, top + (side[1] - 80 - picture.height) // 2))
        middle = left + side[0] / 2
        write(pages[-1], str(numbers[name]), (middle, top + side[1] - 64), 30, INK, "mm")
        said = fit_text(f"{name}, {_turned(solution, name)}", 18, side[0] - 10)
        write(pages[-1], said, (middle, top + side[1] - 34), 18, FAINT, "mm")
    return pages


def _turned(solution: Assembly, name: str) -> str:
    pose = solution.placement[name].pose
    if pose is None:
        return "not placed"
    clockwise = round(-pose.degrees % 360)
    return f"turned {clockwise}° clockwise" if clockwise % 360 else "not turned"
