"""Pictures: assembly gives the picture back, marks are where the fragments are, sheets show every fragment."""

from __future__ import annotations

import numpy as np
import pytest
import sample
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.render import layout as layout_module
from jigsync.render.assemble import assemble, assemble_in
from jigsync.render.compare import compare
from jigsync.render.layout import layout_of
from jigsync.render.marks import legend, mark
from jigsync.render.sheet import contact_sheet
from jigsync.render.style import AMBER, BLUE, PAPER, RED, fit_text, text_size
from jigsync.score.cells import score
from jigsync.score.verdicts import verdicts
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.errors import InputError
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth


def solved(truth: Truth) -> Solution:
    return Solution("ok", "", truth.grid, truth.placement)


def rgb(height: int = 90, width: int = 130) -> NDArray[np.uint8]:
    """No symmetry, no flat spot, and none of the marks' colours."""
    rows, cols = np.indices((height, width))
    texture = np.random.default_rng(1).integers(0, 40, (height, width))
    return np.stack([40 + texture, 60 + rows, 70 + cols], axis=-1).clip(0, 255).astype(np.uint8)


def cut(grid: Grid, cell: int = 24, seed: int = 3, **damage: float) -> tuple[Puzzle, Truth, NDArray[np.uint8]]:
    """A puzzle, its truth and the exact picture it was cut from."""
    options = CutOptions(grid, cell, Damage(**damage))
    return *cut_picture(rgb(), options, seed), make_canvas(rgb(), options, "the picture")


def array(picture: Image.Image) -> NDArray[np.int64]:
    return np.asarray(picture).astype(np.int64)


def without_hint(puzzle: Puzzle) -> Puzzle:
    return Puzzle(puzzle.fragments, None, puzzle.container, puzzle.name)


# ------------------------------------------------------------------------------------------- assembly


def test_clean_squares_give_the_picture_back_bit_for_bit() -> None:
    picture = assemble(sample.puzzle(), solved(sample.truth()))
    assert picture.mode == "RGBA"
    np.testing.assert_array_equal(np.asarray(picture), sample.picture())


def test_solution_assembles_itself() -> None:
    answer = Solution("ok", "", sample.GRID, sample.PLACEMENT, puzzle=sample.puzzle())
    np.testing.assert_array_equal(np.asarray(answer.assemble()), sample.picture())


def test_generated_clean_puzzle_gives_the_picture_back_bit_for_bit() -> None:
    """Here fragments lie in containers larger than their cells."""
    puzzle, truth, canvas = cut(Grid(3, 4))
    picture = np.asarray(assemble(puzzle, solved(truth)))
    np.testing.assert_array_equal(picture[..., :3], canvas)
    assert (picture[..., 3] == 255).all()


@pytest.mark.parametrize("seed", [3, 4])
def test_curved_seams_leave_no_trace(seed: int) -> None:
    """Neighbours' alphas sum to 1, so the sum of I alpha is I, up to the rounding of stored bytes."""
    puzzle, truth, canvas = cut(Grid(3, 4), seed=seed, shape=20)
    picture = array(assemble(puzzle, solved(truth)))
    assert picture[..., 3].min() >= 254
    assert np.abs(picture[..., :3] - canvas).max() <= 2


@given(st.integers(0, 3))
def test_a_turned_solution_is_a_turned_picture(turns: int) -> None:
    """Also for a wrong one, where fragments overlap: the order of painting does not depend on the gauge."""
    puzzle, truth, _ = cut(Grid(2, 3), shape=30)
    first, *_, last = truth.placement
    swapped = {
        **truth.placement,
        first: Placed.at(*truth.placement[last].cell, 3),  # type: ignore[misc]
        last: Placed.at(*truth.placement[first].cell, 0),  # type: ignore[misc]
    }
    answer = Solution("ok", "", truth.grid, swapped)
    turned = np.asarray(assemble(puzzle, answer.turned(turns)))
    np.testing.assert_array_equal(turned, z4.turn_pixels(np.asarray(assemble(puzzle, answer)), turns))


