"""From costs to probabilities, by a conditional logit whose weights are fitted, not guessed.

For a side s the candidates are all sides t of other fragments, and "no neighbour" (the picture's edge):

    p(t | s) = exp(w . f(s, t)) / (exp(w_none . g(s)) + sum_t' exp(w . f(s, t')))

with g(s) = (1, roughness of the side, the same against the puzzle's): a picture's edge is cut straight. Every cost D
gives three features. A cost's absolute size depends on the picture and on the damage, so all of them are relative to
the other candidates of the two sides:

    level(s, t)  = log D(s, t) - (log median D(s, .) + log median D(., t)) / 2
    lead(s, t)   = [log D(s, t) - log min_{t' != t} D(s, t')] + the same seen from t    (< 0: the best by a margin)
    best(s, t)   = the negative part of `lead`, from each side

and the answer is made symmetric: log p = (log p(t | s) + log p(s | t)) / 2. `jigsync calibrate` fits w by maximum
likelihood on puzzles it cuts itself and writes `calibration.json`, with the data and the command in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from jigsync.values import z4
from jigsync.values.errors import FormatError

Matrix = NDArray[np.float32]
FEATURES_PER_COST: Final = 3
OWN_FEATURES: Final = 3
"""Of a side alone: 1, its roughness, its roughness against the puzzle's."""
FORMAT: Final = "jigsync-calibration/1"
CONTENT: Final = "content"
"""Key of the measurers that need a network, which are fitted apart, on fewer pictures."""
LEARNED: Final = "learned"
"""Key of the measurers that were trained, which are fitted apart, on pictures that they were not trained on."""


@dataclass(frozen=True, eq=False)
class RowStats:
    """What is remembered of every side's costs: enough to compute features one block at a time.

    Shapes: all (4N,) float32 in log cost: the smallest, the second smallest, the median; and which is smallest.
    """

    least: Matrix
    second: Matrix
    median: Matrix
    which: NDArray[np.int64]

    def log(self) -> RowStats:
        """Statistics of log cost from those of cost: order statistics commute with the logarithm."""
        return RowStats(np.log(self.least), np.log(self.second), np.log(self.median), self.which)

    @classmethod
    def join(cls, parts: Sequence[RowStats]) -> RowStats:
        """Statistics of blocks that follow each other, as one."""
        columns = ([getattr(part, f.name) for part in parts] for f in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))


def row_stats(cost: Matrix) -> RowStats:
    """Statistics of a block of rows, of cost or of log cost; the sides of the same fragment are +inf in it.

    Shapes: (B, 4N) -> (B,) each.
    """
    at = np.arange(len(cost))
    which = cost.argmin(axis=1)
    middle = (cost.shape[1] - z4.ORDER) // 2
    median = np.partition(cost, middle, axis=1)[:, middle]
    least = cost[at, which]
    cost[at, which] = np.inf
    second = cost.min(axis=1)
    cost[at, which] = least
    return RowStats(least, second, median, which)


