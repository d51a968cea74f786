"""Piles: fragments missing, strangers among them, two pictures at once; what is found in them, on planted scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from planted import Fixed, Planted, planted

from jigsync.corpus import recipes
from jigsync.corpus.piles import pile
from jigsync.corpus.recipes import NEEDED, ROWS, draw, make
from jigsync.corpus.sketches import KINDS, sketch
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.score.piles import score_pile
from jigsync.solvers import base
from jigsync.solvers.base import Assignment, SolveRequest
from jigsync.solvers.free import support
from jigsync.solvers.grids import grids_of
from jigsync.solvers.parts import parts_of
from jigsync.solvers.pictures import about_the_rest, peeled
from jigsync.solvers.strangers import without_strangers
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.sides import SideScores

GOOD = 12.0


def solved(case: Planted, **options: Any) -> Assignment:
    return base.get("jigsync").solve(case.request(threads=1, **options))


@pytest.mark.parametrize(("rows", "cols", "missing"), [(5, 5, (7, 24)), (4, 5, (0,)), (3, 4, (5, 6, 9)), (4, 6, (3,))])
def test_a_picture_with_holes_is_found_in_its_grid(rows: int, cols: int, missing: tuple[int, ...]) -> None:
    case = planted(Grid(rows, cols), 3, noise=1.0, good=GOOD, missing=missing)
    answer = solved(case)
    assert sorted(answer.grid.shape) == sorted((rows, cols))
    assert case.solved_by(answer, turned=True)
    assert answer.status == "ok"


def test_a_strip_stays_a_strip() -> None:
    case = planted(Grid(1, 7), 4, noise=1.0, good=GOOD)
    assert sorted(solved(case).grid.shape) == [1, 7]


@pytest.mark.parametrize(("missing", "strangers"), [((), 2), ((3, 13), 3), ((3, 13), 2)])
def test_strangers_stay_out(missing: tuple[int, ...], strangers: int) -> None:
    """Also where as many are missing, so that all of them would fill the grid."""
    case = planted(Grid(4, 5), 6, noise=1.0, good=GOOD, missing=missing, strangers=strangers)
    answer = solved(case)
    assert case.solved_by(answer, turned=True)
    assert answer.status == "partial"


def test_holes_and_strangers_with_a_grid_and_with_pins() -> None:
    case = planted(Grid(4, 5), 6, noise=1.0, good=GOOD, missing=(3, 13), strangers=3)
    assert case.solved_by(solved(case, layout=Grid(4, 5)), turned=True)
    k = int(np.flatnonzero(case.slots >= 0)[0])
    row, col = case.grid.cell(int(case.slots[k]))
    pinned = solved(case, pins={case.ids[k]: Pose.of_cell(row, col, int(case.turns[k]))})
    assert case.solved_by(pinned, turned=False)


def two(noise: float = 1.0) -> tuple[Planted, Planted, SolveRequest, np.ndarray]:
    """Two planted puzzles in one pile, their fragments shuffled; of which each is."""
    one = planted(Grid(4, 5), 1, noise=noise, good=GOOD)
    other = planted(Grid(3, 4), 2, noise=noise, good=GOOD)
    n = len(one.ids) + len(other.ids)
    rng = np.random.default_rng(5)
    matrix = np.triu(rng.normal(-4.0, noise, (4 * n, 4 * n)), 1)
    matrix = matrix + matrix.T
    half = 4 * len(one.ids)
    assert one.scores.dense is not None
    assert other.scores.dense is not None
    matrix[:half, :half], matrix[half:, half:] = one.scores.dense, other.scores.dense
    order = rng.permutation(n)
    sides = (4 * order[:, None] + np.arange(4)).ravel()
    scores = SideScores(n, dense=matrix[np.ix_(sides, sides)].astype(np.float32))
    ids = tuple(f"f{k:03d}" for k in range(n))
    return one, other, SolveRequest(ids, Fixed(scores), threads=1), order  # type: ignore[arg-type]


def test_two_pictures_are_two_answers() -> None:
    one, other, request, order = two()
    first = base.get("jigsync").solve(request)
    assert len(first.more) == 1
    back = np.argsort(order)
    for case, answer, start in ((one, first, 0), (other, first.more[0], len(one.ids))):
        mine = back[start : start + len(case.ids)]
        alone = Assignment(answer.layout, answer.slots[mine], answer.turns[mine])
        assert case.solved_by(alone, turned=True)
        assert (np.delete(answer.slots, mine) == -1).all()
        assert answer.confidences is not None
        assert (answer.confidences[mine] > 0).all()


def test_a_grid_with_room_for_all_is_one_picture() -> None:
    _, _, request, _ = two()
    asked = SolveRequest(request.ids, request.measurements, layout=Grid(4, 8), threads=1)
    assert base.get("jigsync").solve(asked).more == ()


def test_what_hangs_together() -> None:
    _, _, request, order = two()
    clusters = parts_of(request, request.measurements.sides())
    assert [len(cluster.fragments) for cluster in clusters] == [20, 12]
    assert [sorted(cluster.covered.shape) for cluster in clusters] == [[4, 5], [3, 4]]
    assert set(order[clusters[0].fragments]) == set(range(20))
    fewer = SolveRequest(request.ids, request.measurements, excluded=frozenset(request.ids[:5]))
    left = [i for cluster in parts_of(fewer, request.measurements.sides()) for i in cluster.fragments]
    assert sorted(left) == list(range(5, 32))


def test_pins_say_which_picture_is_first() -> None:
    _, _, request, _ = two()
    clusters = parts_of(request, request.measurements.sides())
    assert peeled(request, clusters) is clusters[0]
    large, small = (request.ids[cluster.fragments[0]] for cluster in clusters)
    pin = Pose.of_cell(0, 0, 0)
    assert peeled(replace(request, pins={small: pin}), clusters) is clusters[1]
    both = {small: pin, large: Pose.of_cell(0, 1, 0)}
    assert peeled(replace(request, pins=both), clusters) is None, "pins lie in one frame"
    rest = about_the_rest(replace(request, pins=both), clusters[1].fragments)
    assert set(rest.pins) == {large}
    assert rest.excluded == {request.ids[i] for i in clusters[1].fragments}


def test_a_fragment_that_lies_in_a_good_component_by_accident_stays_out() -> None:
    i, j = np.array([0, 1, 2, 0, 1, 3]), np.array([1, 2, 3, 3, 3, 4])
    component, free = np.zeros(5, dtype=np.int64), np.zeros(5, dtype=bool)

    def left(gain: list[float], pinned: np.ndarray) -> list[int]:
        found, parts = support.without_strangers(support.Support(i, j, np.array(gain)), component, pinned)
        assert (4 in found.j) == (parts[4] >= 0)
        return np.flatnonzero(parts < 0).tolist()

    assert left([20.0] * 5 + [5.0], free) == [4]
    assert left([20.0] * 6, free) == []
    assert left([20.0] * 5 + [5.0], np.arange(5) == 4) == [], "a person said so"
    assert left([4.0] * 5 + [2.0], free) == [], "nothing is held well here"


def test_a_whole_rectangle_asks_for_no_other_grid() -> None:
    whole = planted(Grid(4, 6), 1, noise=1.0, good=GOOD).request()
    core = parts_of(whole, whole.measurements.sides())[0]
    assert all(grid.size == 24 for grid in grids_of(whole, core, False))
    holes = planted(Grid(4, 6), 1, noise=1.0, good=GOOD, missing=(8,)).request()
    core = parts_of(holes, holes.measurements.sides())[0]
    listed = grids_of(holes, core, False)
    assert Grid(4, 6) in listed
    assert len(listed) <= 7
    assert all(abs(grid.size - 23) <= 3 for grid in listed)


def test_a_puzzle_that_cannot_be_read_keeps_its_fragments() -> None:
    """Where nothing is held together well, a bad place does not make a stranger."""
    scores = planted(Grid(3, 3), 1, noise=1.0, good=5.0)
    kept = np.zeros(9, dtype=bool)
    slots, gain = without_strangers(scores.scores, scores, kept, 9)
    assert (slots >= 0).all()
    assert gain == 0
    good = planted(Grid(3, 3), 1, noise=1.0, good=GOOD, strangers=1, missing=(4,))
    filled = np.where(good.slots < 0, 4, good.slots)
    slots, gain = without_strangers(good.scores, Arrangement(Grid(3, 3), filled, good.turns), kept, 9)
    assert (slots < 0).tolist() == (good.slots < 0).tolist()
    assert gain > 5
    pinned = good.slots < 0
    slots, _ = without_strangers(good.scores, Arrangement(Grid(3, 3), filled, good.turns), pinned, 9)
    assert (slots >= 0).all()


def test_a_pile_knows_where_everything_belongs() -> None:
    rgb = np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    parts = [cut_picture(rgb, CutOptions(Grid(*grid), 16), seed) for seed, grid in ((1, (2, 3)), (2, (3, 3)))]
    made = pile(parts, np.random.default_rng(3), missing=2, others=[parts[0][0]])
    assert len(made.puzzle) == 4 + 7 + 1
    assert [len(home) for home in made.homes] == [4, 7]
    assert len(made.strangers) == 1
    for (puzzle, truth), home in zip(parts, made.homes, strict=True):
        for name, placed in home.items():
            same = [k for k in puzzle.ids if np.array_equal(puzzle.fragments[k], made.puzzle.fragments[name])]
            assert placed in [truth.placement[k] for k in same]


def test_scores_of_a_pile_count_component_by_component() -> None:
    home = {name: Placed(Pose.of_turns(0, (10.0 * k, 0.0))) for k, name in enumerate("abcd")}
    other = {name: Placed(Pose.of_turns(0, (0.0, 10.0 * k))) for k, name in enumerate("efg")}
    ids = tuple("abcdefgx")
    moved = Pose.of_turns(1, (3.0, 4.0))

    def at(name: str, component: int, pose: Pose | None = None) -> Placed:
        placed = {**home, **other}[name].pose
        assert placed is not None
        return Placed(moved.compose(pose or placed), component=component)

    answer = {name: at(name, 0) for name in "abc"} | {name: at(name, 1) for name in "efg"}
    answer["d"] = Placed.nowhere()
    answer["x"] = Placed(Pose.of_turns(0, (99.0, 0.0)), component=1)
    scores = score_pile(answer, [home, other], ids, dict.fromkeys(ids, 10.0))
    assert scores.right.tolist() == [True] * 3 + [False] + [True] * 3 + [False]
    assert scores.picture.tolist() == [0, 0, 0, -1, 1, 1, 1, 1]
    assert scores.strangers_out == 0.0
    assert scores.called_strangers == pytest.approx(1 / 7)
    assert scores.share_right == scores.parted == pytest.approx(6 / 7)
    wrong = answer | {"d": at("d", 1), "c": at("c", 0, Pose.of_turns(2, (20.0, 0.0)))}
    again = score_pile(wrong, [home, other], ids, dict.fromkeys(ids, 10.0))
    assert again.right.tolist() == [True, True, False, False, True, True, True, False]
    assert again.parted == pytest.approx(6 / 7)


def test_every_recipe_can_be_made() -> None:
    rgb = [sketch(KINDS[k % 3], k, 256) for k in range(NEEDED)]
    for row in ROWS:
        recipe = draw(row, 2, 9)
        assert recipe == draw(row, 2, 9)
        if recipe.lying == "any" and row in ("foreign", "two pictures"):
            made = make(recipe, rgb, 4)
            assert len(made.homes) == (2 if row == "two pictures" else 1)
            assert len(made.strangers) == recipe.foreign


def test_jigsaws_have_a_number_of_pieces_that_fills_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "CELL", 24)
    rgb = [np.full((64, 88, 3), 90, dtype=np.uint8)] * NEEDED
    for number in range(8):
        made = make(draw("knobs", number, number), rgb, number)
        assert len(made.puzzle) % 4 == 0


def test_sketches_differ_by_kind_and_seed() -> None:
    for kind in KINDS:
        one = sketch(kind, 1, 128)
        assert one.shape == (128, 128, 3)
        assert np.array_equal(one, sketch(kind, 1, 128))
        assert not np.array_equal(one, sketch(kind, 2, 128))