def test_unplaced_fragments_are_not_drawn() -> None:
    placement = {**sample.PLACEMENT, "f19": Placed.nowhere()}
    del placement["f11"]
    picture = np.asarray(assemble(sample.puzzle(), Solution("partial", "", sample.GRID, placement)))
    expected = sample.picture()
    expected[:5, 10:] = expected[5:, :5] = 0
    np.testing.assert_array_equal(picture, expected)


def block(colour: tuple[int, int, int, int], size: tuple[int, int] = (4, 4)) -> Pixels:
    return np.full((*size, 4), colour, dtype=np.uint8)


def test_overlaps_are_covered_and_half_transparent_colours_come_out_straight() -> None:
    """4-pixel cells, an 8-pixel wide fragment over its neighbour, and one of alpha 51 whose straight red is 255."""
    wide = Fragments(("a", "b", "c"), (block((9, 9, 9, 255)), block((0, 200, 0, 255), (4, 8)), block((51, 0, 0, 51))))
    answer = Solution("ok", "", Grid(1, 3), {"a": Placed.at(0, 0, 0), "b": Placed.at(0, 1, 0), "c": Placed.at(0, 2, 0)})
    picture = array(assemble(Puzzle(wide, cell=4), answer))
    np.testing.assert_array_equal(picture[0, :2], [[9, 9, 9, 255]] * 2)  # a is seen where b does not cover it
    np.testing.assert_array_equal(picture[0, 2:8], [[0, 200, 0, 255]] * 6)
    # On cols 8, 9 the later c lies over b: 51 red, and 204/255 of b's 200 green.
    np.testing.assert_array_equal(picture[0, 8:10], [[51, 160, 0, 255]] * 2)
    np.testing.assert_array_equal(picture[0, 10:], [[255, 0, 0, 51]] * 2)


def test_colours_above_their_alpha_saturate() -> None:
    two = Fragments(("a", "b"), (block((200, 0, 0, 128)), block((200, 0, 0, 127))))
    answer = Solution("ok", "", Grid(1, 2), {"a": Placed.at(0, 0, 0), "b": Placed.at(0, 1, 0)})
    picture = array(assemble(Puzzle(two, cell=2), answer))  # 4-pixel fragments on 2-pixel cells: all overlap
    assert (picture[..., 0] == 255).all()
    assert picture.max() == 255


def test_pitch_without_a_hint() -> None:
    """Opaque rectangles: their upright size. Shapes: the square of the mean area."""
    puzzle = without_hint(sample.puzzle())
    np.testing.assert_array_equal(np.asarray(assemble(puzzle, solved(sample.truth()))), sample.picture())
    curved, truth, _ = cut(Grid(3, 4), shape=16)
    picture = array(assemble(without_hint(curved), solved(truth)))
    np.testing.assert_array_equal(picture, array(assemble(curved, solved(truth))))
    # Oblongs of 2 x 6 upright, some stored turned; an odd one out is centred on its cell.
    shapes = Fragments(
        ("a", "b", "c"), (block((1, 2, 3, 255), (2, 6)), block((4, 5, 6, 255), (6, 2)), block((7, 8, 9, 255)))
    )
    answer = Solution("ok", "", Grid(3, 1), {"a": Placed.at(0, 0, 2), "b": Placed.at(1, 0, 1), "c": Placed.at(2, 0, 0)})
    assert layout_of(Puzzle(shapes), answer).pitch == (2, 6)
    assert assemble(Puzzle(shapes), answer).size == (6, 6)


def test_gaps_pull_the_cells_apart() -> None:
    puzzle, truth, canvas = cut(Grid(2, 3))
    apart = array(assemble(puzzle, solved(truth), gaps=True))
    assert apart.shape == (2 * 24 + 3, 3 * 24 + 2 * 3, 4)
    np.testing.assert_array_equal(apart[27:, 27:51, :3], canvas[24:, 24:48])
    assert not apart[24:27].any()
    assert not apart[:, 24:27].any()


def test_nothing_to_draw_is_refused() -> None:
    puzzle = sample.puzzle()
    with pytest.raises(InputError, match=r"failed \(no idea\): "):
        assemble(puzzle, Solution.failure(puzzle, "greedy", "no idea."))
    stranger = Solution("ok", "", Grid(2, 2), {"x9": Placed.at(0, 0, 0)})
    with pytest.raises(InputError, match="'x9' is placed but is not in the puzzle"):
        assemble(puzzle, stranger)


