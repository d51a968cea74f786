"""Galleries: the source, the fragments as presented, and what each solver made of them, side by side.

A panel is a square of PAPER with one picture in it. Lines follow the fragments' own contours, as in `marks`: red for
the wrong place, amber and black stripes for the wrong turn.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.render.assemble import assemble_in
from jigsync.render.layout import Layout, layout_of
from jigsync.render.marks import mark
from jigsync.render.sheet import contact_sheet
from jigsync.render.style import FAINT, INK, PAPER, fit_text, text_size, write
from jigsync.score.poses import score_poses
from jigsync.score.verdicts import by_cells, verdicts
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

SIDE: Final = 320
"""Side of a panel's picture, px."""
BOLD: Final = 1.3
"""Marks are so much wider than in `show`: a panel is seen small."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture of SIDE x SIDE pixels or less, a title and a line below it."""

    title: str
    caption: str
    picture: Image.Image


def panels(
    puzzle: Puzzle,
    truth: Truth,
    original: NDArray[np.uint8] | None,
    answers: Sequence[tuple[str, Solution]],
    confidence: bool = False,
    side: int = SIDE,
) -> list[Panel]:
    """The source, the puzzle as presented, and every answer with its mistakes outlined.

    Args:
        original: (H, W, 3) the undamaged picture; None shows the true assembly of the fragments instead.
        answers: (title, solution), in the gauge in which they are to be shown.
        confidence: tint fragments in blue, the stronger the less sure the solver was of them.
    """
    if original is None:
        home = Solution("ok", "", truth.layout, truth.placement, pitch=truth.pitch)
        source = _on_paper(assemble_in(puzzle, home, _layout(puzzle, home, side)), side)
    else:
        source = _fitted(Image.fromarray(original), side)
    sheet = _fitted(contact_sheet(puzzle, captions=False, columns=math.ceil(math.sqrt(len(puzzle)))), side)
    grid = truth.layout if isinstance(truth.layout, Grid) else None
    first = [
        Panel("Source", "no grid" if grid is None else f"{grid.rows} x {grid.cols}", source),
        Panel("As presented", f"{len(puzzle)} fragments", sheet),
    ]
    return first + [_answer(title, puzzle, solution, truth, confidence, side) for title, solution in answers]


def _answer(title: str, puzzle: Puzzle, solution: Solution, truth: Truth, confidence: bool, side: int) -> Panel:
    if not solution:
        return Panel(title, "no answer", _words(solution.reason, side))
    layout = _layout(puzzle, solution, side)
    found = verdicts(solution, truth, puzzle)
    picture = mark(assemble_in(puzzle, solution, layout), puzzle, solution, layout, found, confidence, BOLD)
    return Panel(title, _caption(puzzle, solution, truth), _on_paper(picture, side))


def _caption(puzzle: Puzzle, solution: Solution, truth: Truth) -> str:
    """How many fragments are right, and what is wrong with the whole."""
    if not by_cells(solution, truth):
        poses = score_poses(solution, truth, puzzle)
        return f"{poses.count('right')} of {poses.fragments} right{'' if poses.upright else ', not upright'}"
    counts = [_right(solution.turned(turns), truth) for turns in range(z4.ORDER)]
    turned = f", {max(counts)} when turned as a whole" if max(counts) > counts[0] else ""
    return f"{counts[0]} of {len(truth.placement)} right{turned}"


def _right(solution: Solution, truth: Truth) -> int:
    return sum(verdict == "right" for verdict in verdicts(solution, truth).values())


def _layout(puzzle: Puzzle, solution: Solution, side: int) -> Layout:
    """Drawn at about the size in which it is seen, so that marks are not scaled."""
    layout = layout_of(puzzle, solution, at_least=side)
    return replace(layout, shrink=max(layout.shrink, round(max(layout.full_size) / side)))


def _fitted(picture: Image.Image, side: int) -> Image.Image:
    """Scaled until its longer side is `side`."""
    scale = side / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)


def _on_paper(picture: Image.Image, side: int) -> Image.Image:
    page = Image.new("RGB", picture.size, PAPER)
    page.paste(picture, (0, 0), picture)
    return _fitted(page, side)


def _words(text: str, side: int) -> Image.Image:
    """A sentence instead of a picture."""
    page = Image.new("RGB", (side, side), PAPER)
    size = max(11, side // 20)
    lines = textwrap.wrap(text, 2 * side // size)[: side // (2 * size)] or ["no answer"]
    for number, line in enumerate(lines):
        y = side / 2 + 1.5 * size * (number - (len(lines) - 1) / 2)
        write(page, fit_text(line, size, side - size), (side / 2, y), size, FAINT, "mm")
    return page


def gallery(rows: Sequence[tuple[str, Sequence[Panel]]], side: int = SIDE) -> Image.Image:
    """One page: a row a puzzle, its name above it, a title over every column.

    Args:
        rows: (name, panels), the same titles in every row.
        side: as the panels were made with.
    """
    space, size = side // 16, side // 18
    line = text_size("0", size)[1]
    columns = max((shown for _, shown in rows), key=len)
    heights = [max(panel.picture.height for panel in shown) for _, shown in rows]
    top = 2 * space + line
    page = Image.new("RGB", (space + len(columns) * (side + space), top + sum(heights) + len(rows) * 3 * line), PAPER)
    for number, panel in enumerate(columns):
        middle = (space + number * (side + space) + side / 2, space + line / 2)
        write(page, fit_text(panel.title, size, side), middle, size, INK, "mm")
    for (name, shown), height in zip(rows, heights, strict=True):
        write(page, name, (space, top + line / 2), size, FAINT, "lm")
        for number, panel in enumerate(shown):
            left = space + number * (side + space)
            spare = side - panel.picture.width, height - panel.picture.height
            page.paste(panel.picture, (left + spare[0] // 2, top + line + spare[1] // 2))
            below = (left + side / 2, top + height + 1.5 * line)
            write(page, fit_text(panel.caption, size, side), below, size, FAINT, "mm")
        top += height + 3 * line
    return page
