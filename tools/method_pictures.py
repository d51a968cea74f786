"""Draws the pictures of docs/method.md from a real solve of the demo's puzzle.

python tools/method_pictures.py [FOLDER]      (default: docs/images)
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import jigsync
from jigsync import data
from jigsync.io.files import write_bytes
from jigsync.measure import registry as measurers
from jigsync.render.animate import MOVES, frames
from jigsync.render.style import FAINT, INK, PAPER, RGB, write
from jigsync.score.cells import score
from jigsync.solution import Solution
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.pipeline import synchronize
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SPACE, SIZE = 16, 17
BLUES: tuple[RGB, ...] = ((0, 90, 150), (74, 144, 190), (150, 190, 218), (205, 222, 234))
"""From near to far; they differ in lightness, so they differ in grey."""


def save(picture: Image.Image, path: Path) -> None:
    """Writes a JPEG for photographs, a PNG for drawings."""
    buffer = io.BytesIO()
    if path.suffix == ".jpg":
        picture.save(buffer, "JPEG", quality=86, optimize=True)
    else:
        picture.quantize(64).save(buffer, "PNG", optimize=True)
    write_bytes(path, buffer.getvalue())
    print(f"{path} ({picture.width} x {picture.height}, {len(buffer.getvalue()) / 1000:.0f} kB)")


def page_of(pictures: Sequence[tuple[str, Image.Image]], columns: int) -> Image.Image:
    """Pictures on one page, words below each."""
    width, height = (max(size) for size in zip(*(picture.size for _, picture in pictures), strict=True))
    line = 2 * SIZE
    rows = -(-len(pictures) // columns)
    page = Image.new("RGB", (SPACE + columns * (width + SPACE), SPACE + rows * (height + line + SPACE)), PAPER)
    for k, (words, picture) in enumerate(pictures):
        left, top = SPACE + k % columns * (width + SPACE), SPACE + k // columns * (height + line + SPACE)
        page.paste(picture, (left + (width - picture.width) // 2, top + (height - picture.height) // 2))
        write(page, words, (left + width / 2, top + height + line / 2), SIZE, INK, "mm")
    return page


def stages(puzzle: Puzzle, solution: Solution) -> Image.Image:
    """As presented, turned, in place, closed."""
    shown = [frame.picture for frame in frames(puzzle, solution, width=480)]
    turned, placed, closed = np.cumsum(list(MOVES.values()))
    words = ("1. as presented", "2. every fragment turned", "3. every fragment in its place", "4. put together")
    return page_of([(text, shown[k]) for text, k in zip(words, (0, turned, placed, closed), strict=True)], 2)


def gauges(puzzle: Puzzle, solution: Solution, residuals: Sequence[float]) -> Image.Image:
    """The four gauges of one assembly and the residual of each."""
    pictures = []
    for turns, residual in enumerate(residuals):
        assembled = solution.turned(turns).assemble(puzzle)
        page = Image.new("RGB", assembled.size, PAPER)
        page.paste(assembled, (0, 0), assembled)
        page.thumbnail((280, 280), Image.Resampling.LANCZOS)
        pictures.append((f"residual {residual:.10f}", page))
    return page_of(pictures, 4)


def relations() -> Image.Image:
    """Every cell around a fragment, coloured by how exactly a relation names it."""
    reach, cell = 9, 26
    side = (2 * reach + 1) * cell
    page = Image.new("RGB", (side + 2 * SPACE, side + 2 * SPACE + 2 * SIZE), PAPER)
    pen = ImageDraw.Draw(page)
    buckets = {}
    for row in range(-reach, reach + 1):
        for col in range(-reach, reach + 1):
            if (row, col) != (0, 0):
                buckets[row, col] = int(v.bucket_of_offset(np.array(row), np.array(col)))
    corner = {at: (SPACE + (at[1] + reach) * cell, SPACE + (at[0] + reach) * cell) for at in buckets}
    for at, bucket in buckets.items():
        (x, y), ring = corner[at], sum(bucket >= first for first in (24, 32, 40))
        pen.rectangle([x, y, x + cell, y + cell], BLUES[ring])
    for (row, col), bucket in buckets.items():
        # A line wherever the next cell is another relation.
        x, y = corner[row, col]
        east, south = (buckets.get(at, bucket) for at in ((row, col + 1), (row + 1, col)))
        if east != bucket:
            pen.line([(x + cell, y), (x + cell, y + cell)], (255, 255, 255), 2)
        if south != bucket:
            pen.line([(x, y + cell), (x + cell, y + cell)], (255, 255, 255), 2)
    middle = SPACE + reach * cell
    pen.rectangle([middle, middle, middle + cell, middle + cell], INK)
    write(page, "i", (middle + cell / 2, middle + cell / 2), SIZE, (255, 255, 255), "mm")
    text = "dark: the exact cell. lighter: one of eight directions, in three rings"
    write(page, text, (page.width / 2, page.height - SIZE), SIZE, INK, "mm")
    return page


def orbit() -> Image.Image:
    """A cell's place under the four gauges, and their mean."""
    grid, cell = Grid(5, 5), 56
    side = grid.rows * cell
    page = Image.new("RGB", (side + 2 * SPACE, side + 2 * SPACE), PAPER)
    pen = ImageDraw.Draw(page)
    for k in range(grid.rows + 1):
        at = SPACE + k * cell
        pen.line([(SPACE, at), (SPACE + side, at)], (205, 203, 197), 2)
        pen.line([(at, SPACE), (at, SPACE + side)], (205, 203, 197), 2)
    centres = []
    for turns in range(z4.ORDER):
        row, col = z4.turn_cells(np.array([0, 3]), grid.shape, turns)
        centres.append((SPACE + (int(col) + 0.5) * cell, SPACE + (int(row) + 0.5) * cell))
    middle = (SPACE + side / 2, SPACE + side / 2)
    for turns, (x, y) in enumerate(centres):
        pen.line([(x, y), middle], FAINT, 2)
        pen.ellipse([x - 15, y - 15, x + 15, y + 15], BLUES[0])
        write(page, str(turns), (x, y), SIZE, (255, 255, 255), "mm")
    x, y = middle
    pen.rectangle([x - 13, y - 13, x + 13, y + 13], (190, 80, 20))
    return page


def main(args: Sequence[str]) -> int:
    """Draws them all."""
    folder = Path(args[0]) if args else FOLDER
    puzzle, truth = jigsync.cut_with_truth(data.picture("coffee"), "4x6", "medium", seed=0)
    solution = jigsync.solve(puzzle)
    solution = solution.turned(score(solution, truth).best_turns)
    measured = measurers.get(measurers.DEFAULT).measure(puzzle)
    residuals = synchronize(measured, truth.grid, DecodeOptions(truncated=True)).residuals
    assert residuals is not None
    save(stages(puzzle, solution), folder / "method-stages.jpg")
    save(gauges(puzzle, solution, residuals.tolist()), folder / "method-gauge.jpg")
    save(relations(), folder / "method-relations.png")
    save(orbit(), folder / "method-orbit.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