def test_large_canvases_are_averaged_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the pixels: 2 x 2 blocks of the full picture, also where a block straddles a seam."""
    puzzle, truth, _ = cut(Grid(3, 4), cell=25)
    full = array(assemble(puzzle, solved(truth)))
    monkeypatch.setattr(layout_module, "MAX_PIXELS", 75 * 100 // 3)
    layout = layout_of(puzzle, solved(truth))
    assert (layout.shrink, layout.size) == (2, (38, 50))
    small = array(assemble_in(puzzle, solved(truth), layout))
    blocks = np.pad(full, ((0, 1), (0, 0), (0, 0)), mode="edge").reshape(38, 2, 50, 2, 4).mean(axis=(1, 3))
    assert np.abs(small[:37] - blocks[:37]).max() <= 2.5
    assert small[:37, :, 3].min() >= 253


def test_no_grid_asks_for_more_memory_than_the_limit() -> None:
    far = Solution("partial", "", Grid(99_999, 99_999), {"f02": Placed.at(99_998, 0, 1)})
    height, width = layout_of(sample.puzzle(), far).size
    assert height * width <= layout_module.MAX_PIXELS


def test_zoom_repeats_pixels() -> None:
    answer = solved(sample.truth())
    layout = layout_of(sample.puzzle(), answer, at_least=60)
    assert layout.zoom == 4
    zoomed = np.asarray(assemble_in(sample.puzzle(), answer, layout))
    np.testing.assert_array_equal(zoomed, sample.picture().repeat(4, axis=0).repeat(4, axis=1))


# ------------------------------------------------------------------------------------------- marks


def flawed() -> tuple[Puzzle, Truth, Solution]:
    """3 x 4: two swapped, one turned in place, one unplaced; the others right."""
    puzzle, truth, _ = cut(Grid(3, 4), cell=48, shape=12, erosion=0.05)
    at = {placed.cell: name for name, placed in truth.placement.items()}
    one, two, turned, gone = at[0, 0], at[2, 2], at[1, 1], at[0, 3]
    placement = {
        **truth.placement,
        one: Placed.at(2, 2, truth.placement[one].turns, 0.0),
        two: Placed.at(0, 0, truth.placement[two].turns),
        turned: Placed.at(1, 1, (truth.placement[turned].turns + 1) % 4),
        gone: Placed.nowhere(),
    }
    return puzzle, truth, Solution("partial", "", truth.grid, placement)


def near(picture: Image.Image, colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    pixels = np.asarray(picture.convert("RGBA")).astype(np.int16)
    return np.asarray((np.abs(pixels[..., :3] - np.array(colour)) <= 12).all(axis=-1) & (pixels[..., 3] > 200))


def test_verdicts_agree_with_the_scores() -> None:
    _, truth, answer = flawed()
    for g in range(4):
        found, scores = verdicts(answer.turned(g), truth), score(answer.turned(g), truth)
        count = {kind: list(found.values()).count(kind) for kind in ("right", "turn", "slot", "unplaced")}
        assert sum(count.values()) == scores.fragments
        assert count["right"] == round(12 * scores.model.aa_rot)
        assert count["right"] + count["turn"] == round(12 * scores.model.aa)
        assert count["unplaced"] == 12 - scores.placed
    assert sorted(verdicts(answer, truth).values()) == ["right"] * 8 + ["slot"] * 2 + ["turn", "unplaced"]


def test_marks_are_drawn_on_wrong_fragments_only() -> None:
    puzzle, truth, answer = flawed()
    layout = layout_of(puzzle, answer)
    plain = assemble_in(puzzle, answer, layout)
    marked = mark(plain, puzzle, answer, layout, verdicts(answer, truth))
    red, amber = near(marked, RED), near(marked, AMBER)
    assert not (near(plain, RED) | near(plain, AMBER)).any()
    changed = (array(plain) != array(marked)).any(axis=-1)
    for row, col in truth.grid.cells():
        inner = np.s_[row * 48 + 16 : row * 48 + 32, col * 48 + 16 : col * 48 + 32]
        cell = np.s_[row * 48 : row * 48 + 48, col * 48 : col * 48 + 48]
        assert not changed[inner].any()  # the line keeps to the contour: the middle can be seen
        assert (red[cell].sum() > 60) == ((row, col) in {(0, 0), (2, 2)})
        assert (amber[cell].sum() > 60) == ((row, col) == (1, 1))


def test_marks_stay_on_the_fragment_itself() -> None:
    """Nothing outside the fragment's own alpha is touched, so neighbours and gaps stay as they are."""
    puzzle, truth, answer = flawed()
    alone = Solution("partial", "", truth.grid, {n: p for n, p in answer.placement.items() if p.cell == (0, 0)})
    layout = layout_of(puzzle, alone, gaps=True)
    plain = assemble_in(puzzle, alone, layout)
    marked = mark(plain, puzzle, alone, layout, verdicts(alone, truth))
    outside = array(plain)[..., 3] == 0
    assert near(marked, RED).any()
    assert not array(marked)[outside].any()


