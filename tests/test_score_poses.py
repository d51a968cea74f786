"""Scores by poses: cases worked out by hand, and a slow second search for the best motion."""

from __future__ import annotations

import cmath
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sample
from hypothesis import given, settings
from hypothesis import strategies as st
from torn import torn

from jigsync import cli
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.solution_file import save_solution
from jigsync.io.truth_file import save_truth
from jigsync.score.align import aligned
from jigsync.score.cells import score
from jigsync.score.contacts import contacts_of_cells, contacts_of_poses
from jigsync.score.motion import EPSILON, TURN, Pairs, best_motion
from jigsync.score.poses import PoseScores, score_placement, score_poses
from jigsync.score.sizes import sizes_of
from jigsync.score.verdicts import verdicts
from jigsync.solution import Solution
from jigsync.values.errors import InputError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth

MOVED = Pose.of_degrees(137.3, (812.5, -64.25))


def at(degrees: float, x: float, y: float, component: int = 0) -> Placed:
    return Placed(Pose.of_degrees(degrees, (x, y)), component=component)


def moved(placement: Placement, motion: Pose = MOVED) -> dict[str, Placed]:
    return {name: placed.moved(motion) for name, placed in placement.items()}


ROW = {"f3": at(17, 0, 0), "f20": at(-101, 100, 10), "f7": at(64, 200, 0), "f11": at(179, 300, -5)}
"""Four fragments in a row; all are 100 in size, so centres may be off by 10."""
SIZES = dict.fromkeys([*ROW, "x1", "x2"], 100.0)
TOUCH = frozenset({("f20", "f3"), ("f20", "f7"), ("f11", "f7")})


def scored(answer: Placement, claimed: frozenset[tuple[str, str]] | None = None) -> PoseScores:
    return score_placement(answer, ROW, SIZES, TOUCH, TOUCH if claimed is None else claimed)


# ------------------------------------------------------------------------------------------- by hand


def test_the_truth_moved_is_right_but_not_upright() -> None:
    found = scored(moved(ROW))
    assert set(found.verdicts.values()) == {"right"}
    assert (found.right, found.perfect, found.contacts, found.claimed, found.largest) == (1.0, True, 1.0, 1.0, 1.0)
    assert found.angle_error == pytest.approx(0, abs=1e-9)
    assert found.xy_error == pytest.approx(0, abs=1e-9)
    assert not found.upright
    assert found.motion is not None
    back = found.motion.compose(MOVED)
    assert (back.degrees, *back.xy) == pytest.approx((0, 0, 0), abs=1e-9)


@pytest.mark.parametrize(("degrees", "upright"), [(0, True), (4.9, True), (-4.9, True), (5.1, False), (180, False)])
def test_upright_is_within_five_degrees(degrees: float, upright: bool) -> None:
    assert scored(moved(ROW, Pose.of_degrees(degrees, (30, 40)))).upright == upright


def test_turned_in_its_place_and_in_the_wrong_place() -> None:
    answer = moved({**ROW, "f7": at(64 + 20, 203, 0), "f11": at(179, 300, 80)})
    found = scored(answer)
    assert found.verdicts == {"f3": "right", "f20": "right", "f7": "turn", "f11": "slot"}
    assert (found.right, found.perfect, found.joined) == (0.5, False, 2)
    # Of the contacts only f3 with f20 is right: f7 is turned, f11 shifted.
    assert (found.right_contacts, found.true_contacts) == (1, 3)
    assert (found.true_claims, found.claims) == (1, 3)


def test_the_median_errors_are_those_of_all_that_is_placed() -> None:
    """The angles are off by 0, 0, 0 and 20 degrees, then by 0, 0, 20 and 20; one centre is off in both."""
    found = scored({**ROW, "f7": at(64 + 20, 200, 0), "f11": at(179, 300, 35)})
    assert found.angle_error == pytest.approx(0, abs=1e-6)
    found = scored({"f3": ROW["f3"], "f20": ROW["f20"], "f7": at(84, 200, 0), "f11": at(199, 300, 35)})
    assert found.angle_error == pytest.approx(10)
    assert found.xy_error == pytest.approx(0, abs=1e-6)


