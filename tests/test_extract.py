"""One scan of many fragments: found, parted, straightened, and solvable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scans import GREEN, Laid, apart, cut, lay

import jigsync
from jigsync.cli import main
from jigsync.io.images import write_png
from jigsync.scan.extract import Extracted, extract_fragments
from jigsync.scan.skew import skew_of
from jigsync.values.errors import ImageError

SKEWS = [3.2, -5.1, 0.0, 7.4, -1.3, -8.0]


def extracted(scan: NDArray[np.uint8], straighten: bool = True) -> Extracted:
    opaque = np.full((*scan.shape[:2], 1), 255, dtype=np.uint8)
    return extract_fragments(np.concatenate([scan, opaque], axis=2), "scan.png", straighten=straighten)


def test_fragments_are_found_in_reading_order_and_their_skew_is_reported() -> None:
    found = extracted(lay(cut(), apart(SKEWS), drift=0.1, noise=2.0, specks=9))
    assert found.puzzle.ids == tuple(f"f{k:03d}" for k in range(6))
    skews = [extraction.skew for extraction in found.fragments.values()]
    assert skews == pytest.approx(SKEWS, abs=0.4)
    assert [e.straightened for e in found.fragments.values()] == [abs(s) > 0.2 for s in SKEWS]
    assert 1 <= found.specks <= 9


def test_a_straightened_fragment_is_the_one_that_was_laid() -> None:
    puzzle = cut()
    found = extracted(lay(puzzle, apart(SKEWS)))
    for original, got in zip(puzzle.fragments.pixels, found.puzzle.fragments.pixels, strict=True):
        first, second = (
            pixels[(half := len(pixels) // 2) - 20 : half + 20, half - 20 : half + 20, :3].astype(float)
            for pixels in (original, got)
        )
        assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.93
        assert np.count_nonzero(got[..., 3] > 128) == pytest.approx(62 * 62, rel=0.04)


def test_a_fragment_that_lies_straight_keeps_its_pixels() -> None:
    puzzle = cut()
    found = extracted(lay(puzzle, apart([0.0] * 6)))
    assert not any(extraction.straightened for extraction in found.fragments.values())
    for original, got in zip(puzzle.fragments.pixels, found.puzzle.fragments.pixels, strict=True):
        inner, size = 50, len(got)
        first = original[(len(original) - inner) // 2 :, (len(original) - inner) // 2 :][:inner, :inner]
        second = got[(size - inner) // 2 :, (size - inner) // 2 :][:inner, :inner]
        assert np.array_equal(first, second)


def test_skew_is_reported_without_straightening() -> None:
    found = extracted(lay(cut(), apart(SKEWS)), straighten=False)
    assert [e.skew for e in found.fragments.values()] == pytest.approx(SKEWS, abs=0.4)
    assert not any(e.straightened for e in found.fragments.values())


def test_touching_fragments_are_parted_at_their_necks() -> None:
    places = apart([0.0, 2.0, 0.0, -3.0, 0.0, 4.0])
    places[1] = Laid(1.55, 1.98, 2.0)  # overlaps half of the side of the first
    places[3] = Laid(places[4].row + 0.97, places[4].col - 0.97)  # touches the corner of the next
    found = extracted(lay(cut(), places))
    assert len(found.puzzle) == 6
    areas = [np.count_nonzero(pixels[..., 3] > 128) for pixels in found.puzzle.fragments.pixels]
    assert min(areas) > 0.8 * 62**2
    assert max(areas) < 1.15 * 62**2
    assert sum("touched" in note for e in found.fragments.values() for note in e.notes) >= 4


def test_fragments_that_share_a_whole_side_are_named() -> None:
    places = apart([0.0] * 6)
    places[1] = Laid(places[0].row, places[0].col + 1.0)
    found = extracted(lay(cut(), places))
    assert len(found.puzzle) == 5
    assert "2.0 times the usual area" in found.fragments["f000"].notes[0]


def test_a_fragment_at_the_edge_is_named() -> None:
    scan = lay(cut(), apart([0.0] * 6))
    found = extracted(scan[40:])
    assert ["edge of the scan" in " ".join(e.notes) for e in found.fragments.values()] == [True] * 3 + [False] * 3


def test_holes_of_the_backgrounds_colour_are_filled() -> None:
    scan = lay(cut(), apart([0.0] * 6))
    scan[54:74, 54:74] = GREEN
    whole = extracted(scan).puzzle.fragments["f000"]
    assert whole[len(whole) // 2, len(whole) // 2].tolist() == [*GREEN, 255]


def test_a_transparent_background_is_taken_at_its_alpha() -> None:
    scan = lay(cut(), apart([0.0] * 6))
    alpha = (np.abs(scan.astype(int) - GREEN).sum(axis=2) > 6).astype(np.uint8) * 255
    assert len(extract_fragments(np.dstack([scan, alpha]), "scan.png").puzzle) == 6


@pytest.mark.parametrize("severity", ["light", "medium"])
def test_torn_outlines_are_not_turned_by_guesses(severity: str) -> None:
    laid = [4.0, -3.0, 0.0, 5.0, -4.0, 0.0]
    found = extracted(lay(cut(severity=severity), apart(laid, pitch=2.2)))
    after = [
        abs(skew - (e.skew if e.straightened and e.skew is not None else 0.0))
        for skew, e in zip(laid, found.fragments.values(), strict=True)
    ]
    assert np.mean(after) < np.mean(np.abs(laid))


def test_a_disk_has_no_skew() -> None:
    y, x = np.mgrid[-40:41, -40:41]
    wobbly = np.hypot(x, y) < 30 + 3 * np.cos(3 * np.arctan2(y, x))
    assert skew_of(wobbly.astype(np.uint8)) is None


def test_no_plain_background() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (80, 90, 3), dtype=np.uint8)
    with pytest.raises(
        ImageError,
        match=r"'scan.png' must show its fragments on a plain background .* Only 3% of",
    ):
        extracted(noise.astype(np.uint8))


def test_an_empty_scan() -> None:
    with pytest.raises(ImageError, match="No separate fragments were found"):
        extracted(np.full((90, 70, 3), 200, dtype=np.uint8))


def test_command_line_makes_a_puzzle_that_solves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scan, out = tmp_path / "scan.png", tmp_path / "out"
    write_png(scan, lay(cut(cell=80), apart(SKEWS)))
    assert main(["extract", str(scan), "--out", str(out)]) == 0
    assert "Found 6 fragments" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["extract.json", "fragments", "puzzle.json"]
    assert main(["extract", str(scan), "--out", str(out), "--overwrite", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((out / "extract.json").read_text())
    assert report["fragments"]["f001"]["skew"] == pytest.approx(-5.1, abs=0.4)
    solution = jigsync.solve(jigsync.load(out))
    truth = jigsync.solve(cut(cell=80))
    assert solution.grid == truth.grid
    cells = [
        {name: (placed.cell, placed.turns) for name, placed in answer.placement.items()}
        for answer in (truth, *(solution.turned(turns) for turns in range(4)))
    ]
    assert cells[0] in cells[1:]


def test_command_line_refuses_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blank = tmp_path / "blank.png"
    write_png(blank, np.full((60, 60, 3), 255, dtype=np.uint8))
    assert main(["extract", str(blank), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()
