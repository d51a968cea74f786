"""Parts of the solver `free`: motions, rasters against plain sums, loops and fits."""

from __future__ import annotations

import numpy as np
import pytest

from jigsync.engine.outlines import Pairs, contacts
from jigsync.solvers.free import motion
from jigsync.solvers.free.evidence import Evidence
from jigsync.solvers.free.joined import Joined
from jigsync.solvers.free.links import Links
from jigsync.solvers.free.polish import fit, polish
from jigsync.solvers.free.refit import refit
from jigsync.solvers.free.shapes import Shapes
from jigsync.solvers.free.solver import squares
from jigsync.values import angles
from jigsync.values.arrangement import Poses
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.outlines import Matches, Outlines
from jigsync.values.pose import Pose

NO_MATCHES = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
NO_LINKS = Links.of(PairHypotheses.none(4))


def wavy(gap: float) -> tuple[Outlines, np.ndarray]:
    """Four pieces of a square of 200 px cut along two wavy lines, each smaller by half the gap, in odd frames."""
    t = np.linspace(0.0, 100.0, 400)
    wave = 9 * np.sin(t / 100 * 2 * np.pi * 1.5) + 4 * np.sin(t / 100 * 2 * np.pi * 4)
    xy, normal, start, poses = [], [], [0], []
    turns = (0.4, -2.1, 1.3, 3.0)
    arms = [np.stack(pair, axis=1) for pair in ((100 + t, 100 + wave), (100 + wave, 100 + t), (100 - t, 100 - wave),
                                                 (100 - wave, 100 - t))]  # fmt: skip
    corners = ((200.0, 200.0), (0.0, 200.0), (0.0, 0.0), (200.0, 0.0))
    for k in range(4):
        one, other = arms[k], arms[(k + 1) % 4]
        loop = np.concatenate([one, [np.array(corners[k])], other[::-1]])
        if _signed(loop) < 0:
            loop = loop[::-1]
        loop = _even(loop)
        out = _outward(loop)
        loop = loop - out * gap / 2
        centre = loop.mean(axis=0) + np.array([3.0 * k, -2.0])
        pose = np.array([*centre, turns[k]])
        back = motion.inverse(pose)
        xy.append(motion.apply(back, loop))
        normal.append(angles.act(back[2], out))
        poses.append(pose)
        start.append(start[-1] + len(loop))
    return Outlines(np.array(start), np.concatenate(xy), np.concatenate(normal), 3.0), np.array(poses)


def _signed(loop: np.ndarray) -> float:
    x, y = loop.T
    return float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def _even(loop: np.ndarray) -> np.ndarray:
    closed = np.concatenate([loop, loop[:1]])
    far = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    at = np.arange(round(far[-1] / 3.0)) * far[-1] / round(far[-1] / 3.0)
    return np.stack([np.interp(at, far, closed[:, k]) for k in range(2)], axis=1)


def _outward(loop: np.ndarray) -> np.ndarray:
    along = np.roll(loop, -1, axis=0) - np.roll(loop, 1, axis=0)
    along /= np.hypot(*along.T)[:, None]
    return np.stack([along[:, 1], -along[:, 0]], axis=1)


