"""Before and after side by side: the fragments as presented, and what a solver made of them."""

from __future__ import annotations

from typing import Final

from PIL import Image, ImageDraw

from jigsync.render.assemble import assemble_in
from jigsync.render.layout import layout_of
from jigsync.render.marks import legend_strip, mark
from jigsync.render.sheet import contact_sheet
from jigsync.render.style import FAINT, INK, PAPER, write
from jigsync.score.verdicts import by_cells, verdicts
from jigsync.values.placement import Assembly
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

HEIGHT: Final = 640
"""Height of the two pictures, px."""


def compare(
    puzzle: Puzzle,
    solution: Assembly,
    truth: Truth | None = None,
    titles: tuple[str, str] = ("As presented", "Assembled"),
) -> Image.Image:
    """One opaque RGB picture: contact sheet left, assembled picture right, a title above each.

    Args:
        puzzle: the fragments.
        solution: their assembly.
        truth: outline what is wrong and count it below; None does neither.
        titles: words above the two.
    """
    layout = layout_of(puzzle, solution, at_least=HEIGHT)
    after = assemble_in(puzzle, solution, layout)
    found = verdicts(solution, truth, puzzle) if truth is not None else {}
    place = "slot" if truth is None or by_cells(solution, truth) else "place"
    after = _to_height(mark(after, puzzle, solution, layout, found))
    before = _to_height(contact_sheet(puzzle, captions=False).convert("RGBA"))
    margin, size = HEIGHT // 20, HEIGHT // 28
    between = 3 * margin
    top, right = margin + 2 * size, margin + before.width + between
    width = right + after.width + margin
    strip = legend_strip(width, found, size=size, place=place) if found else None
    page = Image.new("RGB", (width, top + HEIGHT + margin + (strip.height if strip else 0)), PAPER)
    page.paste(before, (margin, top), before)
    page.paste(after, (right, top), after)
    if strip:
        page.paste(strip, (0, page.height - strip.height))
    write(page, titles[0], (margin + before.width / 2, margin + size / 2), size, INK, "mm")
    write(page, titles[1], (right + after.width / 2, margin + size / 2), size, INK, "mm")
    _arrow(page, margin + before.width + between // 2, top + HEIGHT // 2, margin)
    return page


def _arrow(page: Image.Image, x: int, y: int, reach: int) -> None:
    """An arrow to the right around (x, y), `reach` to both sides; drawn, because the typeface has none."""
    head = reach // 2
    pen = ImageDraw.Draw(page)
    pen.line([(x - reach, y), (x + reach - head // 2, y)], fill=FAINT, width=max(2, reach // 8))
    pen.polygon([(x + reach, y), (x + reach - head, y - head * 2 // 3), (x + reach - head, y + head * 2 // 3)], FAINT)


def _to_height(picture: Image.Image) -> Image.Image:
    width = max(1, round(picture.width * HEIGHT / picture.height))
    way = Image.Resampling.LANCZOS if picture.height > HEIGHT else Image.Resampling.BICUBIC
    return picture.resize((width, HEIGHT), way)
