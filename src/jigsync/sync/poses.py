"""The paper's method for any angle: pair hypotheses -> angles -> places -> poses, nothing rounded.

    beliefs -> angles by an eigenvector -> places by least squares -> all poses at once -> what holds together

Every switch is one field of `PoseOptions`. Hypotheses of a pair exclude each other: angles are synchronized again with
weights that fall with each hypothesis' disagreement, and of each pair only the one that agrees best keeps its weight.
Everything reads the frame of the start through differences only: the answer is known up to one motion per component.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.sync.graph import Floats
from jigsync.sync.hypotheses import (
    best_of_pairs,
    displacements,
    doubted,
    graph_of,
    ordered,
    pairs_of,
    probabilities,
    sobered,
)
from jigsync.sync.pose_graph import PosePrior, chi_squared, covariances, refine
from jigsync.sync.pose_loops import believed
from jigsync.sync.rotation import cycle_filter, synchronize_angles
from jigsync.sync.translation import Prior, fit, fit_truncated
from jigsync.values import angles
from jigsync.values.arrangement import Poses
from jigsync.values.hypotheses import PairHypotheses

CYCLE_TOLERANCE: Final = math.radians(15)
"""Angles of a triangle that sum to more than this do not close."""

NARROWING: Final = tuple(math.radians(degrees) for degrees in (60, 40, 30, 20, 15, 10))
"""Widths, from round to round, of the kernel that weighs a hypothesis by how its angle agrees."""

FAINT: Final = 1e-4
"""What is left of the weight of a hypothesis that is not believed: it holds fragments that nothing else holds."""

WIDTH: Final = 4.0
START_WIDTH: Final = 100.0
"""Standard deviations: a hypothesis that is off by more than WIDTH is wrong; before the joint fit it may be START_WIDTH
off, for the places come from angles that were not fitted together with them."""

JOINS: Final = 0.25
"""Least belief in a hypothesis that joins two fragments. One alone between two parts always agrees."""

CERTAIN: Final = 1e4
"""How many times as much as the best hypothesis is known of what is given: pins, and that all angles are 0."""

GoOn = Callable[[str, float], bool]
"""Told of the stage and the share of the work that is done; False when the rest is to be left out."""

MEDIAN: Final = 2.366
"""Of a chi-squared of three degrees of freedom."""

MOST_SCALE: Final = 5.0
"""A measurer is not taken to be wrong about its errors by more than this factor; rather its hypotheses are wrong."""


@dataclass(frozen=True)
class PoseOptions:
    """How hypotheses become poses.

    Attributes:
        loops: hypotheses in loops of three and four that close gain belief, others lose (`pose_loops`).
        cycle_filter: the paper's filter: triangles whose angles do not sum to 0 halve the weights of their edges.
        iterated: angles are synchronized again with weights by agreement.
        truncated: truncated instead of plain least squares for places.
        joint: all poses are refined together, with the full information and a robust kernel.
    """

    loops: bool = True
    cycle_filter: bool = False
    iterated: bool = True
    truncated: bool = True
    joint: bool = True


PLAIN: Final = PoseOptions(loops=False, cycle_filter=True, iterated=False, truncated=False, joint=False)
"""The paper's steps and nothing else."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PoseResult(Poses):
    """Where synchronization puts every fragment: components, 0 the largest, are what believed and agreeing hypotheses
    hold together; one without a prior is centred on 0.

    Attributes:
        found: the hypotheses, each said from its lower-numbered fragment.
        chi2: (H,) how badly the poses fit each of them.
        agrees: (H,) at most one of each pair.
        holds: (H,) belief in what agrees and joins fragments, 0 for all else.
        prior: what was given.
        confidences: (N,) share of a fragment's hypotheses, by probability, that agree.
        scale: how many times larger errors seem to be than the information says, at least 1.
        energy: sum min(0, chi2 / 2 - log-odds) over what agrees; lower is better.
    """

    found: PairHypotheses
    chi2: Floats
    agrees: NDArray[np.bool_]
    holds: Floats
    prior: PosePrior | None
    confidences: Floats
    scale: float
    energy: float

    @cached_property
    def covariance(self) -> Floats:
        """(N, 3, 3) of (x, y, angle) towards the component, or towards the priors."""
        return self.scale**2 * covariances(self.found, self.holds, self.angle, self.xy, self.prior)


def synchronize_poses(
    hypotheses: PairHypotheses,
    options: PoseOptions | None = None,
    *,
    prior: PosePrior | None = None,
    upright: bool = False,
    go_on: GoOn = lambda stage, share: True,
) -> PoseResult:
    """Poses of all fragments.

    Args:
        prior: where single fragments should be, in the answer's frame.
        upright: all angles are known to be 0.
        go_on: asked between the rounds; once it says False, what has been found by then is the answer.
    """
    return _Job(ordered(hypotheses), options or PoseOptions(), prior, upright, go_on).run()