def test_unplaced_and_missing_are_wrong() -> None:
    found = scored({"f3": ROW["f3"], "f20": ROW["f20"], "f7": Placed.nowhere()})
    assert found.verdicts == {"f3": "right", "f20": "right", "f7": "unplaced", "f11": "unplaced"}
    assert (found.placed, found.right, found.contacts) == (2, 0.5, 1 / 3)
    assert found.joined == 2


def test_nothing_placed() -> None:
    found = scored({name: Placed.nowhere() for name in ROW}, frozenset())
    assert (found.right, found.placed, found.joined, found.contacts, found.claimed) == (0.0, 0, 0, 0.0, None)
    assert (found.motion, found.angle_error, found.xy_error, found.upright) == (None, None, None, False)


def test_only_one_component_can_be_meant() -> None:
    """Two pairs, each right in itself; where they lie towards each other is not claimed, right or wrong."""
    apart = {**ROW, "f7": at(64, 200, 0, 1), "f11": at(179, 300, -5, 1)}
    found = scored(apart, frozenset({("f20", "f3"), ("f11", "f7")}))
    assert sorted(found.verdicts.values()) == ["right", "right", "slot", "slot"]
    assert (found.right_contacts, found.claimed, found.joined) == (2, 1.0, 2)
    # The larger one is meant, wherever it lies and however it is numbered.
    three = {name: replace(placed, component=0 if name == "f3" else 5) for name, placed in moved(ROW).items()}
    found = scored(three, frozenset())
    assert (found.component, found.right, found.joined) == (5, 0.75, 3)
    assert found.verdicts["f3"] == "slot"


def test_foreign_fragments_are_listed_apart() -> None:
    claims = TOUCH | {("f11", "x1"), ("x1", "x2")}
    found = scored({**ROW, "x1": at(3, 400, 0), "x2": at(0, 500, 0), "x9": Placed.nowhere()}, claims)
    assert found.foreign == ("x1", "x2")
    assert (found.right, found.perfect, found.contacts) == (1.0, True, 1.0)
    # What they claim about the picture is false; what they claim about each other nobody can tell.
    assert (found.true_claims, found.claims) == (3, 4)


def test_another_puzzle_is_refused() -> None:
    with pytest.raises(InputError, match=r"'x1'.* must be of the same puzzle"):
        scored({"x1": at(0, 0, 0), "f3": Placed.nowhere()})
    with pytest.raises(InputError, match="names no fragment"):
        score_placement({}, {}, {}, None, None)


def test_drift_breaks_fragments_before_contacts() -> None:
    """Each neighbour is 8 px farther than it should be: every contact is right, and at most three of six fragments."""
    truth = {f"f{k}": at(11 * k, 100 * k, 0) for k in range(6)}
    answer = {f"f{k}": at(11 * k, 108 * k, 0) for k in range(6)}
    contacts = frozenset((f"f{k}", f"f{k + 1}") for k in range(5))
    found = score_placement(answer, truth, dict.fromkeys(truth, 100.0), contacts, contacts)
    assert (found.contacts, found.claimed, found.joined, found.right) == (1.0, 1.0, 6, 0.5)


def test_relative_poses_are_judged_alike_from_both_sides() -> None:
    """A relative angle of 4 degrees would swing a far neighbour by 7 px seen from one side and 0 from the other."""
    truth = {"a": at(0, 0, 0), "b": at(0, 100, 0)}
    for first, second in ((0, 4), (4, 0), (2, -2)):
        answer = {"a": at(first, 0, 0), "b": at(second, 100, 8)}
        mirrored = {"a": at(second, 100, 8), "b": at(first, 0, 0)}
        back = {"a": at(0, 100, 0), "b": at(0, 0, 0)}
        both = frozenset({("a", "b")})
        sizes = dict.fromkeys(truth, 100.0)
        one = score_placement(answer, truth, sizes, both, both)
        other = score_placement(mirrored, back, sizes, both, both)
        assert one.right_contacts == other.right_contacts
    sizes = {"a": 160.0, "b": 60.0}  # the mean of the two sizes counts: 11 px
    for off, right in ((10.9, 1), (11.1, 0)):
        found = score_placement({"a": at(0, 0, 0), "b": at(0, 100 + off, 0)}, truth, sizes, both, both)
        assert found.right_contacts == right


