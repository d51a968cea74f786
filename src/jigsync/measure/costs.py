"""Costs of two sides touching, compared as a whole: Lab seam band, Mahalanobis gradient compatibility (MGC), planes.

A cost is asked for row by row: `cost.rows(block)` gives the cost of the block's sides against all 4N sides, low for
sides that belong together. Every cost expands into matrix products, so that a block is a few BLAS calls, a dense
matrix for small N never needs a Python loop, and thousands of fragments never need a dense matrix.

|a|^2 + |b|^2 - 2 a.b cancels where two sides agree, and float32 is left with noise. So colours are centred on the
puzzle's median first, which leaves plain backgrounds (most of the sides that agree too well) near 0, and every cost
names the `noise` below which its values are all the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure.contour import Contours, facing
from jigsync.measure.products import alone, products

Matrix = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
CHUNK: Final = 1 << 14
"""Pairs of sides that are compared at once, where it goes colour by colour: 64 kB an array stays in the cache."""


RIDGE: Final = 1e-6
"""What keeps a plane through too few pixels from tilting, against the mean square distance in cells."""


class Cost(Protocol):
    """Costs of touching sides."""

    @property
    def noise(self) -> float:
        """A cost this small is as good as 0: it is added before a logarithm is taken."""

    def rows(self, block: slice) -> Matrix:
        """Shapes: a slice of B sides -> (B, 4N) float32, at least 0."""


class SeamBand:
    """Distance of the colours on both sides of the seam in CIE-Lab, over a band of 20 % of the cell (or its first
    `depth` pixels), mirrored at the seam so that pixels at equal distance from it are compared.

        cost = mean_{y, d, channel} (lab_s(y, d) - lab_t(L - 1 - y, d))^2
    """

    noise = 0.1
    """Squared Lab distance that 8-bit colours leave between equal ones."""

    def __init__(self, contours: Contours, depth: int | None = None) -> None:
        lab = _centred(to_lab(contours.colour[:, :, :depth]))
        self._east = lab.reshape(len(lab), -1)
        self._west = np.ascontiguousarray(facing(lab)).reshape(len(lab), -1)
        self._square = np.square(self._east).mean(axis=1)

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in squared Lab units."""
        return self._distance(block, self._west, self._square)

    def quick(self, rows: slice, cols: slice) -> Matrix:
        """The cost itself. Shapes: -> (R, C)."""
        return self._apart(rows, alone(self._east[rows], self._west[cols]), self._square[cols])

    def against(self, rows: slice, sides: Ints) -> Matrix:
        """Shapes: R sides, (M,) -> (R, M), in squared Lab units."""
        return self._distance(rows, self._west[sides], self._square[sides])

    def pairs(self, rows: slice, sides: Ints) -> Matrix:
        """Shapes: R sides, (R, K) -> (R, K), in squared Lab units."""
        cross = np.matmul(self._west[sides], self._east[rows, :, None])[..., 0] / self._east.shape[1]
        return np.asarray(np.maximum(self._square[rows, None] + self._square[sides] - 2 * cross, 0))

    def _distance(self, rows: slice, west: Matrix, square: Matrix) -> Matrix:
        return self._apart(rows, products(self._east[rows], west), square)

    def _apart(self, rows: slice, product: Matrix, square: Matrix) -> Matrix:
        cross = product / self._east.shape[1]
        return np.asarray(np.maximum(self._square[rows, None] + square[None] - 2 * cross, 0))


DUMMY_GRADIENTS: Final = (
    np.array(
        [[0, 0, 0], [1, 1, 1], [-1, -1, -1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]],
        dtype=np.float64,
    )
    / 255
)
"""Gallagher's nine dummy gradients (one grey level each), which keep the covariance invertible on flat sides."""


