"""A corpus is a manifest: one JSON line a puzzle, from which the puzzle can be made again at any time.

    {"key", "image", "image_sha256", "split", "seed", "options"}

`image` is the path below the folder of pictures, `seed` comes by hash from (seed of the sweep, image_sha256, grid,
severity, k), `split` by hash from the picture alone. Rows are ordered by picture, grid, severity and k; there is no
header, so that manifests can be joined and cut with ordinary tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import SPLITS, Split, derive_seed, split_of
from jigsync.io.files import StrPath, read_jsonl, write_jsonl
from jigsync.io.schema import Node
from jigsync.io.shards import KEY
from jigsync.values.errors import JigsyncError
from jigsync.values.layout import Grid

MANIFEST_FILE: Final = "manifest.jsonl"


@dataclass(frozen=True)
class Row:
    """One puzzle of a corpus."""

    key: str
    image: str
    image_sha256: str
    split: Split
    seed: int
    options: CutOptions

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
    def severity(self) -> str:
        """The name of the damage, or its three axes."""
        damage = self.options.damage
        named = (name for name, known in SEVERITIES.items() if known == damage)
        return next(named, f"{damage.shape:g}/{damage.erosion:g}/{damage.photo:g}")


def plan_rows(
    images: Iterable[tuple[str, str]],
    grids: Sequence[Grid],
    severities: Sequence[str],
    *,
    per_image: int,
    cell: int,
    seed: int,
) -> list[Row]:
    """Every puzzle of a sweep.

    Args:
        images: (path below the folder of pictures, sha256 of its bytes), each hash once.
        grids, severities: all combinations are cut.
        per_image: puzzles of one picture, grid and severity.
        cell: cell pitch in pixels.
        seed: of the whole sweep.
    """
    rows = []
    for image, sha in images:
        for grid in grids:
            for severity in severities:
                options = CutOptions(grid, cell, SEVERITIES[severity])
                for k in range(per_image):
                    drawn = derive_seed(seed, sha, str(grid), severity, k)
                    key = f"{sha[:16]}-{grid}-{severity}-{k}"
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
        cut = CutOptions.from_json(options.object())
    except (JigsyncError, TypeError, AttributeError) as error:
        raise options.refuse(f"generator options ({error})") from None
    return Row(key.text(), image.text(), sha.text(), split.value, node.key("seed").integer(0, 2**63 - 1), cut)
