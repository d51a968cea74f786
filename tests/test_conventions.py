"""One test for each line of docs/conventions.md, with literals that no symmetry can satisfy."""

from __future__ import annotations

import ast
import itertools
import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import sample
from PIL import Image

import jigsync
from jigsync import data
from jigsync.api import tear_with_truth
from jigsync.cutting.erosion import inward_normals
from jigsync.cutting.fracture import tessellate
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, severity
from jigsync.studies.planted_poses import Damage, Exists, plant_poses
from jigsync.sync.graph import Graph
from jigsync.sync.rotation import synchronize_angles, synchronize_turns
from jigsync.values import angles, z4
from jigsync.values.layout import Grid
from jigsync.values.placement import turn_placement
from jigsync.values.pose import Pose
from jigsync.values.vocabulary import TURN_I, TURN_J, UNIT, sector_of

PACKAGE = Path(jigsync.__file__).parent
TURNS = range(4)
BEARINGS = range(4)


def neighbours(bearing: int, turns_i: int, turns_j: int) -> tuple[Pose, Pose]:
    """canvas_from_i and canvas_from_j with j one step along the *canvas* bearing from i."""
    d_row, d_col = z4.bearing_offset(bearing)
    return Pose.of_cell(4, 7, turns_i), Pose.of_cell(4 + d_row, 7 + d_col, turns_j)


def measured(canvas_from_i: Pose, canvas_from_j: Pose) -> tuple[int, int]:
    """(bearing in i's frame, relative turns), read off the poses."""
    i_from_j = canvas_from_i.between(canvas_from_j)
    x, y = i_from_j.xy
    return z4.bearing_of_offset(round(y), round(x)), i_from_j.turns


def test_convention_1_indices_are_row_col_and_vectors_are_x_y() -> None:
    grid = Grid.parse("4x6")
    assert (grid.rows, grid.cols) == (4, 6)
    assert grid.slot(1, 2) == 8
    assert grid.cell(8) == (1, 2)
    assert Pose.of_cell(1, 2, 0).xy == (2.0, 1.0)
    np.testing.assert_array_equal(z4.bearing_xy(z4.S), [0, 1])  # y grows downwards
    assert z4.bearing_offset(z4.S) == (1, 0)


@pytest.mark.parametrize("turns", TURNS)
def test_convention_1_origin_is_the_centre_of_the_container(turns: int) -> None:
    container = np.zeros((7, 7), dtype=np.uint8)
    container[2, 6] = 1  # (x, y) = (3, -1) from the centre
    row, col = np.argwhere(np.rot90(container, turns))[0]
    assert (col - 3, row - 3) == {0: (3, -1), 1: (-1, -3), 2: (-3, 1), 3: (1, 3)}[turns]
    np.testing.assert_array_equal(Pose.of_cell(1, 2, turns).act(np.array([0.0, 0.0])), [2.0, 1.0])


def test_convention_2_one_turn_is_counter_clockwise() -> None:
    pixels = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)
    once = [[3, 6], [2, 5], [1, 4]]
    np.testing.assert_array_equal(z4.turn_pixels(pixels, 1), once)
    np.testing.assert_array_equal(np.rot90(pixels, 1), once)
    np.testing.assert_array_equal(np.asarray(Image.fromarray(pixels).rotate(90, expand=True)), once)
    np.testing.assert_array_equal(z4.matrix(1), [[0, 1], [-1, 0]])
    np.testing.assert_array_equal(z4.act(1, np.array([3, 1])), [1, -3])


def test_convention_2_the_textbook_matrix_is_clockwise_when_y_points_down() -> None:
    quarter = np.pi / 2  # SVG and CSS rotate(90), skimage's EuclideanTransform(rotation=pi/2)
    textbook = np.array([[np.cos(quarter), -np.sin(quarter)], [np.sin(quarter), np.cos(quarter)]])
    np.testing.assert_allclose(textbook, z4.matrix(-1), atol=1e-12)
    assert not np.allclose(textbook, z4.matrix(1))


