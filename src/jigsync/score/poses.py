"""Scores of a solution by its poses, whatever the layout.

An answer is right up to one rigid motion of the whole. Fragments of different components do not claim to be placed
towards each other, so one motion can speak for one component only: the *best motion* is the one that makes most
fragments of some component right (`motion`), and fragments of all other components are wrong. With n fragments in the
truth:

    right     = |{i : angle within 5 degrees, centre within 10 % of sqrt(area_i)}| / n     after the best motion
    perfect   = right is 1
    contacts  = |{true contacts whose relative pose is right}| / |{true contacts}|
    claims    = |{claimed contacts whose relative pose is right}| / |{claimed contacts}|
    largest   = |largest set of fragments joined by true contacts whose relative pose is right| / n
    angle, xy = median errors of the fragments of the component, after the best motion
    upright   = is the best motion's angle within 5 degrees of zero, and are two fragments right?

Contacts do not need the motion. The relative pose of two fragments is right when their relative angle is within 5
degrees and their distance vector, compared in the mean of the two fragments' frames, within 10 % of the mean of their
sqrt(area). A claimed contact is two fragments of one component that touch in the answer; it is true when its relative
pose is right, as two that lie to each other as in truth touch there as well, up to the tolerance.

A fragment that is unplaced or missing in the solution is wrong, and so is every true contact it is in. Fragments that
the truth does not name are listed apart; a contact claimed with one of them is false. One fragment of an answer is
always right, as a motion can make it so: chance is 1 / n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jigsync.score.contacts import Contacts
from jigsync.score.motion import SLACK, TURN, Motion, Pairs, best_motion, rank
from jigsync.score.posed import posed
from jigsync.values import angles
from jigsync.values.errors import InputError
from jigsync.values.placement import Assembly, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

Ints = NDArray[np.int64]
Verdict = Literal["right", "turn", "slot", "unplaced", "foreign"]
"""Right; centre right but angle wrong; wrong place; nowhere; placed though the truth does not name it."""

SHARE: Final = 0.10
"""How far a right fragment's centre may be off, in its sqrt(area)."""


