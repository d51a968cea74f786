"""The solver interface: what a request refuses, which grids are tried, the registry, the energy, side tables."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import planted, sparse

from jigsync import cli
from jigsync.engine.search import MapResult
from jigsync.solvers import base
from jigsync.solvers.base import Assignment, Budget, Progress, SolveRequest, grids_to_try
from jigsync.solvers.energy import placement_energy, score_pairs, sparse_rows, touching_sides
from jigsync.solvers.ladder import Found
from jigsync.solvers.table import SideTable, select
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.pose import Pose
from jigsync.values.sides import SideScores, side_at

PUZZLE = planted(Grid(2, 3), 4)
FIRST, SECOND = PUZZLE.ids[:2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"excluded": frozenset({"zz"})}, "excluded fragment 'zz' is not in the puzzle"),
        ({"excluded": frozenset(PUZZLE.ids)}, "6 of 6 fragments are excluded"),
        ({"pins": {"zz": Pose.of_cell(0, 0, 0)}}, "pinned fragment 'zz' is not in the puzzle"),
        (
            {"pins": {FIRST: Pose.of_cell(0, 0, 0)}, "excluded": frozenset({FIRST})},
            f"'{FIRST}' is both pinned and excluded",
        ),
        ({"pins": {FIRST: Pose.of_cell(2, 0, 0)}, "layout": Grid(2, 3)}, r"at cell \(2, 0\), outside the 2x3 grid"),
        ({"pins": {FIRST: Pose.of_cell(-1, 0, 0)}}, r"at cell \(-1, 0\), outside the grid"),
        ({"pins": {FIRST: Pose.of_degrees(33, (0, 0))}}, r"at 33 degrees and \(0, 0\): a grid takes cells only"),
        ({"pins": {FIRST: Pose.of_turns(1, (0.5, 0))}}, r"at 90 degrees and \(0.5, 0\): a grid takes cells only"),
        ({"pins": {FIRST: Pose.of_cell(0, 0, 1)}, "upright": True}, "has 1 turns in a puzzle said to be upright"),
        ({"pins": {FIRST: Pose.of_cell(0, 1, 0), SECOND: Pose.of_cell(0, 1, 2)}}, r"both pinned to cell \(0, 1\)"),
        ({"time_limit": 0.0}, "'time_limit' of a solve must be a number of seconds above 0. Got 0.0"),
        ({"threads": 0}, "'threads' of a solve must be an integer of at least 1. Got 0"),
    ],
)
def test_a_request_refuses_what_cannot_be(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        PUZZLE.request(**options)


def test_grids_to_try() -> None:
    assert [str(g) for g in grids_to_try(12, None, gauge_fixed=False)] == ["3x4", "2x6", "1x12"]
    both = [str(g) for g in grids_to_try(12, None, gauge_fixed=True)]
    assert both == ["3x4", "4x3", "2x6", "6x2", "1x12", "12x1"]
    assert [str(g) for g in grids_to_try(9, None, gauge_fixed=False)] == ["3x3", "1x9"]
    assert grids_to_try(12, Grid(5, 5), gauge_fixed=False) == [Grid(5, 5)]


@pytest.mark.parametrize(
    ("n", "tried"),
    [
        (64, ["8x8", "4x16", "2x32", "1x64"]),
        (97, ["1x97"]),
        (100, ["10x10", "5x20", "4x25", "2x50"]),
        (1000, ["25x40", "20x50", "10x100"]),
        (22755, ["123x185", "111x205"]),
    ],
)
def test_many_fragments_are_not_tried_as_a_strip(n: int, tried: list[str]) -> None:
    assert [str(g) for g in grids_to_try(n, None, gauge_fixed=False)] == tried
    both = grids_to_try(n, None, gauge_fixed=True)
    assert sorted(map(str, both)) == sorted({t for g in map(Grid.parse, tried) for t in (f"{g}", f"{g.cols}x{g.rows}")})


def test_a_strip_is_tried_where_pins_ask_for_it() -> None:
    assert "1x100" in map(str, grids_to_try(100, None, gauge_fixed=True, reach=70))
    assert "1x100" not in map(str, grids_to_try(100, None, gauge_fixed=True, reach=50))


def test_a_grid_has_slots_for_its_fragments_and_not_many_more() -> None:
    assert PUZZLE.request(layout=Grid(10, 10)).grid == Grid(10, 10)
    with pytest.raises(OptionError, match="grid 101x1 has 101 slots: 6 fragments take at most 100"):
        PUZZLE.request(layout=Grid(101, 1))


def test_grids_of_a_request_hold_its_pins_and_count_only_what_belongs() -> None:
    request = PUZZLE.request(pins={FIRST: Pose.of_cell(2, 0, 1)})
    assert [str(g) for g in request.grids()] == ["3x2", "6x1"]
    assert request.pinned(Grid(3, 2)) == {0: (4, 1)}
    assert request.gauge_fixed
    fewer = PUZZLE.request(excluded=frozenset({FIRST, SECOND}))
    assert [str(g) for g in fewer.grids()] == ["2x2", "1x4"]
    assert fewer.belonging.tolist() == [2, 3, 4, 5]
    assert not fewer.gauge_fixed
    with pytest.raises(OptionError, match=r"No grid holds all the pinned cells; .* 2x3, 3x2, 1x6, 6x1"):
        PUZZLE.request(pins={FIRST: Pose.of_cell(4, 4, 1)}).grids()


def test_an_assignment_knows_what_is_left_over() -> None:
    request = PUZZLE.request(excluded=frozenset({PUZZLE.ids[2]}))
    slots, turns = np.array([3, 0, -1, 1, 2]), np.array([1, 2, 3, 0, 1])
    answer = Assignment.of(request, Arrangement(Grid(2, 2), slots, turns), -1.5)
    assert answer.slots.tolist() == [3, 0, -1, -1, 1, 2]
    assert answer.turns.tolist() == [1, 2, 0, 0, 0, 1]
    assert (answer.status, bool(answer)) == ("partial", True)
    assert answer.reason == "1 of 5 fragments found no slot in the 2x2 grid."
    whole = Assignment.of(request, Arrangement(Grid(2, 3), np.arange(5), turns), 0.0)
    assert (whole.status, whole.reason) == ("ok", "")
    assert not Assignment.failure(6, "why")


def test_names_and_unknown_names() -> None:
    assert set(base.names()) >= {"exact", "exhaustive", "greedy", "genetic", "tree"}
    for name in ("exact", "exhaustive", "greedy", "genetic", "tree"):
        assert base.get(name).name == name
    with pytest.raises(OptionError, match=r"no solver 'tee'; the solvers are .*greedy, genetic, tree"):
        base.get("tee")
    with pytest.raises(OptionError, match="'target' of a solver must be of the form 'module:attribute'"):
        base.register("mine", "nowhere")


def test_a_registered_solver_is_imported_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))
    base.register("other", "jigsync.solvers.tree:Tree")
    assert base.get("other").name == "tree"
    base.register("broken", "jigsync.solvers.not_there:X")
    assert "broken" in base.names()
    with pytest.raises(ModuleNotFoundError, match="not_there"):
        base.get("broken")


def test_the_registry_imports_no_solver() -> None:
    program = "import sys, jigsync.solvers.base; print([m for m in sys.modules if 'solvers.' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert eval(done.stdout) == ["jigsync.solvers.energy", "jigsync.solvers.base"]


def test_solvers_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["solvers", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(base.names())
    assert all(row["summary"] and row["assumes"] for row in rows)
    assert cli.main(["solvers"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in base.names())


def test_a_budget_stops_once_and_for_all() -> None:
    heard: list[Progress] = []

    def listen(progress: Progress) -> bool:
        heard.append(progress)
        return len(heard) < 2

    budget = Budget(PUZZLE.request(progress=listen))
    assert budget.seconds_left is None
    assert budget.go_on("one", 0.5, -3.0)
    assert not budget.go_on("two", 7.0)
    assert not budget.go_on("three", 0.0)
    assert heard == [Progress("one", 0.5, -3.0), Progress("two", 1.0, None)]
    assert budget.stopped == "It was cancelled."
    late = Budget(PUZZLE.request(time_limit=1e-3))
    time.sleep(2e-3)
    assert not late.go_on("x", 0.0)
    assert late.stopped == "The time limit came first."
    assert late.seconds_left == 0.0


def plain_energy(scores: SideScores, found: Arrangement) -> float:
    """The energy fragment by fragment, from the definition of a touching side."""
    dense, total = scores.to_dense(), 0.0
    grid, slots, turns = found.grid, found.slots, found.turns
    cells = {grid.cell(int(slot)): i for i, slot in enumerate(slots) if slot >= 0}
    for (row, col), i in cells.items():
        for bearing in range(4):
            d_row, d_col = z4.bearing_offset(bearing)
            j = cells.get((row + d_row, col + d_col))
            if j is not None:
                total += dense[side_at(i, int(turns[i]), bearing), side_at(j, int(turns[j]), bearing + 2)] / 2
            if scores.border is not None and not grid.contains(row + d_row, col + d_col):
                total += scores.border[side_at(i, int(turns[i]), bearing)]
    return -float(total)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.integers(0, 10**6))
def test_energy_is_what_the_definition_says(rows: int, cols: int, holes: int, seed: int) -> None:
    grid = Grid(rows, cols)
    rng = np.random.default_rng(seed)
    n = max(1, grid.size - holes) + seed % 2
    matrix = rng.normal(0, 3, (4 * n, 4 * n))
    border = rng.normal(0, 3, 4 * n).astype(np.float32) if seed % 3 else None
    scores = SideScores(n, dense=(matrix + matrix.T).astype(np.float32), border=border)
    slots = np.full(n, -1)
    placed = min(n, grid.size)
    slots[rng.permutation(n)[:placed]] = rng.permutation(grid.size)[:placed]
    turns = rng.integers(0, 4, n)
    found = Arrangement(grid, slots, turns)
    energy = placement_energy(scores, found)
    assert energy == pytest.approx(plain_energy(scores, found), abs=1e-3)
    for gauge in range(4):
        cells = z4.turn_cells(found.cells, grid.shape, gauge)
        slots = np.where(found.slots >= 0, cells[:, 0] * grid.turned(gauge).cols + cells[:, 1], -1)
        moved = Arrangement(grid.turned(gauge), slots, (turns + gauge) % 4)
        assert placement_energy(scores, moved) == pytest.approx(energy, abs=1e-3)
    assert placement_energy(sparse(scores, -1.0), found) == pytest.approx(
        plain_energy(SideScores(n, dense=np.maximum(scores.to_dense(), -1), border=border), found), abs=1e-3
    )


def test_true_sides_touch_in_the_truth() -> None:
    s, t = touching_sides(PUZZLE)
    assert len(s) == 7
    assert np.all(score_pairs(PUZZLE.scores, s, t) == 2.0)


def test_sparse_scores_without_an_entry() -> None:
    empty = SideScores(
        2,
        indptr=np.zeros(9, np.int64),
        indices=np.zeros(0, np.int32),
        values=np.zeros(0, np.float32),
        floor=-5.0,
    )
    assert placement_energy(empty, Arrangement(Grid(1, 2), np.array([0, 1]), np.array([0, 1]))) == 5.0
    assert np.all(SideTable(empty, upright=False).buddies == -1)
    with pytest.raises(ValueError, match="dense"):
        sparse_rows(PUZZLE.scores)


def test_neighbour_slots() -> None:
    assert Grid(2, 3).neighbour_slots()[4].tolist() == [5, 1, 3, -1]  # E, N, W, S


@pytest.mark.parametrize("upright", [False, True])
def test_a_table_reads_dense_and_sparse_scores_alike(upright: bool) -> None:
    puzzle = planted(Grid(3, 4), 2, turned=not upright, noise=1.0)
    dense = SideTable(puzzle.scores, upright)
    listed = SideTable(sparse(puzzle.scores, -30.0), upright)
    for s in (0, 17, 40):
        assert np.array_equal(dense.row(s), listed.row(s))
    assert np.array_equal(dense.rank, listed.rank)
    for ours, theirs in zip(dense.best, listed.best, strict=True):
        assert np.array_equal(ours, theirs)
    for ours, theirs in zip(dense.edges(5), listed.edges(5), strict=True):
        assert np.array_equal(ours, theirs)
    partners = 4 * 11 if not upright else 11
    assert (dense.rank >= 0).sum(axis=1).tolist() == [partners] * 48
    best = np.where(np.isneginf(dense.row(5)), -np.inf, dense.row(5)).argmax()
    assert dense.rank[5, 0] == dense.best[0][5] == best
    assert dense.best[2][5] == dense.row(5)[dense.rank[5, 1]]
    s = np.flatnonzero(dense.buddies >= 0)
    assert np.array_equal(dense.buddies[dense.buddies[s]], s)
    if upright:
        assert np.all((dense.buddies[s] - s) % 4 == 2)


def test_best_buddies_of_a_clean_puzzle_are_its_true_neighbours() -> None:
    puzzle = planted(Grid(3, 4), 3, noise=0.5)
    s, t = touching_sides(puzzle)
    assert np.array_equal(SideTable(puzzle.scores, upright=False).buddies[s], t)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_selecting_fragments_keeps_their_scores(form: str) -> None:
    puzzle = planted(Grid(2, 4), 3, noise=1.0)
    scores = puzzle.scores if form == "dense" else sparse(puzzle.scores, -4.0)
    chosen = np.array([1, 2, 5, 7])
    sides = (4 * chosen[:, None] + np.arange(4)).ravel()
    assert np.array_equal(select(scores, chosen).to_dense(), scores.to_dense()[np.ix_(sides, sides)])
    assert select(scores, np.arange(8)) is scores


def test_request_defaults_share_no_state() -> None:
    one, other = PUZZLE.request(), PUZZLE.request()
    assert one.pins is not other.pins
    assert isinstance(one, SolveRequest)


@pytest.mark.parametrize(
    ("grid", "nats"),
    [(Grid(10, 10), 0), (Grid(5, 20), 53.178), (Grid(20, 5), 53.178), (Grid(8, 9), 0.29965), (Grid(1, 5), 5.991)],
)
def test_long_grids_are_less_likely_beforehand(grid: Grid, nats: float) -> None:
    """Quadratic in the logarithm of length over width up to e, linear beyond; as for nine fragments at least."""
    n = grid.size
    slots = np.arange(n)
    result = MapResult(grid, slots, 0 * slots, score=1000.0, starts=1, moves=1, seconds=0.0, draw=lambda: np.zeros(n))
    assert 1000 - Found(result, slots, 0.0).worth == pytest.approx(nats, rel=1e-3, abs=1e-9)