class Gradients:
    """Mahalanobis gradient compatibility (Gallagher 2012), both directions added.

    With g_s(y) = x_s(y, 0) - x_s(y, 1) the colour gradient towards the seam just inside s, its mean mu_s over the rows
    and its covariance S_s over the rows and nine dummy gradients,

        D(s, t) = mean_y (x_t(y) - x_s(y) - mu_s)^T S_s^-1 (x_t(y) - x_s(y) - mu_s),   cost = D(s, t) + D(t, s).

    Expanded, D is a product over the nine entries of S_s^-1 and x_t x_t^T and one over the 3 L colours, so that both
    directions are one product of rows (those of s, those it has for t) and columns (the other way round).
    """

    noise = 1.0
    """True neighbours have about 6: three colours, two directions."""

    def __init__(self, contours: Contours) -> None:
        # In float64: a flat side's S^-1 is large, and what cancels with it.
        edge, inner = np.moveaxis(_centred(contours.colour[:, :, :2]).astype(np.float64), 2, 0)
        sides, samples = edge.shape[:2]
        dummies = np.broadcast_to(DUMMY_GRADIENTS, (sides, *DUMMY_GRADIENTS.shape))
        gradient = np.concatenate([edge - inner, dummies], axis=1)
        centred = gradient - gradient.mean(axis=1, keepdims=True)
        covariance = np.einsum("syc,syd->scd", centred, centred) / (gradient.shape[1] - 1)
        inverse = np.linalg.inv(covariance)
        predicted = edge + (edge - inner).mean(axis=1)[:, None]
        weighted = np.einsum("scd,syd->syc", inverse, predicted)
        other = facing(edge)
        square = np.einsum("syc,syd->scd", other, other)
        mine = [inverse.reshape(sides, -1), -2 * weighted.reshape(sides, -1)]
        others = [square.reshape(sides, -1) / samples, other.reshape(sides, -1) / samples]
        self._left = np.concatenate([*mine, *others], axis=1)
        self._right = np.concatenate([*others, *mine], axis=1)
        self._constant = np.einsum("syc,syc->s", weighted, predicted) / samples

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), without unit."""
        return self._distance(block, self._right, self._constant)

    def quick(self, rows: slice, cols: slice) -> Matrix:
        """The cost in float32. Shapes: -> (R, C)."""
        left, right, constant = self._single
        value = alone(left[rows], right[cols])
        value += constant[rows, None]
        value += constant[cols]
        return np.asarray(np.maximum(value, 0, out=value))

    def against(self, rows: slice, sides: Ints) -> Matrix:
        """Shapes: R sides, (M,) -> (R, M), without unit."""
        return self._distance(rows, self._right[sides], self._constant[sides])

    def pairs(self, rows: slice, sides: Ints) -> Matrix:
        """Shapes: R sides, (R, K) -> (R, K), without unit."""
        value = np.matmul(self._right[sides], self._left[rows, :, None])[..., 0]
        value += self._constant[rows, None]
        value += self._constant[sides]
        return np.asarray(np.maximum(value, 0), dtype=np.float32)

    def _distance(self, rows: slice, right: Doubles, constant: Doubles) -> Matrix:
        value = products(self._left[rows], right)
        value += self._constant[rows, None]
        value += constant
        return np.asarray(np.maximum(value, 0), dtype=np.float32)

    @cached_property
    def _single(self) -> tuple[Matrix, Matrix, Matrix]:
        """Both sides of the product and the constant in float32: flat sides are off by a tenth of `noise`."""
        return self._left.astype(np.float32), self._right.astype(np.float32), self._constant.astype(np.float32)


class Prediction:
    """How far each side's linear extrapolation lands from the other's edge, both directions, in L1 as in Pomeranz 2011.

        cost = mean_{y, c} | 2 x_s(y, 0) - x_s(y, 1) - x_t(y') | + | 2 x_t(y', 0) - x_t(y', 1) - x_s(y) |

    L1 forgives a few strong edges that run into the seam, which the Mahalanobis distance does not.
    """

    noise = 0.004
    """One grey level."""

    def __init__(self, contours: Contours) -> None:
        edge, inner = contours.colour[:, :, 0], contours.colour[:, :, 1]
        ahead = 2 * edge - inner
        flat = (len(edge), -1)
        # Both directions are one L1 distance; colours first, sides last.
        mine, other = np.concatenate([ahead, edge], axis=1), np.concatenate([facing(edge), facing(ahead)], axis=1)
        self._mine, self._other = (np.ascontiguousarray(part.reshape(flat).T) for part in (mine, other))

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in grey levels from 0 to 1."""
        return self._distance(block, self._other)

    def quick(self, rows: slice, cols: slice) -> Matrix:
        """The same in L2, by products: 2 sqrt(mean square). Shapes: -> (R, C), in grey levels from 0 to 1."""
        mine, other, square_mine, square_other = self._by_sides
        value = alone(mine[rows], other[cols])
        value *= np.float32(-2)
        value += square_mine[rows, None]
        value += square_other[cols]
        value *= np.float32(4 / mine.shape[1])
        return np.asarray(np.sqrt(np.maximum(value, 0, out=value), out=value))

    def against(self, rows: slice, sides: Ints) -> Matrix:
        """Shapes: R sides, (M,) -> (R, M), in grey levels from 0 to 1."""
        return self._distance(rows, np.ascontiguousarray(self._other[:, sides]))

    def pairs(self, rows: slice, sides: Ints) -> Matrix:
        """Shapes: R sides, (R, K) -> (R, K), in grey levels from 0 to 1."""
        mine, other, *_ = self._by_sides
        away = other[sides]
        away -= mine[rows, None]
        return np.asarray(np.abs(away, out=away).sum(axis=2) / np.float32(mine.shape[1] / 2))

    def _distance(self, rows: slice, other: Matrix) -> Matrix:
        """Shapes: R sides, other (colours, M) -> (R, M)."""
        colours, sides = other.shape
        out = np.zeros((rows.stop - rows.start, sides), dtype=np.float32)
        step = max(1, CHUNK // sides)
        for start in range(0, len(out), step):
            total = out[start : start + step]
            distance = np.empty_like(total)
            own = self._mine[:, rows.start + start : rows.start + start + len(total), None]
            for k in range(colours):
                np.subtract(other[k], own[k], out=distance)
                total += np.abs(distance, out=distance)
        return np.asarray(out / np.float32(colours / 2))

    @cached_property
    def _by_sides(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Both sides of the distance with sides first, and their squares, for what goes pair by pair or in tiles.

        Shapes: two (4N, colours), two (4N,).
        """
        mine, other = (np.ascontiguousarray(part.T) for part in (self._mine, self._other))
        return mine, other, np.square(mine).sum(axis=1), np.square(other).sum(axis=1)


class Plane:
    """How far apart two sides are where they meet, by a plane through each side's band of colours.

    Over the valid rows y of a side, in cells from its middle, and x cells inwards from the cell's straight side, by
    least squares,

        colour_s(y, x) ~ v_s + m_s y + k_s x,      cost = |v_s - v_t|^2 + |m_s + m_t|^2 / 12

    which is the mean square distance of the two lines along the seam, x = 0, once the other side's rows run the other
    way. A few pixels beside a gap tell little of a backdrop that shades off slowly; hundreds of them tell its colour
    across the gap to a fraction of a grey level.
    """

    noise = 0.1
    """Squared grey levels: a third of a level."""

    def __init__(self, contours: Contours) -> None:
        sides, samples, depth = contours.colour.shape[:3]
        step = 1 / contours.cell
        row = contours.valid.astype(np.float64)
        count = np.maximum(row.sum(axis=1, keepdims=True), 1)
        y = np.broadcast_to((np.arange(samples) + 0.5) / samples - 0.5, row.shape)
        first = 0.5 * step - contours.offset
        inwards = np.arange(depth) * step
        colour = 255 * _centred(contours.colour)
        total = colour.sum(axis=2, dtype=np.float64)
        moment = first[..., None] * total + np.einsum("d,sydc->syc", inwards, colour)
        # Sums over rows and depth of 1, y, x and their products, then of those and the colours.
        away = depth * first + inwards.sum()
        square = depth * first**2 + 2 * first * inwards.sum() + np.square(inwards).sum()
        entries = {(0, 0): depth + 0 * y, (0, 1): depth * y, (0, 2): away, (1, 1): depth * y**2, (1, 2): y * away}
        normal = np.zeros((sides, 3, 3))
        for (i, j), each in {**entries, (2, 2): square}.items():
            normal[:, i, j] = normal[:, j, i] = (row * each).sum(axis=1)
        normal[~contours.valid.any(axis=1), 0, 0] = 1.0  # a side without a row has the level of the backdrop
        known = np.stack([np.einsum("sy,syc->sc", row, part) for part in (total, y[..., None] * total, moment)], axis=1)
        ridge = RIDGE * depth * count[..., None] * np.eye(3)  # a side of one row has no slope
        level, slope, _ = np.moveaxis(np.linalg.solve(normal + ridge * [0, 1, 1], known), 1, 0)
        # In float64: it is six numbers a side, and of squares up to 255^2 a hundredth is wanted.
        self._east = np.concatenate([level, slope / np.sqrt(12)], axis=1)
        self._west = np.concatenate([level, -slope / np.sqrt(12)], axis=1)
        self._square = np.square(self._east).sum(axis=1)

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in squared grey levels."""
        cross = products(self._east[block], self._west)
        square = self._square[block, None] + self._square[None] - 2 * cross
        return np.asarray(np.maximum(square, 0), dtype=np.float32)


def _centred(colour: NDArray[np.float32]) -> NDArray[np.float32]:
    """Colours minus the median colour along all seams, which no difference of colours notices.

    Shapes: (4N, L, D, 3) -> (4N, L, D, 3).
    """
    return np.asarray(colour - np.median(colour[:, :, 0].reshape(-1, 3), axis=0))


def to_lab(rgb: NDArray[np.float32]) -> NDArray[np.float32]:
    """CIE-Lab of sRGB in [0, 1].

    Shapes: (..., 3) -> (..., 3) float32.
    """
    flat = np.ascontiguousarray(rgb.reshape(-1, 1, 3))
    return np.asarray(cv2.cvtColor(flat, cv2.COLOR_RGB2Lab), dtype=np.float32).reshape(rgb.shape)
