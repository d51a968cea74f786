"""Every move of the compiled decoder keeps the score, the constraints and the permutation right."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_reference import Case, make_case
from scipy.optimize import linear_sum_assignment

from jigsync.engine.library import FUZZ_KINDS, Plan, library
from jigsync.engine.problem import CompiledProblem, codes_of
from jigsync.studies.planted import plant, true_pairs
from jigsync.values import z4
from jigsync.values.layout import Grid

CASES = {
    "3x4": {"grid": Grid(3, 4)},
    "holes": {"grid": Grid(3, 4), "missing": 2, "unary": True, "border": True},
    "border": {"grid": Grid(4, 5), "border": True},
    "pool": {"grid": Grid(4, 3), "extra": 5, "unary": True, "pinned": True},
    "upright": {"grid": Grid(4, 4), "upright": True, "unary": True, "pinned": True},
    "sparse pool": {"grid": Grid(4, 5), "extra": 3, "keep": 4, "pinned": True, "border": True},
    "sparse upright holes": {"grid": Grid(4, 5), "missing": 3, "upright": True, "keep": 4, "unary": True},
    "full": {"grid": Grid(3, 4), "extra": 2, "unary": True, "pinned": True, "full": True, "border": True},
    "full holes": {"grid": Grid(5, 4), "missing": 2, "pinned": True, "full": True},
    "one row": {"grid": Grid(1, 6), "border": True},
    "larger than the focus": {"grid": Grid(8, 9)},
}


@cache
def case_of(name: str) -> Case:
    return make_case(name, seed=len(name), **CASES[name])


@pytest.mark.parametrize("kind", FUZZ_KINDS)
@pytest.mark.parametrize("name", CASES)
def test_moves_keep_score_and_constraints(name: str, kind: str) -> None:
    case = case_of(name)
    problem, n = case.compiled(), case.planted.scores.n
    count = {"assignment": 60, "refill": 60, "regrow": 60, "beliefs": 8}.get(kind, 600)
    # Cold from a grown placement (few are accepted, components are large), then hot from anywhere.
    grown, _ = problem.run(1, Plan(grow=2))
    for start, temperature in ((grown, 0.5), (np.full(n, -1, dtype=np.int32), 60.0)):
        poses, _, (incremental, scratch, best) = problem.fuzz(7, kind, count, temperature, start)
        expected = case.score(poses)
        assert scratch == pytest.approx(expected, abs=2e-3)
        assert incremental == pytest.approx(expected, abs=2e-2)
        assert best >= scratch - 2e-2
        slots = poses[poses >= 0] >> 2
        assert len(set(slots)) == len(slots) == min(case.planted.grid.size, n - len(case.excluded))
        assert all(poses[f] == 4 * slot + turns for f, (slot, turns) in case.pins.items())
        assert all(poses[f] == -1 for f in case.excluded)
        if case.upright:
            assert not (poses[poses >= 0] & 3).any()


@pytest.mark.parametrize(
    "asked",
    [
        {"grid": Grid(8, 9), "border": True, "unary": True},
        {"grid": Grid(7, 8), "extra": 5, "border": True},
        {"grid": Grid(7, 8), "missing": 4},
        {"grid": Grid(8, 8), "upright": True, "border": True},
    ],
    ids=["border", "pool", "holes", "upright"],
)
def test_a_grain_that_moves_in_vain_leaves_everything_as_it_was(asked: dict[str, Any]) -> None:
    """Begun with the halves of a placement exchanged, whose grains gain by moving while what they displace loses."""
    case = make_case("grains", seed=3, **asked)
    problem, cols = case.compiled(), case.planted.grid.cols
    grown, _ = problem.run(1, Plan(grow=2))
    rows, at, turns = grown // (4 * cols), grown // 4 % cols, grown % 4
    start = np.where(grown < 0, -1, 4 * (rows * cols + (at + cols // 2) % cols) + turns).astype(np.int32)
    poses, _, (incremental, scratch, best) = problem.fuzz(7, "grain", 600, 1.0, start)
    assert scratch == pytest.approx(case.score(poses), abs=2e-3)
    assert incremental == pytest.approx(scratch, abs=2e-2)
    assert best >= scratch - 2e-2
    slots = poses[poses >= 0] >> 2
    assert len(set(slots)) == len(slots) == min(case.planted.grid.size, case.planted.scores.n)


@pytest.mark.parametrize("kind", FUZZ_KINDS)
def test_moves_do_move(kind: str) -> None:
    case = case_of("3x4")
    problem = case.compiled()
    # Only a grown placement has components of sure links.
    start = problem.run(1, Plan(grow=2))[0] if kind in ("component", "grain") else np.arange(0, 48, 4, dtype=np.int32)
    poses, _, _ = problem.fuzz(3, kind, 3 if kind == "beliefs" else 200, 60.0, start)
    assert (poses != start).any()


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (7, 7), (20, 31), (60, 60)])
def test_linear_assignment_is_optimal(rows: int, cols: int) -> None:
    rng = np.random.default_rng(rows)
    for scale in (1.0, 50.0):
        value = np.round(rng.normal(size=(rows, cols)) * scale, 1).astype(np.float32)  # with ties
        chosen = np.empty(rows, dtype=np.int32)
        assert library().jig_assign(value.ctypes.data, rows, cols, chosen.ctypes.data)
        assert len(set(chosen)) == rows
        best = value[linear_sum_assignment(value, maximize=True)].sum()
        assert value[np.arange(rows), chosen].sum() == pytest.approx(best, rel=1e-5)


def test_assignment_ends_where_no_exact_assignment_is_better() -> None:
    case = make_case("5x4", Grid(5, 4), 11, unary=True)
    problem, grid = case.compiled(), case.planted.grid
    start = codes_of(np.arange(20), np.arange(20) % 4)
    poses, _, (score, _, _) = problem.fuzz(2, "assignment", 400, 0.0, start)
    at = {int(pose) >> 2: i for i, pose in enumerate(poses)}
    for colour in (0, 1):
        slots = [slot for slot in range(20) if sum(grid.cell(slot)) % 2 == colour]
        value = np.zeros((len(slots), len(slots)))
        for i, slot in enumerate(slots):
            for j, other in enumerate(slots):
                tried = poses.copy()
                tried[[at[k] for k in slots]] = -1
                alone = case.score(tried)
                value[i, j] = -np.inf
                for turns in range(4):
                    tried[at[other]] = 4 * slot + turns
                    value[i, j] = max(value[i, j], case.score(tried) - alone)
        row, col = linear_sum_assignment(value, maximize=True)
        assert alone + value[row, col].sum() == pytest.approx(score, abs=5e-3)


def test_what_a_block_displaces_stays_whole() -> None:
    """A turned block and the region it displaces move by inverse motions, each as a whole."""
    case = make_case("6x6", Grid(6, 6), 1)
    problem, grid = case.compiled(), case.planted.grid
    start = codes_of(np.arange(36), np.zeros(36, dtype=np.int64))
    turned = 0
    for seed in range(300):
        poses, _, _ = problem.fuzz(seed, "block", 1, 1e9, start)
        moved: dict[tuple[int, int, int], tuple[set[int], set[int]]] = {}  # motion -> slots from and to
        for slot in np.flatnonzero(poses != start):
            d_turns, to = int(poses[slot]) & 3, int(poses[slot]) >> 2
            x, y = z4.act(d_turns, np.array(grid.cell(int(slot))[::-1]))
            row, col = grid.cell(to)
            motion = moved.setdefault((d_turns, row - int(y), col - int(x)), (set(), set()))
            motion[0].add(int(slot))
            motion[1].add(to)
        apart = len(moved) > 1 and any(a[1] == b[0] for a in moved.values() for b in moved.values() if a is not b)
        if apart:
            (a, *_), (b, *_) = moved
            assert len(moved) == 2
            assert (a + b) % 4 == 0
            turned += a % 2
    assert turned > 10


def test_score_of_a_given_placement() -> None:
    for name in CASES:
        case = case_of(name)
        if case.pins:
            continue
        poses = codes_of(case.planted.slots, case.planted.turns)
        assert case.compiled().score(poses) == pytest.approx(case.score(poses), abs=2e-3)


def test_links_beat_the_first_choice() -> None:
    planted = plant(Grid(8, 7), 0.6, np.random.default_rng(5))
    side, link = CompiledProblem(planted.scores, planted.grid).links()
    raw = planted.scores.to_dense().copy()
    own = np.arange(len(raw)) // 4
    raw[own[:, None] == own[None, :]] = -np.inf
    pairs = true_pairs(planted)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    first = np.mean(raw.argmax(axis=1)[both[:, 0]] == both[:, 1])
    linked = np.mean(side[both[:, 0], 0] == both[:, 1])
    assert 0.5 < first < 0.75
    assert linked > first + 0.2
    assert (np.diff(link, axis=1)[side[:, 1:] >= 0] <= 0).all()
    assert link.max() <= 0


@pytest.mark.parametrize(("down", "right"), [(2, 0), (0, 3), (3, 5)])
def test_a_picture_that_went_round_slides_back(down: int, right: int) -> None:
    grid = Grid(5, 7)
    planted = plant(grid, 0.9, np.random.default_rng(5))
    row, col = np.divmod(planted.slots, grid.cols)
    gone_round = codes_of((row + down) % grid.rows * grid.cols + (col + right) % grid.cols, planted.turns)
    problem = CompiledProblem(planted.scores, grid)
    poses, report = problem.run(0, Plan(), gone_round)
    true = codes_of(planted.slots, planted.turns)
    np.testing.assert_array_equal(poses, true)
    assert report.score == pytest.approx(problem.score(true), abs=1e-3)
