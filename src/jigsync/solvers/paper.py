"""The paper's pipeline as a solver: synchronize turns, fix the gauge, synchronize positions, assign slots.

Where the layout is free nothing is rounded: see `paper_free`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jigsync.solvers.base import Assignment, Budget, Pins, SolveRequest, over_grids
from jigsync.solvers.paper_free import solve_free
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.pipeline import SyncResult, synchronize
from jigsync.values.layout import Free, Grid
from jigsync.values.measurements import DENSE_LIMIT, Measurements

PAPER = DecodeOptions()
"""Dense edges, displacements conditioned on the synchronized turns: the paper's best deployable row."""

NEIGHBOURS_ONLY = DecodeOptions(
    rho="joint",
    symmetrized=True,
    confidence_threshold=0.1,
    confidence_weights=True,
    cycle_filter=False,
    iterated=True,
    truncated=True,
)
"""For measurements that tell nothing beyond direct neighbours: only pairs that seem to be neighbours are edges. Three
cells are never all neighbours of each other, so a triangle of such edges proves nothing."""

LARGE_TOP_K = 20
"""Edges a fragment keeps in puzzles of more than DENSE_LIMIT fragments."""


@dataclass(frozen=True)
class Paper:
    """`jigsync-paper`; `options` None takes PAPER or NEIGHBOURS_ONLY, whichever the measurements call for."""

    options: DecodeOptions | None = None
    name: ClassVar[str] = "jigsync-paper"
    layouts: ClassVar[tuple[str, ...]] = ("grid", "free")
    summary: ClassVar[str] = "The paper's pipeline: spectral turns, least-squares positions, Hungarian slots."
    assumes: ClassVar[str] = (
        "Most measured relations are right, or wrong without a common direction. Takes pins, holes, surplus fragments,"
        " unknown grids and free layouts; parts that no measurement joins are placed beside each other and reported."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """Synchronizes once per candidate grid, the energy decides between grids; or once, where the layout is free."""
        if isinstance(request.layout, Free):
            return solve_free(request)
        chosen = request.belonging
        measurements = request.measurements
        if len(chosen) < len(request.ids):
            measurements = measurements.select(chosen)
        options = self.options or _options_for(measurements)
        results: dict[Grid, SyncResult] = {}

        def attempt(grid: Grid, pins: Pins, to_beat: float) -> SyncResult:
            found = results[grid] = synchronize(measurements, grid, options, upright=request.upright, pins=pins)
            return found

        answer = over_grids(request, Budget(request), measurements.sides(), attempt)
        if not answer:
            return answer
        best = results[answer.grid]
        confidences = np.zeros(len(request.ids))
        confidences[chosen] = np.where(best.slots >= 0, best.confidences, 0.0)
        if best.connected:
            return replace(answer, confidences=confidences)
        return replace(answer, confidences=confidences, status="partial", reason=best.reason)


def _options_for(measurements: Measurements) -> DecodeOptions:
    options = NEIGHBOURS_ONLY if measurements.unit_only else PAPER
    return replace(options, top_k=LARGE_TOP_K) if measurements.n > DENSE_LIMIT else options