def test_one_fragment_of_several_does_not_tell_what_is_up() -> None:
    lone = {**dict.fromkeys(ROW, Placed.nowhere()), "f3": ROW["f3"]}
    found = scored(lone)
    assert (found.count("right"), found.told, found.upright) == (1, False, False)
    single = score_placement({"f3": ROW["f3"]}, {"f3": ROW["f3"]}, SIZES, frozenset(), frozenset())
    assert (single.perfect, single.upright, single.contacts) == (True, True, None)


def test_of_equals_the_upright_motion_is_taken() -> None:
    """Two pairs, one turned by 90 degrees against the other: both motions make two fragments right."""
    turned = moved({"f7": ROW["f7"], "f11": ROW["f11"]}, Pose.of_degrees(90, (0, 400)))
    for answer in ({**ROW, **turned}, moved({**ROW, **turned}, Pose.of_degrees(-90, (0, 0)))):
        found = scored(answer)
        assert found.count("right") == 2
        assert found.upright


# ------------------------------------------------------------------------------------------- the best motion


def pairs_of(n: int, seed: int, turn: float, shift: float) -> Pairs:
    """Fragments of different sizes whose errors are about as large as the tolerances."""
    rng = np.random.default_rng(seed)
    home = rng.uniform(-150, 150, (n, 2))
    reach = rng.uniform(4, 14, n)
    answer = moved({str(k): at(0, *home[k]) for k in range(n)})
    xy = np.array([placed.pose.xy for placed in answer.values() if placed.pose]) + rng.normal(0, shift, (n, 2))
    angle = MOVED.angle + rng.normal(0, turn, n)
    angle[rng.random(n) < 0.15] += 2.0
    return Pairs((-angle + math.pi) % (2 * math.pi) - math.pi, xy, home, reach)


def most_right(pairs: Pairs, share: float) -> int:
    """Brute force: every angle in steps of a twentieth of a degree, and for each the deepest point of all discs.

    At a given angle a fragment is right where the shift lies in a disc; the deepest point is a disc's centre or where
    two circles cross. In complex numbers, y up.
    """
    n = len(pairs)
    p, q = (points[:, 0] - 1j * points[:, 1] for points in (pairs.xy, pairs.home))
    best = 0
    for start in pairs.turn:
        for phi in start + np.radians(np.arange(-5, 5.01, 0.05)):
            turned = [abs(cmath.phase(cmath.exp(1j * (phi - turn)))) <= share * TURN for turn in pairs.turn]
            k = np.flatnonzero(turned)
            if len(k) <= best:
                continue
            centre, radius = (q - p * cmath.exp(1j * phi))[k], share * pairs.reach[k]
            points = list(centre)
            for i, j in itertools.combinations(range(len(k)), 2):
                gap = centre[j] - centre[i]
                d = abs(gap)
                if 0 < d <= radius[i] + radius[j] and d >= abs(radius[i] - radius[j]):
                    along = (d * d + radius[i] ** 2 - radius[j] ** 2) / (2 * d)
                    up = math.sqrt(max(0.0, radius[i] ** 2 - along**2))
                    points += [centre[i] + gap / d * complex(along, side * up) for side in (-1, 1)]
            depth = (np.abs(np.array(points)[:, None] - centre) <= radius + 1e-9).sum(axis=1)
            best = max(best, int(depth.max()))
    return min(best, n)


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0, 0.12), st.floats(0, 12))
def test_brute_force_never_finds_a_better_motion(n: int, seed: int, turn: float, shift: float) -> None:
    pairs = pairs_of(n, seed, turn, shift)
    motion = best_motion(pairs)
    assert motion is not None
    assert int(pairs.right(motion).sum()) >= most_right(pairs, 1 - EPSILON)


def test_better_motions_are_found_than_those_of_single_fragments() -> None:
    """Four fragments off by 9 of 10 px each, outwards: moving nothing makes all right, making one exact only that."""
    home = np.array([[0.0, 0], [100, 0], [0, 100], [100, 100]])
    out = 9 * np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]]) / math.sqrt(2)
    pairs = Pairs(np.zeros(4), home + out, home, np.full(4, 10.0))
    motion = best_motion(pairs)
    assert motion is not None
    assert pairs.right(motion).all()
    assert int(sum(np.hypot(*(out - out[0]).T) <= 10)) == 1


