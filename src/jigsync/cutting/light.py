"""The light on the table: how it falls off, and the shadows that the fragments cast on the table.

A fragment's rim stands h(x) off the table, a plane h = h0 + g . (x - c) that leans as curled paper does. With the light
coming in along d (on the table, unit) at an elevation e, the point of the rim above x shades

    x + h(x) d / tan(e)

so the cast shadow is an affine image of the silhouette. Its penumbra is as wide as the fragment is high there. Close to
the rim the table sees less of the room: the contact shadow. Shadows fall on the table only; fragments lie above them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.lay_options import LayOptions
from jigsync.cutting.textures import Map
from jigsync.values import angles

Floats = NDArray[np.float64]
GAMMA: Final = 2.2
"""A light of g times the strength shows g^(1 / GAMMA) times the value."""
CAST: Final = 0.75
"""Share of the light that comes from the lamp..."""
CONTACT: Final = 0.5
"""... and of the rest that a rim close by can take away."""
ELEVATION: Final = (30.0, 65.0)
"""Degrees of the lamp above the table."""
STANDS: Final = (0.25, 0.75)
"""A rim's mean height, as a share of the largest lift."""
LEANS: Final = 0.6
"""How much of its mean height a rim gains or loses from the middle to its ends, at most."""
PENUMBRA: Final = 0.8
"""Standard deviation of a penumbra at softness 1, in heights of the rim."""
REACH: Final = 0.6
"""Standard deviation of the contact shadow, in mean heights of the rim."""
COARSE: Final = 16
"""Pixels of a cell of the fall-off's map."""
_WIDE: Final = 4.0  # blurs wider than this are made at a smaller size


@dataclass(frozen=True)
class Lamp:
    """The one lamp.

    Attributes:
        away: (x, y) unit, where shadows fall.
        slope: 1 / tan(elevation).
    """

    away: tuple[float, float]
    slope: float


def choose_lamp(options: LayOptions, rng: np.random.Generator) -> Lamp:
    """The lamp of some options."""
    drawn, elevation = float(rng.uniform(-np.pi, np.pi)), math.radians(rng.uniform(*ELEVATION))
    azimuth = drawn if options.light_from is None else math.radians(options.light_from)
    x, y = -angles.act(azimuth, np.array([1.0, 0.0]))
    return Lamp((float(x), float(y)), 1 / math.tan(elevation))


def fall_off(options: LayOptions, lamp: Lamp, size: tuple[int, int], rng: np.random.Generator) -> Map | None:
    """How bright the photograph is, 1 at its brightest place, 1 - `falloff` at its darkest; None: even.

    A lamp that stands on one side, and the lens, which gives less to the corners. Shapes: size (H, W) -> (H, W).
    """
    if options.falloff == 0:
        return None
    lens, height = float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.6, 1.6))
    beside, stray = float(rng.uniform(0.3, 1.3)), float(rng.normal(0, 0.25))
    diagonal = math.hypot(*size) / 2
    y, x = (
        (np.arange(math.ceil(side / COARSE) + 1, dtype=np.float32) * COARSE - side / 2) / np.float32(diagonal)
        for side in size
    )
    at = -np.array(lamp.away) * beside + stray * np.array([lamp.away[1], lamp.away[0]])
    from_lamp = np.square(x[None, :] - np.float32(at[0])) + np.square(y[:, None] - np.float32(at[1]))
    even = 1 / (1 + from_lamp / np.float32(height**2))
    corners = 1 / np.square(1 + np.float32(0.6) * (np.square(x)[None, :] + np.square(y)[:, None]))
    light = (1 - lens) * (even - even.min()) / np.ptp(even) + lens * (corners - corners.min()) / np.ptp(corners)
    light = (light - light.min()) / np.ptp(light)
    dark = (1 - np.float32(options.falloff) * (1 - light)).astype(np.float32)
    whole = cv2.resize(dark, (dark.shape[1] * COARSE, dark.shape[0] * COARSE), interpolation=cv2.INTER_LINEAR)
    return np.asarray(whole[: size[0], : size[1]], dtype=np.float32)


