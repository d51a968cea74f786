"""What to evaluate: which puzzles, which methods.

A *setting* is a grid and a severity; a *method* is a solver with a measurer. Every setting takes `puzzles` puzzles from
the pictures in the order of a hash, so pictures are drawn at random, more puzzles contain the fewer, and every method
sees the same ones; a second round over the pictures cuts them with other seeds. Puzzles are listed round by round over
all settings: a run that is stopped has about as many of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.errors import ImageError, InputError, OptionError, bad_value
from jigsync.io.files import read_bytes
from jigsync.io.gap import SPLITS as GAP_SPLITS
from jigsync.io.gap import GapSplit
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, list_images, read_rgb
from jigsync.measure import registry as measurers
from jigsync.puzzle import Grid, Puzzle
from jigsync.study.evaluate.fingerprint import digest, generator_identity
from jigsync.study.kinds import kinds_of
from jigsync.study.result import Progress
from jigsync.sweep.canvas import make_canvas
from jigsync.sweep.generate import cut_picture
from jigsync.sweep.manifest import Row, plan_rows
from jigsync.sweep.options import SEVERITIES, CutOptions
from jigsync.sweep.plan import Skipped, load_sweep, usable_pictures
from jigsync.sweep.seeds import derive_seed
from jigsync.truth import Truth

LARGE: Final = 10
"""Grids of so many rows or cols get cells of SMALL_CELL pixels, so that a canvas of 640 pixels holds them."""
SMALL_CELL: Final = 64
CELL: Final = 128
GAP: Final = "GAP"
"""The severity that puzzles of the GAP data set are listed under."""


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


@dataclass(frozen=True)
class Wanted:
    """Which puzzles to take.

    Attributes:
        grids, severities: settings; empty takes all there are (of a manifest or GAP).
        puzzles: of every setting; None takes all: of a folder, one a picture.
        cell: cell pitch in pixels; None goes by the grid.
        turns: turn the fragments; else the solvers are told that nothing is turned.
        split: only pictures of this split, "" for all.
    """

    grids: tuple[Grid, ...] = ()
    severities: tuple[str, ...] = ()
    puzzles: int | None = None
    cell: int | None = None
    turns: bool = True
    split: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        for severity in self.severities:
            if severity not in SEVERITIES and severity != GAP:
                raise bad_value("severities", "an evaluation", f"all or some of {', '.join(SEVERITIES)}", severity)
        for name, values in (("grids", self.grids), ("severities", self.severities)):
            if len(set(values)) != len(values):
                raise bad_value(name, "an evaluation", "different values", ",".join(str(value) for value in values))
        if self.puzzles is not None and self.puzzles < 1:
            raise bad_value("puzzles", "an evaluation", "at least 1", self.puzzles)

    def cell_of(self, grid: Grid) -> int:
        """Cell pitch for a grid: CELL, and SMALL_CELL from LARGE rows or cols on, unless it is given."""
        return self.cell or (SMALL_CELL if max(grid.shape) >= LARGE else CELL)

    def takes(self, grid: Grid, severity: str) -> bool:
        """Is this setting wanted?"""
        return (not self.grids or grid in self.grids) and (not self.severities or severity in self.severities)


def methods_of(names: Sequence[str], defaults: Sequence[str]) -> tuple[Method, ...]:
    """Every solver with every measurer; "tree:mgc" names both at once. Repeated ones are taken once."""
    found = []
    for name in names:
        solver, _, measurer = name.partition(":")
        found += [Method(solver, one) for one in ([measurer] if measurer else defaults or [measurers.DEFAULT])]
    if not found:
        raise OptionError("An evaluation needs at least one solver.")
    return tuple(dict.fromkeys(found))


def from_pictures(
    images: Path, wanted: Wanted, workers: int, progress: Progress
) -> tuple[list[Spec], tuple[Skipped, ...]]:
    """Puzzles of a folder of pictures, or of one; and the pictures that cannot be used."""
    pictures = [images] if images.is_file() else list_images(images)
    found, skipped = usable_pictures(pictures, workers, progress)
    root = (images.parent if images.is_file() else images).resolve()
    severities = wanted.severities or tuple(SEVERITIES)
    rounds = -(-(wanted.puzzles or len(found)) // max(1, len(found)))
    rows = []
    for grid in wanted.grids:
        cut = plan_rows(found, [grid], severities, per_image=rounds, cell=wanted.cell_of(grid), seed=wanted.seed)
        rows += [replace(row, options=replace(row.options, turns=wanted.turns)) for row in cut]
    if not rows:
        why = f": {skipped[0].reason}" if skipped else "."
        raise InputError(f"None of the {len(pictures)} pictures in '{images}' can be used{why}")
    return _chosen(rows, root, wanted), tuple(skipped)


def from_manifest(manifest: Path, images: Path | None, wanted: Wanted) -> list[Spec]:
    """Puzzles of a corpus that `jigsync sweep` planned; `images` when the pictures have moved."""
    sweep = load_sweep(manifest.parent if manifest.is_file() else manifest)
    rows = [row for row in sweep.rows if wanted.takes(row.options.grid, row.severity)]
    if not rows:
        raise InputError(f"The manifest '{manifest}' has no puzzle of the grids and severities asked for.")
    return _chosen(rows, (images or sweep.images).resolve(), wanted)


def _chosen(rows: Sequence[Row], root: Path, wanted: Wanted) -> list[Spec]:
    """The first so many of every setting in the order of (round, hash of the picture), interleaved."""
    rows = [row for row in rows if wanted.split in ("", row.split)]
    if not rows:
        raise InputError(f"None of the pictures is of the split '{wanted.split}'.")
    made_by = digest(generator_identity())
    kinds = kinds_of(sorted({root / row.image for row in rows}))
    settings: dict[tuple[Grid, str], list[Spec]] = {}
    for row in sorted(rows, key=lambda row: _drawn(row, wanted.seed)):
        setting = settings.setdefault((row.options.grid, row.severity), [])
        if wanted.puzzles is None or len(setting) < wanted.puzzles:
            setting.append(_spec(row, root, kinds[root / row.image], made_by))
    return _interleaved(settings.values())


def _drawn(row: Row, seed: int) -> tuple[int, int]:
    return int(row.key.rpartition("-")[2]) if row.key[-1].isdigit() else 0, derive_seed(seed, row.image_sha256)


def _spec(row: Row, root: Path, kind: str, made_by: str) -> Spec:
    depends = {"picture": row.image_sha256, "options": row.options.to_json(), "seed": row.seed, "generator": made_by}
    return Spec(
        f"{row.key}-{digest(depends)[:12]}",
        row.options.grid,
        row.severity,
        row.image,
        kind,
        derive_seed(row.seed, "solve") % 2**31,
        not row.options.turns,
        PictureSource(root / row.image, row.image_sha256, row.options, row.seed),
    )


def from_gap(folder: Path, wanted: Wanted) -> list[Spec]:
    """Puzzles of GAP: of DIR/<split>, and of DIR/GAP-3/<split> and the like."""
    split = wanted.split or "test"
    if split not in GAP_SPLITS:
        raise bad_value("split", "GAP", f"one of {', '.join(GAP_SPLITS)}", split)
    folders = [path for path in (folder, *sorted(folder.glob("GAP-*"))) if (path / split).is_dir()] or [folder]
    settings = []
    for path in folders:
        with GapSplit(path, split) as puzzles:
            if not wanted.takes(puzzles.grid, GAP):
                continue
            order = sorted(range(len(puzzles)), key=lambda index: derive_seed(wanted.seed, "gap", index))
            settings.append([_gap_spec(puzzles, path, index) for index in order[: wanted.puzzles]])
    if not settings:
        raise InputError(f"The GAP folder '{folder}' has no puzzle of the grids asked for.")
    return _interleaved(settings)


def _gap_spec(puzzles: GapSplit, folder: Path, index: int) -> Spec:
    puzzle, truth = puzzles[index]
    found = hashlib.sha256()
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        found.update(f"{name} {truth.placement[name].cell}".encode())
        found.update(pixels.tobytes())
    sha = found.hexdigest()
    seed = derive_seed(sha, "solve") % 2**31
    source = GapSource(folder.resolve(), puzzles.split, index)
    name = puzzle.name
    return Spec(f"{name.lower()}-{sha[:12]}", truth.grid, GAP, name, f"GAP-{truth.grid.rows}", seed, True, source)


def _interleaved(settings: Iterable[Sequence[Spec]]) -> list[Spec]:
    """Round by round over the settings, the largest grids first."""
    ordered = sorted(settings, key=lambda specs: -specs[0].grid.size)
    rounds = max(len(specs) for specs in ordered)
    return [specs[k] for k in range(rounds) for specs in ordered if k < len(specs)]
