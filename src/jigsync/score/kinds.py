"""Kinds of pictures, so that results can be told apart by them.

A `manifest.csv` with the columns file (relative to it) and kind, in the pictures' folder or in its parent, names them.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jigsync.io.files import read_bytes
from jigsync.values.errors import FormatError

NO_KIND: Final = "pictures"
LIMIT: Final = 16 * 2**20
"""Largest manifest.csv that is read, in bytes."""


def kinds_of(pictures: Sequence[Path]) -> dict[Path, str]:
    """Every picture's kind, from the manifest.csv in its folder's parent, or in the folder; NO_KIND without one."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folder for picture in pictures for folder in (picture.parent, picture.parent.parent)):
        manifest = folder / "manifest.csv"
        if os.path.isfile(manifest):  # Path.is_file raises for a name that is too long
            rows = [row for row in _rows(manifest) if row.get("file") and row.get("kind")]
            found |= {str((folder / row["file"]).resolve()): row["kind"] for row in rows}
    return {picture: found.get(str(picture.resolve()), NO_KIND) for picture in pictures}


def _rows(manifest: Path) -> list[dict[str, str]]:
    try:
        text = read_bytes(manifest, LIMIT).decode("utf-8")
        if "\0" in text:
            raise ValueError("it holds a NUL byte")
        return list(csv.DictReader(io.StringIO(text, newline="")))
    except (ValueError, csv.Error) as error:
        raise FormatError(f"The file '{manifest}' is not a list of pictures and their kinds: {error}.") from None
