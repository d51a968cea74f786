"""No frame leaks: measurers that claim to read none say the same of fragments that lie otherwise in their pictures."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from reframe import reframed

from jigsync import data
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, severity
from jigsync.io.images import read_rgb
from jigsync.measure import registry
from jigsync.measure.learned import Learned
from jigsync.values import angles
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

SURE = 0.0
"""Log-odds of what is asked for again."""
NEAR = (np.radians(5.0), 0.1)
"""How far poses may differ that are the same: radians, and of a fragment's size. A cell's own frame is an estimate."""

Stated = list[tuple[int, int, Pose, float]]


@cache
def puzzle(presentation: str) -> Puzzle:
    options = CutOptions(Grid(3, 3), 96, severity("medium"), presentation=presentation)
    return cut_picture(read_rgb(data.picture("coffee")), options, 2)[0]


def stated(found: Measurements) -> tuple[Stated, float]:
    """(i, j, i_from_j between the pictures' centres, log-odds), and a fragment's size in pixels."""
    if isinstance(found.pairs, Hypothesised):
        pairs, size, own = found.hypotheses(), found.pairs.size, [Pose.identity()] * found.n
    else:  # of cells: through where each fragment's cell lies in its picture
        size = found.frames.pitch if found.frames is not None else found.cell or 1.0
        pairs = found.pairs.hypotheses(size)
        frames = found.frames
        own = [Pose.identity()] * found.n
        if frames is not None:
            own = [Pose(angle, (x, y)) for angle, (x, y) in zip(frames.angle, frames.centre, strict=True)]
    ends = [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j, strict=True)]
    poses = [own[i].compose(pairs.pose(k)).compose(own[j].inverse()) for k, (i, j) in enumerate(ends)]
    said = [(i, j, pose, float(odds)) for (i, j), pose, odds in zip(ends, poses, pairs.log_odds, strict=True)]
    return [*said, *((j, i, pose.inverse(), odds) for i, j, pose, odds in said)], size


def share_said_again(measure: object, old: Puzzle, *, any_angle: bool) -> tuple[float, int]:
    """Of what is said surely of a puzzle: how much is said of it in other frames, and how many statements these are."""
    new, new_from_old = reframed(old, 4, any_angle)
    moved = [new_from_old[name] for name in old.ids]
    (before, size), (after, _) = (stated(measure.measure(p)) for p in (old, new))  # type: ignore[attr-defined]
    sure = [(i, j, moved[i].compose(pose).compose(moved[j].inverse())) for i, j, pose, odds in before if odds > SURE]
    again = 0
    for i, j, expected in sure:
        poses = [pose for a, b, pose, _ in after if (a, b) == (i, j)]
        turned = [abs(angles.wrap(pose.angle - expected.angle)) for pose in poses]
        shifted = [np.hypot(*np.subtract(pose.xy, expected.xy)) / size for pose in poses]
        again += any(turn < NEAR[0] and shift < NEAR[1] for turn, shift in zip(turned, shifted, strict=True))
    return again / max(len(sure), 1), len(sure)


CLAIMING = [name for name in registry.names() if registry.frame_free(registry.get(name))]


def test_who_claims_to_read_no_frame() -> None:
    assert {"contours", "contours-plain", "framed"} <= set(CLAIMING)
    assert not {"learned", "boundary", "mgc", "content"} & set(CLAIMING)


@pytest.mark.parametrize("presentation", ["cropped", "any"])
@pytest.mark.parametrize("any_angle", [False, True])
@pytest.mark.parametrize("name", CLAIMING)
def test_what_claims_to_read_no_frame_reads_none(name: str, any_angle: bool, presentation: str) -> None:
    share, count = share_said_again(registry.get(name), puzzle(presentation), any_angle=any_angle)
    assert count >= 2
    assert share >= (0.8 if any_angle else 1.0)  # pixels of another angle are resampled once


def test_what_reads_frames_is_caught() -> None:
    share, count = share_said_again(Learned(), puzzle("cell"), any_angle=False)
    assert count >= 8
    assert share < 0.75
