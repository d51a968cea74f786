"""Square puzzles of the literature, what touches in a placement, and the benchmark command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jigsync import cli, data
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.io.images import read_rgb
from jigsync.score.touching import neighbour_accuracy, touching
from jigsync.solution import Solution
from jigsync.studies.squares import same_pixels
from jigsync.values import z4
from jigsync.values.errors import ImageError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed, turn_placement
from jigsync.values.sides import side_at


def test_squares_are_the_pictures_own_pixels() -> None:
    rgb = read_rgb(data.picture("coffee"))
    puzzle, truth = cut_squares(rgb, SquareOptions(50), seed=3)
    assert truth.grid == Grid(rgb.shape[0] // 50, rgb.shape[1] // 50)
    assert {placed.turns for placed in truth.placement.values()} == {0, 1, 2, 3}
    for name, placed in truth.placement.items():
        assert placed.row is not None
        assert placed.col is not None
        cell = rgb[50 * placed.row : 50 * placed.row + 50, 50 * placed.col : 50 * placed.col + 50]
        np.testing.assert_array_equal(z4.turn_pixels(puzzle.fragments[name], placed.turns)[..., :3], cell)


def test_eroded_rims_are_transparent_and_a_grid_resizes() -> None:
    puzzle, truth = cut_squares(read_rgb(data.picture("coffee")), SquareOptions(40, Grid(3, 4), erode=5, turns=False))
    assert truth.grid == Grid(3, 4)
    assert all(placed.turns == 0 for placed in truth.placement.values())
    for pixels in puzzle.fragments.pixels:
        assert (pixels[5:35, 5:35, 3] == 255).all()
        assert pixels[..., 3].sum() == 255 * 900
        assert not pixels[:5].any()


@pytest.mark.parametrize("options", [{"side": 2}, {"side": 2000}, {"side": 28, "erode": 7}, {"side": 28, "erode": -1}])
def test_impossible_squares(options: dict[str, int]) -> None:
    with pytest.raises(OptionError):
        SquareOptions(**options)


def test_a_picture_too_small_says_so() -> None:
    with pytest.raises(ImageError, match="20 x 30"):
        cut_squares(np.zeros((30, 20, 3), np.uint8), SquareOptions(28), name="stamp.png")


PLACEMENT = {
    "b": Placed.at(0, 0, 1),
    "k": Placed.at(0, 1, 3),
    "m": Placed.at(1, 1, 2),
    "z": Placed.nowhere(),
}


def test_touching_by_hand() -> None:
    """b and k side by side, m below k, z nowhere; bearings in each fragment's own frame."""
    ids = ["z", "b", "k", "m"]
    touch = touching(PLACEMENT, ids)
    assert touch[side_at(1, 1, z4.E)] == side_at(2, 3, z4.W)
    assert touch[side_at(3, 2, z4.N)] == side_at(2, 3, z4.S)
    assert np.sum(touch >= 0) == 4
    for s in np.flatnonzero(touch >= 0):
        assert touch[touch[s]] == s


@pytest.mark.parametrize("turns", range(4))
def test_neighbours_do_not_depend_on_the_gauge(turns: int) -> None:
    ids = list(PLACEMENT)
    turned, _ = turn_placement(PLACEMENT, Grid(2, 3), turns)
    assert neighbour_accuracy(turned, PLACEMENT, ids) == 1.0
    wrong = {**turned, "m": Placed.at(turned["m"].row, turned["m"].col, (turned["m"].turns + 1) % 4)}
    assert neighbour_accuracy(wrong, PLACEMENT, ids) == 0.5


def test_identical_fragments_are_interchangeable_in_same_pixels() -> None:
    rgb = np.zeros((40, 60, 3), np.uint8)
    rgb[:20, :20] = np.arange(1200).reshape(20, 20, 3) % 251
    puzzle, truth = cut_squares(rgb, SquareOptions(20), seed=1)
    blank = [name for name, placed in truth.placement.items() if placed.cell != (0, 0)]
    swapped = dict(truth.placement)
    swapped[blank[0]], swapped[blank[1]] = swapped[blank[1]], swapped[blank[0]]
    assert same_pixels(puzzle, Solution("ok", "", truth.grid, swapped), truth) == 1.0
    only = next(name for name in truth.placement if name not in blank)
    swapped[blank[2]], swapped[only] = swapped[only], swapped[blank[2]]
    assert same_pixels(puzzle, Solution("ok", "", truth.grid, swapped), truth) == pytest.approx(4 / 6)


def test_bench_squares_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("coffee", "astronaut"):
        Image.open(data.picture(name)).resize((252, 196)).save(tmp_path / f"{name}.png")
    assert cli.main(["bench-squares", str(tmp_path), "--json", "--limit", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["mean"]["pictures"] == 1
    assert result["rows"][0]["picture"] == "astronaut.png"
    assert result["rows"][0]["fragments"] == 63
    assert result["mean"]["direct"] > 0.9
    assert cli.main(["bench-squares", str(tmp_path), "--grid", "3", "--piece", "40", "--erode", "2", "--no-turns"]) == 0
    shown = capsys.readouterr().out
    assert "mean of 2" in shown
    assert cli.main(["bench-squares", str(tmp_path / "nowhere")]) == 2
    assert cli.main(["bench-squares", str(tmp_path), "--erode", "14"]) == 2