def features(
    log_cost: Matrix, rows: NDArray[np.int64], cols: NDArray[np.int64], stats: RowStats
) -> NDArray[np.float32]:
    """The three features of given pairs of sides.

    Shapes: log_cost (...), rows and cols broadcast to the same (...), stats of all 4N sides -> (..., 3).
    """
    level = log_cost - (stats.median[rows] + stats.median[cols]) / 2
    ahead_row = log_cost - np.where(stats.which[rows] == cols, stats.second[rows], stats.least[rows])
    ahead_col = log_cost - np.where(stats.which[cols] == rows, stats.second[cols], stats.least[cols])
    best = np.minimum(ahead_row, 0) + np.minimum(ahead_col, 0)
    return np.stack(np.broadcast_arrays(level, ahead_row + ahead_col, best), axis=-1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights of one measurer in one regime.

    Attributes:
        costs: names of the costs, in feature order.
        weights: (3 * len(costs),) float64.
        none: (G,) w_none; G is 3, or more where a measurer has more to say.
    """

    costs: tuple[str, ...]
    weights: NDArray[np.float64]
    none: NDArray[np.float64]

    def logits(self, feature: NDArray[np.float32]) -> Matrix:
        """Shapes: (..., F) -> (...)."""
        return feature @ self.weights.astype(np.float32)

    def no_neighbour(self, own: NDArray[np.float32]) -> Matrix:
        """w_none . g of sides. Shapes: (..., G) -> (...)."""
        return own @ self.none.astype(np.float32)

    @property
    def by_cost(self) -> NDArray[np.float64]:
        """Weights of level, lead and best. Shapes: -> (len(costs), 3)."""
        return self.weights.reshape(len(self.costs), FEATURES_PER_COST)


def log_normaliser(logits: Matrix, none: Matrix) -> Matrix:
    """log(exp(none) + sum_t exp(logit(s, t))): log p(t | s) is the logit minus this; -inf logits stay out.

    Shapes: (B, C), (B,) -> (B,).
    """
    top = np.maximum(logits.max(axis=1), none)
    total = np.exp(logits - top[:, None]).sum(axis=1) + np.exp(none - top)
    return np.asarray(top + np.log(total), dtype=np.float32)


@cache
def _shipped() -> Mapping[str, Mapping[str, object]]:
    text = files("jigsync.weights").joinpath("calibration.json").read_text(encoding="utf-8")
    data = json.loads(text)
    if data.get("format") != FORMAT:
        raise FormatError(f"The shipped calibration.json has format {data.get('format')!r}: expected {FORMAT!r}.")
    parts = (data, data.get(CONTENT, {}), data.get(LEARNED, {}))
    return {name: entry for part in parts for name, entry in part.get("measurers", {}).items()}


def shipped(measurer: str, regime: str, costs: Sequence[str]) -> Calibration:
    """The calibration in the package for a measurer and regime, its costs checked against the code's."""
    entry = _shipped().get(f"{measurer}/{regime}")
    if entry is None:
        raise FormatError(f"calibration.json has no weights for '{measurer}' on {regime} fragments.")
    if list(costs) != entry["costs"]:
        raise FormatError(
            f"calibration.json knows '{measurer}' with costs {entry['costs']}, the code has {list(costs)}."
        )
    weights = np.array(entry["weights"], dtype=np.float64)
    none = np.array(entry["none"], dtype=np.float64)
    return Calibration(tuple(costs), weights, none)


@dataclass(frozen=True, eq=False)
class Example:
    """One side for fitting: features (C, F) of its candidates, its own (G,), the index of the true one, -1 for none."""

    feature: NDArray[np.float32]
    own: NDArray[np.float32]
    true: int


def fit(costs: Sequence[str], examples: Sequence[Example], ridge: float = 1e-3) -> tuple[Calibration, float]:
    """Maximum likelihood with a small ridge; convex, so the start does not matter.

    Returns the calibration and the mean log-likelihood a side (nats).
    """
    count = FEATURES_PER_COST * len(costs)
    start = np.zeros(count + len(examples[0].own))
    found = minimize(objective(examples, ridge), start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    theta: NDArray[np.float64] = np.asarray(found.x)
    penalty = ridge * float(np.dot(theta, theta)) / 2
    return Calibration(tuple(costs), theta[:count], theta[count:]), penalty - float(found.fun)


def objective(
    examples: Sequence[Example], ridge: float
) -> Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]:
    """What `fit` minimises: theta = (w, w_none) -> mean of -log p(true | s) + ridge |theta|^2 / 2, and its gradient.

    Shapes: theta (F + G,) -> (), (F + G,), with G features of single sides.
    """
    own = np.stack([e.own for e in examples]).astype(np.float64)
    stacked = np.concatenate([e.feature for e in examples]).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum([len(e.feature) for e in examples])])
    true_row = np.array([starts[k] + e.true if e.true >= 0 else -1 for k, e in enumerate(examples)])
    has = true_row >= 0
    owner = np.repeat(np.arange(len(examples)), np.diff(starts))

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logit, none = stacked @ theta[: stacked.shape[1]], own @ theta[stacked.shape[1] :]
        top = np.maximum(np.maximum.reduceat(logit, starts[:-1]), none)
        mass = np.exp(logit - top[owner])
        total = np.add.reduceat(mass, starts[:-1]) + np.exp(none - top)
        chosen = np.where(has, logit[np.maximum(true_row, 0)], none)
        value = -np.mean(chosen - top - np.log(total)) + ridge * np.dot(theta, theta) / 2
        p = mass / total[owner]
        gradient = np.append(
            (p @ stacked - stacked[true_row[has]].sum(axis=0)) / len(examples),
            (np.exp(none - top) / total - ~has) @ own / len(examples),
        )
        return float(value), gradient + ridge * theta

    return loss