def errors(pose: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Relative poses towards fragment 0 against the true ones. Shapes: -> (N, 3)."""
    return np.abs(motion.difference(motion.between(pose[:1], pose), motion.between(true[:1], true)))


def test_motions_are_poses() -> None:
    a, b = Pose(0.7, (3.0, -5.0)), Pose(-2.9, (11.0, 2.0))
    x, y = np.array([*a.xy, a.angle]), np.array([*b.xy, b.angle])
    for found, pose in (
        (motion.compose(x, y), a.compose(b)),
        (motion.inverse(x), a.inverse()),
        (motion.between(x, y), a.between(b)),
    ):
        assert found == pytest.approx([*pose.xy, pose.angle])
    assert motion.apply(x, np.array([4.0, 9.0])) == pytest.approx(a.act(np.array([4.0, 9.0])))
    step = 1e-6
    slope = (angles.act(0.7 + step, np.array([2.0, 1.0])) - angles.act(0.7, np.array([2.0, 1.0]))) / step
    assert motion.swing(np.array(0.7), np.array([2.0, 1.0])) == pytest.approx(slope, abs=1e-5)


def test_compiled_contacts_are_the_plain_sum() -> None:
    outlines, true = wavy(6.0)
    shapes = Shapes.of(outlines)
    pose = true + np.array([[0, 0, 0], [1.0, -2.0, 0.02], [0.5, 0.5, -0.01], [-1.5, 0, 0.03]])
    a, b = (part.astype(np.int64) for part in np.nonzero(~np.eye(4, dtype=bool)))
    gap, scale, reach, facing, unit = 5.0, 3.0, 12.0, 0.3, 0.7
    blocks, count = contacts(shapes.rasters, Pairs(a, b, pose[a], pose[b]), gap, scale, reach, facing, unit)
    plain = shapes.contacts(a, b, motion.between(pose[a], pose[b]), reach)
    assert (plain.facing > facing).sum() > 60
    expected, near = np.zeros_like(blocks), np.zeros_like(count)
    for k, s, t, distance, faces in zip(*plain, strict=True):
        if faces <= facing:
            continue
        normal = angles.act(pose[b[k], 2], outlines.normal[t])
        residual = distance - gap
        weight = unit * faces * (scale**2 / (scale**2 + residual**2)) ** 2
        row = np.array([
            *normal, motion.swing(pose[a[k], 2], outlines.xy[s]) @ normal,
            *-normal, -motion.swing(pose[b[k], 2], outlines.xy[t]) @ normal, -1.0, residual,
        ])  # fmt: skip
        expected[k] += weight * np.outer(row, row)
        near[k] += abs(residual) < 2 * scale
    assert count.tolist() == near.tolist()
    assert np.allclose(np.triu(blocks), np.triu(expected), rtol=1e-9, atol=1e-9)


def test_overlap_is_the_share_of_the_smaller_one() -> None:
    shapes = Shapes.of(squares(2, 60.0))
    zero, one = np.array([0]), np.array([1])
    assert shapes.overlap(zero, one, np.array([[30.0, 0.0, 0.0]]), 0.0)[0] == pytest.approx(0.5, abs=0.06)
    assert shapes.overlap(zero, one, np.array([[60.0, 0.0, 0.0]]), 1.0)[0] == 0.0
    assert shapes.overlap(zero, one, np.array([[0.0, 0.0, 0.5]]), 0.0)[0] > 0.75


@pytest.mark.parametrize("gap", [0.0, 5.0])
def test_polish_finds_poses_and_the_gap(gap: float) -> None:
    outlines, true = wavy(gap)
    shapes, rng = Shapes.of(outlines), np.random.default_rng(0)
    start = true + rng.normal(size=(4, 3)) * [2.5, 2.5, 0.03]
    done = polish(shapes, start, np.zeros(4, np.int64), Joined.of(outlines, NO_MATCHES), NO_LINKS, gap=0.0, rounds=20)
    assert done.gap == pytest.approx(gap, abs=0.4)
    assert errors(done.pose, true)[:, :2].max() < 0.8 < errors(start, true)[:, :2].max()
    assert errors(done.pose, true)[:, 2].max() < 0.01


def test_polish_leaves_alone_what_is_fixed_or_apart() -> None:
    outlines, true = wavy(0.0)
    shapes = Shapes.of(outlines)
    start = true + np.array([[0, 0, 0], [3.0, 1.0, 0.02], [2.0, 2.0, 0.0], [1.0, 2.0, 0.03]])
    component = np.array([0, 0, -1, 0])
    free = np.array([False, True, True, False])
    done = polish(shapes, start, component, Joined.of(outlines, NO_MATCHES), NO_LINKS, gap=0.0, free=free)
    assert np.array_equal(done.pose[[0, 2, 3]], start[[0, 2, 3]])
    assert not np.allclose(done.pose[1], start[1], atol=0.1)


def test_short_fits_reach_what_the_polish_reaches() -> None:
    outlines, true = wavy(5.0)
    shapes = Shapes.of(outlines)
    start = true + np.array([[0, 0, 0], [2.0, -1.0, 0.02], [1.0, 2.0, -0.02], [-2.0, 1.0, 0.01]])
    moves = np.array([False, True, True, True])
    pose = fit(shapes, Joined.of(outlines, NO_MATCHES), start, np.arange(4), moves, 5.0)
    assert np.array_equal(pose[0], start[0])
    assert errors(pose, true)[:, :2].max() < 0.8


def test_refitted_hypotheses_come_nearer_to_the_truth() -> None:
    outlines, true = wavy(5.0)
    shapes = Shapes.of(outlines)
    i, j = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    right = motion.between(true[i], true[j])
    off = right + np.array([[3.0, 2.0, 0.04], [-3.0, 1.0, -0.05], [2.0, -3.0, 0.03], [-2.0, 2.0, -0.04]])
    said = Links(i, j, off, np.tile(np.diag([0.1, 0.1, 400.0]), (4, 1, 1)))
    done = refit(shapes, said, Joined.of(outlines, NO_MATCHES), 5.0, 3.0)
    before, after = (np.abs(motion.difference(x, right)) for x in (off, done.links.i_from_j))
    assert np.all(np.hypot(*after[:, :2].T) < 0.6 * np.hypot(*before[:, :2].T))
    assert done.length.min() > 40
    assert done.overlap.max() == 0.0


def loop_of(poses: list[Pose], pairs: list[tuple[int, int]], off: float) -> PairHypotheses:
    """Hypotheses of the given pairs, the last one wrong by `off` px, all of the same odds."""
    said = [poses[i].between(poses[j]) for i, j in pairs]
    xy = np.array([pose.xy for pose in said])
    xy[-1] += off
    ends = np.array(pairs)
    turn, count = np.array([pose.angle for pose in said]), len(pairs)
    sure = np.tile(np.diag([0.25, 0.25, 1e3]), (count, 1, 1))
    return PairHypotheses(len(poses), ends[:, 0], ends[:, 1], turn, xy, np.full(count, 1.0), sure)


@pytest.mark.parametrize("pairs", [[(0, 1), (1, 2), (2, 0)], [(0, 1), (2, 1), (2, 3), (0, 3)]])
def test_loops_that_close_speak_for_their_hypotheses(pairs: list[tuple[int, int]]) -> None:
    poses = [Pose(a, xy) for a, xy in ((0.3, (0, 0)), (2.0, (90, 10)), (-1.1, (70, 95)), (0.9, (-5, 100)))]
    loose = np.array([2.0, 2.0, 0.02])
    closed = Evidence.of(loop_of(poses, pairs, 0.0), 100.0, loose)
    open_ = Evidence.of(loop_of(poses, pairs, 60.0), 100.0, loose)
    assert closed.boost.min() > 3.0
    assert open_.boost.max() < 0.1


def test_hypotheses_never_claim_more_than_a_planar_graph() -> None:
    n = 6
    i, j = (np.repeat(part, 5) for part in np.triu_indices(n, 1))
    count = len(i)
    sure = np.tile(np.diag([1.0, 1.0, 1e3]), (count, 1, 1))
    rng = np.random.default_rng(2)
    xy, odds = rng.normal(size=(count, 2)) * 100, np.linspace(1.0, 3.0, count)
    found = PairHypotheses(n, i, j, rng.uniform(-3, 3, count), xy, odds, sure)
    worth = Evidence.of(found, 100.0, np.array([2.0, 2.0, 0.02])).worth[:count]
    assert (1 / (1 + np.exp(-worth))).sum() == pytest.approx(2.6 * n)
    assert np.diff(worth) == pytest.approx(np.diff(odds))


def on_grid(rows: int, cols: int, turn: float, noise: float, seed: int = 0) -> tuple[Poses, np.ndarray]:
    rng = np.random.default_rng(seed)
    cells = np.array([(row, col) for row in range(rows) for col in range(cols)])
    xy = angles.act(turn, cells[:, ::-1] * 100.0) + rng.normal(size=(len(cells), 2)) * 100 * noise
    angle = angles.wrap(turn + rng.normal(size=len(cells)) * noise)
    return Poses(np.asarray(angle), xy, np.zeros(len(cells), dtype=np.int64)), cells
