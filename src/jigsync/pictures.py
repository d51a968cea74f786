"""From what a solver gave to a solution: every picture of the pile is stood upright by itself.

Pictures of one pile do not claim to lie towards each other: each has its own gauge, and its own grid where it has one.
A solution of several pictures is free as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from jigsync.gauge import UNKNOWN, fix_gauge
from jigsync.solution import Solution
from jigsync.solvers.base import Assignment, SolveRequest
from jigsync.solvers.split import placed, split
from jigsync.values import z4
from jigsync.values.layout import FREE, Grid
from jigsync.values.picture import Picture
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Puzzle

FEWEST: Final = 4
"""Fragments of a component that is looked at for which side is up, where there are several."""


class Upright(NamedTuple):
    """A solution whose pictures stand upright as far as content tells, and a remark where that could not be told."""

    solution: Solution
    remark: str


def stand_up(puzzle: Puzzle, request: SolveRequest, answer: Assignment) -> Upright:
    """The solution of an answer, its gauges fixed by evidence and every fragment's place named."""
    parts = split(answer)
    if len(parts) == 1:
        return _one(puzzle, request, parts[0], first=True)
    placement = dict.fromkeys(puzzle.ids, Placed.nowhere(0.0))
    pictures, remark = [], ""
    for number, part in enumerate(parts):
        members = np.flatnonzero(placed(part)).tolist()
        names = tuple(puzzle.ids[k] for k in members)
        alone = Puzzle(
            Fragments(names, tuple(puzzle.fragments.pixels[k] for k in members)),
            puzzle.cell,
            puzzle.container,
            puzzle.name,
        )
        made, said = _one(alone, request, _select(part, members), first=number == 0)
        remark = remark or said
        home = made.pictures[0]
        pictures.append(Picture(number, home.layout, home.gauge, home.pitch, home.cells))
        for name in names:
            placement[name] = replace(made.placement[name], cell=None, component=number)
    gauge = replace(pictures[0].gauge, turns=None)
    whole = Solution("partial", answer.reason, FREE, placement, gauge, parts=tuple(pictures), puzzle=puzzle)
    return Upright(whole, remark)


def _one(puzzle: Puzzle, request: SolveRequest, answer: Assignment, first: bool) -> Upright:
    """One picture; the first one is what pins and an asked grid are about."""
    placement, pitch = answer.placed(puzzle)
    draft = Solution(answer.status, answer.reason, answer.layout, placement, pitch=pitch, puzzle=puzzle)
    given = request.upright or (first and request.gauge_fixed)
    if not first and not isinstance(draft.layout, Grid) and len(puzzle) < FEWEST:
        return Upright(replace(draft, gauge=UNKNOWN), "")
    asked = request.grid if first else None
    turns = range(z4.ORDER)
    possible = [asked is None or (draft.grid is not None and draft.grid.turned(g) == asked) for g in turns]
    unary = request.measurements.unary_turns
    if unary is not None and puzzle.ids != request.ids:
        unary = unary[[request.ids.index(name) for name in puzzle.ids]]
    return Upright(*fix_gauge(puzzle, draft, unary, possible, given))


def _select(answer: Assignment, members: list[int]) -> Assignment:
    """An answer about some fragments alone."""
    poses, sure = answer.poses, answer.confidences
    if poses is not None:
        poses = replace(poses, angle=poses.angle[members], xy=poses.xy[members], component=poses.component[members])
    return replace(
        answer,
        slots=answer.slots[members],
        turns=answer.turns[members],
        confidences=None if sure is None else sure[members],
        poses=poses,
    )
