"""Measurements in all their forms must say the same thing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.border import FEW, MANY, border_odds, border_weight
from jigsync.values.errors import FormatError, OptionError
from jigsync.values.listing import UNIFORM, Listing
from jigsync.values.measurements import Measurements, UnaryCells
from jigsync.values.pairs import Relations

IDS = ("f017", "f003", "f101", "f042", "f008")


def random_log_p(n: int, seed: int, sharp: float = 2.0) -> np.ndarray:
    logits = sharp * np.random.default_rng(seed).standard_normal((n, n, 192))
    return (logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)).astype(np.float32)


def random_side_log_p(n: int, seed: int) -> np.ndarray:
    """(4N, 4N) log-probabilities; the 16 of a pair sum to less than 1 and are not symmetric."""
    rng = np.random.default_rng(seed)
    p = rng.random((n, 4, n, 4)) ** 6
    p *= rng.uniform(0.05, 0.95, (n, 1, n, 1)) / p.sum(axis=(1, 3), keepdims=True)
    return np.log(p).reshape(4 * n, 4 * n).astype(np.float32)


def by_hand(p_ij: np.ndarray, p_ji: np.ndarray, a: int, b: int) -> float:
    """The score of side a of i touching side b of j from both directions' 192 probabilities."""
    p = (p_ij + p_ji[v.REVERSE]) / 2
    touch = next(v.UNIT[a, r] for r in range(4) if z4.reverse(a, r)[0] == b)
    return float(np.log(p[touch]) - np.log(p[~v.IS_UNIT].sum() / 176))


