"""The assembly with a layer for each fragment, for programs that draw: SVG and OpenRaster.

SVG keeps the stored pixels and says how they are turned and where they stand; OpenRaster keeps them as they stand. In
both the layers are named after the fragments and lie in the puzzle's order, the last one on top.
"""

from __future__ import annotations

import base64
import io
import zipfile
from typing import Final
from xml.sax.saxutils import quoteattr

import numpy as np
from PIL import Image

from jigsync.render.assemble import assemble_in, unpremultiply
from jigsync.render.drawn import drawn_fragments
from jigsync.render.layout import layout_of
from jigsync.values.placement import Assembly
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

SVG_HEAD: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape"'
    ' width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n<title>{title}</title>\n'
)
THUMBNAIL: Final = 256
"""Longer side of OpenRaster's thumbnail, px."""
ORA_VERSION: Final = "0.0.5"


def svg_bytes(puzzle: Puzzle, solution: Assembly) -> bytes:
    """An SVG picture with a group for each placed fragment; Inkscape shows them as layers."""
    layout = layout_of(puzzle, solution)
    height, width = layout.full_size
    parts = [SVG_HEAD.format(width=width, height=height, title="JigSync")]
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        if (pose := layout.poses.get(name)) is not None:
            parts.append(_group(name, pixels, pose))
    return "".join([*parts, "</svg>\n"]).encode()


def _group(name: str, pixels: Pixels, pose: Pose) -> str:
    """A fragment turned about its centre; SVG turns clockwise."""
    height, width = pixels.shape[:2]
    data = base64.b64encode(_png(Image.fromarray(_straight(pixels)))).decode()
    (x, y), label = pose.xy, quoteattr(name)
    return (
        f'<g id="fragment-{name}" inkscape:groupmode="layer" inkscape:label={label}'
        f' transform="translate({x:.4f} {y:.4f}) rotate({-pose.degrees:.6f})">'
        f'<image x="{-width / 2:g}" y="{-height / 2:g}" width="{width}" height="{height}"'
        f' href="data:image/png;base64,{data}"/></g>\n'
    )


def ora_bytes(puzzle: Puzzle, solution: Assembly) -> bytes:
    """An OpenRaster file, which GIMP, Krita and others open, with a layer for each placed fragment."""
    layout = layout_of(puzzle, solution)
    height, width = layout.size
    merged = assemble_in(puzzle, solution, layout)
    buffer, layers = io.BytesIO(), list[str]()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:  # PNG is packed already

        def put(name: str, data: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name), data)  # without a date: the same assembly gives the same bytes

        put("mimetype", b"image/openraster")
        for drawn in drawn_fragments(puzzle, solution, layout):
            source = f"data/{drawn.name}.png"
            put(source, _png(Image.fromarray(_straight(drawn.pixels))))
            layers.append(f'<layer name={quoteattr(drawn.name)} src="{source}" x="{drawn.left}" y="{drawn.top}"/>')
        stack = "\n".join(reversed(layers))  # the first one is on top
        put(
            "stack.xml",
            f'<?xml version="1.0" encoding="UTF-8"?>\n<image version="{ORA_VERSION}" w="{width}" h="{height}">\n'
            f"<stack>\n{stack}\n</stack>\n</image>\n".encode(),
        )
        put("mergedimage.png", _png(merged))
        small = merged.copy()
        small.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX)
        put("Thumbnails/thumbnail.png", _png(small))
    return buffer.getvalue()


def _straight(pixels: Pixels) -> Pixels:
    straight = np.array(pixels)
    unpremultiply(straight)
    return straight


def _png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
