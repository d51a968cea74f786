"""Puzzles that nobody here made: folders with the fragments and the truth, alone or in sets.

DIR/puzzle/, DIR/truth.json            one puzzle
DIR/PUZZLE/puzzle/, .../truth.json     a set
DIR/SET/PUZZLE/...                     many sets
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jigsync.corpus.plan import Skipped
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.plan import interleaved
from jigsync.evaluate.sources import PUZZLE_FOLDER, FragmentsSource, fragments_sha256
from jigsync.evaluate.spec import Setting, Spec
from jigsync.io.truth_file import TRUTH_FILE, load_truth
from jigsync.score.kinds import NO_KIND
from jigsync.values.errors import InputError, JigsyncError
from jigsync.values.layout import Grid

DEPTH: Final = 2
"""Folders that may lie between DIR and a puzzle's own."""


def from_fragments(folder: Path, puzzles: int | None, seed: int) -> tuple[list[Spec], tuple[Skipped, ...]]:
    """The puzzles below a folder, `puzzles` of every set, and those that cannot be used."""
    if not folder.is_dir():
        raise InputError(f"The fragments '{folder}' must be a folder of puzzles. There is none.")
    specs, skipped = [], []
    for path in _puzzles(folder, DEPTH):
        try:
            specs.append(_spec(path, folder))
        except JigsyncError as error:
            skipped.append(Skipped(str(path), str(error)))
    if not specs:
        why = f": {skipped[0].reason}" if skipped else f": none has a folder '{PUZZLE_FOLDER}' beside a {TRUTH_FILE}."
        raise InputError(f"The folder '{folder}' holds no puzzle that can be scored{why}")
    sets: dict[Setting, list[Spec]] = {}
    for spec in sorted(specs, key=lambda spec: derive_seed(seed, spec.name)):
        sets.setdefault(spec.setting, []).append(spec)
    return interleaved([listed[:puzzles] for listed in sets.values()]), tuple(skipped)


def _puzzles(folder: Path, depth: int) -> Iterator[Path]:
    """Folders that hold a puzzle, or one that lacks its truth."""
    if (folder / PUZZLE_FOLDER).is_dir():
        yield folder
    elif depth >= 0:
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                yield from _puzzles(path, depth - 1)


def _spec(path: Path, root: Path) -> Spec:
    if not (path / TRUTH_FILE).is_file():
        raise InputError(f"The puzzle '{path}' has no {TRUTH_FILE}: it cannot be scored.")
    truth = load_truth(path / TRUTH_FILE)
    sha = fragments_sha256(path)
    own = path.resolve()
    called = root.resolve().name if own.parent in (root.resolve(), root.resolve().parent) else own.parent.name
    grid = truth.layout if isinstance(truth.layout, Grid) else None
    setting = Setting(called, "", "", grid, 0 if grid is None else grid.size)
    name = re.sub(r"[^a-z0-9_]+", "-", f"{called}-{own.name}".lower()).strip("-_")[:120] or "puzzle"
    source = FragmentsSource(own, sha)
    return Spec(f"{name}-{sha[:12]}", setting, own.name, NO_KIND, derive_seed(sha, "solve") % 2**31, False, source)
