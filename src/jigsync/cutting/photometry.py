"""Stage 5, photometry: what time does to a fragment's colours, and what the camera does afterwards.

With e = eps_photo, I in [0, 1] and d the distance to the fragment's boundary in pixels:

    I <- a I + b                   a ~ N(1, 0.15 e / 0.20),  b ~ N(0, 0.10 e / 0.20)
    I <- I (1 - e exp(-d / 0.15 P))
    I <- (1 - q) I + q sepia(I)    q ~ U(0, e)                    ... damage: happens to the fragment, `fade`
    I <- I + N(0, 0.02 e / 0.20)
    I <- JPEG at quality U[40, 95]                                ... digitising: happens to the scan, `sensor` and JPEG

The two halves are apart because the turn comes between them (SPEC 2): JPEG's quantisation is not symmetric under a
quarter turn, so compressing before the turn would tell the orientation without any content.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.values.errors import JigsyncError

SEPIA: Final = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]], dtype=np.float32)
"""The customary sepia matrix, rows R, G, B."""
FADE_REACH: Final = 0.15


def fade(
    rgb: NDArray[np.uint8], alpha: NDArray[np.uint8], eps_photo: float, cell: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Gain, bias, boundary fade and sepia.

    Shapes: rgb (H, W, 3) uint8, alpha (H, W) uint8 -> (H, W, 3) float32 in [0, 1], not yet multiplied by alpha.
    """
    e = eps_photo
    gain = np.float32(rng.normal(1.0, 0.15 * e / 0.20))
    bias = np.float32(rng.normal(0.0, 0.10 * e / 0.20))
    strength = np.float32(rng.uniform(0.0, e))
    image = rgb.astype(np.float32) * (gain / np.float32(255)) + bias
    weight = np.exp(boundary_distance(alpha) * np.float32(-1 / (FADE_REACH * cell)))
    image *= (1 - np.float32(e) * weight)[..., None]
    # One affine map: (1 - q) I + q S I.
    mix = (1 - strength) * np.eye(3, dtype=np.float32) + strength * SEPIA
    return np.clip(cv2.transform(image, mix), 0.0, 1.0)


def boundary_distance(alpha: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Distance of every opaque pixel to the fragment's boundary, 0 outside.

    Shapes: (H, W) uint8 -> (H, W) float32, pixels.
    """
    solid = cv2.copyMakeBorder((alpha >= 128).astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    distance = cv2.distanceTransform(solid, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1]
    return np.asarray(np.maximum(distance - np.float32(0.5), 0), dtype=np.float32)


def sensor(image: NDArray[np.float32], eps_photo: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Sensor noise and quantisation.

    Shapes: image (H, W, 3) float32 in [0, 1], premultiplied -> (H, W, 3) uint8.
    """
    noisy = rng.standard_normal(image.shape, dtype=np.float32)
    noisy *= np.float32(0.02 * eps_photo / 0.20 * 255)
    noisy += image * np.float32(255)
    return np.clip(np.rint(noisy, out=noisy), 0, 255, out=noisy).astype(np.uint8)


def jpeg_quality(rng: np.random.Generator) -> int:
    """U[40, 95]."""
    return int(rng.integers(40, 96))


def jpeg_round_trip(rgb: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """Compress and decompress.

    Shapes: (H, W, 3) uint8 RGB -> the same.
    """
    ok, data = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not ok:
        raise JigsyncError(f"JPEG compression of a {rgb.shape[1]} x {rgb.shape[0]} fragment failed.")
    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert decoded is not None, "what was just encoded decodes"
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), dtype=np.uint8)


def premultiply(rgb: NDArray[np.uint8], alpha: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """I * alpha, rounded; exact where alpha is 0 or 255.

    Shapes: (H, W, 3), (H, W) -> (H, W, 3) uint8.
    """
    product = rgb.astype(np.uint16) * alpha[..., None].astype(np.uint16)
    return ((product + 127) // 255).astype(np.uint8)