def test_convention_3_turns_of_the_truth_restore() -> None:
    placed = sample.PLACEMENT["f07"]
    assert placed.turns == 3
    applied_turns = z4.inverse(placed.turns)
    assert applied_turns == 1
    np.testing.assert_array_equal(np.rot90(sample.upright(1, 2), applied_turns), sample.stored("f07"))
    np.testing.assert_array_equal(np.rot90(sample.stored("f07"), placed.turns), sample.upright(1, 2))
    assert not np.array_equal(np.rot90(sample.stored("f07"), -placed.turns), sample.upright(1, 2))


def test_convention_3_turns_of_the_generator_restore() -> None:
    rgb = sample.picture().repeat(4, axis=0).repeat(4, axis=1)[..., :3]
    options = CutOptions(sample.GRID, cell=4 * sample.CELL)
    puzzle, truth = cut_picture(rgb, options, seed=5)
    assert {placed.turns for placed in truth.placement.values()} >= {1, 3}
    box = slice(options.margin, options.margin + options.cell)
    for name, placed in truth.placement.items():
        assert placed.row is not None
        assert placed.col is not None
        top, left = placed.row * options.cell, placed.col * options.cell
        upright = np.rot90(puzzle.fragments[name], placed.turns)[box, box, :3]
        np.testing.assert_array_equal(upright, rgb[top : top + options.cell, left : left + options.cell])


def test_convention_3_canvas_from_frag_maps_fragment_points_to_the_canvas() -> None:
    canvas_from_frag = Pose.of_turns(1, (2.0, 5.0))
    np.testing.assert_allclose(canvas_from_frag.act(np.array([0.25, 0.5])), [2.5, 4.75])


def test_convention_4_i_from_j() -> None:
    canvas_from_i, canvas_from_j = Pose.of_turns(1, (2.0, 0.0)), Pose.of_turns(0, (5.0, 1.0))
    i_from_j = canvas_from_i.between(canvas_from_j)
    assert i_from_j == Pose.of_turns(3, (-1.0, 3.0))
    assert canvas_from_i.compose(i_from_j) == canvas_from_j
    assert z4.between(1, 0) == 3


def test_convention_5_bearings() -> None:
    assert (z4.E, z4.N, z4.W, z4.S) == (0, 1, 2, 3)
    np.testing.assert_array_equal([z4.bearing_xy(b) for b in BEARINGS], [(1, 0), (0, -1), (-1, 0), (0, 1)])


@pytest.mark.parametrize(("bearing", "turns"), list(itertools.product(BEARINGS, TURNS)))
def test_convention_5_bearing_in_the_canvas_is_b_plus_k(bearing: int, turns: int) -> None:
    np.testing.assert_array_equal(z4.act(turns, z4.bearing_xy(bearing)), z4.bearing_xy(bearing + turns))
    assert z4.turn_bearing(bearing, turns) == (bearing + turns) % 4


def test_convention_5_a_turn_moves_the_eight_sectors_by_two() -> None:
    assert [int(sector_of(z4.bearing_xy(b))) for b in BEARINGS] == [0, 2, 4, 6]
    assert int(sector_of(np.array([1, -1]))) == 1  # north-east lies between E and N
    for xy in itertools.product(range(-9, 10), repeat=2):
        if xy != (0, 0):
            assert (sector_of(z4.act(1, np.array(xy))) - sector_of(np.array(xy))) % 8 == 2


@pytest.mark.parametrize(("bearing", "turns_i", "turns_j"), list(itertools.product(BEARINGS, TURNS, TURNS)))
def test_convention_6_reversal(bearing: int, turns_i: int, turns_j: int) -> None:
    i, j = neighbours(bearing, turns_i, turns_j)
    b, r = measured(i, j)
    assert measured(j, i) == z4.reverse(b, r) == ((b + 2 - r) % 4, -r % 4)
    assert z4.reverse(*z4.reverse(b, r)) == (b, r)


def test_convention_6_reversal_of_a_literal() -> None:
    assert z4.reverse(z4.E, 1) == (z4.N, 3)


