"""Pictures of fragments at any angle: put together again, side by side, marked, moving; grids stay as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from torn import Torn, torn

from jigsync import cli, data
from jigsync.io.files import read_bytes
from jigsync.io.images import read_rgb
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.solution_file import save_solution
from jigsync.io.truth_file import save_truth
from jigsync.render import animate
from jigsync.render import layout as layout_module
from jigsync.render.animate import MOVES, frames
from jigsync.render.assemble import assemble, assemble_in
from jigsync.render.compare import compare
from jigsync.render.gallery import panels
from jigsync.render.layout import GAP, layout_of
from jigsync.render.marks import legend, mark
from jigsync.render.style import AMBER, BLUE, PAPER, RED
from jigsync.score.verdicts import verdicts
from jigsync.solution import Solution
from jigsync.values.layout import FREE, Grid
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth

SIZE = (160, 240)
"""(height, width) of the picture that is torn."""


def photograph() -> NDArray[np.uint8]:
    rgb = read_rgb(read_bytes(data.picture("coffee"), 10**8), name="coffee")
    return np.asarray(cv2.resize(rgb, SIZE[::-1], interpolation=cv2.INTER_AREA), dtype=np.uint8)


@pytest.fixture(scope="module")
def pieces() -> Torn:
    return torn(photograph(), 8, seed=5)


def solution(placement: Placement, **more: object) -> Solution:
    return replace(Solution("ok", "", FREE, placement), **more)


def moved(placement: Placement, motion: Pose) -> dict[str, Placed]:
    return {name: placed.moved(motion) for name, placed in placement.items()}


def array(picture: Image.Image) -> NDArray[np.int64]:
    return np.asarray(picture).astype(np.int64)


def near(picture: Image.Image, colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    pixels = np.asarray(picture.convert("RGBA")).astype(np.int16)
    return np.asarray((np.abs(pixels[..., :3] - np.array(colour)) <= 12).all(axis=-1) & (pixels[..., 3] > 200))


def psnr(one: NDArray[np.int64], other: NDArray[np.uint8]) -> float:
    return float(10 * np.log10(255**2 / np.square(one - other.astype(np.float64)).mean()))


def seen_in(picture: Image.Image, pieces: Torn) -> NDArray[np.int64]:
    """The part of a canvas that is the torn picture: halos of the resampling may stand out by a few pixels."""
    pixels = array(picture)
    rows, cols = (np.flatnonzero((pixels[..., 3] > 128).any(axis=axis)) for axis in (1, 0))
    assert (len(rows), len(cols)) == pieces.picture.shape[:2]
    return np.asarray(pixels[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1])


# ------------------------------------------------------------------------------------------- assembly


def test_a_torn_picture_is_put_together_again(pieces: Torn) -> None:
    """Every fragment was resampled when it was cut and is resampled once more: seams are no worse than the rest."""
    found = seen_in(assemble(pieces.puzzle, solution(pieces.truth.placement)), pieces)
    inner = np.s_[3:-3, 3:-3]
    assert psnr(found[inner][..., :3], pieces.picture[inner]) > 35
    assert found[inner][..., 3].min() > 190
    assert (found[inner][..., 3] > 250).mean() > 0.97


def test_the_canvas_is_the_box_around_what_is_placed(pieces: Torn) -> None:
    """Wherever the answer has its origin; a whole pixel more does not change a byte."""
    still = assemble(pieces.puzzle, solution(pieces.truth.placement))
    assert all(extent <= side + 8 for extent, side in zip(still.size, SIZE[::-1], strict=True))
    away = solution(moved(pieces.truth.placement, Pose.of_turns(0, (-5000, 777))))
    assert np.abs(array(assemble(pieces.puzzle, away)) - array(still)).max() <= 1
    name = pieces.puzzle.ids[3]
    alone = assemble(pieces.puzzle, solution({name: pieces.truth.placement[name]}))
    home = pieces.labels == list(pieces.truth.placement).index(name)
    rows, cols = np.flatnonzero(home.any(axis=1)), np.flatnonzero(home.any(axis=0))
    assert abs(alone.height - len(rows)) <= 9
    assert abs(alone.width - len(cols)) <= 9


def test_a_turned_answer_is_a_turned_picture(pieces: Torn) -> None:
    """Turned back by the same angle it is the picture again: the sign of the drawing is the sign of the poses."""
    turned = solution(moved(pieces.truth.placement, Pose.of_degrees(30, (0, 0))))
    picture = assemble(pieces.puzzle, turned).rotate(-30, Image.Resampling.BICUBIC, expand=True)
    left, top = (picture.width - SIZE[1]) // 2, (picture.height - SIZE[0]) // 2
    found = array(picture)[top : top + SIZE[0], left : left + SIZE[1]]
    inner = np.s_[10:-10, 10:-10]
    assert psnr(found[inner][..., :3], pieces.picture[inner]) > 22  # up to a pixel of shift


def checked(side: int) -> Pixels:
    """Opaque noise."""
    pixels = np.random.default_rng(side).integers(0, 256, (side, side + 3, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    return pixels


@pytest.mark.parametrize("turns", range(4))
def test_quarter_turns_on_whole_pixels_are_copied(turns: int) -> None:
    pixels = checked(9)
    puzzle = Puzzle(Fragments(("a",), (pixels,)))
    half = (4.5, 6.0) if turns % 2 else (6.0, 4.5)
    answer = solution({"a": Placed(Pose.of_turns(turns, (half[0] + 30, half[1] - 7)))})
    np.testing.assert_array_equal(np.asarray(assemble(puzzle, answer)), np.rot90(pixels, turns))
    # Half a pixel beside another one it is resampled: each of its pixels is shared by two.
    two = Puzzle(Fragments(("a", "b"), (pixels, pixels)))
    there = (half[0] + 100.5, half[1])
    between = solution({"a": Placed(Pose.of_turns(turns, half)), "b": Placed(Pose.of_turns(turns, there))})
    picture = np.asarray(assemble(two, between))
    np.testing.assert_array_equal(
        picture[: pixels.shape[turns % 2], : pixels.shape[1 - turns % 2]], np.rot90(pixels, turns)
    )
    assert (picture[0, [100, -1], 3] == 128).all()


def test_a_small_turn_moves_a_corner_the_right_way() -> None:
    """A bright spot right of the centre moves up when the fragment turns counter-clockwise."""
    pixels = np.full((41, 41, 4), (20, 20, 20, 255), np.uint8)
    pixels[20, 36] = (255, 255, 255, 255)
    puzzle = Puzzle(Fragments(("a",), (pixels,)))
    picture = array(assemble(puzzle, solution({"a": Placed(Pose.of_degrees(45, (0, 0)))})))
    row, col = np.unravel_index(np.argmax(picture[..., 0] * (picture[..., 3] > 200)), picture.shape[:2])
    middle = np.array(picture.shape[:2]) / 2
    assert np.allclose((row + 0.5, col + 0.5) - middle, (-16 / np.sqrt(2), 16 / np.sqrt(2)), atol=1)


def test_components_lie_side_by_side_largest_first(pieces: Torn) -> None:
    """Two halves whose answers lie on top of each other are drawn apart, each as it is."""
    ids = list(pieces.truth.placement)
    part = {name: int(k < 3) for k, name in enumerate(ids)}  # the larger one has number 0
    placement = {name: replace(placed, component=part[name] * 4) for name, placed in pieces.truth.placement.items()}
    both = assemble(pieces.puzzle, solution(placement))
    alone = [
        assemble(pieces.puzzle, solution({name: p for name, p in placement.items() if p.component == label}))
        for label in (0, 4)
    ]
    layout = layout_of(pieces.puzzle, solution(placement))
    gap = both.width - alone[0].width - alone[1].width
    if gap > 0:  # in one row
        assert both.height == max(one.height for one in alone)
        left, right = (
            both.crop((0, 0, *alone[0].size)),
            both.crop((both.width - alone[1].width, 0, both.width, alone[1].height)),
        )
    else:  # one below the other
        gap = both.height - alone[0].height - alone[1].height
        left, right = (
            both.crop((0, 0, *alone[0].size)),
            both.crop((0, both.height - alone[1].height, alone[1].width, both.height)),
        )
    assert gap == round(max(layout.pitch) / 2)
    for found, expected in ((left, alone[0]), (right, alone[1])):
        assert np.abs(array(found) - array(expected)).max() <= 1


def test_many_components_are_put_in_rows() -> None:
    puzzle = Puzzle(Fragments(tuple(f"f{k}" for k in range(30)), (checked(20),) * 30))
    singles = solution({name: Placed(Pose.of_degrees(0, (0, 0)), component=k) for k, name in enumerate(puzzle.ids)})
    picture = assemble(puzzle, singles)
    assert 0.7 < picture.width / picture.height < 2.5
    assert (array(picture)[..., 3] == 255).sum() == 30 * 20 * 23


def test_gaps_pull_free_fragments_apart(pieces: Torn) -> None:
    answer = solution(pieces.truth.placement)
    together, apart = (layout_of(pieces.puzzle, answer, gaps=gaps) for gaps in (False, True))
    one, other = list(answer.placement)[:2]
    before, after = (np.subtract(lay.poses[one].xy, lay.poses[other].xy) for lay in (together, apart))
    assert np.allclose(after, before * (1 + GAP))
    picture = array(assemble(pieces.puzzle, answer, gaps=True))
    assert (picture[..., 3] < 10).mean() > 0.12


def test_zoomed_fragments_are_resampled_once(pieces: Torn) -> None:
    """Twice as large from the fragments' own pixels, not by repeating those of the small picture."""
    answer = solution(pieces.truth.placement)
    layout = layout_of(pieces.puzzle, answer, at_least=480)
    assert layout.zoom == 2
    large = assemble_in(pieces.puzzle, answer, layout)
    small = assemble(pieces.puzzle, answer)
    assert large.size == (2 * small.width, 2 * small.height)
    half = array(large.resize(small.size, Image.Resampling.BOX))
    solid = array(small)[..., 3] > 250
    assert np.abs(half - array(small))[solid].mean() < 2.5
    repeated = array(small).repeat(2, axis=0).repeat(2, axis=1)
    assert (array(large) != repeated).any(axis=-1)[solid.repeat(2, axis=0).repeat(2, axis=1)].mean() > 0.5


