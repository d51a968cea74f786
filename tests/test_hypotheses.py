"""Pair hypotheses, and the adapters between them and the sides and relations of a grid."""

from __future__ import annotations

import numpy as np
import pytest

from jigsync import data
from jigsync.api import cut_with_truth, solve
from jigsync.measure.boundary import Boundary
from jigsync.values import angles, z4
from jigsync.values import vocabulary as v
from jigsync.values.errors import FormatError
from jigsync.values.hypotheses import NO_TURNS, PairHypotheses
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.measurements import Measurements
from jigsync.values.outlines import Matches, Outlines
from jigsync.values.pairs import Relations
from jigsync.values.pose import Pose
from jigsync.values.steps import LEAST, OF_A_PAIR, hypotheses_of_sides


def random_hypotheses(n: int, count: int, seed: int) -> PairHypotheses:
    rng = np.random.default_rng(seed)
    i = rng.integers(0, n, count)
    j = (i + rng.integers(1, n, count)) % n
    root = rng.normal(size=(count, 3, 3))
    turns = np.where(rng.random(count) < 0.3, rng.integers(0, 4, count), NO_TURNS)
    angle = np.where(turns == NO_TURNS, rng.uniform(-3, 3, count), angles.wrap(turns * angles.QUARTER))
    information = root @ root.swapaxes(1, 2)
    return PairHypotheses(n, i, j, angle, rng.normal(0, 80, (count, 2)), rng.normal(size=count), information, turns)


def test_the_reversed_hypothesis_is_the_inverse_pose() -> None:
    found = random_hypotheses(7, 40, 1)
    back = found.reversed()
    for k in range(len(found)):
        want, got = found.pose(k).inverse(), back.pose(k)
        assert got.xy == pytest.approx(want.xy)
        assert angles.wrap(got.angle - want.angle) == pytest.approx(0, abs=1e-12)
        assert got.turns == want.turns
    again = back.reversed()
    np.testing.assert_array_equal(again.i, found.i)
    np.testing.assert_allclose(again.xy, found.xy, atol=1e-9)
    np.testing.assert_allclose(again.information, found.information, atol=1e-7)


def test_the_information_is_carried_to_the_other_side() -> None:
    """e' Information' e' of the reversed errors equals e' Information e, to first order."""
    found = random_hypotheses(5, 20, 2)
    back = found.reversed()
    error = np.random.default_rng(3).normal(0, 1e-5, (20, 3))
    for k in range(20):
        true = Pose(found.angle[k] + error[k, 2], tuple(found.xy[k] + error[k, :2])).inverse()
        other = np.array([*(np.array(true.xy) - back.xy[k]), angles.wrap(true.angle - back.angle[k])])
        want = error[k] @ found.information[k] @ error[k]
        assert other @ back.information[k] @ other == pytest.approx(want, rel=1e-2)


def test_members_are_numbered_anew() -> None:
    found = random_hypotheses(6, 60, 4)
    members = np.array([4, 1, 5])
    part = found.select(members)
    assert part.n == 3
    inside = np.isin(found.i, members) & np.isin(found.j, members)
    np.testing.assert_array_equal(members[part.i], found.i[inside])
    np.testing.assert_array_equal(members[part.j], found.j[inside])
    both = part.joined(part)
    assert len(both) == 2 * len(part)
    np.testing.assert_array_equal(both.xy[len(part) :], part.xy)


@pytest.mark.parametrize("change", [{"j": [0]}, {"j": [3]}, {"xy": [[0.0, np.nan]]}, {"log_odds": [np.inf]}])
def test_impossible_hypotheses_are_refused(change: dict[str, list[object]]) -> None:
    parts = {"i": [0], "j": [1], "angle": [0.0], "xy": [[0.0, 0.0]], "log_odds": [0.0], "information": [np.eye(3)]}
    with pytest.raises(FormatError, match=r"hypothes[ie]s"):
        PairHypotheses(3, **{name: np.array(value) for name, value in (parts | change).items()})


def strong_sides(n: int, seed: int) -> Measurements:
    """Every pair touches in one way for sure, in some others hardly."""
    rng = np.random.default_rng(seed)
    p = np.full((n, 4, n, 4), 1e-5)
    for i in range(n):
        for j in range(i):
            a, b = rng.integers(0, 4, 2)
            p[i, a, j, b] = p[j, b, i, a] = rng.uniform(0.2, 0.9)
    return Measurements.from_sides_log_p(tuple(f"f{k * 7:03d}" for k in range(n)), np.log(p).reshape(4 * n, 4 * n))


def test_sides_become_poses_and_poses_become_sides() -> None:
    made = strong_sides(6, 5)
    cell = 64.0
    found = hypotheses_of_sides(made.sides(), cell)
    np.testing.assert_allclose(np.hypot(*found.xy.T), cell)
    again = Measurements(made.ids, Hypothesised(found, cell)).sides()
    want = made.sides().to_dense()
    own = np.arange(24) // 4
    listed = (again.to_dense() > again.floor) & (own[:, None] != own)
    assert listed.sum() == 2 * len(found)
    np.testing.assert_allclose(again.to_dense()[listed], want[listed], atol=1e-4)
    np.testing.assert_array_equal(listed, listed.T)
    pair = found.i * found.n + found.j
    assert np.bincount(pair).max() <= OF_A_PAIR
    assert found.log_odds.min() >= LEAST
    assert np.all(found.i < found.j)


