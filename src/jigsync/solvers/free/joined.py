"""Matches sorted by the pair of fragments they join, so that those of some pairs are found at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.values.outlines import Matches, Outlines

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Joined:
    """Every match from both sides, sorted.

    Shapes: key (2M,) fragment of s times N plus fragment of t, ascending; s, t, strength (2M,).
    """

    n: int
    key: Ints
    s: Ints
    t: Ints
    strength: Floats

    @classmethod
    def of(cls, outlines: Outlines, matches: Matches) -> Joined:
        """From a measurer's matches."""
        owner = outlines.owner
        s, t = np.concatenate([matches.s, matches.t]), np.concatenate([matches.t, matches.s])
        strength = np.concatenate([matches.strength, matches.strength])
        key = owner[s] * outlines.n + owner[t]
        order = np.argsort(key, kind="stable")
        return cls(outlines.n, key[order], s[order], t[order], strength[order])

    def between(self, a: Ints, b: Ints) -> tuple[Ints, Ints, Ints, Floats]:
        """Matches of pairs (a_k, b_k): k, samples of a, samples of b, strengths. Shapes: (K,), (K,) -> four (M,)."""
        wanted = a * self.n + b
        low, high = np.searchsorted(self.key, wanted), np.searchsorted(self.key, wanted, side="right")
        count = high - low
        row = np.repeat(np.arange(len(wanted)), count)
        at = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + low[row]
        return row, self.s[at], self.t[at], self.strength[at]
