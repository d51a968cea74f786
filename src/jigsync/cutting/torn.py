"""Tearing: which piece every point of the picture belongs to.

    owner(x) = argmin_k |x + u(x) - site_k|

Sites come by best-candidate sampling. u is smooth noise: 0.12 of the piece's size at a wavelength of 0.6 of its size,
halved twice in both, and one pixel at six pixels. Every piece is connected: a stray island goes to the neighbour that
surrounds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects
from scipy.spatial import Delaunay, cKDTree

from jigsync.cutting.masks import Mask
from jigsync.cutting.pieces import Pieces

AMPLITUDE: Final = 0.12
WAVELENGTH: Final = 0.6
OCTAVES: Final = 3
FIBRE: Final = 1.0, 6.0
"""Amplitude and wavelength of the paper's own roughness, px."""
CANDIDATES: Final = 32
SAMPLES: Final = 15
"""Of a pixel, on a rank-1 lattice whose first point is the pixel's centre; 255 / 15 is whole, so alphas sum exactly."""
COARSE: Final = 2
"""Pixels between two points at which the noise is summed up."""
TABLE: Final = 32
"""Points of the look-up table of the nearest site along a piece's size."""
FEW: Final = 8

Floats = NDArray[np.float32]


def tear(shape: tuple[int, int], count: int, size: int, rng: np.random.Generator) -> Pieces:
    """Divides a picture of `shape` (rows, columns) into `count` torn pieces of about size^2 pixels."""
    sites = _Sites.of(draw_sites(shape, count, rng), size, shape)
    shift = displacement(shape, size, rng)
    height, width = shape
    x = shift[..., 0] + (np.arange(width, dtype=np.float32) + np.float32(0.5))
    y = shift[..., 1] + (np.arange(height, dtype=np.float32) + np.float32(0.5))[:, None]
    owner = sites.nearest(x.ravel(), y.ravel()).reshape(shape)
    rows, cols = np.nonzero(_seams(owner))
    samples = sites.nearest(*_sample_points(shift, rows, cols)).reshape(SAMPLES, -1).T
    mixed = (samples != samples[:, :1]).any(axis=1)
    join_islands(owner, count)
    rows, cols, samples = rows[mixed], cols[mixed], samples[mixed]
    return Pieces(owner, tuple(_masks(owner, rows, cols, _allowed(owner, rows, cols, samples), count)))


