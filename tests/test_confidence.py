"""Confidences: what they are computed from, the fit, and the file that ships."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from planted import planted, sparse
from scipy.optimize import check_grad
from sides import cut

import jigsync
from jigsync import cli, data
from jigsync.cutting.options import CutOptions
from jigsync.learn.fit import confidence as fitting
from jigsync.solvers import confidence
from jigsync.solvers.confidence import FEATURES, LARGEST_MARGIN, Confidence, Seen, confidences, fit, observe, shipped
from jigsync.solvers.energy import touching_sides
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed, turn_placement
from jigsync.values.sides import SideScores

PUZZLE = planted(Grid(3, 4), 2, noise=1.0)


def slow_margin(scores: np.ndarray, s: int, t: int) -> float:
    """The score of touching sides minus the best that either has with a side of another fragment."""
    others = [scores[s, k] for k in range(len(scores)) if k // 4 != s // 4 and k != t]
    others += [scores[t, k] for k in range(len(scores)) if k // 4 != t // 4 and k != s]
    return float(np.clip(scores[s, t] - max(others), -LARGEST_MARGIN, LARGEST_MARGIN))


def slow_features(scores: np.ndarray, slots: np.ndarray, turns: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Fragment by fragment, rounds of averaging written out."""
    n = len(slots)
    pairs = list(zip(*(part.tolist() for part in touching_sides(Arrangement(PUZZLE.grid, slots, turns))), strict=True))
    near: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for s, t in pairs:
        near[s // 4].append((t // 4, slow_margin(scores, s, t)))
        near[t // 4].append((s // 4, slow_margin(scores, s, t)))
    drawn = [float(np.log(p / (1 - p))) for p in np.clip(shares, 1 / 256, 255 / 256)]
    margin = [float(np.mean([m for _, m in own])) for own in near]
    columns = []
    for values in (drawn, margin):
        region = values
        for _ in range(3):
            region = [(region[i] + sum(region[j] for j, _ in near[i])) / (1 + len(near[i])) for i in range(n)]
        columns += [region, [float(np.mean(values))] * n]
    return np.array(columns).T


def test_what_is_seen_of_a_placement() -> None:
    shares = np.random.default_rng(0).uniform(0, 1, len(PUZZLE.ids))
    shares[:2] = 0.0, 1.0
    assert PUZZLE.scores.dense is not None
    seen = observe(PUZZLE.scores, PUZZLE, shares)
    np.testing.assert_allclose(seen.features, slow_features(PUZZLE.scores.dense, PUZZLE.slots, PUZZLE.turns, shares))
    np.testing.assert_allclose(seen.log_share, np.log(np.clip(shares, 1 / 256, 255 / 256)))
    assert seen.features.shape == (12, len(FEATURES))
    whole = sparse(PUZZLE.scores, -100.0)
    again = observe(whole, PUZZLE, shares)
    np.testing.assert_allclose(again.features, seen.features, rtol=1e-6)
    few = observe(sparse(PUZZLE.scores, 1.0), PUZZLE, shares)
    np.testing.assert_allclose(few.features[:, :2], seen.features[:, :2])
    assert np.isfinite(few.features).all()


def test_unlisted_sides_have_the_floor() -> None:
    empty = SideScores(
        2, indptr=np.zeros(9, np.int64), indices=np.zeros(0, np.int32), values=np.zeros(0, np.float32), floor=-2.0
    )
    seen = observe(empty, Arrangement(Grid(1, 2), np.array([0, 1]), np.array([0, 0])), np.ones(2))
    np.testing.assert_allclose(seen.features[:, 2:], 0)


def test_right_places_are_surer_than_wrong_ones() -> None:
    shares = np.full(len(PUZZLE.ids), 0.9)
    right = confidences(PUZZLE.scores, PUZZLE, shares)
    wrong = confidences(PUZZLE.scores, Arrangement(PUZZLE.grid, PUZZLE.slots[::-1], PUZZLE.turns), shares)
    assert wrong.max() < right.min()
    assert 0 <= wrong.min() <= right.max() <= 1


def test_unplaced_pinned_and_lonely_fragments() -> None:
    slots = np.where(PUZZLE.slots == 5, -1, PUZZLE.slots)
    p = confidences(PUZZLE.scores, Arrangement(PUZZLE.grid, slots, PUZZLE.turns), np.full(12, 0.5), pinned=[3])
    assert p[np.flatnonzero(slots < 0)].tolist() == [0.0]
    assert p[3] == 1.0
    alone = SideScores(1, dense=np.zeros((4, 4), np.float32))
    assert confidences(alone, Arrangement(Grid(1, 1), [0], [2]), np.ones(1)).tolist() == [1.0]
    assert confidences(alone, Arrangement(Grid(1, 1), [-1], [0]), np.zeros(1)).tolist() == [0.0]


def made(n: int, seed: int) -> tuple[Seen, Confidence, np.ndarray]:
    """Fragments that are right with the probabilities of a known model."""
    rng = np.random.default_rng(seed)
    seen = Seen(np.log(rng.uniform(0.05, 1, n)), rng.normal(0, 1.5, (n, len(FEATURES))))
    model = Confidence(0.7, np.array([1.0, 0.5, 0.0, 2.0]), 0.4)
    return seen, model, rng.random(n) < model.of(seen)


def test_the_fit_finds_planted_numbers() -> None:
    seen, model, right = made(20000, 3)
    found = fit(seen, right, np.ones(len(right)), ridge=1e-6)
    assert found.power == pytest.approx(model.power, abs=0.1)
    assert found.bias == pytest.approx(model.bias, abs=0.15)
    np.testing.assert_allclose(found.weights, model.weights, atol=0.15)
    assert fitting.calibration_error(found.of(seen), right) < 0.02


def test_the_fit_is_monotone_whatever_the_data() -> None:
    seen, _, right = made(500, 4)
    found = fit(Seen(seen.log_share, -seen.features), right, np.ones(len(right)))
    assert found.weights.min() >= 0
    assert found.power >= 0


def test_the_gradient_of_the_fit_is_the_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, _, right = made(60, 5)
    caught = {}

    def catch(loss: object, start: np.ndarray, **options: object) -> object:
        caught["loss"] = loss
        return type("Found", (), {"x": start})()

    monkeypatch.setattr(confidence, "minimize", catch)
    fit(seen, right, np.linspace(1, 2, 60), ridge=0.1)
    loss = caught["loss"]
    for theta in np.random.default_rng(0).normal(0, 1, (3, 6)):
        theta[-1] = abs(theta[-1])
        assert check_grad(lambda t: loss(t)[0], lambda t: loss(t)[1], theta) < 1e-5  # type: ignore[operator]


def test_the_shipped_numbers_say_where_they_come_from_and_are_monotone() -> None:
    found = shipped()
    assert found.weights.shape == (len(FEATURES),)
    assert found.weights.min() >= 0
    assert found.power >= 0
    head = json.loads(files("jigsync.weights").joinpath("confidence.json").read_text(encoding="utf-8"))
    assert head["command"].startswith("jigsync calibrate-confidence IMAGES --limit ")
    held = head["held_out"]
    assert held["fragments"] > 1000
    # The better the measurer, the less there is to gain: with the weights of stage 4 the shares of draws had a Brier
    # score of 0.075 and the fit 0.056, with those of stage 5 0.055 and 0.046.
    assert held["brier"] < 0.9 * held["brier_of_shares"]
    assert held["calibration_error"] < 0.7 * held["calibration_error_of_shares"]
    assert held["calibration_error"] < 0.05


def test_right_fragments_are_counted_in_the_best_gauge() -> None:
    truth = {
        "a": Placed.at(0, 0, 1),
        "b": Placed.at(0, 1, 2),
        "c": Placed.at(1, 0, 3),
        "d": Placed.at(1, 1, 0),
        "e": Placed.at(0, 2, 0),
        "f": Placed.at(1, 2, 1),
    }
    ids = tuple(truth)
    wrong = truth | {"a": Placed.at(0, 0, 2), "b": Placed.at(1, 1, 0), "d": Placed.at(0, 1, 2)}
    for gauge in range(4):
        turned, grid = turn_placement(wrong, Grid(2, 3), gauge)
        right = fitting.right_fragments(turned, grid, truth, Grid(2, 3), ids)
        assert right.tolist() == [False, False, True, False, True, True]
    assert not fitting.right_fragments(wrong, None, truth, Grid(2, 3), ids).any()
    assert not fitting.right_fragments(truth, Grid(2, 3), truth, Grid(1, 6), ids).any()


def test_calibration_error() -> None:
    right = np.array([True, False, True, True])
    assert fitting.calibration_error(np.array([0.5, 0.5, 1.0, 1.0]), right) == 0
    assert fitting.calibration_error(np.array([0.95, 0.95, 0.95, 0.95]), right) == pytest.approx(0.2)
    assert fitting.calibration_error(np.array([1.0, 1.0]), np.array([False, True]), np.array([3.0, 1.0])) == 0.75


def test_solved_puzzles_are_sure_and_hopeless_ones_are_not() -> None:
    puzzles = (cut(*what)[0] for what in (("light", (3, 3), 64), ("eroded", (3, 3), 32)))
    easy, hopeless = (jigsync.solve(puzzle, measurer="boundary") for puzzle in puzzles)
    sure, unsure = ([placed.confidence or 0.0 for placed in s.placement.values()] for s in (easy, hopeless))
    assert min(sure) > 0.8
    assert np.mean(unsure) < 0.5


def test_calibrate_confidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "draw_options", lambda rng: [CutOptions(Grid(2, 3), 16)])
    out = tmp_path / "confidence.json"
    images = data.picture("coffee").parent
    assert cli.main(["calibrate-confidence", str(images), "--workers", "1", "--out", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(out.read_text())
    assert printed["data"] == "4 pictures, half of them held out, 4 puzzles"
    assert printed["held_out"]["fragments"] == 12
    assert cli.main(["calibrate-confidence", str(images), "--workers", "1", "--out", str(out), "--limit", "2"]) == 0
    assert "Brier score" in capsys.readouterr().out
