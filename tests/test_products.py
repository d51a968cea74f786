"""Products of rows, in pieces and whole."""

from __future__ import annotations

import numpy as np
import pytest

from jigsync.measure.products import ALONE, FEW, alone, products


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


@pytest.mark.parametrize(
    ("m", "n", "k"), [(256, 200, 186), (16, 64, 168), (7, 5, 504), (33, 129, 1), (0, 4, 3), (3, 0, 9)]
)
def test_alone_they_are_the_same(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(n, k)).astype(np.float32)
    np.testing.assert_allclose(alone(a, b), products(a, b), atol=2e-4)


def test_pieces_that_are_multiplied_alone_are_never_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    done, matmul = [], np.matmul

    def counted(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        done.append(a.shape[-2] * a.shape[-1] * b.shape[-1])
        matmul(a, b, out=out)

    monkeypatch.setattr(np, "matmul", counted)
    for m, n, k in ((256, 4096, 186), (250, 4095, 504), (3, 3, 40_000)):
        alone(np.ones((m, k), dtype=np.float32), np.ones((n, k), dtype=np.float32))
    assert len(done) == 1 + 4 + 1
    assert max(done) <= ALONE
