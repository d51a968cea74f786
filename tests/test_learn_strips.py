"""Strips along the contour: turned, mirrored and scaled fragments give the strips they must."""

from __future__ import annotations

import numpy as np
import pytest
from sides import cut

from jigsync.measure import strips
from jigsync.measure.strips import CELL, CHANNELS, COLOUR, OFFSET, ROWS, VALID, prepared, read_strips
from jigsync.values.puzzle import Fragments, Puzzle


def one(pixels: np.ndarray, cell: int) -> Puzzle:
    return Puzzle(Fragments(("f07",), (np.ascontiguousarray(pixels),)), cell, None)


def square(side: int, cell: int, container: int) -> np.ndarray:
    """A noisy opaque square of `side` pixels in the middle of its container."""
    pixels = np.zeros((container, container, 4), dtype=np.uint8)
    at = (container - side) // 2
    rng = np.random.default_rng(3)
    pixels[at : at + side, at : at + side, :3] = rng.integers(0, 256, (side, side, 3))
    pixels[at : at + side, at : at + side, 3] = 255
    return pixels


def test_a_square_is_read_from_its_rim_inwards() -> None:
    pixels = square(60, CELL, 160)
    got = read_strips(one(pixels, CELL), CELL)
    assert got.shape == (4, CHANNELS, ROWS)
    inside = slice((ROWS - 60) // 2, (ROWS + 60) // 2)
    assert (got[:, VALID, inside] == 255).all()
    assert (got[:, VALID].astype(bool).sum(axis=1) == 60).all()
    # Two pixels are missing: minus four half pixels.
    assert (got[:, OFFSET, inside] == 128 - 4).all()
    east = got[0, COLOUR][:, inside].reshape(-1, 3, 60)
    np.testing.assert_array_equal(east[0].T, pixels[50:110, 109, :3])
    np.testing.assert_array_equal(east[7].T, pixels[50:110, 102, :3])


@pytest.mark.parametrize("cell", [64, 128])
@pytest.mark.parametrize("turns", range(4))
def test_a_turned_fragment_has_its_strips_moved_on(turns: int, cell: int) -> None:
    puzzle, _ = cut("medium", (3, 4), cell)
    pixels = puzzle.fragments.pixels[5]
    upright = read_strips(one(pixels, cell), float(cell))
    turned = read_strips(one(np.rot90(pixels, turns), cell), float(cell))
    # The side with bearing a has bearing a + turns afterwards.
    np.testing.assert_array_equal(np.roll(upright, turns, axis=0), turned)


def test_a_mirrored_fragment_has_its_strips_upside_down() -> None:
    puzzle, _ = cut("heavy", (3, 4), 64)
    pixels = puzzle.fragments.pixels[2]
    plain = read_strips(one(pixels, 64), 64.0)
    mirrored = read_strips(one(pixels[::-1], 64), 64.0)
    np.testing.assert_array_equal(plain[[0, 3, 2, 1]][..., ::-1], mirrored)


def test_the_cell_size_hardly_matters() -> None:
    small = read_strips(one(square(48, CELL, 96), CELL), CELL).astype(int)
    doubled = np.repeat(np.repeat(square(48, CELL, 96), 2, axis=0), 2, axis=1)
    np.testing.assert_array_equal(read_strips(one(doubled, 2 * CELL), 2.0 * CELL).astype(int), small)


def test_blocks_of_fragments_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle, _ = cut("light", (3, 4), 48)
    whole = read_strips(puzzle, 48.0)
    monkeypatch.setattr(strips, "BLOCK", 5)
    np.testing.assert_array_equal(read_strips(puzzle, 48.0), whole)


def test_prepared_strips_do_not_know_exposure() -> None:
    puzzle, _ = cut("medium", (3, 4), 48)
    raw = read_strips(puzzle, 48.0)
    raw[:, COLOUR] = raw[:, COLOUR] // 4 * 2
    darker = raw.copy()
    darker[:, COLOUR] = raw[:, COLOUR] // 2
    np.testing.assert_allclose(prepared(raw), prepared(darker), atol=1e-3)
    assert np.isfinite(prepared(np.zeros_like(raw))).all()
