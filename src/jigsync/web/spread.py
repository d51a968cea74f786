"""Components beside each other: a free answer does not say how they lie towards each other, and a table has to.

What a person pinned stays where it is, the other components lie to its right; without pins all are moved to where the
assembled picture shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed, cell_pitch
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

APART: Final = 1.0
"""Usual fragments between what is pinned and what is not."""


def spread(puzzle: Puzzle, solution: Solution, pinned: Collection[str] = ()) -> Solution:
    """The solution with its components side by side; one with a grid as it is."""
    if not solution or isinstance(solution.layout, Grid):
        return solution
    kept = {solution.placement[name].component for name in pinned if solution.placement[name].pose is not None}
    loose = {name: p for name, p in solution.placement.items() if p.pose is not None and p.component not in kept}
    if not loose:
        return solution
    alone = {name: loose.get(name, Placed.nowhere()) for name in solution.placement}
    poses = layout_of(puzzle, replace(solution, placement=alone)).poses
    shift = _beside(
        puzzle, [p.pose.xy for name, p in solution.placement.items() if name not in loose and p.pose], poses
    )
    placed = {name: replace(loose[name], pose=Pose.of_turns(0, shift).compose(pose)) for name, pose in poses.items()}
    return replace(solution, placement={**solution.placement, **placed})


def _beside(puzzle: Puzzle, kept: list[tuple[float, float]], poses: Mapping[str, Pose]) -> tuple[float, float]:
    """How far the loose ones go so that they lie to the right of what is kept."""
    if not kept:
        return 0.0, 0.0
    usual = max(cell_pitch(puzzle, {}))
    at = np.array(kept)
    loose = np.array([pose.xy for pose in poses.values()])
    return float(at[:, 0].max() - loose[:, 0].min() + (1 + APART) * usual), float(at[:, 1].min() - loose[:, 1].min())
