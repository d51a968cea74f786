"""What to make of an answer: its status, and one sentence that names the likeliest reason and what to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from jigsync.solution import Solution
from jigsync.values.layout import Grid
from jigsync.values.placement import Status
from jigsync.values.puzzle import Puzzle

NAMED: Final = 4
"""Fragments that a sentence names."""
DOUBTED: Final = 0.5


def advised(solution: Solution, puzzle: Puzzle, asked: Grid | None, excluded: frozenset[str]) -> Solution:
    """The solution with its status and its sentence.

    Args:
        asked: the grid that was told, or None.
        excluded: fragments that were left out because somebody said so.
    """
    if not solution:
        return solution
    left = [name for name, placed in solution.placement.items() if placed.pose is None and name not in excluded]
    status: Status = solution.status
    if status != "unsure":
        status = "partial" if left or solution.parts else "ok"
    said = _unsure(solution, puzzle, len(left), asked) if status == "unsure" else _good(solution, left, asked)
    return replace(solution, status=status, reason=said)


def _unsure(solution: Solution, puzzle: Puzzle, left: int, asked: Grid | None) -> str:
    """Why an answer is probably not right."""
    if (
        len(puzzle) > 1
        and all(pixels[..., 3].min() == 255 for pixels in puzzle.fragments.pixels)
        and not _rectangles(puzzle)
    ):
        return (
            "This is probably not right: the fragments fill their pictures to the corners, so cut them out of their"
            " background with `jigsync extract` first."
        )
    sure = {name: placed.confidence or 0.0 for name, placed in solution.placement.items() if placed.pose is not None}
    doubted = sorted((name for name in sure if sure[name] < DOUBTED), key=lambda name: sure[name])
    if solution.grid is not None and asked is None and len(doubted) > len(sure) / 2:
        return (
            f"This is probably not right: the fragments fit in a {solution.grid} grid hardly better than in others, so"
            " tell the grid if you know it, or photograph the missing pieces."
        )
    if left > len(sure) / 2:
        return (
            f"This is probably not right: {left} fragments found no place, so photograph the missing pieces, or pin"
            " what you know."
        )
    if doubted:
        return f"This is probably not right: look at the fragments {_names(doubted)} first, and pin what you know."
    return "This is probably not right: pin the fragments that you know, or exclude those that do not belong."


def _good(solution: Solution, left: list[str], asked: Grid | None) -> str:
    """What an answer that is probably right leaves open."""
    parts = []
    if solution.parts:
        count = Counter(placed.component for placed in solution.placement.values() if placed.pose is not None)
        sizes = [str(count[part.component]) for part in solution.parts]
        grids = all(part.grid is not None for part in solution.parts)
        what = "pictures" if grids else "groups that do not join"
        parts.append(f"the pile holds {len(sizes)} {what}, of {' and '.join(sizes)} fragments")
    empty = sum(len(picture.empty) for picture in solution.pictures)
    if left:
        full = asked is not None and not empty
        what = f"found no cell in the {asked} grid, which is full" if full else "may belong to another picture"
        one = len(left) == 1
        subject = f"the fragment {_names(left)}" if one else f"{len(left)} fragments"
        fits = "" if full else "fits nowhere and " if one else "fit nowhere and "
        parts.append(f"{subject} {fits}{what}" + ("" if one else f": {_names(left)}"))
    if empty:
        cells = "1 cell is empty" if empty == 1 else f"{empty} cells are empty"
        parts.append(f"{cells}: photograph the missing {'piece' if empty == 1 else 'pieces'}")
    if not parts:
        return ""
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _names(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _rectangles(puzzle: Puzzle) -> bool:
    """Are all pictures about as large as each other, as pieces of a square puzzle are?"""
    areas = [pixels.shape[0] * pixels.shape[1] for pixels in puzzle.fragments.pixels]
    return bool(max(areas) <= 1.1 * min(areas))
