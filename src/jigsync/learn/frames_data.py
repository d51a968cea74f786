"""Samples of the frame network: outlines of fragments cut along rows and columns, and where their cells are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from jigsync.learn.chunks import Sample
from jigsync.learn.contours_mixture import Kind, Swept, Torn, draw_puzzle
from jigsync.learn.frames import FrameBatch
from jigsync.learn.mixture import Pictures
from jigsync.measure.frames import CHANNELS, DISTANCES, centroids, shape_features, size_of
from jigsync.measure.outline import read_outlines
from jigsync.measure.outline_features import features, neighbours
from jigsync.values import angles
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

MIXTURE: Final[Mapping[str, Kind]] = {
    "squares": Swept(0.04, (0, 0), (0, 0), (0, 0.05)),
    "light": Swept(0.10, (2, 12), (0, 0.08), (0, 0.0)),
    "medium": Swept(0.14, (10, 22), (0.04, 0.14), (0, 0.0)),
    "severe": Swept(0.26, (20, 32), (0.08, 0.22), (0, 0.0)),
    "extreme": Swept(0.22, (28, 32), (0.14, 0.24), (0, 0.0)),
    "eroded": Swept(0.14, (0, 0), (0.03, 0.24), (0, 0.0)),
    "torn": Torn(0.06, erosion=(0.0, 0.08)),
    "cuts": Torn(0.02, "cuts", erosion=(0.0, 0.06)),
    "knobs": Torn(0.02, "knobs", erosion=(0.0, 0.03)),
}
"""What is seen is an outline: colours do not matter, and are not damaged."""


def sample_of(puzzle: Puzzle, truth: Truth) -> dict[str, NDArray[Any]]:
    """features (T, CHANNELS) float16, start (N + 1,), normal (T, 2), and centre (N, 2), angle (N,), pitch (N,) float32.

    Centres are from the centroids, in sizes; pitch is log(pitch / size), the same for all; celled is 1 or 0. What has
    knobs is no cell: what reads cells looks along their sides.
    """
    outlines, scans = read_outlines(puzzle)
    size = size_of(outlines)
    n = len(puzzle)
    seen: dict[str, NDArray[Any]] = {
        "features": shape_features(features(puzzle, outlines, scans), outlines).astype(np.float16),
        "start": outlines.start,
        "normal": outlines.normal.astype(np.float32),
    }
    if truth.pitch is None or "style" in truth.options:
        nothing = np.zeros(n, dtype=np.float32)
        return {**seen, "centre": np.zeros((n, 2), np.float32), "angle": nothing, "pitch": nothing, "celled": nothing}
    high, wide = truth.pitch
    centre, angle = [], []
    for name in puzzle.ids:
        placed = truth.placement[name]
        assert placed.pose is not None
        assert placed.cell is not None
        row, col = placed.cell
        middle = np.array([[(col + 0.5) * wide, (row + 0.5) * high]])
        centre.append(placed.pose.inverse().act(middle)[0])
        angle.append(-placed.pose.angle)
    return {
        **seen,
        "centre": ((np.array(centre) - centroids(outlines)) / size).astype(np.float32),
        "angle": np.asarray(angles.wrap(np.array(angle)), dtype=np.float32),
        "pitch": np.full(n, np.log(np.sqrt(high * wide) / size), dtype=np.float32),
        "celled": np.ones(n, dtype=np.float32),
    }


@dataclass(frozen=True)
class FrameData:
    """The stream of puzzles of a seed."""

    pictures: Pictures
    seed: int
    mixture: Mapping[str, Kind]

    def sample(self, k: int) -> Sample:
        """The k-th puzzle."""
        return sample_of(*draw_puzzle(self.pictures, self.mixture, self.seed, k)[:2])


def mirrored(sample: Sample) -> dict[str, NDArray[Any]]:
    """The puzzle in a mirror (x -> -x): outlines run the other way, and what lies along them has the other sign."""
    start = sample["start"]
    back = np.concatenate([np.arange(start[i + 1] - 1, start[i] - 1, -1) for i in range(len(start) - 1)])
    seen = sample["features"][back].copy()
    seen[:, CHANNELS - 1] *= -1
    flip = np.array([-1, 1], dtype=np.float32)
    return {
        **sample,
        "features": seen,
        "normal": sample["normal"][back] * flip,
        "centre": sample["centre"] * flip,
        "angle": -sample["angle"],
    }


def batch_of(samples: Sequence[Sample]) -> FrameBatch:
    """Samples one after the other."""
    starts = [np.zeros(1, dtype=np.int64)]
    for sample in samples:
        starts.append(sample["start"][1:] + starts[-1][-1])
    start = np.concatenate(starts)
    joined = {
        key: torch.from_numpy(np.concatenate([sample[key] for sample in samples]).astype(np.float32))
        for key in ("features", "normal", "centre", "angle", "pitch", "celled")
    }
    owner = torch.from_numpy(np.repeat(np.arange(len(start) - 1), np.diff(start)))
    puzzle = torch.from_numpy(np.repeat(np.arange(len(samples)), [len(sample["angle"]) for sample in samples]))
    return FrameBatch(puzzle=puzzle, near=torch.from_numpy(neighbours(start, DISTANCES)), owner=owner, **joined)
