"""Products of rows, in pieces and whole."""

from __future__ import annotations

import numpy as np
import pytest

from jigsync.measure.products import ALONE, FEW, products


@pytest.mark.parametrize(
    ("m", "n", "k"), [(36, 36, 2080), (5, 100, 700), (128, 128, 33), (129, 128, 40), (1, 1, 1), (0, 4, 3)]
)
def test_they_are_those_of_all_rows(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(n, k))
    expected = np.array([[float(np.sum(x * y)) for y in b] for x in a]).reshape(m, n)
    np.testing.assert_allclose(products(a, b), expected, atol=1e-9)


def test_no_piece_is_large_enough_to_be_shared() -> None:
    class Counted(np.ndarray):
        """Remembers the multiplications of every product."""

        def __matmul__(self, other: np.ndarray) -> np.ndarray:
            done.append(self.shape[0] * self.shape[1] * other.shape[1])
            return np.asarray(self) @ np.asarray(other)

    done: list[int] = []
    products(np.ones((36, 2080)).view(Counted), np.ones((36, 2080)))
    assert max(done) <= ALONE
    assert sum(done) == 36 * 36 * 2080
    done.clear()
    products(np.ones((FEW, 30)).view(Counted), np.ones((2, 30)))
    assert done == [FEW * 2 * 30]
