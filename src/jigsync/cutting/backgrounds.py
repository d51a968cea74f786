"""Tables to lay fragments on: plain, paper and linoleum here; wood and cloth, which have a grain, in `grained`.

Every table is a pure function of its size, its scale, its colour and a generator. Lengths are real millimetres.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.grained import cloth, wood
from jigsync.cutting.lay_options import LayOptions
from jigsync.cutting.palettes import ANY, PALETTES
from jigsync.cutting.textures import Map, above, fractal, paint, ramp, relief, smooth

GREY: Final = (1.0, 1.0, 1.0)
"""The tint of what only gets lighter or darker."""
COLOUR_SPREAD: Final = 0.05
"""How far a table's colour is from the palette's, as a share."""
LEAN: Final = 12.0
"""Tables with a grain lie along the frame within so many degrees."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """What a table looks like, before anything lies on it.

    Attributes:
        kind: a key of PALETTES.
        colour: sRGB, 0 .. 255.
        texture: strength, 0 .. 1.
        px_per_mm: scale.
    """

    kind: str
    colour: tuple[float, float, float]
    texture: float
    px_per_mm: float


def choose_table(options: LayOptions, rng: np.random.Generator) -> Table:
    """The table of some options, its colour drawn from its palette and shifted a little."""
    tones = PALETTES[options.background]
    colours = [colour for tone, some in tones.items() if options.tone in (ANY, tone) for colour in some]
    base = np.array(colours[int(rng.integers(len(colours)))], dtype=np.float64)
    base *= 1 + COLOUR_SPREAD * np.clip(rng.standard_normal() + 0.25 * rng.standard_normal(3), -2, 2)
    red, green, blue = (float(value) for value in np.clip(np.rint(base), 0, 255))
    return Table(options.background, (red, green, blue), options.texture, 1 / options.mm_per_pixel)


def draw_table(
    table: Table, photo_from_table: Floats, size: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The empty table as the camera sees it.

    Shapes: photo_from_table (3, 3), size (H, W) -> (H, W, 3) uint8.
    """
    if table.texture == 0:
        return np.broadcast_to(np.array(table.colour, dtype=np.uint8), (*size, 3)).copy()
    lean = 0.0
    if table.kind in GRAINED:
        lean = float(rng.uniform(-LEAN, LEAN)) + 90 * int(rng.integers(2))
    height, width = size
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float64)
    turned = np.vstack([cv2.getRotationMatrix2D((width / 2, height / 2), lean, 1.0), [0, 0, 1]])
    seen = cv2.perspectiveTransform(corners[None], np.linalg.inv(photo_from_table @ turned))[0]
    low, high = np.floor(seen.min(axis=0)) - 2, np.ceil(seen.max(axis=0)) + 2
    across, down = (int(side) for side in high - low)
    made = MAKERS[table.kind](table, (down, across), rng)
    photo_from_made = photo_from_table @ turned @ np.array([[1, 0, low[0]], [0, 1, low[1]], [0, 0, 1]])
    if np.array_equal(photo_from_table, np.eye(3)) and lean == 0:
        return np.ascontiguousarray(made[2 : 2 + height, 2 : 2 + width])
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    move = np.linalg.inv(half) @ photo_from_made @ half
    seen_table = cv2.warpPerspective(made, move, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(seen_table, dtype=np.uint8)


def _plain(table: Table, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.uint8]:
    """One colour that drifts, as paint and plastic do."""
    mm, amount = table.px_per_mm, table.texture
    drift = ramp(shape, rng) * np.float32(rng.uniform(0.02, 0.10) * amount)
    mottle = smooth(shape, (60 * mm, 60 * mm), rng) * np.float32(0.008 * amount)
    grain = smooth(shape, (0.3 * mm, 0.3 * mm), rng) * np.float32(rng.uniform(0.002, 0.010) * amount)
    warm = smooth(shape, (150 * mm, 150 * mm), rng) * np.float32(0.01 * amount)
    return paint(table.colour, [(drift + mottle + grain, GREY), (warm, (1.0, 0.0, -1.0))], shape)


def _paper(table: Table, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A rough sheet lit from the side, with fibres in it."""
    mm, amount = table.px_per_mm, table.texture
    cell = float(rng.uniform(0.6, 1.8)) * mm
    rough = relief(fractal(shape, (cell, cell), 3, rng, 0.6), float(rng.uniform(-np.pi, np.pi)))
    rough *= np.float32(rng.uniform(0.008, 0.022) * amount / max(float(rough[::7, ::7].std()), 1e-6))
    cloud = fractal(shape, (12 * mm, 12 * mm), 4, rng) * np.float32(0.010 * amount)
    drift = ramp(shape, rng) * np.float32(rng.uniform(0.0, 0.05) * amount)
    fibres = _fibres(shape, mm, int(rng.integers(0, 60)), rng) * np.float32(0.10 * amount)
    return paint(table.colour, [(rough + cloud + drift, GREY), (fibres, (1.0, 1.05, 1.1))], shape)


def _fibres(shape: tuple[int, int], mm: float, per_square_dm: int, rng: np.random.Generator) -> Map:
    """Short bent hairs, lighter and darker than the paper, in [-1, 1]."""
    drawn = np.full(shape, 128, dtype=np.uint8)
    count = round(per_square_dm * shape[0] * shape[1] / (100 * mm) ** 2)
    for _ in range(count):
        start = rng.uniform((0, 0), (shape[1], shape[0]))
        bend = np.cumsum(rng.normal(rng.uniform(-np.pi, np.pi), 0.5, 8))
        heading = rng.uniform(-np.pi, np.pi) + 0.15 * (bend - bend[0])
        step = rng.uniform(0.15, 0.6) * mm
        line = start + np.cumsum(step * np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)
        shade = int(128 + rng.choice((-1, 1)) * rng.integers(30, 128))
        cv2.polylines(drawn, [np.rint(line * 16).astype(np.int32)], False, shade, 1, cv2.LINE_AA, shift=4)
    return (drawn.astype(np.float32) - np.float32(128)) * np.float32(1 / 128)


def _linoleum(table: Table, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Flecks of two colours and a marbling that runs one way."""
    mm, amount = table.px_per_mm, table.texture
    long = float(rng.uniform(1.5, 5.0))
    size = float(rng.uniform(0.8, 2.0)) * mm
    marble = fractal(shape, (10 * mm, 10 * long * mm), 4, rng, 0.6) * np.float32(rng.uniform(0.015, 0.035) * amount)
    layers: list[tuple[Map, tuple[float, float, float]]] = [(marble, GREY)]
    for sign in (-1, 1):
        flecks = above(fractal(shape, (size, size * long / 2), 2, rng), float(rng.uniform(1.3, 1.9)), 0.35)
        red, green, blue = sign * rng.uniform(0.06, 0.22) * amount * (1 + 0.25 * rng.standard_normal(3))
        layers.append((flecks, (float(red), float(green), float(blue))))
    speckle = smooth(shape, (0.25 * mm, 0.25 * mm), rng) * np.float32(0.012 * amount)
    return paint(table.colour, [*layers, (speckle, GREY)], shape)


def _wood(table: Table, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.uint8]:
    return paint(table.colour, wood(shape, table.px_per_mm, table.texture, rng), shape)


def _cloth(table: Table, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.uint8]:
    return paint(table.colour, cloth(shape, table.px_per_mm, table.texture, rng), shape)


GRAINED: Final = ("wood", "cloth")
MAKERS: Final[dict[str, Callable[[Table, tuple[int, int], np.random.Generator], NDArray[np.uint8]]]] = {
    "plain": _plain,
    "paper": _paper,
    "linoleum": _linoleum,
    "wood": _wood,
    "cloth": _cloth,
}
"""kind -> what draws (table, (H, W), generator) as (H, W, 3) uint8."""
