"""Kinds of pictures, so that results can be told apart by them.

A `manifest.csv` with the columns file (relative to it) and kind, in the pictures' folder or in its parent, names them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NO_KIND: Final = "pictures"


def kinds_of(pictures: Sequence[Path]) -> dict[Path, str]:
    """Every picture's kind, from the manifest.csv in its folder's parent, or in the folder; NO_KIND without one."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folder for picture in pictures for folder in (picture.parent, picture.parent.parent)):
        manifest = folder / "manifest.csv"
        if manifest.is_file():
            with manifest.open(encoding="utf-8", newline="") as lines:
                rows = [row for row in csv.DictReader(lines) if row.get("file") and row.get("kind")]
            found |= {str((folder / row["file"]).resolve()): row["kind"] for row in rows}
    return {picture: found.get(str(picture.resolve()), NO_KIND) for picture in pictures}
