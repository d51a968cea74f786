"""The neighbour measure of Derech, Tal and Shimshoni (Solving Archaeological Puzzles, Pattern Recognition 119, 2021).

Of two fragments that are neighbours in truth, the first one is put where it belongs, and the second one follows as it
lies in the answer. The pair is right when the second one's mask overlaps itself in truth by

    |answer and truth| / |answer or truth| > 0.65

Every pair is asked both ways, as a turn of the first one moves the second. The figure is the share of right ones.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.score.contacts import OPAQUE, Contacts
from jigsync.values import angles
from jigsync.values.placement import Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

OVERLAP: Final = 0.65


def neighbour_share(answer: Placement, truth: Placement, contacts: Contacts, puzzle: Puzzle) -> float | None:
    """The share of neighbours that are right, both ways; None where nobody has any."""
    if not contacts:
        return None
    masks = {name: (puzzle.fragments[name][..., 3] >= OPAQUE).astype(np.uint8) for name in puzzle.ids}
    both = [pair for one, other in sorted(contacts) for pair in ((one, other), (other, one))]
    right = 0
    for first, second in both:
        at, its = answer.get(first), answer.get(second)
        home, its_home = truth[first].pose, truth[second].pose
        if at is None or its is None or at.pose is None or its.pose is None or at.component != its.component:
            continue
        assert home is not None and its_home is not None  # Truth sees to it
        moved = home.between(its_home).inverse().compose(at.pose.between(its.pose))
        right += second in masks and overlap(masks[second], moved) > OVERLAP
    return right / len(both)


def overlap(mask: NDArray[np.uint8], moved: Pose) -> float:
    """Intersection over union of a mask and itself moved, in pixels from the centre of its picture."""
    margin = max(mask.shape) // 2 + 2
    wide = np.pad(mask, margin)
    half = np.array(wide.shape[::-1]) / 2
    matrix = moved.matrix
    turn = angles.matrix(moved.angle)
    matrix[:, 2] += half - turn @ half + turn @ np.full(2, 0.5) - 0.5
    shifted = cv2.warpAffine(wide, matrix, wide.shape[::-1], flags=cv2.INTER_NEAREST)
    both = int(np.count_nonzero((wide > 0) & (shifted > 0)))
    # What left the raster does not overlap: the union is counted from areas.
    return both / (2 * int(np.count_nonzero(mask)) - both) if both else 0.0
