"""What every sample of an outline sees, in its own frame: the same however its fragment lies.

At the depths DEPTHS (units) along the inward normal the colour against the puzzle's, times alpha, and alpha; then how
the outline turns over +- TURNS samples (radians, convex positive), and its height over the chord of +- CHORDS samples
(in steps, convex positive); and of the whole fragment its mean colour against the puzzle's, how much its brightness
spreads, and the logarithm of its size over the median one's:

    (p - alpha m) / spread     p the premultiplied colour, m and spread those of all fragments together
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.outline import REFERENCE, STEP, Scan
from jigsync.values.outlines import Floats, Ints, Outlines
from jigsync.values.puzzle import Puzzle

VERSION: Final = "2"
"""Of the features and DISTANCES; a file of weights says which it takes."""
DEPTHS: Final = (0.8, 2.5, 4.5, 7.0, 10.0, 14.0, 19.0, 26.0, 36.0)
TURNS: Final = (1, 2, 4, 8)
CHORDS: Final = (6, 12)
USUAL: Final = (0.15, 0.25, 0.4, 0.6, 1.5, 4.0)
"""Of the turns, in radians, and of the heights, in steps."""
OWN: Final = 4 * len(DEPTHS) + len(TURNS) + len(CHORDS)
"""The first channel of the whole fragment: three of colour, then spread and size."""
CHANNELS: Final = OWN + 5
DISTANCES: Final = (-16, -8, -4, -2, -1, 1, 2, 4, 8, 16)
"""Neighbours along the outline, in samples, that the network may look up."""
COLOUR: Final = tuple(4 * depth + channel for depth in range(len(DEPTHS)) for channel in range(3))
"""The channels that hold colours."""
LEAST_SPREAD: Final = 6.0
"""Levels of 255: blank paper is not stretched until its noise shows."""
SPARSE: Final = 20_000
"""Pixels of a fragment that its colours are taken from, about."""


def neighbours(start: Ints, distances: tuple[int, ...]) -> Ints:
    """The samples some distances further along the same outline. Shapes: (N + 1,), D distances -> (T, D)."""
    count = np.repeat(np.diff(start), np.diff(start))
    first = np.repeat(start[:-1], np.diff(start))
    place = np.arange(start[-1]) - first
    return np.asarray(first[:, None] + (place[:, None] + np.array(distances)) % count[:, None])


@dataclass(frozen=True, eq=False)
class Palette:
    """Colours of a puzzle, in levels, weighted by alpha.

    Attributes:
        mean: (3,) of all fragments.
        spread: of all fragments, at least LEAST_SPREAD.
        means: (N, 3) of each.
        spreads: (N,) of each.
    """

    mean: Floats
    spread: float
    means: Floats
    spreads: Floats


def palette(puzzle: Puzzle) -> Palette:
    """The colours of all fragments."""
    weight, total, square = (np.zeros((len(puzzle), *shape)) for shape in ((), (3,), (3,)))
    for i, pixels in enumerate(puzzle.fragments.pixels):
        stride = max(1, int(np.sqrt(pixels.shape[0] * pixels.shape[1] / SPARSE)))
        some = pixels[::stride, ::stride].reshape(-1, 4)
        seen = some[some[:, 3] > 127].astype(np.float64)
        alpha = seen[:, 3:] / 255
        colour = seen[:, :3] / alpha
        scale = stride**2
        weight[i] = scale * float(alpha.sum())
        total[i] = scale * (alpha * colour).sum(axis=0)
        square[i] = scale * (alpha * colour**2).sum(axis=0)
    every = max(float(weight.sum()), 1e-9)
    mean = total.sum(axis=0) / every
    spread = float(np.sqrt(np.maximum(square.sum(axis=0) / every - mean**2, 0).mean()))
    each = np.maximum(weight, 1e-9)[:, None]
    means = np.where(weight[:, None] > 0, total / each, mean)
    spreads = np.sqrt(np.maximum(square / each - (total / each) ** 2, 0).mean(axis=1))
    return Palette(mean, max(spread, LEAST_SPREAD), means, spreads)


def features(puzzle: Puzzle, outlines: Outlines, scans: list[Scan]) -> NDArray[np.float32]:
    """Shapes: -> (T, CHANNELS) float32."""
    known = palette(puzzle)
    unit = outlines.step / STEP
    inward = outlines.xy[:, None] - outlines.normal[:, None] * (np.array(DEPTHS) * unit)[:, None]
    out = np.empty((len(inward), CHANNELS), dtype=np.float32)
    colours = out[:, : 4 * len(DEPTHS)].reshape(len(inward), len(DEPTHS), 4)  # a view
    for i, scan in enumerate(scans):
        span = slice(outlines.start[i], outlines.start[i + 1])
        seen = scan.at(inward[span])
        alpha = seen[..., 3:] / 255
        colours[span, :, :3] = (seen[..., :3] - alpha * known.mean) / known.spread
        colours[span, :, 3:] = alpha
    out[:, 4 * len(DEPTHS) : OWN] = _shape(outlines)
    own = [(known.means - known.mean) / known.spread, known.spreads[:, None] / known.spread - 1, _sizes(outlines)]
    out[:, OWN:] = np.repeat(np.concatenate(own, axis=1), np.diff(outlines.start), axis=0)
    return out


def _sizes(outlines: Outlines) -> Floats:
    """log of sqrt(area) over REFERENCE units. Shapes: -> (N, 1)."""
    x, y = outlines.xy.T
    after = neighbours(outlines.start, (1,))[:, 0]
    twice = np.add.reduceat(x * y[after] - x[after] * y, outlines.start[:-1])
    size = np.sqrt(np.maximum(twice / 2, outlines.step**2)) / (outlines.step / STEP * REFERENCE)
    return np.asarray(np.log(size)[:, None])


def _shape(outlines: Outlines) -> Floats:
    """Turns and heights. Shapes: -> (T, len(TURNS) + len(CHORDS))."""
    xy = outlines.xy
    reach = (*TURNS, *CHORDS)
    before, after = (xy[neighbours(outlines.start, tuple(sign * k for k in reach))] for sign in (-1, 1))
    back, ahead = xy[:, None] - before, after - xy[:, None]
    turned, chord = len(TURNS), after - before
    turns = np.arctan2(_cross(back, ahead), (back * ahead).sum(axis=2))[:, :turned]
    long = np.maximum(np.hypot(chord[..., 0], chord[..., 1]), outlines.step)
    heights = (_cross(back, chord) / long / outlines.step)[:, turned:]
    return np.asarray(np.concatenate([turns, heights], axis=1) / USUAL)


def _cross(a: Floats, b: Floats) -> Floats:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])
