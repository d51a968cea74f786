"""Poses that the matches of two fragments agree on.

Every two matches (s, t), (s', t') of a pair give a pose, that which takes the chord t t' to s s':

    phase(angle) = (a' - a) / (b' - b) over its modulus,  xy = mean a - R mean b        a at s, b at t

Its worth is the sum of the strengths of all matches that it brings within TOLERANCE steps. The best ones of a pair that
differ are refitted to all its matches by weighted least squares (Procrustes), the weights falling to zero at the
tolerance. Where edges are worn, outlines are met half way: a and b stand half a gap out along their normals.

Points are complex numbers here (`angles.plane`), and pairs lie side by side in arrays of FEW columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles
from jigsync.values.outlines import Floats, Ints, Matches, Outlines

Complex = NDArray[np.complex128]

FEW: Final = 24
"""Matches of a pair that poses are made of."""
TOLERANCE: Final = 2.5
"""Steps."""
CHORD: Final = 5.0
"""Least distance of two matches that make a pose, in steps."""
STRETCH: Final = 2.0, 0.1
"""How much the chords of two matches may differ: steps, and a share of their length."""
OPPOSITE: Final = -0.2
"""Largest cosine between the normals of matched samples under a pose."""
ALIKE: Final = 0.35, 4.0
"""Poses of a pair that differ by less than this angle (radians) and shift (steps) are one."""
PER_PAIR: Final = 3
PAIRS_PER_FRAGMENT: Final = 16
ROUNDS: Final = 5
WIDE: Final = 2.0
"""The tolerance of the first round of refitting, in tolerances; it narrows to 1."""
LEAST_WORTH: Final = 0.05
AT_ONCE: Final = 256
"""Pairs whose poses are made at once."""


@dataclass(frozen=True, eq=False)
class PairPoses:
    """H poses of pairs i < j.

    Shapes: i, j (H,) int64; phase, xy (H,) complex, x_i = phase x_j + xy; worth (H,) the strength within the tolerance.
    """

    i: Ints
    j: Ints
    phase: Complex
    xy: Complex
    worth: Floats

    def __len__(self) -> int:
        return len(self.i)

    def keep(self, which: NDArray[np.bool_] | Ints) -> PairPoses:
        """Some of them."""
        return PairPoses(self.i[which], self.j[which], self.phase[which], self.xy[which], self.worth[which])


@dataclass(frozen=True, eq=False)
class Paired:
    """Matches sorted by pair.

    Shapes: i, j, first, count (P,) int64 of the pairs; s, t (M,) int64 and strength (M,) of the matches.
    """

    i: Ints
    j: Ints
    first: Ints
    count: Ints
    s: Ints
    t: Ints
    strength: Floats

    def of_pairs(self, pairs: Ints) -> tuple[Ints, Ints]:
        """The matches of some pairs, one pair after the other: the place in `pairs` and the number of each match.

        Shapes: (P,) -> (M',), (M',).
        """
        count = self.count[pairs]
        which = np.repeat(np.arange(len(pairs)), count)
        place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return which, place + np.repeat(self.first[pairs], count)


def paired(matches: Matches, outlines: Outlines) -> Paired:
    """The matches of the pairs that share most strength, PAIRS_PER_FRAGMENT per fragment."""
    n, owner = outlines.n, outlines.owner
    key = owner[matches.s] * n + owner[matches.t]
    order = np.lexsort((-matches.strength, key))
    key, s, t, strength = key[order], matches.s[order], matches.t[order], matches.strength[order]
    pairs, first, count = np.unique(key, return_index=True, return_counts=True)
    total = np.add.reduceat(strength, first) if len(pairs) else np.zeros(0)
    most = np.argsort(-total, kind="stable")[: PAIRS_PER_FRAGMENT * n]
    chosen = np.sort(most[(total[most] > LEAST_WORTH) & (count[most] > 1)])
    kept = np.repeat(np.isin(np.arange(len(pairs)), chosen), count)
    starts = np.concatenate([[0], np.cumsum(count[chosen])])[:-1].astype(np.int64)
    mine = s[kept], t[kept], strength[kept]
    return Paired(pairs[chosen] // n, pairs[chosen] % n, starts, count[chosen], *mine)


def propose(found: Paired, outlines: Outlines, gap: float = 0.0) -> PairPoses:
    """Up to PER_PAIR poses of every pair, refitted, the worthiest first.

    Args:
        gap: between the outlines of neighbours, px.
    """
    normal = angles.plane(outlines.normal)
    points = angles.plane(outlines.xy) + gap / 2 * normal
    parts = [
        _seeds(found, points, normal, outlines.step, np.arange(k, min(k + AT_ONCE, len(found.i))))
        for k in range(0, len(found.i), AT_ONCE)
    ]
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return PairPoses(nothing, nothing, np.zeros(0, complex), np.zeros(0, complex), np.zeros(0))
    pair, phase, xy = (np.concatenate(column) for column in zip(*parts, strict=True))
    return refit(found, pair, phase, xy, points, normal, outlines.step)


def _seeds(found: Paired, points: Complex, normal: Complex, step: float, pairs: Ints) -> tuple[Ints, Complex, Complex]:
    """The best poses of some pairs that differ. Shapes: (P,) -> (S,) each: pair, phase, xy."""
    column = np.arange(FEW)
    there = column < found.count[pairs][:, None]
    at = found.first[pairs][:, None] + np.where(there, column, 0)
    s, t = found.s[at], found.t[at]
    weight = np.where(there, found.strength[at], 0.0)
    a, b, out_a, out_b = points[s], points[t], normal[s], normal[t]
    u, v = np.triu_indices(FEW, 1)
    chord_a, chord_b = a[:, v] - a[:, u], b[:, v] - b[:, u]
    long_a, long_b = np.abs(chord_a), np.abs(chord_b)
    phase = chord_a * chord_b.conj()
    phase /= np.maximum(np.abs(phase), 1e-12)
    xy = (a[:, u] + a[:, v] - phase * (b[:, u] + b[:, v])) / 2
    fits = (np.minimum(long_a, long_b) > CHORD * step) & (weight[:, u] > 0) & (weight[:, v] > 0)
    fits &= np.abs(long_a - long_b) < STRETCH[0] * step + STRETCH[1] * long_a
    worth = np.zeros(phase.shape)
    row, seed = np.nonzero(fits)
    turned = phase[row, seed]
    away = turned[:, None] * b[row] + xy[row, seed][:, None] - a[row]
    close = 1 - (away.real**2 + away.imag**2) / (TOLERANCE * step) ** 2
    facing = (turned[:, None] * out_b[row] * out_a[row].conj()).real < OPPOSITE
    worth[row, seed] = (weight[row] * np.where(facing, np.maximum(close, 0), 0)).sum(axis=1)
    best: list[tuple[Ints, Complex, Complex]] = []
    every = np.arange(len(pairs))
    middle = b.mean(axis=1)
    for _ in range(PER_PAIR):
        top = worth.argmax(axis=1)
        good = worth[every, top] > LEAST_WORTH
        chosen, shift = phase[every, top], xy[every, top]
        best.append((pairs[good], chosen[good], shift[good]))
        moved = np.abs(phase * middle[:, None] + xy - (chosen * middle + shift)[:, None])
        same = ((phase * chosen.conj()[:, None]).real > np.cos(ALIKE[0])) & (moved < ALIKE[1] * step)
        worth[same | ~good[:, None]] = 0
    pair, turn, shift = (np.concatenate(column) for column in zip(*best, strict=True))
    return pair, turn, shift


def refit(
    found: Paired, pair: Ints, phase: Complex, xy: Complex, points: Complex, normal: Complex, step: float
) -> PairPoses:
    """Poses fitted to all matches of their pairs, those that became the same dropped, the worthiest first."""
    which, at = found.of_pairs(pair)
    s, t, strength = found.s[at], found.t[at], found.strength[at]
    a, b, out_a, out_b = points[s], points[t], normal[s], normal[t]
    for k in range(ROUNDS):
        tolerance = TOLERANCE * step * (WIDE + (1 - WIDE) * k / (ROUNDS - 1))
        w = weighed(phase, xy, which, strength, a, b, out_a, out_b, tolerance)
        phase, xy = fitted(phase, which, w, a, b)
    w = weighed(phase, xy, which, strength, a, b, out_a, out_b, TOLERANCE * step)
    poses = PairPoses(found.i[pair], found.j[pair], phase, xy, np.bincount(which, w, len(pair)).astype(np.float64))
    middle = summed(b, which, len(pair)) / np.maximum(found.count[pair], 1)
    return _distinct(poses, pair, middle, step)


def weighed(
    phase: Complex,
    xy: Complex,
    which: Ints,
    strength: Floats,
    a: Complex,
    b: Complex,
    out_a: Complex,
    out_b: Complex,
    tolerance: float,
) -> Floats:
    """Weights of matches under poses: strength (1 - (r / tolerance)^2)^2, 0 beyond it and where normals agree.

    Shapes: phase, xy (H,), all others (M,) -> (M,).
    """
    away = phase[which] * b + xy[which] - a
    near = np.maximum(1 - (away.real**2 + away.imag**2) / tolerance**2, 0)
    return np.where((phase[which] * out_b * out_a.conj()).real < OPPOSITE, strength * near**2, 0.0)


def fitted(phase: Complex, which: Ints, w: Floats, a: Complex, b: Complex) -> tuple[Complex, Complex]:
    """min over (R, xy) of sum_m w_m |a_m - R b_m - xy|^2 of every pose; a pose without weight keeps its angle.

    Shapes: phase (H,), which, w, a, b (M,) -> (H,), (H,).
    """
    h = len(phase)
    mass = np.maximum(np.bincount(which, w, h), 1e-12)
    mean_a, mean_b = summed(w * a, which, h) / mass, summed(w * b, which, h) / mass
    turn = summed(w * (a - mean_a[which]) * (b - mean_b[which]).conj(), which, h)
    size = np.abs(turn)
    phase = np.where(size > 1e-9 * mass, turn / np.maximum(size, 1e-300), phase)
    return phase, mean_a - phase * mean_b


def summed(values: Complex, which: Ints, count: int) -> Complex:
    """Sums by number. Shapes: (M,), (M,) -> (count,)."""
    return np.asarray(np.bincount(which, values.real, count) + 1j * np.bincount(which, values.imag, count))


def _distinct(poses: PairPoses, pair: Ints, middle: Complex, step: float) -> PairPoses:
    """Without those that lie as a worthier one of the same pair does."""
    order = np.argsort(-poses.worth, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    by_pair = np.lexsort((rank, pair))
    dropped = poses.worth <= LEAST_WORTH
    where = poses.phase * middle + poses.xy
    for back in range(1, PER_PAIR):
        here, before = by_pair[back:], by_pair[:-back]
        alike = pair[here] == pair[before]
        alike &= (poses.phase[here] * poses.phase[before].conj()).real > np.cos(ALIKE[0])
        alike &= np.abs(where[here] - where[before]) < ALIKE[1] * step
        dropped[here[alike & ~dropped[before]]] = True
    return poses.keep(order[~dropped[order]])
