"""The corpus report: what is in a corpus and whether it is sound.

Blank share, mean gradient and flagged share come from the shards' stats, or, while there are none, from a sample of
the manifest that is cut again. Counts and splits always come from the whole manifest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsync.corpus.manifest import Row
from jigsync.corpus.plan import Sweep, load_sweep
from jigsync.corpus.stats import PuzzleStats, read_stats
from jigsync.corpus.sweep import finished, plan_units, regenerate
from jigsync.cutting.seeds import SPLITS, split_of
from jigsync.io.files import StrPath
from jigsync.values.errors import bad_value

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Part:
    """One line of the report.

    Attributes:
        puzzles, images, fragments: counts over the manifest.
        measured: puzzles behind the three shares; they are None when it is 0.
        blank_share: of the fragments.
        gradient: mean absolute difference of neighbouring grey values, mean over puzzles.
        flagged_share: of the puzzles.
    """

    name: str
    images: int
    puzzles: int
    fragments: int
    measured: int
    blank_share: float | None
    gradient: float | None
    flagged_share: float | None


@dataclass(frozen=True)
class Report:
    """A corpus in numbers.

    Attributes:
        source: "shards" or "sample", where the shares come from.
        parts: total, then splits, then every grid (or style and pieces), presentation and severity.
        images_in_two_splits: hashes of pictures with puzzles in more than one split, or in another than their own.
        shards, shards_done: planned and finished shards.
        missing, doubled: keys of the finished shards' rows that their stats lack or repeat.
        skipped: pictures that took no part.
    """

    source: str
    parts: tuple[Part, ...]
    images_in_two_splits: tuple[str, ...]
    shards: int
    shards_done: int
    missing: tuple[str, ...]
    doubled: tuple[str, ...]
    skipped: int

    @property
    def sound(self) -> bool:
        """No picture in two splits, no puzzle lost or doubled."""
        return not (self.images_in_two_splits or self.missing or self.doubled)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "source": self.source,
            "sound": self.sound,
            "images_in_two_splits": list(self.images_in_two_splits),
            "shards": self.shards,
            "shards_done": self.shards_done,
            "missing": list(self.missing),
            "doubled": list(self.doubled),
            "skipped_images": self.skipped,
            "parts": [vars(part) for part in self.parts],
        }


def corpus_report(out: StrPath, *, sample: int = 100) -> Report:
    """The report of a corpus folder.

    Args:
        out: the folder `jigsync sweep` made.
        sample: puzzles to cut again, evenly over the manifest, when there are no shards.
    """
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise bad_value("sample", "a corpus report", "an integer of at least 1", sample)
    sweep = load_sweep(out)
    units = plan_units(sweep)
    done = finished(units)
    expected = [row.key for unit in done for row in unit.rows]
    stats = [entry for unit in done for entry in read_stats(unit.stats)[1]] if done else list(_sampled(sweep, sample))
    counted = Counter(entry.key for entry in stats)
    return Report(
        source="shards" if done else "sample",
        parts=tuple(_parts(sweep.rows, stats)),
        images_in_two_splits=_in_two_splits(sweep.rows),
        shards=len(units),
        shards_done=len(done),
        missing=tuple(key for key in expected if key not in counted),
        doubled=tuple(key for key, times in counted.items() if times > 1),
        skipped=len(sweep.skipped),
    )


def report_table(report: Report) -> Table:
    """The report for a terminal."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(
        title=f"Corpus report (shares from the {report.source})",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        caption_justify="left",
    )
    table.add_column("part", no_wrap=True)
    for name in ("images", "puzzles", "fragments", "measured", "blank", "gradient", "flagged"):
        table.add_column(name, justify="right")
    for part in report.parts:
        counts = (part.images, part.puzzles, part.fragments, part.measured)
        gradient = "-" if part.gradient is None else f"{part.gradient:.2f}"
        shares = (_percent(part.blank_share), gradient, _percent(part.flagged_share))
        table.add_row(part.name, *(str(count) for count in counts), *shares)
    table.caption = (
        f"{len(report.images_in_two_splits)} images in two splits, {len(report.missing)} puzzles missing,"
        f" {len(report.doubled)} doubled, {report.skipped} pictures skipped,"
        f" {report.shards_done} of {report.shards} shards made"
    )
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def _sampled(sweep: Sweep, sample: int) -> Iterator[PuzzleStats]:
    """Stats of an even sample of the manifest, in its order, so that pictures are decoded once."""
    picks = np.unique(np.linspace(0, len(sweep.rows) - 1, min(sample, len(sweep.rows))).astype(int))
    return (stats for stats, _, _ in regenerate(sweep.images, [sweep.rows[k] for k in picks]))


def _in_two_splits(rows: Iterable[Row]) -> tuple[str, ...]:
    splits: dict[str, set[str]] = {}
    for row in rows:
        splits.setdefault(row.image_sha256, {split_of(row.image_sha256)}).add(row.split)
    return tuple(sha for sha, seen in splits.items() if len(seen) > 1)


def _parts(rows: Iterable[Row], stats: Iterable[PuzzleStats]) -> Iterator[Part]:
    rows = list(rows)
    by_key = {entry.key: entry for entry in stats}
    yield _part("all", rows, by_key)
    groupings: list[tuple[Callable[[Row], str], list[str]]] = [
        (lambda row: row.split, list(SPLITS)),
        (lambda row: row.setting, []),
    ]
    for name_of, order in groupings:
        groups: dict[str, list[Row]] = {name: [] for name in order}
        for row in rows:
            groups.setdefault(name_of(row), []).append(row)
        yield from (_part(name, group, by_key) for name, group in groups.items())


def _part(name: str, rows: list[Row], by_key: dict[str, PuzzleStats]) -> Part:
    measured = [by_key[row.key] for row in rows if row.key in by_key]
    shares: tuple[float | None, ...] = (None, None, None)
    if measured:
        blank = sum(entry.blank for entry in measured) / sum(entry.fragments for entry in measured)
        gradient = float(np.mean([entry.gradient for entry in measured]))
        shares = (blank, gradient, float(np.mean([entry.flagged for entry in measured])))
    return Part(
        name,
        len({row.image_sha256 for row in rows}),
        len(rows),
        sum(row.fragments for row in rows),
        len(measured),
        *shares,
    )
