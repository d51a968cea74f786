"""How a puzzle is read when nobody names a measurer: every way that fits its fragments, the likeliest first.

Fragments that say where their cell is (presentation `cell`), and rectangles that fill their pixels, are read along the
sides of a grid. Of all others the outlines are looked at: fragments that were cut along rows and columns are put back
into cells, and those of any other shape are matched as they are. Whoever doubts the first answer may ask for the other
way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jigsync.measure.contours import Contours
from jigsync.measure.framed import Framed
from jigsync.measure.frames import celled, load_frames, perhaps_celled
from jigsync.measure.learned import Learned
from jigsync.measure.seen import Seen
from jigsync.values.errors import JigsyncError
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle


def shows_cells(puzzle: Puzzle) -> bool:
    """Do the fragments say where their cells are? Wholly transparent ones have no say."""
    if puzzle.cell is not None:
        return True
    return all(pixels[..., 3].min() in (0, 255) and np.ptp(pixels[..., 3]) == 0 for pixels in puzzle.fragments.pixels)


def readings(puzzle: Puzzle) -> Iterator[Measurements]:
    """What is measured, way by way; each is measured when it is asked for."""
    if shows_cells(puzzle):
        yield Learned().measure(puzzle)
        return
    seen = Seen.of(puzzle)
    try:
        frames = load_frames().frames(seen)
    except JigsyncError:  # of which `Contours` leaves a note
        yield Contours().of(seen)
        return
    if celled(frames):
        yield Framed().of(seen, frames)
        yield Contours().of(seen)
    else:
        yield Contours().of(seen)
        if perhaps_celled(frames):
            yield Framed().of(seen, frames)