def test_best_motion_of_nothing() -> None:
    assert best_motion(Pairs(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0))) is None


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(-180, 180), st.integers(0, 3))
def test_scores_do_not_depend_on_the_frame_of_the_answer(seed: int, degrees: float, gone: int) -> None:
    """Right or plainly wrong fragments, components, unplaced and foreign ones; any motion of the whole."""
    rng = np.random.default_rng(seed)
    truth = {f"f{7 * k}": at(rng.uniform(-180, 180), *rng.uniform(0, 600, 2)) for k in range(8)}
    answer: dict[str, Placed] = {}
    for k, (name, placed) in enumerate(truth.items()):
        pose = placed.pose
        assert pose is not None
        if k >= 5:
            pose = Pose(pose.angle + rng.uniform(0.3, 2), (pose.xy[0] + 70 * k, pose.xy[1]))
        answer[name] = Placed.nowhere() if k < gone else Placed(pose, component=int(k > 6))
    answer["x1"] = at(0, 50, 50)
    contacts = frozenset(itertools.pairwise(sorted(truth)))
    sizes = dict.fromkeys([*truth, "x1"], 100.0)
    still = score_placement(answer, truth, sizes, contacts, contacts)
    turned = score_placement(moved(answer, Pose.of_degrees(degrees, (-40, 3))), truth, sizes, contacts, contacts)
    assert still.right == (5 - gone) / 8
    assert still.upright
    for name in ("verdicts", "foreign", "right_contacts", "true_claims", "joined", "component"):
        assert getattr(still, name) == getattr(turned, name)
    assert turned.upright == (abs(degrees) <= 5)


# ------------------------------------------------------------------------------------------- contacts and sizes


def squares(*sides: int) -> Puzzle:
    """Opaque squares with a transparent margin that is not the same on all sides."""
    pixels = tuple(np.pad(np.full((side, side, 4), 255, np.uint8), ((3, 9), (5, 1), (0, 0))) for side in sides)
    return Puzzle(Fragments(tuple(f"f{5 * k}" for k in range(len(sides))), pixels))


def lying(puzzle: Puzzle, *boxes: tuple[float, float, float], components: tuple[int, ...] = ()) -> dict[str, Placed]:
    """Squares whose opaque middle stands at (x, y), turned by degrees."""
    out = {}
    for k, (name, (x, y, degrees)) in enumerate(zip(puzzle.ids, boxes, strict=True)):
        turn = Pose.of_degrees(degrees, (0, 0))
        off = turn.act(np.array([5.0 - 1, 3.0 - 9]) / 2)  # from the picture's centre to the square's
        out[name] = at(degrees, x - off[0], y - off[1], components[k] if components else 0)
    return out


def test_sizes_are_roots_of_areas() -> None:
    puzzle = squares(40, 60)
    assert sizes_of(puzzle) == pytest.approx({"f0": 40, "f5": 60})
    half = np.full((10, 10, 4), 51, np.uint8)
    assert sizes_of(Puzzle(Fragments(("a", "b"), (half, 0 * half)))) == pytest.approx({"a": math.sqrt(20), "b": 1})


@pytest.mark.parametrize("degrees", [0.0, 33.0, 90.0])
def test_contacts_are_sides_that_come_near(degrees: float) -> None:
    """Squares of 60: side by side with a gap of 4 px, of 5, of 9; corners; half a side; overlapping."""
    puzzle = squares(60, 60, 60, 60)
    cases = {
        (64.0, 0.0): True,
        (0.0, 65.0): True,
        (69.0, 0.0): False,
        (61.0, 61.0): False,
        (61.0, 54.0): False,
        (61.0, 30.0): True,
        (40.0, 20.0): True,
    }
    for (x, y), touch in cases.items():
        boxes = [(0.0, 0.0, 0.0), (x, y, 0.0), (500.0, 500.0, 0.0), (-500.0, 0.0, 0.0)]
        placement = moved(lying(puzzle, *boxes), Pose.of_degrees(degrees, (7, 9)))
        assert contacts_of_poses(puzzle, placement, sizes_of(puzzle)) == ({("f0", "f5")} if touch else set())
    apart = moved(lying(puzzle, (0, 0, 0), (61, 0, 0), (122, 0, 0), (0, 75, 45), components=(0, 0, 1, 0)))
    # f10 is of another component; f15 touches f0 with a corner only.
    assert contacts_of_poses(puzzle, apart, sizes_of(puzzle)) == {("f0", "f5")}
    apart["f5"] = Placed.nowhere()
    assert contacts_of_poses(puzzle, apart, sizes_of(puzzle)) == set()