def test_large_free_canvases_are_averaged_down(pieces: Torn, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = solution(pieces.truth.placement)
    full = assemble(pieces.puzzle, answer)
    monkeypatch.setattr(layout_module, "MAX_PIXELS", full.width * full.height // 4 + 200)
    small = assemble(pieces.puzzle, answer)
    assert small.size == (-(-full.width // 2), -(-full.height // 2))
    evened = full.crop((0, 0, 2 * small.width, 2 * small.height)).resize(small.size, Image.Resampling.BOX)
    solid = array(small)[..., 3] > 250
    # Seams are composed after averaging here, before it there.
    assert np.abs(array(small) - array(evened))[solid].mean() < 1
    far = {**answer.placement, "t11": Placed(Pose.of_degrees(1, (1e7, -1e7)))}
    assert (
        np.prod([float(side) for side in layout_of(pieces.puzzle, solution(far)).size])
        <= 1.05 * layout_module.MAX_PIXELS
    )


def test_nothing_placed_is_a_blank_picture(pieces: Torn) -> None:
    nowhere = solution(dict.fromkeys(pieces.puzzle.ids, Placed.nowhere()), status="partial", reason="Too hard.")
    assert not array(assemble(pieces.puzzle, nowhere)).any()


# ------------------------------------------------------------------------------------------- grids


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 3), st.booleans(), st.booleans())
def test_grids_of_quarter_turns_are_pasted(seed: int, turns: int, in_pixels: bool, gaps: bool) -> None:
    """Against a paste by hand: containers of odd and even sides, whose half pixels are rounded up and left."""
    rng = np.random.default_rng(seed)
    grid, pitch = Grid(2, 3), 21
    ids = tuple(f"f{3 * k}" for k in range(6))
    pixels = tuple(np.ascontiguousarray(checked(int(side))[:, : int(side)]) for side in rng.integers(12, 22, 6))
    puzzle = Puzzle(Fragments(ids, pixels), pitch)
    size = (float(pitch), float(pitch)) if in_pixels else None
    home = {
        name: Placed.at(*cell, int(rng.integers(4)), pitch=size)
        for name, cell in zip(rng.permutation(ids), grid.cells(), strict=True)
    }
    answer = Solution("ok", "", grid, home, pitch=size).turned(turns)
    assert answer.grid is not None
    gap = round(pitch / 8) if gaps else 0
    rows, cols = answer.grid.shape
    expected = np.zeros((rows * pitch + (rows - 1) * gap, cols * pitch + (cols - 1) * gap, 4), dtype=np.uint8)
    for name, stored in zip(ids, pixels, strict=True):
        placed = answer.placement[name]
        assert placed.row is not None
        assert placed.col is not None
        top, left = (k * (pitch + gap) + (pitch - len(stored)) // 2 for k in (placed.row, placed.col))
        expected[top : top + len(stored), left : left + len(stored)] = np.rot90(stored, placed.turns)
    np.testing.assert_array_equal(np.asarray(assemble(puzzle, answer, gaps=gaps)), expected)


def cropped_grid() -> tuple[Puzzle, Solution, NDArray[np.uint8]]:
    """A 2 x 2 picture cut at straight lines that are no cell's, quarter turns: centres are beside the cells'."""
    picture = np.random.default_rng(2).integers(0, 256, (40, 60, 4), dtype=np.uint8)
    picture[..., 3] = 255
    pixels, placement = [], {}
    for k, (top, bottom, left, right) in enumerate(
        ((0, 17, 0, 33), (0, 22, 33, 60), (17, 40, 0, 33), (22, 40, 33, 60))
    ):
        pixels.append(np.ascontiguousarray(np.rot90(picture[top:bottom, left:right], -k)))
        pose = Pose.of_turns(k, ((left + right) / 2, (top + bottom) / 2))
        placement[f"f{k}"] = Placed(pose, divmod(k, 2))
    puzzle = Puzzle(Fragments(tuple(placement), tuple(pixels)))
    return puzzle, Solution("ok", "", Grid(2, 2), placement, pitch=(20.0, 30.0)), picture


def test_cropped_fragments_of_a_grid_stand_where_their_poses_say() -> None:
    puzzle, answer, picture = cropped_grid()
    np.testing.assert_array_equal(np.asarray(assemble(puzzle, answer)), picture)
    for turns in range(4):
        turned = np.asarray(assemble(puzzle, answer.turned(turns)))
        np.testing.assert_array_equal(turned, np.rot90(picture, turns))
    # Another tool may have its origin anywhere: cells tell where the grid is.
    shifted = replace(
        answer,
        placement={
            n: Placed(Pose(0, (p.pose.xy[0] - 300, p.pose.xy[1] + 80), p.pose.turns), p.cell)
            for n, p in answer.placement.items()
            if p.pose
        },
    )
    np.testing.assert_array_equal(np.asarray(assemble(puzzle, shifted)), picture)


def test_a_grid_at_any_angle_keeps_its_canvas(pieces: Torn) -> None:
    placement = {}
    for name, placed in pieces.truth.placement.items():
        assert placed.pose is not None
        x, y = placed.pose.xy
        placement[name] = Placed(placed.pose, (int(y // 40), int(x // 40)))
    answer = Solution("ok", "", Grid(4, 6), placement, pitch=(40.0, 40.0))
    picture = assemble(pieces.puzzle, answer)
    assert picture.size == SIZE[::-1]
    inner = np.s_[3:-3, 3:-3]
    assert psnr(array(picture)[inner][..., :3], pieces.picture[inner]) > 35


# ------------------------------------------------------------------------------------------- marks


def flawed(pieces: Torn) -> tuple[Solution, dict[str, NDArray[np.bool_]]]:
    """Of 8: one far away from its place, one turned in place by 25 degrees, one left out; all moved as a whole.

    The second is where the marks belong in the frame of the truth, by verdict.
    """
    ids = list(pieces.truth.placement)
    wrong, turned, gone = ids[1], ids[4], ids[6]
    placement = dict(pieces.truth.placement)
    pose = placement[wrong].pose, placement[turned].pose
    assert pose[0] is not None
    assert pose[1] is not None
    placement[wrong] = Placed(Pose(pose[0].angle, (pose[0].xy[0] + 300, pose[0].xy[1])), confidence=0.1)
    placement[turned] = Placed(Pose(pose[1].angle + 0.44, pose[1].xy))
    placement[gone] = Placed.nowhere()
    homes = {name: pieces.labels == k for k, name in enumerate(ids)}
    return solution(placement), {"slot": homes[wrong], "turn": homes[turned], "unplaced": homes[gone]}


def test_verdicts_and_marks_are_where_they_belong(pieces: Torn) -> None:
    answer, homes = flawed(pieces)
    found = verdicts(answer, pieces.truth, pieces.puzzle)
    assert sorted(found.values()) == ["right"] * 5 + ["slot", "turn", "unplaced"]
    layout = layout_of(pieces.puzzle, answer, at_least=1)
    plain = assemble_in(pieces.puzzle, answer, layout)
    marked = mark(plain, pieces.puzzle, answer, layout, found)
    assert not (near(plain, RED) | near(plain, AMBER)).any()
    red, amber = near(marked, RED), near(marked, AMBER)
    assert red.sum() > 60
    assert amber.sum() > 60
    # The wrong one was moved right by 300, beyond everything else.
    rows, cols = np.nonzero(red)
    assert cols.min() > SIZE[1]
    corner = np.subtract(layout.poses[pieces.puzzle.ids[0]].xy, answer.placement[pieces.puzzle.ids[0]].pose.xy)  # type: ignore[union-attr]
    rows, cols = np.nonzero(amber)
    home = np.argwhere(homes["turn"]).mean(axis=0)
    assert np.allclose((rows.mean() - corner[1], cols.mean() - corner[0]), home, atol=12)
    outside = array(plain)[..., 3] == 0
    assert not array(marked)[outside].any()


def test_verdicts_do_not_depend_on_the_frame(pieces: Torn) -> None:
    answer, _ = flawed(pieces)
    turned = solution(moved(answer.placement, Pose.of_degrees(-71.3, (50, 60))))
    assert verdicts(turned, pieces.truth, pieces.puzzle) == verdicts(answer, pieces.truth, pieces.puzzle)


def test_foreign_fragments_are_outlined_in_red(pieces: Torn) -> None:
    first = pieces.puzzle.ids[0]
    home = {name: placed for name, placed in pieces.truth.placement.items() if name != first}
    truth = Truth(FREE, home)
    found = verdicts(solution(pieces.truth.placement), truth, pieces.puzzle)
    assert found == {**dict.fromkeys(home, "right"), first: "foreign"}
    page = compare(pieces.puzzle, solution(pieces.truth.placement), truth)
    assert near(page, RED)[:, page.width // 2 :].sum() > 60


def test_confidence_tints_and_legends(pieces: Torn) -> None:
    answer, _ = flawed(pieces)
    layout = layout_of(pieces.puzzle, answer)
    plain = assemble_in(pieces.puzzle, answer, layout)
    tinted = mark(plain, pieces.puzzle, answer, layout, confidence=True)
    towards = np.abs(array(plain)[..., :3] - BLUE).sum(axis=-1) - np.abs(array(tinted)[..., :3] - BLUE).sum(axis=-1)
    assert towards[:, SIZE[1] + 12 :].max() > 100
    assert not towards[:, : SIZE[1] - 20].any()
    slot, place = (legend(plain, {"a": "slot"}, place=place) for place in ("slot", "place"))
    assert slot.size == place.size
    assert (array(slot) != array(place)).any()


# ------------------------------------------------------------------------------------------- moving, comparing


def test_the_last_frame_is_the_picture_and_turning_goes_the_short_way(pieces: Torn) -> None:
    shown = list(frames(pieces.puzzle, solution(pieces.truth.placement), width=480))
    assert len(shown) == 1 + sum(MOVES.values())
    last = np.asarray(shown[-1].picture).astype(int)
    away = np.abs(last - PAPER).max(axis=-1) > 24
    rows, cols = (np.flatnonzero(away.mean(axis=axis) > 0.3) for axis in (1, 0))
    box = last[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    assert box.shape[1] / box.shape[0] == pytest.approx(SIZE[1] / SIZE[0], rel=0.04)
    resized = cv2.resize(pieces.picture, (box.shape[1], box.shape[0]), interpolation=cv2.INTER_AREA)
    assert psnr(box[8:-8, 8:-8], resized[8:-8, 8:-8]) > 20
    first = np.asarray(shown[0].picture).astype(int)
    assert (np.abs(first - PAPER).max(axis=-1) > 24).mean() > 0.1


@pytest.mark.parametrize("degrees", [150.0, -150.0])
def test_a_fragment_turns_the_short_way(degrees: float) -> None:
    """On its way a bar stands at a share of its angle, on the side the angle says."""
    pixels = np.zeros((40, 40, 4), np.uint8)
    pixels[18:22] = (200, 30, 30, 255)
    puzzle = Puzzle(Fragments(("a",), (pixels,)))
    shown = list(frames(puzzle, solution({"a": Placed(Pose.of_degrees(degrees, (0, 0)))}), width=200))
    bar = np.asarray(shown[4].picture).astype(int)
    turned = abs(degrees) * animate._ease(4 / MOVES["turn"] / (1 - animate.STAGGER))
    rows, cols = np.nonzero(bar[..., 0] - bar[..., 1] > 100)
    slope = np.cov(cols, -rows)[0, 1]
    assert abs(np.degrees(np.arctan2(np.ptp(rows), np.ptp(cols))) - turned) < 8
    assert np.sign(slope) == np.sign(degrees)


def test_an_unplaced_fragment_of_a_free_answer_stays(pieces: Torn) -> None:
    answer, _ = flawed(pieces)
    shown = list(frames(pieces.puzzle, answer, width=300))
    assert shown[0].picture.size == shown[-1].picture.size


def test_compare_and_gallery_show_free_answers(pieces: Torn) -> None:
    answer, _ = flawed(pieces)
    good, bad = compare(pieces.puzzle, solution(pieces.truth.placement)), compare(pieces.puzzle, answer, pieces.truth)
    assert bad.height > good.height
    assert near(bad, RED)[:, bad.width // 2 :].any()
    assert not near(good, RED).any()
    turned = solution(moved(pieces.truth.placement, Pose.of_degrees(40, (0, 0))))
    failed = Solution.failure(pieces.puzzle, "none", "It gave up.")
    shown = panels(pieces.puzzle, pieces.truth, None, [("a", answer), ("b", turned), ("c", failed)])
    assert [panel.caption for panel in shown] == [
        "no grid",
        "8 fragments",
        "5 of 8 right",
        "8 of 8 right, not upright",
        "no answer",
    ]
    red = [int(near(panel.picture, RED).sum()) for panel in shown]
    assert [count > 60 for count in red] == [False, False, True, False, False]


# ------------------------------------------------------------------------------------------- the command


def test_the_command(
    pieces: Torn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer, _ = flawed(pieces)
    save_puzzle("torn/puzzle", pieces.puzzle)
    save_truth("torn/truth.json", pieces.truth)
    save_solution(
        "s.json", solution(moved(answer.placement, Pose.of_degrees(100, (0, 0))), gauge=answer.gauge.turned(0))
    )
    show = ("show", "torn", "--solution", "s.json")
    assert cli.main([*show, "--out", "a.png"]) == 0
    assert "7 of 8 fragments placed." in capsys.readouterr().out
    assert cli.main([*show, "--truth", "torn/truth.json", "--gauge", "best4", "--out", "b.png"]) == 0
    out = capsys.readouterr().out
    assert "5 right, 1 in the wrong place (red), 1 turned wrong (amber stripes)" in out
    assert "shown turned by 260 degrees counter-clockwise" in out
    with Image.open("b.png") as picture:
        assert near(picture, RED).any()
    assert cli.main([*show, "--truth", "torn/truth.json", "--gaps", "--confidence", "--json", "--out", "c.png"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["right"], facts["slot"], facts["turn"], facts["unplaced"], facts["placed"]) == (5, 1, 1, 1, 7)
    assert (facts["rows"], facts["cols"]) == (None, None)
    assert cli.main(["show", "torn", "--truth", "torn/truth.json", "--out", "t.png"]) == 0
    assert "the true assembly, 8 of 8 fragments placed" in capsys.readouterr().out
    assert cli.main([*show, "--truth", "torn/truth.json", "--gauge", "best4", "--json", "--out", "b.png"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["turned_by"] is None
    assert told["turned_degrees"] == pytest.approx(260, abs=1.5)
