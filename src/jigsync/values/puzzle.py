"""What a solver sees: fragments with ids, and nothing else about the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jigsync.values.errors import InputError, OptionError

Pixels = NDArray[np.uint8]
"""(H, W, 4) RGBA, colour premultiplied by alpha (colour is I * alpha)."""


@dataclass(frozen=True, eq=False)
class Fragments:
    """Fragments as received: ids and pixels in one object, so that no permutation can part them."""

    ids: tuple[str, ...]
    pixels: tuple[Pixels, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", tuple(self.ids))
        object.__setattr__(self, "pixels", tuple(self.pixels))
        if len(self.ids) != len(self.pixels):
            raise InputError(f"{len(self.ids)} ids for {len(self.pixels)} fragments: one id a fragment is needed.")
        if len(set(self.ids)) != len(self.ids):
            twice = next(name for name in self.ids if self.ids.count(name) > 1)
            raise InputError(f"The fragment id '{twice}' stands twice: ids must be unique.")
        for name, pixels in zip(self.ids, self.pixels, strict=True):
            if pixels.ndim != 3 or pixels.shape[2] != 4 or pixels.dtype != np.uint8 or pixels.size == 0:
                raise InputError(
                    f"The fragment '{name}' must be a non-empty (H, W, 4) uint8 RGBA array."
                    f" Got shape {pixels.shape}, {pixels.dtype} instead."
                )
            pixels.setflags(write=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> Pixels:
        try:
            return self.pixels[self.ids.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def permute(self, order: Sequence[int] | NDArray[np.integer]) -> Fragments:
        """Fragment order[k] becomes the k-th; ids travel with their pixels."""
        if sorted(int(k) for k in order) != list(range(len(self))):
            raise OptionError(f"The 'order' of permute must name each of 0..{len(self) - 1} once. Got {list(order)}.")
        return Fragments(tuple(self.ids[k] for k in order), tuple(self.pixels[k] for k in order))


@dataclass(frozen=True, eq=False)
class Puzzle:
    """N fragments of one picture, shuffled and turned. There is no grid and no truth in here.

    Attributes:
        fragments: what was received.
        cell: cell pitch in pixels, a hint only; None when it is not known.
        container: side of the square every fragment is centred in; None for fragments of mixed sizes.
    """

    fragments: Fragments
    cell: int | None = None
    container: int | None = None
    name: str = field(default="puzzle")

    @property
    def ids(self) -> tuple[str, ...]:
        """Fragment ids in presented order."""
        return self.fragments.ids

    def __len__(self) -> int:
        return len(self.fragments)

    def permute(self, order: Sequence[int] | NDArray[np.integer]) -> Puzzle:
        """The same puzzle presented in another order."""
        return Puzzle(self.fragments.permute(order), self.cell, self.container, self.name)
