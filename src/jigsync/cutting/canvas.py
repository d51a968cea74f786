"""Stage 1, canvas: Lanczos resize so that the picture covers the grid, then a centre crop.

Never a native-resolution window: on a large photograph that gives blank fragments (the paper's crop defect).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.cutting.options import CutOptions
from jigsync.values.errors import ImageError

MAX_ASPECT = 50.0
"""A picture longer than this is a strip of which the crop would keep almost nothing."""


def make_canvas(rgb: NDArray[np.uint8], options: CutOptions, name: str = "the picture") -> NDArray[np.uint8]:
    """Resize and crop.

    The scale is the smallest at which the picture covers rows * P by cols * P; for a square grid the shortest side
    becomes n * P. A picture of exactly that size is returned as it is.

    Shapes: rgb (H, W, 3) uint8 -> (rows * P, cols * P, 3) uint8.
    """
    height, width = rgb.shape[:2]
    if min(height, width) < 2 or max(height, width) > MAX_ASPECT * min(height, width):
        raise ImageError(
            f"{name} is {width} x {height} pixels: at least 2 x 2 and no longer than {MAX_ASPECT:g} times its width"
            " can be cut."
        )
    want_h, want_w = options.grid.rows * options.cell, options.grid.cols * options.cell
    # Cross-multiplied so that the covering side comes out exact, free of floating-point rounding.
    if want_h * width >= want_w * height:
        new_h, new_w = want_h, max(want_w, round(width * want_h / height))
    else:
        new_h, new_w = max(want_h, round(height * want_w / width)), want_w
    if (new_h, new_w) != (height, width):
        rgb = np.asarray(Image.fromarray(rgb).resize((new_w, new_h), Image.Resampling.LANCZOS))
    top, left = (new_h - want_h) // 2, (new_w - want_w) // 2
    return np.ascontiguousarray(rgb[top : top + want_h, left : left + want_w])
