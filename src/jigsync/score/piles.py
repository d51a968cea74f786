"""Scores of an answer component by component: is every fragment right towards the others of its component?

A component speaks for one picture at most: the one of which some rigid motion makes most of its fragments right
(`motion`, at the tolerances of `poses`). Its fragments of other pictures, and strangers, are wrong in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.score.motion import Pairs, best_motion
from jigsync.score.poses import SHARE
from jigsync.values import angles
from jigsync.values.placement import Placed, Placement


@dataclass(frozen=True, eq=False)
class PileScores:
    """What is right in an answer to a pile. Shapes: (N,) each, in the order of the ids.

    Attributes:
        right: the fragment is right towards its component.
        picture: of its component, -1 for none.
        home: the picture that the fragment belongs to, -1 for a stranger.
        placed: has it a place?
        component: its component, -1 where it has no place.
    """

    right: NDArray[np.bool_]
    picture: NDArray[np.int64]
    home: NDArray[np.int64]
    placed: NDArray[np.bool_]
    component: NDArray[np.int64]

    @property
    def belongs(self) -> NDArray[np.bool_]:
        """Which fragments belong to some picture."""
        return self.home >= 0

    @property
    def share_right(self) -> float:
        """Of the fragments that belong, the share that is right in the largest component of their picture."""
        good = 0
        for number in np.unique(self.home[self.belongs]):
            mine = self.right & (self.home == number)
            good += max((int((mine & (self.component == c)).sum()) for c in np.unique(self.component)), default=0)
        return good / max(1, int(self.belongs.sum()))

    @property
    def strangers_out(self) -> float | None:
        """Share of strangers that have no place; None where there are none."""
        strangers = ~self.belongs
        return float((~self.placed[strangers]).mean()) if strangers.any() else None

    @property
    def called_strangers(self) -> float:
        """Share of fragments that belong and have no place."""
        return float((~self.placed[self.belongs]).mean())

    @property
    def parted(self) -> float:
        """Share of the fragments that belong and stand in a component of their own picture."""
        mine = self.belongs
        return float((self.placed & (self.picture == self.home))[mine].mean())


def score_pile(
    placement: Placement, homes: Sequence[Mapping[str, Placed]], ids: Sequence[str], sizes: Mapping[str, float]
) -> PileScores:
    """Scores of a placement.

    Args:
        homes: of every picture, id -> where the fragment belongs.
        sizes: id -> sqrt(area), px.
    """
    n = len(ids)
    home = np.full(n, -1)
    for number, places in enumerate(homes):
        home[[k for k, name in enumerate(ids) if name in places]] = number
    component = np.array([-1 if placement[k].pose is None else placement[k].component for k in ids], dtype=np.int64)
    right, picture = np.zeros(n, dtype=bool), np.full(n, -1)
    for label in np.unique(component[component >= 0]):
        best: tuple[int, int, list[int]] | None = None
        for number in range(len(homes)):
            members = np.flatnonzero((component == label) & (home == number)).tolist()
            if not members:
                continue
            pairs = _pairs(placement, homes[number], [ids[k] for k in members], sizes)
            motion = best_motion(pairs)
            near = [] if motion is None else pairs.right(motion).tolist()
            good = [k for k, fits in zip(members, near, strict=True) if fits]
            if best is None or (len(good), len(members)) > best[:2]:
                best = len(good), len(members), good
                picture[component == label] = number
        if best is not None:
            right[best[2]] = True
    return PileScores(right, picture, home, component >= 0, component)


def _pairs(placement: Placement, home: Mapping[str, Placed], names: Sequence[str], sizes: Mapping[str, float]) -> Pairs:
    there, truth = [placement[name].pose for name in names], [home[name].pose for name in names]
    assert None not in there
    assert None not in truth
    a = np.array([pose.angle for pose in there if pose is not None])
    theta = np.array([pose.angle for pose in truth if pose is not None])
    xy = np.array([pose.xy for pose in there if pose is not None]).reshape(-1, 2)
    at = np.array([pose.xy for pose in truth if pose is not None]).reshape(-1, 2)
    return Pairs(angles.wrap(theta - a), xy, at, np.array([SHARE * sizes[name] for name in names]))