@pytest.mark.parametrize(("bearing", "turns_i", "turns_j", "a"), list(itertools.product(BEARINGS, TURNS, TURNS, TURNS)))
def test_convention_7_storing_a_fragment_turned(bearing: int, turns_i: int, turns_j: int, a: int) -> None:
    i, j = neighbours(bearing, turns_i, turns_j)
    b, r = measured(i, j)
    # np.rot90(stored, a) needs a turns fewer to stand upright.
    turned_i, turned_j = Pose.of_turns(turns_i - a, i.xy), Pose.of_turns(turns_j - a, j.xy)
    assert measured(turned_i, j) == ((b + a) % 4, (r + a) % 4)
    assert measured(i, turned_j) == (b, (r - a) % 4)
    assert TURN_I[a, UNIT[b, r]] == UNIT[(b + a) % 4, (r + a) % 4]
    assert TURN_J[a, UNIT[b, r]] == UNIT[b, (r - a) % 4]


def synchronized(turns: list[int], sign: int) -> np.ndarray:
    """What the product makes of r_ij = sign * (k_j - k_i) on all pairs."""
    i, j = np.triu_indices(len(turns), 1)
    graph = Graph(len(turns), i, j, np.ones(len(i)))
    relative = sign * (np.array(turns)[j] - np.array(turns)[i]) % 4
    return synchronize_turns(graph, relative, graph.components())


def best_share(found: np.ndarray, turns: list[int]) -> float:
    """Share of right turns in the best of the four gauges."""
    return max(float(np.mean((found + g) % 4 == turns)) for g in TURNS)


def test_convention_8_sign_of_the_rotation_matrix() -> None:
    mixed = [0, 1, 3, 2, 1, 0, 3, 0, 2, 3, 2, 0]
    z = z4.phase(np.array(mixed))
    assert z[1] == 1j
    h = z4.phase(-(np.array(mixed)[None, :] - np.array(mixed)[:, None]))
    np.testing.assert_allclose(h @ z, len(mixed) * z)  # z_i = i^(k_i) is the leading eigenvector of i^(-r_ij)
    np.testing.assert_array_equal(h, h.conj().T)
    assert synchronized(mixed, +1).tolist() == mixed


def test_convention_8_half_turns_cannot_see_the_wrong_sign() -> None:
    half_turns = [0, 2, 2, 0, 2, 0, 0, 2, 2]
    mixed = [0, 1, 3, 2, 1, 0, 3, 0, 2, 3, 2, 0]
    assert best_share(synchronized(half_turns, -1), half_turns) == 1.0
    # The wrong sign finds -k, which is k for the 7 of 12 that are even.
    assert best_share(synchronized(mixed, -1), mixed) == pytest.approx(7 / 12)


@pytest.mark.parametrize("g", TURNS)
def test_convention_9_gauge_acts_on_the_left(g: int) -> None:
    placement, grid = turn_placement(sample.PLACEMENT, sample.GRID, g)
    assert grid.shape == ((2, 3) if g % 2 == 0 else (3, 2))
    np.testing.assert_array_equal(sample.paste(placement, grid), np.rot90(sample.picture(), g))
    before, after = sample.PLACEMENT["f02"].pose, placement["f02"].pose
    assert before is not None
    assert after is not None
    shift = after.act(np.zeros(2)) - z4.act(g, np.array(before.xy))
    canvas_from_old_canvas = Pose.of_turns(g, (shift[0], shift[1]))
    for name, placed in sample.PLACEMENT.items():
        assert placed.pose is not None
        assert canvas_from_old_canvas.compose(placed.pose) == placement[name].pose
    pairs = itertools.permutations(sample.PLACEMENT, 2)
    for i, j in pairs:  # no relative measurement sees it
        assert _between(placement, i, j) == _between(sample.PLACEMENT, i, j)


def _between(placement: dict, i: str, j: str) -> Pose:
    return placement[i].pose.between(placement[j].pose)


def test_convention_10_the_sample_has_no_symmetry() -> None:
    turns = {placed.turns for placed in sample.PLACEMENT.values()}
    assert {1, 3} <= turns
    assert sample.GRID.rows != sample.GRID.cols
    square = sample.picture()[:10, :10]
    dihedral = [np.rot90(flip, k).tobytes() for flip in (square, square[:, ::-1]) for k in TURNS]
    assert len(set(dihedral)) == 8
    numbers = [int(name[1:]) for name in sample.PLACEMENT]
    assert all(b - a != 1 for a, b in itertools.pairwise(numbers))
    assert numbers != sorted(numbers)
    assert _component("f02") < set(sample.PLACEMENT)


