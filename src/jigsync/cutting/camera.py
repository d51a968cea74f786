"""The camera: where it stands, and what it makes of what it sees.

    seen = (ground shade (1 - alpha) + fragments) light gains
    photograph = round(lens(seen) + sigma(seen) noise)

All of it in displayed values, where a light g times as strong is a factor g^(1 / GAMMA). With V = L^(1 / GAMMA)
the displayed value of the light L, shot noise a L and read noise r give

    sigma(V) = sqrt(a V^GAMMA + r^2) / (GAMMA V^(GAMMA - 1))
"""

from __future__ import annotations

import math
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.lay_options import LayOptions
from jigsync.cutting.light import GAMMA
from jigsync.cutting.textures import Map

Floats = NDArray[np.float64]

FOCAL: Final = 0.75
"""Focal length of a telephone's main lens, in longer sides of the photograph."""
SHOT: Final = 1.2e-4
READ: Final = 8e-4
DARKEST: Final = 8
"""Displayed values below this are as noisy as this one."""
BLOTCHY: Final = 0.55
"""Blur of the noise, px: a camera interpolates its colours from every fourth pixel."""
_BAND: Final = 128  # rows developed at once


def photo_from_table(options: LayOptions, rng: np.random.Generator) -> Floats:
    """The homography of a camera that looks at the middle, a little off the vertical. Shapes: -> (3, 3)."""
    tilt, heading = math.radians(rng.uniform(0, 1) * options.tilt), rng.uniform(-np.pi, np.pi)
    along = np.array([math.cos(heading), math.sin(heading)])
    middle = np.array([[1, 0, options.width / 2], [0, 1, options.height / 2], [0, 0, 1]])
    seen = np.eye(3)
    seen[:2, :2] += (math.cos(tilt) - 1) * np.outer(along, along)
    seen[2, :2] = math.sin(tilt) / (FOCAL * max(options.width, options.height)) * along
    matrix = middle @ seen @ np.linalg.inv(middle)
    return np.eye(3) if options.tilt == 0 else np.asarray(matrix / matrix[2, 2])


def develop(
    ground: NDArray[np.uint8],
    fragments: NDArray[np.uint8],
    shade: Map | None,
    light: Map | None,
    options: LayOptions,
    rng: np.random.Generator,
    grain: np.random.Generator,
) -> NDArray[np.uint8]:
    """The photograph.

    Args:
        ground: (H, W, 3), the empty table.
        fragments: (H, W, 4), premultiplied.
        shade: (H, W), what shadows leave of the table's brightness; None: no shadows.
        light: (H, W), what the light leaves of everything's brightness; None: even light.
        options: balance, exposure, blur and noise.
        rng: draws balance and exposure.
        grain: draws the noise.

    Shapes: -> (H, W, 3) uint8.
    """
    height, width = ground.shape[:2]
    red, blue = options.balance * rng.standard_normal(2)
    stops = options.exposure * rng.uniform(-1, 1)
    channels = np.maximum([1 + red, 1.0, 1 + blue], 0) * 2 ** (stops / GAMMA)
    gains = np.tile(channels.astype(np.float32), (width, 1))  # a row: multiplying by three numbers is slow
    halo = math.ceil(4 * options.blur)
    photo = np.empty_like(ground)
    for top in range(0, height, _BAND):
        first, last = max(0, top - halo), min(height, top + _BAND + halo)
        rows = slice(first, last)
        seen = ground[rows].astype(np.float32)
        clear = (255 - fragments[rows, :, 3]).astype(np.float32) * np.float32(1 / 255)
        if shade is not None:
            clear *= shade[rows]
        seen *= _each_colour(clear)
        seen += cv2.cvtColor(fragments[rows], cv2.COLOR_RGBA2RGB)
        if light is not None:
            seen *= _each_colour(light[rows])
        seen *= gains
        np.minimum(seen, 255, out=seen)
        if options.blur > 0:
            side = 2 * halo + 1
            cv2.GaussianBlur(seen, (side, side), options.blur, dst=seen, borderType=cv2.BORDER_REFLECT)
        seen = seen[top - first : top - first + _BAND]
        if options.noise > 0:
            seen += _noise(seen, options.noise, grain)
        seen += np.float32(0.5)
        photo[top : top + _BAND] = np.clip(seen, 0, 255, out=seen)
    return photo


def _each_colour(grey: Map) -> NDArray[np.float32]:
    """(H, W) -> (H, W, 3)."""
    return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), dtype=np.float32)


def _noise(seen: NDArray[np.float32], amount: float, grain: np.random.Generator) -> NDArray[np.float32]:
    """The camera's noise on a band. Shapes: (h, W, 3) -> the same."""
    value = np.maximum(np.arange(256), DARKEST) / 255
    sigma = 255 * amount * np.sqrt(SHOT * value**GAMMA + READ**2) / (GAMMA * value ** (GAMMA - 1))
    # The blur below leaves so much of white noise's deviation.
    kernel = cv2.getGaussianKernel(5, BLOTCHY)
    sigma /= float(np.square(kernel).sum())
    drawn = grain.standard_normal(seen.shape, dtype=np.float32)
    blotchy = cv2.GaussianBlur(drawn, (5, 5), BLOTCHY)
    return np.asarray(blotchy * cv2.LUT(seen.astype(np.uint8), sigma.astype(np.float32)), dtype=np.float32)
