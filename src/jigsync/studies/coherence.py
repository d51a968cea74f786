"""How strongly a fragment's local structure is oriented: coherence of the structure tensor.

    J = G_s * (grad I grad I^T),   c(x) = sqrt((J_xx - J_yy)^2 + 4 J_xy^2) / (J_xx + J_yy) in [0, 1]

averaged over the fragment with the weight J_xx + J_yy, so that flat regions do not count. I is luminance, s is SCALE of
the cell. Gradients near the contour are left out: they are the mask's, not the picture's. The paper names the quantity
without a formula. A turn by 90 degrees changes nothing in it.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values.puzzle import Pixels

SCALE: Final = 1 / 32
OPAQUE: Final = 128
RIM: Final = 3
"""Pixels inside the contour that are left out."""
LUMINANCE: Final = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def coherence(pixels: Pixels, cell: float) -> float:
    """Of one fragment; 0 when there is no structure at all. Shapes: (H, W, 4)."""
    inside = cv2.erode((pixels[..., 3] >= OPAQUE).astype(np.uint8), np.ones((2 * RIM + 1, 2 * RIM + 1), np.uint8)) > 0
    grey = pixels[..., :3].astype(np.float32) @ LUMINANCE
    dy, dx = np.gradient(grey)
    tensor = [_smooth(product * inside, SCALE * cell) for product in (dx * dx, dy * dy, dx * dy)]
    xx, yy, xy = (component[inside] for component in tensor)
    energy = xx + yy
    if energy.sum() <= 0:
        return 0.0
    return float(np.sqrt((xx - yy) ** 2 + 4 * xy**2).sum() / energy.sum())


def _smooth(values: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(values.astype(np.float32), (0, 0), max(sigma, 0.5)))
