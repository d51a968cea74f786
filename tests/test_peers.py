"""benchmarks/peers.py: another program's picture is read back rightly, and what cannot be run is said."""

from __future__ import annotations

import argparse
import importlib.util
import json
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from jigsync import data
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.io.images import read_rgb
from jigsync.values.layout import Grid

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "peers.py"
GRID = Grid(3, 4)


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["peers"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def squares(erode: int = 0):  # type: ignore[no-untyped-def]
    return cut_squares(read_rgb(data.picture("coffee")), SquareOptions(20, GRID, erode, turns=False), 5)


def fake_gaps(folder: Path, order: list[int]) -> list[str]:
    """A program with gaps's interface that puts the k-th square of its picture at slot order[k]."""
    script = folder / "gaps"
    script.write_text(
        f"""#!{sys.executable}
import sys
import numpy as np
from PIL import Image
words = [word for word in sys.argv[1:] if not word.startswith("--")]
size = int([word for word in sys.argv if word.startswith("--size=")][0][7:])
assert words[0] == "run"
shown = np.asarray(Image.open(words[1]))
assert shown.shape == ({GRID.rows} * size, {GRID.cols} * size, 3)
out = shown.copy()
for k, slot in enumerate({order}):
    (r, c), (y, x) = divmod(k, {GRID.cols}), divmod(slot, {GRID.cols})
    out[y * size : (y + 1) * size, x * size : (x + 1) * size] = (
        shown[r * size : (r + 1) * size, c * size : (c + 1) * size])
Image.fromarray(out).save(words[2])
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return [str(script)]


@pytest.mark.parametrize("erode", [0, 2])
def test_a_peer_that_is_right_is_scored_right(peers: ModuleType, tmp_path: Path, erode: int) -> None:
    puzzle, truth = squares(erode)
    order = [GRID.slot(*truth.placement[name].cell) for name in puzzle.ids]
    found = peers.run_gaps(fake_gaps(tmp_path, order), 1, 1, puzzle, truth)
    assert (found.direct, found.neighbour) == (1, 1)
    swapped = [order[1], order[0], *order[2:]]
    assert peers.run_gaps(fake_gaps(tmp_path, swapped), 1, 1, puzzle, truth).direct == pytest.approx(10 / 12)


def test_every_fragment_is_read_back_once(peers: ModuleType) -> None:
    same = [np.zeros((8, 8, 3), np.uint8)] * 11 + [np.full((8, 8, 3), 9, np.uint8)]
    shown = peers.joined(same[::-1], GRID)
    placement = peers.read_back(shown, same, [f"f{k}" for k in range(12)], GRID)
    assert placement["f11"].cell == (0, 0)
    assert len({placed.cell for placed in placement.values()}) == 12


def test_a_peer_that_fails_says_so(peers: ModuleType, tmp_path: Path) -> None:
    puzzle, truth = squares()
    with pytest.raises(peers.PeerError, match="no solution"):
        peers.run_gaps(["true"], 1, 1, puzzle, truth)
    with pytest.raises(peers.PeerError, match="given up on"):
        peers.run_gaps([str(tmp_path / "nothing")], 1, 1, puzzle, truth)
    with pytest.raises(peers.PeerError, match="the puzzle was another"):
        peers.read_back(np.zeros((8, 8, 3), np.uint8), [np.zeros((8, 8, 3), np.uint8)] * 12, puzzle.ids, GRID)


def test_shapes_are_near_what_was_asked(peers: ModuleType) -> None:
    for n in (9, 25, 100, 400, 1600, 5000):
        grid = peers.shape(n)
        assert abs(grid.size - n) <= 0.02 * n
        assert grid.rows <= grid.cols <= 2 * grid.rows


def test_ours_are_run_on_the_same_puzzles(peers: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    puzzle, truth = squares()
    found = peers.run_ours("jigsync:boundary", puzzle, truth)
    assert found.direct == 1
    half = peers.Result(0.5, 0.5, 9.0, 2 * found.cpu)
    table = peers.compared("a title", {"first": [found], "second": [half]}, "a note")
    assert [row[0] for row in table.rows] == ["first", "second"]
    assert list(table.rows[1][-2:]) == ["0.50", "2.00"]
    table.show()
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-2]) == ("a title", "a note")
    assert lines[1].split()[:2] == ["solver", "direct"]


def test_growth_is_measured_in_processes_of_their_own(peers: ModuleType, tmp_path: Path) -> None:
    options = ["--erode", "", "--loose", "", "--pieces", "", "--sizes", "4,6", "--side", "20"]
    options += ["--growth", "jigsync:boundary"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options, "--out", str(tmp_path / "peers.json")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "peers.json").read_text())
    (table,) = kept["tables"]
    assert [row[:2] for row in table["rows"]] == [["2x2", "4"], ["2x3", "6"]]
    assert all(float(row[4]) > 20 for row in table["rows"]), "megabytes of a whole process"
    assert str(tmp_path) not in kept["command"]
    assert kept["command"].startswith("python benchmarks/peers.py --grid 8x10")


def test_torn_pieces_and_squares_at_any_angle(peers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "FREE", ("free:contours-plain",))
    monkeypatch.setattr(peers, "names", lambda: ("coffee",))
    squared, torn = peers.compare_free(argparse.Namespace(loose="2", pieces="4", loose_side=48))
    assert squared.title.startswith("2x2 clean squares of 48 pixels at any angle")
    assert torn.title.startswith("4 torn pieces")
    assert list(torn.heads[:3]) == ["solver", "right", "contacts"]
    assert list(torn.rows[0][-2:]) == ["1.00", "1.00"]
