"""Where the cell of a fragment is, as its outline tells: a centre, a direction modulo a quarter turn, and a pitch.

Fragments that were cut along rows and columns, however curved and worn their edges are, have four sides of a cell. A
trained network (learn/frames.py has the mathematics) looks along each outline, and every sample votes:

    centre = m + size sum_s w_s (d_s n_s + e_s t_s)         m the centroid, n and t the normal and tangent at s
    exp(4 i angle) ~ sum_s v_s (a_s + i b_s) exp(4 i tau_s)     tau the direction of t, counter-clockwise as displayed
    log(pitch / size) = sum_s u_s p_s                        size: sqrt(area) of the median fragment

with weights w and v that are positive and sum to 1 over an outline, and u that do over all outlines of the puzzle. The
mean of a further vote is the log-odds that the fragment was cut along rows and columns at all: of a torn piece no other
vote means anything. `angle` is that of the cell's row direction in the fragment's frame: turned by -angle, and perhaps
by quarter turns, the fragment stands upright in its cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.outline import REFERENCE, STEP
from jigsync.measure.outline_features import DEPTHS, OWN, neighbours
from jigsync.measure.outline_features import VERSION as OUTLINES
from jigsync.measure.parts import side_by_side, spans
from jigsync.measure.seen import Seen
from jigsync.measure.weights import open_session, read_weights
from jigsync.values import angles
from jigsync.values.outlines import Floats, Outlines

FORMAT: Final = "jigsync-frames/1"
SHIPPED: Final = "frames.onnx"
CHANNELS: Final = len(DEPTHS) + OWN - 4 * len(DEPTHS) + 1 + 2
"""Alpha at all depths, turns and heights, the fragment's size, and where a sample is from the centroid."""
DISTANCES: Final = (-64, -32, -16, -8, -4, -2, -1, 1, 2, 4, 8, 16, 32, 64)
"""Samples along the outline, clockwise: at 64, the far side of most fragments."""
VOTES: Final = 12
"""Numbers per sample: d, e, a, b, log w, log v, p, log u, the logarithms of how far off centre, angle and p are, and
whether there is a cell."""
STEEPEST: Final = 8.0
"""Largest |log w|."""
OUTPUTS: Final[Mapping[str, tuple[int | None, ...]]] = {"votes": (VOTES,)}
MOST_SAID: Final = 4.0
"""Log-odds beyond which one fragment does not outweigh the others."""
PERHAPS: Final = -2.0
"""Mean log-odds of fragments that may have been cut along rows and columns all the same."""
FRAGMENTS_AT_ONCE: Final = 30


@dataclass(frozen=True, eq=False)
class Frames:
    """The cells of N fragments.

    Attributes:
        centre: (N, 2) px, in the fragment's frame.
        angle: (N,) radians, modulo a quarter turn.
        pitch: px, of all of them.
        off: (N, 2) how far off centre (pitches) and angle (radians) are expected to be.
        pitch_off: how far off the pitch is expected to be, as a share of it.
        celled: (N,) log-odds that a fragment was cut along rows and columns.
    """

    centre: Floats
    angle: Floats
    pitch: float
    off: Floats
    pitch_off: float
    celled: Floats


def shape_features(seen: NDArray[np.float32], outlines: Outlines) -> NDArray[np.float32]:
    """What the network sees, from `outline_features.features`: no colours. Shapes: (T, ...) -> (T, CHANNELS)."""
    alpha = seen[:, 3 : 4 * len(DEPTHS) : 4]
    shape = seen[:, 4 * len(DEPTHS) : OWN]
    place = local(outlines, (outlines.xy - np.repeat(centroids(outlines), np.diff(outlines.start), axis=0)))
    return np.concatenate([alpha, shape, seen[:, -1:], place / size_of(outlines)], axis=1).astype(np.float32)


def local(outlines: Outlines, vectors: Floats) -> Floats:
    """Vectors at samples by their parts along the normal and the tangent (clockwise). Shapes: (T, 2) -> (T, 2)."""
    n = outlines.normal
    out, along = (vectors * n).sum(axis=1), vectors[:, 1] * n[:, 0] - vectors[:, 0] * n[:, 1]
    return np.stack([out, along], axis=1)


