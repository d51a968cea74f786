"""Pictures that are stored turned by quarter turns, with a table that says by how many.

Their JPEG blocks lie as they are stored, so nothing but content tells which side is up, and they can be shown as large
as they are. In a folder or an uncompressed tar file; the table has the same name and the suffix .csv, and the columns
`file` and `turns`: np.rot90(stored, -turns) is upright.
"""

from __future__ import annotations

import csv
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import cannot, open_plain, read_bytes
from jigsync.io.images import list_images, read_rgb
from jigsync.values import z4
from jigsync.values.errors import FormatError, InputError

MAX_TABLE: Final = 1 << 26
"""Bytes of a table."""


@dataclass(frozen=True)
class Stored:
    """One picture: how it is called, its turns, and where its bytes are in the tar file; in a folder, nowhere."""

    name: str
    turns: int
    start: int = 0
    size: int = 0


@dataclass(frozen=True)
class Turned:
    """The pictures of a folder or a tar file; it can be sent to other processes."""

    path: Path
    pictures: tuple[Stored, ...]

    def __len__(self) -> int:
        return len(self.pictures)

    def read(self, k: int) -> NDArray[np.uint8]:
        """The k-th picture, upright. Shapes: -> (H, W, 3)."""
        one = self.pictures[k]
        shown = f"{one.name} of {self.path}"
        if not one.size:
            stored = read_rgb(self.path / one.name)
        else:
            with open_plain(self.path) as file:
                file.seek(one.start)
                stored = read_rgb(file.read(one.size), name=shown)
        return z4.turn_pixels(stored, z4.inverse(one.turns))


def read_turned(path: Path) -> Turned:
    """The pictures of a folder or a tar file that its table names; InputError or FormatError where there are none."""
    turns = _table(path.with_suffix(".csv"))
    found = _in_folder(path) if path.is_dir() else _in_tar(path)
    pictures = tuple(
        Stored(name, turns[base], start, size)
        for name, start, size in found
        if (base := PurePosixPath(name).name) in turns
    )
    if not pictures:
        raise InputError(f"'{path}' must hold pictures that '{path.with_suffix('.csv').name}' names. It holds none.")
    return Turned(path, pictures)


def _table(path: Path) -> dict[str, int]:
    """File name -> turns."""
    try:
        rows = csv.DictReader(io.StringIO(read_bytes(path, MAX_TABLE).decode("utf-8")))
        turns = {row["file"]: int(row["turns"]) for row in rows}
    except (UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError):
        turns = {"": -1}
    if not all(0 <= k < z4.ORDER for k in turns.values()):
        raise FormatError(f"The table '{path}' must have the columns 'file' and 'turns', which are 0, 1, 2 or 3.")
    return turns


def _in_folder(folder: Path) -> list[tuple[str, int, int]]:
    return [(picture.name, 0, 0) for picture in list_images(folder)]


def _in_tar(path: Path) -> list[tuple[str, int, int]]:
    """Name, first byte and size of every file."""
    try:
        with open_plain(path) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            return [(info.name, info.offset_data, info.size) for info in tar if info.isreg() and info.size]
    except OSError as error:
        raise cannot("read", path, error) from None
    except tarfile.TarError as error:
        raise FormatError(f"The file '{path}' is not an uncompressed tar file: {error}.") from None
