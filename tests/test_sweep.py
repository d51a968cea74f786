"""Met-Sweep as a whole: identity at zero, conjugate seams, independence of the axes, purity."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.masks import AREA_FLOOR, draw_masks
from jigsync.cutting.options import SEVERITIES, CutOptions, Damage
from jigsync.values import z4
from jigsync.values.errors import ImageError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


def picture(height: int = 150, width: int = 220) -> NDArray[np.uint8]:
    """A picture without any symmetry: ramps, a bright corner and texture."""
    y, x = np.mgrid[:height, :width]
    texture = np.random.default_rng(5).integers(0, 60, (height, width))
    red = 255 * x / width
    green = 255 * y / height
    blue = np.where((x < width / 3) & (y < height / 4), 220, 30)
    return np.clip(np.stack([red, green, blue], axis=-1) + texture[..., None] - 30, 0, 255).astype(np.uint8)


def reassemble(puzzle: Puzzle, truth: Truth, options: CutOptions) -> NDArray[np.int64]:
    """Sum of all fragments at their true places, cut back to the canvas. Shapes: -> (rows P, cols P, 4)."""
    rows, cols = options.grid.shape
    side, margin = options.container, options.margin
    total = np.zeros((rows * options.cell + 2 * margin, cols * options.cell + 2 * margin, 4), dtype=np.int64)
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        placed = truth.placement[name]
        assert placed.row is not None
        assert placed.col is not None
        top, left = placed.row * options.cell, placed.col * options.cell
        total[top : top + side, left : left + side] += np.rot90(pixels, placed.turns)
    outside = total.copy()
    outside[margin : margin + rows * options.cell, margin : margin + cols * options.cell] = 0
    assert not outside.any(), "nothing lies outside the canvas"
    return total[margin : margin + rows * options.cell, margin : margin + cols * options.cell]


@pytest.mark.parametrize("grid", [Grid(2, 3), Grid(3, 2), Grid(1, 4)])
@pytest.mark.parametrize("turned", [False, True])
def test_zero_damage_is_the_square_puzzle_bit_for_bit(grid: Grid, turned: bool) -> None:
    options = CutOptions(grid, cell=32, turns=turned, shuffle=turned)
    puzzle, truth = cut_picture(picture(), options, seed=11)
    canvas = make_canvas(picture(), options)
    total = reassemble(puzzle, truth, options)
    np.testing.assert_array_equal(total[..., :3], canvas)
    assert (total[..., 3] == 255).all()
    if not turned:
        margin = options.margin
        for slot, (row, col) in enumerate(grid.cells()):
            cell = puzzle.fragments.pixels[slot][margin : margin + 32, margin : margin + 32, :3]
            np.testing.assert_array_equal(cell, canvas[32 * row : 32 * row + 32, 32 * col : 32 * col + 32])


@pytest.mark.parametrize("shape", [8, 16, 24, 32])
@pytest.mark.parametrize("cell", [64, 128])
def test_alphas_of_all_cells_sum_to_one_everywhere(shape: float, cell: int) -> None:
    """Conjugate seams at any A, with jitter, at vertices too; in stored integers, without tolerance."""
    options = CutOptions(Grid(3, 4), cell=cell, damage=Damage(shape, 0, 0))
    puzzle, truth = cut_picture(picture(300, 400), options, seed=shape * 7 + cell)
    total = reassemble(puzzle, truth, options)
    assert (total[..., 3] == 255).all()
    canvas = make_canvas(picture(300, 400), options)
    # Up to four fragments round their share of a pixel.
    assert np.abs(total[..., :3] - canvas).max() <= 2


def test_turns_restore_the_upright_fragment() -> None:
    options = CutOptions(Grid(2, 3), cell=32, damage=Damage(16, 0.1, 0))
    turned, truth = cut_picture(picture(), options, seed=4)
    upright, _ = cut_picture(
        picture(), CutOptions(Grid(2, 3), cell=32, damage=options.damage, turns=False, shuffle=False), seed=4
    )
    assert {placed.turns for placed in truth.placement.values()} >= {1, 3}, "the seed must show odd turns"
    for name, placed in truth.placement.items():
        assert placed.cell is not None
        slot = options.grid.slot(*placed.cell)
        np.testing.assert_array_equal(np.rot90(turned.fragments[name], placed.turns), upright.fragments.pixels[slot])


def test_axes_do_not_disturb_each_other() -> None:
    """Erosion and photometry leave cut, turns and order alone; photometry leaves alpha alone."""
    base = CutOptions(Grid(3, 2), cell=64, damage=Damage(16, 0, 0))
    plain, plain_truth = cut_picture(picture(), base, seed=3)
    eroded, eroded_truth = cut_picture(picture(), CutOptions(Grid(3, 2), 64, Damage(16, 0.1, 0)), seed=3)
    faded, faded_truth = cut_picture(picture(), CutOptions(Grid(3, 2), 64, Damage(16, 0.1, 0.2)), seed=3)
    assert plain_truth.placement == eroded_truth.placement == faded_truth.placement
    for name in plain.ids:
        assert (eroded.fragments[name][..., 3] <= plain.fragments[name][..., 3]).all()
        assert (eroded.fragments[name][..., 3] != plain.fragments[name][..., 3]).any()
        np.testing.assert_array_equal(eroded.fragments[name][..., 3], faded.fragments[name][..., 3])
        solid = eroded.fragments[name][..., 3] == 255
        np.testing.assert_array_equal(eroded.fragments[name][solid], plain.fragments[name][solid])
        assert (faded.fragments[name][solid] != plain.fragments[name][solid]).any()
        assert (faded.fragments[name][..., :3] <= faded.fragments[name][..., 3:]).all(), "colour is times alpha"


def test_order_of_the_turn() -> None:
    """In the paper's order the stored pixels are an exact turn of the compressed ones; in ours they are not."""

    def upright(paper_order: bool, turns: bool) -> list[NDArray[np.uint8]]:
        options = CutOptions(Grid(2, 2), 64, Damage(0, 0, 0.2), turns=turns, shuffle=False, paper_order=paper_order)
        puzzle, truth = cut_picture(picture(), options, seed=9)
        return [z4.turn_pixels(puzzle.fragments[n], p.turns) for n, p in truth.placement.items()]

    _, truth = cut_picture(picture(), CutOptions(Grid(2, 2), 64, shuffle=False), seed=9)
    odd = [placed.turns % 2 == 1 for placed in truth.placement.values()]
    assert any(odd)
    for before, after in zip(upright(True, False), upright(True, True), strict=True):
        np.testing.assert_array_equal(before, after)
    ours = zip(upright(False, False), upright(False, True), odd, strict=True)
    assert all((before != after).any() for before, after, is_odd in ours if is_odd)


