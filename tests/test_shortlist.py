"""Candidates of large puzzles: found by products, compared in full, and nearly what all pairs would give."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.measure import boundary, probabilities, shortlist
from jigsync.measure.calibration import RowStats, log_normaliser, row_stats, shipped
from jigsync.measure.contour import read_contours
from jigsync.measure.parts import using_threads
from jigsync.measure.shortlist import Searchable, Shortlist, pair_logits
from jigsync.score.touching import touching
from jigsync.values.layout import Grid

NAMES = boundary.MEASURERS["boundary"]["flush"]
CALIBRATION = shipped("boundary", "flush", NAMES)
SIDES = 4 * 14 * 14
PUZZLE, TRUTH = cut_squares(read_rgb(picture("coffee")), SquareOptions(16, Grid(14, 14)), 3)
TRUE = touching(TRUTH.placement, PUZZLE.ids)


@cache
def costs() -> tuple[list[Searchable], np.ndarray]:
    contours = read_contours(PUZZLE)
    return shortlist.searchable(boundary.make_costs(contours, NAMES), CALIBRATION), contours.own_features


@cache
def found() -> Shortlist:
    made, own = costs()
    return shortlist.shortlist(made, CALIBRATION, CALIBRATION.no_neighbour(own))


@cache
def whole() -> np.ndarray:
    """The logits of all pairs of sides."""
    made, _ = costs()
    values, stats = probabilities.dense_log_costs(made, len(PUZZLE))
    return probabilities._logits(values, slice(0, SIDES), stats, CALIBRATION)


def test_all_costs_of_flush_squares_can_be_looked_up() -> None:
    assert len(costs()[0]) == len(NAMES)


def test_costs_that_rank_nobody_are_not_looked_up() -> None:
    made, _ = costs()
    assert shortlist.searchable(made, replace(CALIBRATION, weights=np.abs(CALIBRATION.weights))) == []
    worn = boundary.make_costs(read_contours(PUZZLE), ["mgc", "fit"])
    assert shortlist.searchable(worn, replace(CALIBRATION, weights=CALIBRATION.weights[:6], costs=("mgc", "fit"))) == []


@pytest.mark.parametrize("which", range(len(NAMES)), ids=NAMES)
def test_a_cost_is_the_same_however_it_is_asked(which: int) -> None:
    cost, rows = costs()[0][which], slice(8, 40)
    every = cost.rows(rows)
    sides = np.random.default_rng(0).permutation(SIDES)[:100]
    np.testing.assert_allclose(cost.against(rows, sides), every[:, sides], rtol=2e-4, atol=cost.noise / 50)
    each = np.random.default_rng(1).integers(0, SIDES, (32, 20))
    wanted = np.take_along_axis(every, each, axis=1)
    np.testing.assert_allclose(cost.pairs(rows, each), wanted, rtol=2e-4, atol=cost.noise / 50)


@pytest.mark.parametrize("which", range(len(NAMES)), ids=NAMES)
def test_a_quick_cost_orders_as_the_cost_does(which: int) -> None:
    cost = costs()[0][which]
    every, quick = cost.rows(slice(0, SIDES)), cost.quick(slice(0, SIDES), slice(100, 400))
    if NAMES[which] != "prediction":
        np.testing.assert_allclose(quick, every[:, 100:400], rtol=0.02, atol=cost.noise / 5)
    orders = np.argsort(np.argsort(quick, axis=1), axis=1), np.argsort(np.argsort(every[:, 100:400], axis=1), axis=1)
    assert np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(*orders, strict=True)]) > 0.97


def test_the_likeliest_candidates_are_on_the_list() -> None:
    best = np.argsort(-whole(), axis=1)
    listed = (found().cols[:, :, None] == best[:, None, :48]).any(axis=1)
    assert listed[:, 0].mean() > 0.99
    weight = np.exp(np.take_along_axis(whole(), best[:, :48], axis=1))
    assert (listed * weight).sum() / weight.sum() > 0.97
    has = TRUE >= 0
    assert (found().cols == TRUE[:, None]).any(axis=1)[has].mean() > 0.99


def test_no_side_lists_its_own_fragment_or_a_side_twice() -> None:
    assert (found().cols // 4 != np.arange(SIDES)[:, None] // 4).all()
    assert all(len(set(row)) == shortlist.COUNT for row in found().cols)


def test_logits_and_normalisers_are_those_of_all_pairs() -> None:
    """Up to what a sample leaves open: medians, and the weight of what is not listed."""
    away = found().logits - np.take_along_axis(whole(), found().cols, axis=1)
    assert np.abs(away).mean() < 0.15
    none = CALIBRATION.no_neighbour(costs()[1])
    assert np.abs(found().normaliser - log_normaliser(whole(), none)).mean() < 0.15
    assert abs(np.mean(found().normaliser - log_normaliser(whole(), none))) < 0.05


def test_with_statistics_of_all_pairs_a_pairs_logit_is_exact() -> None:
    made, _ = costs()
    values, stats = probabilities.dense_log_costs(made, len(PUZZLE))
    weights = [np.float32(level + 2 * lead) for level, lead, _ in CALIBRATION.by_cost]
    s, t = np.arange(0, SIDES, 3)[:, None], np.random.default_rng(2).integers(0, SIDES, (1, 200))
    apart = s // 4 != t // 4
    weighted = np.zeros(apart.shape, dtype=np.float32)
    for value, weight in zip(values, weights, strict=True):
        weighted[apart] += weight * value[s, t][apart]
    logits = pair_logits(weighted, s, t, stats, CALIBRATION)
    np.testing.assert_allclose(logits[apart], whole()[s, t][apart], rtol=1e-3, atol=1e-2)


def test_statistics_are_of_all_that_was_seen() -> None:
    made, _ = costs()
    seen = shortlist._compared(made, CALIBRATION, found().cols, np.arange(SIDES), slice(0, 64))
    exact: list[RowStats] = [row_stats(probabilities._block(cost, slice(0, 64))).log() for cost in made]
    for one, other in zip(seen.stats, exact, strict=True):  # the sample holds every side
        np.testing.assert_allclose(one.least, other.least, atol=1e-2)
        np.testing.assert_allclose(one.second, other.second, atol=1e-2)
        np.testing.assert_allclose(one.median, other.median, atol=1e-3)
        assert (one.which == other.which).mean() > 0.97


def test_answers_do_not_depend_on_threads_or_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    made, own = costs()
    none = CALIBRATION.no_neighbour(own)
    for threads in (1, 2, 4):
        with using_threads(threads):
            again = shortlist.shortlist(made, CALIBRATION, none)
        for one, other in zip(again, found(), strict=True):
            np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(shortlist, "COLS", 300)
    tiled = shortlist.shortlist(made, CALIBRATION, none)
    same = [len(set(a) & set(b)) / len(a) for a, b in zip(tiled.cols, found().cols, strict=True)]
    assert np.mean(same) > 0.995


def test_large_flush_puzzles_are_measured_by_their_shortlists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probabilities, "DENSE_FRAGMENTS", 100)
    scores = boundary.Boundary().measure(PUZZLE).sides()
    monkeypatch.setattr(probabilities, "shortlist", lambda made, calibration, none: _all(made, calibration, none))
    _all = probabilities._all
    exact = boundary.Boundary().measure(PUZZLE).sides()
    for found in (scores, exact):
        assert found.dense is None
    tops = [row.argmax(axis=1) for row in (scores.to_dense(), exact.to_dense())]
    has = TRUE >= 0
    right = [(top == TRUE)[has].mean() for top in tops]
    assert right[0] > right[1] - 0.005
    assert (tops[0] == tops[1]).mean() > 0.97
