"""The moving picture: it starts with the fragments as presented, ends with the assembled picture, and turns rightly."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import sample
from PIL import Image

from jigsync import cli
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.solution_file import save_solution
from jigsync.io.truth_file import save_truth
from jigsync.render import animate
from jigsync.render.animate import MOVES, animation_bytes, frames
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.errors import OptionError
from jigsync.values.placement import Placed

SOLUTION = Solution("ok", "", sample.GRID, sample.PLACEMENT)


def enlarged() -> animate.Puzzle:
    """The sample with 40 pixels for each of its own: resampling blurs only the borders of these squares."""
    puzzle = sample.puzzle()
    large = tuple(pixels.repeat(40, axis=0).repeat(40, axis=1) for pixels in puzzle.fragments.pixels)
    return animate.Puzzle(type(puzzle.fragments)(puzzle.ids, large), 40 * sample.CELL, 40 * sample.CELL)


def test_the_last_frame_is_the_assembled_picture() -> None:
    shown = list(frames(enlarged(), SOLUTION, width=600))
    assert len(shown) == 1 + sum(MOVES.values())
    last = np.asarray(shown[-1].picture)
    rows, cols = (np.flatnonzero((np.ptp(last, axis=2) > 30).any(axis=axis)) for axis in (1, 0))
    box = last[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    height, width = sample.GRID.rows * sample.CELL, sample.GRID.cols * sample.CELL
    assert box.shape[1] / box.shape[0] == pytest.approx(width / height, rel=0.02)
    centres = [
        ((np.arange(n) + 0.5) / n * side).astype(int) for n, side in zip((height, width), box.shape, strict=False)
    ]
    assert np.abs(box[np.ix_(*centres)].astype(int) - sample.picture()[..., :3]).max() <= 3


def test_the_first_frame_is_as_presented() -> None:
    first = np.asarray(next(iter(frames(enlarged(), SOLUTION, width=900))).picture)
    # Six fragments in rows of three: the picture is wider than high.
    for k, name in enumerate(sample.PLACEMENT):
        row, col = divmod(k, 3)
        centre = [
            round((place + 0.5) * side / n) for place, n, side in zip((row, col), (2, 3), first.shape, strict=False)
        ]
        middle = sample.stored(name)[2, 2, :3].astype(int)
        assert np.abs(first[centre[0], centre[1]].astype(int) - middle).max() <= 3


@pytest.mark.parametrize("turns", range(4))
def test_fragments_are_turned_as_z4_says(turns: int) -> None:
    pixels = np.zeros((11, 11, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    pixels[2, 7, :3] = 200
    canvas = np.zeros((31, 41, 4), dtype=np.uint8)
    animate._put(canvas, pixels, animate._short(turns), 1.0, np.array([20.5, 15.5]))
    assert np.array_equal(canvas[10:21, 15:26], z4.turn_pixels(pixels, turns))
    assert not canvas[:10].any()


def test_files_are_endless_and_timed() -> None:
    shown = list(frames(sample.puzzle(), SOLUTION, width=60))
    for suffix in animate.FORMATS:
        with Image.open(io.BytesIO(animation_bytes(shown, suffix))) as picture:
            assert picture.size == shown[0].picture.size
            assert picture.info["loop"] == 0
            assert picture.n_frames > 20
    with pytest.raises(OptionError, match=r"must be a \.webp or \.gif"):
        animation_bytes(shown, ".mp4")


def test_an_unplaced_fragment_stays(tmp_path: Path) -> None:
    partly = Solution("partial", "", sample.GRID, {**sample.PLACEMENT, "f07": Placed.nowhere()})
    shown = list(frames(enlarged(), partly, width=300))
    first, last = (np.asarray(shown[k].picture).astype(int) for k in (0, -1))
    height, width = (side // 6 for side in first.shape[:2])
    assert (
        np.abs(
            first[height - 3 : height + 3, width - 3 : width + 3] - last[height - 3 : height + 3, width - 3 : width + 3]
        ).max()
        < 3
    )


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_puzzle(tmp_path / "puzzle", sample.puzzle())
    save_truth(tmp_path / "truth.json", sample.truth())
    save_solution(tmp_path / "solution.json", SOLUTION.turned(3))
    show = ["show", str(tmp_path / "puzzle"), "--solution", str(tmp_path / "solution.json")]
    best = ["--truth", str(tmp_path / "truth.json"), "--gauge", "best4"]
    assert cli.main([*show, *best, "--animate", str(tmp_path / "a.webp"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["turned_by"] == 1
    assert told["bytes"] == (tmp_path / "a.webp").stat().st_size
    assert cli.main([*show, "--animate", str(tmp_path / "a.mp4")]) == 2
    assert "must end in .webp or .gif" in capsys.readouterr().err
    assert cli.main([*show, "--animate", str(tmp_path / "a.gif"), "--gaps"]) == 2
    assert "--animate needs --solution" in capsys.readouterr().err
