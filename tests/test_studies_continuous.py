"""Round views at any angle, the study of angles, and how two sources of relations are mixed; no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jigsync import data
from jigsync.evaluate.progress import silent
from jigsync.io.images import read_rgb
from jigsync.learn.fit.mixing import fit, log_likelihood
from jigsync.measure.continuous import matrix, round_views
from jigsync.measure.pairwise import Mixing, mixing_of
from jigsync.studies import continuous, reproduce
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import FormatError


def test_quarter_turns_are_those_of_z4() -> None:
    for k in range(4):
        np.testing.assert_allclose(matrix(90.0 * k), z4.matrix(k), atol=1e-12)


def test_a_round_view_is_upright_after_its_angle() -> None:
    rgb = read_rgb(data.picture("coffee"))
    upright = round_views(rgb, (200.0, 150.0), 120.0, 0.0)[0].astype(float)
    for k in range(4):
        views = round_views(rgb, (200.0, 150.0), 120.0, 90.0 * k)
        assert np.abs(views[k] - upright).mean() < 2
        assert np.abs(views[(k + 1) % 4] - upright).mean() > 10
    assert (views[:, :3, :3] == 127).all()  # corners tell nothing


class Model:
    """Answers what it was told to."""

    def __init__(self, angles: float | None = None) -> None:
        self.said = angles

    def run(self, names: list[str], views: np.ndarray) -> list[np.ndarray]:
        assert names == ["features", "z", "cells"]
        z = np.tile(np.array([0, 1, 0, 0], np.float32), 9)
        return [np.zeros((36, 8), np.float32), z, np.zeros((36, 3), np.float32)]

    def angles(self, features: np.ndarray) -> np.ndarray:
        assert features.shape == (9, 4, 12)
        return np.full(9, 90.0)


def test_the_study_measures_and_quotes_no_invented_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(continuous, "load_unary", lambda encoder: Model())
    monkeypatch.setattr(continuous, "load_continuous", lambda weights, encoder: Model())
    result = continuous.run_pictures(6, 1, 0, silent)
    # Both always say 90 degrees: the same curve, which is chance.
    here, there = ([row["within"] for row in result.rows if row["head"] == head] for head in continuous.HEADS)
    assert here == there
    assert here == sorted(here)
    assert here[-1] == pytest.approx(0.25, abs=0.15)
    assert "marked as invented" in result.verdict
    assert {value.paper for value in result.compared} == {"not quoted"}
    assert reproduce.write(result, tmp_path).csv.exists()


def test_angles_wrap() -> None:
    np.testing.assert_allclose(continuous.apart(np.array([359.0, 90.0]), np.array([2.0, 270.0])), [3, 180])


def test_a_mixture_is_a_distribution_and_is_fitted_to_what_is_true() -> None:
    rng = np.random.default_rng(0)
    target = rng.integers(0, v.RELATIONS, 400)
    target[:120] = rng.choice(v.UNIT.ravel(), 120)
    # The boundary knows unit steps, the model all others; each says little where it knows nothing.
    boundary, logits = rng.normal(0, 1, (2, 400, v.RELATIONS))
    boundary[np.arange(400), target] += np.where(v.IS_UNIT[target], 5.0, 0.0)
    logits[np.arange(400), target] += np.where(v.IS_UNIT[target], 0.0, 4.0)
    boundary -= np.log(np.exp(boundary).sum(axis=1, keepdims=True))
    mixing = fit(boundary, logits, target)
    np.testing.assert_allclose(np.exp(mixing.log_p(boundary, logits)).sum(axis=1), 1)
    gain = [log_likelihood(m, boundary, logits, target) for m in (mixing, Mixing())]
    assert gain[0] > gain[1] + 0.1
    assert mixing.unit_boundary > 2 * abs(mixing.unit_model)
    said = np.exp(mixing.log_p(boundary, logits))[:, v.IS_UNIT].sum(axis=1).mean()
    assert said == pytest.approx(v.IS_UNIT[target].mean(), abs=0.02)


def test_a_card_that_mixes_words_is_refused() -> None:
    assert mixing_of({"bias": 1}, "x").bias == 1
    with pytest.raises(FormatError, match=r"^The card of 'x' must have a 'mixing' of numbers boundary, model, bias, "):
        mixing_of({"spice": 1.0}, "x")
    for bad in ("much", float("nan")):
        wanted = rf"^The 'bias' of 'card of x' must be a number in -1e\+06\.\.1e\+06\. Got '?{bad}'? instead\.$"
        with pytest.raises(FormatError, match=wanted):
            mixing_of({"bias": bad}, "x")
