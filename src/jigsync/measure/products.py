"""Products of the rows of two matrices; of few rows, or where the caller's threads share the work, in one thread.

BLAS shares a product among threads from 2^18 multiplications on, which takes a tenth of a millisecond. When another
program is using the core, waiting for the second thread takes a hundred times as long: a 3 x 3 solve beside a training
run took 340 ms with that wait and 190 ms without (medians of eight). So few rows are multiplied a piece at a time, each
too small to be shared. Many rows are worth two threads, unless blocks of them are multiplied side by side.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALONE: Final = 2**18
"""Multiplications that OpenBLAS does in one thread (65 536 times its GEMM_MULTITHREAD_THRESHOLD of 4)."""
HIGH: Final = 16
"""Rows of a piece: with as many columns as may be, the quickest shape."""
FEW: Final = 2**14
"""Products of so many pairs of rows are made in pieces: 32 fragments have 128 sides."""


def products(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """a_i . b_j of all rows. Shapes: (M, K), (N, K) -> (M, N)."""
    pairs = len(a) * len(b)
    if not 0 < pairs <= FEW:
        return np.asarray(a @ b.T)
    step = ALONE // pairs
    out = a[:, :step] @ b[:, :step].T
    for start in range(step, a.shape[1], step):
        out += a[:, start : start + step] @ b[:, start : start + step].T
    return np.asarray(out)


def alone(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """a_i . b_j of all rows, by the calling thread alone: numpy walks over pieces that BLAS does not share.

    On a busy machine half of the processor time of two threads, at four fifths of the speed of one with all at once.
    Shapes: (M, K), (N, K) -> (M, N).
    """
    (m, k), n = a.shape, len(b)
    wide = 1 << max(0, (ALONE // (HIGH * max(k, 1))).bit_length() - 1)
    out = np.empty((m, n), dtype=np.float32)
    for rows in _ranges(m, HIGH):
        for cols in _ranges(n, wide):
            high, across = rows.step, cols.step
            part = out[rows.start : rows.stop, cols.start : cols.stop]
            part = part.reshape(len(rows), high, len(cols), across, copy=False)
            left = a[rows.start : rows.stop].reshape(len(rows), 1, high, k)
            right = b[cols.start : cols.stop].reshape(1, len(cols), across, k)
            np.matmul(left, right.swapaxes(2, 3), out=part.swapaxes(1, 2))
    return out


def _ranges(count: int, size: int) -> list[range]:
    """0 .. count in steps of a size, and what is left over in one step."""
    whole = count // size * size
    return [part for part in (range(0, whole, size), range(whole, count, max(1, count - whole))) if len(part)]
