"""The corpus writer: manifest -> WebDataset shards.

    OUT/shards/<split>-000000.tar
    OUT/stats/<split>-000000.json

A unit of work is one shard with a fixed list of manifest rows, so the bytes depend neither on the number of workers nor
on the engine. The shard appears first, whole, and its stats after it: a unit whose stats exist is done. A kill at any
moment, of the driver, a worker or a whole machine, loses at most the units under way, and running the same command
again does just those: no puzzle is lost or doubled. The stats hold the shard's sha256 and a checksum of themselves: a
shard in a folder that is not what was written is named and made again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.corpus.manifest import Row
from jigsync.corpus.plan import SHARD_FOLDER, STATS_FOLDER, Progress, Sweep
from jigsync.corpus.pool import Workers, run_units
from jigsync.corpus.stats import (
    CanvasStats,
    PuzzleStats,
    canvas_stats,
    puzzle_stats,
    read_stats,
    torn_stats,
    write_stats,
)
from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.seeds import SPLITS
from jigsync.cutting.tear import divide, scaled_picture, torn_puzzle
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.files import StrPath, cannot, list_names, open_plain, read_bytes, remove_leftovers
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
from jigsync.io.lease import only_writer
from jigsync.io.remote import Place, Remote, only_here
from jigsync.io.shards import Sample, write_shard
from jigsync.values.errors import FormatError, ImageError, InputError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

log = logging.getLogger("jigsync.corpus")

PER_SHARD: Final = 64
"""Puzzles in a shard: some 20 MB at 3 x 3, small enough that a kill costs seconds."""
SHARED_SECONDS: Final = 60.0
"""How long a network file system may take to show here what was written elsewhere."""


@dataclass(frozen=True)
class Unit:
    """One shard: its name and its rows. Pickled to the workers."""

    name: str
    rows: tuple[Row, ...]
    images: Path
    out: Place

    @property
    def shard(self) -> Place:
        """The tar file."""
        return self.out / SHARD_FOLDER / f"{self.name}.tar"

    @property
    def stats(self) -> Place:
        """The stats file; it exists once the unit is done."""
        return self.out / STATS_FOLDER / f"{self.name}.json"

    @property
    def done(self) -> bool:
        """Are the shard and its stats there?"""
        return self.stats.is_file() and self.shard.is_file()


def plan_units(sweep: Sweep) -> list[Unit]:
    """The shards of a corpus: rows of one split, in the manifest's order, PER_SHARD at a time."""
    # Absolute, for a worker may have another working folder.
    images, out = sweep.images.resolve(), sweep.out if isinstance(sweep.out, Remote) else sweep.out.absolute()
    units = []
    for split in SPLITS:
        rows = [row for row in sweep.rows if row.split == split]
        for number, start in enumerate(range(0, len(rows), PER_SHARD)):
            part = tuple(rows[start : start + PER_SHARD])
            units.append(Unit(f"{split}-{number:06d}", part, images, out))
    return units


def finished(units: Sequence[Unit]) -> list[Unit]:
    """Those that are done, by two listings instead of two questions a unit."""
    if not units:
        return []
    shards, stats = (set(list_names(units[0].out / folder)) for folder in (SHARD_FOLDER, STATS_FOLDER))
    return [unit for unit in units if unit.shard.name in shards and unit.stats.name in stats]


def write_shards(sweep: Sweep, *, workers: Workers = 1, progress: Progress | None = None) -> int:
    """Makes every shard that is not there yet; returns how many there are."""
    if only_here(sweep.out) and workers != 1:
        raise OptionError(f"No other process can write to '{sweep.out}': use one worker of the engine local.")
    units = plan_units(sweep)
    with only_writer(sweep.out):
        _remove_leftovers(sweep.out)
        there = {unit.name for unit in _whole(finished(units), progress)}
        todo = [unit for unit in units if unit.name not in there]
        done = len(sweep.rows) - sum(len(unit.rows) for unit in todo)
        for unit, _ in run_units(write_unit, todo, workers):
            _check_shared(unit)
            done += len(unit.rows)
            if progress:
                progress("puzzles cut", done, len(sweep.rows))
        _remove_leftovers(sweep.out)  # of workers that died on the way
    return len(units)


