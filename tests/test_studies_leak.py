"""The leak study at a tiny size: JPEG's lattice tells the turn, a new digitisation hides it, changes keep it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jigsync import data
from jigsync.cutting.photometry import jpeg_round_trip
from jigsync.evaluate.progress import silent
from jigsync.io.images import read_rgb
from jigsync.measure.views import four_turns
from jigsync.studies import leak, reproduce
from jigsync.studies.jpeg_traces import LUMINANCE, says_odd, table_of
from jigsync.values import z4


class Sky:
    """A head that calls the view upright whose top is the brightest: no network."""

    def score(self, views: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top, bottom = np.split(views.mean(axis=(2, 3)), 2, axis=1)
        return (top.mean(axis=1) - bottom.mean(axis=1)).astype(np.float32), np.zeros((len(views), 3), np.float32)


def opaque(rgb: np.ndarray) -> np.ndarray:
    return np.concatenate([rgb, np.full((*rgb.shape[:2], 1), 255, np.uint8)], axis=2)


def test_the_tables_are_the_standard_ones() -> None:
    assert (table_of(50) == LUMINANCE).all()
    assert (LUMINANCE != LUMINANCE.T).any()
    assert table_of(95)[0, :3].tolist() == [2, 1, 1]


@pytest.mark.parametrize("quality", [45, 70, 90])
def test_the_lattice_tells_odd_turns_and_a_new_camera_hides_them(quality: int) -> None:
    upright = read_rgb(data.picture("coffee"))[40:168, 200:360]
    before = jpeg_round_trip(upright, quality)
    assert [says_odd(opaque(z4.turn_pixels(before, k))) for k in range(4)] == [False, True, False, True]
    after = [opaque(jpeg_round_trip(np.ascontiguousarray(z4.turn_pixels(upright, k)), quality)) for k in range(4)]
    assert not any(says_odd(pixels) for pixels in after)
    new = [leak.redigitised(opaque(z4.turn_pixels(before, k)), 0.9, np.random.default_rng(k)) for k in range(4)]
    assert not any(says_odd(pixels) for pixels in new)
    assert not says_odd(np.zeros((16, 16, 4), np.uint8))


@pytest.mark.parametrize("name", leak.CHANGES)
def test_changes_commute_with_turns(name: str) -> None:
    view = np.random.default_rng(1).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    change = leak.CHANGES[name]
    changed, turned = change(four_turns(view)), four_turns(change(view[None])[0])
    assert np.abs(changed.astype(int) - turned).max() <= 1
    assert (name == "as it is") == bool((change(view[None])[0] == view).all())


def test_the_study_counts_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(leak, "load_unary", lambda weights: Sky())
    result = leak.run_puzzles(3, 1, 0, silent)
    head = [row for row in result.rows if row["reader"] == "unary head"]
    assert [row["view"] for row in head if row["origin"] == "re-digitised"] == list(leak.CHANGES)
    assert all(row["fragments"] == 27 and row["puzzles"] == 3 for row in head)
    assert all(row["right_low"] <= row["right"] <= row["right_high"] for row in result.rows)
    by = {(row["origin"], row.get("view", "lattice")): row["right"] for row in result.rows}
    # A swapped channel changes no brightness; a new camera hardly does.
    assert by["our order", "red and blue exchanged"] == by["our order", "as it is"] == by["our order", "grey"]
    assert abs(by["re-digitised", "as it is"] - by["our order", "as it is"]) < 0.2
    assert by["paper's order", "lattice"] > 0.8
    assert "the figure to quote" in " ".join(value.verdict for value in result.compared)
    assert "differ by at most 0" in result.verdict
    written = reproduce.write(result, tmp_path)
    assert written.csv.exists()
