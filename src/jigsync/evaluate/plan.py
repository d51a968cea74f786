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
from typing import Final

from jigsync.corpus.manifest import MANIFEST_FILE, Row, plan_rows, read_manifest
from jigsync.corpus.plan import SWEEP_FILE, Skipped, load_sweep, usable_pictures
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.fingerprint import digest, generator_identity
from jigsync.evaluate.progress import Progress
from jigsync.evaluate.spec import GapSource, Method, PictureSource, Spec
from jigsync.io.gap import SPLITS as GAP_SPLITS
from jigsync.io.gap import GapSplit
from jigsync.io.images import list_images
from jigsync.io.remote import Place, Remote
from jigsync.measure import registry as measurers
from jigsync.score.kinds import kinds_of
from jigsync.values.errors import InputError, OptionError, bad_value
from jigsync.values.layout import Grid

LARGE: Final = 10
"""Grids of so many rows or cols get cells of SMALL_CELL pixels, so that a canvas of 640 pixels holds them."""
SMALL_CELL: Final = 64
CELL: Final = 128
GAP: Final = "GAP"
"""The severity that puzzles of the GAP data set are listed under."""


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
        rows += [replace(row, options=replace(row.cut, turns=wanted.turns)) for row in cut]
    if not rows:
        why = f": {skipped[0].reason}" if skipped else "."
        raise InputError(f"None of the {len(pictures)} pictures in '{images}' can be used{why}")
    return _chosen(rows, root, wanted), tuple(skipped)


def from_manifest(manifest: Place, images: Path | None, wanted: Wanted) -> list[Spec]:
    """Puzzles of a manifest by `jigsync sweep`, or a part of one; `images` when sweep.json beside it does not tell."""
    is_folder = not manifest.is_file() if isinstance(manifest, Remote) else manifest.is_dir()
    path = manifest / MANIFEST_FILE if is_folder else manifest
    cuts = (row for row in read_manifest(path) if isinstance(row.options, CutOptions))
    rows = [row for row in cuts if wanted.takes(row.cut.grid, row.severity)]
    if not rows:
        raise InputError(f"The manifest '{path}' has no puzzle of the grids and severities asked for.")
    if images is None:
        if not (path.parent / SWEEP_FILE).is_file():
            raise InputError(f"There is no {SWEEP_FILE} beside '{path}' that names its pictures: name --images.")
        images = load_sweep(path.parent).images
    return _chosen(rows, images.resolve(), wanted)


def _chosen(rows: Sequence[Row], root: Path, wanted: Wanted) -> list[Spec]:
    """The first so many of every setting in the order of (round, hash of the picture), interleaved."""
    rows = [row for row in rows if wanted.split in ("", row.split)]
    if not rows:
        raise InputError(f"None of the pictures is of the split '{wanted.split}'.")
    made_by = digest(generator_identity())
    kinds = kinds_of(sorted({root / row.image for row in rows}))
    settings: dict[tuple[Grid, str], list[Spec]] = {}
    for row in sorted(rows, key=lambda row: _drawn(row, wanted.seed)):
        setting = settings.setdefault((row.cut.grid, _severity(row)), [])
        if wanted.puzzles is None or len(setting) < wanted.puzzles:
            setting.append(_spec(row, root, kinds[root / row.image], made_by))
    return _interleaved(settings.values())


def _drawn(row: Row, seed: int) -> tuple[int, int]:
    rank = row.key.rpartition("-")[2]
    return int(rank) if rank.isdecimal() else 0, derive_seed(seed, row.image_sha256)


def _severity(row: Row) -> str:
    """As tables have it: presentations other than "cell" are named, because their figures are not comparable."""
    return row.severity if row.cut.presentation == "cell" else f"{row.severity} {row.cut.presentation}"


def _spec(row: Row, root: Path, kind: str, made_by: str) -> Spec:
    depends = {"picture": row.image_sha256, "options": row.options.to_json(), "seed": row.seed, "generator": made_by}
    return Spec(
        f"{row.key}-{digest(depends)[:12]}",
        row.cut.grid,
        _severity(row),
        row.image,
        kind,
        derive_seed(row.seed, "solve") % 2**31,
        not row.cut.turns,
        PictureSource(root / row.image, row.image_sha256, row.cut, row.seed),
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
