"""Decoded pixels in files of the private folder: worker processes write them, whoever needs them maps them.

So no process holds a puzzle that nobody works on, and what a mapped file takes is given back when memory is short.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.web.limits import Refusal


@dataclass(frozen=True)
class PuzzleFile:
    """A puzzle whose fragments lie one after another in a file.

    Attributes:
        path: the file.
        sizes: (height, width) of every fragment, in the order of `ids`.
        cell, container, name: the puzzle's.
    """

    path: str
    ids: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    cell: int | None
    container: int | None
    name: str

    @property
    def pixels(self) -> int:
        """Of all fragments."""
        return sum(height * width for height, width in self.sizes)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def of_json(cls, value: dict[str, Any]) -> PuzzleFile:
        """What `to_json` gave."""
        sizes = tuple((int(height), int(width)) for height, width in value["sizes"])
        return cls(**{**value, "ids": tuple(value["ids"]), "sizes": sizes})

    def open(self) -> Puzzle:
        """The puzzle, its pixels mapped; Refusal 404 when it has been let go meanwhile."""
        flat = mapped(Path(self.path), (4 * self.pixels,), "puzzle")
        fragments, start = [], 0
        for height, width in self.sizes:
            fragments.append(flat[start : start + 4 * height * width].reshape(height, width, 4))
            start += 4 * height * width
        return Puzzle(Fragments(self.ids, tuple(fragments)), self.cell, self.container, self.name)


def write_puzzle(path: Path, puzzle: Puzzle) -> PuzzleFile:
    """Writes a puzzle's pixels."""
    fragments = puzzle.fragments.pixels
    write_pixels(path, fragments)
    sizes = tuple((int(pixels.shape[0]), int(pixels.shape[1])) for pixels in fragments)
    return PuzzleFile(os.fspath(path), puzzle.ids, sizes, puzzle.cell, puzzle.container, puzzle.name)


def write_pixels(path: Path, arrays: Sequence[NDArray[np.uint8]]) -> None:
    """Writes arrays one after another."""
    with open(path, "wb") as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)


def mapped(path: Path, shape: tuple[int, ...], what: str) -> NDArray[np.uint8]:
    """An array of this shape in a file, read only."""
    try:
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="r", shape=shape))
    except FileNotFoundError:
        raise Refusal(404, f"There is no such {what} any more.") from None
