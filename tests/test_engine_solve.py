"""solve_map: proven optima where all placements can be tried, constraints, determinism, limits."""

from __future__ import annotations

import ctypes
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from engine_reference import Case, make_case
from numpy.typing import NDArray

from jigsync.engine import search as engine
from jigsync.engine.library import Plan
from jigsync.engine.native import branch_and_bound
from jigsync.engine.problem import CompiledProblem, codes_of
from jigsync.engine.search import MapResult, solve_map
from jigsync.studies.planted import Planted, plant, sparsify
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores, side_at


def solve(case: Case, **options: object) -> MapResult:
    return solve_map(case.planted.scores, case.planted.grid, **case.options, **options)  # type: ignore[arg-type]


def right(planted: Planted, result: MapResult) -> float:
    """Share of fragments placed right in the best gauge."""
    grid, best = planted.grid, 0.0
    cells = np.stack([planted.slots // grid.cols, planted.slots % grid.cols], axis=-1)
    for turns in range(4):
        if grid.turned(turns) == grid:
            row, col = z4.turn_cells(cells, grid.shape, turns).T
            hit = (row * grid.cols + col == result.slots) & ((planted.turns + turns) % 4 == result.turns)
            best = max(best, float(hit[planted.slots >= 0].mean()))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_2x2_is_the_best_of_all_placements(seed: int) -> None:
    case = make_case("2x2", Grid(2, 2), seed, unary=seed % 2 == 0, full=seed % 3 == 0)
    best = max(
        case.score(codes_of(np.array(slots), np.array(turns)))
        for slots in itertools.permutations(range(4))
        for turns in itertools.product(range(4), repeat=4)
    )
    assert solve(case, seed=seed).score == pytest.approx(best, abs=2e-3)


def test_3x3_upright_is_the_best_of_all_9_factorial() -> None:
    grid = Grid(3, 3)
    orders = np.array(list(itertools.permutations(range(9))), dtype=np.int8)  # fragment at every slot
    for seed in range(12):
        planted = plant(grid, 0.4, np.random.default_rng(seed), upright=True)
        dense = planted.scores.to_dense()
        total = np.zeros(len(orders), dtype=np.float32)
        for slot in range(9):
            row, col = grid.cell(slot)
            for bearing in (z4.E, z4.S):
                d_row, d_col = z4.bearing_offset(bearing)
                if grid.contains(row + d_row, col + d_col):
                    facing = dense[side_at(0, 0, bearing) :: 4, side_at(0, 0, bearing + 2) :: 4]
                    total += facing[orders[:, slot], orders[:, grid.slot(row + d_row, col + d_col)]]
        result = solve_map(planted.scores, grid, upright=True, seed=seed)
        assert result.score == pytest.approx(float(total.max()), abs=2e-3)


@pytest.mark.parametrize("grid", [Grid(2, 3), Grid(3, 3)])
def test_turned_is_the_optimum_that_branch_and_bound_proves(grid: Grid) -> None:
    for seed in range(8):
        planted = plant(grid, 0.5, np.random.default_rng(100 + seed))
        n = planted.scores.n
        allowed = np.full((n, grid.size), 15, dtype=np.uint8)
        result = solve_map(planted.scores, grid, seed=seed)
        # A floor a little below what was found: the bound then only has to prove that nothing is above it.
        proof = branch_and_bound(planted.scores.to_dense(), grid, allowed, result.score + 1e-2, lambda *_: True)
        assert proof.finished
        assert proof.best is None, f"seed {seed}: there is a better placement than {result.score}"


@pytest.mark.parametrize(("grid", "q"), [(Grid(5, 5), 0.7), (Grid(4, 6), 0.75), (Grid(10, 10), 0.8)])
def test_planted_puzzles_are_solved(grid: Grid, q: float) -> None:
    planted = plant(grid, q, np.random.default_rng(3))
    result = solve_map(planted.scores, grid, seed=1)
    assert result.finished
    assert right(planted, result) == 1.0
    assert result.marginals.min() > 0.5
    assert result.starts >= 2
    assert result.moves > 0


def test_same_for_any_number_of_threads() -> None:
    planted = plant(Grid(4, 5), 0.45, np.random.default_rng(8))
    answers = [solve_map(planted.scores, planted.grid, seed=5, threads=threads, effort=0.3) for threads in (1, 2, 3)]
    for other in answers[1:]:
        assert other.score == answers[0].score
        assert other.starts == answers[0].starts
        np.testing.assert_array_equal(other.slots, answers[0].slots)
        np.testing.assert_array_equal(other.turns, answers[0].turns)
        np.testing.assert_array_equal(other.marginals, answers[0].marginals)


def hard(seed: int, **options: Any) -> Planted:
    """A puzzle that growth does not settle: its restarts exchange temperatures."""
    return plant(Grid(8, 8), 0.3, np.random.default_rng(seed), **options)


def test_exchanging_temperatures_finds_more_than_annealing(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzles = [hard(seed, upright=True) for seed in range(4)]

    def scores() -> float:
        return sum(solve_map(one.scores, one.grid, upright=True, seed=1, effort=0.15).score for one in puzzles)

    tempered = scores()
    monkeypatch.setattr(engine, "TEMPERING", 0)
    assert tempered > scores() + 5


def test_threads_that_climb_one_ladder_see_the_same_placements() -> None:
    """Exchanges come after all replicas have moved, whoever moves them; a worker alone moves every replica."""
    planted = hard(5)
    problem = CompiledProblem(planted.scores, planted.grid)
    start = codes_of(planted.slots[::-1].copy(), planted.turns)
    ends = []
    for workers in (1, 2, 3):
        ladder = problem.ladder(11, Plan(tempering=400_000, replicas=5, top=1.6, low=0.7), start)
        with ThreadPoolExecutor(workers) as pool:
            assert list(pool.map(ladder.climb, range(workers), [workers] * workers)) == [None] * workers
        poses, report = ladder.best()
        assert report.finished
        assert report.score == pytest.approx(problem.score(poses), abs=1e-3)
        assert report.score > problem.score(start)
        ends.append((report.moves, poses.tolist()))
    assert ends[0] == ends[1] == ends[2]


def test_a_ladder_is_left_when_told_to() -> None:
    planted = hard(5)
    told = ctypes.c_int32(1)
    plan = Plan(tempering=10**12, replicas=4, top=1.6, low=0.7, cancel=ctypes.addressof(told))
    ladder = CompiledProblem(planted.scores, planted.grid).ladder(1, plan, codes_of(planted.slots, planted.turns))
    ladder.climb(0, 1)
    assert not ladder.best()[1].finished


def test_a_ladder_grows_faster_than_the_effort() -> None:
    """Comparing grids takes little of it, the last one most."""
    short, long = (engine.effort_for(64, effort).tempering for effort in (0.1, 1.0))
    assert long == engine.TEMPERING * 64
    assert 20 < long / short < 30
    assert engine.effort_for(engine.SMALL, 1.0).tempering == engine.effort_for(engine.LARGE + 1, 1.0).tempering == 0


def test_what_follows_a_ladder_grows_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = hard(3)
    moves = []
    for step in (engine.FINISH, engine.FINISH / 20):
        monkeypatch.setattr(engine, "FINISH", step)
        moves.append(solve_map(planted.scores, planted.grid, seed=1, effort=0.05).moves)
    ladder = engine.effort_for(64, 0.05).tempering
    steps = [1 + int(20**k * ladder / 1e5) for k in (0, 1)]
    assert moves[1] - moves[0] == (steps[1] - steps[0]) * engine.ROUND * 20 * 64


@pytest.mark.parametrize("seed", range(6))
def test_beliefs_alone_put_a_puzzle_together(seed: int) -> None:
    """From nothing, where growth finds less in two of the six; and again in the same way, after what was kept."""
    planted = plant(Grid(8, 8), 0.7, np.random.default_rng(seed), upright=True)
    problem = CompiledProblem(planted.scores, planted.grid, upright=True)
    start = 4 * np.random.default_rng(1).permutation(64).astype(np.int32)
    poses, _, (score, scratch, _) = problem.fuzz(2, "beliefs", 1, 1.0, start)
    assert score == pytest.approx(scratch)
    assert score > problem.score(codes_of(planted.slots, planted.turns)) - 1e-3
    np.testing.assert_array_equal(poses, problem.fuzz(2, "beliefs", 1, 1.0, start)[0])


def test_steps_of_belief_lose_nothing() -> None:
    planted = hard(1)
    problem = CompiledProblem(planted.scores, planted.grid)
    start = codes_of(planted.slots, planted.turns)
    for seed in range(3):
        poses, report = problem.run(seed, Plan(beliefs=2, lns=1.0), start)
        assert report.finished
        assert report.score == pytest.approx(problem.score(poses), abs=1e-3)
        assert report.score >= problem.score(start) - 1e-3
        assert sorted(poses >> 2) == list(range(64))


@pytest.mark.parametrize("options", [{"missing": 1}, {"extra": 1}, {"keep": 8}])
def test_where_slots_stay_empty_or_scores_are_few_nothing_is_believed(options: dict[str, int]) -> None:
    sparse = options.get("keep")
    planted = hard(2) if sparse else hard(2, **options)
    scores = sparsify(planted.scores.to_dense(), sparse) if sparse else planted.scores
    problem = CompiledProblem(scores, planted.grid)
    start, _ = problem.run(1, Plan(grow=2))
    _, report = problem.run(2, Plan(beliefs=3, lns=1.0), start)
    assert report.finished
    assert report.score == pytest.approx(problem.score(start), abs=1e-3)


def test_beliefs_take_scores_whose_weights_would_overflow() -> None:
    found = true = 0.0
    for seed in range(4):
        planted = plant(Grid(8, 8), 0.7, np.random.default_rng(seed), upright=True)
        dense = planted.scores.to_dense()
        problem = CompiledProblem(
            SideScores(n=64, dense=dense + np.float32(200) * (dense > 2)), planted.grid, upright=True
        )
        start = 4 * np.random.default_rng(1).permutation(64).astype(np.int32)
        found += problem.fuzz(2, "beliefs", 1, 1.0, start)[2][0]
        true += problem.score(codes_of(planted.slots, planted.turns))
    assert found > 0.75 * true


def test_beliefs_are_left_when_told_to() -> None:
    planted = hard(5)
    told = ctypes.c_int32(1)
    problem = CompiledProblem(planted.scores, planted.grid)
    start, _ = problem.run(1, Plan(grow=2))
    assert not problem.run(1, Plan(beliefs=1000, lns=1.0, cancel=ctypes.addressof(told)), start)[1].finished


@pytest.mark.parametrize("options", [{}, {"missing": 3}, {"extra": 3}])
def test_tempered_answers_are_whole_and_know_no_threads(options: dict[str, Any]) -> None:
    planted = hard(7, **options)
    fixed = int(np.flatnonzero(planted.slots >= 0)[0])
    pins = {fixed: (5, 2)}
    answers = [solve_map(planted.scores, planted.grid, seed=5, threads=t, effort=0.03, pins=pins) for t in (1, 2)]
    one, two = answers
    assert one.starts == engine.ROUND  # enough of them, agreed or not
    np.testing.assert_array_equal(one.slots, two.slots)
    np.testing.assert_array_equal(one.turns, two.turns)
    assert (one.slots[fixed], one.turns[fixed]) == (5, 2)
    placed = one.slots[one.slots >= 0]
    assert len(set(placed)) == len(placed) == min(64, len(one.slots))
    problem = CompiledProblem(planted.scores, planted.grid, pins=pins)
    assert one.score == pytest.approx(problem.score(codes_of(one.slots, one.turns)), abs=1e-3)


@pytest.mark.parametrize("upright", [False, True])
def test_sparse_is_dense_with_a_floor(upright: bool) -> None:
    grid = Grid(4, 5)
    planted = plant(grid, 0.7, np.random.default_rng(4), upright=upright)
    sparse = sparsify(planted.scores.to_dense(), 6)
    dense = SideScores(sparse.n, dense=sparse.to_dense())
    scores = [solve_map(scores, grid, upright=upright, seed=2).score for scores in (sparse, dense)]
    assert scores[0] == pytest.approx(scores[1], abs=2e-3)


def test_holes_and_extra_fragments() -> None:
    grid = Grid(4, 5)
    missing = plant(grid, 0.9, np.random.default_rng(1), missing=2)
    result = solve_map(missing.scores, grid, seed=1)
    assert len(set(result.slots)) == 18
    assert (result.slots >= 0).all()
    extra = plant(grid, 0.9, np.random.default_rng(2), extra=3)
    result = solve_map(extra.scores, grid, seed=1)
    assert right(extra, result) == 1.0
    assert set(np.flatnonzero(result.slots < 0)) == set(np.flatnonzero(extra.slots < 0))
    assert (result.marginals[result.slots < 0] == 0).all()
    assert (result.turns[result.slots < 0] == 0).all()


def test_pins_fix_the_gauge_and_excluded_fragments_stay_out() -> None:
    planted = plant(Grid(5, 5), 0.85, np.random.default_rng(6), extra=2)
    inside = np.flatnonzero(planted.slots >= 0)
    pin = {int(inside[3]): (int(planted.slots[inside[3]]), int(planted.turns[inside[3]]))}
    out = int(inside[7])
    result = solve_map(planted.scores, planted.grid, pins=pin, excluded=[out], seed=1)
    same = (result.slots == planted.slots) & (result.turns == planted.turns)
    assert result.slots[out] == -1
    assert same[inside].sum() == 24  # no best of four gauges here: the pin decides it
    assert (result.slots >= 0).sum() == 25


def test_unary_terms_fix_the_gauge() -> None:
    planted = plant(Grid(4, 4), 0.8, np.random.default_rng(7))
    unary = np.zeros((16, 4), dtype=np.float32)
    unary[np.arange(16), planted.turns] = 0.3
    result = solve_map(planted.scores, planted.grid, unary_turns=unary, seed=3)
    np.testing.assert_array_equal(result.turns, planted.turns)
    np.testing.assert_array_equal(result.slots, planted.slots)
    cells = np.zeros((16, 16), dtype=np.float32)
    cells[np.arange(16), planted.slots] = 0.3
    result = solve_map(planted.scores, planted.grid, unary_cells=cells, seed=3)
    np.testing.assert_array_equal(result.slots, planted.slots)
    poses = np.zeros((16, 16, 4), dtype=np.float32)
    poses[np.arange(16), planted.slots, planted.turns] = 0.3
    result = solve_map(planted.scores, planted.grid, unary_poses=poses, seed=3)
    np.testing.assert_array_equal(result.turns, planted.turns)
    np.testing.assert_array_equal(result.slots, planted.slots)


def test_a_start_is_not_made_worse() -> None:
    planted = plant(Grid(5, 6), 0.35, np.random.default_rng(9))
    long = solve_map(planted.scores, planted.grid, seed=1)
    short = solve_map(planted.scores, planted.grid, seed=2, start=long, effort=0.01)
    assert short.score >= long.score - 1e-3
    partial = Arrangement(planted.grid, np.where(np.arange(30) % 3 == 0, -1, long.slots), long.turns)
    filled = solve_map(planted.scores, planted.grid, seed=2, start=partial, effort=0.01)
    assert (filled.slots >= 0).all()


def test_marginals_tell_what_can_be_exchanged() -> None:
    planted = plant(Grid(4, 4), 0.95, np.random.default_rng(2))
    a, b = 3, 11
    dense = planted.scores.to_dense().copy()
    # Fragment b becomes a copy of a in the turns in which they stand, so that the two can stand for each other.
    turn = int(planted.turns[a] - planted.turns[b])
    for bearing in range(4):
        source, copy = 4 * a + bearing, 4 * b + (bearing + turn) % 4
        mean = (dense[source] + dense[copy]) / 2
        dense[source] = dense[copy] = mean
        dense[:, source] = dense[:, copy] = mean
    for i in range(16):
        dense[4 * i : 4 * i + 4, 4 * i : 4 * i + 4] = 0
    result = solve_map(SideScores(16, dense=dense), planted.grid, seed=1)
    others = np.delete(result.marginals, [a, b])
    assert others.mean() > 0.9
    assert 0.2 < result.marginals[a] < 0.8
    assert 0.2 < result.marginals[b] < 0.8


def test_progress_and_cancel() -> None:
    planted = plant(Grid(12, 12), 0.3, np.random.default_rng(1))
    seen: list[tuple[float, float]] = []

    def stop(score: float, share: float) -> bool:
        seen.append((score, share))
        return len(seen) < 3

    result = solve_map(planted.scores, planted.grid, progress=stop, effort=100)
    assert not result.finished
    assert len(seen) >= 3
    assert all(0 <= share <= 1 for _, share in seen)
    assert result.score >= max(score for score, _ in seen[:3]) - 1e-2
    assert (result.slots >= 0).all()


def test_an_exception_in_progress_ends_the_search() -> None:
    planted = plant(Grid(12, 12), 0.3, np.random.default_rng(1))

    def fail(score: float, share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_map(planted.scores, planted.grid, progress=fail, effort=100)


def test_time_limit_cuts_the_work() -> None:
    planted = plant(Grid(12, 12), 0.3, np.random.default_rng(1))
    result = solve_map(planted.scores, planted.grid, time_limit=0.3, effort=1e4)  # hours without the limit
    assert not result.finished
    assert (result.slots >= 0).all()


def test_smallest_puzzles() -> None:
    one = SideScores(1, dense=np.zeros((4, 4), dtype=np.float32))
    assert solve_map(one, Grid(1, 1)).slots.tolist() == [0]
    assert solve_map(one, Grid(2, 2)).score == 0
    two = plant(Grid(1, 2), 0.9, np.random.default_rng(0))
    assert sorted(solve_map(two.scores, two.grid).slots) == [0, 1]
    assert solve_map(two.scores, two.grid, excluded=[0, 1]).slots.tolist() == [-1, -1]
    both = solve_map(two.scores, two.grid, pins={0: (1, 2), 1: (0, 3)})
    assert both.slots.tolist() == [1, 0]
    assert both.turns.tolist() == [2, 3]


def _dense(n: int) -> NDArray[np.float32]:
    return np.zeros((4 * n, 4 * n), dtype=np.float32)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pins": {5: (0, 0)}}, "fragments 0 to 3"),
        ({"pins": {1: (4, 0)}}, "slots 0 to 3"),
        ({"pins": {1: (0, 4)}}, "turns"),
        ({"pins": {1: (0, 1)}, "upright": True}, "0 turns when upright"),
        ({"pins": {1: (0, 1), 2: (0, 0)}}, "both pinned"),
        ({"pins": {1: (0, 1)}, "excluded": [1]}, "not excluded"),
        ({"excluded": [9]}, "excluded"),
        ({"effort": 0.0}, "effort"),
        ({"threads": 0}, "threads"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"unary_turns": np.zeros((3, 4))}, "unary_turns"),
        ({"unary_cells": np.full((4, 4), np.nan)}, "finite"),
        ({"unary_poses": np.zeros((4, 4, 3))}, "unary_poses"),
        ({"start": Arrangement(Grid(2, 2), np.array([0, 0, 1, 2]), np.zeros(4))}, "different slots"),
        ({"start": Arrangement(Grid(2, 2), np.zeros(3), np.zeros(3))}, "of 4 fragments"),
        ({"full": (np.zeros((4, 4, 2)), np.full((3, 3, 4, 4), 2))}, "below R"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        solve_map(SideScores(4, dense=_dense(4)), Grid(2, 2), **options)  # type: ignore[arg-type]


def test_infinite_scores_are_refused() -> None:
    dense = _dense(4)
    dense[0, 5] = -np.inf
    with pytest.raises(OptionError, match="finite"):
        solve_map(SideScores(4, dense=dense), Grid(2, 2))
