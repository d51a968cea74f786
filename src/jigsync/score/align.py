"""Aligning an answer with the truth: for pictures and for diagnosis, never part of an answer."""

from __future__ import annotations

from typing import Final, NamedTuple

from jigsync.score.cells import score
from jigsync.score.poses import score_poses
from jigsync.score.verdicts import by_cells
from jigsync.solution import Solution
from jigsync.values.gauge import Gauge
from jigsync.values.pose import RIGHT, Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

DIGITS: Final = 6
"""Of the angle in degrees: what is a quarter turn but for rounding is one."""


class Aligned(NamedTuple):
    """A solution turned as a whole, and by how much: degrees counter-clockwise in [0, 360)."""

    solution: Solution
    degrees: float

    def facts(self) -> dict[str, float | int | None]:
        """Plain JSON values: `turned_by` in quarter turns, null where it is no whole number of them."""
        turns, rest = divmod(self.degrees, RIGHT)
        return {"turned_by": None if rest else int(turns), "turned_degrees": self.degrees}


def aligned(solution: Solution, truth: Truth, puzzle: Puzzle | None = None) -> Aligned:
    """The solution turned to where most of it is right: in a grid by the best of four turns, else by the best motion.

    Args:
        puzzle: tells the fragments' sizes where poses are compared (`score_poses`).
    """
    if by_cells(solution, truth):
        turns = score(solution, truth).best_turns
        return Aligned(solution.turned(turns), RIGHT * turns)
    motion = score_poses(solution, truth, puzzle).motion
    degrees = 0.0 if motion is None else round(motion.degrees, DIGITS)
    if not degrees:
        return Aligned(solution, 0.0)
    sure = Gauge((0.0,), (1.0,), None)  # the truth says so
    return Aligned(solution.moved(Pose.of_degrees(degrees, (0.0, 0.0)), sure), degrees % 360.0)
