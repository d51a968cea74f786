"""Smooth noise and what is painted with it: the parts that the backgrounds are made of.

A picture is base (1 + sum_k map_k tint_k): maps say where, tints how much of each colour channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

Map = NDArray[np.float32]
"""(H, W) float32."""

_NOTHING_FINER: Final = 1.25
"""Cells of fewer pixels than this are white noise."""
_FINE_ENOUGH: Final = 6
"""Pixels of a cell that cubic interpolation needs; linear interpolation does the rest, and is cheap."""
_BAND: Final = 64  # rows painted at once: they stay in the cache


def smooth(shape: tuple[int, int], cell: tuple[float, float], rng: np.random.Generator) -> Map:
    """Gaussian noise at the nodes of a lattice, cubic between them; about unit variance at the nodes.

    Args:
        shape: (H, W).
        cell: (height, width) of a lattice cell, px.
        rng: what draws.
    """
    if max(cell) < _NOTHING_FINER:
        return rng.standard_normal(shape, dtype=np.float32)
    if (factor := int(min(cell) // _FINE_ENOUGH)) > 1:
        small, steps = _coarser(shape, cell, factor)
        return _finer(smooth(small, steps, rng), factor, shape)
    counts = [math.ceil(side / max(1.0, step)) + 4 for side, step in zip(shape, cell, strict=True)]
    lattice = rng.standard_normal(counts, dtype=np.float32)
    fine = [max(count, round(count * max(1.0, step))) for count, step in zip(counts, cell, strict=True)]
    drawn = cv2.resize(lattice, (fine[1], fine[0]), interpolation=cv2.INTER_CUBIC)
    top, left = ((have - want) // 2 for have, want in zip(fine, shape, strict=True))
    return np.asarray(drawn[top : top + shape[0], left : left + shape[1]], dtype=np.float32)


def _coarser(
    shape: tuple[int, int], cell: tuple[float, float], factor: int
) -> tuple[tuple[int, int], tuple[float, float]]:
    """(shape, cell) at 1 / factor of the size."""
    return (math.ceil(shape[0] / factor) + 1, math.ceil(shape[1] / factor) + 1), (cell[0] / factor, cell[1] / factor)


def _finer(small: Map, factor: int, shape: tuple[int, int]) -> Map:
    """`factor` times as large, linear between, cut to a shape."""
    height, width = small.shape
    drawn = cv2.resize(small, (width * factor, height * factor), interpolation=cv2.INTER_LINEAR)
    return np.asarray(drawn[: shape[0], : shape[1]], dtype=np.float32)


def fractal(
    shape: tuple[int, int],
    cell: tuple[float, float],
    octaves: int,
    rng: np.random.Generator,
    persistence: float = 0.5,
) -> Map:
    """Octaves of `smooth`, each half as wide; the variances' sum is one."""
    if (factor := int(min(cell) / 2 ** (octaves - 1) // _FINE_ENOUGH)) > 1:
        small, steps = _coarser(shape, cell, factor)
        return _finer(fractal(small, steps, octaves, rng, persistence), factor, shape)
    total = np.zeros(shape, dtype=np.float32)
    power = 0.0
    for octave in range(octaves):
        weight = persistence**octave
        total += np.float32(weight) * smooth(shape, (cell[0] / 2**octave, cell[1] / 2**octave), rng)
        power += weight**2
    total *= np.float32(1 / math.sqrt(power))
    return total


def ramp(shape: tuple[int, int], rng: np.random.Generator) -> Map:
    """A plane through 0 at the middle, from -1 to 1 across the frame, in a drawn direction."""
    x, y = rng.standard_normal(2)
    total = abs(x) + abs(y)
    u = np.linspace(-1, 1, shape[1], dtype=np.float32) * np.float32(x / total)
    v = np.linspace(-1, 1, shape[0], dtype=np.float32) * np.float32(y / total)
    return np.asarray(v[:, None] + u[None, :], dtype=np.float32)


def relief(height: Map, direction: float) -> Map:
    """How bright a rough surface is under a light that comes in low from a direction, radians; mean about 0."""
    dx = cv2.Sobel(height, cv2.CV_32F, 1, 0, ksize=3)
    dy = cv2.Sobel(height, cv2.CV_32F, 0, 1, ksize=3)
    return np.asarray(dx * np.float32(math.cos(direction)) + dy * np.float32(math.sin(direction)), dtype=np.float32)


def above(noise: Map, threshold: float, width: float) -> Map:
    """1 where the noise is above a threshold, 0 below, a ramp of some width between."""
    ramped = (noise - np.float32(threshold)) * np.float32(1 / width) + np.float32(0.5)
    return np.asarray(np.clip(ramped, 0, 1), dtype=np.float32)


def paint(
    base: tuple[float, float, float], layers: Sequence[tuple[Map, tuple[float, float, float]]], shape: tuple[int, int]
) -> NDArray[np.uint8]:
    """base (1 + sum_k map_k tint_k), rounded. Shapes: maps (H, W) -> (H, W, 3) uint8."""
    out = np.empty((*shape, 3), dtype=np.uint8)
    gains = [(layer, [np.float32(b * t) for b, t in zip(base, tint, strict=True)]) for layer, tint in layers]
    for top in range(0, shape[0], _BAND):
        band = slice(top, top + _BAND)
        for channel in range(3):
            total = np.full((len(out[band]), shape[1]), base[channel] + 0.5, dtype=np.float32)
            for layer, gain in gains:
                total += layer[band] * gain[channel]
            out[band, :, channel] = np.clip(total, 0, 255, out=total)
    return out
