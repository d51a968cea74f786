"""`free`: poses of fragments of any shape, from pair hypotheses, outlines and matches.

seeds -> gap -> every hypothesis fitted by its contacts -> growth with fits -> joint polish, and again from there

What belongs to different components does not claim to lie towards each other: a merge without enough evidence is not
made.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.base import Assignment, Budget, SolveRequest
from jigsync.solvers.free.evidence import Evidence
from jigsync.solvers.free.growth import SLACK, Growth, Scene, State, agreeing
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.moves import improve
from jigsync.solvers.free.polish import QUICK, QUICK_ROUNDS, ROUNDS, SHARPEST, WIDEST, polish
from jigsync.solvers.free.refit import refit
from jigsync.solvers.free.shapes import Shapes
from jigsync.solvers.free.support import confidences, energy, support, without_strangers
from jigsync.values import angles
from jigsync.values.arrangement import Poses
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.outlines import Matches, Outlines

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RAW: Final = (0.03, 0.03, 0.03)
"""What measured hypotheses are off by beyond what they say: of the median fragment's size, twice, and radians."""
FITTED, WORN = 0.01, 0.2
"""The same of fitted ones, in all three, and what the gap adds per its share of the size: what was worn off varies."""
SEED: Final = 6
"""Fragments of a seed, at most."""
SURE: Final = 3.0
"""Score of a merge that seeds are made of."""
ENOUGH: Final = 1.0
"""Least score of a merge."""


GAP: Final = (0.01, 0.15)
"""Standard deviation of the gap that hypotheses show: of the median fragment's size, and of the gap."""
SAME: Final = 0.01
"""A gap that is found again within this share of the size is known: growth is not begun a second time."""
TRIES: Final = 40
"""Moves that are tried."""


class Free:
    """Poses without a grid."""

    name: ClassVar[str] = "free"
    layouts: ClassVar[tuple[str, ...]] = ("free",)
    summary: ClassVar[str] = "Free poses: seeds from loops, growth with collisions, joint polish with one unknown gap."
    assumes: ClassVar[str] = (
        "Fragments of any shape at any angle, and hypotheses about pairs of them; without outlines they are taken for"
        " squares."
    )

    def solve(self, request: SolveRequest) -> Assignment:
        """Places the fragments that belong."""
        budget = Budget(request)
        chosen = request.belonging
        measured = request.measurements
        pairs = measured.pairs
        if not isinstance(pairs, Hypothesised):
            pairs = Hypothesised(measured.hypotheses(), measured.cell or 1.0)
        known = pairs.select(chosen)
        index = {request.ids[i]: k for k, i in enumerate(chosen.tolist())}
        pinned = np.zeros(len(chosen), dtype=bool)
        state = State.apart(len(chosen))
        for name, pin in request.pins.items():
            k = index[name]
            pinned[k] = True
            state.pose[k] = *pin.xy, pin.angle
        if pinned.any():
            state.part[pinned] = np.flatnonzero(pinned)[0]
        pose, component, sure, value = _assemble(known, state, pinned, budget)
        n, parts = len(request.ids), int(component.max()) + 1
        if parts == 0:
            return Assignment.failure(n, f"No two fragments could be joined. {budget.stopped}".strip())
        poses = Poses.nowhere(n)
        poses.angle[chosen], poses.xy[chosen], poses.component[chosen] = pose[:, 2], pose[:, :2], component
        confidence = np.zeros(n)
        confidence[chosen] = sure
        left = int(np.sum(component < 0))
        reason = f"{left} of {len(chosen)} fragments found no place. " if left else ""
        reason += f"The others form {parts} groups that could not be joined." if parts > 1 else ""
        return replace(
            Assignment.free(poses, confidence, value, reason=reason.strip()),
            note=budget.stopped,
            stopped=bool(budget.stopped),
        )


