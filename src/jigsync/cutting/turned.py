"""Turning and trimming fragments: what a fragment without a frame is made by, whoever cut it.

    x_upright - c_upright = R(-angle)(x_stored - c_stored) + offset

c is the centre of a picture in continuous pixel coordinates, (W/2, H/2). `angle` says how the stored picture lies,
counter-clockwise as displayed: the pose of a fragment whose upright picture is centred at m is (-angle, m + offset).
"""

from __future__ import annotations

import math
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.photometry import jpeg_quality, jpeg_round_trip, sensor
from jigsync.values import angles, z4
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels

JPEG_UNIT: Final = 16
"""Side of a JPEG coding unit: boxes on this lattice compress exactly as the whole container would."""
SEEN: Final = 0.5 / 255
"""The least alpha that is not rounded to 0."""
PAD: Final = 2
"""Pixels around a turned picture that the kernel may reach."""

Offset = tuple[float, float]
Image = NDArray[np.float32]


def premultiplied(colour: Image, alpha: NDArray[np.uint8]) -> Image:
    """Colour times alpha, and alpha. Shapes: (H, W, 3) float32 in [0, 1], (H, W) uint8 -> (H, W, 4) float32."""
    cover = alpha * np.float32(1 / 255)
    rgba = cv2.merge([*cv2.split(colour), cover])
    return np.asarray(cv2.multiply(rgba, cv2.merge([cover, cover, cover, np.ones_like(cover)])))


def content_box(alpha: NDArray[np.number], seen: float = SEEN) -> tuple[slice, slice]:
    """The smallest box around all of a fragment; the whole picture when there is nothing in it."""
    solid = alpha > seen
    rows, cols = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    if not len(rows):
        return slice(0, alpha.shape[0]), slice(0, alpha.shape[1])
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)


def trimmed(pixels: Pixels) -> tuple[Pixels, Offset]:
    """A stored fragment without its empty margins, and where its centre is from the old one, in its own frame."""
    rows, cols = content_box(pixels[..., 3])
    height, width = pixels.shape[:2]
    offset = (cols.start + cols.stop - width) / 2, (rows.start + rows.stop - height) / 2
    return np.ascontiguousarray(pixels[rows, cols]), offset


def turn_fragment(rgba: Image, angle: float) -> tuple[Image, Offset]:
    """The fragment turned by any angle and trimmed: one resampling by cubics, 0 <= colour <= alpha <= 1.

    Args:
        rgba: upright, colour times alpha.
        angle: radians, counter-clockwise as displayed.

    Shapes: (h, w, 4) float32 in [0, 1] -> (H, W, 4), the offset (x, y) of the module's formula.
    """
    height, width = rgba.shape[:2]
    cos, sin = abs(math.cos(angle)), abs(math.sin(angle))
    # Of the same parity as the upright picture: at angle 0 pixels meet pixels.
    wide, high = (
        side + 2 * (math.ceil((length - side) / 2 - 1e-9) + PAD)
        for side, length in ((width, width * cos + height * sin), (height, width * sin + height * cos))
    )
    back = angles.matrix(-angle)
    half = np.array([(width - 1) / 2, (height - 1) / 2]) - back @ np.array([(wide - 1) / 2, (high - 1) / 2])
    turned = cv2.warpAffine(
        rgba,
        np.concatenate([back, half[:, None]], axis=1),
        (wide, high),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=(0, 0, 0, 0),
    )
    rows, cols = content_box(turned[..., 3])
    bounded = np.clip(turned[rows, cols], 0.0, 1.0)
    # Whole arrays of four channels: numpy is ten times slower where a channel is repeated by broadcasting.
    bounded = cv2.min(bounded, cv2.merge([np.ascontiguousarray(bounded[..., 3])] * 4))
    x, y = angles.act(-angle, np.array([(cols.start + cols.stop - wide) / 2, (rows.start + rows.stop - high) / 2]))
    return bounded, (float(x), float(y))


def turn_quarters(rgba: Image, turns: int) -> tuple[Image, Offset]:
    """`turn_fragment` by quarter turns, exactly: nothing is resampled."""
    height, width = rgba.shape[:2]
    rows, cols = content_box(rgba[..., 3])
    offset = (cols.start + cols.stop - width) / 2, (rows.start + rows.stop - height) / 2
    return np.ascontiguousarray(np.rot90(rgba[rows, cols], turns)), offset


def digitised(rgba: Image, e: float, camera: np.random.Generator) -> Pixels:
    """What the camera makes of a turned fragment; e = 0 is rounding only.

    Shapes: (H, W, 4) float32 in [0, 1] -> (H, W, 4) uint8.
    """
    height, width = rgba.shape[:2]
    if e <= 0:
        return np.asarray(np.rint(rgba * np.float32(255)), dtype=np.uint8)
    scan = np.zeros((*(-(-side // JPEG_UNIT) * JPEG_UNIT for side in (height, width)), 4), dtype=np.uint8)
    scan[:height, :width, 3] = np.rint(rgba[..., 3] * np.float32(255))
    digitise_box(scan, rgba[..., :3], np.zeros(2, dtype=np.int64), e, camera)
    return np.ascontiguousarray(scan[:height, :width])


def digitise_box(
    scan: NDArray[np.uint8], image: Image, corner: NDArray[np.int64], e: float, camera: np.random.Generator
) -> None:
    """Writes the digitised image into `scan`, a view of the container in the frame of the camera.

    The box is widened to the JPEG lattice; the surroundings are black in the container too.
    """
    height, width = image.shape[:2]
    top, left = corner // JPEG_UNIT * JPEG_UNIT
    bottom = min(scan.shape[0], -(-(corner[0] + height) // JPEG_UNIT) * JPEG_UNIT)
    right = min(scan.shape[1], -(-(corner[1] + width) // JPEG_UNIT) * JPEG_UNIT)
    wide = np.zeros((bottom - top, right - left, 3), dtype=np.uint8)
    y, x = corner[0] - top, corner[1] - left
    wide[y : y + height, x : x + width] = sensor(image, e, camera)
    box = scan[corner[0] : corner[0] + height, corner[1] : corner[1] + width]
    colour = jpeg_round_trip(wide, jpeg_quality(camera))[y : y + height, x : x + width]
    # Ringing outside the fragment is cut off: colour times alpha is never above alpha.
    box[..., :3] = np.minimum(colour, box[..., 3:])


def applied_pose(applied: Pose, middle: tuple[float, float], offset: Offset) -> Pose:
    """canvas_from_frag of a fragment stored at the angle of `applied`, its upright picture centred at `middle`."""
    xy = middle[0] + offset[0], middle[1] + offset[1]
    return Pose(-applied.angle, xy, None if applied.turns is None else z4.inverse(applied.turns))
