"""The outlines of fragments: the curve alpha = 1/2, at equal arc length, the same however a fragment lies.

    unit  = median over fragments of sqrt(area) / REFERENCE      what is one pixel at fragments of 110 px
    step  = STEP unit                                            arc length between two samples, one for all fragments

The picture is blurred by BLUR unit first, so that neither the pixel grid nor the resolution shows; the curve is traced
through the blurred alpha by marching squares, exactly as its quarter turns would be, smoothed by SMOOTH step along
itself, and sampled from a start that its own shape says. Holes are left out, and so is all but the largest part. An
opaque picture has its own rectangle as its outline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure.parts import side_by_side, spans
from jigsync.values.errors import ImageError, InputError
from jigsync.values.outlines import Floats, Outlines
from jigsync.values.puzzle import Pixels, Puzzle

REFERENCE: Final = 110.0
"""sqrt(area) of the median fragment that has one unit to a pixel."""
STEP: Final = 3.0
BLUR: Final = 0.75
SMOOTH: Final = 0.4
FINE: Final = 4
"""Points per sample while a curve is smoothed."""
LEAST: Final = 16
"""Samples of a fragment, at least."""
MOST_PER_UNIT: Final = 1.6
"""Pixels per unit above which a picture is shrunk before it is blurred."""
HARMONICS: Final = 8
"""Waves around an outline, at most, of the one that says where it starts."""
LEVEL: Final = 127.5
AT_ONCE: Final = 25


@dataclass(frozen=True, eq=False)
class Scan:
    """A fragment as the measurer sees it: blurred, on a margin of nothing.

    Attributes:
        pixels: (H, W, 4) float32 premultiplied, 0 .. 255.
        per_pixel: pixels of the fragment per pixel of the scan.
        centre: (x, y) of the fragment's centre, px of the scan.
    """

    pixels: NDArray[np.float32]
    per_pixel: int
    centre: tuple[float, float]

    def at(self, xy: Floats) -> NDArray[np.float32]:
        """Bilinear values at places in the fragment's frame. Shapes: (..., 2) -> (..., 4)."""
        height, width = self.pixels.shape[:2]
        x = np.clip(xy[..., 0] / self.per_pixel + (self.centre[0] - 0.5), 0, width - 1.001)
        y = np.clip(xy[..., 1] / self.per_pixel + (self.centre[1] - 0.5), 0, height - 1.001)
        col, row = x.astype(np.int64), y.astype(np.int64)
        u, v = (x - col).astype(np.float32)[..., None], (y - row).astype(np.float32)[..., None]
        flat, first = self.pixels.reshape(-1, 4), row * width + col
        top = flat[first] * (1 - u) + flat[first + 1] * u
        bottom = flat[first + width] * (1 - u) + flat[first + width + 1] * u
        return np.asarray(top * (1 - v) + bottom * v)


def unit_of(puzzle: Puzzle) -> float:
    """Pixels per unit: the median fragment's sqrt(area) over REFERENCE; InputError where there is nothing to see."""
    if not len(puzzle):
        raise InputError(f"The puzzle '{puzzle.name}' must hold at least one fragment. It holds none.")
    areas = [np.count_nonzero(pixels[..., 3] > LEVEL) for pixels in puzzle.fragments.pixels]
    if not min(areas):
        name = puzzle.ids[int(np.argmin(areas))]
        raise ImageError(f"The fragment '{name}' of '{puzzle.name}' must have opaque pixels. It has none.")
    return float(np.sqrt(np.median(areas))) / REFERENCE