def csr_of(matrix: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    return indptr, np.nonzero(keep)[1], matrix[keep]


def test_dense_sides_by_hand() -> None:
    n = len(IDS)
    log_p = random_log_p(n, 1)
    score = Measurements(IDS, Relations(log_p)).sides(floor=-50).dense
    assert score is not None
    p = np.exp(log_p.astype(np.float64))
    for i, a, j, b in np.ndindex(n, 4, n, 4):
        expected = by_hand(p[i, j], p[j, i], a, b) if i != j else 0.0
        assert score[4 * i + a, 4 * j + b] == pytest.approx(expected, abs=1e-4)
    assert np.array_equal(score, score.T)


def test_nothing_known_scores_zero() -> None:
    uniform = np.full((3, 3, 192), UNIFORM, dtype=np.float32)
    assert np.allclose(Measurements(IDS[:3], Relations(uniform)).sides().dense, 0, atol=1e-5)
    empty = np.zeros(0)
    listing = Listing.of(3, empty, empty, empty, empty)
    scores = Measurements(IDS[:3], listing).sides()
    assert scores.floor == pytest.approx(0, abs=1e-9)
    assert np.allclose(scores.to_dense(), 0, atol=1e-9)
    assert np.allclose(Measurements(IDS[:3], listing).dense, UNIFORM)


def test_sides_and_the_relations_they_stand_for_agree() -> None:
    n = len(IDS)
    sides = random_side_log_p(n, 2)
    made = Measurements.from_sides_log_p(IDS, sides)
    dense = made.dense
    assert dense.shape == (n, n, 192)
    assert np.allclose(np.exp(dense.astype(np.float64)).sum(axis=2), 1, atol=1e-5)
    assert made.unit_only
    for i, a, j, b in np.ndindex(n, 4, n, 4):
        if i != j:
            assert dense[i, j, v.UNIT_OF_SIDES[a, b]] == sides[4 * i + a, 4 * j + b]
    assert np.ptp(dense[0, 1, ~v.IS_UNIT]) == 0
    again = Measurements(IDS, Relations(dense)).sides(floor=-50).dense
    assert np.allclose(made.sides(floor=-50).dense, again, atol=1e-4)


def test_fully_listed_sides_equal_dense_sides() -> None:
    n = len(IDS)
    sides = random_side_log_p(n, 3)
    indptr, indices, values = csr_of(sides, np.ones_like(sides, dtype=bool))
    made = Measurements.from_sides_log_p(IDS, indptr=indptr, indices=indices, values=values)
    want = Measurements.from_sides_log_p(IDS, sides)
    assert np.allclose(made.dense, want.dense, atol=1e-4)
    assert np.allclose(made.sides(floor=-50).to_dense(), want.sides(floor=-50).dense, atol=1e-4)


@given(st.integers(0, 10_000), st.floats(0.05, 0.9), st.sampled_from([UNIFORM, -9.0]))
@settings(max_examples=25, deadline=None)
def test_sparse_sides_are_the_sides_of_the_relations(seed: int, share: float, background: float) -> None:
    n = len(IDS)
    rng = np.random.default_rng(seed)
    sides = random_side_log_p(n, seed)
    keep = rng.random(sides.shape) < share
    indptr, indices, values = csr_of(sides, keep)
    made = Measurements.from_sides_log_p(IDS, indptr=indptr, indices=indices, values=values, background=background)
    dense = made.dense
    assert np.allclose(np.exp(dense.astype(np.float64)).sum(axis=2), 1, atol=1e-5)
    scores = made.sides(floor=-50)
    want = Measurements(IDS, Relations(dense)).sides(floor=-50).dense
    listed = (keep | keep.T) & ~np.kron(np.eye(n, dtype=bool), np.ones((4, 4), dtype=bool))
    assert scores.indices is not None
    assert len(scores.indices) == listed.sum()
    got = scores.to_dense()
    assert np.allclose(got[listed], want[listed], atol=1e-4)
    assert np.array_equal(got, got.T)
    for row in range(4 * n):
        assert np.all(np.diff(scores.indices[scores.indptr[row] : scores.indptr[row + 1]]) > 0)


def test_listed_far_relations_count_as_not_touching() -> None:
    far = int(v.relation_of(0, 6, 1, 2))
    listing = Listing.of(2, np.array([0]), np.array([1]), np.array([far]), np.log([0.9]))
    made = Measurements(IDS[:2], listing)
    row = np.exp(made.pair_log_p(np.array([0]), np.array([1]))[0].astype(np.float64))
    assert row[far] == pytest.approx(0.9)
    assert np.delete(row, far) == pytest.approx(0.1 / 191, rel=1e-5)
    both = made.symmetric(np.array([0]), np.array([1]))[0]
    assert np.exp(both[far]) == pytest.approx((0.9 + 1 / 192) / 2, rel=1e-5)


def test_symmetric_pairs_by_hand() -> None:
    log_p = random_log_p(4, 11)
    made = Measurements(IDS[:4], Relations(log_p))
    p = np.exp(log_p.astype(np.float64))
    i, j = np.array([0, 3, 2]), np.array([1, 1, 0])
    both = made.symmetric(i, j)
    for row, (a, b) in enumerate(zip(i, j, strict=True)):
        assert np.exp(both[row]) == pytest.approx((p[a, b] + p[b, a][v.REVERSE]) / 2, rel=1e-4)
    assert np.allclose(made.symmetric(j, i)[:, v.REVERSE], both, atol=1e-5)


def test_the_floor_holds() -> None:
    log_p = random_log_p(4, 7, sharp=12.0)
    made = Measurements(IDS[:4], Relations(log_p))
    assert made.sides().dense.min() == pytest.approx(-12)
    assert made.sides(floor=-3).dense.min() == pytest.approx(-3)
    impossible = np.full((16, 16), -np.inf, dtype=np.float32)
    assert np.isfinite(Measurements.from_sides_log_p(IDS[:4], impossible).sides().dense).all()


def test_same_pair_asked_for_twice_and_out_of_order() -> None:
    n = len(IDS)
    sides = random_side_log_p(n, 4)
    keep = np.random.default_rng(1).random(sides.shape) < 0.4
    indptr, indices, values = csr_of(sides, keep)
    made = Measurements.from_sides_log_p(IDS, indptr=indptr, indices=indices, values=values)
    i, j = np.array([3, 0, 3, 4]), np.array([1, 2, 1, 0])
    assert np.array_equal(made.pair_log_p(i, j), made.dense[i, j])


def test_known_pairs() -> None:
    listing = Listing.of(5, np.array([4, 0, 0]), np.array([0, 4, 2]), np.array([3, 7, 9]), np.log([0.5, 0.5, 0.5]))
    i, j = Measurements(IDS, listing).known_pairs()
    assert list(zip(i, j, strict=True)) == [(0, 2), (0, 4)]
    assert len(Measurements(IDS, Relations(random_log_p(5, 0))).known_pairs()[0]) == 10


def test_selecting_fragments() -> None:
    n, members = len(IDS), np.array([4, 0, 3])
    sides = random_side_log_p(n, 6)
    indptr, indices, values = csr_of(sides, np.random.default_rng(2).random(sides.shape) < 0.5)
    unary = np.log(np.random.default_rng(0).dirichlet(np.ones(4), n))
    cells = UnaryCells(np.random.default_rng(1).random((n, 2)), np.full(n, 0.1))
    for made in (
        Measurements(IDS, Relations(random_log_p(n, 5)), unary_turns=unary, unary_cells=cells),
        Measurements.from_sides_log_p(IDS, sides, unary_turns=unary, unary_cells=cells),
        Measurements.from_sides_log_p(
            IDS, indptr=indptr, indices=indices, values=values, unary_turns=unary, unary_cells=cells
        ),
    ):
        part = made.select(members)
        assert part.ids == ("f008", "f017", "f042")
        off = ~np.eye(3, dtype=bool)
        assert np.array_equal(part.dense[off], made.dense[np.ix_(members, members)][off])
        assert part.unary_turns is not None
        assert np.array_equal(part.unary_turns, unary[members])
        assert part.unary_cells is not None
        assert np.array_equal(part.unary_cells.xy, cells.xy[members])
        assert part.unit_only == made.unit_only


def test_large_puzzles_stay_sparse() -> None:
    n, rng = 5000, np.random.default_rng(0)
    ids = tuple(f"p{i * 3:05d}" for i in range(n))
    indices = np.sort(rng.integers(0, n, (4 * n, 6)) * 4 + rng.integers(0, 4, (4 * n, 6)), axis=1)
    keep = np.diff(indices, axis=1, prepend=-1) > 0
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    values = np.full(int(keep.sum()), np.log(0.05))
    made = Measurements.from_sides_log_p(ids, indptr=indptr, indices=indices[keep], values=values, background=-11.0)
    scores = made.sides()
    assert scores.dense is None
    assert scores.values is not None
    assert len(scores.values) < 15 * 4 * n
    with pytest.raises(OptionError, match="up to 160 fragments; this puzzle has 5000"):
        made.dense  # noqa: B018


def test_misuse_is_named() -> None:
    log_p = random_log_p(3, 0)
    with pytest.raises(FormatError, match="of 4 fragments got pairs of 3"):
        Measurements(IDS[:4], Relations(log_p))
    with pytest.raises(FormatError, match="unique"):
        Measurements(("a", "a", "b"), Relations(log_p))
    with pytest.raises(FormatError, match="'unary_turns' of measurements must have shape"):
        Measurements(IDS[:3], Relations(log_p), unary_turns=np.zeros((3, 3)))
    with pytest.raises(FormatError, match="NaN"):
        Measurements(IDS[:3], Relations(np.full_like(log_p, np.nan)))
    with pytest.raises(FormatError, match=r"unary_cells\.sigma"):
        Measurements(IDS[:3], Relations(log_p), unary_cells=UnaryCells(np.zeros((3, 2)), np.zeros(2)))
    with pytest.raises(FormatError, match="at most 1"):
        Measurements.from_sides_log_p(IDS[:3], np.full((12, 12), np.log(0.3)))
    one = np.array([1])
    with pytest.raises(FormatError, match="two different fragments"):
        Listing.of(3, one, one, one, -one)
    with pytest.raises(FormatError, match="twice"):
        Listing.of(3, np.array([0, 0]), np.array([1, 1]), np.array([5, 5]), np.array([-3.0, -3.0]))


@given(st.integers(2, 40), st.floats(-6, 6), st.integers(0, 10**6))
def test_border_odds_leave_as_many_sides_on_the_border_as_a_square_has(n: int, bias: float, seed: int) -> None:
    """Whatever a measurer's bias, the posterior share of the border is that of a square grid, in the same order."""
    odds = np.random.default_rng(seed).normal(bias, 2, 4 * n)
    log_p = -np.logaddexp(0, -odds).astype(np.float32)
    made = border_odds(log_p)
    q = 1 / np.sqrt(max(n, 4))
    assert np.mean(1 / (1 + np.exp(-made - np.log(q / (1 - q))))) == pytest.approx(q, abs=1e-6)
    assert (np.diff(made[np.argsort(log_p, kind="stable")]) >= -1e-9).all()


def test_the_border_counts_for_less_the_more_fragments_there_are() -> None:
    assert [border_weight(n) for n in (1, 4, 9)] == [FEW] * 3
    weights = [border_weight(n) for n in (9, 16, 25, 100, 5000)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == pytest.approx(MANY, abs=1e-4)


def test_border_goes_with_its_fragments_into_the_scores() -> None:
    border = np.linspace(-3, -0.1, 12).astype(np.float32)
    made = Measurements.from_sides_log_p(("a", "b", "c"), np.full((12, 12), -5.0), border=border)
    scores = made.sides()
    assert scores.border is not None
    np.testing.assert_allclose(scores.border, FEW * border_odds(border), rtol=1e-5)
    np.testing.assert_array_equal(made.select(np.array([2, 0])).border, border[[8, 9, 10, 11, 0, 1, 2, 3]])
    with pytest.raises(FormatError, match="'border' of measurements must have shape"):
        Measurements.from_sides_log_p(("a", "b"), np.full((8, 8), -5.0), border=border)
