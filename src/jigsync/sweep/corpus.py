"""The corpus writer: manifest -> WebDataset shards.

    OUT/shards/<split>-000000.tar
    OUT/stats/<split>-000000.json

A unit of work is one shard with a fixed list of manifest rows, so the bytes do not depend on the number of workers.
The shard is renamed into place first and its stats after it: a unit whose stats exist is done. A kill at any moment
loses at most the units under way, and running the same command again does just those: no puzzle is lost or doubled.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.errors import ImageError, OptionError
from jigsync.io.files import StrPath, read_bytes, remove_leftovers, write_json
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
from jigsync.io.shards import Sample, write_shard
from jigsync.puzzle import Grid, Puzzle
from jigsync.sweep.canvas import make_canvas
from jigsync.sweep.generate import cut_picture
from jigsync.sweep.manifest import Row
from jigsync.sweep.plan import LOCK_FILE, SHARD_FOLDER, STATS_FOLDER, Progress, Sweep
from jigsync.sweep.pool import run_units
from jigsync.sweep.seeds import SPLITS
from jigsync.sweep.stats import CanvasStats, PuzzleStats, canvas_stats, puzzle_stats
from jigsync.truth import Truth

PER_SHARD: Final = 64
"""Puzzles in a shard: some 20 MB at 3 x 3, small enough that a kill costs seconds."""


@dataclass(frozen=True)
class Unit:
    """One shard: its name and its rows. Pickled to the workers."""

    name: str
    rows: tuple[Row, ...]
    images: Path
    out: Path

    @property
    def shard(self) -> Path:
        """The tar file."""
        return self.out / SHARD_FOLDER / f"{self.name}.tar"

    @property
    def stats(self) -> Path:
        """The stats file; it exists once the unit is done."""
        return self.out / STATS_FOLDER / f"{self.name}.json"

    @property
    def done(self) -> bool:
        """Are the shard and its stats there?"""
        return self.stats.is_file() and self.shard.is_file()


def plan_units(sweep: Sweep) -> list[Unit]:
    """The shards of a corpus: rows of one split, in the manifest's order, PER_SHARD at a time."""
    units = []
    for split in SPLITS:
        rows = [row for row in sweep.rows if row.split == split]
        for number, start in enumerate(range(0, len(rows), PER_SHARD)):
            part = tuple(rows[start : start + PER_SHARD])
            units.append(Unit(f"{split}-{number:06d}", part, sweep.images, sweep.out))
    return units


def write_shards(sweep: Sweep, *, workers: int = 1, progress: Progress | None = None) -> int:
    """Makes every shard that is not there yet; returns how many there are."""
    units = plan_units(sweep)
    with _locked(sweep.out):
        for folder in (SHARD_FOLDER, STATS_FOLDER):
            remove_leftovers(sweep.out / folder)
        todo = [unit for unit in units if not unit.done]
        done = sum(len(unit.rows) for unit in units) - sum(len(unit.rows) for unit in todo)
        for unit, _ in run_units(write_unit, todo, workers):
            done += len(unit.rows)
            if progress:
                progress("puzzles cut", done, len(sweep.rows))
    return len(units)


def write_unit(unit: Unit) -> None:
    """Makes one shard and its stats."""
    counted: list[PuzzleStats] = []

    def samples() -> Iterator[Sample]:
        for stats, puzzle, truth in regenerate(unit.images, unit.rows):
            counted.append(stats)
            yield stats.key, puzzle, truth

    write_shard(unit.shard, samples())
    write_json(unit.stats, [stats.to_json() for stats in counted])


def regenerate(images: StrPath, rows: Sequence[Row]) -> Iterator[tuple[PuzzleStats, Puzzle, Truth]]:
    """Makes the puzzles of manifest rows again; neighbouring rows of one picture share its decoding and canvas."""
    sha, rgb = "", None
    canvases: dict[tuple[Grid, int], tuple[NDArray[np.uint8], CanvasStats]] = {}
    for row in rows:
        path = Path(images) / row.image
        if rgb is None or row.image_sha256 != sha:
            data = read_bytes(path, MAX_BYTES)
            sha, rgb = image_bytes_sha256(data), read_rgb(data, name=os.fspath(path))
            canvases.clear()
            if sha != row.image_sha256:
                raise ImageError(f"The picture '{path}' is not the one the manifest was made of: its bytes changed.")
        shape = (row.options.grid, row.options.cell)
        if shape not in canvases:
            canvas = make_canvas(rgb, row.options, f"The picture '{path}'")
            canvases[shape] = canvas, canvas_stats(canvas, row.options.grid)
        canvas, shared = canvases[shape]
        # A canvas of exactly the right size is cut as it is, so this is the puzzle of the picture itself.
        puzzle, truth = cut_picture(canvas, row.options, row.seed, sha)
        yield puzzle_stats(row.key, shared, truth), puzzle, truth


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer a corpus: the lock falls with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK_FILE, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(f"Another process is writing to '{folder}': wait for it or name a new folder.") from None
        yield