def _component(name: str) -> set[str]:
    seen: set[str] = set()
    todo = [name]
    while todo:
        at = todo.pop()
        seen.add(at)
        todo += [b for pair in sample.PAIRS if at in pair for b in pair if b not in seen]
    return seen


def test_convention_11_an_angle_is_counter_clockwise() -> None:
    np.testing.assert_allclose(angles.matrix(np.pi / 2), z4.matrix(1), atol=1e-15)
    right, tilt = np.array([1.0, 0.0]), math.radians(33)
    np.testing.assert_allclose(angles.act(tilt, right), [math.cos(tilt), -math.sin(tilt)])  # up, as displayed
    np.testing.assert_allclose(angles.act(tilt, np.array([0.0, 1.0])), [math.sin(tilt), math.cos(tilt)])
    np.testing.assert_allclose(Pose.of_degrees(33, (0, 0)).matrix[:, :2], angles.matrix(tilt))


def test_convention_11_other_libraries() -> None:
    tilt = math.radians(33)
    np.testing.assert_allclose(cv2.getRotationMatrix2D((0, 0), 33, 1)[:, :2], angles.matrix(tilt))
    pixels = np.zeros((61, 61), dtype=np.uint8)
    pixels[26:29, 49:52] = 255  # around (x, y) = (20, -3) from the centre
    rotated = np.asarray(Image.fromarray(pixels).rotate(33, Image.Resampling.BILINEAR), dtype=np.float64)
    row, col = (np.sum(axis * rotated) / rotated.sum() for axis in np.indices(rotated.shape))
    np.testing.assert_allclose([col - 30, row - 30], angles.act(tilt, np.array([20.0, -3.0])), atol=0.2)
    svg = np.array([[math.cos(tilt), -math.sin(tilt)], [math.sin(tilt), math.cos(tilt)]])  # rotate(33)
    np.testing.assert_allclose(svg, angles.matrix(-tilt))


def test_convention_12_quarter_turns_are_known_exactly() -> None:
    quarter, tilted = Pose.of_turns(3, (2.0, 1.0)), Pose.of_degrees(33, (5.0, -1.0))
    assert quarter.compose(quarter).turns == 2
    assert quarter.inverse().turns == 1
    assert quarter.between(Pose.of_degrees(-180, (0, 0))).turns == 3
    assert tilted.compose(quarter).turns is None
    assert tilted.compose(tilted.inverse()).turns is None  # 0 but for rounding: no float is compared
    assert Pose(math.pi / 2, (0, 0)).turns is None
    assert Pose.of_degrees(90, (0, 0)).turns == 1


def test_convention_12_angles_are_wrapped_to_the_half_open_circle() -> None:
    degrees = [-180, -179, 0, 179.5, 180, 181, 359, 540, -541]
    wrapped = [-180, -179, 0, 179.5, -180, -179, -1, -180, 179]
    np.testing.assert_allclose(np.degrees(angles.wrap(np.radians(degrees))), wrapped, atol=1e-9)
    np.testing.assert_allclose([Pose.of_degrees(a, (0, 0)).degrees for a in degrees], wrapped, atol=1e-9)
    assert Pose.of_degrees(270, (0, 0)).degrees == -90


MIXED = [17.0, -133.0, 71.0, 160.0, -48.0, 101.0, -7.0, -161.0]
"""Degrees: no multiple of 15, and minus each of them is another angle."""


def synchronized_angles(degrees: list[float], sign: int) -> np.ndarray:
    """What the product makes of theta_ij = sign * (theta_j - theta_i) on all pairs, the first angle given."""
    theta = np.radians(degrees)
    i, j = np.triu_indices(len(theta), 1)
    graph = Graph(len(theta), i, j, np.ones(len(i)))
    return synchronize_angles(graph, angles.wrap(sign * (theta[j] - theta[i])), graph.components()) + theta[0]


def share_of_angles(found: np.ndarray, degrees: list[float]) -> float:
    """Share of angles within a degree after the global turn that makes most so."""
    off = angles.wrap(np.radians(degrees) - found)
    return max(float(np.mean(np.abs(angles.wrap(off - g)) < math.radians(1))) for g in off)