@dataclass(frozen=True)
class PoseScores:
    """The scores of one solution by its poses.

    Attributes:
        verdicts: of every fragment of the truth, after the best motion.
        foreign: fragments that are placed though the truth does not name them.
        motion: truth_from_answer, the best one; None where no fragment of the truth is placed.
        component: the one that the motion is of.
        true_contacts, right_contacts: pairs that touch in truth, and how many of them lie right; None: not known.
        claims, true_claims: pairs that touch in the answer, and how many of them lie right; None: not known.
        joined: fragments of the largest set that right contacts join; None: not known.
        angle_error: degrees; None where no fragment is placed.
        xy_error: in the unit of the poses, which is a pixel unless only cells are known.
    """

    verdicts: Mapping[str, Verdict]
    foreign: tuple[str, ...]
    motion: Pose | None
    component: int
    true_contacts: int | None
    right_contacts: int | None
    claims: int | None
    true_claims: int | None
    joined: int | None
    angle_error: float | None
    xy_error: float | None

    def count(self, verdict: Verdict) -> int:
        """How many fragments have a verdict."""
        return sum(found == verdict for found in self.verdicts.values())

    @property
    def fragments(self) -> int:
        """In the truth."""
        return len(self.verdicts)

    @property
    def placed(self) -> int:
        """How many of them the solution places."""
        return self.fragments - self.count("unplaced")

    @property
    def right(self) -> float:
        """Share of fragments right."""
        return self.count("right") / self.fragments

    @property
    def perfect(self) -> bool:
        """Is every fragment right?"""
        return self.count("right") == self.fragments

    @property
    def contacts(self) -> float | None:
        """Share of true contacts that are right; None where there are none."""
        return _share(self.right_contacts, self.true_contacts)

    @property
    def claimed(self) -> float | None:
        """Share of claimed contacts that are true; None where there are none."""
        return _share(self.true_claims, self.claims)

    @property
    def largest(self) -> float | None:
        """Share of fragments in the largest right component."""
        return _share(self.joined, self.fragments)

    @property
    def told(self) -> bool:
        """Does the best motion say how the answer stands? One fragment of several, which some motion fits, does not."""
        return self.motion is not None and self.count("right") >= min(2, self.fragments)

    @property
    def upright(self) -> bool:
        """Does the answer stand as the truth does?"""
        return self.motion is not None and self.told and abs(self.motion.angle) <= TURN

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: shares in 0..1, angles in degrees, null for what is not known or has no case."""
        motion = self.motion
        return {
            "fragments": self.fragments,
            "placed": self.placed,
            "foreign": list(self.foreign),
            "right": self.right,
            "perfect": self.perfect,
            "contacts": self.contacts,
            "claims": self.claimed,
            "largest": self.largest,
            "angle_error": self.angle_error,
            "xy_error": self.xy_error,
            "upright": self.upright,
            "motion": None if motion is None else {"angle": motion.degrees, "x": motion.xy[0], "y": motion.xy[1]},
        }


def score_poses(solution: Assembly, truth: Truth, puzzle: Puzzle | None = None) -> PoseScores:
    """Scores one solution by its poses; `posed` says what contacts and sizes are.

    Args:
        puzzle: its pixels tell the fragments' sizes and outlines; None takes all sizes from the cells of a grid.

    Raises:
        InputError: nothing tells the sizes, or these are not of the same puzzle, or the truth is empty.
    """
    both = posed(solution, truth, puzzle)
    return score_placement(both.answer, both.home, both.sizes, both.contacts, both.claimed)


def score_placement(
    answer: Placement,
    truth: Placement,
    sizes: Mapping[str, float],
    contacts: Contacts | None,
    claimed: Contacts | None,
) -> PoseScores:
    """The measures of poses in one unit.

    Args:
        sizes: sqrt(area) of every fragment of the truth.
        contacts: pairs of the truth's fragments that touch; None: not known.
        claimed: pairs that touch in the answer; None: not known.

    Raises:
        InputError: the answer places none of the truth's fragments but others, or the truth is empty.
    """
    if not truth:
        raise InputError("The truth names no fragment: there is nothing to score.")
    foreign = tuple(name for name, placed in answer.items() if placed.pose is not None and name not in truth)
    both = {name: answer[name] for name in truth if name in answer and answer[name].pose is not None}
    if foreign and not both:
        raise InputError(
            f"The solution places the fragment '{foreign[0]}', which the truth does not name, and none of those it"
            " does: the solution and the truth must be of the same puzzle."
        )
    poses = [(placed.pose, truth[name].pose) for name, placed in both.items()]
    pairs = _pairs([(at, home) for at, home in poses if at and home], [sizes[name] for name in both])
    component = np.array([placed.component for placed in both.values()], dtype=np.int64)
    verdicts: dict[str, Verdict] = dict.fromkeys(truth, "unplaced")
    motion, chosen, angle_error, xy_error = None, 0, None, None
    best = _best(pairs, component)
    if best is not None:
        chosen, found = best
        mine = component == chosen
        verdicts |= dict(zip(both, _verdicts(pairs, found, mine), strict=True))
        motion = Pose(found.angle, found.xy)
        angle_error, xy_error = (float(np.median(error[mine])) for error in pairs.errors(found))
        angle_error = math.degrees(angle_error)
    number = {name: k for k, name in enumerate(both)}
    right = None if contacts is None else _right_pairs(contacts, number, pairs, component)
    if claimed is not None:
        claimed = frozenset(pair for pair in claimed if not set(pair) <= set(foreign))
    return PoseScores(
        verdicts=verdicts,
        foreign=foreign,
        motion=motion,
        component=chosen,
        true_contacts=None if contacts is None else len(contacts),
        right_contacts=None if right is None else len(right),
        claims=None if claimed is None else len(claimed),
        true_claims=None if claimed is None else len(_right_pairs(claimed, number, pairs, component)),
        joined=None if right is None else _largest(right, len(both)),
        angle_error=angle_error,
        xy_error=xy_error,
    )


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _pairs(poses: Sequence[tuple[Pose, Pose]], sizes: Sequence[float]) -> Pairs:
    """Answers and truths as arrays."""
    turn = np.array([home.angle - at.angle for at, home in poses])
    xy, home = (np.array([pair[side].xy for pair in poses]).reshape(-1, 2) for side in (0, 1))
    return Pairs(np.asarray(angles.wrap(turn)), xy, home, SHARE * np.array(sizes))


def _best(pairs: Pairs, component: Ints) -> tuple[int, Motion] | None:
    """The component of which one motion makes most fragments right, and that motion; of equals as `best_motion`."""
    found = []
    for label in np.unique(component).tolist():
        own = pairs.keep(component == label)
        motion = best_motion(own)
        if motion is not None:
            found.append((rank(own, motion), -label, motion))
    if not found:
        return None
    _, label, motion = max(found, key=lambda one: one[:2])
    return -label, motion


def _verdicts(pairs: Pairs, motion: Motion, mine: NDArray[np.bool_]) -> list[Verdict]:
    right, near = pairs.right(motion), pairs.near(motion)
    return ["slot" if not (mine[k] and near[k]) else "right" if right[k] else "turn" for k in range(len(pairs))]


def _right_pairs(contacts: Contacts, number: Mapping[str, int], pairs: Pairs, component: Ints) -> Ints:
    """The contacts whose relative pose is right, as numbers of fragments. Shapes: -> (K, 2)."""
    both = np.array(
        [(number[one], number[other]) for one, other in sorted(contacts) if one in number and other in number],
        dtype=np.int64,
    ).reshape(-1, 2)
    i, j = both.T
    apart = angles.wrap(pairs.turn[j] - pairs.turn[i])
    middle = pairs.turn[i] + apart / 2
    off = angles.act(middle, pairs.xy[j] - pairs.xy[i]) - (pairs.home[j] - pairs.home[i])
    near = np.hypot(off[:, 0], off[:, 1]) <= (pairs.reach[i] + pairs.reach[j]) / 2 * (1 + SLACK)
    right = near & (np.abs(apart) <= TURN * (1 + SLACK)) & (component[i] == component[j])
    return np.asarray(both[right])


def _largest(joined: Ints, count: int) -> int:
    """Fragments of the largest set that pairs join, of `count` in all."""
    if not count:
        return 0
    graph = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(count, count))
    return int(np.bincount(connected_components(graph, directed=False)[1]).max())