def test_contacts_of_cells_are_neighbours() -> None:
    """2 x 3 with a hole: a b . / c . d, d of another component than b."""
    placement = {"a": Placed.at(0, 0, 1), "b": Placed.at(0, 1, 0), "c": Placed.at(1, 0, 3), "d": Placed.at(1, 2, 2)}
    assert contacts_of_cells(placement) == {("a", "b"), ("a", "c")}
    apart = {**placement, "b": replace(placement["b"], component=1)}
    assert contacts_of_cells(apart) == {("a", "c")}


def test_contacts_of_torn_pieces_are_those_that_share_a_border() -> None:
    """Against the labels of the picture: pieces with a long common border touch, those without any do not."""
    pieces = torn(np.full((200, 300, 3), 90, np.uint8), 11, seed=4)
    sizes = sizes_of(pieces.puzzle)
    found = contacts_of_poses(pieces.puzzle, pieces.truth.placement, sizes)
    names = list(pieces.truth.placement)
    shared: dict[tuple[str, str], int] = {}
    for one, other in ((pieces.labels[1:], pieces.labels[:-1]), (pieces.labels[:, 1:], pieces.labels[:, :-1])):
        for a, b in zip(one[one != other], other[one != other], strict=True):
            pair = tuple(sorted((names[a], names[b])))
            shared[pair[0], pair[1]] = shared.get((pair[0], pair[1]), 0) + 1
    long = {pair for pair, count in shared.items() if count > 0.5 * (sizes[pair[0]] + sizes[pair[1]]) / 2}
    assert long <= found <= shared.keys()
    assert len(long) >= 12
    anywhere = moved(pieces.truth.placement)
    assert contacts_of_poses(pieces.puzzle, anywhere, sizes) == found


# ------------------------------------------------------------------------------------------- whole solutions


def solution(placement: Placement, **more: object) -> Solution:
    return replace(Solution("ok", "", FREE, placement, solver="by hand"), **more)


def test_a_torn_picture_is_scored_from_its_pixels() -> None:
    pieces = torn(np.full((200, 300, 3), 90, np.uint8), 9, seed=2)
    found = score_poses(solution(moved(pieces.truth.placement)), pieces.truth, pieces.puzzle)
    assert (found.right, found.contacts, found.claimed, found.largest) == (1.0, 1.0, 1.0, 1.0)
    assert found.true_contacts == found.claims
    # A list that came with the truth is taken as it is.
    two = frozenset({tuple(sorted(pieces.puzzle.ids[:2]))})
    assert score_poses(solution(moved(pieces.truth.placement)), replace(pieces.truth, contacts=two), pieces.puzzle)
    given = score_poses(solution(pieces.truth.placement), replace(pieces.truth, contacts=two), pieces.puzzle)
    assert given.true_contacts == 1


def test_without_pixels_or_a_grid_nothing_tells_the_sizes() -> None:
    with pytest.raises(InputError, match="pass the puzzle"):
        score_poses(solution(ROW), Truth(FREE, ROW))
    nothing = score_poses(solution({name: Placed.nowhere() for name in ROW}), Truth(FREE, ROW))
    assert nothing.right == 0.0
    other = squares(5)
    with pytest.raises(InputError, match="'f3' is placed but is not in the puzzle"):
        score_poses(solution(ROW), Truth(FREE, ROW), other)


