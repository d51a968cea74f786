"""Measurements that several studies of one process share: five tables of the paper are of the same puzzles.

Files in a folder that goes with the process; worker processes read and write them too.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.io.files import write_bytes
from jigsync.values.measurements import Measurements, UnaryCells
from jigsync.values.pairs import Relations, TouchingSides

_ARRAYS: Final = ("unary_turns", "border", "reach")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="jigsync-")


def folder() -> Path:
    """The folder of this process; it is removed when the process ends."""
    return Path(_folder().name)


def kept(root: Path, about: str, make: Callable[[], Measurements]) -> Measurements:
    """What `make` gave when it was last asked `about` the same, or what it gives now. Dense forms are kept."""
    path = root / f"{hashlib.sha256(about.encode()).hexdigest()[:32]}.npz"
    if path.is_file():
        return _read(path)
    made = make()
    if isinstance(made.pairs, Relations | TouchingSides):
        write_bytes(path, _bytes(made, made.pairs))
    return made


def _bytes(made: Measurements, pairs: Relations | TouchingSides) -> bytes:
    arrays: dict[str, Any] = {name: value for name in _ARRAYS if (value := getattr(made, name)) is not None}
    if isinstance(pairs, Relations):
        arrays["relations"] = pairs.dense
    else:
        arrays["side_log_p"] = pairs.side_log_p
    if made.cell is not None:
        arrays["cell"] = np.array(made.cell)
    if made.unary_cells is not None:
        arrays |= {"cells_xy": made.unary_cells.xy, "cells_sigma": made.unary_cells.sigma}
    buffer = io.BytesIO()
    arrays |= {"ids": np.array(made.ids), "note": np.array(made.note)}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _read(path: Path) -> Measurements:
    with np.load(path, allow_pickle=False) as stored:
        cells = UnaryCells(stored["cells_xy"], stored["cells_sigma"]) if "cells_xy" in stored else None
        whole = "relations" in stored
        return Measurements(
            tuple(str(name) for name in stored["ids"]),
            Relations(stored["relations"]) if whole else TouchingSides(stored["side_log_p"]),
            **{name: stored[name] for name in _ARRAYS if name in stored},
            unary_cells=cells,
            cell=float(stored["cell"]) if "cell" in stored else None,
            note=str(stored["note"]),
        )