def test_fragments_below_the_floor_are_redrawn_then_flagged() -> None:
    options = CutOptions(Grid(2, 2), 32, Damage(32, 0.4, 0))
    drawn = draw_masks(options, seed=1)
    assert drawn.redraws == 20, "max(20, 8 n) redraws at n = 2"
    assert not drawn.area_floor
    _, truth = cut_picture(picture(), options, seed=1)
    assert truth.flags == {"redraws": 20, "below_area_floor": True}
    assert truth.seed == 1
    good = draw_masks(CutOptions(Grid(3, 3), 64, SEVERITIES["severe"]), seed=2)
    assert good.area_floor
    assert good.redraws > 0, "this seed needs a redraw"
    assert min(mask.area for mask in good.masks) >= AREA_FLOOR * 64**2


def digest(puzzle: Puzzle, truth: Truth) -> str:
    places = ", ".join(
        f"({name!r}, Placed(row={p.row}, col={p.col}, turns={p.turns}, confidence={p.confidence}))"
        for name, p in sorted(truth.placement.items())
    )
    state = hashlib.sha256(f"[{places}]".encode())
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        state.update(name.encode() + pixels.tobytes())
    return state.hexdigest()


GOLDEN = {
    "clean": "4cfb6bbad351d2b88b36da14006bcf80946ea3cf4464b363f0db240eff762bf5",
    "severe": "68d6d53f907023769a94526854aa1d46bfc2b9ce01fed1fa268473379c670275",
    "gap": "b85c3be9599908ec90dda921ce7c8dfa1569ebd750ec1c096c8a9a6f87294d08",
}