@pytest.mark.parametrize("known", ["cells", "pixels", "both"])
@pytest.mark.parametrize("with_puzzle", [False, True])
def test_grids_of_old_and_new_files_are_compared_in_one_unit(known: str, with_puzzle: bool) -> None:
    """The sample's answer turned as a whole and with one fragment in a wrong cell, in every mixture of units."""
    wrong = {**sample.PLACEMENT, "f30": Placed.at(1, 1, 2)}
    pitch = (float(sample.CELL), float(sample.CELL))
    answer = Solution("ok", "", sample.GRID, wrong)
    truth = sample.truth()
    if known in ("cells", "pixels"):
        in_pixels = {name: Placed.at(*p.cell, p.turns, pitch=pitch) for name, p in wrong.items() if p.cell}
        answer = Solution("ok", "", sample.GRID, in_pixels, pitch=pitch)
    if known in ("pixels", "both"):
        home = {name: Placed.at(*p.cell, p.turns, pitch=pitch) for name, p in sample.PLACEMENT.items() if p.cell}
        truth = Truth(sample.GRID, home, pitch=pitch)
    for turns in range(4):
        found = score_poses(answer.turned(turns), truth, sample.puzzle() if with_puzzle else None)
        assert found.verdicts == {**dict.fromkeys(truth.placement, "right"), "f30": "turn"}
        assert (found.true_contacts, found.claims, found.right_contacts) == (7, 7, 4)
        assert found.upright == (turns == 0)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_by_poses_no_grid_scores_less_than_by_cells(seed: int, rows: int, cols: int) -> None:
    """The four turns about the grid's own centre are four of all motions."""
    rng = np.random.default_rng(seed)
    grid = Grid(rows, cols)
    cells = list(grid.cells())
    truth = Truth(grid, {f"f{3 * k}": Placed.at(*cell, int(rng.integers(4))) for k, cell in enumerate(cells)})
    keep = rng.random(len(cells)) < 0.6
    free = [cell for cell, kept in zip(cells, keep, strict=True) if not kept]
    placement = dict(truth.placement)
    rng.shuffle(free)
    for name, kept in zip(truth.placement, keep, strict=True):
        if not kept:
            placement[name] = Placed.at(*free.pop(), int(rng.integers(4)))
    answer = Solution("ok", "", grid, placement).turned(int(rng.integers(4)))
    found = score_poses(answer, truth)
    assert found.right >= score(answer, truth).best4.aa_rot - 1e-9
    assert found.contacts is None or found.contacts >= 0


# ------------------------------------------------------------------------------------------- grids at any angle


def at_any_angle() -> Truth:
    """The sample's cells with fragments at angles that are no quarter turns, cropped: centres beside the cells'."""
    pitch = (50.0, 50.0)
    placement = {}
    for k, (name, placed) in enumerate(sample.PLACEMENT.items()):
        exact = Placed.at(placed.row or 0, placed.col or 0, 0, pitch=pitch).pose
        assert exact is not None
        xy = exact.xy[0] + 3 * k - 7, exact.xy[1] - 2 * k
        placement[name] = Placed(Pose.of_degrees(31.0 + 53 * k, xy), placed.cell)
    return Truth(sample.GRID, placement, pitch=pitch)


def test_cells_are_scored_whatever_the_angle() -> None:
    truth = at_any_angle()
    answer = Solution("ok", "", truth.layout, truth.placement, pitch=truth.pitch)
    for turns in range(4):
        found = score(answer.turned(turns), truth)
        assert found.best_turns == -turns % 4
        assert (found.best4.aa, found.best4.rotation, found.best4.aa_rot, found.best4.sra) == (1.0, 1.0, 1.0, 1.0)
        assert found.model.rotation == (turns == 0)
        assert set(verdicts(answer.turned(found.best_turns).turned(turns), truth).values()) == {"right"}


@pytest.mark.parametrize(("off", "right"), [(4.9, True), (-4.9, True), (5.1, False), (85.1, False), (180, False)])
def test_rotation_is_right_within_five_degrees(off: float, right: bool) -> None:
    truth = at_any_angle()
    first = truth.placement["f07"]
    assert first.pose is not None
    turned = Placed(Pose.of_degrees(first.pose.degrees + off, first.pose.xy), first.cell)
    answer = Solution("ok", "", truth.layout, {**truth.placement, "f07": turned}, pitch=truth.pitch)
    assert score(answer, truth).model.rotation == (1.0 if right else 5 / 6)
    assert score(answer, truth).model.aa == 1.0
    assert verdicts(answer, truth)["f07"] == ("right" if right else "turn")
    # 85.1 degrees are a quarter turn but for 4.9: right at one of the four global turns, where all others are wrong.
    assert score(answer.turned(3), truth).model.rotation == (1 / 6 if off == 85.1 else 0.0)


def test_a_free_answer_to_a_grid_is_judged_by_poses() -> None:
    truth = at_any_angle()
    placement = {name: replace(placed, cell=None) for name, placed in truth.placement.items()}
    puzzle = Puzzle(Fragments(tuple(placement), tuple(np.full((50, 50, 4), 255, np.uint8) for _ in placement)))
    free = solution(moved({**placement, "f02": at(0, 900, 900)}))
    assert verdicts(free, truth, puzzle) == {**dict.fromkeys(placement, "right"), "f02": "slot"}
    found = score_poses(free, truth, puzzle)
    assert found.true_contacts == 7
    assert (found.right, found.right_contacts) == (5 / 6, 5)


