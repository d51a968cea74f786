"""Which sides look as if they belonged together: codes from features that a network learned on photographs.

The matcher reads strips, with a network trained from nothing on a few thousand pictures. Across a wide gap it helps to
know more of the world. So the whole fragment, turned to face east, goes through the first blocks of EfficientNet-Lite0
as ImageNet made them, and a small head makes of their map two codes a side, whose products are added to the matcher's:

    S(s, t) = S_matcher(s, t) + left_s . right_t + left_t . right_s

What the blocks see is also given as it is, in a few numbers a side, for who asks where in the picture it belongs
(`measure.reach`).

One ONNX file (learn/likeness.py has the head): `views` (M, 3, SIZE, SIZE) -> `left` and `right` (M, E) and `look` (M,
LOOK).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.parts import spans
from jigsync.measure.views import fragment_views, prepared
from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values import z4
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float32]
FORMAT: Final = "jigsync-likeness/2"
VERSION: Final = "jigsync-side-views/1"
"""Changes with anything in `side_views` that a trained head would notice."""
SHIPPED: Final = "likeness.onnx"
SIZE: Final = 112
"""Side of a view."""
OUTPUTS: Final[Mapping[str, tuple[int | None, ...]]] = {"left": (None,), "right": (None,), "look": (None,)}
FRAGMENTS_AT_ONCE: Final = 8
EAST: Final = [z4.inverse(bearing) for bearing in range(z4.ORDER)]
"""Turns that make the side of each bearing face east."""


def side_views(puzzle: Puzzle, cell: float) -> list[Callable[[], Floats]]:
    """All sides facing east, each with its whole fragment, for the cell pitch in pixels: calls that make a part each.

    Shapes: sides in order 4 i + a, (M, 3, SIZE, SIZE) as the network takes them.
    """
    return [partial(_views_of, puzzle, cell, part) for part in spans(len(puzzle), FRAGMENTS_AT_ONCE)]


def _views_of(puzzle: Puzzle, cell: float, part: slice) -> Floats:
    return prepared(fragment_views(puzzle, cell, SIZE, part)[:, EAST])


class LikenessModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str) -> None:
        """Args: the file's bytes, and how messages call it."""
        self._session = open_session(data, name, {"format": FORMAT, "views": VERSION})

    def encode(self, puzzle: Puzzle, cell: float) -> tuple[Floats, Floats, Floats]:
        """The codes and looks of all sides, for the cell pitch in pixels. Shapes: -> (4N, E), (4N, E), (4N, LOOK)."""
        left, right, look = self._session.run_parts(OUTPUTS, "views", side_views(puzzle, cell))
        return left, right, look


def weights_sha256(weights: Path | None = None) -> str:
    """sha256 of a file of weights, or of the shipped one; "" when it is not there."""
    return shipped_sha256(SHIPPED, weights)


@cache
def load_likeness(weights: Path | None = None) -> LikenessModel:
    """The head of a file, or the shipped one; kept in memory.

    JigsyncError without onnxruntime, InputError or FormatError when the file is missing, changed or of another version.
    """
    return LikenessModel(*read_weights(SHIPPED, weights))
