"""The measurer `contours`: outlines of any shape at any angle, matched by a trained network.

    outlines -> features -> codes (the network) -> matches -> gap -> poses of pairs -> evidence -> log-odds

The ONNX file (learn/contours.py has the mathematics) takes `features` (T, CHANNELS) and `near` (T, len(DISTANCES)), the
neighbours of every sample on its own outline, and gives `f` and `g` (T, E) and `none` (T,). Its card has `odds`: the
weights of `contour_evidence.FEATURES` in the log-odds of a hypothesis, fitted on held-out puzzles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.io.schema import Node
from jigsync.measure.contour_evidence import FEATURES
from jigsync.measure.contour_matches import SampleCodes
from jigsync.measure.contour_reading import read
from jigsync.measure.contours_plain import ContoursPlain
from jigsync.measure.outline_features import DISTANCES, VERSION, neighbours
from jigsync.measure.parts import side_by_side, spans
from jigsync.measure.seen import Seen
from jigsync.measure.weights import open_session, read_card, read_weights, weights_path
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle

FORMAT: Final = "jigsync-contours/1"
SHIPPED: Final = "contours.onnx"
OUTPUTS: Final[Mapping[str, tuple[int | None, ...]]] = {"f": (None,), "g": (None,), "none": ()}
FRAGMENTS_AT_ONCE: Final = 30
ODDS: Final = (-3.0, 1.0, 0.5, 0.5, 0.0, -1.0, 1.0, 0.0, -1.0)
"""Of FEATURES, where a card has none."""


class ContourModel:
    """A loaded file of weights, and the odds of its card."""

    def __init__(self, data: bytes, name: str, odds: Sequence[float] = ODDS) -> None:
        self._name = name
        self._session = open_session(data, name, {"format": FORMAT, "outlines": VERSION})
        self.odds = np.array(odds)

    def encode(self, seen: NDArray[np.float32], start: NDArray[np.int64]) -> SampleCodes:
        """Codes of the samples of outlines. Shapes: (T, CHANNELS), (N + 1,)."""

        def run(part: slice) -> list[NDArray[np.float32]]:
            mine = start[part.start : part.stop + 1]
            rows = slice(int(mine[0]), int(mine[-1]))
            feed: dict[str, NDArray[Any]] = {"features": seen[rows], "near": neighbours(mine - mine[0], DISTANCES)}
            count = rows.stop - rows.start
            return self._session.run({name: (count, *shape) for name, shape in OUTPUTS.items()}, feed)

        answers = side_by_side([partial(run, part) for part in spans(len(start) - 1, FRAGMENTS_AT_ONCE)])
        f, g, none = (np.concatenate(column) for column in zip(*answers, strict=True))
        if f.shape != g.shape:
            raise FormatError(f"The weights '{self._name}' must give f and g of one length.")
        return SampleCodes(f, g, none)


def weights_sha256(weights: Path | None) -> str:
    """sha256 of a file of weights, or of the shipped one; "" when it is not there."""
    return shipped_sha256(SHIPPED, weights)


@cache
def load_contours(weights: Path | None = None) -> ContourModel:
    """The network of a file, or the shipped one; kept in memory.

    JigsyncError without onnxruntime, InputError or FormatError when the file is missing, changed or of another version.
    """
    data, name = read_weights(SHIPPED, weights)
    card = weights_path(SHIPPED, weights).with_suffix(".json")
    said = read_card(card) if card.exists() else {}
    return ContourModel(data, name, odds_of(said.get("odds"), name))


def odds_of(stored: Any, name: str) -> tuple[float, ...]:
    """From a card, which may have none; FormatError for anything but a number for each of FEATURES."""
    if stored is None:
        return ODDS
    node = Node(stored, f"card of {name}")
    if set(node.object()) != set(FEATURES):
        raise FormatError(f"The card of '{name}' must have 'odds' with a number for each of {', '.join(FEATURES)}.")
    return tuple(node.key(feature).number(-1e6, 1e6) for feature in FEATURES)


@dataclass(frozen=True)
class Contours:
    """The measurer.

    Attributes:
        name: "contours".
        weights: another file than the shipped one.
    """

    name: str = "contours"
    weights: Path | None = None
    frame_free: ClassVar[bool] = True

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Hypotheses about pairs that share matches; by `contours-plain` where the shipped weights cannot be run."""
        return self.of(Seen.of(puzzle))

    def of(self, seen: Seen) -> Measurements:
        """The same, of outlines that were read already."""
        try:
            model = load_contours(self.weights)
        except JigsyncError as error:
            if self.weights is not None:
                raise
            note = f"The trained contour network is not used: {error}"
            return replace(ContoursPlain().of(seen), note=note)
        codes = model.encode(seen.features, seen.outlines.start)
        return Measurements(seen.puzzle.ids, read(seen.outlines, seen.scans, codes).judged(model.odds))

    @property
    def weights_sha256(self) -> str:
        """sha256 of the weights' file; "" when it is not there."""
        return weights_sha256(self.weights)
