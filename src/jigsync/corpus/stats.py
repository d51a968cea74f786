"""What a corpus report counts about one puzzle: blank cells, mean gradient, the generator's flag.

Measured on the undamaged canvas, cell by cell or piece by piece, because damage (fade, noise) adds gradients of its own
and would hide a blank fragment. The paper's crop defect shows here: it halved the mean gradient.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import StrPath, read_json, write_json
from jigsync.io.schema import Node
from jigsync.io.seal import check_seal, sealed
from jigsync.values.layout import Grid
from jigsync.values.truth import Truth

FORMAT: Final = "jigsync-shard-stats/1"
BLANK_DEVIATION: Final = 3.0
"""A cell whose grey values (0..255) have a smaller standard deviation is blank."""


@dataclass(frozen=True)
class PuzzleStats:
    """One puzzle.

    Attributes:
        fragments: number of cells or pieces.
        blank: number of blank ones.
        gradient: mean absolute difference of neighbouring grey values, 0..255.
        flagged: a fragment stayed under the area floor.
    """

    key: str
    fragments: int
    blank: int
    gradient: float
    flagged: bool

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, node: Node) -> PuzzleStats:
        """The inverse of to_json, checked."""
        fragments = node.key("fragments").integer(1, 10**9)
        flagged = node.key("flagged")
        if not isinstance(flagged.value, bool):
            raise flagged.refuse("true or false")
        return cls(
            node.key("key").text(),
            fragments,
            node.key("blank").integer(0, fragments),
            node.key("gradient").number(0.0, 255.0),
            flagged.value,
        )


def write_stats(path: StrPath, shard_sha256: str, counted: Sequence[PuzzleStats]) -> None:
    """The file beside a shard: its hash and what is in it, sealed."""
    puzzles = [entry.to_json() for entry in counted]
    write_json(path, sealed({"format": FORMAT, "shard_sha256": shard_sha256, "puzzles": puzzles}))


def read_stats(path: StrPath) -> tuple[str, list[PuzzleStats]]:
    """(the shard's sha256, its puzzles) of a stats file; FormatError when it is not what was written."""
    node = Node(read_json(path), os.fspath(path))
    node.format(FORMAT)
    check_seal(node.object(), node.file)
    return node.key("shard_sha256").text(), [PuzzleStats.from_json(entry) for entry in node.key("puzzles").entries()]


@dataclass(frozen=True)
class CanvasStats:
    """The part that all puzzles of one canvas share."""

    blank: int
    gradient: float


def canvas_stats(canvas: NDArray[np.uint8], grid: Grid) -> CanvasStats:
    """Blank cells and mean gradient of a canvas.

    Shapes: canvas (rows * P, cols * P, 3) uint8.
    """
    grey = _grey(canvas)
    cells = grey.reshape(grid.rows, grey.shape[0] // grid.rows, grid.cols, grey.shape[1] // grid.cols)
    blank = int(np.count_nonzero(cells.std(axis=(1, 3)) < BLANK_DEVIATION))
    return CanvasStats(blank, _gradient(grey))


def torn_stats(canvas: NDArray[np.uint8], owner: NDArray[np.int32]) -> CanvasStats:
    """The same of a picture that is divided into pieces of any shape.

    Shapes: canvas (H, W, 3) uint8, owner (H, W) the piece of each pixel.
    """
    grey = _grey(canvas)
    piece, value = owner.ravel(), grey.ravel().astype(np.float64)
    count = np.bincount(piece)
    mean = np.bincount(piece, value) / count
    variance = np.bincount(piece, np.square(value - mean[piece])) / count
    return CanvasStats(int(np.count_nonzero(np.sqrt(variance) < BLANK_DEVIATION)), _gradient(grey))


def _grey(canvas: NDArray[np.uint8]) -> NDArray[np.float32]:
    return canvas.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)


def _gradient(grey: NDArray[np.float32]) -> float:
    steps = [np.abs(np.diff(grey, axis=axis)) for axis in (0, 1)]
    return round(sum(float(step.sum(dtype=np.float64)) for step in steps) / sum(step.size for step in steps), 6)


def puzzle_stats(key: str, canvas: CanvasStats, truth: Truth) -> PuzzleStats:
    """What is counted about one puzzle."""
    flagged = bool(truth.flags.get("below_area_floor", False))
    return PuzzleStats(key, len(truth.placement), canvas.blank, canvas.gradient, flagged)