def test_convention_13_sign_of_the_matrix_of_angles() -> None:
    theta = np.radians(MIXED)
    relative = [[Pose(a, (0, 0)).between(Pose(b, (3, 4))).angle for b in theta] for a in theta]
    h = angles.phase(-np.array(relative))
    z = angles.phase(theta)
    assert z[0] == pytest.approx(math.cos(theta[0]) + 1j * math.sin(theta[0]))
    np.testing.assert_allclose(h @ z, len(theta) * z)  # z_i = exp(i theta_i) is the leading eigenvector
    np.testing.assert_allclose(h, h.conj().T)
    np.testing.assert_allclose(angles.wrap(synchronized_angles(MIXED, +1) - theta), 0, atol=1e-9)


def test_convention_13_half_turns_cannot_see_the_wrong_sign() -> None:
    half_turns = [0.0, 180.0, 180.0, 0.0, 180.0, 0.0, 0.0]
    assert share_of_angles(synchronized_angles(half_turns, -1), half_turns) == 1.0
    assert share_of_angles(synchronized_angles(MIXED, +1), MIXED) == 1.0
    # The wrong sign finds -theta: only one angle at a time, or two that are half a turn apart, can be turned right.
    assert share_of_angles(synchronized_angles(MIXED, -1), MIXED) <= 2 / len(MIXED)


def test_convention_13_quarter_turns_are_the_special_case() -> None:
    mixed = [0, 1, 3, 2, 1, 0, 3, 0, 2, 3, 2, 0]
    np.testing.assert_allclose(z4.phase(np.array(mixed)), angles.phase(np.array(mixed) * np.pi / 2), atol=1e-15)
    found = synchronized_angles([90.0 * k for k in mixed], +1)
    np.testing.assert_array_equal(angles.nearest_turns(found), synchronized(mixed, +1))


def test_convention_14_an_outline_has_the_interior_on_its_right_hand() -> None:
    curves = tessellate(CutOptions(Grid(2, 3), damage=severity("medium")), np.random.default_rng(3))
    outline = curves.outline(1, 1)
    x, y = outline.T
    assert np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) > 0  # clockwise as displayed, y down
    along = np.roll(outline, -1, axis=0) - np.roll(outline, 1, axis=0)
    right_hand = angles.act(-np.pi / 2, along / np.linalg.norm(along, axis=1, keepdims=True))
    np.testing.assert_allclose(right_hand, inward_normals(outline), atol=1e-9)
    contour = outline.astype(np.float32)
    inside = [cv2.pointPolygonTest(contour, tuple(map(float, p)), False) > 0 for p in outline + right_hand]
    assert np.mean(inside) > 0.98


def test_convention_14_a_mates_outline_runs_against_it() -> None:
    curves = tessellate(CutOptions(Grid(2, 3), damage=severity("medium")), np.random.default_rng(3))
    left, right = (curves.outline(1, col).round(6).tolist() for col in (0, 1))
    shared = [point for point in left if point in right]
    assert len(shared) > 20
    forth, against = ([outline.index(point) for point in shared] for outline in (left, right))
    steps = np.diff(forth) % len(left), np.diff(against) % len(right)
    assert np.mean(steps[0] == 1) > 0.9
    assert np.mean(steps[1] == len(right) - 1) > 0.9


def _multiples_of_15(radians: np.ndarray) -> np.ndarray:
    degrees = np.degrees(np.asarray(radians))
    return np.abs((degrees + 7.5) % 15 - 7.5) < 1e-6


def test_convention_15_planted_poses_have_no_symmetry() -> None:
    planted = plant_poses(Exists(24, components=3), Damage(), np.random.default_rng(0))
    assert not _multiples_of_15(planted.angle).any()
    assert not _multiples_of_15(planted.hypotheses.angle).any()
    assert planted.size.max() > 1.8 * planted.size.min()
    numbers = [int(name[1:]) for name in planted.ids]
    assert all(abs(b - a) != 1 for a, b in itertools.pairwise(numbers))
    assert numbers != sorted(numbers)
    assert np.bincount(planted.component).tolist() == [13, 6, 5]
    assert np.any(planted.hypotheses.i > planted.hypotheses.j)
    assert np.any(planted.hypotheses.i < planted.hypotheses.j)