# ------------------------------------------------------------------------------------------- aligning


def test_aligned_answers_stand_upright() -> None:
    pieces = torn(np.full((200, 300, 3), 90, np.uint8), 7, seed=1)
    turned = solution(moved(pieces.truth.placement))
    found = aligned(turned, pieces.truth, pieces.puzzle)
    assert found.degrees == pytest.approx(360 - 137.3)
    assert found.facts() == {"turned_by": None, "turned_degrees": found.degrees}
    assert score_poses(found.solution, pieces.truth, pieces.puzzle).upright
    quarter = solution(moved(pieces.truth.placement, Pose.of_turns(1, (4.5, 6))))
    assert aligned(quarter, pieces.truth, pieces.puzzle).facts() == {"turned_by": 3, "turned_degrees": 270.0}
    assert aligned(solution(pieces.truth.placement), pieces.truth, pieces.puzzle).degrees == 0.0
    in_grid = Solution("ok", "", sample.GRID, sample.PLACEMENT).turned(3)
    assert aligned(in_grid, sample.truth()).facts() == {"turned_by": 1, "turned_degrees": 90.0}
    assert aligned(in_grid, sample.truth()).solution.placement == sample.PLACEMENT


# ------------------------------------------------------------------------------------------- the command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torn puzzle with its truth, an answer turned as a whole, a flawed one, and the truth alone elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    pieces = torn(np.full((200, 300, 3), 90, np.uint8), 9, seed=2)
    save_puzzle("torn/puzzle", pieces.puzzle)
    save_truth("torn/truth.json", pieces.truth)
    save_truth("alone.json", pieces.truth)
    right = solution(moved(pieces.truth.placement), gauge=Gauge((0.0,), (1.0,), None))
    save_solution("turned.json", right)
    save_solution("right.json", replace(right, placement=pieces.truth.placement))
    first, second, *_ = pieces.puzzle.ids
    flawed = {**right.placement, first: Placed.nowhere(), second: at(3, -4000, 0), "x5": at(0, 9000, 0)}
    save_solution("flawed.json", replace(right, placement=flawed))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = cli.main(args)
    return code, *capsys.readouterr()


@pytest.mark.usefixtures("here")
def test_score_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "score", "right.json", "torn/truth.json")
    assert (code, err) == (0, "")
    assert "Upright: yes." in out
    assert "Solved: all 9 fragments are right." in out
    assert "AA+rot" not in out
    code, out, _ = run(capsys, "score", "turned.json", "torn/truth.json")
    assert code == 0
    assert "Upright: no, the global turn is wrong by 137 degrees." in out
    assert "Solved: all 9 fragments are right. But the global turn is wrong by 137 degrees." in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["right"][:2] == rows["contacts"][:2] == rows["claims"][:2] == ["100.0", "%"]
    assert rows["largest"][:3] == ["9", "of", "9"]
    _, out, _ = run(capsys, "score", "flawed.json", "torn/truth.json")
    assert "7 of 9 fragments are right. Not placed: 1. But the global turn is wrong" in out
    assert "Placed though foreign: x5." in out


@pytest.mark.usefixtures("here")
def test_score_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    scores = json.loads(run(capsys, "score", "flawed.json", "alone.json", "--puzzle", "torn/puzzle", "--json")[1])
    assert (scores["status"], scores["solver"], scores["fragments"], scores["placed"]) == ("ok", "by hand", 9, 8)
    assert "model" not in scores
    poses = scores["poses"]
    assert (poses["right"], poses["perfect"], poses["upright"], poses["foreign"]) == (7 / 9, False, False, ["x5"])
    assert poses["motion"]["angle"] == pytest.approx(-137.3)
    assert poses["claims"] == 1.0
    assert poses["contacts"] < 1.0


@pytest.mark.usefixtures("here")
def test_score_says_what_to_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "score", "right.json", "alone.json")
    assert (code, out) == (2, "")
    assert "pass the puzzle" in err
    assert "--puzzle" in err
    assert err.count("\n") == 1
