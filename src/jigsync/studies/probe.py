"""A probe in closed form: does a single fragment's look tell its cell or its turn?

Linear discriminant: classes with their own means and one shared covariance,

    class(x) = argmax_c  m_c^T S^-1 x - m_c^T S^-1 m_c / 2

fitted on one half of the pictures and read on the other, both ways. No network, no iterations, nothing to tune; it
sees what simple statistics of a fragment show, which is where a generator would leak first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.costs import to_lab
from jigsync.score.intervals import Interval, bootstrap_mean
from jigsync.values import z4
from jigsync.values.layout import Grid

Floats = NDArray[np.float64]
STATISTICS: Final = 21
RIDGE: Final = 1e-3
"""Added to the shared covariance, in units of each statistic's variance."""


def statistics(rgb: NDArray[np.uint8]) -> Floats:
    """Of each Lab channel: mean, deviation, slopes along x and y, gradient energies along x and y, mixed slope.

    Shapes: (P, P, 3) -> (21,).
    """
    lab = to_lab((rgb / 255).astype(np.float32)).astype(np.float64)
    y, x = np.meshgrid(*(np.linspace(-1, 1, size) for size in lab.shape[:2]), indexing="ij")
    dy, dx = np.diff(lab, axis=0), np.diff(lab, axis=1)
    means = [(lab * weight[..., None]).mean(axis=(0, 1)) for weight in (np.ones_like(x), x, y, x * y)]
    energies = [np.log(np.square(d).mean(axis=(0, 1)) + 1e-6) for d in (dx, dy)]
    return np.concatenate([*means, lab.std(axis=(0, 1)), *energies])


def fragments(rgb: NDArray[np.uint8], grid: Grid) -> list[NDArray[np.uint8]]:
    """The cells of a picture in slot order; what the grid does not divide is left out."""
    height, width = (extent // count for extent, count in zip(rgb.shape[:2], grid.shape, strict=True))
    return [
        rgb[row * height : (row + 1) * height, col * width : (col + 1) * width]
        for row in range(grid.rows)
        for col in range(grid.cols)
    ]


def accuracy(x: Floats, classes: NDArray[np.int64], picture: NDArray[np.int64], rng: np.random.Generator) -> Interval:
    """Held-out accuracy of the discriminant, a mean over pictures.

    Shapes: x (M, F), classes (M,), picture (M,): whose fragment each row is.
    """
    right = np.empty(len(x))
    for fold in (0, 1):
        held = picture % 2 == fold
        right[held] = _classify(x[~held], classes[~held], x[held]) == classes[held]
    return bootstrap_mean([right[picture == one].mean() for one in np.unique(picture)], rng)


def _classify(x: Floats, classes: NDArray[np.int64], new: Floats) -> NDArray[np.int64]:
    scale = x.std(axis=0) + 1e-9
    x, new = x / scale, new / scale
    names = np.unique(classes)
    means = np.stack([x[classes == name].mean(axis=0) for name in names])
    within = x - means[np.searchsorted(names, classes)]
    shared = within.T @ within / len(x) + RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(shared, means.T)
    return np.asarray(names[np.argmax(new @ weights - np.einsum("cf,fc->c", means, weights) / 2, axis=1)])


def read_cells(
    pictures: Sequence[NDArray[np.uint8]], grid: Grid, rng: np.random.Generator
) -> tuple[Interval, Interval]:
    """(accuracy of the cell from an upright fragment, accuracy of the turn from a turned one)."""
    cut = [(k, slot, cell) for k, rgb in enumerate(pictures) for slot, cell in enumerate(fragments(rgb, grid))]
    owner = np.array([k for k, _, _ in cut])
    slots = np.array([slot for _, slot, _ in cut])
    upright = np.stack([statistics(cell) for _, _, cell in cut])
    turns = rng.integers(0, z4.ORDER, len(cut))
    turned = np.stack([statistics(z4.turn_pixels(cell, int(k))) for (_, _, cell), k in zip(cut, turns, strict=True)])
    return accuracy(upright, slots, owner, rng), accuracy(turned, turns, owner, rng)