def scan_of(pixels: Pixels, unit: float) -> Scan:
    """A fragment, shrunk where it has many pixels per unit, and blurred. Shapes: (H, W, 4) uint8."""
    shrink = max(1, int(unit / MOST_PER_UNIT))
    sigma = BLUR * unit / shrink
    margin = int(np.ceil(3 * sigma)) + 2
    height, width = pixels.shape[:2]
    rows, cols = (-(-size // shrink) for size in (height, width))
    above, left = (rows * shrink - height) // 2, (cols * shrink - width) // 2
    wide = np.zeros((rows * shrink, cols * shrink, 4), dtype=np.float32)
    wide[above : above + height, left : left + width] = pixels
    if shrink > 1:
        wide = wide.reshape(rows, shrink, cols, shrink, 4).mean(axis=(1, 3), dtype=np.float32)
    wide = cv2.copyMakeBorder(wide, margin, margin, margin, margin, cv2.BORDER_CONSTANT, value=(0, 0, 0, 0))
    blurred = cv2.GaussianBlur(wide, (2 * margin - 1, 2 * margin - 1), sigma, borderType=cv2.BORDER_CONSTANT)
    centre = (left + width / 2) / shrink + margin, (above + height / 2) / shrink + margin
    return Scan(blurred.astype(np.float32, copy=False), shrink, centre)


def trace(alpha: NDArray[np.float32]) -> Floats:
    """The longest-reaching closed curve alpha = LEVEL: that around the largest area, clockwise as displayed.

    Marching squares on pixel centres; at a saddle the mean of the four decides. Alpha must be 0 all around the rim.
    Shapes: (H, W) -> (M, 2) as (x, y) in pixels, pixel (r, c) covering [c, c + 1] x [r, r + 1]; (0, 2) for none.
    """
    height, width = alpha.shape
    inside = alpha > LEVEL
    if not inside.any():
        return np.zeros((0, 2))
    # An edge between two pixels is crossed where one is inside; edges are numbered row * width + col, those between a
    # pixel and its right neighbour first, then those between a pixel and the one below.
    beside, below = np.zeros((height, width), dtype=bool), np.zeros((height, width), dtype=bool)
    beside[:, :-1] = inside[:, :-1] != inside[:, 1:]
    below[:-1] = inside[:-1] != inside[1:]
    crossed = np.concatenate([beside.ravel(), below.ravel()])
    edges = np.flatnonzero(crossed)
    half = height * width
    vertical = edges >= half
    here = np.where(vertical, edges - half, edges)
    there = np.where(vertical, here + width, here + 1)
    flat = alpha.ravel().astype(np.float64)
    share = (LEVEL - flat[here]) / (flat[there] - flat[here])
    row, col = np.divmod(here, width)
    xy = np.stack([col + 0.5, row + 0.5], axis=1)
    xy[np.arange(len(edges)), vertical.astype(np.int64)] += share
    # The interior is on the right hand: the curve goes up where the right pixel is inside, right where the lower is.
    forward = inside.ravel()[there]
    cell = np.where(vertical, here - ~forward, here - forward * width)
    sides = np.stack([cell, cell + half + 1, cell + width, cell + half])  # top, right, bottom, left of the cell
    heading = np.where(vertical, np.where(forward, 1, 3), np.where(forward, 0, 2))  # up, right, down, left
    every = np.arange(len(edges))
    ahead, right, left = (sides[(heading + turn) % 4, every] for turn in (0, 1, 3))
    middle = flat[cell] + flat[cell + 1] + flat[cell + width] + flat[cell + width + 1] > 4 * LEVEL
    saddle = crossed[left] & crossed[right]
    out = np.where(saddle, np.where(middle, left, right), np.where(crossed[ahead], ahead, np.where(crossed[left], left, right)))
    at = np.zeros(2 * half, dtype=np.int64)
    at[edges] = every
    return _largest(xy, at[out].tolist())


def _largest(xy: Floats, after: list[int]) -> Floats:
    """The cycle of a permutation that runs clockwise around the largest area. Shapes: (M, 2) -> (L, 2)."""
    seen = [False] * len(after)
    best, most = np.zeros((0, 2)), 0.0
    for first in range(len(after)):
        if seen[first]:
            continue
        cycle, k = [], first
        while not seen[k]:
            seen[k] = True
            cycle.append(k)
            k = after[k]
        points = xy[cycle]
        x, y = points.T
        area = float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2
        if area > most:
            best, most = points, area
    return best


def evenly(points: Floats, count: int, start: float = 0.0) -> Floats:
    """A closed curve at `count` places of equal arc length, from a share of its length on. Shapes: (M, 2) -> (L, 2)."""
    closed = np.concatenate([points, points[:1]])
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    at = (np.arange(count) / count + start) % 1.0 * length[-1]
    return np.stack([np.interp(at, length, closed[:, 0]), np.interp(at, length, closed[:, 1])], axis=1)


def smoothed(points: Floats, sigma: float) -> Floats:
    """A closed curve of evenly spaced points, blurred along itself by `sigma` points. Shapes: (M, 2) -> (M, 2)."""
    wave = np.fft.rfftfreq(len(points))
    keep = np.exp(-2 * (np.pi * sigma * wave) ** 2)
    return np.asarray(np.fft.irfft(np.fft.rfft(points, axis=0) * keep[:, None], len(points), axis=0))


def own_start(points: Floats) -> float:
    """Where a curve starts, as a share of its length, whatever point it was listed from.

    That is the crest of the strongest wave, of 1 to HARMONICS around the curve, of the distance from the centroid;
    of its crests the one that is furthest away. Shapes: (M, 2).
    """
    away = np.hypot(*(points - points.mean(axis=0)).T)
    waves = np.fft.rfft(away)[1 : HARMONICS + 1]
    k = int(np.argmax(np.abs(waves)))
    crests = (-np.angle(waves[k]) / (2 * np.pi) + np.arange(k + 1)) / (k + 1) % 1.0
    place = np.interp(crests * len(away), np.arange(len(away) + 1), np.append(away, away[0]))
    return float(crests[int(np.argmax(place))])


def outline_of(scan: Scan, step: float) -> tuple[Floats, Floats]:
    """The samples of one fragment and its normals. Shapes: -> (L, 2), (L, 2), in the fragment's frame."""
    curve = (trace(scan.pixels[..., 3]) - np.array(scan.centre)) * scan.per_pixel
    if len(curve) < 3:  # so thin that its blurred alpha is nowhere one half: a small circle
        angle = 2 * np.pi * np.arange(LEAST) / LEAST
        curve = step / 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    around = float(np.hypot(*(np.roll(curve, -1, axis=0) - curve).T).sum())
    count = max(LEAST, round(around / step))
    fine = smoothed(evenly(curve, FINE * count), FINE * SMOOTH)
    xy = evenly(fine, count, own_start(fine))
    along = np.roll(xy, -1, axis=0) - np.roll(xy, 1, axis=0)
    along /= np.maximum(np.hypot(*along.T), 1e-9)[:, None]
    return xy, np.stack([along[:, 1], -along[:, 0]], axis=1)


def read_outlines(puzzle: Puzzle) -> tuple[Outlines, list[Scan]]:
    """The outlines of all fragments, and their scans."""
    unit = unit_of(puzzle)
    step = STEP * unit

    def read(part: slice) -> list[tuple[Scan, Floats, Floats]]:
        scans = [scan_of(pixels, unit) for pixels in puzzle.fragments.pixels[part]]
        return [(scan, *outline_of(scan, step)) for scan in scans]

    read_parts = side_by_side([partial(read, part) for part in spans(len(puzzle), AT_ONCE)])
    every = [one for part in read_parts for one in part]
    start = np.concatenate([[0], np.cumsum([len(xy) for _, xy, _ in every])]).astype(np.int64)
    xy, normal = (np.concatenate(column) for column in list(zip(*every, strict=True))[1:])
    return Outlines(start, xy, normal, step), [scan for scan, _, _ in every]