def test_amber_is_striped_and_red_is_not() -> None:
    """The two differ in pattern, for eyes that cannot tell the hues apart: along its ribbon, amber alternates."""
    square = Puzzle(Fragments(("a", "b"), (block((90, 90, 90, 255), (80, 80)), block((90, 90, 90, 255), (80, 80)))), 80)
    answer = Solution("ok", "", Grid(1, 2), {"a": Placed.at(0, 0, 0), "b": Placed.at(0, 1, 0)})
    layout = layout_of(square, answer)
    marked = mark(assemble_in(square, answer, layout), square, answer, layout, {"a": "slot", "b": "turn"})
    light = array(marked.convert("L"))
    along_red, along_amber = light[2, 5:75], light[2, 85:155]
    assert np.ptp(along_red) <= 8
    assert (np.abs(np.diff((along_amber > 100).astype(int)))).sum() >= 6


def test_confidence_tints_the_unsure() -> None:
    puzzle, _, answer = flawed()
    layout = layout_of(puzzle, answer)
    plain = assemble_in(puzzle, answer, layout)
    tinted = mark(plain, puzzle, answer, layout, confidence=True)
    towards = np.abs(array(plain)[..., :3] - BLUE).sum(axis=-1) - np.abs(array(tinted)[..., :3] - BLUE).sum(axis=-1)
    unsure = np.s_[2 * 48 + 16 : 2 * 48 + 32, 2 * 48 + 16 : 2 * 48 + 32]
    assert (towards[unsure] > 0).all()
    assert not towards[:48, :48].any()  # its solver said nothing about this one
    np.testing.assert_array_equal(array(mark(plain, puzzle, answer, layout)), array(plain))


def test_legend_keeps_the_picture_and_says_what_is_there() -> None:
    puzzle, truth, answer = flawed()
    layout = layout_of(puzzle, answer)
    picture = assemble_in(puzzle, answer, layout)
    page = legend(picture, verdicts(answer, truth))
    np.testing.assert_array_equal(array(page)[: picture.height, : picture.width], array(picture))
    strip = page.crop((0, picture.height, *page.size))
    assert near(strip, RED).any()
    assert near(strip, AMBER).any()
    assert near(strip, PAPER).mean() > 0.5
    right = legend(picture, verdicts(solved(truth), truth))
    assert not (near(right, RED) | near(right, AMBER)).any()


def test_legend_of_a_narrow_picture_is_not_cut_off() -> None:
    narrow = Image.new("RGBA", (20, 400), (9, 9, 9, 255))
    page = legend(narrow, {"a": "slot", "b": "turn"}, confidence=True)
    strip = array(page)[400:, -6:, :3]
    assert page.width > 100
    assert (strip == PAPER).all()  # a margin is left at the right