def _whole(units: Sequence[Unit], progress: Progress | None) -> list[Unit]:
    """Those that are as they were written, the others named. Stores at a URL check their objects themselves."""
    found = []
    for number, unit in enumerate(units, start=1):
        try:
            if not isinstance(unit.out, Remote):
                check_unit(unit)
            found.append(unit)
        except InputError as error:
            log.warning("jigsync: %s It is made again.", error)
        if progress:
            progress("shards checked", number, len(units))
    return found


def check_unit(unit: Unit) -> None:
    """InputError, naming the file, when a shard in a folder or its stats are not what was written."""
    digest, _ = read_stats(unit.stats)
    try:
        with open_plain(unit.shard) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise cannot("read", unit.shard, error) from None
    if found != digest:
        raise FormatError(f"The shard '{unit.shard}' is damaged: its sha256 is not the one in '{unit.stats.name}'.")


def _remove_leftovers(out: Place) -> None:
    for folder in (out, out / SHARD_FOLDER, out / STATS_FOLDER):
        remove_leftovers(folder)


def _check_shared(unit: Unit) -> None:
    """A worker on another machine may have written to a folder of the same name there."""
    if isinstance(unit.out, Remote):
        return
    until = time.monotonic() + SHARED_SECONDS
    while not unit.done:
        if time.monotonic() > until:
            raise InputError(
                f"A worker wrote '{unit.shard}', but it is not here: --out must be a folder that all machines share,"
                " or a URL."
            )
        time.sleep(0.2)
        list_names(unit.shard.parent)  # makes a network file system look again


def write_unit(unit: Unit) -> None:
    """Makes one shard and its stats."""
    counted: list[PuzzleStats] = []

    def samples() -> Iterator[Sample]:
        for stats, puzzle, truth in regenerate(unit.images, unit.rows):
            counted.append(stats)
            yield stats.key, puzzle, truth

    digest = write_shard(unit.shard, samples())
    write_stats(unit.stats, digest, counted)


def regenerate(images: StrPath, rows: Sequence[Row]) -> Iterator[tuple[PuzzleStats, Puzzle, Truth]]:
    """Makes the puzzles of manifest rows again; neighbouring rows of one picture share its decoding and canvas."""
    source: _Source | None = None
    for row in rows:
        path = Path(images) / row.image
        if source is None or (source.path, source.sha) != (path, row.image_sha256):
            source = _Source.read(path, row)
        stats, puzzle, truth = source.make(row)
        yield puzzle_stats(row.key, stats, truth), puzzle, truth


@dataclass
class _Source:
    """One decoded picture and the canvases made of it so far."""

    path: Path
    sha: str
    rgb: NDArray[np.uint8]
    canvases: dict[tuple[Grid, int], tuple[NDArray[np.uint8], CanvasStats]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, row: Row) -> _Source:
        """ImageError when the picture is not the one that the manifest was made of."""
        data = read_bytes(path, MAX_BYTES)
        sha, rgb = image_bytes_sha256(data), read_rgb(data, name=os.fspath(path))
        if sha != row.image_sha256:
            raise ImageError(f"The picture '{path}' is not the one the manifest was made of: its bytes changed.")
        return cls(path, sha, rgb)

    def make(self, row: Row) -> tuple[CanvasStats, Puzzle, Truth]:
        """One puzzle."""
        name = f"The picture '{self.path}'"
        if isinstance(row.options, TearOptions):
            canvas = scaled_picture(self.rgb, row.options, name)
            division = divide(canvas, row.options, row.seed)
            made = torn_puzzle(canvas, division, row.options, self.sha)
            return torn_stats(canvas, division.pieces.owner), *made
        shape = row.options.grid, row.options.cell
        if shape not in self.canvases:
            canvas = make_canvas(self.rgb, row.options, name)
            self.canvases[shape] = canvas, canvas_stats(canvas, row.options.grid)
        canvas, stats = self.canvases[shape]
        # A canvas of exactly the right size is cut as it is, so this is the puzzle of the picture itself.
        return stats, *cut_picture(canvas, row.options, row.seed, self.sha)
