"""The values of an evaluation: a method, and a puzzle that can be made again at any time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.errors import ImageError
from jigsync.io.files import read_bytes
from jigsync.io.gap import SPLITS as GAP_SPLITS
from jigsync.io.gap import GapSplit
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
from jigsync.measure import registry as measurers
from jigsync.puzzle import Grid, Puzzle
from jigsync.sweep.canvas import make_canvas
from jigsync.sweep.generate import cut_picture
from jigsync.sweep.options import CutOptions
from jigsync.truth import Truth


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
    def from_json(cls, data: dict[str, Any]) -> Spec:
        """The inverse of to_json."""
        told = data["source"]
        source: PictureSource | GapSource
        if "path" in told:
            options = CutOptions.from_json(told["options"])
            source = PictureSource(Path(told["path"]), told["sha256"], options, told["seed"])
        else:
            source = GapSource(Path(told["folder"]), told["split"], told["index"])
        own = {name: data[name] for name in ("name", "severity", "picture", "kind", "seed", "upright")}
        return cls(grid=Grid(*data["grid"]), source=source, **own)
