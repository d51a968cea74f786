"""Cases of study `gauge` at any angle: pair hypotheses whose frame is turned as a whole by any angle.

Theorem 1 in SO(2): theta_i -> theta_i + phi turns every measured displacement R(theta_i) xy and its weight
R(theta_i) L R(theta_i)^T by R(phi), so no residual sees phi. The joint fit of all poses reads poses through
differences only, r_e = (R(-theta_i)(t_j - t_i) - xy_e, theta_j - theta_i - theta_e), whatever its kernel. Reflections
are those of the displacements, as the theorem has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from jigsync.studies.planted_poses import Damage, Exists, plant_poses
from jigsync.sync.graph import Floats, Graph, Ints
from jigsync.sync.hypotheses import displacements, graph_of, ordered, pairs_of, probabilities
from jigsync.sync.pose_graph import refine
from jigsync.sync.rotation import synchronize_angles
from jigsync.sync.translation import Displacements, Fit, fit, fit_truncated
from jigsync.values import angles, z4
from jigsync.values.errors import OptionError
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.hypothesised import Hypothesised

JOINT: Final = "joint"
SOLVES: Final = ("isotropic", "anisotropic", "truncated", JOINT)
GRAPHS: Final = {
    "contacts": (1, Damage(noise=1.0)),
    "outliers": (1, Damage(noise=1.0, replaced=0.1, rivals=0.5, strays=0.5)),
    "two parts": (2, Damage(noise=1.0, strays=0.2)),
}
"""Name -> parts, damage."""
WIDTH: Final = 4.0
"""Standard deviations that truncation and the joint fit's kernel leave."""
PIECES: Final = 12
"""Of each bundled picture that is torn."""


@dataclass(frozen=True, eq=False)
class PoseCase:
    """Ordered hypotheses, synchronized angles in some frame, and the turn that would set them upright if known."""

    source: str
    graph_name: str
    n: int
    found: PairHypotheses
    angle: Floats
    true_turn: int | None
    solves: tuple[str, ...] = SOLVES

    @cached_property
    def graph(self) -> Graph:
        """Hypotheses as edges, weighed by their probability."""
        return graph_of(self.found, probabilities(pairs_of(self.found), self.found.log_odds))

    @cached_property
    def components(self) -> Ints:
        """(N,)"""
        return self.graph.components()

    @cached_property
    def unit(self) -> float:
        """Length of a typical displacement, px."""
        return float(np.median(np.linalg.norm(self.found.xy, axis=1)))

    def reflects(self, solve: str) -> bool:
        """Is the solve of displacements alone, which may be reflected?"""
        return solve != JOINT

    def fitted(self, solve: str, turn: Floats) -> Fit:
        """The fit in the frame turned (or reflected) as a whole by a matrix of O(2)."""
        reflected = np.linalg.det(turn) < 0
        angle = self.angle if reflected else angles.wrap(self.angle + angles.nearest(turn))
        measured = displacements(self.found, angle, self.graph.weight)
        if reflected:
            measured = measured.turned(turn)
        if solve == "isotropic":
            even = np.einsum("eaa->e", measured.weight) / 2
            measured = Displacements(measured.xy, even[:, None, None] * np.eye(2))
        if solve == "truncated":
            return fit_truncated(self.graph, measured, self.components, None, WIDTH)
        placed = fit(self.graph, measured, self.components)
        return self._jointly(angle, placed.xy) if solve == JOINT else placed

    def _jointly(self, angle: Floats, xy: Floats) -> Fit:
        done = refine(self.found, self.graph.weight, angle, xy, width=WIDTH, start_width=8 * WIDTH)
        c = WIDTH**2
        return Fit(done.xy, self.graph.weight * c * done.chi2 / (c + done.chi2), np.ones(len(self.found), dtype=bool))


def planted_case(graph_name: str, n: int, rng: np.random.Generator) -> PoseCase:
    """n (n + 1) planted fragments, in a frame that is off by an unknown number of turns."""
    parts, damage = GRAPHS[graph_name]
    planted = plant_poses(Exists(n * (n + 1), parts), damage, rng)
    case = hypothesised_case("planted", graph_name, n, planted.hypotheses)
    first = case.components == 0
    upright = np.angle(angles.phase(planted.angle - case.angle)[first].sum())
    true_turn = int(rng.integers(0, z4.ORDER))
    angle = angles.wrap(case.angle + upright - angles.of_turns(true_turn))
    return PoseCase(case.source, graph_name, n, case.found, angle, true_turn)


def hypothesised_case(source: str, graph_name: str, n: int, hypotheses: PairHypotheses) -> PoseCase:
    """Hypotheses of any source; their synchronized frame is as good as any."""
    found = ordered(hypotheses)
    graph = graph_of(found, probabilities(pairs_of(found), found.log_odds))
    angle = synchronize_angles(graph, found.angle, graph.components())
    return PoseCase(source, graph_name, n, found, angle, None)


def planted_cases(sizes: Iterable[int], seeds: int, seed: int) -> Iterator[PoseCase]:
    """Every planted graph in every size."""
    for k, (name, n) in enumerate((name, n) for name in GRAPHS for n in sizes):
        for s in range(seeds):
            yield planted_case(name, n, np.random.default_rng([seed, 1, k, s]))


def torn_cases(measurer: str | None, seed: int) -> Iterator[PoseCase]:
    """The bundled pictures, torn and measured: by their contours, or by the measurer named.

    Raises:
        OptionError: the measurer named gives sides and cells, no free hypotheses.
    """
    from jigsync import data
    from jigsync.api import tear
    from jigsync.measure import registry

    for name in data.names():
        puzzle = tear(data.picture(name), PIECES, seed, size=96)
        used = measurer or "contours"
        pairs = registry.get(used).measure(puzzle).pairs
        if not isinstance(pairs, Hypothesised):
            raise OptionError(f"The measurer '{used}' gives no free hypotheses: the study takes those that do.")
        yield hypothesised_case(used, name, PIECES, pairs.found)
