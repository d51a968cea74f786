"""Measurement graphs with known truth: a layout of fragments, its true relations, and ways to corrupt them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.pairs import Relations

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solved(Arrangement):
    """A solved puzzle without pixels."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids that are neither consecutive nor in slot order."""
        return tuple(f"f{3 * k + 7:05d}" for k in range(self.n))

    def relation(self, i: NDArray[Any], j: NDArray[Any]) -> Ints:
        """True relations of ordered pairs. Shapes: (E,), (E,) -> (E,)."""
        d = self.cells[j] - self.cells[i]
        return v.relation_of(d[:, 0], d[:, 1], self.turns[i], self.turns[j])

    def distance(self, i: NDArray[Any], j: NDArray[Any]) -> Ints:
        """Chebyshev distances in cells. Shapes: (E,), (E,) -> (E,)."""
        return np.asarray(np.abs(self.cells[j] - self.cells[i]).max(axis=-1))

    def adjacency(self) -> Ints:
        """(E, 2) fragments that are direct neighbours, i < j: variant A's edge list."""
        i, j = np.triu_indices(self.n, 1)
        step = np.abs(self.cells[j] - self.cells[i]).sum(axis=1) == 1
        return np.stack([i[step], j[step]], axis=1)


def random_solved(grid: Grid, rng: np.random.Generator, turned: bool = True) -> Solved:
    """Fragments in random order with random turns (none when not `turned`)."""
    turns = rng.integers(0, z4.ORDER, grid.size) if turned else np.zeros(grid.size, np.int64)
    return Solved(grid, rng.permutation(grid.size), turns)


def peaked(relation: NDArray[Any], mass: float = 0.9) -> NDArray[np.float32]:
    """Log-probabilities with `mass` on one relation and the rest spread evenly. Shapes: (E,) -> (E, 192)."""
    relation = np.asarray(relation)
    out = np.full((*relation.shape, v.RELATIONS), np.log((1 - mass) / (v.RELATIONS - 1)), dtype=np.float32)
    np.put_along_axis(out, relation[..., None], np.float32(np.log(mass)), axis=-1)
    return out


def measured(solved: Solved, relations: NDArray[Any], mass: float = 0.9, **unary: Any) -> Measurements:
    """Dense measurements that report the given (N, N) relations."""
    return Measurements(solved.ids, Relations(peaked(relations, mass)), **unary)


def true_relations(solved: Solved) -> Ints:
    """(N, N) true relations; the unused diagonal is 0."""
    i, j = (a.ravel() for a in np.indices((solved.n, solved.n)))
    out = np.zeros(solved.n**2, np.int64)
    apart = i != j
    out[apart] = solved.relation(i[apart], j[apart])
    return out.reshape(solved.n, solved.n)


def turn_evidence(solved: Solved, rng: np.random.Generator, accuracy: float) -> Floats:
    """(N, 4) log-probabilities of canvas turns whose likeliest turn is right with the given probability."""
    wrong = (solved.turns + rng.integers(1, z4.ORDER, solved.n)) % z4.ORDER
    told = np.where(rng.random(solved.n) < accuracy, solved.turns, wrong)
    p = np.full((solved.n, z4.ORDER), (1 - accuracy) / (z4.ORDER - 1) + 1e-9)
    p[np.arange(solved.n), told] = accuracy
    return np.asarray(np.log(p / p.sum(axis=1, keepdims=True)))