def _assemble(
    known: Hypothesised, start: State, pinned: NDArray[np.bool_], budget: Budget
) -> tuple[Floats, Ints, Floats, float]:
    """(poses, components numbered by size and -1 for fragments that joined nothing, confidences, energy)."""
    outlines = known.outlines if known.outlines is not None else squares(known.n, known.size)
    nothing = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    joined = Joined.of(outlines, known.matches if known.matches is not None else nothing)
    shapes = Shapes.of(outlines)
    size = shapes.size
    raw = Evidence.of(known.found, size, np.array([RAW[0] * size, RAW[1] * size, RAW[2]]))
    gap = _first_gap(shapes, raw)
    trust = GAP[0] * size + GAP[1] * gap
    scene = Scene(shapes, raw, joined, gap, pinned)
    seeds = Growth(scene, start.copy(), SURE)
    seeds.run(lambda: budget.go_on("seeds", 0.1), largest=SEED, fit=False)
    state = seeds.state
    for turn in range(2):
        if budget.stopped:
            break
        fitted = polish(
            shapes, state.pose, _shared(state.part), joined, agreeing(scene, state.pose, state.part), gap=scene.gap,
            free=~pinned, gap_sigma=trust, expected=gap,
        )  # fmt: skip
        if turn and abs(fitted.gap - scene.gap) < SAME * size:
            break
        again = refit(shapes, Links.of(known.found), joined, fitted.gap, SLACK * size)
        hypotheses = again.links.hypotheses(known.n, known.found.log_odds)
        loose = FITTED + WORN * max(fitted.gap, 0.0) / size
        evidence = Evidence.of(hypotheses, size, loose * np.array([size, size, 1.0]))
        scene = Scene(shapes, evidence, joined, fitted.gap, pinned)
        growth = Growth(scene, start.copy(), ENOUGH)
        growth.run(partial(budget.go_on, "growing", 0.2 + 0.4 * turn))
        if not budget.stopped or _worth(scene, growth.state) < _worth(scene, state):
            state = growth.state
    state = improve(scene, state, ENOUGH, TRIES, lambda: budget.go_on("moving parts", 0.8))
    links = agreeing(scene, state.pose, state.part)
    rounds, (widest, sharpest) = (QUICK_ROUNDS, QUICK) if budget.stopped else (ROUNDS, (WIDEST, SHARPEST))
    done = polish(
        shapes, state.pose, state.part, joined, links, gap=scene.gap, free=~pinned, gap_sigma=trust, expected=gap,
        rounds=rounds, widest=widest, sharpest=sharpest,
    )  # fmt: skip
    found = support(scene, done.pose, state.part)
    found, component = without_strangers(found, by_size(state.part, pinned), pinned)
    return done.pose, component, confidences(found, component), energy(found, component)


def _worth(scene: Scene, state: State) -> float:
    """A state's energy."""
    return energy(support(scene, state.pose, state.part), state.part)


def _first_gap(shapes: Shapes, evidence: Evidence) -> float:
    """The gap that the surest hypotheses show as they were measured."""
    once = evidence.once
    best = np.argsort(-(evidence.worth + evidence.boost)[:once], kind="stable")[: max(4, shapes.outlines.n)]
    links = evidence.links.keep(best)
    found = shapes.contacts(links.i, links.j, links.i_from_j, shapes.reach)
    near = found.facing > 0.5
    return max(0.0, float(np.median(found.distance[near]))) if near.any() else 0.0


def _shared(part: Ints) -> Ints:
    """Clusters of at least three fragments; smaller ones say nothing about the gap."""
    count = np.bincount(part)
    return np.where(count[part] >= 3, part, -1)


def by_size(part: Ints, pinned: NDArray[np.bool_]) -> Ints:
    """Clusters numbered from 0, the pinned one first, then the largest first; -1 for a fragment that joined nothing.

    A fragment that is pinned, or the only one there is, has its place all the same.
    """
    names, index, count = np.unique(part, return_inverse=True, return_counts=True)
    with_pins = np.isin(names, part[pinned])
    order = np.lexsort((names, -count, ~with_pins))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    alone = (count == 1) & ~with_pins & (len(part) > 1)
    rank[alone] = -1
    return np.asarray(rank[index])


def squares(n: int, size: float) -> Outlines:
    """Outlines for fragments of which none was read: squares of the given side."""
    step = size / 16
    side = (np.arange(16) + 0.5) / 16 * size - size / 2
    top = np.stack([side, np.full(16, -size / 2)], axis=1)
    normal = np.tile([0.0, -1.0], (16, 1))
    turn = -np.repeat(np.arange(4), 16) * angles.QUARTER  # clockwise as displayed: top, right, bottom, left
    xy, out = angles.act(turn, np.tile(top, (4, 1))), angles.act(turn, np.tile(normal, (4, 1)))
    return Outlines(np.arange(n + 1) * 64, np.tile(xy, (n, 1)), np.tile(out, (n, 1)), step)
