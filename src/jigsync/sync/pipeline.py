"""The paper's pipeline: measurements -> turns -> gauge -> positions -> slots.

    decode -> cycle filter -> rotation synchronization -> displacement decode -> loops -> gauge -> translation -> slots

All edges live in their first fragment's frame; canvas displacements are R(k_i) d. The gauge g turns the canvas:
k_i -> k_i + g, x_i -> R(g) x_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.sync.assignment import assign, cells_xy
from jigsync.sync.decode import DecodeOptions, Edges, decode_buckets, decode_turns
from jigsync.sync.graph import Floats, Graph, Ints, given_pairs
from jigsync.sync.loops import loop_support
from jigsync.sync.rotation import agreement, cycle_filter, synchronize_turns
from jigsync.sync.translation import L_PERP, L_R, Displacements, Fit, Prior, edge_weights, fit, fit_truncated
from jigsync.values import angles, z4
from jigsync.values import gauge as gauges
from jigsync.values import vocabulary as v
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements

RESIDUALS_LIMIT: Final = 400
"""Fragments up to which all four gauges are fitted even though only the vacuous rule would look at them."""

MAX_ROUNDS: Final = 20
"""Rounds of fit and assignment before a cycle is given up on."""

_PIN_WEIGHT: Final = 1e3


@dataclass(frozen=True, eq=False, kw_only=True)
class SyncResult(Arrangement):
    """Where synchronization puts every fragment; unplaced ones have canvas turns, too.

    Attributes:
        gauge: of the largest component.
        gauge_turns: (C,) global turn that was added to each component.
        residuals: (4,) minimal translation residual in each gauge, all equal in theory; None when not computed.
        components: (N,) component of each fragment, 0 the largest.
        xy: (N, 2) continuous positions in cells, before slots; components are centred on 0 unless anchored.
        confidences: (N,) share of a fragment's edges (by confidence) that agree with the placement.
        turn_confidences: (N,) share of a fragment's edge weight whose relative turns agree with the turns.
        edges: the decoded edges.
        reason: why the answer is not the whole story; empty when it is.
    """

    gauge: Gauge
    gauge_turns: Ints
    residuals: Floats | None
    components: Ints
    xy: Floats
    confidences: Floats
    turn_confidences: Floats
    edges: Edges
    reason: str

    @property
    def connected(self) -> bool:
        """Do all fragments hang together?"""
        return int(self.components.max(initial=0)) == 0


def synchronize(
    measurements: Measurements,
    grid: Grid,
    options: DecodeOptions | None = None,
    edges: NDArray[Any] | None = None,
    *,
    upright: bool = False,
    pins: Mapping[int, tuple[int, int]] | None = None,
) -> SyncResult:
    """Places all fragments.

    Args:
        edges: (E, 2) pairs of fragments, for options.edges == "given" (variant A).
        upright: all canvas turns are known to be 0.
        pins: fragment -> (slot, turns), hard constraints.
    """
    options = options or DecodeOptions()
    pins = pins or {}
    n = measurements.n
    if (options.edges == "given") != (edges is not None):
        raise OptionError("An edge list must be passed exactly when the 'edges' of decoding is 'given'.")
    pairs = measurements.known_pairs() if edges is None else given_pairs(n, edges)
    found = decode_turns(measurements, pairs, grid, options, upright)
    graph = found.graph(n, found.turn_weight)
    if options.cycle_filter:
        graph = found.graph(n, cycle_filter(graph, np.asarray(found.relative * angles.QUARTER, dtype=np.float64)))
    turns = np.zeros(n, np.int64) if upright else synchronize_turns(graph, found.relative, graph.components())
    turn_confidences = agreement(graph, found.relative, turns)
    found = decode_buckets(measurements, found, turns, grid, options)
    found, weight = _place_weights(found, n, grid, options)
    graph = found.graph(n, weight)
    job = _Job(measurements, grid, options, graph, found, graph.components(), turns, turn_confidences, upright, pins)
    return job.run()


def _place_weights(edges: Edges, n: int, grid: Grid, options: DecodeOptions) -> tuple[Edges, Floats]:
    """The edges that enter the translation fit, and their scalar weights."""
    edges = edges.select(edges.place_weight > 0)
    if options.loop_support > 0 or options.loop_weights:
        closing, total = loop_support(
            edges.graph(n, np.ones(len(edges))), edges.relative, edges.bucket, v.nominal_xy(grid)
        )
        keep = closing >= options.loop_support
        edges, closing, total = edges.select(keep), closing[keep], total[keep]
    weight = np.ones(len(edges))
    if options.loop_weights:
        weight = weight * (1 + closing) / (1 + total)
    if options.tier_weights is not None:
        weight = weight * np.asarray(options.tier_weights, dtype=np.float64)[v.TIER[edges.bucket]]
    if options.confidence_weights:
        weight = weight * edges.place_weight
    return edges, weight


@dataclass(frozen=True, eq=False)
class _Job:
    """Everything after decoding: turns are known up to one turn a component, edges have their displacements."""

    measurements: Measurements
    grid: Grid
    options: DecodeOptions
    graph: Graph
    edges: Edges
    components: Ints
    turns: Ints
    turn_confidences: Floats
    upright: bool
    pins: Mapping[int, tuple[int, int]]

    def run(self) -> SyncResult:
        count = int(self.components.max(initial=-1)) + 1
        probabilities = np.array([self._evidence(c) for c in range(count)]).reshape(count, z4.ORDER)
        residuals = None
        if self.options.gauge == "residual" or self.graph.n <= RESIDUALS_LIMIT:
            residuals = np.array([self._fit(np.full(count, g)).residual for g in range(z4.ORDER)])
        chosen = self._choose(probabilities, residuals)
        turns = (self.turns + chosen[self.components]) % z4.ORDER if count else self.turns
        prior = self._prior()
        fixed = np.full(self.graph.n, -1, np.int64)
        for fragment, (slot, pinned_turns) in self.pins.items():
            fixed[fragment], turns[fragment] = slot, pinned_turns
        xy, slots = self._place(chosen, prior, fixed)
        return SyncResult(
            self.grid,
            slots,
            turns,
            gauge=gauges.reported(turns, probabilities[0], int(chosen[0])) if count else Gauge(),
            gauge_turns=chosen,
            residuals=residuals,
            components=self.components,
            xy=xy,
            confidences=self._confidences(slots, turns),
            turn_confidences=self.turn_confidences,
            edges=self.edges,
            reason=self._reason(count, slots),
        )

    def _evidence(self, component: int) -> Floats:
        """(4,) probabilities of the component's global turn; pins outrank what fragments tell."""
        members = np.flatnonzero(self.components == component)
        if self.upright:
            return np.array([1.0, 0.0, 0.0, 0.0])
        pinned = [k for k in members.tolist() if k in self.pins]
        if pinned:
            sure = np.full((len(pinned), z4.ORDER), -np.inf)
            sure[np.arange(len(pinned)), [self.pins[k][1] for k in pinned]] = 0.0
            return gauges.evidence(self.turns[pinned], sure)
        unary = self.measurements.unary_turns
        return gauges.evidence(self.turns[members], None if unary is None else unary[members])

    def _choose(self, probabilities: Floats, residuals: Floats | None) -> Ints:
        """(C,) the global turn of every component."""
        score = probabilities
        if self.options.gauge == "residual" and not self.pins and not self.upright:
            assert residuals is not None
            score = np.zeros_like(probabilities)
            score[:, gauges.fix_by_residual(residuals)] = 1.0
        told = len(score) > 1 and np.ptp(score[0]) > 0
        if self.grid.rows != self.grid.cols and not self.pins and not self.upright and len(score) and not told:
            # A grid that is not square tells even from odd turns: one parity of the layout fits it better. A part of
            # a layout may fit it both ways; then evidence, if there is any, has the better argument.
            score = np.array(score)
            score[0, 1 - self._parity() :: 2] = -1.0
        return np.array([gauges.fix_by_evidence(row) for row in score], dtype=np.int64)

    def _parity(self) -> int:
        """0 when the largest component is longer along the grid's longer axis in its present frame, else 1."""
        chosen = np.zeros(int(self.components.max()) + 1, np.int64)
        wide, high = self._fit(chosen).xy[self.components == 0].var(axis=0).round(9)
        return int(wide < high) if self.grid.cols > self.grid.rows else int(wide > high)

    def _measured(self, chosen: Ints, trust: Floats | None = None) -> Displacements:
        """Displacements in the canvas with every component's global turn added."""
        canvas_turns = (self.turns + chosen[self.components]) % z4.ORDER
        frame = v.nominal_xy(self.grid)[self.edges.bucket]
        turned = np.stack([z4.act(k, frame) for k in range(z4.ORDER)])
        xy = turned[canvas_turns[self.edges.i], np.arange(len(frame))]
        weight = self.graph.weight if trust is None else self.graph.weight * trust
        exact = v.TIER[self.edges.bucket] == v.NEAR
        return Displacements(
            xy, edge_weights(xy, exact, weight, L_PERP, L_R if self.options.bearing_weights else L_PERP)
        )

    def _fit(self, chosen: Ints, prior: Prior | None = None, trust: Floats | None = None) -> Fit:
        solve = fit_truncated if self.options.truncated else fit
        return solve(self.graph, self._measured(chosen, trust), self.components, prior)

    def _prior(self) -> Prior | None:
        """Pins, and what single fragments tell about their cell when the options ask for it."""
        xy, weight = np.zeros((self.graph.n, 2)), np.zeros((self.graph.n, 2))
        unary = self.measurements.unary_cells
        if self.options.cell_prior and unary is not None:
            size = np.array([self.grid.cols, self.grid.rows], dtype=np.float64)
            xy = unary.xy * size - 0.5
            weight = 1.0 / np.maximum(unary.sigma[:, None] * size, 1e-3) ** 2
        for fragment, (slot, _) in self.pins.items():
            xy[fragment], weight[fragment] = cells_xy(np.array([slot]), self.grid)[0], _PIN_WEIGHT
        return Prior(xy, weight) if np.any(weight > 0) else None

    def _place(self, chosen: Ints, prior: Prior | None, fixed: Ints) -> tuple[Floats, Ints]:
        """Fit and assign, once or until the assignment stays."""
        count = len(chosen)
        anchored = np.zeros(count, dtype=bool)
        if prior is not None:
            anchored = np.bincount(self.components, weights=prior.weight.min(axis=1), minlength=count) > 0
        trust: Floats | None = None
        before: Ints | None = None
        for _ in range(MAX_ROUNDS if self.options.iterated else 1):
            xy = self._fit(chosen, prior, trust).xy
            slots = assign(xy, self.components, self.grid, anchored=anchored, fixed=fixed)
            if before is not None and np.array_equal(slots, before):
                break
            before, trust = slots, self._trust(slots, chosen)
        return xy, slots

    def _trust(self, slots: Ints, chosen: Ints) -> Floats:
        """(E,) 1 / (1 + |d_e - (cell_j - cell_i)|^2): edges that the assignment bears out keep their weight."""
        i, j = self.graph.i, self.graph.j
        cells = cells_xy(slots, self.grid)
        off = np.sum((self._measured(chosen).xy - (cells[j] - cells[i])) ** 2, axis=1)
        return np.where((slots[i] < 0) | (slots[j] < 0), 1.0, 1.0 / (1.0 + off))

    def _confidences(self, slots: Ints, turns: Ints) -> Floats:
        i, j, n = self.graph.i, self.graph.j, self.graph.n
        agrees = np.zeros(len(i), dtype=bool)
        both = (slots[i] >= 0) & (slots[j] >= 0)
        a, b = i[both], j[both]
        (row_a, col_a), (row_b, col_b) = np.divmod(slots[a], self.grid.cols), np.divmod(slots[b], self.grid.cols)
        placed = v.relation_of(row_b - row_a, col_b - col_a, turns[a], turns[b])
        agrees[both] = placed == z4.ORDER * self.edges.bucket[both] + self.edges.relative[both]
        return self.edges.graph(n, self.edges.confidence).share(agrees)

    def _reason(self, count: int, slots: Ints) -> str:
        left = int(np.sum(slots < 0))
        reasons = []
        if count > 1:
            reasons.append(f"The measurements fall into {count} parts whose place against each other is a guess.")
        if left:
            reasons.append(f"{left} of {len(slots)} fragments did not fit into the {self.grid} grid.")
        return " ".join(reasons)
