"""A corpus is a manifest: one JSON line a puzzle, from which the puzzle can be made again at any time.

    {"key", "image", "image_sha256", "split", "seed", "options"}

`image` is the path below the folder of pictures, `options` are of a cut or, where they have "pieces", of a tear. `seed`
comes by hash from (seed of the sweep, image_sha256, grid or style and pieces, severity, k), so that all presentations
of a puzzle have the same damage; `split` by hash from the picture alone. Rows are ordered by picture, grid (then style
and pieces), presentation, severity and k; there is no header, so that manifests can be joined and cut with ordinary
tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jigsync.cutting.handed import Presentation
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import SPLITS, Split, derive_seed, split_of
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.files import StrPath, read_jsonl, write_jsonl
from jigsync.io.schema import Node
from jigsync.io.shards import KEY
from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.layout import Grid

MANIFEST_FILE: Final = "manifest.jsonl"

Options = CutOptions | TearOptions


@dataclass(frozen=True)
class Row:
    """One puzzle of a corpus."""

    key: str
    image: str
    image_sha256: str
    split: Split
    seed: int
    options: Options

    def to_json(self) -> dict[str, Any]:
        """The manifest's line."""
        return {
            "key": self.key,
            "image": self.image,
            "image_sha256": self.image_sha256,
            "split": self.split,
            "seed": self.seed,
            "options": self.options.to_json(),
        }

    @property
    def cut(self) -> CutOptions:
        """The options of a cut; FormatError for a tear."""
        if not isinstance(self.options, CutOptions):
            raise FormatError(f"The puzzle '{self.key}' is torn: it has no cells.")
        return self.options

    @property
    def fragments(self) -> int:
        """How many there are."""
        return self.options.grid.size if isinstance(self.options, CutOptions) else self.options.pieces

    @property
    def severity(self) -> str:
        """The name of the damage, or its three axes."""
        if isinstance(self.options, CutOptions):
            damage = self.options.damage
            named = (name for name, known in SEVERITIES.items() if known == damage)
            return next(named, f"{damage.shape:g}/{damage.erosion:g}/{damage.photo:g}")
        torn = self.options
        named = (name for name, d in SEVERITIES.items() if (d.erosion / 2, 0.0, d.photo) == _axes(torn))
        return next(named, "/".join(f"{value:g}" for value in _axes(torn)))

    @property
    def setting(self) -> str:
        """What the puzzle shares with those it is counted with; of a cut in cells: grid and severity."""
        return " ".join((*_kind(self.options), self.severity))


def _axes(torn: TearOptions) -> tuple[float, float, float]:
    return torn.erosion, torn.rim, torn.photo


def _kind(options: Options) -> tuple[str, ...]:
    """Grid or style and pieces, then the presentation unless it is "cell"."""
    if isinstance(options, CutOptions):
        return (str(options.grid), *((options.presentation,) if options.presentation != "cell" else ()))
    return f"{options.style}{options.pieces}", options.presentation


def plan_rows(
    images: Iterable[tuple[str, str]],
    grids: Sequence[Grid],
    severities: Sequence[str],
    *,
    per_image: int,
    cell: int,
    seed: int,
    presentations: Sequence[Presentation] = ("cell",),
    tears: Sequence[TearOptions] = (),
) -> list[Row]:
    """Every puzzle of a sweep.

    Args:
        images: (path below the folder of pictures, sha256 of its bytes), each hash once.
        grids, presentations, severities: all combinations are cut.
        per_image: puzzles of one picture and combination.
        cell: cell pitch in pixels.
        seed: of the whole sweep.
        tears: pieces, size, style and presentation of what is torn; erosion and photometry are those of the severity.
    """
    wanted: list[tuple[str, Options]] = [
        (name, CutOptions(grid, cell, SEVERITIES[name], presentation=presentation))
        for grid in grids
        for presentation in presentations
        for name in severities
    ]
    for torn in tears:
        for name in severities:
            damage = SEVERITIES[name]
            # The same mean depth off every edge as a cut has.
            wanted.append((name, replace(torn, erosion=damage.erosion / 2, photo=damage.photo)))
    rows = []
    for image, sha in images:
        for severity, options in wanted:
            kind = _kind(options)
            for k in range(per_image):
                drawn = derive_seed(seed, sha, kind[0], severity, k)
                key = "-".join((sha[:16], *kind, severity, str(k)))
                rows.append(Row(key, image, sha, split_of(sha), drawn, options))
    return rows


def write_manifest(path: StrPath, rows: Iterable[Row]) -> None:
    """Writes the manifest, atomically."""
    write_jsonl(path, (row.to_json() for row in rows))


def read_manifest(path: StrPath) -> list[Row]:
    """Reads a manifest; every defect is one sentence that names the line."""
    rows = [_row(Node(value, f"{path}:{number}")) for number, value in enumerate(read_jsonl(path), start=1)]
    keys: set[str] = set()
    for number, row in enumerate(rows, start=1):
        if row.key in keys:
            raise Node(row.key, f"{path}:{number}", "key").refuse("unique")
        keys.add(row.key)
    return rows


def _row(node: Node) -> Row:
    key, image, sha, split, options = (node.key(k) for k in ("key", "image", "image_sha256", "split", "options"))
    if not KEY.fullmatch(key.text()):
        raise key.refuse("lower-case letters, digits, - and _")
    plain = Path(image.text())
    if plain.is_absolute() or ".." in plain.parts or "\0" in image.text():
        raise image.refuse("a path below the folder of pictures")
    if len(sha.text()) != 64 or set(sha.text()) - set("0123456789abcdef"):
        raise sha.refuse("a sha256 in 64 hex digits")
    if split.value not in SPLITS:
        raise split.refuse(f"one of {', '.join(SPLITS)}")
    try:
        value = options.object()
        made = TearOptions.from_json(value) if "pieces" in value else CutOptions.from_json(value)
    except (JigsyncError, TypeError, AttributeError) as error:
        raise options.refuse(f"generator options ({error})") from None
    return Row(key.text(), image.text(), sha.text(), split.value, node.key("seed").integer(0, 2**63 - 1), made)
