"""Which samples of outlines may have touched: products of codes in blocks, of which the best are kept.

    S(s, t) = f_s . g_t + g_s . f_t                                 t on another fragment
    p(t | s) = exp S(s, t) / (exp n_s + sum_t' exp S(s, t'))        n_s the logit of "no mate"
    strength = sqrt(p(t | s) p(s | t))

The T x T matrix is never whole: ROWS rows of it exist at a time and thread, and MOST entries of a row are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.parts import side_by_side
from jigsync.values.outlines import Ints, Matches, Outlines

Floats32 = NDArray[np.float32]

MEMORY: Final = 16 << 20
"""Bytes of a block of the matrix."""
MOST: Final = 12
"""Mates of a sample that are kept."""
LEAST_P: Final = 2e-3
"""Least p(t | s) that is kept."""
LEAST_STRENGTH: Final = 4e-3


@dataclass(frozen=True, eq=False)
class SampleCodes:
    """What the network says of every sample.

    Shapes: f, g (T, E), none (T,) float32.
    """

    f: Floats32
    g: Floats32
    none: Floats32


@dataclass(frozen=True, eq=False)
class _Kept:
    """Entries of some rows, and those rows' log of all that p is divided by."""

    s: Ints
    t: Ints
    score: Floats32
    log_all: Floats32


def match(codes: SampleCodes, outlines: Outlines) -> tuple[Matches, Floats32]:
    """The matches of a puzzle, each pair of samples once, s < t; and log of what p(t | s) is divided by, (T,)."""
    total = len(codes.none)
    here = np.concatenate([codes.f, codes.g], axis=1)
    there = np.ascontiguousarray(np.concatenate([codes.g, codes.f], axis=1).T)
    owner = outlines.owner
    rows = max(16, MEMORY // (4 * max(total, 1)))
    blocks = [slice(first, min(first + rows, total)) for first in range(0, total, rows)]
    kept = side_by_side([partial(_block, here, there, codes.none, owner, outlines.start, part) for part in blocks])
    s, t = (np.concatenate([getattr(part, name) for part in kept]) for name in ("s", "t"))
    score = np.concatenate([part.score for part in kept]).astype(np.float64)
    log_all = np.concatenate([part.log_all for part in kept])
    strength = np.exp(score - (log_all[s] + log_all[t]) / 2)
    key = np.minimum(s, t) * total + np.maximum(s, t)
    strong = strength > LEAST_STRENGTH
    key, first = np.unique(key[strong], return_index=True)
    found = Matches(key // max(total, 1), key % max(total, 1), np.minimum(strength[strong][first], 1.0))
    return found, log_all


def _block(here: Floats32, there: Floats32, none: Floats32, owner: Ints, start: Ints, part: slice) -> _Kept:
    scores = here[part] @ there
    for fragment in range(owner[part.start], owner[part.stop - 1] + 1):
        rows = slice(max(start[fragment], part.start) - part.start, min(start[fragment + 1], part.stop) - part.start)
        scores[rows, start[fragment] : start[fragment + 1]] = -np.inf
    top = np.maximum(scores.max(axis=1), none[part])
    scores -= top[:, None]
    share = np.exp(scores, out=scores)
    total = share.sum(axis=1) + np.exp(none[part] - top)
    row, col = np.nonzero(share > np.float32(LEAST_P) * total[:, None])
    score = np.log(share[row, col]) + top[row]
    log_all = top + np.log(total)
    order = np.lexsort((-score, row))
    row, col, score = row[order], col[order], score[order]
    first = np.searchsorted(row, np.arange(len(top)))
    few = np.arange(len(row)) - first[row] < MOST
    return _Kept(row[few] + part.start, col[few], score[few], log_all)
