"""Reader of the GAP-3 / GAP-5 dataset (upright puzzles in HDF5).

    <folder>/<split>/puzzles.h5          'puzzles'  (N, n * n, 128, 128, 4) uint8 RGBA
    <folder>/<split>/labels_indices.h5   'labels'   (N, n * n) integers, fragment -> slot, slot = row * n + col

Nothing is held in memory: a puzzle is read when it is asked for. Any other layout is refused by an error that names
what was found.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

import numpy as np

from jigsync.io.files import StrPath, reason_of
from jigsync.io.images import MAX_PIXELS
from jigsync.io.puzzle_folder import premultiply
from jigsync.values.errors import FormatError, InputError, MissingExtraError, bad_value
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth

Split = Literal["train", "val", "test"]
SPLITS: Final[tuple[Split, ...]] = get_args(Split)
CELL: Final = 128
MAX_SIDE: Final = math.isqrt(MAX_PIXELS) // CELL
"""Largest n: what a puzzle claims to hold is read into memory at once."""
MAX_PUZZLES: Final = 1_000_000
MAX_CHUNK: Final = 4 * MAX_PIXELS
"""Largest chunk that is unpacked, in bytes."""

_BROKEN: Final = (OSError, RuntimeError, ValueError, TypeError, KeyError, OverflowError, MemoryError)
"""What h5py raises for files that are damaged or lie."""


class GapSplit:
    """One split, a lazy sequence of (Puzzle, Truth); close it or use it in a `with` block."""

    def __init__(self, folder: StrPath, split: Split) -> None:
        if split not in SPLITS:
            raise bad_value("split", "GAP", "'train', 'val' or 'test'", split)
        self.split = split
        self.folder = Path(folder) / split
        self._files: list[Any] = []
        if not self.folder.is_dir():
            raise InputError(
                f"The GAP folder '{os.fspath(folder)}' must hold the folder '{split}'. It holds {_listing(folder)}."
            )
        try:
            self._puzzles = self._open("puzzles.h5", "puzzles")
            self._labels = self._open("labels_indices.h5", "labels")
            self.grid = self._check()
        except BaseException as error:
            self.close()
            if isinstance(error, _BROKEN):
                raise FormatError(f"The GAP folder '{self.folder}' is broken: {reason_of(error)}.") from None
            raise

    def __len__(self) -> int:
        return int(self._puzzles.shape[0])

    def __getitem__(self, index: int) -> tuple[Puzzle, Truth]:
        if not 0 <= index < len(self):
            raise IndexError(f"puzzle {index} of {len(self)}")
        try:
            pixels = self._puzzles[index]
            slots = [int(slot) for slot in self._labels[index]]
        except _BROKEN as error:
            raise FormatError(f"Puzzle {index} of '{self.folder}' cannot be read: {reason_of(error)}.") from None
        if sorted(slots) != list(range(self.grid.size)):
            raise FormatError(
                f"The labels of puzzle {index} in '{self.folder}' must name each slot 0..{self.grid.size - 1} once."
                f" Got {slots} instead."
            )
        ids = tuple(f"f{k:03d}" for k in range(len(slots)))
        fragments = Fragments(ids, tuple(premultiply(np.array(p)) for p in pixels))
        placement = {name: Placed.at(*self.grid.cell(slot), turns=0) for name, slot in zip(ids, slots, strict=True)}
        dataset = f"GAP-{self.grid.rows}"
        truth = Truth(self.grid, placement, {"dataset": dataset, "split": self.split, "index": index})
        return Puzzle(fragments, CELL, CELL, f"{dataset}-{self.split}-{index:05d}"), truth

    def __iter__(self) -> Iterator[tuple[Puzzle, Truth]]:
        return (self[index] for index in range(len(self)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close()

    def _open(self, name: str, dataset: str) -> Any:
        """The dataset of a file."""
        try:
            import h5py
        except ImportError:
            raise MissingExtraError("Reading GAP", "h5py", "gap") from None
        path = self.folder / name
        if not path.is_file():
            raise InputError(f"The GAP folder '{self.folder}' must hold '{name}'. It holds {_listing(self.folder)}.")
        try:
            file = h5py.File(path, "r")
        except _BROKEN as error:
            raise FormatError(f"The file '{path}' is not an HDF5 file: {reason_of(error)}.") from None
        self._files.append(file)
        if isinstance(file.get(dataset, getlink=True), h5py.ExternalLink | h5py.SoftLink):
            raise _points_elsewhere(dataset, path)
        found = file.get(dataset)
        if not isinstance(found, h5py.Dataset):
            held = ", ".join(repr(name[:60]) for name in islice(file, 10)) or "nothing"
            raise FormatError(f"The file '{path}' must hold the dataset '{dataset}'. It holds {held}.")
        _check_storage(found, path)
        return found

    def _check(self) -> Grid:
        """The grid, after the shapes and types of both datasets were checked."""
        shape, dtype = self._puzzles.shape, self._puzzles.dtype
        side = math.isqrt(shape[1]) if len(shape) == 5 else 0
        if shape[1:] != (side * side, CELL, CELL, 4) or side < 1 or dtype != np.uint8:
            raise FormatError(
                f"The 'puzzles' of '{self.folder}' must be (N, n * n, {CELL}, {CELL}, 4) uint8."
                f" Got {shape} {str(dtype)[:60]}."
            )
        if shape[0] > MAX_PUZZLES or side > MAX_SIDE:
            raise FormatError(
                f"The 'puzzles' of '{self.folder}' must be at most {MAX_PUZZLES:,} of at most {MAX_SIDE} x {MAX_SIDE}"
                f" fragments. Got {shape[0]:,} of {side} x {side}."
            )
        shape, dtype = self._labels.shape, self._labels.dtype
        if shape != self._puzzles.shape[:2] or not np.issubdtype(dtype, np.integer):
            raise FormatError(
                f"The 'labels' of '{self.folder}' must be {self._puzzles.shape[:2]} integers, the slot of every"
                f" fragment. Got {shape} {str(dtype)[:60]}."
            )
        return Grid(side, side)


def _check_storage(dataset: Any, path: Path) -> None:
    """Refuses data that lies in other files, and chunks too large to be unpacked at once."""
    if dataset.external or dataset.is_virtual:
        raise _points_elsewhere(dataset.name, path)
    size = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    if size > MAX_CHUNK:
        raise FormatError(
            f"The dataset '{dataset.name}' of '{path}' must have chunks of at most {MAX_CHUNK:,} bytes. Got {size:,}."
        )


def _points_elsewhere(dataset: str, path: Path) -> FormatError:
    return FormatError(f"The dataset '{dataset}' of '{path}' must lie in this file. It points elsewhere.")


def _listing(folder: StrPath) -> str:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return f"nothing that can be read ({reason_of(error)})"
    shown = ", ".join(repr(name) for name in names[:5]) or "nothing"
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
