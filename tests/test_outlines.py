"""Outlines over a photograph: found, put right, cut along without resampling."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scans import apart, cut, lay

from jigsync.scan.outlines import brushed, cut_outlines, find_outlines, merged, split, tidied
from jigsync.values.errors import ImageError, InputError

SQUARE = np.array([[10.0, 10.0], [60.0, 10.0], [60.0, 50.0], [10.0, 50.0]])


def area(outline: np.ndarray) -> float:
    return float(cv2.contourArea(np.rint(outline).astype(np.int32)))


def photograph() -> np.ndarray:
    """6 fragments at any angle on a plain ground."""
    rgb = lay(cut(), apart([30.0, -4.0, 0.0, 75.0, 0.0, -20.0]))
    return np.dstack([rgb[..., :3], np.full(rgb.shape[:2], 255, dtype=np.uint8)])


def test_every_fragment_is_found_and_cut_as_photographed() -> None:
    rgba = photograph()
    found = find_outlines(rgba, "table.png")
    assert len(found.outlines) == len(found.notes) == 6
    puzzle = cut_outlines([(rgba, found.outlines)], "table")
    assert puzzle.ids == tuple(f"f{k:03d}" for k in range(6))
    for outline, pixels in zip(found.outlines, puzzle.fragments.pixels, strict=True):
        inside = pixels[..., 3] == 255
        assert abs(inside.sum() / area(outline) - 1) < 0.2
        # The stored pixels are the photograph's own, wherever they are whole.
        height, width = pixels.shape[:2]
        windows = np.lib.stride_tricks.sliding_window_view(rgba[..., 0], (height, width))
        near = np.floor(outline.min(axis=0)).astype(int)
        offsets = [(near[1] + dy, near[0] + dx) for dy in range(-3, 4) for dx in range(-3, 4)]
        at = [o for o in offsets if 0 <= o[0] < windows.shape[0] and 0 <= o[1] < windows.shape[1]]
        assert any(np.array_equal(windows[o][inside], pixels[..., 0][inside]) for o in at)


def test_two_photographs_make_one_puzzle() -> None:
    rgba = photograph()
    outlines = find_outlines(rgba, "a").outlines
    puzzle = cut_outlines([(rgba, outlines[:2]), (rgba, outlines[2:])], "both")
    assert len(puzzle) == 6
    with pytest.raises(InputError, match="at least two fragments"):
        cut_outlines([(rgba, outlines[:1])], "one")


def test_a_background_that_is_pointed_at() -> None:
    """The frame of the photograph is of another colour than the table: only a person can say which is which."""
    rgba = photograph()
    framed = np.pad(rgba, ((30, 30), (30, 30), (0, 0)), constant_values=255)
    ground = tuple(int(v) for v in rgba[2, 2, :3])
    framed[:30, :, :3] = framed[-30:, :, :3] = framed[:, :30, :3] = framed[:, -30:, :3] = (20, 10, 90)
    assert ground != (20, 10, 90)
    assert len(find_outlines(framed, "framed").outlines) != 6
    told = find_outlines(framed, "framed", (33, 33)).outlines
    middles = [outline.mean(axis=0) - 30 for outline in told]
    for outline in find_outlines(rgba, "bare").outlines:
        assert min(np.hypot(*(middle - outline.mean(axis=0))) for middle in middles) < 3


def test_nothing_on_a_photograph() -> None:
    blank = np.full((80, 90, 4), 255, dtype=np.uint8)
    with pytest.raises(ImageError, match="No separate fragments were found in 'blank'"):
        find_outlines(blank, "blank")


def test_merged_closes_the_gap() -> None:
    other = SQUARE + np.array([56.0, 0.0])  # 6 px apart
    assert 2 * area(SQUARE) < area(merged([SQUARE, other])) < 2 * area(SQUARE) + 8 * 42


def test_split_along_a_line_and_not_beside_it() -> None:
    left, right = split(SQUARE, np.array([[30.0, 0.0], [32.0, 30.0], [30.0, 60.0]]))
    assert area(left) + area(right) == pytest.approx(area(SQUARE), rel=0.1)
    assert (area(left), area(right)) == (pytest.approx(820, rel=0.1), pytest.approx(1180, rel=0.1))
    with pytest.raises(InputError, match="must go through"):
        split(SQUARE, np.array([[0.0, 0.0], [5.0, 60.0]]))


def test_a_brush_adds_and_takes_away() -> None:
    stroke = np.array([[60.0, 30.0], [80.0, 30.0]])
    [more] = brushed(SQUARE, stroke, 6.0, add=True)
    assert area(more) > area(SQUARE) + 150
    assert area(brushed(more, stroke + np.array([6.0, 0.0]), 8.0, add=False)[0]) < area(more) - 150
    parts = brushed(SQUARE, np.array([[35.0, 0.0], [35.0, 60.0]]), 3.0, add=False)
    assert len(parts) == 2
    [new] = brushed(None, stroke, 6.0, add=True)
    assert area(new) == pytest.approx(20 * 12 + np.pi * 36, rel=0.2)
    assert brushed(SQUARE, SQUARE.mean(axis=0)[None], 60.0, add=False) == []


def test_a_loop_drawn_by_hand_is_tidied() -> None:
    turns = np.linspace(0, 2 * np.pi, 200)
    drawn = 50 + 20 * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    assert area(tidied(drawn)) == pytest.approx(np.pi * 400, rel=0.05)
    with pytest.raises(InputError, match="holds nothing"):
        tidied(np.array([[1.0, 1.0], [30.0, 1.0], [1.0, 1.0]]))