def golden_puzzle(name: str) -> str:
    if name == "gap":
        options = CutOptions(Grid(2, 3), 48, Damage(0, 0.1, 0.1), preset="gap")
    else:
        options = CutOptions(Grid(2, 3), 48, SEVERITIES[name])
    return digest(*cut_picture(picture(), options, seed=17))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_hash(name: str) -> None:
    """A puzzle is a pure function of (picture, options, seed); a change here is a new corpus."""
    assert golden_puzzle(name) == GOLDEN[name]


def test_the_same_puzzle_in_another_process() -> None:
    code = "import test_sweep; print(test_sweep.golden_puzzle('severe'))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=__file__.rsplit("/", 1)[0], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == golden_puzzle("severe")


def test_seeds_differ() -> None:
    options = CutOptions(Grid(2, 3), 32, SEVERITIES["medium"])
    assert digest(*cut_picture(picture(), options, 1)) != digest(*cut_picture(picture(), options, 2))


@pytest.mark.parametrize("size", [(400, 300), (300, 400), (64, 64), (129, 500)])
def test_canvas_covers_the_grid_with_the_shortest_side(size: tuple[int, int]) -> None:
    options = CutOptions(Grid(2, 2), 32)
    rgb = picture(*size)
    canvas = make_canvas(rgb, options)
    assert canvas.shape == (64, 64, 3)
    # The centre crop of the whole picture, not a native window: both ends of the short side are inside.
    if size[0] < size[1]:
        assert abs(int(canvas[0].mean()) - int(rgb[0].mean())) < 40
        assert abs(int(canvas[-1].mean()) - int(rgb[-1].mean())) < 40


def test_canvas_of_the_exact_size_is_untouched() -> None:
    rgb = picture(64, 96)
    np.testing.assert_array_equal(make_canvas(rgb, CutOptions(Grid(2, 3), 32)), rgb)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (2, 101)])
def test_pictures_that_cannot_be_cut(size: tuple[int, int]) -> None:
    with pytest.raises(ImageError, match=f"{size[1]} x {size[0]}"):
        make_canvas(np.zeros((*size, 3), dtype=np.uint8), CutOptions(Grid(2, 2), 32), "strip.png")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Damage(shape=-1),
        lambda: Damage(shape=33),
        lambda: Damage(erosion=float("nan")),
        lambda: Damage(photo=float("inf")),
        lambda: Damage(photo=1.5),
        lambda: CutOptions(Grid(2, 2), cell=4),
        lambda: CutOptions(Grid(2, 2), cell=4096),
        lambda: CutOptions(Grid(500, 500), cell=8),
        lambda: CutOptions(Grid(100, 100), cell=512),
        lambda: CutOptions(Grid(2, 2), preset="gap", damage=Damage(shape=8)),
        lambda: CutOptions.from_json({"grid": [2, 2], "colour": 1}),
        lambda: CutOptions.from_json({"grid": [2]}),
        lambda: CutOptions.from_json({"grid": [2, 2], "turns": "no"}),
        lambda: CutOptions.from_json({"grid": [2, 2], "damage": {"dirt": 1}}),
        lambda: cut_picture(picture(), CutOptions(Grid(2, 2), 32), seed=-1),
        lambda: cut_picture(picture(), CutOptions(Grid(2, 2), 32), seed=2**63),
    ],
)
def test_bad_options_say_so(make: object) -> None:
    with pytest.raises(OptionError):
        make()  # type: ignore[operator]


def test_options_round_trip() -> None:
    options = CutOptions(Grid(4, 6), 64, SEVERITIES["heavy"], turns=False, paper_order=True)
    assert CutOptions.from_json(options.to_json()) == options


def test_container_and_shape_scale_with_the_cell() -> None:
    assert CutOptions(Grid(3, 3)).container == 320
    assert CutOptions(Grid(3, 3), cell=64).container == 160
    assert CutOptions(Grid(3, 3), cell=64, damage=Damage(16)).shape_px == 8
    assert (CutOptions(Grid(3, 3), cell=29).container - 29) % 2 == 0, "the cell is centred exactly"
