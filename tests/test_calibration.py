"""From costs to probabilities: features, the fit, and the weights that ship."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import numpy as np
import pytest

from jigsync.measure import boundary, calibration
from jigsync.measure.calibration import (
    FEATURES_PER_COST,
    OWN_FEATURES,
    Calibration,
    Example,
    RowStats,
    features,
    fit,
    log_normaliser,
    objective,
    row_stats,
    shipped,
)
from jigsync.values.errors import FormatError


def log_costs(fragments: int, seed: int) -> np.ndarray:
    """Symmetric, +inf between sides of one fragment, with ties."""
    rng = np.random.default_rng(seed)
    sides = 4 * fragments
    value = np.round(rng.normal(2, 1, (sides, sides)), 1)
    value = np.triu(value) + np.triu(value, 1).T
    value[np.arange(sides)[:, None] // 4 == np.arange(sides) // 4] = np.inf
    return value.astype(np.float32)


def slow_features(value: np.ndarray, s: int, t: int) -> list[float]:
    """level, lead and best of one pair of sides, as the docstring of the module has them."""

    def candidates(side: int, without: int | None = None) -> list[float]:
        return sorted(float(v) for k, v in enumerate(value[side]) if np.isfinite(v) and k != without)

    def median(side: int) -> float:
        known = candidates(side)
        return known[len(known) // 2]

    ahead = [value[s, t] - candidates(s, t)[0], value[s, t] - candidates(t, s)[0]]
    return [value[s, t] - (median(s) + median(t)) / 2, sum(ahead), sum(min(a, 0) for a in ahead)]


@pytest.mark.parametrize("fragments", [2, 3, 5])
def test_features_of_every_pair(fragments: int) -> None:
    value = log_costs(fragments, fragments)
    stats = row_stats(value)
    for s, t in np.argwhere(np.isfinite(value)):
        got = features(value[s, t], np.array(s), np.array(t), stats)
        assert got.tolist() == pytest.approx(slow_features(value, s, t), abs=1e-5)


def test_statistics_of_rows_commute_with_blocks_and_logarithms() -> None:
    value = log_costs(4, 1)
    before = value.copy()
    whole = row_stats(value)
    np.testing.assert_array_equal(value, before)
    for row, least, second, which in zip(value, whole.least, whole.second, whole.which, strict=True):
        assert [least, second] == sorted(row)[:2]
        assert row[which] == least
    joined = RowStats.join([row_stats(value[:3]), row_stats(value[3:11]), row_stats(value[11:])])
    logs = row_stats(np.exp(value)).log()
    for name in ("least", "second", "median", "which"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
        np.testing.assert_allclose(getattr(logs, name), getattr(whole, name), atol=1e-5)


def test_the_normaliser_counts_no_neighbour_among_the_candidates() -> None:
    logits = np.array([[1.0, 2.0, -np.inf], [-np.inf, -np.inf, -np.inf], [80.0, 90.0, 100.0]], dtype=np.float32)
    none = np.array([0.5, -0.25, 0.5], dtype=np.float32)
    expected = [np.log(np.exp(0.5) + np.exp(1) + np.exp(2)), -0.25, 100 + np.log(1 + np.exp(-10) + np.exp(-20))]
    np.testing.assert_allclose(log_normaliser(logits, none), expected, rtol=1e-6)
    assert log_normaliser(logits, none + np.float32(200))[2] == 200.5


def drawn(weights: np.ndarray, none: np.ndarray, sides: int, seed: int) -> list[Example]:
    """Sides whose true candidate was drawn from the model."""
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(sides):
        feature = rng.normal(0, 1, (int(rng.integers(3, 9)), len(weights))).astype(np.float32)
        own = np.append(1, rng.normal(0, 1, 2)).astype(np.float32)
        logits = np.append(feature @ weights, own @ none)
        p = np.exp(logits - logits.max())
        true = int(rng.choice(len(logits), p=p / p.sum()))
        examples.append(Example(feature, own, true if true < len(feature) else -1))
    return examples


def test_the_gradient_is_the_derivative() -> None:
    loss = objective(drawn(np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7, -0.2]), 50, seed=2), ridge=0.05)
    rng = np.random.default_rng(3)
    for theta in rng.normal(0, 1, (3, 6)):
        _, gradient = loss(theta)
        for k, step in enumerate(1e-5 * np.eye(6)):
            slope = (loss(theta + step)[0] - loss(theta - step)[0]) / 2e-5
            assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_the_fit_finds_planted_weights() -> None:
    weights, none = np.array([0.8, -1.5, 0.0, 0.4, 2.0, -0.7]), np.array([-0.6, 1.0, -0.5])
    fitted, likelihood = fit(("one", "two"), drawn(weights, none, 3000, seed=4), ridge=1e-6)
    np.testing.assert_allclose(fitted.weights, weights, atol=0.15)
    np.testing.assert_allclose(fitted.none, none, atol=0.2)
    assert fitted.by_cost.shape == (2, FEATURES_PER_COST)
    other = drawn(weights, none, 500, seed=5)
    log_p = []
    for example in other:
        logits = np.append(fitted.logits(example.feature), fitted.no_neighbour(example.own))
        log_p.append(logits[example.true] - np.logaddexp.reduce(logits))
    assert likelihood == pytest.approx(np.mean(log_p), abs=0.1)
    assert likelihood > np.mean([-np.log(len(e.feature) + 1) for e in other]) + 0.3


def test_a_ridge_pulls_to_zero_and_the_likelihood_is_told_without_it() -> None:
    examples = drawn(np.array([3.0, 0.0, 0.0]), np.zeros(3), 300, seed=6)
    free, best = fit(("one",), examples, ridge=1e-6)
    pulled, lower = fit(("one",), examples, ridge=1.0)
    assert np.abs(pulled.weights).max() < 1 < np.abs(free.weights).max()
    assert lower < best < 0
    assert -lower == pytest.approx(objective(examples, 0.0)(np.append(pulled.weights, pulled.none))[0])


@pytest.mark.parametrize("measurer", boundary.MEASURERS)
@pytest.mark.parametrize("regime", boundary.REGIMES)
def test_the_shipped_weights_are_those_of_the_code(measurer: str, regime: str) -> None:
    costs = boundary.MEASURERS[measurer][regime]
    loaded = shipped(measurer, regime, costs)
    assert loaded.costs == costs
    assert loaded.weights.shape == (FEATURES_PER_COST * len(costs),)
    assert np.isfinite(loaded.weights).all()
    assert loaded.none.shape == (OWN_FEATURES,)
    assert np.isfinite(loaded.none).all()


def test_the_shipped_file_says_where_it_comes_from() -> None:
    data = json.loads(files("jigsync.weights").joinpath("calibration.json").read_text(encoding="utf-8"))
    assert data["format"] == calibration.FORMAT
    assert re.match(r"jigsync calibrate \S+ --limit \d+ --seed \d+", data["command"])
    assert re.match(r"\d+ pictures", data["data"])
    for entry in data["measurers"].values():
        assert set(entry["held_out"]) == {"sides", "top1", "log_likelihood", "border_auc"}
    flush, damaged = (data["measurers"][f"boundary/{regime}"]["held_out"] for regime in ("flush", "damaged"))
    assert damaged["border_auc"] > 0.8
    assert flush["top1"] > 0.9 > damaged["top1"] > 0.4


def test_weights_of_other_costs_are_refused() -> None:
    with pytest.raises(FormatError, match=r"knows 'mgc' with costs \['mgc'\], the code has \['mgc', 'seam'\]"):
        shipped("mgc", "flush", ("mgc", "seam"))
    with pytest.raises(FormatError, match="no weights for 'mgc' on wooden fragments"):
        shipped("mgc", "wooden", ("mgc",))


def test_logits() -> None:
    made = Calibration(("one",), np.array([1.0, 10.0, 100.0]), np.array([1.0, 2.0, 4.0]))
    assert made.logits(np.array([[1, 2, 3]], dtype=np.float32)).tolist() == [321.0]
    assert made.no_neighbour(np.array([[1, 5, 7]], dtype=np.float32)).tolist() == [39.0]
