"""The parts of synchronization on their own: graphs, turns, positions, slots, loops, decoding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsync.studies.synthetic import measured, random_solved, true_relations
from jigsync.sync import rotation as rot
from jigsync.sync import translation as tr
from jigsync.sync.assignment import assign
from jigsync.sync.decode import DecodeOptions, decode_buckets, decode_turns
from jigsync.sync.graph import Graph, given_pairs, strongest
from jigsync.sync.loops import loop_support
from jigsync.sync.rotation import agreement, cycle_filter, synchronize_turns
from jigsync.sync.translation import Displacements, Prior, edge_weights, fit, fit_truncated
from jigsync.values import angles, z4
from jigsync.values import gauge as gauges
from jigsync.values import vocabulary as v
from jigsync.values.errors import FormatError, OptionError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.pairs import Relations


def random_graph(n: int, share: float, seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    keep = rng.random(len(i)) < share
    return Graph(n, i[keep], j[keep], rng.uniform(0.5, 1.5, int(keep.sum())))


def test_components_are_numbered_by_size() -> None:
    graph = Graph(8, np.array([1, 2, 5, 0]), np.array([2, 7, 6, 3]), np.array([1.0, 1.0, 1.0, 0.0]))
    label = graph.components()
    assert set(np.flatnonzero(label == 0)) == {1, 2, 7}
    assert set(np.flatnonzero(label == 1)) == {5, 6}
    assert len(set(label)) == 5  # an edge of weight 0 does not connect


@given(st.integers(0, 1000), st.sampled_from([0.1, 0.4, 1.0]))
@settings(max_examples=20, deadline=None)
def test_triangles_by_enumeration(seed: int, share: float) -> None:
    graph = random_graph(12, share, seed)
    # Every third edge twice: parallel edges make triangles of their own.
    i, j = np.concatenate([graph.i, graph.i[::3]]), np.concatenate([graph.j, graph.j[::3]])
    graph = Graph(12, i, j, np.ones(len(i)))
    found = {(int(a), int(b), int(c)) for block in graph.triangles() for a, b, c in zip(*block, strict=True)}
    ends = list(zip(graph.i, graph.j, strict=True))
    expected = {
        (a, b, c)
        for a, b, c in itertools.product(range(len(i)), repeat=3)
        if ends[a][1] == ends[b][0] and ends[c] == (ends[a][0], ends[b][1])
    }
    assert found == expected
    assert sum(len(block[0]) for block in graph.triangles()) == len(expected)


def test_triangles_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(20, 0.7, 3)
    whole = np.concatenate([np.stack(block) for block in graph.triangles()], axis=1)
    monkeypatch.setattr("jigsync.sync.graph._WEDGES_AT_ONCE", 7)
    blocks = list(graph.triangles())
    assert len(blocks) > 20
    assert np.array_equal(np.concatenate([np.stack(block) for block in blocks], axis=1), whole)


def test_given_pairs_and_strongest() -> None:
    i, j = given_pairs(5, np.array([[3, 1], [1, 3], [0, 4]]))
    assert list(zip(i, j, strict=True)) == [(0, 4), (1, 3)]
    with pytest.raises(FormatError, match="two different fragments"):
        given_pairs(5, np.array([[2, 2]]))
    graph = Graph(4, np.array([0, 0, 0, 1]), np.array([1, 2, 3, 2]), np.array([0.9, 0.2, 0.8, 0.1]))
    assert strongest(graph, 1).tolist() == [True, True, True, False]
    assert strongest(graph, 2).all()


def test_convention_hermitian_matrix_has_the_turns_as_its_vector() -> None:
    turns = np.array([0, 1, 3, 2, 1])
    graph = random_graph(5, 1.0, 0)
    relative = np.array([z4.between(int(turns[i]), int(turns[j])) for i, j in zip(graph.i, graph.j, strict=True)])
    matrix = rot._hermitian(graph, z4.phase(-relative))
    degree = np.bincount(graph.i, graph.weight, 5) + np.bincount(graph.j, graph.weight, 5)
    z = np.sqrt(degree) * z4.phase(turns)
    assert np.allclose(matrix @ z, z)
    assert np.allclose(matrix.toarray(), matrix.toarray().conj().T)


def test_rounding_does_not_depend_on_the_phase_of_an_eigenvector() -> None:
    turns = np.array([2, 1, 3, 2, 0, 1])
    rng = np.random.default_rng(0)
    noisy = z4.phase(turns) * np.exp(1j * rng.normal(0, 0.15, 6)) * rng.uniform(0.2, 1, 6)
    for phase in np.linspace(0, 2 * np.pi, 37):
        assert np.array_equal(rot._rounded(noisy * np.exp(1j * phase)), (turns - 2) % 4)


@pytest.mark.parametrize("n", [7, 60, 700])
def test_turns_with_outliers_dense_and_lanczos(n: int) -> None:
    rng = np.random.default_rng(n)
    graph = random_graph(n, min(1.0, 24 / n), 1)
    turns = rng.integers(0, 4, n)
    relative = (turns[graph.j] - turns[graph.i]) % 4
    label = graph.components()
    exact = synchronize_turns(graph, relative, label)
    for c in range(label.max() + 1):
        assert len(set((exact - turns)[label == c] % 4)) == 1
    bad = rng.random(len(graph)) < 0.2
    noisy = np.where(bad, rng.integers(0, 4, len(graph)), relative)
    found = synchronize_turns(graph, noisy, label)
    off = (found - turns)[label == 0] % 4
    assert np.bincount(off).max() >= 0.95 * len(off)
    negated = synchronize_turns(graph, -relative % 4, label)
    assert np.bincount((negated - turns)[label == 0] % 4, minlength=4).max() < 0.9 * len(off)
    share = agreement(graph, relative, turns)
    assert share[label == 0] == pytest.approx(1)


def test_cycle_filter_halves_what_does_not_close() -> None:
    i, j = np.triu_indices(4, 1)
    graph = Graph(4, i, j, np.ones(6))
    turns = np.array([0, 3, 1, 1])
    relative = (turns[j] - turns[i]) % 4
    assert np.array_equal(cycle_filter(graph, relative * angles.QUARTER), np.ones(6))
    relative[0] += 1  # the edge 0-1 is in two triangles, which halves their other four edges once
    assert cycle_filter(graph, relative * angles.QUARTER).tolist() == [0.25, 0.5, 0.5, 0.5, 0.5, 1.0]


def grid_displacements(grid: Grid, seed: int) -> tuple[Graph, np.ndarray, np.ndarray]:
    """A graph of all pairs within Chebyshev distance 4, their true displacements, and the true positions."""
    solved = random_solved(grid, np.random.default_rng(seed))
    i, j = np.triu_indices(solved.n, 1)
    near = solved.distance(i, j) <= 4
    xy = solved.cells[:, ::-1].astype(float)
    graph = Graph(solved.n, i[near], j[near], np.ones(int(near.sum())))
    return graph, xy[graph.j] - xy[graph.i], xy - xy.mean(axis=0)


@pytest.mark.parametrize("grid", [Grid(3, 5), Grid(9, 14)], ids=str)
def test_exact_displacements_give_exact_positions(grid: Grid) -> None:
    graph, d, xy = grid_displacements(grid, 1)
    weight = edge_weights(d, np.abs(d).max(axis=1) <= 2, graph.weight)
    for solve in (fit, fit_truncated):
        found = solve(graph, Displacements(d, weight), graph.components())
        assert np.allclose(found.xy, xy, atol=1e-8)
        assert found.residual < 1e-12


def test_iterative_solve_agrees_with_the_direct_one(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, d, _ = grid_displacements(Grid(8, 15), 2)
    d = d + np.random.default_rng(0).normal(0, 0.5, d.shape)
    measured_d = Displacements(d, edge_weights(d, np.zeros(len(d), dtype=bool), graph.weight))
    direct = fit(graph, measured_d, graph.components())
    monkeypatch.setattr(tr, "DIRECT_LIMIT", 10)
    assert np.allclose(fit(graph, measured_d, graph.components()).xy, direct.xy, atol=1e-4)


def test_equal_weights_along_and_across_are_the_isotropic_case_exactly() -> None:
    rng = np.random.default_rng(0)
    d, w = rng.normal(size=(30, 2)), rng.uniform(0.5, 2, 30)
    none = np.zeros(30, dtype=bool)
    assert np.array_equal(edge_weights(d, none, w, 1.0, 1.0), w[:, None, None] * np.eye(2))
    unit = d[0] / np.linalg.norm(d[0])
    w_0 = edge_weights(d, none, w, 1.0, 0.1)[0]
    assert unit @ w_0 @ unit == pytest.approx(0.1 * w[0])
    assert np.array([-unit[1], unit[0]]) @ w_0 @ np.array([-unit[1], unit[0]]) == pytest.approx(w[0])
    assert np.array_equal(edge_weights(d, ~none, w, 1.0, 0.1), w[:, None, None] * np.eye(2))


def test_truncation_drops_the_outliers_and_keeps_components_whole() -> None:
    graph, d, xy = grid_displacements(Grid(5, 7), 3)
    rng = np.random.default_rng(4)
    bad = rng.random(len(d)) < 0.25
    d = d + bad[:, None] * rng.uniform(2, 6, d.shape)
    given_d = Displacements(d, edge_weights(d, np.ones(len(d), dtype=bool), graph.weight))
    found = fit_truncated(graph, given_d, graph.components())
    assert np.allclose(found.xy, xy, atol=1e-6)
    assert np.array_equal(found.kept, ~bad)
    assert not np.allclose(fit(graph, given_d, graph.components()).xy, xy, atol=0.1)
    chain = Graph(3, np.array([0, 1]), np.array([1, 2]), np.ones(2))
    loop = Graph(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.ones(3))
    wild = np.array([[1.0, 0], [1, 0], [50, 0]])
    for g, xy_d in ((chain, wild[:2]), (loop, wild)):
        kept = fit_truncated(
            g, Displacements(xy_d, edge_weights(xy_d, np.ones(len(g), bool), g.weight)), np.zeros(3, int)
        )
        assert Graph(3, g.i[kept.kept], g.j[kept.kept], np.ones(int(kept.kept.sum()))).components().max() == 0


def test_a_prior_holds_one_component_and_leaves_the_other_free() -> None:
    graph = Graph(5, np.array([0, 1, 3]), np.array([1, 2, 4]), np.ones(3))
    d = np.array([[1.0, 0], [0, 1], [1, 0]])
    prior = Prior(np.array([[4.0, 2], [0, 0], [0, 0], [0, 0], [0, 0]]), np.array([[1.0, 1]] + [[0.0, 0]] * 4))
    found = fit(graph, Displacements(d, edge_weights(d, np.ones(3, bool), np.ones(3))), graph.components(), prior)
    assert np.allclose(found.xy, [[4, 2], [5, 2], [5, 3], [-0.5, 0], [0.5, 0]])


def test_gauge_by_evidence() -> None:
    turns = np.array([0, 1, 3, 2, 1, 1])
    truth = (turns + 3) % 4
    p = np.full((6, 4), 0.1)
    p[np.arange(6), truth] = 0.7
    p[4] = [0.25] * 4
    q = gauges.evidence(turns, np.log(p))
    assert gauges.fix_by_evidence(q) == 3
    assert q[3] == pytest.approx(7**5 / (7**5 + 3))
    assert gauges.reported(truth, q, 3).probabilities[0] == pytest.approx(q[3])
    assert gauges.reported(truth, q, 3).turns == 3
    assert gauges.evidence(turns, None).tolist() == [0.25] * 4
    one_sure = np.zeros((6, 4))
    one_sure[0, 1:] = -np.inf
    assert np.isfinite(gauges.evidence(turns, one_sure)).all()
    assert isinstance(gauges.reported(truth, q, 3), Gauge)


def test_slots_are_the_best_assignment() -> None:
    grid = Grid(2, 3)
    rng = np.random.default_rng(0)
    for _ in range(10):
        xy = rng.normal(size=(6, 2)) * 2
        slots = assign(xy, np.zeros(6, np.int64), grid)
        cells = np.array([(c, r) for r, c in grid.cells()], dtype=float)
        centred = xy - xy.mean(axis=0) + cells.mean(axis=0)
        best = min(itertools.permutations(range(6)), key=lambda p: np.sum((centred - cells[list(p)]) ** 2))
        assert tuple(slots) == best


def test_large_assignment_places_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    grid, rng = Grid(12, 20), np.random.default_rng(1)
    slots = rng.permutation(240)
    xy = np.stack([slots % 20, slots // 20], axis=1) + rng.normal(0, 0.1, (240, 2))
    monkeypatch.setattr("jigsync.sync.assignment.EXACT_LIMIT", 50)
    assert np.array_equal(assign(xy, np.zeros(240, np.int64), grid), slots)
    found = assign(rng.normal(size=(240, 2)) * 5, np.zeros(240, np.int64), grid)
    assert sorted(found) == list(range(240))


def test_holes_leave_the_layout_where_it_fits() -> None:
    grid = Grid(4, 5)
    kept = np.array([0, 4, 7, 8, 12, 13, 15, 19])
    xy = np.stack([kept % 5, kept // 5], axis=1) + np.array([0.3, -7.4])
    assert np.array_equal(assign(xy, np.zeros(8, np.int64), grid), kept)
    fixed = np.full(8, -1)
    fixed[3] = 8
    anchored = assign(xy - np.array([0.3, -7.4]), np.zeros(8, np.int64), grid, anchored=np.array([True]), fixed=fixed)
    assert np.array_equal(anchored, kept)


def test_loops_close_on_the_truth_and_not_on_a_lie() -> None:
    solved = random_solved(Grid(3, 9), np.random.default_rng(2))
    i, j = np.triu_indices(solved.n, 1)
    relation = solved.relation(i, j)
    graph = Graph(solved.n, i, j, np.ones(len(i)))
    nominal = v.nominal_xy(solved.grid)
    closing, total = loop_support(graph, v.relative(relation), v.bucket(relation), nominal)
    assert np.all(total == solved.n - 2)
    assert closing.mean() > 0.95 * (solved.n - 2)
    near = np.flatnonzero(solved.distance(i, j) == 1)[0]
    lie = v.TURN_J[1][relation[near]]
    relation = relation.copy()
    relation[near] = lie
    closing, _ = loop_support(graph, v.relative(relation), v.bucket(relation), nominal)
    assert closing[near] == 0


def test_the_three_decodings_of_one_pair() -> None:
    # Joint: (bucket 3, r 1) has the single largest cell. Marginal: r = 2 and bucket 5 have more mass in all.
    p = np.full((48, 4), 1e-6)
    p[3, 1], p[5, 2], p[5, 0], p[7, 2] = 0.34, 0.26, 0.22, 0.18
    log_p = np.log(np.broadcast_to(p.ravel() / p.sum(), (2, 2, 192))).astype(np.float32)
    made = Measurements(("a", "b"), Relations(np.array(log_p)))
    pairs, grid = (np.array([0]), np.array([1])), Grid(1, 2)
    joint = decode_turns(made, pairs, grid, DecodeOptions(rho="joint"))
    assert (joint.bucket[0], joint.relative[0]) == (3, 1)
    marginal = decode_turns(made, pairs, grid, DecodeOptions(rho="marginal"))
    assert (marginal.bucket[0], marginal.relative[0]) == (5, 2)
    given_turns = decode_turns(made, pairs, grid, DecodeOptions())
    assert given_turns.relative[0] == 2
    for relative, bucket, weight in ((0, 5, 1.0), (1, 3, 1.0), (2, 5, 26 / 44)):
        edges = decode_buckets(made, given_turns, np.array([3, 3 + relative]) % 4, grid, DecodeOptions())
        assert (edges.bucket[0], edges.relative[0]) == (bucket, relative)
        assert edges.place_weight[0] == pytest.approx(weight, abs=1e-3)


def test_both_directions_are_edges_unless_symmetrized() -> None:
    solved = random_solved(Grid(2, 3), np.random.default_rng(0))
    made = measured(solved, true_relations(solved))
    both = decode_turns(made, made.known_pairs(), solved.grid, DecodeOptions(rho="joint"))
    once = decode_turns(made, made.known_pairs(), solved.grid, DecodeOptions(rho="joint", symmetrized=True))
    assert len(both) == 2 * len(once) == 30
    assert np.array_equal(both.bucket[:15], both.bucket[15:])
    assert np.array_equal(both.relative[15:], once.relative)


def test_a_tie_is_no_measurement() -> None:
    flat = np.full((3, 3, 192), -np.log(192), dtype=np.float32)
    made = Measurements(("a", "b", "c"), Relations(flat))
    assert len(decode_turns(made, made.known_pairs(), Grid(1, 3), DecodeOptions())) == 0


def test_options_out_of_range_are_named() -> None:
    with pytest.raises(OptionError, match="'rho' of decoding must be one of joint, marginal, conditioned"):
        DecodeOptions(rho="best")  # type: ignore[arg-type]
    for wrong in (
        {"top_k": 0},
        {"loop_support": -1},
        {"confidence_threshold": 1.5},
        {"tier_weights": (1.0, -1.0, 0.0)},
    ):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            DecodeOptions(**wrong)  # type: ignore[arg-type]
