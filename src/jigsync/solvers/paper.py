"""The paper's pipeline as a solver: synchronize turns, fix the gauge, synchronize positions, assign slots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jigsync.measure.measurements import DENSE_LIMIT, Measurements
from jigsync.puzzle import Grid
from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.solvers.energy import Ints, placement_energy
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.pipeline import SyncResult, synchronize

PAPER = DecodeOptions()
"""Dense edges, displacements conditioned on the synchronized turns: the paper's best deployable row."""

NEIGHBOURS_ONLY = DecodeOptions(
    rho="joint", symmetrized=True, confidence_threshold=0.05, confidence_weights=True, truncated=True
)
"""For measurements that tell nothing beyond direct neighbours: only pairs that seem to be neighbours are edges."""

LARGE_TOP_K = 20
"""Edges a fragment keeps in puzzles of more than DENSE_LIMIT fragments."""


@dataclass(frozen=True)
class Paper:
    """`jigsync-paper`; `options` None takes PAPER or NEIGHBOURS_ONLY, whichever the measurements call for."""

    options: DecodeOptions | None = None
    name: ClassVar[str] = "jigsync-paper"
    summary: ClassVar[str] = "The paper's pipeline: spectral turns, least-squares positions, Hungarian slots."
    assumes: ClassVar[str] = (
        "Most measured relations are right, or wrong without a common direction. Takes pins, holes, surplus fragments"
        " and unknown grids; parts that no measurement joins are placed beside each other and reported."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """Synchronizes once per candidate grid; the energy decides between grids."""
        members = request.belonging
        measurements = request.measurements
        if len(members) < len(request.ids):
            measurements = measurements.select(members)
        options = self.options or _options_for(measurements)
        scores, budget = request.measurements.sides(), Budget(request)
        best: Assignment | None = None
        grids = request.grids()
        for k, grid in enumerate(grids):
            if best is not None and not budget.go_on("synchronize", k / len(grids), best.energy):
                break
            pins = {int(np.searchsorted(members, f)): at for f, at in request.pinned(grid).items()}
            result = synchronize(measurements, grid, options, upright=request.upright, pins=pins)
            slots, turns = _spread(result, members, len(request.ids))
            energy = placement_energy(scores, grid, slots, turns)
            if best is None or best.energy is None or energy < best.energy:
                best = _assignment(request, grid, result, members, slots, turns, energy)
        if best is None:
            return Assignment.failure(len(request.ids), "There is nothing to place.")
        return replace(best, note=budget.stopped or best.note)


def _options_for(measurements: Measurements) -> DecodeOptions:
    options = NEIGHBOURS_ONLY if measurements.unit_only else PAPER
    return replace(options, top_k=LARGE_TOP_K) if measurements.n > DENSE_LIMIT else options


def _spread(result: SyncResult, members: Ints, n: int) -> tuple[Ints, Ints]:
    """Slots and turns of all fragments from those of the members."""
    slots, turns = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    slots[members] = result.slots
    turns[members] = np.where(result.slots >= 0, result.turns, 0)
    return slots, turns


def _assignment(
    request: SolveRequest, grid: Grid, result: SyncResult, members: Ints, slots: Ints, turns: Ints, energy: float
) -> Assignment:
    confidences = np.zeros(len(request.ids))
    confidences[members] = np.where(result.slots >= 0, result.confidences, 0.0)
    note = "" if result.connected else result.reason
    answer = Assignment.of(request, grid, slots, turns, energy, note=note)
    status = answer.status if result.connected else "partial"
    return replace(answer, confidences=confidences, status=status, reason=result.reason or answer.reason)
