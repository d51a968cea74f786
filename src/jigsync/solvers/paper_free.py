"""The paper's pipeline without a grid: pair hypotheses -> synchronized poses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.sync.graph import Graph, Ints
from jigsync.sync.pose_graph import PosePrior
from jigsync.sync.poses import CERTAIN, PoseOptions, PoseResult, synchronize_poses
from jigsync.values.arrangement import Poses
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.pose import Pose


def solve_free(request: SolveRequest, options: PoseOptions | None = None) -> Assignment:
    """Poses of all fragments that hypotheses or pins hold; of the others nothing is claimed."""
    budget = Budget(request)
    chosen = request.belonging
    found = request.measurements.hypotheses()
    if len(chosen) < len(request.ids):
        found = found.select(chosen)
    index = {request.ids[k]: at for at, k in enumerate(chosen.tolist())}
    pins = {index[name]: pin for name, pin in request.pins.items()}
    result = synchronize_poses(found, options, prior=_prior(found, pins), upright=request.upright, go_on=budget.go_on)
    component = _placed(result.component, pins)
    if not np.any(component >= 0):
        why = f"No hypothesis of how two fragments lie is likely to be true. {budget.stopped}"
        return Assignment.failure(len(request.ids), why.strip())
    poses = _poses(request, result, component, pins)
    confidences = np.zeros(len(request.ids))
    confidences[chosen] = np.where(component >= 0, result.confidences, 0.0)
    answer = Assignment.free(poses, confidences, result.energy, reason=_reason(component))
    return replace(answer, note=budget.stopped)


def _prior(found: PairHypotheses, pins: dict[int, Pose]) -> PosePrior | None:
    """Pins as poses that are known better than any hypothesis; once all are fitted, they hold exactly."""
    if not pins:
        return None
    angle, xy, information = np.zeros(found.n), np.zeros((found.n, 2)), np.zeros((found.n, 3, 3))
    best = np.einsum("haa->ha", found.information).max(axis=0, initial=np.finfo(float).tiny)
    for k, pin in pins.items():
        angle[k], xy[k] = pin.angle, pin.xy
        information[k] = CERTAIN * np.diag([best[:2].max(), best[:2].max(), best[2]])
    return PosePrior(angle, xy, information)


def _placed(components: Ints, pins: dict[int, Pose]) -> Ints:
    """(N,) component, 0 the largest; parts with pins are one, and fragments alone, without a pin, have none: -1."""
    n = len(components)
    lead = np.unique(components, return_index=True)[1][components]
    ends = np.array(sorted(pins), dtype=np.int64)
    i, j = np.concatenate([lead, ends[:-1]]), np.concatenate([np.arange(n), ends[1:]])
    apart = i != j
    whole = Graph(n, np.minimum(i, j)[apart], np.maximum(i, j)[apart], np.ones(int(apart.sum()))).components()
    alone = (np.bincount(whole)[whole] == 1) & (n > 1)
    alone[ends] = False
    placed = np.full(n, -1, np.int64)
    placed[~alone] = np.unique(whole[~alone], return_inverse=True)[1]
    return placed


def _poses(request: SolveRequest, result: PoseResult, component: Ints, pins: dict[int, Pose]) -> Poses:
    """Of all ids; what is given holds exactly."""
    placed = component >= 0
    angle = np.where(placed & (not request.upright), result.angle, 0.0)
    xy = np.where(placed[:, None], result.xy, 0.0)
    for k, pin in pins.items():
        angle[k], xy[k] = pin.angle, pin.xy
    n, chosen = len(request.ids), request.belonging
    whole = Poses.nowhere(n)
    whole.angle[chosen], whole.xy[chosen], whole.component[chosen] = angle, xy, component
    return whole


def _reason(component: Ints) -> str:
    parts, left = int(component.max()) + 1, int(np.sum(component < 0))
    reasons = []
    if parts > 1:
        reasons.append(f"The fragments fall into {parts} parts, and nothing is claimed of how these lie to each other.")
    if left:
        reasons.append(f"Nothing holds {left} of {len(component)} fragments to another one: they are left out.")
    return " ".join(reasons)