def cast_shadow(
    shade: Map,
    alpha: NDArray[np.uint8],
    photo_from_alpha: Floats,
    corners: Floats,
    options: LayOptions,
    lamp: Lamp,
    rng: np.random.Generator,
) -> None:
    """Darkens the table around one fragment.

    Args:
        shade: of the whole photograph, 1 where there is no shadow; changed in place.
        alpha: of the fragment.
        photo_from_alpha: (3, 3), for OpenCV (pixel centres are whole numbers).
        corners: (4, 2) of the fragment's box in the photograph.
        options: how dark, how high and how soft.
        lamp: where the light comes from.
        rng: of this fragment; draws how it curls.
    """
    lift = options.lift / options.mm_per_pixel
    stands = lift * float(rng.uniform(*STANDS))
    heading, leans = float(rng.uniform(-np.pi, np.pi)), float(rng.uniform(0, LEANS))
    middle = corners.mean(axis=0)
    reach = float(np.hypot(*(corners - middle).T).max())
    lean = stands * leans / reach * np.array([math.cos(heading), math.sin(heading)])
    away = lamp.slope * np.array(lamp.away)
    shadow_from_photo = np.eye(3)
    shadow_from_photo[:2, :2] += np.outer(away, lean)
    shadow_from_photo[:2, 2] = away * (stands - lean @ middle)
    far, near = (stands * (1 + sign * leans) for sign in (1, -1))
    room = 2 + far * (lamp.slope + 2.5 * options.softness + 1)
    low = np.clip(np.floor(corners.min(axis=0) - room), 0, None).astype(np.int64)
    high = np.ceil(corners.max(axis=0) + room).astype(np.int64)
    there = shade[low[1] : high[1], low[0] : high[0]]
    if not there.size:
        return
    to_box = np.array([[1, 0, -low[0]], [0, 1, -low[1]], [0, 0, 1]], dtype=np.float64)
    height, width = there.shape
    lifted = _seen(alpha, to_box @ shadow_from_photo @ photo_from_alpha, (width, height))
    sharp, wide = (_soft(lifted, PENUMBRA * options.softness * stands_here) for stands_here in (near, far))
    x = np.arange(width, dtype=np.float32) + np.float32(low[0] - middle[0])
    y = np.arange(height, dtype=np.float32) + np.float32(low[1] - middle[1])
    along = (x * np.float32(lean[0]))[None, :] + (y * np.float32(lean[1]))[:, None]
    along *= np.float32(0.5 / max(stands * leans, 1e-6))
    high_there = np.clip(along + np.float32(0.5), 0, 1)
    cast = sharp + (wide - sharp) * high_there
    contact = _soft(_seen(alpha, to_box @ photo_from_alpha, (width, height)), REACH * stands)
    light = (1 - np.float32(CAST / 255) * cast) * (1 - np.float32(CONTACT / 255) * contact)
    darkest = (1 - CAST) * (1 - CONTACT)
    # Scaled so that a shadow of 1 is black where both are complete.
    light = 1 - (1 - light) * np.float32(options.shadow / (1 - darkest))
    np.minimum(there, np.power(np.clip(light, 0, 1), np.float32(1 / GAMMA)), out=there)


def _seen(alpha: NDArray[np.uint8], box_from_alpha: Floats, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Alpha under a homography. Args: size (width, height)."""
    return np.asarray(cv2.warpPerspective(alpha, box_from_alpha, size), dtype=np.uint8)


def _soft(alpha: NDArray[np.uint8], sigma: float) -> Map:
    """Blurred, 0 .. 255; transparent beyond the box."""
    if sigma < 0.3:
        return alpha.astype(np.float32)
    factor = int(sigma // (_WIDE / 2)) if sigma > _WIDE else 1
    if factor == 1:
        blurred = cv2.GaussianBlur(alpha.astype(np.float32), (0, 0), sigma, borderType=cv2.BORDER_CONSTANT)
        return np.asarray(blurred, dtype=np.float32)
    height, width = alpha.shape
    less = max(1, width // factor), max(1, height // factor)
    small = cv2.resize(alpha, less, interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(small.astype(np.float32), (0, 0), sigma / factor, borderType=cv2.BORDER_CONSTANT)
    return np.asarray(cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)
