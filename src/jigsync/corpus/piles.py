"""Piles as people have them: fragments of a picture without some of them, with strangers, or of two pictures at once.

A pile is made of puzzles whose truth is known. Their fragments get new names in one shuffled order; a fragment that was
taken away is in no pile, and a stranger belongs to no picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth

Cut = tuple[Puzzle, Truth]
FEWEST: Final = 2
"""Fragments of a picture that stay in any case."""


@dataclass(frozen=True, eq=False)
class Pile:
    """Fragments and where each belongs.

    Attributes:
        puzzle: what a solver sees.
        homes: of every picture, id -> place; a stranger is in none of them.
    """

    puzzle: Puzzle
    homes: tuple[dict[str, Placed], ...]

    @property
    def strangers(self) -> tuple[str, ...]:
        """Ids of the fragments that belong to no picture."""
        belong = {name for home in self.homes for name in home}
        return tuple(name for name in self.puzzle.ids if name not in belong)


def pile(pictures: Sequence[Cut], rng: np.random.Generator, missing: int = 0, others: Sequence[Puzzle] = ()) -> Pile:
    """Puzzles thrown together.

    Args:
        pictures: puzzles and their truths.
        rng: shuffles, and chooses what is missing.
        missing: so many fragments of each picture are taken away.
        others: puzzles of which one fragment each, chosen by rng, is thrown in as a stranger.
    """
    found: list[tuple[Pixels, int, Placed | None]] = []
    for number, (puzzle, truth) in enumerate(pictures):
        away = rng.permutation(len(puzzle))[: max(0, min(missing, len(puzzle) - FEWEST))].tolist()
        for k, (name, pixels) in enumerate(zip(puzzle.ids, puzzle.fragments.pixels, strict=True)):
            if k not in away:
                found.append((pixels, number, truth.placement[name]))
    found += [(puzzle.fragments.pixels[int(rng.integers(len(puzzle)))], -1, None) for puzzle in others]
    order = rng.permutation(len(found)).tolist()
    ids = tuple(f"f{k:03d}" for k in range(len(found)))
    homes: tuple[dict[str, Placed], ...] = tuple({} for _ in pictures)
    for name, k in zip(ids, order, strict=True):
        _, number, home = found[k]
        if home is not None:
            homes[number][name] = home
    first = pictures[0][0]
    fragments = Fragments(ids, tuple(found[k][0] for k in order))
    return Pile(Puzzle(fragments, first.cell, first.container, first.name), homes)
