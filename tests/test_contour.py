"""Sides along the contour: against a pixel-by-pixel version, in all bearings, for every size and parity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.measure.contour import BAND, MAX_SAMPLES, OPAQUE, Contours, estimate_cell, facing, read_contours
from jigsync.score.touching import touching
from jigsync.values import z4
from jigsync.values.errors import ImageError, InputError
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Fragments, Pixels, Puzzle

# How to walk in a fragment's own frame, written out: the step outwards and the step along the rows, which run as they
# do on a side that faces east (from north to south).
OUTWARDS = {z4.E: (0, 1), z4.N: (-1, 0), z4.W: (0, -1), z4.S: (1, 0)}
ALONG = {z4.E: (1, 0), z4.N: (0, 1), z4.W: (-1, 0), z4.S: (0, -1)}


def puzzle_of(*pixels: Pixels, cell: int | None = None) -> Puzzle:
    names = tuple(f"f{5 * k + 2}" for k in range(len(pixels)))
    return Puzzle(Fragments(names, pixels), cell)


def ragged(height: int, width: int, seed: int, fill: float = 0.8) -> Pixels:
    """Noise with an uneven outline, holes, half-transparent pixels and an empty row."""
    rng = np.random.default_rng(seed)
    alpha = rng.choice([0, 100, OPAQUE - 1, OPAQUE, 255], (height, width), p=[0.1, 0.05, 0.05, 0.1, 0.7])
    y, x = np.mgrid[:height, :width]
    outside = np.hypot((y + 0.5) / height - 0.5, (x + 0.5) / width - 0.5) > 0.5 * fill + rng.uniform(-0.05, 0.05)
    alpha[outside] = 0
    alpha[height // 3] = 0
    colour = rng.integers(0, 256, (height, width, 3)) * alpha[..., None] // 255
    return np.concatenate([colour, alpha[..., None]], axis=-1).astype(np.uint8)


def slow_side(pixels: Pixels, bearing: int, cell: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """colour, offset, valid of one side, pixel by pixel, where a row of pixels is a row of the cell."""
    height, width = pixels.shape[:2]
    (oy, ox), (ay, ax) = OUTWARDS[bearing], ALONG[bearing]
    depth = max(3, round(BAND * cell))
    colour, offset, valid = np.zeros((cell, depth, 3)), np.full(cell, -np.inf), np.zeros(cell, dtype=bool)
    for y, x in np.argwhere(pixels[..., 3] >= OPAQUE):
        # The pixel's centre, seen from the container's.
        dy, dx = y + 0.5 - height / 2, x + 0.5 - width / 2
        row = dy * ay + dx * ax + cell / 2 - 0.5
        beyond = (dy * oy + dx * ox + 0.5 - cell / 2) / cell
        if row != int(row) or not 0 <= row < cell or beyond < offset[int(row)]:
            continue
        offset[int(row)], valid[int(row)] = beyond, True
        for d in range(depth):
            inner = pixels[max(0, min(height - 1, y - d * oy)), max(0, min(width - 1, x - d * ox))].astype(float)
            colour[int(row), d] = inner[:3] / max(inner[3], 1)
    for k in np.flatnonzero(~valid):
        offset[k] = 0
        colour[k] = colour[min(np.flatnonzero(valid), key=lambda m: (abs(m - k), m))]
    return colour, offset, valid


@pytest.mark.parametrize(
    ("height", "width", "cell"), [(24, 24, 16), (21, 21, 15), (26, 22, 12), (15, 19, 17), (9, 9, 9)]
)
def test_every_side_is_what_one_meets_walking_in_from_outside(height: int, width: int, cell: int) -> None:
    fragments = [ragged(height, width, seed) for seed in range(3)]
    read = read_contours(puzzle_of(*fragments, cell=cell))
    for i, pixels in enumerate(fragments):
        for bearing in range(4):
            colour, offset, valid = slow_side(pixels, bearing, cell)
            side = 4 * i + bearing
            np.testing.assert_array_equal(read.valid[side], valid)
            np.testing.assert_allclose(read.offset[side], offset, atol=1e-6)
            np.testing.assert_allclose(read.colour[side], colour, atol=1e-6)
    assert not read.valid.all(), "the empty row must be met"


def test_a_hand_made_fragment_in_all_four_bearings() -> None:
    """An L of two colours in a 6 x 6 container with a cell of 4: east is full, north steps down, west is bitten."""
    pixels = np.zeros((6, 6, 4), dtype=np.uint8)
    pixels[1:5, 1:5] = (200, 0, 0, 255)
    pixels[1, 3:5] = 0  # north-east corner missing: the side north steps down, the side east loses its first row
    pixels[2, 5] = (0, 100, 0, 255)  # and one pixel sticks out east
    pixels[3, 1] = (10, 20, 30, OPAQUE - 1)  # not opaque enough: bitten from the west
    read = read_contours(puzzle_of(pixels, cell=4))
    assert read.cell == 4
    assert read.colour.shape == (4, 4, 3, 3)
    quarter = 4 * read.offset
    np.testing.assert_allclose(quarter[z4.E], [-2, 1, 0, 0])
    np.testing.assert_allclose(quarter[z4.N], [0, 0, -1, -1])
    np.testing.assert_allclose(quarter[z4.W], [0, -1, 0, 0])  # rows run from south to north
    np.testing.assert_allclose(quarter[z4.S], [0, 0, 0, 0])
    assert read.valid.all()
    np.testing.assert_allclose(read.colour[z4.E, 1, 0], [0, 100 / 255, 0])
    np.testing.assert_allclose(read.colour[z4.E, 1, 1], [200 / 255, 0, 0])


@given(st.integers(0, 3), st.integers(8, 21), st.integers(8, 21), st.sampled_from([None, 7, 12]), st.booleans())
def test_storing_a_fragment_turned_permutes_its_sides_bit_for_bit(
    turns: int, height: int, width: int, cell: int | None, straight: bool
) -> None:
    one, two = ragged(height, width, 1, 1.2), ragged(height, width, 2, 1.2)
    read = read_contours(puzzle_of(one, two, cell=cell), straight)
    turned = read_contours(puzzle_of(one, z4.turn_pixels(two, turns), cell=cell), straight)
    # Stored turned by a, what faced bearing b faces b + a.
    sides = np.concatenate([np.arange(4), 4 + (np.arange(4) - turns) % 4])
    for name in ("colour", "offset", "valid"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(read, name)[sides])


def cut(damage: Damage, cell: int) -> tuple[Puzzle, np.ndarray]:
    puzzle, truth = cut_picture(read_rgb(picture("chelsea")), CutOptions(Grid(2, 3), cell, damage), 3)
    assert len({placed.turns for placed in truth.placement.values()}) > 2
    return puzzle, touching(truth.placement, puzzle.ids)


@pytest.mark.parametrize("cell", [64, 63, 40])
def test_sides_that_touch_fit_into_each_other(cell: int) -> None:
    """Where one fragment sticks out, its neighbour stands back: without erosion the gap is 0 up to a pixel."""
    puzzle, partner = cut(Damage(shape=12), cell)
    read = read_contours(puzzle)
    inner = np.flatnonzero(partner >= 0)
    gap = -(read.offset[inner] + facing(read.offset)[partner[inner]]) * read.cell
    # The curves' ends cross rows that belong to a third fragment: away from corners the rows are the same seam.
    middle = slice(cell // 5, -(cell // 5))
    assert np.median(gap[:, middle]) < 1.5
    assert np.quantile(np.abs(gap[:, middle]), 0.9) < 2.5, "steep curves: a pixel along is a pixel across"
    assert np.ptp(read.offset[inner]) * read.cell > 8, "the curves must curve"
    wrong = -(read.offset[inner] - facing(read.offset)[partner[inner]]) * read.cell
    assert np.quantile(np.abs(wrong[:, middle]), 0.9) > 5, "the other sign does not fit"


def test_erosion_leaves_a_gap_and_colours_agree_across_a_seam() -> None:
    worn, _ = cut(Damage(erosion=0.1), 64)
    assert read_contours(worn).offset.mean() < -0.02
    clean, partner = cut(Damage(), 64)
    read = read_contours(clean)
    inner = np.flatnonzero(partner >= 0)
    edge = read.colour[:, :, 0]
    across = np.abs(edge[inner] - facing(edge)[partner[inner]]).mean()
    same_way = np.abs(edge[inner] - edge[partner[inner]]).mean()
    assert across < 0.06 < same_way
    np.testing.assert_array_equal(read.offset, 0)


def test_reading_at_the_straight_side_reads_background_beside_a_curve() -> None:
    pixels = np.zeros((12, 12, 4), dtype=np.uint8)
    pixels[2:10, 2:10] = 255
    pixels[2:6, 8:10] = 0  # the north-east quarter stands back by two pixels
    along, straight = (read_contours(puzzle_of(pixels, cell=8), straight=way) for way in (False, True))
    np.testing.assert_allclose(along.colour[z4.E], 1)
    np.testing.assert_allclose(straight.colour[z4.E, :4, :2], 0)
    np.testing.assert_allclose(straight.colour[z4.E, 4:], 1)
    np.testing.assert_array_equal(along.offset, straight.offset)
    np.testing.assert_allclose(8 * along.offset[z4.E], [-2] * 4 + [0] * 4)


@pytest.mark.parametrize("side", [9, 28, 64, 65, 100, 150])
def test_rectangles_without_alpha_fill_their_cell(side: int) -> None:
    pixels = np.full((side, side, 4), 255, dtype=np.uint8)
    pixels[..., 0] = np.arange(side)[:, None] * 255 // side
    read = read_contours(puzzle_of(pixels))
    assert read.cell == side
    assert read.valid.shape == (4, min(side, MAX_SAMPLES))
    assert read.colour.shape[2] == max(3, round(BAND * side))
    assert read.straight
    assert read.widest_gap == 0
    red = read.colour[..., 0]
    assert np.all(np.diff(red[z4.E, :, 0]) >= 0), "rows of the side east run from north to south"
    assert np.all(np.diff(red[z4.W, :, 0]) <= 0)
    np.testing.assert_allclose(facing(red)[z4.W], red[z4.E], atol=1e-6)
    assert np.all(np.diff(red[z4.N, 0]) >= 0), "and depth runs inwards"


def test_sizes_may_differ_and_the_cell_is_estimated() -> None:
    sizes = [(30, 30), (28, 32), (31, 30), (60, 60), (30, 29)]
    pixels = [np.full((*size, 4), 255, dtype=np.uint8) for size in sizes]
    pixels[3][:15] = pixels[3][-15:] = pixels[3][:, :15] = pixels[3][:, -15:] = 0  # 30 x 30 in a wide margin
    puzzle = puzzle_of(*pixels)
    assert estimate_cell(puzzle) == 30
    read = read_contours(puzzle)
    np.testing.assert_allclose(30 * read.offset[0:4], 0, atol=1e-5)
    np.testing.assert_allclose(30 * read.offset[12:16], 0, atol=1e-5)
    inside = 30 * read.offset[4:8][:, 5:-5]  # 28 rows in a cell of 30
    np.testing.assert_allclose(inside.mean(axis=1), [1, -1, 1, -1], atol=1e-5)
    assert not read.valid[4].all(), "a side lower than the cell has no first and last row"
    assert not read.straight or read.widest_gap > 0.75


def test_a_hint_wins_over_the_estimate_and_cannot_ask_for_the_moon() -> None:
    pixels = np.full((20, 20, 4), 255, dtype=np.uint8)
    assert read_contours(puzzle_of(pixels, cell=10)).cell == 10
    np.testing.assert_allclose(read_contours(puzzle_of(pixels, cell=10)).offset, 0.5)
    assert not read_contours(puzzle_of(pixels, cell=80)).valid.all()
    for cell in (0, 81, 1 << 20):
        with pytest.raises(InputError, match=f"must be of 1 to 80 pixels, 4 times .* Got {cell}"):
            read_contours(puzzle_of(pixels, cell=cell))
    near = read_contours(puzzle_of(pixels, cell=1))
    assert near.valid.shape == (4, 1)
    assert np.isfinite(near.colour).all()


def test_what_shows_nothing_is_refused_by_name() -> None:
    shown, hidden = np.full((8, 8, 4), 255, dtype=np.uint8), np.full((8, 8, 4), OPAQUE - 1, dtype=np.uint8)
    with pytest.raises(ImageError, match=r"'f7' of 'puzzle' must have opaque pixels .* highest alpha is 223"):
        read_contours(puzzle_of(shown, hidden))
    with pytest.raises(InputError, match=r"at least one fragment\. It holds none"):
        read_contours(puzzle_of())


def test_straight_sides_are_told_from_curved_ones() -> None:
    """Which calibration applies is read off the contours."""
    offset = np.zeros((8, 16), dtype=np.float32)
    valid = np.ones((8, 16), dtype=bool)
    colour = np.zeros((8, 16, 3, 3), dtype=np.float32)

    def contours() -> Contours:
        return Contours(16.0, colour, offset, valid)

    assert contours().straight
    assert contours().n == 2
    offset[3] = -2 / 16
    assert contours().straight
    assert contours().widest_gap == pytest.approx(2)
    valid[3, :2] = False
    offset[3, :2] = 0
    assert contours().straight, "what is not valid does not count"
    offset[3, 8] = -0.5 / 16
    assert not contours().straight


def test_a_straight_side_is_smoother_than_a_curved_one() -> None:
    """The picture's edge is cut straight: of a curved puzzle, sides without a neighbour are the smooth ones."""
    puzzle, truth = cut_picture(
        read_rgb(picture("coffee")), CutOptions(Grid(3, 4), cell=64, damage=Damage(shape=16)), 3
    )
    own = read_contours(puzzle).own_features
    outer = touching(truth.placement, puzzle.ids) < 0
    assert own.shape == (48, 3)
    assert (own[:, 0] == 1).all()
    assert np.median(own[:, 2]) == pytest.approx(0, abs=1e-6)
    assert own[outer, 1].max() < own[~outer, 1].min()


def test_roughness_does_not_see_the_ends() -> None:
    offset = np.stack([np.where(np.arange(20) < 8, 0.3, 0.02), np.zeros(20), 0.1 * (np.arange(20) % 2), np.ones(20)])
    valid = np.ones((4, 20), dtype=bool)
    valid[3] = False
    made = Contours(20.0, np.zeros((4, 20, 3, 3), np.float32), offset.astype(np.float32), valid)
    np.testing.assert_allclose(np.exp(made.own_features[:, 1]), [0.01, 0.01, 0.06, 0.01], atol=1e-6)