def test_the_pose_of_touching_sides_is_the_geometry_of_the_grid() -> None:
    """Side a of i touches side b of j: j stands one cell along a, its side b faces back."""
    made = strong_sides(9, 6)
    found = made.hypotheses()
    best = made.sides().to_dense()
    for k in range(len(found)):
        assert found.turns is not None
        turns = int(found.turns[k])
        a = next(a for a in range(4) if np.array_equal(z4.bearing_xy(a), found.xy[k].round()))
        b = (a + 2 - turns) % 4
        # j's side b, turned with j, points opposite to a
        assert z4.turn_bearing(b, turns) == (a + 2) % 4
        score = best[4 * found.i[k] + a, 4 * found.j[k] + b]
        assert score - np.log(v.OTHERS) == pytest.approx(found.log_odds[k], abs=1e-4)


def test_exact_relations_give_exact_offsets_and_sectors_only_bearings() -> None:
    n, cell = 2, 32.0
    near = int(v.relation_of(1, -2, 0, 3))
    far = int(v.relation_of(0, 6, 0, 1))
    log_p = np.full((n, n, v.RELATIONS), -12.0, dtype=np.float32)
    log_p[0, 1, near], log_p[0, 1, far] = np.log(0.6), np.log(0.3)
    log_p[1, 0, v.REVERSE[near]], log_p[1, 0, v.REVERSE[far]] = np.log(0.6), np.log(0.3)
    found = Measurements(("a", "b"), Relations(log_p), cell=cell).hypotheses()
    assert found.xy[0].tolist() == [-2 * cell, 1 * cell]
    assert found.turns is not None
    assert found.turns[:2].tolist() == [3, 1]
    assert found.log_odds[0] == pytest.approx(np.log(0.6 / 0.4), abs=1e-3)
    assert found.xy[1, 1] == 0
    assert found.xy[1, 0] > 4 * cell
    exact, bearing = found.information[0], found.information[1]
    assert exact[0, 0] == exact[1, 1]
    assert bearing[0, 0] < 0.01 * exact[0, 0]
    assert bearing[0, 0] != bearing[1, 1]


def test_a_grid_measurer_gives_true_poses_in_pixels() -> None:
    puzzle, truth = cut_with_truth(data.picture("coffee"), (3, 4), "light", cell=64, seed=5)
    found = Boundary().measure(puzzle).hypotheses()
    right = 0
    for k in np.argsort(-found.log_odds)[:12]:
        one, other = (truth.placement[puzzle.ids[int(end[k])]].pose for end in (found.i, found.j))
        assert one is not None
        assert other is not None
        want, got = one.between(other), found.pose(int(k))
        near = np.hypot(*(np.array(want.xy) - got.xy)) < 0.1 * 64
        right += bool(near and want.turns == got.turns)
    assert right == 12


def test_the_grid_solver_takes_hypotheses() -> None:
    puzzle, truth = cut_with_truth(data.picture("coffee"), (3, 4), "light", cell=64, seed=5)
    found = Boundary().measure(puzzle).hypotheses()
    free = Measurements(puzzle.ids, Hypothesised(found, 64.0))
    solution = solve(puzzle, measurements=free, grid=(3, 4))
    shares = [
        np.mean([solution.turned(g).placement[name].cell == placed.cell for name, placed in truth.placement.items()])
        for g in range(4)
    ]
    assert max(shares) == 1.0


def test_hypotheses_as_relations_are_probabilities() -> None:
    found = hypotheses_of_sides(strong_sides(5, 7).sides(), 10.0)
    made = Measurements(tuple("abcde"), Hypothesised(found, 10.0))
    i, j = made.known_pairs()
    assert np.allclose(np.exp(made.pair_log_p(i, j)).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(made.pair_log_p(i, j), made.pair_log_p(j, i)[:, v.REVERSE], atol=1e-5)
    assert made.unit_only


def test_outlines_and_matches_go_with_their_fragments() -> None:
    start = np.array([0, 3, 7, 12])
    xy = np.random.default_rng(0).normal(size=(12, 2))
    outlines = Outlines(start, xy, xy / np.linalg.norm(xy, axis=1, keepdims=True), 3.0)
    matches = Matches(np.array([0, 4, 8]), np.array([5, 10, 1]), np.array([0.5, 0.7, 0.9]))
    made = Measurements(("a", "b", "c"), Hypothesised(PairHypotheses.none(3), 20.0, outlines, matches))
    part = made.select(np.array([2, 0])).pairs
    assert isinstance(part, Hypothesised)
    assert part.outlines is not None
    assert part.matches is not None
    np.testing.assert_array_equal(part.outlines.of(0), outlines.of(2))
    np.testing.assert_array_equal(part.outlines.of(1), outlines.of(0))
    assert len(part.matches) == 1
    np.testing.assert_array_equal(part.outlines.xy[part.matches.s], xy[[8]])
    np.testing.assert_array_equal(part.outlines.xy[part.matches.t], xy[[1]])
    assert part.outlines.owner.tolist() == [0] * 5 + [1] * 3


def test_free_measurements_say_what_does_not_fit() -> None:
    with pytest.raises(FormatError, match="Matches need the outlines"):
        Hypothesised(PairHypotheses.none(2), 1.0, None, Matches(np.zeros(0, int), np.zeros(0, int), np.zeros(0)))
    with pytest.raises(FormatError, match="must be above 0"):
        Hypothesised(PairHypotheses.none(2), 0.0)
    with pytest.raises(FormatError, match="got pairs of 2"):
        Measurements(("a", "b", "c"), Hypothesised(PairHypotheses.none(2), 1.0))


def test_without_a_pitch_poses_are_in_cells() -> None:
    made = strong_sides(4, 8)
    assert made.cell is None
    assert set(np.hypot(*made.hypotheses().xy.T)) == {1.0}
