"""What an assembly is drawn as: one picture, layers, or a sheet to print."""

from __future__ import annotations

import io
from typing import Final, Literal

import numpy as np

from jigsync.io.images import png_bytes
from jigsync.render.assemble import assemble
from jigsync.render.guide import sheet_bytes
from jigsync.render.layers import ora_bytes, svg_bytes
from jigsync.solution import Solution
from jigsync.values.puzzle import Puzzle

PictureFormat = Literal["png", "tiff", "svg", "ora", "sheet"]
KINDS: Final[dict[PictureFormat, tuple[str, str]]] = {
    "png": ("image/png", "png"),
    "tiff": ("image/tiff", "tif"),
    "svg": ("image/svg+xml", "svg"),
    "ora": ("image/openraster", "ora"),
    "sheet": ("application/pdf", "pdf"),
}
"""Format -> media type and suffix."""


def picture_bytes(puzzle: Puzzle, solution: Solution, format: PictureFormat, gaps: bool, longest: int | None) -> bytes:
    """The file of an assembly, at full resolution unless it must be no longer than so many pixels."""
    if format == "svg":
        return svg_bytes(puzzle, solution)
    if format == "ora":
        return ora_bytes(puzzle, solution)
    if format == "sheet":
        return sheet_bytes(puzzle, solution)
    drawn = assemble(puzzle, solution, gaps=gaps)
    if longest is not None:
        drawn.thumbnail((longest, longest))
    if format == "png":
        return png_bytes(np.asarray(drawn))
    buffer = io.BytesIO()
    drawn.save(buffer, "TIFF", compression="tiff_adobe_deflate")
    return buffer.getvalue()