# ------------------------------------------------------------------------------------------- sheets


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_every_fragment_is_on_the_sheet_once(count: int) -> None:
    """Each fragment is one flat colour: count the areas of its colour."""
    rng = np.random.default_rng(3)
    colours = rng.permutation(200)[:count]
    pixels = tuple(block((int(c), 40, int(255 - c), 255), (48, 48)) for c in colours)
    ids = tuple(f"f{7 * k + 1}" for k in range(count))
    sheet = array(contact_sheet(Puzzle(Fragments(ids, pixels))))
    code = np.where((sheet[..., 1] == 40) & (sheet[..., 0] + sheet[..., 2] == 255), sheet[..., 0], -1)
    for c in colours:
        rows, cols = np.nonzero(code == c)
        side = int(np.ptp(rows)) + 1
        assert rows.size == side**2 == (np.ptp(cols) + 1) ** 2
        assert side >= 48


def test_captions_can_be_left_out() -> None:
    with_ids, without = contact_sheet(sample.puzzle()), contact_sheet(sample.puzzle(), captions=False)
    assert with_ids.height > without.height
    assert with_ids.width == without.width


def test_small_sheets_show_exact_pixels_as_presented() -> None:
    """5-pixel fragments grow by a whole factor; the first stands where a sheet begins."""
    sheet = array(contact_sheet(sample.puzzle(), captions=False))
    first = sample.stored("f07")[..., :3]
    rows, cols = np.nonzero((sheet != PAPER).any(axis=-1))
    top, left = rows.min(), cols.min()
    factor = 38  # the largest with 5 * factor <= 192
    shown = sheet[top : top + 5 * factor, left : left + 5 * factor]
    np.testing.assert_array_equal(shown, first.repeat(factor, axis=0).repeat(factor, axis=1))


def test_thousands_of_fragments_are_scaled_down() -> None:
    pixels = block((10, 20, 30, 255), (40, 40))
    many = Puzzle(Fragments(tuple(f"f{k}" for k in range(2000)), (pixels,) * 2000))
    sheet = contact_sheet(many)
    assert max(sheet.size) <= 2500
    assert near(sheet, (10, 20, 30)).mean() > 0.6


def test_fragments_stand_in_the_middle_of_their_place() -> None:
    """An oblong in a corner of its container, a square that sets the scale, and one with no pixel at all."""
    oblong, square = np.zeros((12, 12, 4), dtype=np.uint8), np.zeros((12, 12, 4), dtype=np.uint8)
    oblong[:2, 1:7] = (250, 10, 20, 255)
    square[3:9, 6:] = (10, 20, 250, 255)
    three = Puzzle(Fragments(("f5", "f1", "f3"), (oblong, square, np.zeros_like(square))))
    sheet = array(contact_sheet(three, captions=False, columns=3))
    high, wide = (np.nonzero((sheet == (250, 10, 20)).all(axis=-1).any(axis=axis))[0] for axis in (1, 0))
    rows, cols = (np.nonzero((sheet == (10, 20, 250)).all(axis=-1).any(axis=axis))[0] for axis in (1, 0))
    assert len(wide) == len(rows) == len(cols) == 3 * len(high) == 192
    assert high.mean() == rows.mean()
    assert (sheet == PAPER).all(axis=-1).sum() == sheet.shape[0] * sheet.shape[1] - 192 * 192 - 192 * 64


def test_empty_puzzle_is_refused() -> None:
    with pytest.raises(InputError, match="no fragment"):
        contact_sheet(Puzzle(Fragments((), ())))


def test_long_ids_are_shortened_in_the_middle() -> None:
    short = fit_text("fragment-of-the-upper-left-corner-0017", 12, 90)
    assert short.startswith("fra")
    assert short.endswith("17")
    assert "…" in short
    assert text_size(short, 12)[0] <= 90
    assert fit_text("f1", 12, 90) == "f1"
    assert fit_text("f1", 12, 2) == ""


def test_compare_shows_both_and_counts_what_is_wrong() -> None:
    puzzle, truth, answer = flawed()
    good, bad = compare(puzzle, solved(truth)), compare(puzzle, answer, truth)
    assert good.mode == bad.mode == "RGB"
    assert bad.height > good.height
    assert near(bad, RED)[:, bad.width // 2 :].any()
    assert not near(good, RED).any()
