"""The one rigid motion that brings most fragments where they belong.

Fragment i lies at angle a_i and centre p_i in the answer, at theta_i and q_i in truth. A motion (phi, t) makes it right
if

    |phi - (theta_i - a_i)| <= 5 degrees   and   |R(phi) p_i + t - q_i| <= reach_i

The search is exact but for EPSILON: no motion makes more fragments right at tolerances smaller by that share than
`best_motion` makes right at the full ones. Candidates come from every fragment (the motion that makes it exact) and are
fitted again to the fragments that they make right. Then branch and bound shows that nothing better is left, or finds
it: around each fragment that could be in a larger set, boxes of motions (phi, u) in which it is off by u are cut in
pieces as long as the fragments that a box could make right outnumber the best found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TURN: Final = math.radians(5.0)
"""How far a right fragment's angle may be off."""
EPSILON: Final = 1 / 64
"""Share of the tolerances by which the search may be inexact."""
SLACK: Final = 1e-9
"""Share of the tolerances that rounding may take: a fragment exactly at the edge is right."""
REFITS: Final = 8
"""Rounds of fitting to what is right, at most."""
FITTED: Final = 32
"""Candidates that are fitted again: this many of the best, and all that make as many right."""
AT_ONCE: Final = 1 << 18
"""Numbers that are worked on at once: bounds the memory."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Where n fragments lie, and where they belong.

    Shapes: turn (n,) theta_i - a_i in [-pi, pi); xy, home (n, 2) centres in the answer and in truth; reach (n,) how far
    a right centre may be off.
    """

    turn: Floats
    xy: Floats
    home: Floats
    reach: Floats

    def __len__(self) -> int:
        return len(self.turn)

    def keep(self, which: Mask) -> Pairs:
        """Some of them."""
        return Pairs(self.turn[which], self.xy[which], self.home[which], self.reach[which])

    def errors(self, motion: Motion) -> tuple[Floats, Floats]:
        """How far every fragment is off after a motion: angle in radians, centre. Shapes: -> (n,), (n,)."""
        off = angles.act(motion.angle, self.xy) + np.array(motion.xy) - self.home
        return np.abs(angles.wrap(motion.angle - self.turn)), np.hypot(off[:, 0], off[:, 1])

    def near(self, motion: Motion) -> Mask:
        """Whose centre a motion makes right. Shapes: -> (n,)."""
        return np.asarray(self.errors(motion)[1] <= self.reach * (1 + SLACK))

    def right(self, motion: Motion) -> Mask:
        """Which fragments a motion makes right. Shapes: -> (n,)."""
        return np.asarray((self.errors(motion)[0] <= TURN * (1 + SLACK)) & self.near(motion))


@dataclass(frozen=True)
class Motion:
    """truth_from_answer: x_truth = R(angle) x_answer + xy."""

    angle: float
    xy: tuple[float, float]


def best_motion(pairs: Pairs) -> Motion | None:
    """The motion that makes most fragments right; of those found an upright one first, then the one that fits best.

    None for no fragments.
    """
    if not len(pairs):
        return None
    found = list(_candidates(pairs))
    near: Mask | None = None
    left = np.ones(len(pairs), dtype=bool)
    while True:
        best = max(found, key=lambda motion: rank(pairs, motion))
        count = int(pairs.right(best).sum())
        if count == len(pairs):
            return best
        near = _compatible(pairs) if near is None else near
        better = _better(pairs, near, left, count)
        if better is None:
            return best
        found.append(_refit(pairs, better))


def rank(pairs: Pairs, motion: Motion) -> tuple[int, bool, float]:
    """What the best motion has most of: fragments right, being upright, a good fit."""
    turn, off = pairs.errors(motion)
    right = pairs.right(motion)
    misfit = np.square(turn[right] / TURN).sum() + np.square(off[right] / pairs.reach[right]).sum()
    return int(right.sum()), abs(motion.angle) <= TURN, -round(float(misfit), 9)


