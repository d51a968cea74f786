"""Rotation synchronization: every fragment's angle, up to one angle per component, from relative angles.

    H_ij = w_ij exp(-i theta_ij),  H Hermitian,  D = diag(sum_j w_ij),  D^-1 H z = z  for  z_i = exp(i theta_i)

when all theta_ij = theta_j - theta_i. So the angles of the leading eigenvector of D^-1/2 H D^-1/2 are the theta_i up to
the gauge. Quarter turns are the special case exp(i theta_ij) = i^(r_ij), whose vector is rounded to quarter turns.
Dividing by the degrees leaves the angles of consistent measurements as they are and keeps the vector from gathering on
a few heavy fragments of a large graph, where H itself loses the rest to round-off.
A wrong sign of theta_ij scores 1.00 on data whose angles are all 0 or 180 degrees: tests use mixed angles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from jigsync.sync.graph import Floats, Graph, Ints
from jigsync.values import angles, z4

Phases = NDArray[np.complex128]

DENSE_LIMIT: Final = 400
"""Components up to this size are diagonalised whole; larger ones by Lanczos."""

MAX_HALVINGS: Final = 20
"""No weight falls by more than 2^-20 against the best edge, so that no edge vanishes in round-off."""

_LANCZOS_TOLERANCE: Final = 1e-6
_LANCZOS_RESTARTS: Final = 500


def cycle_filter(graph: Graph, angle: Floats, tolerance: float = angles.QUARTER / 2) -> Floats:
    """(E,) weights after halving all three edges of every triangle a < b < c that does not close:

        |theta_ab + theta_bc - theta_ac| > tolerance

    Args:
        angle: (E,) theta_j - theta_i of each edge.
        tolerance: radians; half a quarter turn tells quarter turns apart exactly.
    """
    bad = np.zeros(len(graph), dtype=np.int64)
    for ab, bc, ac in graph.triangles():
        wrong = np.abs(angles.wrap(angle[ab] + angle[bc] - angle[ac])) > tolerance
        for edge in (ab, bc, ac):
            bad += np.bincount(edge[wrong], minlength=len(graph))
    halvings = np.minimum(bad - np.min(bad, initial=bad.max(initial=0)), MAX_HALVINGS)
    return np.asarray(graph.weight * 0.5**halvings)


def synchronize_turns(graph: Graph, relative: Ints, components: Ints) -> Ints:
    """Turns of all fragments; the lowest-numbered fragment of every component has turns 0.

    Args: relative (E,) turns k_j - k_i of each edge; components (N,) as `graph.components` gives them.
    Shapes: -> (N,).
    """
    turns = np.zeros(graph.n, dtype=np.int64)
    for members, vector in _vectors(graph, z4.phase(-relative), components):
        turns[members] = _rounded(vector)
    return turns


def synchronize_angles(graph: Graph, angle: Floats, components: Ints) -> Floats:
    """Angles of all fragments in [-pi, pi); the lowest-numbered fragment of every component has angle 0.

    Args: angle (E,) theta_j - theta_i of each edge; components (N,) as `graph.components` gives them.
    Shapes: -> (N,).
    """
    found = np.zeros(graph.n)
    for members, vector in _vectors(graph, angles.phase(-angle), components):
        found[members] = angles.wrap(np.angle(vector * vector[0].conj()))
    return found


def agreement(graph: Graph, relative: Ints, turns: Ints) -> Floats:
    """(N,) share of each fragment's edge weight whose relative turns fit the given turns; 0 without edges."""
    return graph.share((turns[graph.j] - turns[graph.i] - relative) % z4.ORDER == 0)


def _rounded(vector: Phases) -> Ints:
    """Turns nearest to a vector's angles, the first 0.

    An eigenvector's phase is arbitrary: z^4 of a perfect one is constant, so its mean angle / 4 is that phase.
    """
    phase = np.angle(np.sum(vector**4)) / z4.ORDER
    found = z4.turns_of_phase(vector * np.exp(-1j * phase))
    return np.asarray((found - found[0]) % z4.ORDER)


def _vectors(graph: Graph, unit: Phases, components: Ints) -> Iterator[tuple[Ints, Phases]]:
    """The members of every component of two or more, ascending, and their leading eigenvector."""
    hermitian = _hermitian(graph, unit)
    order = np.argsort(components, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(components[order])) + 1):
        if len(members) > 1:
            yield members, _leading_vector(hermitian[members][:, members])


def _hermitian(graph: Graph, unit: Phases) -> csr_matrix:
    """(N, N) D^-1/2 H D^-1/2 of H_ij = w_ij unit_ij; parallel edges add up."""
    h = graph.weight * unit
    rows, cols = np.concatenate([graph.i, graph.j]), np.concatenate([graph.j, graph.i])
    matrix = coo_matrix((np.concatenate([h, h.conj()]), (rows, cols)), shape=(graph.n, graph.n)).tocsr()
    degree = np.bincount(rows, weights=np.tile(graph.weight, 2), minlength=graph.n)
    scale = diags_array(1.0 / np.sqrt(np.maximum(degree, np.finfo(float).tiny)))
    return csr_matrix(scale @ matrix @ scale)


def _leading_vector(matrix: csr_matrix) -> Phases:
    n = matrix.shape[0]
    if n <= DENSE_LIMIT:
        return np.asarray(np.linalg.eigh(matrix.toarray())[1][:, -1], dtype=np.complex128)
    start = np.exp(1j * np.arange(n))  # fixed, so that the answer is; any vector with all frequencies would do
    try:
        _, vectors = eigsh(matrix, 1, which="LA", v0=start, ncv=40, tol=_LANCZOS_TOLERANCE, maxiter=_LANCZOS_RESTARTS)
    except ArpackNoConvergence as stuck:
        # Nearly equal leading eigenvalues: the best Ritz vector so far is as good a start as any other mixture.
        vectors = stuck.eigenvectors if stuck.eigenvectors.size else start[:, None]
    return np.asarray(vectors[:, -1], dtype=np.complex128)
