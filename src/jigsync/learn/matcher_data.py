"""Samples of the boundary matcher: a puzzle's strips and which sides touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.handed import Presentation
from jigsync.cutting.seeds import derive_seed
from jigsync.learn.chunks import Sample
from jigsync.learn.lost import told_again
from jigsync.learn.mixture import Kind, Pictures, draw_puzzle
from jigsync.measure.strips import COLOUR, DEPTHS, prepared, read_strips
from jigsync.score.touching import touching
from jigsync.values.placement import Placement
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


def sample_of(puzzle: Puzzle, truth: Truth) -> dict[str, NDArray[Any]]:
    """strips (4N, CHANNELS, ROWS) uint8 and partner (4N,) int64, -1 for none; lost cells are told from outlines."""
    home: Placement = truth.placement
    if puzzle.cell is None:
        puzzle, home = told_again(puzzle, truth)
    assert puzzle.cell is not None
    return {"strips": read_strips(puzzle, puzzle.cell), "partner": touching(home, puzzle.ids)}


@dataclass(frozen=True)
class MatcherData:
    """The stream of puzzles of a seed, a share of which have lost their cells (`learn.lost`)."""

    pictures: Pictures
    seed: int
    mixture: Mapping[str, Kind]
    lost: float = 0.0

    def sample(self, k: int) -> Sample:
        """The k-th puzzle."""
        rng = np.random.default_rng(derive_seed("lost", self.seed, k))
        lost, turned = rng.random(2) < (self.lost, 0.5)
        presentation: Presentation = "cell" if not lost else "any" if turned else "cropped"
        puzzle, truth, _ = draw_puzzle(self.pictures, self.mixture, self.seed, k, presentation)
        return sample_of(puzzle, truth)


def augmented(sample: Sample, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The puzzle as the network takes it, seen in another way: mirrored, other colours, other contrast.

    A mirrored picture has every strip upside down; which sides touch stays, and the order of a fragment's sides, which
    is the other way round, is nothing the network sees. Colours change little: with channels swapped and negatives it
    learned more slowly (docs/training.md). Shapes: (4N, C, ROWS), (4N,).
    """
    x = prepared(sample["strips"])
    if rng.random() < 0.5:
        x = np.ascontiguousarray(x[..., ::-1])
    colour = x[:, COLOUR].reshape(len(x), DEPTHS, 3, -1)
    mix = (np.eye(3) + rng.normal(0, 0.05, (3, 3))) * np.exp(rng.normal(0, 0.15))
    x[:, COLOUR] = np.matmul(mix.astype(np.float32), colour).reshape(len(x), 3 * DEPTHS, -1)
    return x, sample["partner"]