def size_of(outlines: Outlines) -> float:
    """sqrt(area) of the median fragment, px."""
    return outlines.step / STEP * REFERENCE


def centroids(outlines: Outlines) -> Floats:
    """Mean of the samples of each outline. Shapes: -> (N, 2)."""
    total = np.add.reduceat(outlines.xy, outlines.start[:-1], axis=0)
    return np.asarray(total / np.diff(outlines.start)[:, None])


def counted(outlines: Outlines, votes: NDArray[np.float32]) -> Frames:
    """The frames that votes say. Shapes: (T, VOTES)."""
    said: Floats = votes.astype(np.float64)
    first, count = outlines.start[:-1], np.diff(outlines.start)

    def shares(logits: Floats) -> Floats:
        weight = np.exp(np.clip(logits, -STEEPEST, STEEPEST))
        return np.asarray(weight / np.repeat(np.add.reduceat(weight, first), count))

    w, v = shares(said[:, 4]), shares(said[:, 5])
    n = outlines.normal
    tangent = np.stack([-n[:, 1], n[:, 0]], axis=1)
    size = size_of(outlines)
    moved = said[:, :1] * n + said[:, 1:2] * tangent
    centre = centroids(outlines) + size * np.add.reduceat(w[:, None] * moved, first, axis=0)
    tau = np.arctan2(-tangent[:, 1], tangent[:, 0])
    axis = np.add.reduceat(v * (said[:, 2] + 1j * said[:, 3]) * np.exp(4j * tau), first)
    u = np.exp(np.clip(said[:, 7], -STEEPEST, STEEPEST))
    pitch = float(size * np.exp(u @ said[:, 6] / u.sum()))
    means = np.add.reduceat(said[:, 8:], first, axis=0) / count[:, None]
    off, pitch_off = np.exp(means[:, :2]), float(np.exp(means[:, 2].mean()))
    return Frames(centre, np.asarray(angles.wrap(np.angle(axis)) / 4), pitch, off, pitch_off, means[:, 3])


def celled(frames: Frames) -> bool:
    """Were the fragments, by and large, cut along rows and columns?"""
    return _said(frames) > 0


def perhaps_celled(frames: Frames) -> bool:
    """Is it worth a try to read them as if they were? Of torn pieces, cells are made up, and said with confidence."""
    return _said(frames) > PERHAPS


def _said(frames: Frames) -> float:
    return float(np.clip(frames.celled, -MOST_SAID, MOST_SAID).mean())


class FrameModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str) -> None:
        self._session = open_session(data, name, {"format": FORMAT, "outlines": OUTLINES})

    def votes(self, seen: NDArray[np.float32], start: NDArray[np.int64]) -> NDArray[np.float32]:
        """Of all samples. Shapes: (T, CHANNELS), (N + 1,) -> (T, VOTES)."""

        def run(part: slice) -> NDArray[np.float32]:
            mine = start[part.start : part.stop + 1]
            rows = slice(int(mine[0]), int(mine[-1]))
            feed: dict[str, NDArray[Any]] = {"features": seen[rows], "near": neighbours(mine - mine[0], DISTANCES)}
            wanted = {name: (rows.stop - rows.start, *shape) for name, shape in OUTPUTS.items()}
            return self._session.run(wanted, feed)[0]

        parts = spans(len(start) - 1, FRAGMENTS_AT_ONCE)
        return np.concatenate(side_by_side([partial(run, part) for part in parts]))

    def frames(self, seen: Seen) -> Frames:
        """The cells of a puzzle's fragments."""
        return counted(seen.outlines, self.votes(shape_features(seen.features, seen.outlines), seen.outlines.start))


@cache
def load_frames(weights: Path | None = None) -> FrameModel:
    """The network of a file, or the shipped one; JigsyncError without onnxruntime or with a file that is not usable."""
    return FrameModel(*read_weights(SHIPPED, weights))
