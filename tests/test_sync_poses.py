"""The parts of synchronization over angles on their own: angles, hypotheses, loops, pose graphs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from jigsync.studies.planted_poses import Damage, Exists, PlantedPoses, plant_poses
from jigsync.sync import pose_graph
from jigsync.sync.graph import Graph
from jigsync.sync.hypotheses import (
    LEAST_ANGLE,
    LEAST_PLACE,
    TOUCHING,
    best_of_pairs,
    displacements,
    doubted,
    graph_of,
    ordered,
    pairs_of,
    probabilities,
    sobered,
)
from jigsync.sync.pose_graph import PosePrior, chi_squared, covariances, refine
from jigsync.sync.pose_loops import GATE, believed, find_loops
from jigsync.sync.rotation import cycle_filter, synchronize_angles
from jigsync.sync.translation import fit, fit_truncated
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.pose import Pose

HONEST = Damage(noise=1.0)
OUTLIERS = Damage(noise=1.0, replaced=0.1, rivals=0.5, strays=0.5)


def planted(n: int, damage: Damage, seed: int, components: int = 1) -> tuple[PlantedPoses, PairHypotheses]:
    made = plant_poses(Exists(n, components), damage, np.random.default_rng([n, seed]))
    return made, ordered(made.hypotheses)


def true_of(made: PlantedPoses) -> np.ndarray:
    """Which of the ordered hypotheses are true."""
    forth = made.hypotheses.i < made.hypotheses.j
    return np.concatenate([made.true[forth], made.true[~forth]])


def turned(angle: np.ndarray, xy: np.ndarray, by: float) -> tuple[np.ndarray, np.ndarray]:
    return angles.wrap(angle + by), angles.act(by, xy) + np.array([31.0, -7.0])


# ------------------------------------------------------------------------------------------------ angles


@pytest.mark.parametrize("n", [2, 9, 60, 500])
def test_angles_with_outliers_dense_and_lanczos(n: int) -> None:
    rng = np.random.default_rng(n)
    i, j = np.triu_indices(n, 1)
    keep = rng.random(len(i)) < min(1.0, 20 / n)
    graph = Graph(n, i[keep], j[keep], rng.uniform(0.5, 1.5, int(keep.sum())))
    theta = rng.uniform(-np.pi, np.pi, n)
    relative = angles.wrap(theta[graph.j] - theta[graph.i])
    label = graph.components()
    exact = angles.wrap(synchronize_angles(graph, relative, label) - theta)
    for part in range(label.max() + 1):
        assert np.abs(angles.wrap(exact[label == part] - exact[label == part][0])).max() < 1e-5
    first = np.unique(label, return_index=True)[1]
    assert np.all(synchronize_angles(graph, relative, label)[first] == 0)
    if n < 60:
        return
    bad = rng.random(len(graph)) < 0.2
    noisy = np.where(bad, rng.uniform(-np.pi, np.pi, len(graph)), relative + rng.normal(0, 0.05, len(graph)))
    main = label == 0
    off = angles.wrap(synchronize_angles(graph, noisy, label) - theta)[main]
    assert np.median(np.abs(angles.wrap(off - np.angle(np.exp(1j * off).mean())))) < 0.15
    mirrored = angles.wrap(synchronize_angles(graph, -noisy, label) - theta)[main]
    assert np.abs(np.exp(1j * mirrored).mean()) < 0.4


def test_cycle_filter_over_angles() -> None:
    i, j = np.triu_indices(4, 1)
    graph = Graph(4, i, j, np.ones(6))
    theta = np.array([0.1, 2.9, -1.7, 0.4])
    relative = angles.wrap(theta[j] - theta[i])
    assert np.array_equal(cycle_filter(graph, relative, 1e-9), np.ones(6))
    relative[0] += 0.2  # the edge 0-1 is in two triangles, which halves their other four edges once
    assert cycle_filter(graph, relative, 0.1).tolist() == [0.25, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert cycle_filter(graph, relative, 0.3).tolist() == [1.0] * 6


# -------------------------------------------------------------------------------------------- hypotheses


def test_hypotheses_of_a_pair_exclude_each_other() -> None:
    pair = np.array([0, 1, 0, 0])
    log_odds = np.array([2.0, 800.0, -1.0, 0.5])
    p = probabilities(pair, log_odds)
    odds = np.exp(log_odds[pair == 0])
    np.testing.assert_allclose(p[pair == 0], odds / (1 + odds.sum()))
    assert p[1] == 1.0
    assert best_of_pairs(pair, np.array([3.0, 0.0, 3.0, 4.0])).tolist() == [False, True, False, True]
    assert best_of_pairs(pair, np.array([3.0, 0.0, 3.0, 2.0])).tolist() == [True, True, False, False]
    for part in (probabilities, best_of_pairs):
        assert len(part(np.zeros(0, np.int64), np.zeros(0))) == 0


def test_no_more_neighbours_are_expected_than_a_plane_has_room_for() -> None:
    pair = np.arange(300)
    log_odds = np.random.default_rng(0).normal(1.0, 2.0, 300)
    lower = sobered(pair, log_odds, 40)
    assert probabilities(pair, lower).sum() == pytest.approx(TOUCHING * 40, rel=1e-6)
    np.testing.assert_allclose(log_odds - lower, (log_odds - lower)[0])  # all alike: the order stays
    assert np.array_equal(sobered(pair, log_odds, 200), log_odds)  # there is room
    assert len(sobered(np.zeros(0, np.int64), np.zeros(0), 3)) == 0


def test_ordering_says_the_same_from_the_lower_numbered() -> None:
    made, found = planted(12, OUTLIERS, 0)
    assert np.all(found.i < found.j)
    assert len(found) == len(made.hypotheses)
    before = chi_squared(made.hypotheses, made.angle, made.xy)
    np.testing.assert_allclose(np.sort(chi_squared(found, made.angle, made.xy))[:20], np.sort(before)[:20], rtol=0.2)


def test_displacements_are_known_as_well_as_places_are_whatever_the_angle() -> None:
    made, found = planted(15, HONEST, 1)
    weight = np.random.default_rng(0).random(len(found))
    given = displacements(found, made.angle, weight)
    for k in range(len(found)):
        canvas_from_i = made.pose(int(found.i[k]))
        np.testing.assert_allclose(given.xy[k], canvas_from_i.act(found.xy[k]) - canvas_from_i.xy)
        covariance = np.linalg.inv(found.information[k])[:2, :2]
        rotation = canvas_from_i.matrix[:, :2]
        want = weight[k] * np.linalg.inv(rotation @ covariance @ rotation.T)
        np.testing.assert_allclose(given.weight[k], want, rtol=1e-6)
    bearing = replace(found, information=np.tile(np.diag([1.0, 0.0, 0.0]), (len(found), 1, 1)))
    assert np.isfinite(displacements(bearing, made.angle, weight).weight).all()


def test_nobody_is_believed_to_measure_without_error() -> None:
    _, found = planted(9, HONEST, 2)
    length = np.linalg.norm(found.xy, axis=1)
    for information in (found.information * 1e12, found.information * 0):
        covariance = np.linalg.inv(doubted(replace(found, information=information)).information)
        assert np.all(np.sqrt(covariance[:, 2, 2]) >= LEAST_ANGLE * 0.999)
        assert np.all(np.sqrt(covariance[:, 0, 0]) >= LEAST_PLACE * length * 0.999)
        assert np.all(np.sqrt(covariance[:, 0, 0]) <= length * 1.01)


# ------------------------------------------------------------------------------------------------- loops


def poses_close(found: PairHypotheses, loop: tuple[int, ...], start: int) -> bool:
    """Does the way along the hypotheses, from a fragment back to it, end where it began, to a tenth of a pixel?"""
    here, at = start, Pose.identity()
    for k in loop:
        forth = int(found.i[k]) == here
        at = at.compose(found.pose(k) if forth else found.pose(k).inverse())
        here = int(found.j[k] if forth else found.i[k])
    return here == start and abs(at.angle) < 1e-6 and np.hypot(*at.xy) < 0.1


def loops_by_enumeration(found: PairHypotheses, size: int) -> set[frozenset[int]]:
    """Hypotheses whose pairs make a closed way over `size` different fragments."""
    loops = set()
    for chosen in itertools.combinations(range(len(found)), size):
        ends = [(int(found.i[k]), int(found.j[k])) for k in chosen]
        count = np.bincount(np.array(ends).ravel())
        if len({tuple(sorted(pair)) for pair in ends}) == size == np.sum(count == 2) and count.max() == 2:
            loops.add(frozenset(chosen))
    return loops


def test_loops_are_those_of_an_enumeration() -> None:
    made, found = planted(7, Damage(rivals=0.5, strays=0.4), 3)
    true = true_of(made)
    pair = pairs_of(found)
    three, four = find_loops(found, probabilities(pair, found.log_odds))
    assert len(three.members) > 5
    assert len(four.members) > 5
    for loops, size in ((three, 3), (four, 4)):
        listed = [frozenset(row) for row in loops.members.tolist()]
        assert len(set(listed)) == len(listed)
        assert set(listed) == loops_by_enumeration(found, size)
        assert loops.closes[true[loops.members].all(axis=1)].all()
        assert loops.closes[~true[loops.members].all(axis=1)].mean() < 0.1
        for row, closes in zip(loops.members.tolist(), true[loops.members].all(axis=1), strict=True):
            if size == 3 and closes:
                start = int(found.i[row[0]])
                assert any(poses_close(found, order, start) for order in itertools.permutations(row))


def test_loops_close_as_often_as_their_errors_allow() -> None:
    assert pytest.approx(11.34, abs=0.1) == GATE  # 99 % of a chi-squared of three degrees of freedom
    made, found = planted(80, HONEST, 4)
    three, four = find_loops(found, probabilities(pairs_of(found), found.log_odds))
    for loops in (three, four):
        assert true_of(made)[loops.members].all()
        assert loops.closes.mean() > 0.99


def test_loops_tell_true_hypotheses_from_wrong_ones() -> None:
    made, found = planted(40, replace(OUTLIERS, blur=1.0), 5)
    true, pair = true_of(made), pairs_of(found)
    before, after = probabilities(pair, found.log_odds), probabilities(pair, believed(found, pair))
    loss = [-np.mean(np.log(np.where(true, p, 1 - p) + 1e-6)) for p in (before, after)]
    assert loss[1] < 0.6 * loss[0]


def test_without_loops_nothing_is_believed_less() -> None:
    _, found = planted(2, HONEST, 6)
    assert believed(found, pairs_of(found)) == pytest.approx(found.log_odds)
    nothing = PairHypotheses.none(4)
    assert len(believed(nothing, pairs_of(nothing))) == 0


# ------------------------------------------------------------------------------------------- pose graphs


def test_exact_hypotheses_give_exact_poses_from_far() -> None:
    made, found = planted(30, Damage(), 7, components=2)
    rng = np.random.default_rng(0)
    start = made.angle + rng.normal(0, 0.2, 30), made.xy + rng.normal(0, 30, (30, 2))
    fitted = refine(found, np.ones(len(found)), *start)
    assert fitted.chi2.max() < 1e-6
    for part in range(2):
        members = np.flatnonzero(made.component == part)
        assert made.right(fitted.angle, fitted.xy, members) == 1.0
        held = members[0]  # a free component stays where its first fragment starts
        assert fitted.angle[held] == pytest.approx(angles.wrap(start[0][held]))
        np.testing.assert_array_equal(fitted.xy[held], start[1][held])


def test_the_kernel_ignores_what_is_wrong() -> None:
    made, found = planted(36, OUTLIERS, 8)
    true = true_of(made)
    weight = np.ones(len(found))
    plain = refine(found, weight, made.angle, made.xy)
    robust = refine(found, weight, made.angle, made.xy, width=4.0, start_width=50.0)
    assert made.right(robust.angle, robust.xy) == 1.0
    assert made.right(plain.angle, plain.xy) < 0.5
    assert np.median(robust.weight[true]) > 0.5
    assert robust.weight[~true].max() < 0.05
    only = refine(found, true.astype(float), made.angle, made.xy)
    assert np.abs(angles.wrap(only.angle - robust.angle)).max() < 0.05
    assert only.chi2[~true].min() > 16  # hypotheses without weight are still told how they fit


def test_full_information_is_better_than_none() -> None:
    """Seams slide and tilt: the joint fit knows it, least squares of places alone does not."""
    error: dict[str, list[float]] = {"places": [], "joint": []}
    for seed in range(6):
        made, found = planted(25, HONEST, 10 + seed)
        weight, label = np.ones(len(found)), np.zeros(25, np.int64)
        flat = replace(found, information=np.tile(np.eye(3), (len(found), 1, 1)))
        theta = synchronize_angles(graph_of(found, weight), found.angle, label)
        xy = fit(graph_of(found, weight), displacements(flat, theta, weight), label).xy
        joint = refine(found, weight, theta, xy)
        for name, poses in (("places", (theta, xy)), ("joint", (joint.angle, joint.xy))):
            error[name].append(np.sqrt(np.mean(np.sum(aligned(made, *poses)[:, :2] ** 2, axis=1))))
    assert np.mean(error["joint"]) < 0.75 * np.mean(error["places"])


def aligned(made: PlantedPoses, angle: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """(N, 3) errors (x, y, angle) after the rigid motion that fits the places best."""
    here, home = xy - xy.mean(axis=0), made.xy - made.xy.mean(axis=0)
    turn = angles.nearest(home.T @ here)
    off = angles.act(turn, here) - home
    return np.concatenate([off, angles.wrap(angle + turn - made.angle)[:, None]], axis=1)


def test_covariances_are_those_of_many_draws() -> None:
    made, found = planted(5, Damage(), 20)
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(np.linalg.inv(found.information))
    weight = np.ones(len(found))
    errors = []
    for _ in range(250):
        e = np.einsum("hab,hb->ha", root, rng.normal(size=(len(found), 3)))
        drawn = replace(found, angle=angles.wrap(found.angle + e[:, 2]), xy=found.xy + e[:, :2])
        fitted = refine(drawn, weight, made.angle, made.xy)
        errors.append(aligned(made, fitted.angle, fitted.xy))
    seen = np.einsum("dna,dnb->nab", np.array(errors), np.array(errors)) / len(errors)
    told = covariances(found, weight, made.angle, made.xy)
    scale = np.sqrt(np.einsum("naa->na", told))
    assert np.abs((seen - told) / (scale[:, :, None] * scale[:, None, :])).max() < 0.3
    order = rng.permutation(5)  # whoever is held, and in whatever frame
    at = np.argsort(order)
    other = ordered(replace(found, i=at[found.i], j=at[found.j]))
    np.testing.assert_allclose(covariances(other, weight, made.angle[order], made.xy[order]), told[order], rtol=1e-4)
    angle, xy = turned(made.angle, made.xy, 0.7)
    rotation = np.eye(3)
    rotation[:2, :2] = angles.matrix(0.7)
    np.testing.assert_allclose(
        covariances(found, weight, angle, xy), rotation @ told @ rotation.T, rtol=1e-4, atol=1e-9
    )


def test_covariances_towards_components_and_priors() -> None:
    made, found = planted(12, Damage(), 21, components=2)
    weight = np.ones(len(found))
    alone = found.n - 1
    cut = np.where((found.i == alone) | (found.j == alone), 0.0, weight)
    assert np.all(covariances(found, cut, made.angle, made.xy)[alone] == 0)
    information = np.zeros((12, 3, 3))
    pinned = int(np.flatnonzero(made.component == 0)[0])
    information[pinned] = np.diag([4.0, 4.0, 100.0])
    prior = PosePrior(made.angle, made.xy, information)
    told, free = (covariances(found, weight, made.angle, made.xy, p) for p in (prior, None))
    np.testing.assert_allclose(told[pinned], np.diag([0.25, 0.25, 0.01]), rtol=1e-4, atol=1e-7)
    first = made.component == 0
    others = first & (np.arange(12) != pinned)
    assert np.all(np.einsum("naa->na", told)[others] > np.einsum("naa->na", free)[others])
    np.testing.assert_allclose(told[~first], free[~first])


def test_a_prior_moves_its_component_and_no_other() -> None:
    made, found = planted(14, HONEST, 22, components=2)
    information = np.zeros((14, 3, 3))
    pinned = int(np.flatnonzero(made.component == 0)[-1])
    information[pinned] = 1e6 * np.eye(3)
    prior = PosePrior(np.full(14, 2.0), np.full((14, 2), 55.0), information)
    fitted = refine(found, np.ones(len(found)), made.angle, made.xy, prior=prior)
    assert fitted.angle[pinned] == pytest.approx(2.0, abs=1e-4)
    np.testing.assert_allclose(fitted.xy[pinned], [55.0, 55.0], atol=1e-2)
    for part in range(2):
        assert made.right(fitted.angle, fitted.xy, np.flatnonzero(made.component == part)) == 1.0
    other = np.flatnonzero(made.component == 1)
    assert made.stands(fitted.angle, fitted.xy, other) == 1.0


@pytest.mark.parametrize("width", [np.inf, 4.0])
def test_every_frame_has_the_same_residuals(width: float) -> None:
    """The gauge theorem for poses, whatever the kernel."""
    made, found = planted(30, OUTLIERS, 23)
    weight = np.ones(len(found))
    rng = np.random.default_rng(2)
    start = made.angle + rng.normal(0, 0.02, 30), made.xy + rng.normal(0, 3, (30, 2))
    want = refine(found, weight, *start, width=width, start_width=50.0)
    for by in (0.3, -2.1, np.pi / 2):
        got = refine(found, weight, *turned(*start, by), width=width, start_width=50.0)
        np.testing.assert_allclose(got.chi2, want.chi2, rtol=1e-7, atol=1e-7)
        assert got.cost == pytest.approx(want.cost, rel=1e-11)
        np.testing.assert_allclose(got.xy, turned(want.angle, want.xy, by)[1], atol=1e-6)


def test_sparse_and_dense_systems_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    made, found = planted(40, OUTLIERS, 24)
    weight = np.ones(len(found))
    results = []
    for sparse in (0.0, np.inf):
        monkeypatch.setattr(pose_graph, "SPARSE", sparse)
        fitted = refine(found, weight, made.angle, made.xy, width=4.0)
        results.append((fitted, covariances(found, fitted.weight, fitted.angle, fitted.xy)))
    (dense, told_dense), (sparse_fit, told_sparse) = results
    np.testing.assert_allclose(sparse_fit.xy, dense.xy, atol=1e-6)
    np.testing.assert_allclose(told_sparse, told_dense, rtol=1e-5, atol=1e-9)


def test_what_cannot_be_fitted_stays() -> None:
    nothing = PairHypotheses.none(3)
    start = np.array([0.1, 2.0, -1.0]), np.arange(6.0).reshape(3, 2)
    fitted = refine(nothing, np.zeros(0), *start)
    np.testing.assert_allclose(fitted.angle, start[0])
    np.testing.assert_array_equal(fitted.xy, start[1])
    assert np.all(covariances(nothing, np.zeros(0), *start) == 0)
    made, found = planted(9, HONEST, 25)
    blind = replace(found, information=found.information * np.diag([1.0, 1.0, 0.0]))
    blind.information[:, 2] = blind.information[:, :, 2] = 0  # angles are not measured at all
    fitted = refine(blind, np.ones(len(found)), made.angle, made.xy)
    assert np.isfinite(fitted.xy).all()
    assert np.isfinite(covariances(blind, np.ones(len(found)), made.angle, made.xy)).all()


def test_truncation_at_another_floor_keeps_what_is_within_it() -> None:
    made, found = planted(40, Damage(noise=1.0, replaced=0.05, strays=0.1), 26)
    true, weight = true_of(made), np.ones(len(found))
    label = np.zeros(40, np.int64)
    measured = displacements(doubted(found), made.angle, weight)
    kept = fit_truncated(graph_of(found, weight), measured, label, None, 4.0).kept
    assert kept[true].mean() > 0.95
    assert kept[~true].mean() < 0.1
