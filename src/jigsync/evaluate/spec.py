"""The values of an evaluation: a method, and a puzzle that can be made again at any time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.io.files import read_bytes
from jigsync.io.gap import SPLITS as GAP_SPLITS
from jigsync.io.gap import GapSplit
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
from jigsync.io.schema import Node, named
from jigsync.measure import registry as measurers
from jigsync.values.errors import ImageError
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")
"""What puzzles, solvers and measurers may be called: it is a file name, and never a path."""
MAX_SEED: Final = 2**64 - 1


def file_name(node: Node) -> str:
    """A name that becomes part of a path; FormatError when it could lead elsewhere."""
    if not NAME.fullmatch(node.text()):
        raise node.refuse("lower-case letters, digits and . _ -")
    return node.text()


@dataclass(frozen=True, order=True)
class Method:
    """A solver with a measurer: one row of the table."""

    solver: str
    measurer: str

    @property
    def name(self) -> str:
        """What files call it."""
        return f"{self.solver}+{self.measurer}"

    @property
    def label(self) -> str:
        """What tables call it: the solver, and the measurer unless it is the default one."""
        return self.solver if self.measurer == measurers.DEFAULT else self.name


@dataclass(frozen=True)
class PictureSource:
    """A puzzle that is cut from a picture."""

    path: Path
    sha256: str
    options: CutOptions
    seed: int

    def make(self) -> tuple[Puzzle, Truth]:
        """Cuts it; ImageError when the picture is no longer the one that was planned with."""
        return cut_picture(self._rgb(), self.options, self.seed, self.sha256, f"The picture '{self.path}'")

    def original(self) -> NDArray[np.uint8]:
        """(H, W, 3): the canvas that was cut, undamaged."""
        return make_canvas(self._rgb(), self.options, f"The picture '{self.path}'")

    def _rgb(self) -> NDArray[np.uint8]:
        data = read_bytes(self.path, MAX_BYTES)
        if image_bytes_sha256(data) != self.sha256:
            raise ImageError(f"The picture '{self.path}' is not the one that was planned with: its bytes changed.")
        return read_rgb(data, name=str(self.path))


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


@dataclass(frozen=True)
class Spec:
    """One puzzle of an evaluation.

    Attributes:
        name: unique, a file name; it ends in a hash of all that the puzzle depends on.
        picture: what it was cut from, for people.
        kind: of the picture.
        seed: of the solvers.
        upright: the solvers are told that nothing is turned.
    """

    name: str
    grid: Grid
    severity: str
    picture: str
    kind: str
    seed: int
    upright: bool
    source: PictureSource | GapSource

    @property
    def setting(self) -> tuple[Grid, str]:
        """Grid and severity."""
        return self.grid, self.severity

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, of which `from_json` makes the same spec again."""
        source = self.source
        if isinstance(source, PictureSource):
            made = {"path": str(source.path), "sha256": source.sha256, "options": source.options.to_json()}
            told: dict[str, Any] = {**made, "seed": source.seed}
        else:
            told = {"folder": str(source.folder), "split": source.split, "index": source.index}
        own = {name: getattr(self, name) for name in ("name", "severity", "picture", "kind", "seed", "upright")}
        return {**own, "grid": list(self.grid.shape), "source": told}

    @classmethod
    def from_json(cls, data: Any, file: str = "puzzles.jsonl") -> Spec:
        """The inverse of to_json, checked; `file` is where it comes from."""
        node = Node(data, file)
        told, upright = node.key("source"), node.key("upright")
        if not isinstance(upright.value, bool):
            raise upright.refuse("true or false")
        source: PictureSource | GapSource
        if told.has("path"):
            with named(file):
                options = CutOptions.from_json(told.key("options").object())
            seed = told.key("seed").integer(0, MAX_SEED)
            source = PictureSource(Path(told.key("path").text()), told.key("sha256").text(), options, seed)
        else:
            split = told.key("split")
            if split.value not in GAP_SPLITS:
                raise split.refuse(f"one of {', '.join(GAP_SPLITS)}")
            index = told.key("index").integer(0, MAX_SEED)
            source = GapSource(Path(told.key("folder").text()), split.text(), index)
        severity, picture, kind = (node.key(key).text() for key in ("severity", "picture", "kind"))
        name, grid, seed = file_name(node.key("name")), node.key("grid").grid(), node.key("seed").integer(0, MAX_SEED)
        return cls(name, grid, severity, picture, kind, seed, upright.value, source)
