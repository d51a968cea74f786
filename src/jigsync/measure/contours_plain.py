"""The measurer `contours-plain`: the same as `contours`, with codes that nobody trained.

A sample is described by windows along its outline: how it turns, its heights over chords, and the colour at its
rim. Across a seam the window runs the other way, turns and heights have the
other sign, and colours are the same. With u_s the description of s and v_t that of t as seen from across,

    S(s, t) = -|u_s - v_t|^2 / (2 NOISE^2 D) = f_s . g_t + g_s . f_t,    none_s = -DOUBT

which is a product of codes as the network's is: f = (u, -|u|^2 / 2, 1), g = (v, 1, -|v|^2 / 2), up to scale, because
|u_s - v_t| = |v_s - u_t|. Where there is neither shape nor contrast all samples fit each other as well: none of them
gets a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.contour_evidence import FEATURES
from jigsync.measure.contour_matches import SampleCodes
from jigsync.measure.contour_reading import read
from jigsync.measure.outline_features import CHORDS, DEPTHS, OWN, TURNS, neighbours
from jigsync.measure.seen import Seen
from jigsync.values.measurements import Measurements
from jigsync.values.outlines import Ints
from jigsync.values.puzzle import Puzzle

WINDOW: Final = (-8, -6, -4, -2, 0, 2, 4, 6, 8)
"""Samples of the window."""
COLOUR: Final = 1.0
TURN: Final = 0.8
HEIGHT: Final = 0.8
"""Weights of what is described."""
MOST_COLOUR: Final = 2.0
MOST_BENT: Final = 0.8
"""What is further from the mean is cut off: at corners where three fragments meet, all of them are convex."""
NOISE: Final = 0.06
DOUBT: Final = 16.0
ODDS: Final = (-3.8811, -0.2644, -0.952, 2.8344, 0.858, -1.464, -0.253, 0.0738, -0.8005)
"""Of `contour_evidence.FEATURES`: `learn.fit.odds.fit_odds` on 26 validation pictures."""
assert len(ODDS) == len(FEATURES)


def plain_codes(seen: NDArray[np.float32], start: Ints) -> SampleCodes:
    """Codes of samples from their features. Shapes: (T, CHANNELS), (N + 1,)."""
    depths = seen[:, : 4 * len(DEPTHS)].reshape(len(seen), len(DEPTHS), 4)
    colour = COLOUR * np.clip(depths[:, 0, :3], -MOST_COLOUR, MOST_COLOUR)
    shape = np.clip(seen[:, 4 * len(DEPTHS) : OWN], -MOST_BENT, MOST_BENT)
    turns, heights = shape[:, 1 : len(TURNS)], shape[:, len(TURNS) :]
    assert heights.shape[1] == len(CHORDS)
    bent = np.concatenate([TURN * turns, HEIGHT * heights], axis=1)
    ahead, back = neighbours(start, WINDOW), neighbours(start, tuple(-k for k in WINDOW))
    u = np.concatenate([colour[ahead].reshape(len(seen), -1), bent[ahead].reshape(len(seen), -1)], axis=1)
    v = np.concatenate([colour[back].reshape(len(seen), -1), -bent[back].reshape(len(seen), -1)], axis=1)
    scale = np.float32(1 / (NOISE * np.sqrt(2 * u.shape[1])))
    u, v = scale * u, scale * v
    own, across = (-np.square(part).sum(axis=1, keepdims=True) / 2 for part in (u, v))
    one = np.ones_like(own)
    f, g = np.concatenate([u, own, one], axis=1), np.concatenate([v, one, across], axis=1)
    return SampleCodes(f, g, np.full(len(seen), -DOUBT, dtype=np.float32))


@dataclass(frozen=True)
class ContoursPlain:
    """The measurer."""

    name: str = "contours-plain"
    frame_free: ClassVar[bool] = True

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Hypotheses about all pairs that share matches."""
        return self.of(Seen.of(puzzle))

    def of(self, seen: Seen) -> Measurements:
        """The same, of outlines that were read already."""
        codes = plain_codes(seen.features, seen.outlines.start)
        return Measurements(seen.puzzle.ids, read(seen.outlines, seen.scans, codes).judged(np.array(ODDS)))
