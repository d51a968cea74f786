"""Where the puzzles of an evaluation come from, and how each is made again at any time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.cutting.tear import scaled_picture, tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.files import read_bytes
from jigsync.io.gap import SPLITS as GAP_SPLITS
from jigsync.io.gap import GapSplit
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.io.schema import Node, named
from jigsync.io.truth_file import TRUTH_FILE, load_truth
from jigsync.values.errors import ImageError, InputError
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

MAX_SEED: Final = 2**64 - 1
PUZZLE_FOLDER: Final = "puzzle"
"""Of one puzzle's fragments, beside its truth.json: as `jigsync cut` and `jigsync tear` write them."""


@dataclass(frozen=True)
class PictureSource:
    """A puzzle that is cut or torn from a picture."""

    path: Path
    sha256: str
    options: CutOptions | TearOptions
    seed: int

    def make(self) -> tuple[Puzzle, Truth]:
        """Cuts it; ImageError when the picture is no longer the one that was planned with."""
        rgb, name = self._rgb(), f"The picture '{self.path}'"
        if isinstance(self.options, TearOptions):
            return tear_picture(rgb, self.options, self.seed, self.sha256, name)
        return cut_picture(rgb, self.options, self.seed, self.sha256, name)

    def original(self) -> NDArray[np.uint8]:
        """(H, W, 3): the canvas that was cut, undamaged."""
        rgb, name = self._rgb(), f"The picture '{self.path}'"
        if isinstance(self.options, TearOptions):
            return scaled_picture(rgb, self.options, name)
        return make_canvas(rgb, self.options, name)

    def _rgb(self) -> NDArray[np.uint8]:
        data = read_bytes(self.path, MAX_BYTES)
        if image_bytes_sha256(data) != self.sha256:
            raise ImageError(f"The picture '{self.path}' is not the one that was planned with: its bytes changed.")
        return read_rgb(data, name=str(self.path))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        made = {"path": str(self.path), "sha256": self.sha256, "options": self.options.to_json()}
        return {**made, "seed": self.seed}


@dataclass(frozen=True)
class GapSource:
    """A puzzle of the GAP data set."""

    folder: Path
    split: str
    index: int

    def make(self) -> tuple[Puzzle, Truth]:
        """Reads it."""
        assert self.split in GAP_SPLITS
        with GapSplit(self.folder, self.split) as puzzles:
            return puzzles[self.index]

    def original(self) -> None:
        """GAP holds no whole pictures."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"folder": str(self.folder), "split": self.split, "index": self.index}


@dataclass(frozen=True)
class FragmentsSource:
    """A puzzle that was there before: DIR/puzzle and DIR/truth.json."""

    folder: Path
    sha256: str

    def make(self) -> tuple[Puzzle, Truth]:
        """Reads it; InputError when its files are no longer those that were planned with."""
        if fragments_sha256(self.folder) != self.sha256:
            raise InputError(f"The puzzle '{self.folder}' is not the one that was planned with: its files changed.")
        return load_puzzle(self.folder / PUZZLE_FOLDER), load_truth(self.folder / TRUTH_FILE)

    def original(self) -> None:
        """Nobody has the whole picture."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"fragments": str(self.folder), "sha256": self.sha256}


Source = PictureSource | GapSource | FragmentsSource


def fragments_sha256(folder: Path) -> str:
    """A hash of a puzzle's files and their names."""
    found = hashlib.sha256()
    below = (path for path in (folder / PUZZLE_FOLDER).rglob("*") if path.is_file())
    for path in (folder / TRUTH_FILE, *sorted(below)):
        found.update(f"{path.relative_to(folder)}\n".encode())
        found.update(hashlib.sha256(read_bytes(path, MAX_BYTES)).digest())
    return found.hexdigest()


def parse_source(node: Node) -> Source:
    """The inverse of a source's to_json, checked."""
    if node.has("fragments"):
        return FragmentsSource(Path(node.key("fragments").text()), node.key("sha256").text())
    if node.has("path"):
        told = node.key("options").object()
        with named(node.file):
            options = TearOptions.from_json(told) if "pieces" in told else CutOptions.from_json(told)
        seed = node.key("seed").integer(0, MAX_SEED)
        return PictureSource(Path(node.key("path").text()), node.key("sha256").text(), options, seed)
    split = node.key("split")
    if split.value not in GAP_SPLITS:
        raise split.refuse(f"one of {', '.join(GAP_SPLITS)}")
    return GapSource(Path(node.key("folder").text()), split.text(), node.key("index").integer(0, MAX_SEED))
