"""Planning a corpus: which pictures can be used, and the manifest of every puzzle to cut from them.

OUT/sweep.json            what was asked for, which pictures were skipped and why
OUT/manifest.jsonl        one line a puzzle

OUT is a folder or a URL. Pictures are looked at on this machine, whatever the engine: a worker that cannot reach them
must be an error, never a picture skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jigsync.corpus.manifest import MANIFEST_FILE, Row, plan_rows, read_manifest, write_manifest
from jigsync.corpus.pool import run_units
from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.io.files import StrPath, list_names, read_bytes, read_json, write_json
from jigsync.io.images import MAX_BYTES, image_bytes_sha256, list_images, read_rgb
from jigsync.io.lease import LOCK_FILE, only_writer
from jigsync.io.remote import Place, Remote, place
from jigsync.io.schema import Node
from jigsync.io.seal import checksum
from jigsync.values.errors import FormatError, InputError, JigsyncError, OptionError, bad_value
from jigsync.values.layout import Grid

FORMAT: Final = "jigsync-sweep/1"
SWEEP_FILE: Final = "sweep.json"
SHARD_FOLDER: Final = "shards"
STATS_FOLDER: Final = "stats"
REPORT_FILE: Final = "report.json"
MOST_PUZZLES: Final = 2_500_000
"""Rows of one manifest: a file of less than a gigabyte, which is the most that is read."""
OURS: Final = (SWEEP_FILE, MANIFEST_FILE, SHARD_FOLDER, STATS_FOLDER, REPORT_FILE, LOCK_FILE)
"""All that a corpus folder holds."""

Progress = Callable[[str, int, int], None]
"""Called with (what is done, how many are done, how many there are)."""


@dataclass(frozen=True)
class SweepOptions:
    """What to cut from every picture: all combinations of grids and severities, `per_image` times."""

    grids: tuple[Grid, ...]
    severities: tuple[str, ...]
    per_image: int = 1
    cell: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        for name, values in (("grids", self.grids), ("severities", self.severities)):
            if not values or len(set(values)) != len(values):
                raise bad_value(name, "a sweep", "a list of different values", ",".join(str(v) for v in values))
        for severity in self.severities:
            if severity not in SEVERITIES:
                raise bad_value("severities", "a sweep", f"'all' or some of {', '.join(SEVERITIES)}", severity)
        for name, low in (("per_image", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**63:
                raise bad_value(name, "a sweep", f"an integer of at least {low}", value)
        for grid in self.grids:
            CutOptions(grid, self.cell)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "grids": [str(grid) for grid in self.grids],
            "severities": list(self.severities),
            "per_image": self.per_image,
            "cell": self.cell,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Skipped:
    """A picture that takes no part, and why."""

    image: str
    reason: str


@dataclass(frozen=True)
class Sweep:
    """A corpus on disk: its manifest, the folder of its pictures, and what was left out."""

    out: Place
    images: Path
    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...]


def plan_sweep(
    images: StrPath, out: StrPath, options: SweepOptions, *, workers: int = 1, progress: Progress | None = None
) -> Sweep:
    """Writes the manifest of a folder of pictures (or of one picture), or finds the same sweep already begun.

    Pictures that cannot be read or cut, and copies of another one, are skipped and named; with none left it raises.
    """
    source, target = Path(images), place(out)
    pictures = [source] if source.is_file() else list_images(source)
    asked = len(pictures) * len(options.grids) * len(options.severities) * options.per_image
    if asked > MOST_PUZZLES:
        raise OptionError(
            f"A sweep may have at most {MOST_PUZZLES} puzzles. Got {asked}: put the pictures into several folders, each"
            " a sweep of its own."
        )
    request = {
        "format": FORMAT,
        "images": os.fspath(_folder(source).resolve()),
        "pictures": [[path.name, path.lstat().st_size] for path in pictures],
        "options": options.to_json(),
    }
    # A URL that cannot be written to is found out before the pictures are read.
    with only_writer(target) if isinstance(target, Remote) else nullcontext():
        _check_out(target, request)
        if (target / SWEEP_FILE).is_file() and (target / MANIFEST_FILE).is_file():
            return load_sweep(target)
        return _planned(source, pictures, target, options, request, workers, progress)


def _planned(
    source: Path,
    pictures: Sequence[Path],
    target: Place,
    options: SweepOptions,
    request: dict[str, Any],
    workers: int,
    progress: Progress | None,
) -> Sweep:
    found, skipped = usable_pictures(pictures, workers, progress)
    if not found:
        raise InputError(f"None of the {len(pictures)} pictures in '{source}' can be used: {skipped[0].reason}")
    rows = plan_rows(
        found, options.grids, options.severities, per_image=options.per_image, cell=options.cell, seed=options.seed
    )
    write_manifest(target / MANIFEST_FILE, rows)
    # Last, because its presence says that the manifest is whole.
    skips = [[entry.image, entry.reason] for entry in skipped]
    write_json(
        target / SWEEP_FILE, {**request, "skipped": skips, "manifest": checksum([row.to_json() for row in rows])}
    )
    return Sweep(target, _folder(source), tuple(rows), tuple(skipped))


def _folder(source: Path) -> Path:
    return source.parent if source.is_file() else source


def load_sweep(out: StrPath) -> Sweep:
    """A corpus that was planned before."""
    target = place(out)
    path = target / SWEEP_FILE
    root = Node(read_json(path), os.fspath(path))
    root.format(FORMAT)
    pairs = (entry.entries(2) for entry in root.key("skipped").entries())
    skipped = tuple(Skipped(image.text(), reason.text()) for image, reason in pairs)
    rows = read_manifest(target / MANIFEST_FILE)
    if root.has("manifest") and root.key("manifest").value != _checksum(rows):
        raise FormatError(f"The file '{target / MANIFEST_FILE}' is damaged: it is not the one '{SWEEP_FILE}' tells of.")
    return Sweep(target, Path(root.key("images").text()), tuple(rows), skipped)


def _checksum(rows: Sequence[Row]) -> str:
    return checksum([row.to_json() for row in rows])


def _check_out(target: Place, request: dict[str, Any]) -> None:
    """The folder must be absent, empty, or hold the very same sweep."""
    strangers = [name for name in list_names(target) if name not in OURS]
    if strangers:
        raise OptionError(f"The output folder '{target}' must be empty or hold a sweep. Got one with '{strangers[0]}'.")
    if (target / SWEEP_FILE).is_file():
        old = read_json(target / SWEEP_FILE)
        differs = [key for key in request if not isinstance(old, dict) or old.get(key) != request[key]]
        if differs:
            raise OptionError(f"The output folder '{target}' holds another sweep (other {differs[0]}): name a new one.")


def usable_pictures(
    pictures: Sequence[Path], workers: int, progress: Progress | None
) -> tuple[list[tuple[str, str]], list[Skipped]]:
    """Hashes every picture and tries to decode it: ((name, sha256) of the usable ones, the others)."""
    results: dict[Path, tuple[str, str]] = {}
    for done, (path, result) in enumerate(run_units(_probe, list(pictures), workers), start=1):
        results[path] = result
        if progress:
            progress("pictures read", done, len(pictures))
    found: dict[str, str] = {}
    skipped = []
    for path in pictures:
        sha, reason = results[path]
        if not reason and sha in found:
            reason = f"The picture '{path.name}' is a copy of '{found[sha]}'."
        if reason:
            skipped.append(Skipped(path.name, reason))
        else:
            found[sha] = path.name
    return [(name, sha) for sha, name in found.items()], skipped


def _probe(path: Path) -> tuple[str, str]:
    """(sha256, why it cannot be used); one of the two is empty."""
    try:
        data = read_bytes(path, MAX_BYTES)
        # The smallest canvas: refuses what no grid could be cut from.
        make_canvas(read_rgb(data, name=path.name), CutOptions(Grid(1, 1), 8), f"The picture '{path.name}'")
    except JigsyncError as error:
        return "", str(error)
    return image_bytes_sha256(data), ""
