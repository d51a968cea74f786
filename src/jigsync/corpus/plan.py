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
from functools import partial
from pathlib import Path
from typing import Any, Final

from jigsync.corpus.manifest import MANIFEST_FILE, Row, plan_rows, read_manifest, write_manifest
from jigsync.corpus.pool import run_units
from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.handed import Presentation
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.tear import check_tear
from jigsync.cutting.tear_options import Style, TearOptions
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
    """What to cut and tear from every picture: all combinations, `per_image` times.

    Attributes:
        grids: of cuts; may be empty when something is torn.
        severities: of cuts and tears.
        per_image: puzzles of each picture and combination.
        cell: pitch of the cells, and size of the pieces.
        seed: of the whole sweep.
        presentations: of cuts, and of tears as far as they can have them; None: "cell" and "any".
        pieces, styles: of tears; no pieces: nothing is torn.
    """

    grids: tuple[Grid, ...]
    severities: tuple[str, ...]
    per_image: int = 1
    cell: int = 128
    seed: int = 0
    presentations: tuple[Presentation, ...] | None = None
    pieces: tuple[int, ...] = ()
    styles: tuple[Style, ...] = ("tear",)

    def __post_init__(self) -> None:
        lists: dict[str, tuple[object, ...]] = {
            "grids": self.grids,
            "severities": self.severities,
            "presentations": self.of_cuts,
            "pieces": self.pieces,
            "styles": self.styles,
        }
        for name, values in lists.items():
            may_be_empty = (name == "grids" and self.pieces) or name == "pieces"
            if len(set(values)) != len(values) or not (values or may_be_empty):
                raise bad_value(name, "a sweep", "a list of different values", ",".join(str(v) for v in values))
        for severity in self.severities:
            if severity not in SEVERITIES:
                raise bad_value("severities", "a sweep", f"'all' or some of {', '.join(SEVERITIES)}", severity)
        for name, low in (("per_image", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**63:
                raise bad_value(name, "a sweep", f"an integer of at least {low}", value)
        if self.pieces and self.presentations == ("cell",):
            raise bad_value("presentation", "a sweep of torn pieces", "cropped or any: they have no cells", "cell")
        for grid in self.grids:
            for presentation in self.of_cuts:
                CutOptions(grid, self.cell, presentation=presentation)
        _ = self.tears  # are refused here rather than when they are torn

    @property
    def of_cuts(self) -> tuple[Presentation, ...]:
        """The presentations of cuts."""
        return ("cell",) if self.presentations is None else self.presentations

    @property
    def tears(self) -> tuple[TearOptions, ...]:
        """What is torn, undamaged."""
        loose: tuple[Presentation, ...] = ("any",) if self.presentations is None else self.presentations
        return tuple(
            TearOptions(pieces, self.cell, style, presentation=presentation)
            for style in self.styles
            for pieces in self.pieces
            for presentation in loose
            if presentation != "cell"
        )

    @property
    def each(self) -> int:
        """Puzzles of every picture."""
        return (len(self.grids) * len(self.of_cuts) + len(self.tears)) * len(self.severities) * self.per_image

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is as in sweeps from before tears is left out."""
        more: dict[str, Any] = {}
        if self.presentations is not None:
            more["presentations"] = list(self.presentations)
        if self.pieces:
            more |= {"pieces": list(self.pieces), "styles": list(self.styles)}
        return {
            "grids": [str(grid) for grid in self.grids],
            "severities": list(self.severities),
            "per_image": self.per_image,
            "cell": self.cell,
            "seed": self.seed,
            **more,
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
    asked = len(pictures) * options.each
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
    found, skipped = usable_pictures(pictures, workers, progress, options.tears)
    if not found:
        raise InputError(f"None of the {len(pictures)} pictures in '{source}' can be used: {skipped[0].reason}")
    rows = plan_rows(
        found,
        options.grids,
        options.severities,
        per_image=options.per_image,
        cell=options.cell,
        seed=options.seed,
        presentations=options.of_cuts,
        tears=options.tears,
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
    pictures: Sequence[Path], workers: int, progress: Progress | None, tears: Sequence[TearOptions] = ()
) -> tuple[list[tuple[str, str]], list[Skipped]]:
    """Hashes every picture and tries to decode it: ((name, sha256) of the usable ones, the others).

    A picture is usable when it can be cut, and torn in all of the given ways.
    """
    results: dict[Path, tuple[str, str]] = {}
    probe = partial(_probe, tears=tuple(tears))
    for done, (path, result) in enumerate(run_units(probe, list(pictures), workers), start=1):
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


def _probe(path: Path, tears: Sequence[TearOptions]) -> tuple[str, str]:
    """(sha256, why it cannot be used); one of the two is empty."""
    called = f"The picture '{path.name}'"
    try:
        data = read_bytes(path, MAX_BYTES)
        rgb = read_rgb(data, name=path.name)
        # The smallest canvas: refuses what no grid could be cut from.
        make_canvas(rgb, CutOptions(Grid(1, 1), 8), called)
        for torn in tears:
            check_tear(rgb.shape[0], rgb.shape[1], torn, called)
    except JigsyncError as error:
        return "", str(error)
    return image_bytes_sha256(data), ""