def _candidates(pairs: Pairs) -> Iterator[Motion]:
    """The motions that make one fragment exact, fitted to all that they make right; of those that agree, one."""
    shift = pairs.home - angles.act(pairs.turn, pairs.xy)
    lone = _refit(pairs, Motion(float(pairs.turn[0]), (float(shift[0, 0]), float(shift[0, 1]))))
    yield lone
    if pairs.right(lone).all():
        return
    count = np.zeros(len(pairs), dtype=np.int64)
    step = max(1, AT_ONCE // len(pairs))
    for first in range(0, len(pairs), step):
        part = slice(first, first + step)
        off = angles.act(pairs.turn[part, None], pairs.xy[None]) + shift[part, None] - pairs.home[None]
        turned = np.abs(angles.wrap(pairs.turn[part, None] - pairs.turn[None])) <= TURN
        count[part] = (turned & (np.hypot(off[..., 0], off[..., 1]) <= pairs.reach)).sum(axis=1)
    seen: set[bytes] = set()
    for k in np.argsort(-count, kind="stable"):
        motion = Motion(float(pairs.turn[k]), (float(shift[k, 0]), float(shift[k, 1])))
        if count[k] < count.max() and len(seen) >= FITTED:
            return
        right = pairs.right(motion).tobytes()
        if right not in seen:
            seen.add(right)
            yield _refit(pairs, motion)


def _refit(pairs: Pairs, motion: Motion) -> Motion:
    """The motion fitted to what it makes right, as long as that does not become less."""
    right = pairs.right(motion)
    for _ in range(REFITS):
        fitted = _fit(pairs.keep(right), motion.angle)
        now = pairs.right(fitted)
        if now.sum() < right.sum():
            break
        motion = fitted
        if np.array_equal(now, right):
            break
        right = now
    return motion


def _fit(pairs: Pairs, start: float) -> Motion:
    """Least squares from a nearby angle: sum |R(phi) p + t - q|^2 / reach^2 + (phi - turn)^2 / TURN^2.

    With centred p and q the first sum is const - 2 (C cos phi + S sin phi), C = sum w q.p, S = sum w q.R(90 degrees)p;
    so Newton's steps are in one variable.
    """
    weight = pairs.reach**-2.0
    total = weight.sum()
    middle, home = ((weight[:, None] * at).sum(axis=0) / total for at in (pairs.xy, pairs.home))
    p, q = pairs.xy - middle, pairs.home - home
    c = float((weight * (q * p).sum(axis=1)).sum())
    s = float((weight * (q * angles.act(angles.QUARTER, p)).sum(axis=1)).sum())
    phi = start
    for _ in range(REFITS):
        away = float(angles.wrap(phi - pairs.turn).sum()) / TURN**2
        bend = c * math.cos(phi) + s * math.sin(phi) + len(pairs) / TURN**2
        if bend <= 0:
            break
        phi -= (c * math.sin(phi) - s * math.cos(phi) + away) / bend
    phi = angles.wrap(phi)
    x, y = home - angles.act(phi, middle)
    return Motion(phi, (float(x), float(y)))


# ------------------------------------------------------------------------------------- nothing better is left


def _better(pairs: Pairs, near: Mask, left: Mask, best: int) -> Motion | None:
    """A motion that makes more than `best` fragments right, or None when there is none.

    Args:
        near: `_compatible`.
        left: the fragments that may be in a larger set; whoever cannot is taken out, in place.
    """
    while True:
        degree = _core(near, left, best)
        if not left.any():
            return None
        i = int(np.argmin(np.where(left, degree, len(pairs) + 1)))
        with_i = left & near[i]
        found = _around(pairs.keep(with_i), int(with_i[:i].sum()), best)
        if found is not None:
            return found
        left[i] = False


def _core(near: Mask, left: Mask, best: int) -> NDArray[np.int64]:
    """Takes out of `left`, in place, whoever cannot be in a set of more than `best`; the degrees of the others.

    Shapes: near (n, n), left (n,) -> (n,), a fragment counting itself.
    """
    degree = np.asarray(near[:, left].sum(axis=1), dtype=np.int64)
    while (leaves := left & (degree <= best)).any():
        left &= ~leaves
        degree = degree - near[:, leaves].sum(axis=1)
    return degree


def _compatible(pairs: Pairs) -> Mask:
    """Which two fragments some motion makes right at once. Shapes: -> (n, n).

    With P = p_j - p_i and Q = q_j - q_i their centres' errors differ by R(phi) P - Q: shortest where R(phi) P points
    along Q, or at the end of the angles allowed to both that comes nearest to that.
    """
    n = len(pairs)
    out = np.zeros((n, n), dtype=bool)
    step = max(1, AT_ONCE // n)
    for first in range(0, n, step):
        part = slice(first, first + step)
        apart = angles.wrap(pairs.turn[None] - pairs.turn[part, None])
        half = TURN - np.abs(apart) / 2  # the angles allowed to both: the middle of the two turns, plus or minus this
        p = pairs.xy[None] - pairs.xy[part, None]
        q = pairs.home[None] - pairs.home[part, None]
        p = angles.act(pairs.turn[part, None] + apart / 2, p)
        aligned = np.abs(_angle_between(p, q))
        rest = np.maximum(aligned - np.maximum(half, 0.0), 0.0)
        length = np.hypot(p[..., 0], p[..., 1]), np.hypot(q[..., 0], q[..., 1])
        shortest = np.sqrt(np.square(length[0] - length[1]) + 4 * length[0] * length[1] * np.square(np.sin(rest / 2)))
        out[part] = (half >= 0) & (shortest <= pairs.reach[part, None] + pairs.reach[None])
    return out


def _angle_between(p: Floats, q: Floats) -> Floats:
    """The angle phi that turns p onto q, R(phi) p ~ q. Shapes: (..., 2), (..., 2) -> (...)."""
    across = angles.act(angles.QUARTER, p)
    return np.asarray(np.arctan2((across * q).sum(axis=-1), (p * q).sum(axis=-1)))


def _around(pairs: Pairs, i: int, best: int) -> Motion | None:
    """A motion that makes fragment i and at least `best` others right, or None.

    The boxes: phi = turn_i + a, |a| <= TURN, and u with |u_x|, |u_y| <= reach_i, in which
    R(phi) p_j + t - q_j = R(phi) (p_j - p_i) - (q_j - q_i) + u.
    """
    at = angles.act(pairs.turn[i], pairs.xy - pairs.xy[i])
    p, across, q = at.T, angles.act(angles.QUARTER, at).T, (pairs.home - pairs.home[i]).T
    turn = angles.wrap(pairs.turn - pairs.turn[i])
    radius = np.hypot(p[0], p[1])
    reach, within = np.square(pairs.reach * (1 + SLACK)), TURN * (1 + SLACK)
    shrunk = 1 - EPSILON
    # How far a box reaches: half its angles, half its sides. All boxes of one depth are alike.
    sizes = [(TURN, float(pairs.reach[i]))]
    todo = [(0, np.zeros((1, 3)))]
    typical = float(np.median(radius))
    while todo:
        depth, boxes = todo.pop()
        half_turn, half_side = sizes[depth]
        a, ux, uy = boxes.T[:, :, None]
        cos, sin = np.cos(a), np.sin(a)
        # Squared, coordinate by coordinate: this line is where a search spends its time.
        off = np.square(cos * p[0] + sin * across[0] - q[0] + ux) + np.square(cos * p[1] + sin * across[1] - q[1] + uy)
        turned = np.abs(a - turn)
        count = np.count_nonzero((turned <= within) & (off <= reach), axis=1)
        if count.max() > best:
            box = boxes[int(np.argmax(count))]
            phi = angles.wrap(float(pairs.turn[i] + box[0]))
            x, y = pairs.home[i] + box[1:] - angles.act(phi, pairs.xy[i])
            return Motion(phi, (float(x), float(y)))
        more = 2 * np.sin(half_turn / 2) * radius + math.sqrt(2) * half_side
        could = (turned <= shrunk * TURN + half_turn) & (off <= np.square(shrunk * pairs.reach + more))
        bound = np.count_nonzero(could, axis=1)
        open_ = could[:, i] & (bound > best)
        if not open_.any():
            continue
        boxes = boxes[open_][np.argsort(bound[open_], kind="stable")]  # the most promising is taken up next
        by_angle = 2 * np.sin(half_turn / 2) * typical > half_side or half_turn > half_side / pairs.reach[i] * TURN
        if len(sizes) == depth + 1:
            sizes.append((half_turn / 2, half_side) if by_angle else (half_turn, half_side / 2))
        steps = [(-1, 0, 0), (1, 0, 0)] if by_angle else [(0, -1, -1), (0, -1, 1), (0, 1, -1), (0, 1, 1)]
        move = np.array(steps) * (half_turn / 2, half_side / 2, half_side / 2)
        children = (boxes[:, None] + move).reshape(-1, 3)
        at_once = max(1, AT_ONCE // len(pairs))
        todo += [(depth + 1, children[k : k + at_once]) for k in range(0, len(children), at_once)]
    return None
