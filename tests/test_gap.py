"""The GAP reader, on files of that form made here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from jigsync.io.gap import GapSplit
from jigsync.values.errors import FormatError, InputError, MissingExtraError, OptionError

LABELS = np.array([[3, 0, 2, 1], [1, 2, 3, 0], [2, 3, 0, 1]])


def pixels() -> NDArray[np.uint8]:
    """Three 2 x 2 puzzles: red names the slot, with a transparent border of another colour."""
    out = np.zeros((3, 4, 128, 128, 4), dtype=np.uint8)
    out[..., :3] = 77
    for puzzle, slots in enumerate(LABELS):
        for fragment, slot in enumerate(slots):
            out[puzzle, fragment, 8:, 5:] = (50 * slot, 10 * puzzle, 200, 255)
    return out


def make(
    folder: Path, split: str = "test", puzzles: Any = None, labels: Any = LABELS, names: str = "puzzles labels"
) -> Path:
    (folder / split).mkdir(parents=True)
    first, second = names.split()
    with h5py.File(folder / split / "puzzles.h5", "w") as file:
        data = pixels() if puzzles is None else puzzles
        file.create_dataset(first, data=data, compression="gzip", chunks=(1, *data.shape[1:]))
    with h5py.File(folder / split / "labels_indices.h5", "w") as file:
        file.create_dataset(second, data=labels)
    return folder


def test_puzzles_and_truths(tmp_path: Path) -> None:
    with GapSplit(make(tmp_path / "GAP 2"), "test") as split:
        assert len(split) == 3
        read = list(split)
    for index, (puzzle, truth) in enumerate(read):
        assert puzzle.name == f"GAP-2-test-{index:05d}"
        assert (puzzle.cell, puzzle.container) == (128, 128)
        assert truth.grid.shape == (2, 2)
        assert truth.options == {"dataset": "GAP-2", "split": "test", "index": index}
        for name, placed in truth.placement.items():
            assert placed.row is not None
            assert placed.col is not None
            assert placed.turns == 0
            fragment = puzzle.fragments[name]
            assert fragment[64, 64].tolist() == [50 * (2 * placed.row + placed.col), 10 * index, 200, 255]
            # Colours are premultiplied: what is transparent is black.
            assert fragment[0, 0].tolist() == [0, 0, 0, 0]


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "gap")
    asked: list[Any] = []
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, key: asked.append(key) or read(self, key))
    with GapSplit(folder, "test") as split:
        assert asked == []
        split[1]
        assert asked == [1, 1]
        with pytest.raises(IndexError):
            split[3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"names": "images labels"}, "must hold the dataset 'puzzles'. It holds 'images'."),
        ({"names": "puzzles targets"}, "must hold the dataset 'labels'. It holds 'targets'."),
        ({"puzzles": np.zeros((3, 4, 96, 96, 4), np.uint8)}, "(N, n * n, 128, 128, 4) uint8. Got (3, 4, 96, 96, 4)"),
        ({"puzzles": np.zeros((3, 4, 4), np.uint8)}, "Got (3, 4, 4) uint8."),
        ({"puzzles": np.zeros((1, 5, 128, 128, 4), np.uint8)}, "Got (1, 5, 128, 128, 4) uint8."),
        ({"puzzles": np.zeros((3, 4, 128, 128, 4), np.float32)}, "Got (3, 4, 128, 128, 4) float32."),
        ({"labels": np.zeros((3, 4, 4), int)}, "must be (3, 4) integers, the slot of every fragment. Got (3, 4, 4)"),
        ({"labels": LABELS.astype(float)}, "Got (3, 4) float64."),
        ({"labels": LABELS[:2]}, "Got (2, 4) int64."),
    ],
)
def test_other_layouts_are_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    folder = make(tmp_path / "gap", **options)
    with pytest.raises(FormatError) as caught:
        GapSplit(folder, "test")
    assert words in str(caught.value)
    assert str(folder) in str(caught.value)


def test_labels_that_are_no_permutation(tmp_path: Path) -> None:
    labels = LABELS.copy()
    labels[1, 0] = 3
    with GapSplit(make(tmp_path / "gap", labels=labels), "test") as split:
        split[0]
        with pytest.raises(FormatError, match=r"labels of puzzle 1 .* must name each slot 0\.\.3 once\. Got \[3, 2"):
            split[1]


def test_missing_and_broken_files(tmp_path: Path) -> None:
    folder = make(tmp_path / "gap")
    with pytest.raises(OptionError, match="'train', 'val' or 'test'"):
        GapSplit(folder, "dev")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"must hold the folder 'val'\. It holds 'test'"):
        GapSplit(folder, "val")
    with pytest.raises(InputError, match="It holds nothing that can be read"):
        GapSplit(tmp_path / "none", "val")
    data = (folder / "test" / "puzzles.h5").read_bytes()
    (folder / "test" / "puzzles.h5").write_bytes(data[:1000])
    with pytest.raises(FormatError, match=r"puzzles\.h5' is not an HDF5 file"):
        GapSplit(folder, "test")
    (folder / "test" / "puzzles.h5").unlink()
    with pytest.raises(InputError, match=r"must hold 'puzzles\.h5'. It holds 'labels_indices\.h5'"):
        GapSplit(folder, "test")


def test_a_corrupt_chunk_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path / "gap")
    with h5py.File(folder / "test" / "puzzles.h5") as file:
        chunk = file["puzzles"].id.get_chunk_info(2)
    with open(folder / "test" / "puzzles.h5", "r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * chunk.size)
    with GapSplit(folder, "test") as split:
        split[1]
        with pytest.raises(FormatError, match=r"Puzzle 2 of '.*test' cannot be read"):
            split[2]


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "gap")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"'h5py', which is not installed: pip install 'jigsync\[gap\]'"):
        GapSplit(folder, "test")
