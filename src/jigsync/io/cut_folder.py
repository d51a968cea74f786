"""What `jigsync cut` leaves behind: DIR/puzzle/ for solvers and DIR/truth.json beside, never inside, it."""

from __future__ import annotations

from typing import Final

from jigsync.io.files import StrPath, atomic_folder
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.truth_file import TRUTH_FILE, save_truth
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

PUZZLE_FOLDER: Final = "puzzle"
OURS: Final = (PUZZLE_FOLDER, TRUTH_FILE)
"""All that such a folder holds."""


def save_cut(folder: StrPath, puzzle: Puzzle, truth: Truth, *, overwrite: bool = False) -> None:
    """Writes puzzle and truth; the whole folder appears at once, or not at all."""
    with atomic_folder(folder, overwrite=overwrite, ours=OURS) as temporary:
        save_puzzle(temporary / PUZZLE_FOLDER, puzzle)
        save_truth(temporary / TRUTH_FILE, truth)