def draw_sites(shape: tuple[int, int], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Best-candidate sampling: of 32 points, the one farthest from all sites and, twice, from the border.

    A border counts like the mirror image of the point itself: the pieces along it get as large as the others.

    Shapes: -> (count, 2) as (x, y), pixels.
    """
    extent = np.array(shape[::-1], dtype=np.float64)
    sites = np.empty((count, 2))
    for k in range(count):
        points = rng.random((CANDIDATES, 2)) * extent
        reach = 2 * np.minimum(points, extent - points).min(axis=1)
        if k:
            apart = points[:, None] - sites[:k]
            reach = np.minimum(reach, np.sqrt((apart * apart).sum(axis=-1).min(axis=1)))
        sites[k] = points[np.argmax(reach)]
    return sites


def displacement(shape: tuple[int, int], size: int, rng: np.random.Generator) -> Floats:
    """u of every pixel's centre. Shapes: -> (H, W, 2) as (x, y), pixels."""
    coarse = tuple(-(-side // COARSE) for side in shape)
    total = np.zeros((*coarse, 2), dtype=np.float32)
    waves = [(AMPLITUDE * size * 0.5**k, WAVELENGTH * size * 0.5**k) for k in range(OCTAVES)]
    for amplitude, wavelength in [*waves, FIBRE]:
        total += np.float32(amplitude) * smooth_noise((coarse[0], coarse[1]), wavelength / COARSE, rng)
    wide = cv2.resize(total, (coarse[1] * COARSE, coarse[0] * COARSE), interpolation=cv2.INTER_LINEAR)
    return np.asarray(wide[: shape[0], : shape[1]])


def smooth_noise(shape: tuple[int, int], wavelength: float, rng: np.random.Generator) -> Floats:
    """Two channels of U(-1, 1) on a lattice of the wavelength's spacing, joined by cubics.

    Shapes: -> (H, W, 2) float32.
    """
    spacing = max(1, round(wavelength))
    rows, cols = (-(-side // spacing) + 2 for side in shape)
    lattice = rng.uniform(-1.0, 1.0, (rows, cols, 2)).astype(np.float32)
    top, left = (int(k) for k in rng.integers(0, spacing, 2))
    wide = cv2.resize(lattice, (cols * spacing, rows * spacing), interpolation=cv2.INTER_CUBIC)
    return np.asarray(wide[top : top + shape[0], left : left + shape[1]])


@dataclass(frozen=True, eq=False)
class _Sites:
    """Finds the nearest site of many points.

    A table holds the nearest site of points in even steps. Cells of sites are convex: where all four corners of a
    table's square have one site, so has everything inside. Elsewhere the site is that of a corner or a neighbour of it.
    """

    xy: Floats
    step: float
    origin: float
    table: NDArray[np.int32]
    pure: NDArray[np.bool_]
    around: NDArray[np.int32]

    @classmethod
    def of(cls, sites: NDArray[np.float64], size: int, shape: tuple[int, int]) -> _Sites:
        step = size / TABLE
        reach = 3 * AMPLITUDE * size + 3 * FIBRE[0]
        rows, cols = (int((side + 2 * reach) / step) + 2 for side in shape)
        y, x = np.meshgrid(np.arange(rows) * step - reach, np.arange(cols) * step - reach, indexing="ij")
        nearest = cKDTree(sites).query(np.stack([x, y], axis=-1))[1].astype(np.int32)
        corner = nearest[:-1, :-1]
        pure = (corner == nearest[1:, :-1]) & (corner == nearest[:-1, 1:]) & (corner == nearest[1:, 1:])
        return cls(sites.astype(np.float32), step, -reach, corner, pure, _neighbours(sites))

    def nearest(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """Shapes: x, y (M,) -> (M,) site numbers."""
        rows, cols = self.table.shape
        scale, shift = np.float32(1 / self.step), np.float32(-self.origin / self.step)
        at = np.clip((y * scale + shift).astype(np.int32), 0, rows - 1) * np.int32(cols)
        at += np.clip((x * scale + shift).astype(np.int32), 0, cols - 1)
        found = self.table.ravel()[at]
        open_ = np.flatnonzero(~self.pure.ravel()[at])
        px, py, guess = x[open_], y[open_], found[open_]
        best, best_distance = guess, np.full(len(open_), np.inf, dtype=np.float32)
        for column in self.around.T:
            site = column[guess]
            dx, dy = px - self.xy[site, 0], py - self.xy[site, 1]
            distance = dx * dx + dy * dy
            nearer = distance < best_distance
            best = np.where(nearer, site, best)
            best_distance = np.where(nearer, distance, best_distance)
        found[open_] = best
        return found


def _neighbours(sites: NDArray[np.float64]) -> NDArray[np.int32]:
    """Every site and its Delaunay neighbours, filled up with itself. Shapes: (N, 2) -> (N, K)."""
    count = len(sites)
    if count <= FEW:
        return np.broadcast_to(np.arange(count, dtype=np.int32), (count, count))
    start, flat = Delaunay(sites).vertex_neighbor_vertices
    out = np.repeat(np.arange(count, dtype=np.int32)[:, None], 1 + int(np.diff(start).max()), axis=1)
    for k in range(count):
        out[k, 1 : 1 + start[k + 1] - start[k]] = flat[start[k] : start[k + 1]]
    return out


def _seams(owner: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Pixels within one of a pixel whose right or lower neighbour has another owner, or that neighbour."""
    seam = np.zeros(owner.shape, dtype=np.uint8)
    across, down = owner[:, :-1] != owner[:, 1:], owner[:-1] != owner[1:]
    seam[:, :-1] |= across
    seam[:, 1:] |= across
    seam[:-1] |= down
    seam[1:] |= down
    return np.asarray(cv2.dilate(seam, np.ones((3, 3), dtype=np.uint8)))


def _sample_points(shift: Floats, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Displaced sample points of some pixels; the displacement is linear inside a pixel.

    Shapes: shift (H, W, 2), rows, cols (B,) -> x, y (SAMPLES * B,), all first samples first.
    """
    k = np.arange(SAMPLES)
    dx = ((k / SAMPLES + 0.5) % 1 - 0.5).astype(np.float32)[:, None]
    dy = ((4 * k % SAMPLES / SAMPLES + 0.5) % 1 - 0.5).astype(np.float32)[:, None]
    height, width = shift.shape[:2]
    left, right = np.maximum(cols - 1, 0), np.minimum(cols + 1, width - 1)
    above, below = np.maximum(rows - 1, 0), np.minimum(rows + 1, height - 1)
    here = shift[rows, cols]
    by_x = (shift[rows, right] - shift[rows, left]) / (right - left)[:, None].astype(np.float32)
    by_y = (shift[below, cols] - shift[above, cols]) / (below - above)[:, None].astype(np.float32)
    x = (cols + np.float32(0.5) + here[:, 0]).astype(np.float32) + dx * (1 + by_x[:, 0]) + dy * by_y[:, 0]
    y = (rows + np.float32(0.5) + here[:, 1]).astype(np.float32) + dy * (1 + by_y[:, 1]) + dx * by_x[:, 1]
    return x.ravel(), y.ravel()


def join_islands(owner: NDArray[np.int32], count: int) -> None:
    """Gives all but the largest part of every piece to the neighbour around most of it, until each is one part.

    Every gift joins two parts to one, so this ends.

    Shapes: owner (H, W), changed in place.
    """
    todo = set(range(count))
    while todo:
        boxes = find_objects(owner + 1, count)
        changed = set()
        for piece in sorted(todo):
            if boxes[piece] is None:
                continue
            box = tuple(slice(max(0, side.start - 1), side.stop + 1) for side in boxes[piece])
            part = owner[box]
            number, parts, stats, _ = cv2.connectedComponentsWithStats(
                (part == piece).astype(np.uint8), connectivity=4, ltype=cv2.CV_32S
            )
            if number <= 2:
                continue
            largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
            for stray in set(range(1, number)) - {largest}:
                left, top, wide, high = stats[stray, :4]
                rows, cols = slice(max(0, top - 1), top + high + 1), slice(max(0, left - 1), left + wide + 1)
                island = parts[rows, cols] == stray
                ring = cv2.dilate(island.astype(np.uint8), cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))) > 0
                heir = int(np.argmax(np.bincount(part[rows, cols][ring & ~island])))
                part[rows, cols][island] = heir
                changed.add(heir)
        todo = changed


def _allowed(
    owner: NDArray[np.int32], rows: NDArray[np.int64], cols: NDArray[np.int64], samples: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Samples may belong to the owners of their pixel and of its four neighbours; the rest go to their pixel's owner.

    So what a piece has of any pixel is connected to the pixels it owns.

    Shapes: rows, cols (B,), samples (B, SAMPLES) -> (B, SAMPLES).
    """
    height, width = owner.shape
    own = owner[rows, cols]
    known = samples == own[:, None]
    for d_row, d_col in ((0, 1), (-1, 0), (0, -1), (1, 0)):
        beside = owner[np.clip(rows + d_row, 0, height - 1), np.clip(cols + d_col, 0, width - 1)]
        known |= samples == beside[:, None]
    return np.where(known, samples, own[:, None])


def _masks(
    owner: NDArray[np.int32], rows: NDArray[np.int64], cols: NDArray[np.int64], samples: NDArray[np.int32], count: int
) -> list[Mask]:
    """Alpha of every piece: 255 in its own pixels, counted samples in the pixels of seams."""
    ordered = np.sort(samples, axis=1)
    first = np.ones(ordered.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.flatnonzero(first)
    share = np.diff(np.append(start, ordered.size)).astype(np.uint8) * np.uint8(255 // SAMPLES)
    piece, pixel = ordered.ravel()[start], start // SAMPLES
    by_piece = np.argsort(piece, kind="stable")
    bounds = np.searchsorted(piece[by_piece], np.arange(count + 1))
    height, width = owner.shape
    whole = owner.copy()
    whole[rows, cols] = -1
    masks = []
    for k, found in enumerate(find_objects(owner + 1, count)):
        if found is None:
            masks.append(Mask(0, 0, np.zeros((1, 1), dtype=np.uint8)))
            continue
        top, left = max(0, found[0].start - 1), max(0, found[1].start - 1)
        bottom, right = min(height, found[0].stop + 1), min(width, found[1].stop + 1)
        alpha = (whole[top:bottom, left:right] == k).astype(np.uint8) * np.uint8(255)
        mine = by_piece[bounds[k] : bounds[k + 1]]
        alpha[rows[pixel[mine]] - top, cols[pixel[mine]] - left] = share[mine]
        masks.append(Mask(top, left, alpha))
    return masks
