"""The measurement graph: which pairs carry a measurement, what hangs together, and its triangles.

Every edge is stored once as (i, j) with i < j and speaks in i's frame; a pair may have two parallel edges, one from
the measurement of (i, j) and one from the reversed measurement of (j, i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from jigsync.values.errors import FormatError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WEDGES_AT_ONCE: Final = 2_000_000


@dataclass(frozen=True, eq=False)
class Graph:
    """Edges i < j with weights.

    Shapes: i, j (E,) int64, weight (E,) float64 >= 0.
    """

    n: int
    i: Ints
    j: Ints
    weight: Floats

    def __post_init__(self) -> None:
        if len(self.i) and (np.any(self.i >= self.j) or self.i.min() < 0 or self.j.max() >= self.n):
            raise FormatError(f"Graph edges must be pairs i < j of 0..{self.n - 1}.")

    def __len__(self) -> int:
        return len(self.i)

    def components(self) -> Ints:
        """(N,) component number of every fragment, 0 the largest; edges of weight 0 do not connect."""
        live = self.weight > 0
        ones = np.ones(int(live.sum()))
        adjacency = coo_matrix((ones, (self.i[live], self.j[live])), shape=(self.n, self.n))
        _, label = connected_components(adjacency, directed=False)
        size = np.bincount(label)
        rank = np.empty(len(size), dtype=np.int64)
        rank[np.argsort(-size, kind="stable")] = np.arange(len(size))
        return np.asarray(rank[label], dtype=np.int64)

    def share(self, fits: NDArray[np.bool_]) -> Floats:
        """(N,) share of each fragment's edge weight that fits; 0 without edges. Shapes: fits (E,)."""
        good, total = (
            np.bincount(self.i, weights=w, minlength=self.n) + np.bincount(self.j, weights=w, minlength=self.n)
            for w in (self.weight * fits, self.weight)
        )
        return np.asarray(np.divide(good, total, out=np.zeros(self.n), where=total > 0))

    def triangles(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """All triangles a < b < c, in blocks, as edge numbers (ab, bc, ac); parallel edges count each.

        Shapes: three (T,) per block. Wedges ab, bc are joined, then closed by looking up ac.
        """
        key = self.i * self.n + self.j
        by_key = np.argsort(key, kind="stable")
        sorted_key = key[by_key]
        by_first = np.argsort(self.i, kind="stable")
        start = np.searchsorted(self.i[by_first], np.arange(self.n + 1))
        fan = np.diff(start)[self.j]
        ends = np.cumsum(fan)
        block = 0
        while block < len(self):
            base = ends[block - 1] if block else 0
            stop = max(block + 1, int(np.searchsorted(ends, base + _WEDGES_AT_ONCE, side="right")))
            ab = np.repeat(np.arange(block, stop), fan[block:stop])
            bc = by_first[ranges(start[self.j[block:stop]], fan[block:stop])]
            wanted = self.i[ab] * self.n + self.j[bc]
            low = np.searchsorted(sorted_key, wanted, side="left")
            count = np.searchsorted(sorted_key, wanted, side="right") - low
            yield np.repeat(ab, count), np.repeat(bc, count), by_key[ranges(low, count)]
            block = stop


def ranges(start: NDArray[Any], count: NDArray[Any]) -> Ints:
    """Concatenation of start[k] .. start[k] + count[k] - 1."""
    total = int(count.sum())
    return np.asarray(np.arange(total) + np.repeat(start - (np.cumsum(count) - count), count), dtype=np.int64)


def given_pairs(n: int, edges: NDArray[Any]) -> tuple[Ints, Ints]:
    """Variant A: the caller's undirected edge list as unique pairs i < j, ascending.

    Shapes: (E, 2) -> two (P,).
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n or np.any(pairs[:, 0] == pairs[:, 1])):
        raise FormatError(f"Given edges must join two different fragments of 0..{n - 1}.")
    key = np.unique(pairs.min(axis=1) * n + pairs.max(axis=1))
    return key // n, key % n


def strongest(graph: Graph, top_k: int) -> NDArray[np.bool_]:
    """(E,) keep an edge when it is among the `top_k` heaviest of either of its ends; parallel edges rank on their own.

    Ties go to the lower edge number, so the answer does not depend on a sort's whims.
    """
    keep = np.zeros(len(graph), dtype=bool)
    node = np.concatenate([graph.i, graph.j])
    edge = np.tile(np.arange(len(graph)), 2)
    order = np.lexsort((edge, -graph.weight[edge], node))
    first = np.searchsorted(node[order], np.arange(graph.n))
    rank = np.arange(len(order)) - first[node[order]]
    keep[edge[order[rank < top_k]]] = True
    return keep
