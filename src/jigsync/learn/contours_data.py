"""Samples of the contour network: what the outlines of a puzzle see, and which of their samples truly touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from jigsync.learn.chunks import Sample
from jigsync.learn.contours import IGNORED, NO_MATE
from jigsync.learn.contours_mixture import Kind, draw_puzzle
from jigsync.learn.mixture import Pictures
from jigsync.measure.outline import REFERENCE, STEP, read_outlines
from jigsync.measure.outline_features import CHANNELS, COLOUR, OWN, features
from jigsync.values import angles
from jigsync.values.outlines import Ints, Outlines
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

REACH: Final = 0.36
"""Widest gap that is looked across, in sizes of the median fragment."""
CLOSE: Final = 1.5
"""Steps: what is no further away touches, whichever way it lies."""
BEFORE: Final = 0.25
"""Least cosine between the way to another fragment and the normal: what is further aside is not before it."""
FACING: Final = -0.5
"""Largest cosine between the normals of two samples that touch."""
MOST_ASIDE: Final = 0.6
"""A mate lies along the normal: aside by at most this share of its distance, plus CLOSE steps."""
BACK: Final = 2.5
"""Steps around its start, plus MOST_ASIDE of the distance, that the way back from a mate must end at."""


def true_mates(outlines: Outlines, poses: Sequence[Pose]) -> Ints:
    """The nearest facing sample of another fragment where fragments lie as they should, NO_MATE or IGNORED.

    IGNORED where another fragment is in front, but the two do not agree on who is whose nearest, or three meet.

    Args:
        poses: canvas_from_frag of every fragment.

    Shapes: -> (T,).
    """
    step, n = outlines.step, outlines.n
    reach = REACH * REFERENCE / STEP * step
    xy = np.concatenate([pose.act(outlines.of(i)) for i, pose in enumerate(poses)])
    turn = np.repeat([pose.angle for pose in poses], np.diff(outlines.start))
    normal = angles.act(turn, outlines.normal)
    spans = [slice(outlines.start[i], outlines.start[i + 1]) for i in range(n)]
    trees = [cKDTree(xy[span]) for span in spans]
    low, high = (np.array([edge(xy[span], axis=0) for span in spans]) for edge in (np.min, np.max))
    best = np.full(len(xy), np.inf)
    found = np.full(len(xy), NO_MATE, dtype=np.int64)
    for i in range(n):
        near = np.flatnonzero(((low <= high[i] + reach) & (high >= low[i] - reach)).all(axis=1))
        for j in near[near != i]:
            away, there = trees[j].query(xy[spans[i]], distance_upper_bound=reach)
            there = there + outlines.start[j]
            closer = away < best[spans[i]]
            best[spans[i]] = np.where(closer, away, best[spans[i]])
            found[spans[i]] = np.where(closer, there, found[spans[i]])
    here = np.flatnonzero(found >= 0)
    there, away = found[here], best[here]
    way = xy[there] - xy[here]
    out = (way * normal[here]).sum(axis=1)
    aside = np.abs(way[:, 0] * normal[here, 1] - way[:, 1] * normal[here, 0])
    before_it = (out > BEFORE * away) | (away < CLOSE * step)
    straight = (aside < CLOSE * step + MOST_ASIDE * away) & ((normal[here] * normal[there]).sum(axis=1) < FACING)
    back = found[there]
    owner = outlines.owner
    apart = np.abs(back - here)
    around = np.diff(outlines.start)[owner[here]]
    apart = np.minimum(apart, around - apart)
    mutual = (back >= 0) & (owner[back] == owner[here]) & (apart * step <= BACK * step + MOST_ASIDE * away)
    found[here] = np.where(before_it, np.where(straight & mutual, there, IGNORED), NO_MATE)
    return found


def sample_of(puzzle: Puzzle, truth: Truth) -> dict[str, NDArray[Any]]:
    """features (T, CHANNELS) float16, start (N + 1,) int64 and mate (T,) int64."""
    outlines, scans = read_outlines(puzzle)
    poses = [pose for name in puzzle.ids if (pose := truth.placement[name].pose) is not None]
    seen = features(puzzle, outlines, scans).astype(np.float16)
    return {"features": seen, "start": outlines.start, "mate": true_mates(outlines, poses)}


@dataclass(frozen=True)
class ContourData:
    """The stream of puzzles of a seed."""

    pictures: Pictures
    seed: int
    mixture: Mapping[str, Kind]

    def sample(self, k: int) -> Sample:
        """The k-th puzzle."""
        return sample_of(*draw_puzzle(self.pictures, self.mixture, self.seed, k)[:2])


MISSING: Final = 0.3
"""Share of the puzzles that lose fragments when they are seen, up to MOST_MISSING of them."""
MOST_MISSING: Final = 0.3


def augmented(sample: Sample, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """The puzzle seen in another way: mirrored, other colours, other contrast, some fragments missing.

    A mirrored outline runs the other way, and what its samples see is the same. The keys are those of `sample_of`.
    """
    start, seen, mate = sample["start"], sample["features"].astype(np.float32), sample["mate"]
    n = len(start) - 1
    keep = np.arange(n)
    if n > 4 and rng.random() < MISSING:
        keep = np.sort(rng.choice(n, n - int(rng.integers(1, max(2, int(MOST_MISSING * n) + 1))), replace=False))
    mirrored = rng.random() < 0.5
    parts = [np.arange(start[i], start[i + 1])[:: -1 if mirrored else 1] for i in keep]
    index = np.concatenate(parts)
    at = np.full(len(seen), NO_MATE, dtype=np.int64)
    at[index] = np.arange(len(index))
    mate = np.where(mate[index] >= 0, at[mate[index]], mate[index])
    seen = seen[index]
    mix = (np.eye(3) + rng.normal(0, 0.08, (3, 3))) * np.exp(rng.normal(0, 0.15))
    shift = rng.normal(0, 0.1, 3)
    columns = np.array(COLOUR).reshape(-1, 3)
    alpha = seen[:, columns[:, 2] + 1, None]
    seen[:, columns] = seen[:, columns] @ mix.T.astype(np.float32) + alpha * shift.astype(np.float32)
    seen[:, OWN : OWN + 3] = seen[:, OWN : OWN + 3] @ mix.T.astype(np.float32) + shift.astype(np.float32)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return {"features": np.ascontiguousarray(seen.reshape(-1, CHANNELS)), "start": starts, "mate": mate}