def test_convention_15_torn_fragments_have_no_frame() -> None:
    puzzle, truth = tear_with_truth(data.picture("coffee"), 7, 5, size=48)
    poses = [truth.placement[name].pose for name in puzzle.ids]
    assert not _multiples_of_15(np.array([pose.angle for pose in poses if pose is not None])).any()
    areas, off_centre = [], []
    for pixels in puzzle.fragments.pixels:
        alpha = pixels[..., 3] / 255.0
        middle = [np.sum(axis * alpha) / alpha.sum() for axis in np.indices(alpha.shape)]
        areas.append(alpha.sum())
        off_centre.append(np.hypot(*(np.array(middle) + 0.5 - np.array(alpha.shape) / 2)))
    assert max(areas) > 1.5 * min(areas)
    assert np.mean(np.array(off_centre) > 1.0) > 0.5


PUBLISHED = {"aa_rot", "pa_rot"}
"""Names of measures as the literature prints them: AA+rot, PA+rot."""
BANNED = {"piece", "pieces", "patch", "patches", "tile", "tiles", "rot", "gt"}
BEFORE = (
    "api.py", "cli/", "corpus/", "cutting/", "evaluate/wanted.py", "learn/contours_mixture.py", "learn/fit/anchor.py",
    "learn/wholes.py", "studies/gauge_poses.py", "studies/tears.py",
)  # fmt: skip
"""Where pictures are torn, into pieces of paper: what is photographed of them are fragments."""


def _defined_names(tree: ast.AST) -> set[str]:
    """Functions, classes, arguments and variables that a module gives a name to."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _words(name: str) -> list[str]:
    return re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)


def test_convention_names() -> None:
    assert "tile" in {w.lower() for n in _defined_names(ast.parse("def cutTile(rot): pass")) for w in _words(n)}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        banned = BANNED - {"piece", "pieces"} if file.startswith(BEFORE) else BANNED
        names = sorted(_defined_names(ast.parse(path.read_text(encoding="utf-8"))) - PUBLISHED)
        wrong += [
            f"{file}: {name}"
            for name in names
            if banned & {word.lower() for word in _words(name)} or re.fullmatch(r"[TR]_?(ij|ji)", name)
        ]
    assert wrong == []


ORDERING = ("argsort", "lexsort", "sort", "sorted")


def _turns_energy_round(tree: ast.AST) -> list[str]:
    """What is negated of scores and energies, but for putting things in order."""
    sorting = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ORDERING
        for inside in ast.walk(node)
    }
    negated = [n for n in ast.walk(tree) if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub)]
    texts = [ast.unparse(node.operand) for node in negated if id(node) not in sorting]
    return [text for text in texts if re.search(r"(energy|energies|score|fitness)$", text)]


def test_convention_only_one_file_turns_scores_into_energies() -> None:
    assert _turns_energy_round(ast.parse("f(-result.score, -e.best_energy, -x, np.argsort(-score))")) == [
        "result.score",
        "e.best_energy",
    ]
    trees = {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    assert {file for file, tree in trees.items() if _turns_energy_round(tree)} == {"solvers/energy.py"}
    attributes = {
        (file, node.attr) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    assert not [pair for pair in attributes if pair[0].startswith("engine/") and "energ" in pair[1]]


def _states_a_sign(node: ast.AST) -> bool:
    """A matrix of a turn written out, or another library's constant for a quarter turn."""
    if isinstance(node, ast.List | ast.Tuple):
        text = ast.unparse(node)
        tilted = len(node.elts) == 2 and text.count("cos(") == 2 and text.count("sin(") == 2 and "-" in text
        return tilted or re.sub(r"[\[\]() ]", "", text) in ("0,1,-1,0", "0,-1,1,0")
    return isinstance(node, ast.Attribute) and node.attr.startswith(("ROTATE_90", "ROTATE_270"))


def test_convention_only_one_module_knows_a_sign() -> None:
    assert _states_a_sign(ast.parse("[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]", mode="eval").body)
    states = {
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _states_a_sign(node)
    }
    assert states == {"values/z4.py"}
