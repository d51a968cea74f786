"""How far an answer can be believed: calibrated probabilities of its fragments, its pictures and of itself.

    p_i     = sigmoid(a own_i + b mean + c log n + d left + e)           fragment i is right towards its component
    whole   = sigmoid(a sum_i log p_i + b logit(min p) + c)               a picture is whole
    right   = sigmoid(a logit(mean p) + b logit(low p) + c left + d)      four fifths of the fragments are right

own_i is the logit of what the solver says about the fragment, mean is its mean over the component of n fragments, left
the share of fragments without a place, low p the mean of the least sure quarter. A picture is whole when all its
fragments are right and none of them lies elsewhere in the pile. a and b are at least 0: no probability falls when the
solver is surer. Where more than a third of the fragments has no place, `right` is at most the share that has. There is
one set of numbers for each way of reading a puzzle, as each has a solver of its own; `jigsync calibrate-belief` fits
them and writes `belief.json`; `jigsync reproduce reliability` checks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from jigsync.solution import Solution
from jigsync.values.errors import FormatError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Reading = Literal["cells", "framed", "free"]
"""Fragments that say where their cell is; whose cells were told from outlines; and poses."""

FORMAT: Final = "jigsync-belief/1"
SHIPPED: Final = "belief.json"
READINGS: Final[tuple[Reading, ...]] = ("cells", "framed", "free")
SUREST: Final = 0.999
"""Of what is said about a fragment, unless a person pinned it."""
RIGHT: Final = 0.8
"""Share of the fragments that are right in an answer that is right."""
MANY: Final = 1 / 3
"""Share of fragments without a place from which they are no strangers: so many are not found in one pile."""
LEAST_SURE: Final = 4
"""The least sure quarter: one in so many."""


@dataclass(frozen=True, eq=False)
class Said:
    """What a solver said of an answer to N fragments. Shapes: (N,) each.

    Attributes:
        reading: how the puzzle was read.
        sure: the solver's own confidences.
        component: -1 for a fragment without a place.
        pinned: whose place was given.
        excluded: fragments that somebody left out.
    """

    reading: Reading
    sure: Floats
    component: NDArray[np.int64]
    pinned: Bools
    excluded: Bools

    @classmethod
    def of(
        cls, solution: Solution, reading: Reading, pinned: frozenset[str], excluded: frozenset[str] = frozenset()
    ) -> Said:
        """What stands in a solution."""
        placed = list(solution.placement.values())
        component = [-1 if p.pose is None else p.component for p in placed]
        return cls(
            reading,
            np.array([p.confidence or 0.0 for p in placed]),
            np.array(component, dtype=np.int64),
            np.array([name in pinned for name in solution.placement]),
            np.array([name in excluded for name in solution.placement]),
        )

    @property
    def left(self) -> float:
        """Share of the fragments without a place, of those that should have one."""
        return float((self.component[~self.excluded] < 0).mean())

    def fragments(self) -> Floats:
        """What p_i depends on. Shapes: -> (N, 5)."""
        own = logit(np.clip(self.sure, 1 - SUREST, SUREST))
        mean, size = np.zeros(len(own)), np.ones(len(own))
        for label in np.unique(self.component[self.component >= 0]):
            mine = self.component == label
            mean[mine], size[mine] = own[mine].mean(), mine.sum()
        return np.stack([own, mean, np.log(size), np.full(len(own), self.left), np.ones(len(own))], axis=1)

    def picture(self, p: Floats, label: int) -> Floats:
        """What `whole` depends on. Shapes: p (N,) -> (3,)."""
        mine = np.clip(p[self.component == label], 1 - SUREST, SUREST)
        return np.array([np.log(mine).sum(), logit(mine.min()), 1.0])

    def answer(self, p: Floats) -> Floats:
        """What `right` depends on. Shapes: p (N,) -> (4,)."""
        placed = np.sort(np.clip(p[self.component >= 0], 1 - SUREST, SUREST))
        low = placed[: max(1, len(placed) // LEAST_SURE)]
        return np.array([logit(placed.mean()), logit(low.mean()), self.left, 1.0])


@dataclass(frozen=True, eq=False)
class Belief:
    """The fitted numbers.

    Attributes:
        fragments: reading -> (5,).
        whole: reading -> (3,).
        right: reading -> (4,).
        ok: least probability of an answer that is called right.
    """

    fragments: Mapping[str, Floats]
    whole: Mapping[str, Floats]
    right: Mapping[str, Floats]
    ok: float

    def p(self, said: Said) -> Floats:
        """(N,) the probability that each fragment is right towards its component; 0 for one without a place."""
        p = np.minimum(expit(said.fragments() @ self.fragments[said.reading]), SUREST)
        return np.where(said.pinned, 1.0, np.where(said.component >= 0, p, 0.0))

    def believed(
        self, solution: Solution, reading: Reading, pinned: frozenset[str], excluded: frozenset[str] = frozenset()
    ) -> Solution:
        """The solution with these probabilities, and "unsure" where it is probably not right."""
        said = Said.of(solution, reading, pinned, excluded)
        if not solution or not (said.component >= 0).any():
            return solution
        if len(solution.placement) == 1:  # up to the global turn there is nothing to get wrong
            return replace(solution, confidence=1.0, whole=1.0)
        p = self.p(said)
        placement = {
            name: replace(placed, confidence=float(sure))
            for (name, placed), sure in zip(solution.placement.items(), p, strict=True)
        }
        labels = np.unique(said.component[said.component >= 0]).tolist()
        whole = {label: float(expit(said.picture(p, label) @ self.whole[reading])) for label in labels}
        parts = tuple(replace(part, whole=whole[part.component]) for part in solution.parts)
        right = float(expit(said.answer(p) @ self.right[reading]))
        if said.left > MANY:
            right = min(right, 1 - said.left)
        return replace(
            solution,
            status=solution.status if right >= self.ok else "unsure",
            placement=placement,
            confidence=right,
            whole=None if parts else whole[labels[0]],
            parts=parts,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; from_json gives the same numbers back."""
        tables = {name: getattr(self, name) for name in ("fragments", "whole", "right")}
        return {
            "ok": self.ok,
            **{name: {key: value.tolist() for key, value in table.items()} for name, table in tables.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Belief:
        """The inverse of to_json."""
        if data.get("format") != FORMAT:
            raise FormatError(f"The file {SHIPPED} must have the format '{FORMAT}'. It has {data.get('format')!r}.")
        fragments, whole, right = (
            {str(key): np.array(data[name][key], dtype=np.float64) for key in READINGS}
            for name in ("fragments", "whole", "right")
        )
        return cls(fragments, whole, right, float(data["ok"]))


@cache
def shipped() -> Belief:
    """The numbers in the package."""
    return Belief.from_json(json.loads(files("jigsync.weights").joinpath(SHIPPED).read_text(encoding="utf-8")))


def fit(x: Floats, right: Bools, weight: Floats, rising: int, start: Floats, ridge: float = 1e-3) -> Floats:
    """Logistic regression by maximum likelihood, with a small ridge towards `start`.

    Shapes: x (M, K), right and weight (M,), start (K,) -> (K,); the first `rising` numbers are at least 0.
    """
    if not len(x):
        return start
    share = weight / weight.sum()

    def loss(theta: Floats) -> tuple[float, Floats]:
        z = x @ theta
        value = float(np.dot(share, np.logaddexp(0, np.where(right, -z, z))))
        by_z = share * (expit(z) - right)
        return value + ridge * float(np.sum((theta - start) ** 2)) / 2, by_z @ x + ridge * (theta - start)

    bounds = [(0.0, None)] * rising + [(None, None)] * (x.shape[1] - rising)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)
