"""Products of the rows of two matrices; of few rows, in one thread.

BLAS shares a product among threads from 2^18 multiplications on, which takes a tenth of a millisecond. When another
program is using the core, waiting for the second thread takes a hundred times as long: a 3 x 3 solve beside a training
run took 340 ms with that wait and 190 ms without (medians of eight). So few rows are multiplied a piece at a time, each
too small to be shared. Many rows are worth two threads.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALONE: Final = 2**18
"""Multiplications that OpenBLAS does in one thread (65 536 times its GEMM_MULTITHREAD_THRESHOLD of 4)."""
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
