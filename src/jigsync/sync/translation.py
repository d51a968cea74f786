"""Translation synchronization: positions from relative displacements, by weighted least squares.

    x* = argmin_x  sum_e v_e^T W_e v_e  +  sum_i (x_i - m_i)^T P_i (x_i - m_i),     v_e = x_j - x_i - d_e
    W_e = w_e (l_perp (I - u u^T) + l_r u u^T),  u = d / |d|    sector edges: the bearing is known, the distance barely
    W_e = w_e l_perp I                                           exact edges; l_r = l_perp gives the same everywhere

Units: cell pitches; x right, y down. Without the second (prior) sum every component is free to slide: it is returned
with mean 0. The residual of an edge is v^T W v; turning all d by any R in O(2) and W to R W R^T leaves each of them
as it is, truncated or not: the gauge theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.sparse.linalg import splu

from jigsync.sync.graph import Floats, Graph, Ints

L_PERP: Final = 1.0
L_R: Final = 0.1

DIRECT_LIMIT: Final = 1500
"""Fragments up to which the normal equations are factorised; beyond, conjugate gradients (a random graph of 10 000
fragments fills a factorisation completely and needs few iterations)."""

SMALL_SYSTEM: Final = 200
"""Unknowns up to which a dense solve is quicker than a sparse one."""

CG_TOLERANCE: Final = 1e-7
CG_ITERATIONS: Final = 2000

TRUNCATION_STEP: Final = 0.7
TRUNCATION_FLOOR: Final = 0.75
"""Cells (for w_e = 1): an edge this far off is wrong by a whole cell, not by noise."""

_DECISION_DIGITS: Final = 9


@dataclass(frozen=True, eq=False)
class Displacements:
    """The measured displacements of a graph's edges in one common frame.

    Shapes: xy (E, 2), weight (E, 2, 2) symmetric positive semidefinite.
    """

    xy: Floats
    weight: Floats

    def turned(self, matrix: NDArray[np.floating] | NDArray[np.integer]) -> Displacements:
        """R d and R W R^T for any R in O(2)."""
        r = np.asarray(matrix, dtype=np.float64)
        return Displacements(self.xy @ r.T, r @ self.weight @ r.T)


@dataclass(frozen=True, eq=False)
class Prior:
    """Where single fragments should be.

    Shapes: xy (N, 2) in cells, weight (N, 2) per axis; 0 for "no opinion".
    """

    xy: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class Fit:
    """Shapes: xy (N, 2); residuals (E,) v^T W v of every edge, also of the truncated ones; kept (E,) bool."""

    xy: Floats
    residuals: Floats
    kept: NDArray[np.bool_]

    @property
    def residual(self) -> float:
        """The attained minimum: sum over the edges that were kept."""
        return float(self.residuals[self.kept].sum())


def edge_weights(
    xy: Floats, exact: NDArray[np.bool_], weight: Floats, l_perp: float = L_PERP, l_r: float = L_R
) -> Floats:
    """W of every edge.

    Shapes: xy (E, 2), exact (E,) bool, weight (E,) -> (E, 2, 2).
    """
    length = np.linalg.norm(xy, axis=1, keepdims=True)
    unit = np.divide(xy, length, out=np.zeros_like(xy), where=length > 0)
    along = np.where(exact, 0.0, l_r - l_perp)
    outer = unit[:, :, None] * unit[:, None, :]
    return np.asarray(weight[:, None, None] * (l_perp * np.eye(2) + along[:, None, None] * outer))


def fit(graph: Graph, measured: Displacements, components: Ints, prior: Prior | None = None) -> Fit:
    """The least-squares positions. `graph.weight` is not used: W carries it."""
    kept = np.ones(len(graph), dtype=bool)
    xy = _solve(graph, measured, components, kept, prior)
    return Fit(xy, _residuals(graph, measured, xy), kept)


def fit_truncated(
    graph: Graph,
    measured: Displacements,
    components: Ints,
    prior: Prior | None = None,
    floor: float = TRUNCATION_FLOOR,
    go_on: Callable[[], bool] = lambda: True,
) -> Fit:
    """Truncated least squares: edges with a large residual are dropped, with a threshold that shrinks geometrically.

    Huang et al. 2017. The threshold on sqrt(v^T W v) starts at the largest residual and is lowered by the factor
    TRUNCATION_STEP down to `floor`; an edge may come back. A spanning forest of least residual is always
    kept, so that no component falls apart. Decisions read residuals rounded to 9 digits: round-off has no vote.
    `go_on` is asked before every round.
    """
    current = fit(graph, measured, components, prior)
    if len(graph) == 0:
        return current
    threshold = float(np.sqrt(current.residuals.max()))
    while threshold > floor and go_on():
        threshold = max(threshold * TRUNCATION_STEP, floor)
        off = np.asarray(np.round(np.sqrt(current.residuals), _DECISION_DIGITS), dtype=np.float64)
        kept = (off <= round(threshold, _DECISION_DIGITS)) | _spanning_forest(graph, off)
        xy = _solve(graph, measured, components, kept, prior, current.xy)
        current = Fit(xy, _residuals(graph, measured, xy), kept)
    return current


def _residuals(graph: Graph, measured: Displacements, xy: Floats) -> Floats:
    v = xy[graph.j] - xy[graph.i] - measured.xy
    return np.asarray(np.einsum("ea,eab,eb->e", v, measured.weight, v))


def _spanning_forest(graph: Graph, cost: Floats) -> NDArray[np.bool_]:
    """(E,) edges of a minimum spanning forest; of equal costs the lower edge number."""
    rank = np.empty(len(graph))
    rank[np.argsort(cost, kind="stable")] = np.arange(1, len(graph) + 1)
    key = graph.i * graph.n + graph.j
    best = np.lexsort((rank, key))
    first = best[np.concatenate([[True], np.diff(key[best]) != 0])]  # of parallel edges the cheapest
    tree = minimum_spanning_tree(coo_matrix((rank[first], (graph.i[first], graph.j[first])), shape=(graph.n, graph.n)))
    return np.isin(rank, tree.data)


def _solve(
    graph: Graph,
    measured: Displacements,
    components: Ints,
    kept: NDArray[np.bool_],
    prior: Prior | None,
    start: Floats | None = None,
) -> Floats:
    """Positions from the normal equations L x = b; each component without a prior is centred on 0."""
    n = graph.n
    i, j, w = graph.i[kept], graph.j[kept], measured.weight[kept]
    pull = np.einsum("eab,eb->ea", w, measured.xy[kept])
    b = np.zeros((n, 2))  # without edges bincount counts in integers
    for a in (0, 1):
        b[:, a] += np.bincount(j, pull[:, a], n) - np.bincount(i, pull[:, a], n)
    laplacian = _laplacian(n, i, j, w)
    size = np.bincount(components)
    free = np.ones(len(size), dtype=bool)
    if prior is not None:
        laplacian = csr_matrix(laplacian + diags_array(prior.weight.ravel()))
        b += prior.weight * prior.xy
        free = np.bincount(components, weights=prior.weight.min(axis=1)) <= 0
    if n <= DIRECT_LIMIT:
        xy = _direct(laplacian, b, np.unique(components, return_index=True)[1][free])
    else:
        xy = _iterative(laplacian, b, np.zeros_like(b) if start is None else start)
    mean = np.stack([np.bincount(components, weights=xy[:, a]) / size for a in (0, 1)], axis=1)
    mean[~free] = 0.0
    return np.asarray(xy - mean[components])


def _direct(laplacian: csr_matrix, b: Floats, held: Ints) -> Floats:
    """Factorised; `held`, one fragment of every free component, stays at 0."""
    moving = np.ones(len(b), dtype=bool)
    moving[held] = False
    index = np.flatnonzero(np.repeat(moving, 2))
    x = np.zeros(b.size)
    if len(index):
        part = laplacian[index][:, index]
        small = len(index) <= SMALL_SYSTEM
        x[index] = (
            np.linalg.solve(part.toarray(), b.ravel()[index]) if small else splu(part.tocsc()).solve(b.ravel()[index])
        )
    return x.reshape(-1, 2)


def _iterative(laplacian: csr_matrix, b: Floats, start: Floats) -> Floats:
    """Conjugate gradients, preconditioned by the diagonal, to |b - L x| <= CG_TOLERANCE |b|.

    A free component makes L singular but b consistent, which they do not mind. Written out because scipy's takes its
    inner products from a threaded BLAS, which on a busy machine spends six times as long waiting as computing.
    """
    diagonal = laplacian.diagonal()
    scale = np.divide(1.0, diagonal, out=np.ones_like(diagonal), where=diagonal > 0)
    goal = CG_TOLERANCE**2 * _dot(b.ravel(), b.ravel())
    x = start.ravel().copy()
    rest = b.ravel() - laplacian @ x
    step = scale * rest
    gain = _dot(rest, step)
    for _ in range(CG_ITERATIONS):
        if _dot(rest, rest) <= goal:
            break
        image = laplacian @ step
        size = gain / _dot(step, image)
        x += size * step
        rest -= size * image
        scaled = scale * rest
        before, gain = gain, _dot(rest, scaled)
        step = scaled + (gain / before) * step
    return x.reshape(-1, 2)


def _dot(a: Floats, b: Floats) -> float:
    return float(np.einsum("i,i->", a, b))


def _laplacian(n: int, i: Ints, j: Ints, w: Floats) -> csr_matrix:
    """(2N, 2N) block Laplacian: +W on the two diagonal blocks of an edge, -W off the diagonal."""
    a, b = (axis.ravel() for axis in np.indices((2, 2)))
    blocks = w.reshape(len(i), 4)
    rows, cols, values = [], [], []
    for left, right, sign in ((i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)):
        rows.append((2 * left[:, None] + a).ravel())
        cols.append((2 * right[:, None] + b).ravel())
        values.append(sign * blocks.ravel())
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))
    return coo_matrix(entries, shape=(2 * n, 2 * n)).tocsr()
