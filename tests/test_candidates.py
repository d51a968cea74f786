"""Candidates for a cell, and the placements a solver shows while it works."""

from __future__ import annotations

import pytest

import jigsync
from jigsync import data
from jigsync.solution import Solution
from jigsync.solvers.base import Progress
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed

PUZZLE, TRUTH = jigsync.cut_with_truth(data.picture("chelsea"), "2x3", "light", cell=48, seed=3)
KNOWN = Solution("ok", "", TRUTH.grid, TRUTH.placement, puzzle=PUZZLE)


def test_the_best_candidate_of_every_cell_is_the_one_that_belongs_there() -> None:
    for name, home in TRUTH.placement.items():
        assert home.cell is not None
        found = jigsync.candidates(PUZZLE, KNOWN, *home.cell)
        assert (found[0].id, found[0].turns) == (name, home.turns)
        assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
        assert len({c.id for c in found}) == len(found) == 6
        assert 0.5 < found[0].probability <= 1.0


def test_candidates_of_a_turned_assembly_are_turned() -> None:
    turned = KNOWN.turned(1)
    for name, placed in turned.placement.items():
        assert placed.cell is not None
        best = jigsync.candidates(PUZZLE, turned, *placed.cell, limit=1)
        assert [(c.id, c.turns) for c in best] == [(name, placed.turns)]


def test_what_stands_in_the_cell_is_listed_as_it_stands() -> None:
    name, home = next(iter(TRUTH.placement.items()))
    assert home.row is not None
    assert home.col is not None
    turned = {**TRUTH.placement, name: Placed.at(home.row, home.col, (home.turns + 1) % 4)}
    found = jigsync.candidates(PUZZLE, Solution("ok", "", TRUTH.grid, turned), home.row, home.col, limit=2)
    assert [(c.id, c.turns) for c in (found[0], found[-1])] == [(name, home.turns), (name, (home.turns + 1) % 4)]
    assert found[0].probability > found[-1].probability
    assert len(found) == 3


def test_a_cell_without_neighbours_tells_nothing() -> None:
    placement = {name: Placed.nowhere() for name in PUZZLE.ids}
    found = jigsync.candidates(PUZZLE, Solution("partial", "", Grid(3, 3), placement), 1, 1)
    assert {round(c.probability * 24, 6) for c in found} == {1.0}
    assert {c.score for c in found} == {0.0}


def test_a_cell_outside_is_refused() -> None:
    with pytest.raises(OptionError, match=r"The cell \(2, 0\) must lie in the 2x3 grid"):
        jigsync.candidates(PUZZLE, KNOWN, 2, 0)
    with pytest.raises(OptionError, match="the solution failed"):
        jigsync.candidates(PUZZLE, Solution.failure(PUZZLE, "jigsync", "It did."), 0, 0)


@pytest.mark.parametrize("solver", ["jigsync", "greedy"])
def test_a_solver_shows_its_best_placement_while_it_works(solver: str) -> None:
    seen: list[Progress] = []

    def watch(step: Progress) -> bool:
        seen.append(step)
        return True

    solution = jigsync.solve(PUZZLE, solver, progress=watch)
    shown = [step.best for step in seen if step.best is not None]
    assert shown
    energies = [best.energy for best in shown if best.energy is not None]
    assert energies == sorted(energies, reverse=True)
    for best in shown:
        assert best.grid is not None
        assert sorted(slot for slot in best.slots if slot >= 0) == list(range(best.grid.size))
    if solver == "jigsync":
        assert solution.energy is not None
        assert solution.energy <= energies[-1] + 1e-6


def test_a_cancelled_solve_keeps_what_was_shown() -> None:
    solution = jigsync.solve(PUZZLE, progress=lambda step: step.best is None)
    assert solution
    assert solution.grid is not None
