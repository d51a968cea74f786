"""The trained boundary matcher through onnxruntime: codes of sides, and scores of pairs of sides.

    S(s, t) = left_s . right_t + left_t . right_s   from the codes of single sides, for all pairs
    C(s, t) = r(a_s, b_t) + r(a_t, b_s)             from maps (a, b) of single sides, for promising pairs

One ONNX file holds both networks (learn/matcher.py has the mathematics). It takes `strips` (S, CHANNELS, ROWS) and
`ahead_in`, `across_in` (P, pair, ROWS / 2) and gives `left` and `right` (S, E), `none` (S,), `ahead` and `across`
(S, pair, ROWS / 2) and `score` (P,); what is not asked for is fed empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.strips import CHANNELS, ROWS, VERSION
from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256

Floats = NDArray[np.float32]
FORMAT: Final = "jigsync-matcher/1"
SHIPPED: Final = "matcher.onnx"
SIDES_AT_ONCE: Final = 400
PAIRS_AT_ONCE: Final = 2048


@dataclass(frozen=True, eq=False)
class Codes:
    """What the encoder says of every side.

    Shapes: left, right (4N, E), none (4N,), ahead and across (4N, pair, ROWS / 2).
    """

    left: Floats
    right: Floats
    none: Floats
    ahead: Floats
    across: Floats

    def logits(self, block: slice) -> Floats:
        """S of a block of sides against all. Shapes: -> (B, 4N)."""
        return np.asarray(self.left[block] @ self.right.T + self.right[block] @ self.left.T)

    def pairs(self, s: NDArray[np.int64], t: NDArray[np.int64]) -> Floats:
        """S of pairs of sides. Shapes: (P,), (P,) -> (P,)."""
        there = np.einsum("pe,pe->p", self.left[s], self.right[t])
        return np.asarray(there + np.einsum("pe,pe->p", self.left[t], self.right[s]))


class MatcherModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str) -> None:
        """Args: the file's bytes, and how messages call it."""
        self._session = open_session(data, name, {"format": FORMAT, "strips": VERSION})
        _, pair, length = self._session.get_inputs()[1].shape
        self._no_maps: Floats = np.zeros((0, pair, length), dtype=np.float32)
        self._no_strips: Floats = np.zeros((0, CHANNELS, ROWS), dtype=np.float32)

    def _run(self, names: list[str], strips: Floats, ahead: Floats, across: Floats) -> list[Any]:
        feed = {"strips": strips, "ahead_in": ahead, "across_in": across}
        answer: list[Any] = self._session.run(names, feed)
        return answer

    def encode(self, strips: Floats) -> Codes:
        """Codes of prepared strips. Shapes: (S, CHANNELS, ROWS) float32."""
        names = ["left", "right", "none", "ahead", "across"]
        parts = [
            self._run(names, strips[start : start + SIDES_AT_ONCE], self._no_maps, self._no_maps)
            for start in range(0, len(strips), SIDES_AT_ONCE)
        ]
        return Codes(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def rank(self, codes: Codes, s: NDArray[np.int64], t: NDArray[np.int64]) -> Floats:
        """C of pairs of sides. Shapes: (P,), (P,) -> (P,)."""
        out: Floats = np.zeros(len(s), dtype=np.float32)
        for start in range(0, len(s), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            for a, b in ((s[part], t[part]), (t[part], s[part])):
                out[part] += self._run(["score"], self._no_strips, codes.ahead[a], codes.across[b])[0]
        return out


def weights_sha256(weights: Path | None) -> str:
    """sha256 of a file of weights, or of the shipped one; "" when it is not there."""
    return shipped_sha256(SHIPPED, weights)


@cache
def load_matcher(weights: Path | None = None) -> MatcherModel:
    """The matcher of a file, or the shipped one; kept in memory.

    A card beside the file (the same name, .json) holds its sha256, which must agree; the shipped file must have one.
    JigsyncError without onnxruntime, InputError or FormatError when the file is missing, changed or of another version.
    """
    return MatcherModel(*read_weights(SHIPPED, weights))
