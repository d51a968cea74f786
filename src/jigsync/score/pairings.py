"""What papers on matching pairs of fragments report, of whole answers.

    pair precision  = |claimed and true pairs| / |claimed pairs|
    pair recall     = |claimed and true pairs| / |true pairs|
    registration recall = share of true pairs with sqrt(mean_p |A p - T p|) < 4 px

Precision and recall of pairs, as ShreddingNet gives them, ask which fragments touch, and not how they lie. A and T are
where the answer and the truth put the points p of the first fragment at which the two touch, in the frame of the second
one. That is PairingNet's E_RMSE and its bound (Zhou et al., ECCV 2024, `matching_test.py` of github.com/zhourixin/
PairingNet): the root of a mean distance, where the name promises the root of a mean square.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from jigsync.score.contacts import REACH, Contacts, Shape, near, shape_of
from jigsync.values.placement import Placement
from jigsync.values.puzzle import Puzzle

BOUND: Final = 4.0
"""Of E_RMSE."""


def pair_shares(claimed: Contacts, true: Contacts) -> tuple[float | None, float | None]:
    """Precision and recall; None where there is nothing to divide by."""
    both = len(claimed & true)
    return (both / len(claimed) if claimed else None), (both / len(true) if true else None)


def registration_recall(
    answer: Placement, truth: Placement, contacts: Contacts, sizes: Mapping[str, float], puzzle: Puzzle
) -> float | None:
    """The share of true pairs that are registered; None where nobody touches."""
    if not contacts:
        return None
    reach = REACH * max(sizes.values())
    shapes = {name: shape_of(puzzle.fragments[name], reach) for name in puzzle.ids}
    found = 0
    for one, other in contacts:
        shape, its = shapes.get(one), shapes.get(other)
        if shape is not None and its is not None:
            size = (sizes[one] + sizes[other]) / 2
            found += _error(answer, truth, one, other, shape, its, REACH * size) < BOUND
    return found / len(contacts)


def _error(answer: Placement, truth: Placement, one: str, other: str, shape: Shape, its: Shape, reach: float) -> float:
    """E_RMSE of one pair; infinite where it is not placed together."""
    at, its_at = answer.get(one), answer.get(other)
    home, its_home = truth[one].pose, truth[other].pose
    if at is None or its_at is None or at.pose is None or its_at.pose is None or at.component != its_at.component:
        return math.inf
    assert home is not None and its_home is not None  # Truth sees to it
    true = its_home.between(home)
    points = shape.border[near(shape, its, true, reach)]
    if not len(points):
        return math.inf
    moved = its_at.pose.between(at.pose).act(points) - true.act(points)
    return math.sqrt(float(np.hypot(moved[:, 0], moved[:, 1]).mean()))