class _Job:
    """One synchronization of ordered hypotheses."""

    def __init__(
        self, found: PairHypotheses, options: PoseOptions, prior: PosePrior | None, upright: bool, go_on: GoOn
    ) -> None:
        self.found, self.options, self.upright, self.go_on = found, options, upright, go_on
        self.prior = _upright(found, prior) if upright else prior
        self.rough = doubted(found)
        self.pair = pairs_of(found)
        found = replace(found, log_odds=sobered(self.pair, found.log_odds, found.n))
        self.found = found
        self.p = probabilities(self.pair, found.log_odds)
        looped = options.loops and go_on("loops", 0.0)
        self.belief = probabilities(self.pair, believed(found, self.pair)) if looped else self.p
        self.weight = np.maximum(self.belief, FAINT)
        if options.cycle_filter:
            self.weight = cycle_filter(graph_of(found, self.weight), found.angle, CYCLE_TOLERANCE)
        self.components = graph_of(found, self.weight).components()

    def run(self) -> PoseResult:
        angle, weight = self._angles()
        xy = self._places(angle, weight)
        scale = 1.0
        if self.options.joint:
            angle, xy, scale = self._together(angle, xy)
        return self._result(angle, xy, scale)

    def _angles(self) -> tuple[Floats, Floats]:
        """Angles, and the weights of the hypotheses that agree with them."""
        found, weight = self.found, self.weight
        angle = self._turned(weight)
        for done, width in enumerate(NARROWING if self.options.iterated else ()):
            if not self.go_on("angles", 0.2 + 0.2 * done / len(NARROWING)):
                break
            off = angles.wrap(angle[found.j] - angle[found.i] - found.angle)
            score = self.weight * (width**2 / (width**2 + off**2)) ** 2
            weight = np.where(best_of_pairs(self.pair, score), score, FAINT * self.weight)
            angle = self._turned(weight)
        return angle, weight

    def _turned(self, weight: Floats) -> Floats:
        """Synchronized angles, each component turned as a whole to where the prior has it."""
        if self.upright:
            return np.zeros(self.found.n)
        angle = synchronize_angles(graph_of(self.found, weight), self.found.angle, self.components)
        if self.prior is None:
            return angle
        vote = self.prior.information[:, 2, 2] * angles.phase(self.prior.angle - angle)
        total = np.bincount(self.components, vote.real) + 1j * np.bincount(self.components, vote.imag)
        return angles.wrap(angle + np.angle(total)[self.components])

    def _places(self, angle: Floats, weight: Floats) -> Floats:
        graph = graph_of(self.found, weight)
        measured = displacements(self.rough, angle, weight)
        prior = None
        if self.prior is not None:
            known = np.einsum("naa->na", self.prior.information[:, :2, :2]).mean(axis=1, keepdims=True)
            prior = Prior(self.prior.xy, np.repeat(known, 2, axis=1))
        if self.options.truncated:
            return fit_truncated(
                graph, measured, self.components, prior, WIDTH, go_on=lambda: self.go_on("places", 0.4)
            ).xy
        return fit(graph, measured, self.components, prior).xy

    def _together(self, angle: Floats, xy: Floats) -> tuple[Floats, Floats, float]:
        """All poses at once: first by what anybody would believe of the errors, then by what the information says."""
        first = refine(
            self.rough,
            self.weight,
            angle,
            xy,
            width=WIDTH,
            start_width=START_WIDTH,
            prior=self.prior,
            go_on=lambda: self.go_on("poses", 0.6),
        )
        scale = self._scale(chi_squared(self.found, first.angle, first.xy))
        fine = refine(
            self.found,
            self.weight,
            first.angle,
            first.xy,
            width=WIDTH * scale,
            prior=self.prior,
            go_on=lambda: self.go_on("poses", 0.8),
        )
        return fine.angle, fine.xy, scale

    def _scale(self, chi2: Floats) -> float:
        """The median error of the best believed hypothesis of each pair, against what it should be."""
        trusted = best_of_pairs(self.pair, self.belief) & (self.belief > 0.5)
        return float(np.clip(np.sqrt(np.median(chi2[trusted]) / MEDIAN), 1.0, MOST_SCALE)) if trusted.any() else 1.0

    def _result(self, angle: Floats, xy: Floats, scale: float) -> PoseResult:
        found = self.found
        chi2 = chi_squared(found, angle, xy) / scale**2
        odds = found.log_odds - chi2 / 2
        agrees = best_of_pairs(self.pair, odds) & (chi2 <= WIDTH**2)
        holds = np.where(agrees & (self.belief >= JOINS), self.belief, 0.0)
        components = graph_of(found, holds).components()
        told = np.zeros(found.n, dtype=bool) if self.prior is None else self.prior.told[:, 0]
        size = np.bincount(components)
        middle = np.stack([np.bincount(components, xy[:, axis]) / size for axis in (0, 1)], axis=1)
        middle[np.unique(components[told])] = 0.0
        return PoseResult(
            angle,
            xy - middle[components],
            components,
            found=found,
            chi2=chi2,
            agrees=agrees,
            holds=holds,
            prior=self.prior,
            confidences=graph_of(found, self.p).share(agrees),
            scale=scale,
            energy=float(np.minimum(-odds[agrees], 0.0).sum()),
        )


def _upright(found: PairHypotheses, prior: PosePrior | None) -> PosePrior:
    """The prior, and that all angles are 0."""
    information = np.zeros((found.n, 3, 3)) if prior is None else prior.information.copy()
    information[:, 2, 2] += CERTAIN * found.information[:, 2, 2].max(initial=1.0)
    return PosePrior(np.zeros(found.n), np.zeros((found.n, 2)) if prior is None else prior.xy, information)
