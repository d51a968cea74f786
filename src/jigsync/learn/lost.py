"""Puzzles whose cells were lost and told again from outlines: what the matcher reads of fragments without a frame.

The frame network's own mistakes are what it learns to bear: centres and angles are a little off, and so is the pitch.
"""

from __future__ import annotations

from jigsync.measure.framed import reframed, settled
from jigsync.measure.frames import load_frames
from jigsync.measure.seen import Seen
from jigsync.values import angles
from jigsync.values.placement import Placed, Placement
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


def told_again(puzzle: Puzzle, truth: Truth) -> tuple[Puzzle, Placement]:
    """The puzzle in presentation `cell` as far as outlines tell, and the cells and turns that restore it."""
    seen = Seen.of(puzzle)
    frames = settled(seen, load_frames().frames(seen))
    restored: dict[str, Placed] = {}
    for name, skew in zip(puzzle.ids, frames.angle, strict=True):
        placed = truth.placement[name]
        assert placed.pose is not None
        assert placed.cell is not None
        restored[name] = Placed.at(*placed.cell, int(angles.nearest_turns(placed.pose.angle + skew)))
    return reframed(puzzle, frames), restored
