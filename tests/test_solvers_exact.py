"""The two exact solvers: each against plain enumeration, and against each other (200 puzzles: benchmarks)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from planted import Planted, planted, sparse

from jigsync.solvers import base
from jigsync.solvers.base import Assignment, Progress
from jigsync.solvers.energy import placement_energy
from jigsync.solvers.exhaustive import permutations
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.pose import Pose
from jigsync.values.sides import SideScores

EXACT, ALL = base.get("exact"), base.get("exhaustive")


def check(puzzle: Planted, answer: Assignment) -> float:
    """The energy of an answer that must be a proven, valid placement."""
    assert answer.proven
    assert answer
    assert answer.energy == pytest.approx(placement_energy(puzzle.scores, answer), abs=1e-4)
    placed = answer.slots[answer.slots >= 0]
    assert len(set(placed.tolist())) == len(placed) == min(len(puzzle.ids), answer.grid.size)
    assert placed.max() < answer.grid.size
    return float(answer.energy)  # type: ignore[arg-type]


def both(puzzle: Planted, **options: object) -> tuple[Assignment, Assignment]:
    """The two answers, which must have the same energy."""
    answers = EXACT.solve(puzzle.request(**options)), ALL.solve(puzzle.request(**options))
    assert check(puzzle, answers[0]) == pytest.approx(check(puzzle, answers[1]), abs=1e-4)
    return answers


def test_permutations_are_all_and_lexicographic() -> None:
    for m in range(6):
        assert permutations(m).tolist() == [list(order) for order in itertools.permutations(range(m))]


def test_enumeration_is_plain_enumeration() -> None:
    puzzle = planted(Grid(2, 2), 1, noise=3.0, good=0.0, border=True)
    least = min(
        placement_energy(puzzle.scores, Arrangement(puzzle.grid, np.array(slots), np.array(turns)))
        for slots in itertools.permutations(range(4))
        for turns in itertools.product(range(4), repeat=4)
    )
    assert check(puzzle, ALL.solve(puzzle.request(layout=puzzle.grid))) == pytest.approx(least, abs=1e-4)
    assert check(puzzle, EXACT.solve(puzzle.request(layout=puzzle.grid))) == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_upright_3x3_agree(seed: int) -> None:
    both(
        planted(Grid(3, 3), seed, turned=False, noise=3.0, good=float(seed), border=seed % 2 == 1),
        layout=Grid(3, 3),
        upright=True,
    )


@pytest.mark.parametrize("seed", range(8))
def test_turned_2x3_agree(seed: int) -> None:
    both(planted(Grid(2, 3), seed, noise=3.0, good=float(seed), border=seed % 2 == 1), layout=Grid(2, 3))


@pytest.mark.parametrize("grid", [Grid(1, 5), Grid(5, 1), Grid(2, 2), Grid(3, 2), Grid(1, 1)])
def test_other_grids_agree(grid: Grid) -> None:
    both(planted(grid, 5, noise=3.0, good=2.0, border=True), layout=grid)


@pytest.mark.parametrize("seed", range(3))
def test_holes_surplus_and_pins_agree(seed: int) -> None:
    holes = planted(Grid(2, 3), seed, noise=3.0, good=3.0, missing=(2, 4), border=True)
    both(holes, layout=Grid(2, 3))
    surplus = planted(Grid(2, 2), seed, noise=3.0, good=3.0, strangers=2, border=True)
    answers = both(surplus, layout=Grid(2, 2))
    assert [answer.status for answer in answers] == ["partial", "partial"]
    assert answers[0].reason == "2 of 6 fragments found no slot in the 2x2 grid."
    pins = {holes.ids[1]: Pose.of_cell(1, 1, 3), holes.ids[3]: Pose.of_cell(0, 2, 1)}
    for answer in both(holes, layout=Grid(2, 3), pins=pins):
        assert (answer.slots[[1, 3]].tolist(), answer.turns[[1, 3]].tolist()) == ([4, 2], [3, 1])
    for answer in both(surplus, layout=Grid(2, 2), pins={surplus.ids[0]: Pose.of_cell(1, 0, 2)}):
        assert (answer.slots[0], answer.turns[0]) == (2, 2)
    upright = planted(Grid(3, 3), seed, turned=False, noise=3.0, good=3.0, missing=(4,))
    for answer in both(upright, layout=Grid(3, 3), upright=True, pins={upright.ids[2]: Pose.of_cell(2, 0, 0)}):
        assert (answer.slots[2], answer.turns.max()) == (6, 0)


def test_excluded_fragments_stay_out() -> None:
    puzzle = planted(Grid(2, 3), 3, strangers=1)
    stranger = int(np.flatnonzero(puzzle.slots < 0)[0])
    answer = EXACT.solve(puzzle.request(layout=puzzle.grid, excluded=frozenset({puzzle.ids[stranger]})))
    assert puzzle.solved_by(answer, turned=True)
    assert answer.status == "ok"


@pytest.mark.parametrize(("grid", "turned"), [(Grid(2, 4), True), (Grid(4, 2), True), (Grid(4, 2), False)])
def test_an_unknown_grid_is_found(grid: Grid, turned: bool) -> None:
    puzzle = planted(grid, 1, turned=turned, noise=1.0)
    answer = EXACT.solve(puzzle.request(upright=not turned))
    assert puzzle.solved_by(answer, turned=turned)
    assert answer.proven
    assert answer.note == "Proven: no placement has a lower energy."


@pytest.mark.parametrize("seed", range(4))
def test_no_turned_3x3_placement_is_better_after_local_moves(seed: int) -> None:
    puzzle = planted(Grid(3, 3), seed, noise=3.0, good=3.0)
    answer = EXACT.solve(puzzle.request(layout=puzzle.grid))
    least = check(puzzle, answer)
    assert least <= placement_energy(puzzle.scores, puzzle) + 1e-4
    for i, j in itertools.combinations(range(9), 2):
        slots = answer.slots.copy()
        slots[[i, j]] = slots[[j, i]]
        for ki, kj in itertools.product(range(4), repeat=2):
            turns = answer.turns.copy()
            turns[[i, j]] = ki, kj
            assert placement_energy(puzzle.scores, Arrangement(puzzle.grid, slots, turns)) >= least - 1e-4


def test_sparse_and_hopeless_scores() -> None:
    puzzle = planted(Grid(2, 3), 6, noise=1.0)
    listed = replace(puzzle, scores=sparse(puzzle.scores, -4.0))
    assert puzzle.solved_by(EXACT.solve(listed.request(layout=puzzle.grid)), turned=True)
    never = np.array(puzzle.scores.to_dense())
    never[never < 0] = -1e5
    impossible = replace(puzzle, scores=SideScores(6, dense=never))
    assert puzzle.solved_by(EXACT.solve(impossible.request(layout=puzzle.grid)), turned=True)
    never[never < 0] = -np.inf
    endless = replace(puzzle, scores=SideScores(6, dense=never))
    with pytest.raises(OptionError, match="must be finite numbers"):
        EXACT.solve(endless.request(layout=puzzle.grid))


@pytest.mark.parametrize("limit", ["time", "cancel", "raise"])
def test_a_stopped_proof_is_no_proof(limit: str) -> None:
    puzzle = planted(Grid(4, 4), 0, noise=3.0, good=0.0)
    if limit == "raise":

        def fail(progress: Progress) -> bool:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            EXACT.solve(puzzle.request(layout=puzzle.grid, progress=fail))
        return
    if limit == "time":
        answer = EXACT.solve(puzzle.request(layout=puzzle.grid, time_limit=0.05))
        assert answer.note == "The time limit came first."
    else:
        answer = EXACT.solve(puzzle.request(layout=puzzle.grid, progress=lambda progress: False))
        assert answer.note == "It was cancelled."
    assert not answer.proven
    assert sorted(answer.slots.tolist()) == list(range(16))


def test_too_many_fragments() -> None:
    with pytest.raises(OptionError, match=r"'exact' takes at most 16 fragments and slots. Got 18 fragments for a 3x6"):
        EXACT.solve(planted(Grid(3, 6)).request())
    with pytest.raises(OptionError, match=r"'exact' takes at most 16 .* Got 4 fragments for a 5x5 grid"):
        EXACT.solve(planted(Grid(2, 2)).request(layout=Grid(5, 5)))
    with pytest.raises(OptionError, match=r"'exhaustive' takes at most 6 .* with unknown turns. Got 9 .* 3x3 grid"):
        ALL.solve(planted(Grid(3, 3)).request())
    with pytest.raises(OptionError, match=r"'exhaustive' takes at most 9 .* when upright. Got 12 fragments"):
        ALL.solve(planted(Grid(3, 4), turned=False).request(upright=True))
