"""The measurers `pairwise` and `comparator`: one distribution over all 192 relations of every pair.

The 16 unit steps come from the boundary (measurer `learned`), the other 176 from the trained pairwise model, which
sees what is depicted. With u the boundary's probability of any unit step, q the model's distribution:

    p(unit)             = sigmoid(a logit u + b logit q(unit) + c)
    p(relation | unit)  ~ boundary^d * q^e              over the 16
    p(relation | other) = (1 - EVEN) (~ q^f) + EVEN / 176

a .. f are fitted on validation puzzles and stored in the card. `comparator` is the same model trained without
attention to the other fragments.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logsumexp, softmax

from jigsync.io.files import read_bytes
from jigsync.io.schema import Node
from jigsync.measure.contour import read_contours
from jigsync.measure.described import described
from jigsync.measure.learned import Learned
from jigsync.measure.unary import UnaryModel, load_unary, weights_sha256
from jigsync.measure.views import fragment_views
from jigsync.measure.weights import LIMIT, open_session, read_card, read_weights, weights_path
from jigsync.values import vocabulary as v
from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.measurements import DENSE_LIMIT, Measurements
from jigsync.values.pairs import Relations
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-pairwise/1"
EVEN: Final = 0.05
"""What is spread evenly over the 176: grids of other sizes than those trained on have other far relations."""
LEAST: Final = 1e-6
"""Least probability of either: a unit step, none."""


@dataclass(frozen=True)
class Mixing:
    """a .. f of the module's formula."""

    boundary: float = 1.0
    model: float = 0.0
    bias: float = 0.0
    unit_boundary: float = 1.0
    unit_model: float = 0.0
    other_model: float = 1.0

    def log_p(self, boundary: Floats, logits: Floats) -> Floats:
        """The mixed distribution. Shapes: the boundary's log-probabilities (P, 192), logits (P, 192) -> (P, 192)."""
        unit, other = v.IS_UNIT, ~v.IS_UNIT
        q = log_softmax(logits, axis=1)
        odds = self.bias + self.boundary * _logit(boundary[:, unit]) + self.model * _logit(q[:, unit])
        share = np.clip(expit(odds), LEAST, 1 - LEAST)[:, None]
        out = np.empty_like(q)
        out[:, unit] = np.log(share) + log_softmax(
            self.unit_boundary * boundary[:, unit] + self.unit_model * q[:, unit], axis=1
        )
        likely = (1 - EVEN) * softmax(self.other_model * q[:, other], axis=1)
        out[:, other] = np.log1p(-share) + np.log(likely + EVEN / likely.shape[1])
        return out


def _logit(log_p: Floats) -> Floats:
    """Log-odds of the sum of some probabilities. Shapes: (P, M) -> (P,)."""
    p = np.clip(np.exp(logsumexp(log_p, axis=1)), LEAST, 1 - LEAST)
    return np.asarray(np.log(p / (1 - p)))


class PairwiseModel:
    """A loaded file of weights, and how its answers are mixed with the boundary's."""

    def __init__(self, data: bytes, name: str, encoder_sha256: str, mixing: Mixing) -> None:
        wanted = {"format": FORMAT, "vocabulary": v.VERSION, "encoder_sha256": encoder_sha256}
        self._session = open_session(data, name, wanted)
        self.mixing = mixing

    def logits(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Shapes: (N, 4, F + HEADS) -> (N, N, 192)."""
        n = len(features)
        return self._session.run({"logits": (n, n, v.RELATIONS)}, {"features": features.astype(np.float32)})[0]


def features_of(puzzle: Puzzle, cell: float, encoder: UnaryModel) -> NDArray[np.float16]:
    """What the model reads, for the cell pitch in pixels. Shapes: -> (N, 4, F + HEADS)."""
    return described(fragment_views(puzzle, cell), encoder)


@cache
def load_pairwise(name: str, weights: Path | None = None, encoder: Path | None = None) -> PairwiseModel:
    """The model of a file, or the shipped one of a measurer's name; kept in memory.

    FormatError when the file was trained on features of another encoder.
    """
    shipped = f"{name}.onnx"
    data, path = read_weights(shipped, weights)
    card = weights_path(shipped, weights).with_suffix(".json")
    said = read_card(card) if card.exists() else {}
    return PairwiseModel(data, path, weights_sha256(encoder), mixing_of(said.get("mixing", {}), path))


def mixing_of(stored: Any, name: str) -> Mixing:
    """From a card; FormatError for anything but its numbers."""
    known = asdict(Mixing())
    if not isinstance(stored, dict) or set(stored) - set(known):
        raise FormatError(f"The card of '{name}' must have a 'mixing' of numbers {', '.join(known)}.")
    return Mixing(**{key: Node(value, f"card of {name}", key).number(-1e6, 1e6) for key, value in stored.items()})


@dataclass(frozen=True)
class PairwiseMeasurer:
    """The measurer.

    Attributes:
        name: "pairwise" or "comparator".
        weights, encoder: other files than the shipped ones.
    """

    name: str = "pairwise"
    weights: Path | None = None
    encoder: Path | None = None

    def measure(self, puzzle: Puzzle) -> Measurements:
        """All relations of all pairs; of large puzzles, and without weights, the boundary alone, and it says so."""
        boundary = Learned().measure(puzzle)
        if not 2 <= len(puzzle) <= DENSE_LIMIT:
            note = f"The measurer '{self.name}' takes 2 to {DENSE_LIMIT} fragments: only boundaries were measured."
            return replace(boundary, note=boundary.note or note)
        try:
            model, encoder = load_pairwise(self.name, self.weights, self.encoder), load_unary(self.encoder)
        except JigsyncError as error:
            if self.weights is not None:
                raise
            return replace(boundary, note=f"The measurer '{self.name}' is not used: {error}")
        logits = model.logits(features_of(puzzle, read_contours(puzzle).cell, encoder))
        return mixed(boundary, logits, model.mixing)

    @property
    def weights_sha256(self) -> str:
        """One sha256 of all that its answers depend on: its file and card, the encoder, the boundary's weights."""
        path = weights_path(f"{self.name}.onnx", self.weights)
        files = [file for file in (path, path.with_suffix(".json")) if file.exists()]
        parts = [hashlib.sha256(read_bytes(file, LIMIT)).hexdigest() for file in files]
        parts += [weights_sha256(self.encoder), Learned().weights_sha256]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def mixed(boundary: Measurements, logits: NDArray[np.float32], mixing: Mixing) -> Measurements:
    """The boundary's measurements with all 192 relations. Shapes: logits (N, N, 192)."""
    i, j = np.nonzero(~np.eye(boundary.n, dtype=bool))
    log_p = np.full((boundary.n, boundary.n, v.RELATIONS), -math.log(v.RELATIONS), dtype=np.float32)
    log_p[i, j] = mixing.log_p(boundary.symmetric(i, j).astype(np.float64), logits[i, j].astype(np.float64))
    return replace(boundary, pairs=Relations(log_p))
