"""`jigsync-paper` behind the solver interface."""

from __future__ import annotations

import numpy as np
import pytest

from jigsync.score.cells import score_batch
from jigsync.solvers.base import Assignment, Solver, SolveRequest
from jigsync.solvers.energy import placement_energy
from jigsync.solvers.paper import NEIGHBOURS_ONLY, PAPER, Paper
from jigsync.studies.synthetic import Solved, measured, random_solved, true_relations, turn_evidence
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.pairs import TouchingSides
from jigsync.values.pose import Pose


def solved_of(seed: int, grid: Grid, turned: bool = True) -> Solved:
    return random_solved(grid, np.random.default_rng(seed), turned)


def neighbours_only(solved: Solved, mass: float = 0.8) -> Measurements:
    """Log-probabilities of touching sides, `mass` on the true ones and a little on all others."""
    n = solved.n
    sides = np.full((4 * n, 4 * n), np.log(1e-4))
    for i, j in solved.adjacency():
        relation = solved.relation(np.array([i]), np.array([j]))[0]
        a, b = np.argwhere(relation == v.UNIT_OF_SIDES)[0]
        sides[4 * i + a, 4 * j + b] = sides[4 * j + b, 4 * i + a] = np.log(mass)
    return Measurements.from_sides_log_p(solved.ids, sides)


def best4(answer: Assignment, solved: Solved) -> float:
    """AA+rot at the best global turn."""
    assert answer
    cells = np.stack(np.divmod(answer.slots, answer.grid.cols), axis=-1)
    cells[answer.slots < 0] = -1
    scores = score_batch(cells[None], answer.turns[None], answer.grid.shape, solved.cells, solved.turns)
    return float(scores.of("AA+rot", "best4")[0])


def test_it_is_a_solver() -> None:
    solver: Solver = Paper()
    assert solver.name == "jigsync-paper"
    assert solver.summary.endswith(".")
    assert solver.assumes.endswith(".")


@pytest.mark.parametrize("grid", [Grid(3, 3), Grid(4, 6), Grid(7, 3)], ids=str)
def test_both_kinds_of_measurements(grid: Grid) -> None:
    solved = solved_of(1, grid)
    for made in (measured(solved, true_relations(solved)), neighbours_only(solved)):
        answer = Paper().solve(SolveRequest(solved.ids, made, layout=grid))
        assert answer.status == "ok"
        assert answer.grid == grid
        assert best4(answer, solved) == 1.0
        assert answer.confidences is not None
        assert answer.confidences.min() > 0.9
        assert answer.energy == pytest.approx(placement_energy(made.sides(), answer))


def test_unknown_grid() -> None:
    solved = solved_of(2, Grid(3, 8))
    answer = Paper().solve(SolveRequest(solved.ids, neighbours_only(solved)))
    assert answer.grid in (Grid(3, 8), Grid(8, 3))
    assert best4(answer, solved) == 1.0


def test_excluded_fragments_and_pins() -> None:
    grid = Grid(4, 5)
    solved = solved_of(3, grid)
    made = neighbours_only(solved)
    name, k = solved.ids[11], 11
    for g in (0, 2):
        row, col = (int(x) for x in z4.turn_cells(solved.cells[k], grid.shape, g))
        pin = Pose.of_cell(row, col, int(solved.turns[k] + g) % 4)
        request = SolveRequest(solved.ids, made, layout=grid, pins={name: pin}, excluded=frozenset({solved.ids[4]}))
        answer = Paper().solve(request)
        assert answer.slots[k] == grid.slot(row, col)
        assert answer.turns[k] == pin.turns
        assert answer.slots[4] == -1
        assert answer.confidences is not None
        assert answer.confidences[4] == 0.0
        assert best4(answer, solved) == pytest.approx(19 / 20)


def test_upright() -> None:
    solved = solved_of(5, Grid(4, 6), turned=False)
    answer = Paper().solve(SolveRequest(solved.ids, neighbours_only(solved), layout=Grid(4, 6), upright=True))
    assert np.array_equal(answer.slots, solved.slots)
    assert not answer.turns.any()


def sides_of(measurements: Measurements) -> np.ndarray:
    """(4N, 4N) log-probabilities of touching sides."""
    assert isinstance(measurements.pairs, TouchingSides)
    return measurements.pairs.side_log_p


def test_parts_are_reported() -> None:
    solved = solved_of(6, Grid(2, 6))
    sides = np.array(sides_of(neighbours_only(solved)))
    left = np.repeat(solved.cells[:, 1] < 3, 4)
    sides[left[:, None] != left] = np.log(1e-4)
    made = Measurements.from_sides_log_p(solved.ids, sides)
    answer = Paper().solve(SolveRequest(solved.ids, made, layout=Grid(2, 6)))
    assert answer.status == "partial"
    assert "2 parts" in answer.reason
    assert sorted(answer.slots) == list(range(12))


def test_options_are_the_callers_when_given() -> None:
    solved = solved_of(7, Grid(5, 5))
    rng = np.random.default_rng(0)
    made = measured(solved, true_relations(solved), unary_turns=turn_evidence(solved, rng, 0.9))
    answer = Paper(PAPER).solve(SolveRequest(solved.ids, made, layout=Grid(5, 5)))
    assert np.array_equal(answer.slots, solved.slots)
    assert np.array_equal(answer.turns, solved.turns)
    assert best4(Paper(NEIGHBOURS_ONLY).solve(SolveRequest(solved.ids, made, layout=Grid(5, 5))), solved) == 1.0
