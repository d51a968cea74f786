"""Tables with a grain: boards of wood and woven cloth. The grain runs along x.

A board is a plane through a tree's rings: with the pith at (v0, z0) beside it and tapering along the trunk, a point
(u, v) of the board lies in ring

    r(u, v) / spacing,   r = sqrt((v - v0)^2 + (z0 + taper u)^2), both bent by smooth noise

which gives straight lines far from the pith and arches near it. A ring darkens slowly and ends abruptly.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.textures import Map, above, fractal, smooth

Layers = list[tuple[Map, tuple[float, float, float]]]

LATE: Final = (-0.75, -1.0, -1.2)
"""Tint of late wood against early wood: darker and redder."""


def wood(shape: tuple[int, int], mm: float, amount: float, rng: np.random.Generator) -> Layers:
    """Boards side by side, or one wide one. Args: shape (H, W); mm: pixels in one; amount: strength, 0 .. 1."""
    rings, tone = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    planks = bool(rng.random() < 0.65)
    broad = float(rng.uniform(60, 150)) if planks else 900.0
    contrast, spacing = float(rng.uniform(0.10, 0.30)), float(rng.uniform(1.6, 5.0))
    top = -float(rng.uniform(0, broad)) * mm
    while top < shape[0]:
        rows = slice(max(0, round(top)), min(shape[0], round(top + broad * mm)))
        left = -float(rng.uniform(0, 500)) * mm
        long = float(rng.uniform(350, 900)) * mm if planks and rng.random() < 0.5 else 1e9
        while left < shape[1]:
            cols = slice(max(0, round(left)), round(min(shape[1], left + long)))
            part = rings[rows, cols]
            if part.size:
                part[:] = _board(part.shape, mm, spacing, rng)
                tone[rows, cols] = np.float32(0.06 * rng.standard_normal())
                _seam(tone[rows, cols], mm, float(rng.uniform(0.15, 0.5)))
            left += long
        top += broad * mm
    fibre = smooth(shape, (0.25 * mm, 12 * mm), rng)
    fibre += smooth(shape, (0.8 * mm, 60 * mm), rng)
    pores = above(smooth(shape, (0.22 * mm, float(rng.uniform(1.5, 5)) * mm), rng), 1.7, 0.5)
    fine = fibre * np.float32(0.022 * amount) - pores * np.float32(float(rng.uniform(0.05, 0.22)) * amount)
    fine += tone * np.float32(amount)
    shine = fractal(shape, (40 * mm, 90 * mm), 2, rng) * np.float32(0.02 * amount)
    return [(rings * np.float32(contrast * amount), LATE), (fine + shine, (1.0, 1.0, 1.0))]


def _board(shape: tuple[int, ...], mm: float, spacing: float, rng: np.random.Generator) -> Map:
    """How late the wood is, 0 .. 1. Shapes: -> (H, W)."""
    height, width = shape[0], shape[1]
    middle = float(rng.uniform(-0.4, 1.4)) * height / mm
    deep, taper = float(rng.uniform(4, 60)), float(rng.normal(0, 0.06))
    v = (np.arange(height, dtype=np.float32) / np.float32(mm) - np.float32(middle))[:, None]
    u = (np.arange(width, dtype=np.float32) / np.float32(mm))[None, :]
    bend = fractal((height, width), (35 * mm, 260 * mm), 3, rng) * np.float32(rng.uniform(1.5, 6.0))
    wave = smooth((1, width), (1.0, 220 * mm), rng) * np.float32(6)
    radius = np.sqrt(np.square(v + wave + bend) + np.square(np.float32(deep) + np.float32(taper) * u + bend))
    radius *= np.float32(1 / spacing)
    # Rings are not all as wide: the phase runs on unevenly.
    radius += np.sin(radius * np.float32(0.7)) * np.float32(0.35) + np.sin(radius * np.float32(0.23)) * np.float32(0.8)
    radius -= np.floor(radius)
    late = np.minimum(radius * radius * np.float32(1.15), (1 - radius) * np.float32(9))
    return np.asarray(np.clip(late, 0, 1), dtype=np.float32)


def _seam(tone: Map, mm: float, gap: float) -> None:
    """Darkens the rim of a board, its upper and left side, by a line some tenths of a millimetre wide."""
    line = max(1, round(gap * mm))
    soft = max(1, round(0.6 * mm))
    for rim in (tone, tone.T):
        rim[:line] -= np.float32(0.45)
        rim[line : line + soft] -= np.float32(0.10)
        rim[-soft:] += np.float32(0.05)


def cloth(shape: tuple[int, int], mm: float, amount: float, rng: np.random.Generator) -> Layers:
    """A weave of threads, each a little lighter or darker, in soft folds; some cloths have stripes."""
    pitch = max(3.0, float(rng.uniform(0.45, 1.1)) * mm)
    twill = bool(rng.random() < 0.4)
    across = _threads(shape[1], pitch, rng)
    along = _threads(shape[0], pitch * float(rng.uniform(0.9, 1.2)), rng)
    column = _waver(shape[0], len(across.profile) - shape[1], 30 * mm, rng)
    row = _waver(shape[1], len(along.profile) - shape[0], 30 * mm, rng)
    u = np.arange(shape[1], dtype=np.int32)[None, :] + column[:, None]
    v = np.arange(shape[0], dtype=np.int32)[:, None] + row[None, :]
    over = (across.number[u] + along.number[v]) % (4 if twill else 2) < (2 if twill else 1)
    weave = np.where(over, across.profile[u], along.profile[v])
    fuzz = smooth(shape, (0.25 * mm, 0.25 * mm), rng) * np.float32(0.03)
    uneven = fractal(shape, (25 * mm, 25 * mm), 2, rng) * np.float32(0.015)
    folds = _folds(shape, mm, rng) * np.float32(rng.uniform(0.03, 0.10))
    shade = (weave * np.float32(rng.uniform(0.5, 1.0)) + fuzz + uneven + folds) * np.float32(amount)
    layers: Layers = [(shade, (1.0, 1.0, 1.0))]
    if rng.random() < 0.3:
        every, wide = float(rng.uniform(15, 60)) * mm, float(rng.uniform(0.1, 0.5))
        stripe = ((np.arange(len(across.profile)) / every) % 1 < wide).astype(np.float32)[u]
        if rng.random() < 0.5:
            stripe = stripe + ((np.arange(len(along.profile)) / every) % 1 < wide).astype(np.float32)[v]
        red, green, blue = (float(value) for value in amount * rng.uniform(-0.3, 0.1, 3))
        layers.append((stripe * np.float32(amount), (red, green, blue)))
    return layers


class _Threads:
    """Parallel threads. Shapes: profile (L,) float32, brightness across them; number (L,) int32, which thread."""

    def __init__(self, profile: Map, number: NDArray[np.int32]) -> None:
        self.profile, self.number = profile, number


def _threads(length: int, pitch: float, rng: np.random.Generator) -> _Threads:
    """Threads over a length and a margin: round, the spaces between them dark, each with a brightness of its own."""
    spare = round(4 * pitch) + 16
    at = np.arange(length + spare) / pitch
    number = np.floor(at).astype(np.int32)
    own = 0.045 * rng.standard_normal(int(number[-1]) + 1)
    round_ = 0.14 * np.sqrt(np.clip(1 - np.square(2 * (at - number) - 1), 0, 1)) - 0.11
    return _Threads((round_ + own[number]).astype(np.float32), number)


def _waver(length: int, spare: int, cell: float, rng: np.random.Generator) -> NDArray[np.int32]:
    """How far threads stray along their course, 0 .. spare - 1 px. Shapes: -> (length,)."""
    course = smooth((1, length), (1.0, cell), rng)[0] * np.float32(spare / 6) + np.float32(spare / 2)
    return np.asarray(np.clip(np.rint(course), 0, spare - 1), dtype=np.int32)


def _folds(shape: tuple[int, int], mm: float, rng: np.random.Generator) -> Map:
    """Long soft creases, light on one side and dark on the other, in about [-1, 1]."""
    small = (max(2, shape[0] // 8), max(2, shape[1] // 8))
    y, x = np.mgrid[: small[0], : small[1]].astype(np.float32) * np.float32(8 / mm)
    total = np.zeros(small, dtype=np.float32)
    bent = fractal(small, (120 * mm / 8, 120 * mm / 8), 2, rng) * np.float32(12)
    for _ in range(int(rng.integers(2, 7))):
        heading, wide = float(rng.uniform(-np.pi, np.pi)), float(rng.uniform(4, 18))
        through = rng.uniform((0, 0), (shape[1] / mm, shape[0] / mm))
        off = (x - np.float32(through[0])) * np.float32(np.cos(heading)) + (y - np.float32(through[1])) * np.float32(
            np.sin(heading)
        )
        off = (off + bent) * np.float32(1 / wide)
        fading = np.clip(np.float32(0.5) + smooth(small, (150 * mm / 8, 150 * mm / 8), rng), 0, 1)
        total += off * np.exp(-off * off) * fading * np.float32(2)
    return np.asarray(cv2.resize(total, (shape[1], shape[0]), interpolation=cv2.INTER_LINEAR), dtype=np.float32)
