"""Pictures as the web has them: made small, compressed, with a blank border; for benchmarks of such photographs.

    border -> made smaller -> JPEG

Whoever cuts a grid from the result enlarges it again, so that squares show smoothed pixels and blocks of the
compression: that is what sets ImageNet's photographs apart from a museum's.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.cutting.streams import Stage, stream
from jigsync.values.errors import bad_value

MAX_BORDER: Final = 0.4
BLANK: Final = (255, 0)
"""Grey values of a border, either one."""


@dataclass(frozen=True)
class WebOptions:
    """What was done to a picture before anybody cut it.

    Attributes:
        longest: pixels of the longer side, at most; None leaves the size.
        quality: of the JPEG, drawn uniformly between the two; None leaves the pixels.
        border: share of the shorter side that is white or black along two opposite sides, as in a scan or a film still.
    """

    longest: int | None = None
    quality: tuple[int, int] | None = None
    border: float = 0.0

    def __post_init__(self) -> None:
        if self.longest is not None and not 32 <= self.longest <= 100_000:
            raise bad_value("longest", "a picture of the web", "from 32 to 100000 pixels", self.longest)
        if self.quality is not None and not 1 <= self.quality[0] <= self.quality[1] <= 100:
            raise bad_value(
                "quality", "a picture of the web", "two numbers from 1 to 100, the smaller one first", self.quality
            )
        if not (math.isfinite(self.border) and 0 <= self.border <= MAX_BORDER):
            raise bad_value("border", "a picture of the web", f"a number from 0 to {MAX_BORDER:g}", self.border)


def web_picture(rgb: NDArray[np.uint8], options: WebOptions, seed: int) -> NDArray[np.uint8]:
    """The picture after all that; with default options it is what was given. Shapes: (H, W, 3) -> (H', W', 3)."""
    rng = stream(seed, Stage.WEB)
    grey, across, quality = int(rng.integers(0, 2)), bool(rng.integers(0, 2)), rng.random()
    if options.border > 0:
        rgb = _bordered(rgb, options.border, BLANK[grey], across)
    picture = Image.fromarray(rgb)
    if options.longest is not None and max(picture.size) > options.longest:
        scale = options.longest / max(picture.size)
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    if options.quality is not None:
        low, high = options.quality
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=low + int(quality * (high - low + 1)))
        picture = Image.open(buffer)
    return np.array(picture.convert("RGB"))


def _bordered(rgb: NDArray[np.uint8], share: float, grey: int, across: bool) -> NDArray[np.uint8]:
    """Blank bars over the left and right ends, or the upper and lower ones; the picture keeps its size."""
    out = rgb.copy()
    wide = round(share * min(rgb.shape[:2]))
    if wide:
        for bar in (slice(None, wide), slice(-wide, None)):
            out[(slice(None), bar) if across else (bar,)] = grey
    return out
