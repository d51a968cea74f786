"""From log-probabilities to edges: which relative turns and which displacement a pair is taken to report.

Every switch of the paper's ablation is one field of `DecodeOptions`, so an ablation grid is a list of options.

    joint         (b, r) = argmax p(b, r)
    marginal      r = argmax sum_b p(b, r),   b = argmax sum_r p(b, r)
    conditioned   r = argmax sum_b p(b, r);   once turns are synchronized, b = argmax_b p(b, k_j - k_i)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jigsync.sync.graph import Floats, Graph, Ints, strongest
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import bad_value
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements

_ROWS_AT_ONCE: Final = 50_000
"""Pairs decoded at a time: 50 000 x 192 float32 is 38 MB."""

_TIE: Final = 1 + 1e-4


@dataclass(frozen=True)
class DecodeOptions:
    """How measurements become edges, edges become positions, and the gauge is chosen.

    Attributes:
        rho: what a pair reports, see above.
        symmetrized: average each pair with its reverse; otherwise both directions are edges of their own.
        mask_impossible: relations that the grid cannot hold have probability 0.
        cell_prior: what single fragments tell about their cell enters the translation fit.
        tier_weights: factors on the translation weight of near, mid and far edges; None for 1, 1, 1.
        loop_weights: translation weights times (1 + closing triangles) / (1 + triangles).
        loop_support: keep only edges in at least so many triangles whose relative poses close.
        confidence_threshold: keep only edges whose likeliest relation has at least this probability.
        confidence_weights: translation weights times the probability of the decoded displacement.
        top_k: keep only each fragment's strongest edges; None for all.
        cycle_filter: halve the weights of triangles whose turns do not close, before the turns are synchronized.
        bearing_weights: mid and far edges bind the bearing (l_perp = 1) more than the distance (l_r = 0.1).
        iterated: fit, assign, trust the edges that agree, until the assignment stays.
        truncated: truncated instead of plain least squares.
        edges: "dense" (variant C, all known pairs) or "given" (variant A, the caller's edge list).
        gauge: "evidence", or "residual": the vacuous first row of the paper.
    """

    rho: Literal["joint", "marginal", "conditioned"] = "conditioned"
    symmetrized: bool = False
    mask_impossible: bool = False
    cell_prior: bool = False
    tier_weights: tuple[float, float, float] | None = None
    loop_weights: bool = False
    loop_support: int = 0
    confidence_threshold: float = 0.0
    confidence_weights: bool = False
    top_k: int | None = None
    cycle_filter: bool = True
    bearing_weights: bool = True
    iterated: bool = False
    truncated: bool = False
    edges: Literal["dense", "given"] = "dense"
    gauge: Literal["evidence", "residual"] = "evidence"

    def __post_init__(self) -> None:
        choices = {
            "rho": ("joint", "marginal", "conditioned"),
            "edges": ("dense", "given"),
            "gauge": ("evidence", "residual"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise bad_value(name, "decoding", f"one of {', '.join(allowed)}", getattr(self, name))
        if self.tier_weights is not None and (len(self.tier_weights) != 3 or min(self.tier_weights) < 0):
            raise bad_value("tier_weights", "decoding", "three numbers of at least 0", self.tier_weights)
        if not 0 <= self.confidence_threshold <= 1:
            raise bad_value("confidence_threshold", "decoding", "between 0 and 1", self.confidence_threshold)
        if self.loop_support < 0:
            raise bad_value("loop_support", "decoding", "an integer of at least 0", self.loop_support)
        if self.top_k is not None and self.top_k < 1:
            raise bad_value("top_k", "decoding", "an integer of at least 1, or None", self.top_k)


@dataclass(frozen=True, eq=False)
class Edges:
    """Decoded edges i < j in i's frame; `backward` ones were measured as (j, i) and reversed.

    Attributes:
        relative: (E,) relative turns k_j - k_i.
        turn_weight: (E,) how far `relative` is trusted: its probability, 0 for a tie.
        confidence: (E,) probability of the likeliest relation.
        bucket: (E,) displacement bucket; -1 while it waits for synchronized turns.
        place_weight: (E,) probability of that bucket, 0 for a tie.
    """

    i: Ints
    j: Ints
    backward: NDArray[np.bool_]
    relative: Ints
    turn_weight: Floats
    confidence: Floats
    bucket: Ints
    place_weight: Floats

    def __len__(self) -> int:
        return len(self.i)

    def graph(self, n: int, weight: Floats) -> Graph:
        """These edges under the given weights."""
        return Graph(n, self.i, self.j, weight)

    def select(self, keep: NDArray[Any]) -> Edges:
        """Some of the edges."""
        return Edges(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))


def _chunks(
    measurements: Measurements,
    i: Ints,
    j: Ints,
    backward: NDArray[np.bool_],
    possible: NDArray[np.bool_] | None,
    symmetrized: bool,
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Probabilities (M, 48, 4) of the edges, a block of rows at a time; each row sums to 1."""
    for start in range(0, len(i), _ROWS_AT_ONCE):
        rows = slice(start, min(start + _ROWS_AT_ONCE, len(i)))
        a, b, back = i[rows], j[rows], backward[rows]
        if symmetrized:
            log_p = measurements.symmetric(a, b)
        else:
            log_p = measurements.pair_log_p(np.where(back, b, a), np.where(back, a, b))
            log_p[back] = log_p[back][:, v.REVERSE]
        p = np.exp(log_p)
        if possible is not None:
            p = p * possible
        total = p.sum(axis=1, keepdims=True)
        p = np.divide(p, total, out=np.full_like(p, 1.0 / v.RELATIONS), where=total > 0)
        yield rows, p.reshape(len(a), v.BUCKETS, z4.ORDER)


def _possible(grid: Grid, options: DecodeOptions) -> NDArray[np.bool_] | None:
    return v.possible(grid) if options.mask_impossible else None


def decode_turns(
    measurements: Measurements, pairs: tuple[Ints, Ints], grid: Grid, options: DecodeOptions, upright: bool = False
) -> Edges:
    """First pass: relative turns of all pairs; displacements too, unless they wait for synchronized turns.

    `upright` restricts the relations to relative turns 0. Weak edges are dropped as the options ask.
    """
    i, j = pairs
    backward = np.zeros(len(i), dtype=bool)
    if not options.symmetrized:
        i, j, backward = np.tile(i, 2), np.tile(j, 2), np.repeat([False, True], len(i))
    e = len(i)
    relative, bucket = np.zeros(e, np.int64), np.full(e, -1, np.int64)
    turn_weight, confidence, place_weight = np.zeros(e), np.zeros(e), np.zeros(e)
    for rows, p in _chunks(measurements, i, j, backward, _possible(grid, options), options.symmetrized):
        if upright:
            p = p[:, :, :1] / np.maximum(p[:, :, :1].sum(axis=1, keepdims=True), np.finfo(float).tiny)
        flat = p.reshape(len(p), -1)
        confidence[rows] = flat.max(axis=1)
        if options.rho == "joint":
            best, turn_weight[rows] = _clear_maximum(flat)
            bucket[rows], relative[rows] = np.divmod(best, p.shape[2])
            place_weight[rows] = turn_weight[rows]
        else:
            relative[rows], turn_weight[rows] = _clear_maximum(p.sum(axis=1))
        if options.rho == "marginal":
            bucket[rows], place_weight[rows] = _clear_maximum(p.sum(axis=2))
    edges = Edges(i, j, backward, relative, turn_weight, confidence, bucket, place_weight)
    told = (edges.turn_weight > 0) | (edges.place_weight > 0)
    edges = edges.select(told & (edges.confidence >= options.confidence_threshold))
    if options.top_k is not None:
        edges = edges.select(strongest(edges.graph(measurements.n, edges.confidence), options.top_k))
    return edges


def decode_buckets(measurements: Measurements, edges: Edges, turns: Ints, grid: Grid, options: DecodeOptions) -> Edges:
    """Second pass: the displacement of every edge given synchronized turns, b = argmax_b p(b | r = k_j - k_i).

    Only differences of turns are used, so this does not wait for the gauge.
    """
    if options.rho != "conditioned":
        return edges
    relative = (turns[edges.j] - turns[edges.i]) % z4.ORDER
    bucket, place_weight = np.zeros(len(edges), np.int64), np.zeros(len(edges))
    blocks = _chunks(measurements, edges.i, edges.j, edges.backward, _possible(grid, options), options.symmetrized)
    for rows, p in blocks:
        given = p[np.arange(len(p)), :, relative[rows]]
        total = given.sum(axis=1, keepdims=True)
        given = np.divide(given, total, out=np.zeros_like(given), where=total > 0)
        bucket[rows], place_weight[rows] = _clear_maximum(given)
    return replace(edges, relative=relative, bucket=bucket, place_weight=place_weight)


def _clear_maximum(p: NDArray[np.float32]) -> tuple[Ints, Floats]:
    """Where the maximum of each row is, and the maximum; 0 when it is shared: a tie tells nothing.

    Shapes: (M, K) -> two (M,).
    """
    best = p.argmax(axis=1)
    if p.shape[1] == 1:
        return best, p[:, 0].astype(np.float64)
    second, first = np.partition(p, -2, axis=1)[:, -2:].T
    return best, np.where(first > second * _TIE, first, 0.0).astype(np.float64)
