"""The values: laws of the group over all of Z4, poses, and what fragments, grids and answers refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sample
from hypothesis import given
from hypothesis import strategies as st

from jigsync import data
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement, Poses
from jigsync.values.errors import FormatError, InputError, OptionError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.sides import SideScores, side, side_at, touching_side
from jigsync.values.truth import Truth

TURNS = range(4)
XY = st.tuples(st.integers(-50, 50), st.integers(-50, 50))
POSES = st.builds(Pose.of_turns, st.integers(-8, 8), XY.map(lambda xy: (float(xy[0]), float(xy[1]))))


def pixels(height: int = 2, width: int = 3, fill: int = 1) -> np.ndarray:
    return np.full((height, width, 4), fill, dtype=np.uint8)


# --- the group


@pytest.mark.parametrize("a", TURNS)
def test_identity_and_inverse(a: int) -> None:
    assert z4.compose(a, 0) == z4.compose(0, a) == a
    assert z4.compose(a, z4.inverse(a)) == 0
    assert z4.inverse(z4.inverse(a)) == a


@pytest.mark.parametrize(("a", "b"), list(itertools.product(TURNS, repeat=2)))
def test_group_laws_of_pairs(a: int, b: int) -> None:
    assert z4.compose(a, b) in TURNS
    assert z4.compose(a, b) == z4.compose(b, a)
    assert z4.compose(a, z4.between(a, b)) == b
    assert z4.inverse(z4.compose(a, b)) == z4.compose(z4.inverse(b), z4.inverse(a))
    np.testing.assert_array_equal(z4.matrix(a) @ z4.matrix(b), z4.matrix(z4.compose(a, b)))
    picture = sample.picture()
    np.testing.assert_array_equal(
        z4.turn_pixels(z4.turn_pixels(picture, b), a), z4.turn_pixels(picture, z4.compose(a, b))
    )


@pytest.mark.parametrize(("a", "b", "c"), list(itertools.product(TURNS, repeat=3)))
def test_group_is_associative(a: int, b: int, c: int) -> None:
    assert z4.compose(z4.compose(a, b), c) == z4.compose(a, z4.compose(b, c))


@pytest.mark.parametrize("a", TURNS)
def test_matrix_is_a_rotation_and_agrees_with_act(a: int) -> None:
    assert round(np.linalg.det(z4.matrix(a))) == 1
    np.testing.assert_array_equal(z4.matrix(a).T, z4.matrix(z4.inverse(a)))
    xy = np.array([[[3, -1], [0, 2]], [[7, 7], [-4, 5]]])
    np.testing.assert_array_equal(z4.act(a, xy), xy @ z4.matrix(a).T)
    assert z4.act(a, xy.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        z4.matrix(a)[0, 0] = 5


@pytest.mark.parametrize("a", TURNS)
def test_phase_is_a_homomorphism_with_an_inverse(a: int) -> None:
    every = np.arange(4)
    np.testing.assert_array_equal(z4.phase(every) * z4.phase(np.array(a)), z4.phase(every + a))
    np.testing.assert_array_equal(z4.turns_of_phase(z4.phase(every) * np.exp(0.7j)), every)
    np.testing.assert_array_equal(z4.turns_of_phase(z4.phase(every) * np.exp(0.9j)), (every + 1) % 4)


@pytest.mark.parametrize("turns", range(-4, 8))
def test_turned_cells_follow_the_array(turns: int) -> None:
    slots = np.arange(6).reshape(2, 3)
    turned = np.rot90(slots, turns)
    assert z4.turned_shape((2, 3), turns) == turned.shape == Grid(2, 3).turned(turns).shape
    cells = np.array(list(Grid(2, 3).cells()))
    for slot, (row, col) in enumerate(z4.turn_cells(cells, (2, 3), turns)):
        assert turned[row, col] == slot


def test_bearings_are_their_offsets() -> None:
    for bearing in TURNS:
        assert z4.bearing_of_offset(*z4.bearing_offset(bearing)) == bearing
    with pytest.raises(ValueError, match="not a unit step"):
        z4.bearing_of_offset(1, 1)


# --- poses


@given(POSES, POSES, POSES, XY)
def test_pose_laws(a: Pose, b: Pose, c: Pose, point: tuple[int, int]) -> None:
    assert a.compose(Pose.identity()) == Pose.identity().compose(a) == a
    assert a.compose(a.inverse()) == a.inverse().compose(a) == Pose.identity()
    assert a.compose(b).compose(c) == a.compose(b.compose(c))
    assert a.compose(b).inverse() == b.inverse().compose(a.inverse())
    assert a.compose(a.between(b)) == b
    assert a.between(b).inverse() == b.between(a)
    xy = np.array(point)
    np.testing.assert_array_equal(a.act(b.act(xy)), a.compose(b).act(xy))


def test_poses_of_turned_and_upright_fragments_do_not_commute() -> None:
    a, b = Pose.of_turns(1, (2.0, 0.0)), Pose.of_turns(0, (0.0, 3.0))
    assert a.compose(b) == Pose.of_turns(1, (5.0, 0.0))
    assert b.compose(a) == Pose.of_turns(1, (2.0, 3.0))


# --- grids and fragments


@pytest.mark.parametrize(
    ("text", "shape"), [("5", (5, 5)), ("4x6", (4, 6)), (" 2 X 3 ", (2, 3)), ("1", (1, 1)), ("007x1", (7, 1))]
)
def test_grid_parses(text: str, shape: tuple[int, int]) -> None:
    assert Grid.parse(text).shape == shape


@pytest.mark.parametrize("text", ["", "x", "4x", "x6", "0", "0x3", "-3", "3.5", "4*6", "4x6x2", "nan", "999999", "4 6"])
def test_grid_refuses(text: str) -> None:
    with pytest.raises(OptionError, match="must be"):
        Grid.parse(text)


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, "3", None])
def test_grid_takes_positive_integers_only(rows: object) -> None:
    with pytest.raises(OptionError, match="'rows' of a grid"):
        Grid(rows, 3)  # type: ignore[arg-type]


def test_grid_slots() -> None:
    grid = Grid(np.int64(2), 3)  # type: ignore[arg-type]
    assert type(grid.rows) is int
    assert [grid.slot(*cell) for cell in grid.cells()] == list(range(grid.size)) == [0, 1, 2, 3, 4, 5]
    assert [grid.cell(slot) for slot in range(grid.size)] == list(grid.cells())
    assert grid.contains(1, 2)
    assert not grid.contains(2, 1)
    assert not grid.contains(-1, 0)
    assert str(grid) == "2x3"


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_permute_keeps_ids_and_pixels_together(first: list[int], second: list[int]) -> None:
    puzzle = Puzzle(sample.puzzle().fragments, 5, 12, "vase")
    once = puzzle.permute(first)
    assert once.ids == tuple(puzzle.ids[k] for k in first)
    for name in puzzle.ids:
        np.testing.assert_array_equal(once.fragments[name], puzzle.fragments[name])
    both = [first[k] for k in second]
    assert once.permute(second).ids == puzzle.permute(both).ids
    assert once.permute(np.argsort(first)).ids == puzzle.ids
    assert (once.cell, once.container, once.name, len(once)) == (5, 12, "vase", 6)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 2, 3, 4, 4], [1, 2, 3, 4, 5, 6]])
def test_permute_takes_permutations_only(order: list[int]) -> None:
    with pytest.raises(OptionError, match="'order' of permute"):
        sample.puzzle().permute(order)


def test_fragments_refuse() -> None:
    with pytest.raises(InputError, match="2 ids for 1 fragments"):
        Fragments(("f07", "f03"), (pixels(),))
    with pytest.raises(InputError, match="'f07' stands twice"):
        Fragments(("f07", "f07"), (pixels(), pixels()))
    for wrong in (pixels()[..., :3], pixels().astype(np.float32), pixels(0, 3), pixels()[0]):
        with pytest.raises(InputError, match="'f03' must be"):
            Fragments(("f07", "f03"), (pixels(), wrong))


def test_fragments_are_read_only_and_found_by_id() -> None:
    fragments = sample.puzzle().fragments
    np.testing.assert_array_equal(fragments["f19"], sample.stored("f19"))
    with pytest.raises(KeyError, match="f01"):
        fragments["f01"]
    with pytest.raises(ValueError, match="read-only"):
        fragments["f19"][0, 0, 0] = 1


def test_a_puzzle_holds_neither_grid_nor_truth() -> None:
    assert set(vars(sample.puzzle())) == {"fragments", "cell", "container", "name"}


# --- placement, solution, truth


def test_placed_refuses() -> None:
    with pytest.raises(FormatError, match="an unplaced fragment has neither"):
        Placed(None, (1, 0))
    for turns in (4, -1):
        with pytest.raises(OptionError, match="0, 1, 2 or 3"):
            Placed.at(0, 0, turns)
    for confidence in (1.5, -0.1, float("nan")):
        with pytest.raises(OptionError, match="'confidence'"):
            Placed.at(0, 0, 0, confidence)


def test_placed_pose() -> None:
    assert Placed.at(1, 2, 3).pose == Pose.of_turns(3, (2.0, 1.0))
    assert Placed.nowhere().pose is None
    assert Placed.nowhere().cell is None


@pytest.mark.parametrize("kind", [Truth, lambda grid, placement: Solution("ok", "", grid, placement)])
def test_two_fragments_never_share_a_cell_or_leave_the_grid(kind: object) -> None:
    assert callable(kind)
    with pytest.raises(FormatError, match="'f07' and 'f03' are both at cell \\(1, 2\\)"):
        kind(Grid(2, 3), {"f07": Placed.at(1, 2, 0), "f03": Placed.at(1, 2, 1)})
    with pytest.raises(FormatError, match="'f07' is at cell \\(2, 1\\), outside the 2x3 grid"):
        kind(Grid(2, 3), {"f07": Placed.at(2, 1, 0)})


def test_truth_places_everything() -> None:
    assert sample.truth().grid == Grid(2, 3)
    with pytest.raises(FormatError, match="no pose for fragment 'f03'"):
        Truth(Grid(2, 3), {"f07": Placed.at(1, 2, 0), "f03": Placed.nowhere()})


def test_solution_is_falsy_when_it_failed() -> None:
    failed = Solution.failure(sample.puzzle(), "greedy", "No two fragments touch.")
    assert not failed
    assert (failed.status, failed.reason, failed.grid) == ("failed", "No two fragments touch.", None)
    assert set(failed.placement) == set(sample.PLACEMENT)
    assert failed.turned(1).placement == failed.placement
    assert not failed.turned(1)
    assert Solution("partial", "One is left over.", Grid(1, 2), {"f07": Placed.at(0, 1, 1), "f03": Placed.nowhere()})


def test_solution_refuses() -> None:
    with pytest.raises(OptionError, match="'status' of a solution"):
        Solution("done", "", None, {})  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="names no grid"):
        Solution("ok", "", None, {"f07": Placed.at(0, 0, 0)})
    with pytest.raises(FormatError, match="holds no pixels"):
        Solution("ok", "", Grid(2, 3), sample.PLACEMENT).assemble()


@pytest.mark.parametrize("g", TURNS)
def test_turned_solution_is_the_turned_picture(g: int) -> None:
    gauge = Gauge.of_turns(3, (0.4, 0.3, 0.2, 0.1))
    solution = Solution("ok", "", Grid(2, 3), sample.PLACEMENT, gauge, "tree", 1.5, -2.0, puzzle=sample.puzzle())
    turned = solution.turned(g)
    assert turned.grid == (Grid(3, 2) if g % 2 else Grid(2, 3))
    np.testing.assert_array_equal(sample.paste(dict(turned.placement), turned.grid), np.rot90(sample.picture(), g))
    # If a further turn h makes the old frame upright, h - g makes the new one upright.
    assert turned.gauge.probabilities == tuple((0.4, 0.3, 0.2, 0.1)[(h + g) % 4] for h in TURNS)
    assert turned.gauge.turns == (3 + g) % 4
    assert (turned.solver, turned.seconds, turned.energy, turned.puzzle) == ("tree", 1.5, -2.0, solution.puzzle)
    assert turned.turned(-g) == solution


def test_unplaced_fragments_stay_unplaced_when_the_whole_turns() -> None:
    solution = Solution("partial", "", Grid(1, 2), {"f07": Placed.at(0, 1, 1), "f03": Placed.nowhere()})
    turned = solution.turned(1)
    assert turned.grid == Grid(2, 1)
    assert dict(turned.placement) == {"f07": Placed.at(0, 0, 2), "f03": Placed.nowhere()}


def test_gauge_is_determined_when_the_reported_frame_is_preferred() -> None:
    assert not Gauge().determined
    assert Gauge().confidence == 0.25
    assert Gauge.of_turns(1, (0.7, 0.1, 0.1, 0.1)).determined
    assert Gauge.of_turns(1, (0.7, 0.1, 0.1, 0.1)).confidence == 0.7
    assert not Gauge.of_turns(1, (0.4, 0.4, 0.1, 0.1)).determined
    assert not Gauge.of_turns(1, (0.1, 0.7, 0.1, 0.1)).determined


# --- sides and pictures


def test_sides_that_touch() -> None:
    for i_bearing, turns_i, turns_j in itertools.product(TURNS, repeat=3):
        canvas = z4.turn_bearing(i_bearing, turns_i)
        opposite = side_at(5, turns_j, canvas + 2)
        assert opposite == side(5, touching_side(i_bearing, z4.between(turns_i, turns_j)))
    assert side_at(3, 1, z4.N) == 12  # turned once, its own E faces north


def test_side_scores_dense_and_sparse_agree() -> None:
    dense = np.full((8, 8), -2.0, dtype=np.float32)
    dense[:4, :4] = dense[4:, 4:] = 0
    dense[1, 6] = dense[6, 1] = 3.5
    sparse = SideScores(
        2,
        indptr=np.array([0, 0, 1, 1, 1, 1, 1, 2, 2]),
        indices=np.array([6, 1], dtype=np.int32),
        values=np.array([3.5, 3.5], dtype=np.float32),
        floor=-2.0,
    )
    np.testing.assert_array_equal(sparse.to_dense(), dense)
    np.testing.assert_array_equal(SideScores(2, dense=dense).to_dense(), dense)
    with pytest.raises(ValueError, match="either"):
        SideScores(2)
    with pytest.raises(ValueError, match="dense must be"):
        SideScores(3, dense=dense)


def test_bundled_pictures_have_their_origin_stated() -> None:
    assert len(data.names()) >= 3
    origin = (data.picture("coffee").parent / "ORIGIN.md").read_text(encoding="utf-8")
    for name in data.names():
        assert data.picture(name).stat().st_size > 10_000
        assert f"| {name}.jpg |" in origin
    with pytest.raises(OptionError, match="one of astronaut, "):
        data.picture("mona-lisa")


def test_puzzles_of_mixed_sizes_have_no_container() -> None:
    puzzle = Puzzle(Fragments(("f07", "f03"), (pixels(2, 3), pixels(5, 1))))
    assert (puzzle.cell, puzzle.container, len(puzzle)) == (None, None, 2)


# ---------------------------------------------------------------------------------------------- arrangements


def test_an_arrangement_says_who_stands_where() -> None:
    found = Arrangement(Grid(2, 3), np.array([4, -1, 0], np.int32), np.array([3, 0, 1], np.int32))
    assert (found.n, found.slots.dtype, found.turns.dtype) == (3, np.int64, np.int64)
    assert found.cells.tolist() == [[1, 1], [-1, -1], [0, 0]]
    assert found.fragments.tolist() == [[2, -1, -1], [-1, 0, -1]]
    every = found.among(5, np.array([1, 2, 4]))
    assert (every.slots.tolist(), every.turns.tolist()) == ([-1, 4, -1, -1, 0], [0, 3, 0, 0, 1])
    assert every.select(np.array([4, 1])).slots.tolist() == [0, 4]
    with pytest.raises(OptionError, match=r"'slots and turns' of an arrangement must be two arrays of one length"):
        Arrangement(Grid(2, 3), np.zeros(3), np.zeros(2))
    with pytest.raises(OptionError, match="no grid"):
        _ = Arrangement(FREE, np.full(2, -1), np.zeros(2)).cells


def test_an_arrangement_of_a_placement_is_in_the_order_of_its_ids() -> None:
    found = Arrangement.from_placement(sample.PLACEMENT, ("f07", "f99", "f02"), sample.GRID)
    assert found.slots[0] == sample.GRID.slot(1, 2)
    assert (found.turns[0], found.slots[1]) == (3, -1)
    assert found.slots[2] == sample.GRID.slot(*sample.PLACEMENT["f02"].cell)


def test_nowhere_is_no_component() -> None:
    assert Poses.nowhere(2).component.tolist() == [-1, -1]
    assert Poses.nowhere(2).xy.shape == (2, 2)
