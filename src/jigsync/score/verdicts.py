"""What is wrong with every fragment of an answer, for pictures: by cells where both have a grid, else by poses."""

from __future__ import annotations

from jigsync.score.cells import lacking_turns
from jigsync.score.poses import Verdict, score_poses
from jigsync.values.layout import Grid
from jigsync.values.placement import Assembly
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


def verdicts(solution: Assembly, truth: Truth, puzzle: Puzzle | None = None) -> dict[str, Verdict]:
    """Every fragment of the truth: "right", wrong "turn" in its place, wrong place ("slot"), or "unplaced".

    In a grid the answer is judged as it stands. By poses it is judged after the best motion, and fragments that the
    truth does not name are "foreign" where they are placed.

    Args:
        puzzle: tells the fragments' sizes, which poses are judged by; `score_poses` says when it can be left out.
    """
    if not isinstance(truth.layout, Grid) or solution.grid is None:
        found = score_poses(solution, truth, puzzle)
        return {**found.verdicts, **dict.fromkeys(found.foreign, "foreign")}
    out: dict[str, Verdict] = {}
    for name, home in truth.placement.items():
        placed = solution.placement.get(name)
        if placed is None or placed.pose is None or placed.cell is None:
            out[name] = "unplaced"
        elif placed.cell != home.cell or home.pose is None:
            out[name] = "slot"
        else:
            out[name] = "right" if lacking_turns(placed.pose, home.pose) == 0 else "turn"
    return out
