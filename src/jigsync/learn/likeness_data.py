"""Samples of the likeness head: a puzzle's maps of Lite0, and what the matcher says of its sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from jigsync.learn.chunks import Sample
from jigsync.learn.likeness import BLOCKS, CHANNELS, ROWS, Front
from jigsync.learn.mixture import MIXTURE, Kind, Pictures, draw_puzzle
from jigsync.learn.onnx_file import to_onnx
from jigsync.measure.likeness import SIZE, side_views
from jigsync.measure.matcher import MatcherModel, load_matcher
from jigsync.measure.reach import apart
from jigsync.measure.strips import prepared, read_strips
from jigsync.measure.weights import Session, open_session
from jigsync.score.touching import touching
from jigsync.values import z4
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

KINDS: Final[Mapping[str, Kind]] = {
    name: replace(MIXTURE[name], weight=weight)
    for name, weight in {"eroded": 0.45, "gapped": 0.40, "severe": 0.08, "mixed": 0.07}.items()
}
"""What has gaps that are wide."""


@cache
def front() -> Session:
    """Lite0's first blocks through onnxruntime, several times as fast as torch; made once a process."""
    axes = {"views": {0: torch.export.Dim("views")}}
    about = {"front": f"efficientnet-lite0, {BLOCKS} blocks"}
    data = to_onnx(Front(), {"views": torch.zeros(4, 3, SIZE, SIZE)}, ("maps",), axes, about)
    return open_session(data, "the front", about)


def maps_of(puzzle: Puzzle, cell: float) -> NDArray[np.float16]:
    """Lite0's maps of all sides. Shapes: -> (4N, CHANNELS, ROWS, ROWS)."""
    maps = front().run_parts({"maps": (CHANNELS, ROWS, ROWS)}, "views", side_views(puzzle, cell))[0]
    return maps.astype(np.float16)


def sample_of(puzzle: Puzzle, truth: Truth, matcher: MatcherModel) -> dict[str, NDArray[Any]]:
    """maps (4N, CHANNELS, ROWS, ROWS) float16, scores (4N, 4N), NEVER within a fragment, none (4N,), partner (4N,)."""
    assert puzzle.cell is not None
    codes = matcher.encode_both_ways(prepared(read_strips(puzzle, puzzle.cell)))
    return {
        "maps": maps_of(puzzle, puzzle.cell),
        "scores": apart(codes.logits(slice(0, z4.ORDER * len(puzzle)))),
        "none": codes.none,
        "partner": touching(truth.placement, puzzle.ids),
    }


@dataclass(frozen=True)
class LikenessData:
    """The stream of puzzles of a seed; `matcher` is a file of the boundary matcher, None the shipped one."""

    pictures: Pictures
    seed: int
    mixture: Mapping[str, Kind]
    matcher: Path | None = None

    def sample(self, k: int) -> Sample:
        """The k-th puzzle."""
        puzzle, truth, _ = draw_puzzle(self.pictures, self.mixture, self.seed, k)
        return sample_of(puzzle, truth, load_matcher(self.matcher))
