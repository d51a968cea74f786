"""The trained boundary matcher through onnxruntime: codes of sides, whose products are scores of pairs.

    S(s, t) = left_s . right_t + left_t . right_s       averaged over the puzzle, its mirror image, sizes

The ONNX file (learn/matcher.py has the mathematics) takes `strips` (S, CHANNELS, ROWS), the four sides of a fragment
one after the other, and gives `left` and `right` (S, E) and `none` (S,).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.parts import spans
from jigsync.measure.products import products
from jigsync.measure.strips import VERSION
from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values import z4
from jigsync.values.errors import FormatError

Floats = NDArray[np.float32]
FORMAT: Final = "jigsync-matcher/2"
SHIPPED: Final = "matcher.onnx"
OUTPUTS: Final[Mapping[str, tuple[int | None, ...]]] = {"left": (None,), "right": (None,), "none": ()}
FRAGMENTS_AT_ONCE: Final = 50


@dataclass(frozen=True, eq=False)
class Codes:
    """What the encoder says of every side.

    Shapes: left, right (4N, E), none (4N,), looks (4N, LOOK) if the likeness head was asked.
    """

    left: Floats
    right: Floats
    none: Floats
    looks: Floats | None = None

    def beside(self, left: Floats, right: Floats, looks: Floats) -> Codes:
        """Codes whose S is the sum of this one and that of others. Shapes: (4N, E') each."""
        left, right = np.concatenate([self.left, left], axis=1), np.concatenate([self.right, right], axis=1)
        return Codes(left, right, self.none, looks)

    def logits(self, block: slice) -> Floats:
        """S of a block of sides against all. Shapes: -> (B, 4N)."""
        there = products(self.left[block], self.right)
        whole = len(there) == len(self.left)
        return np.asarray(there + (there.T if whole else products(self.right[block], self.left)))


class MatcherModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str) -> None:
        """Args: the file's bytes, and how messages call it."""
        self._name = name
        self._session = open_session(data, name, {"format": FORMAT, "strips": VERSION})

    def encode(self, strips: Floats) -> Codes:
        """Codes of prepared strips. Shapes: (S, CHANNELS, ROWS) float32."""
        return self._encode([strips])

    def _encode(self, ways: Sequence[Floats]) -> Codes:
        """Codes of several batches of as many whole fragments, one after the other."""
        fragments = len(ways[0]) // z4.ORDER
        sides = [slice(z4.ORDER * part.start, z4.ORDER * part.stop) for part in spans(fragments, FRAGMENTS_AT_ONCE)]
        parts = [partial(np.ascontiguousarray, way[part]) for way in ways for part in sides]
        left, right, none = self._session.run_parts(OUTPUTS, "strips", parts)
        if left.shape != right.shape:
            raise FormatError(
                f"The weights '{self._name}' must give codes of one length. Got {left.shape[1]} and others."
            )
        return Codes(left, right, none)

    def encode_both_ways(self, *views: Floats) -> Codes:
        """Codes whose S is the mean over the puzzle's and its mirror image's, whose strips are upside down.

        Several views are one puzzle's strips, read at several sizes of the cell; their mean is taken likewise.
        Shapes: V views (S, CHANNELS, ROWS) float32 -> left, right (S, 2 V E).
        """
        ways = [way for strips in views for way in (strips, strips[..., ::-1])]
        codes, share = self._encode(ways), np.float32(1 / len(ways))
        left, right = (np.concatenate(np.split(part, len(ways)), axis=1) for part in (codes.left, codes.right))
        return Codes(left * share, right, codes.none.reshape(len(ways), -1).mean(axis=0))


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
