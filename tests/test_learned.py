"""The learned measurer with its shipped weights: sealed, symmetric, the same however the fragments were stored."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sides import cut, partners, turned_sides

import jigsync
from jigsync.measure import learned, likeness, matcher, probabilities, reach
from jigsync.measure.boundary import Boundary
from jigsync.measure.calibration import Calibration
from jigsync.measure.contour import read_contours
from jigsync.measure.learned import Learned, Matched, Models, at_wear, wear, worn_features
from jigsync.measure.matcher import FORMAT, SHIPPED, load_matcher
from jigsync.measure.strips import VERSION
from jigsync.measure.weights import weights_path
from jigsync.values import z4
from jigsync.values.errors import FormatError, InputError, JigsyncError, OptionError
from jigsync.values.listing import Listing
from jigsync.values.measurements import Measurements
from jigsync.values.pairs import TouchingSides
from jigsync.values.puzzle import Fragments, Puzzle

WORN = ("severe", (3, 4), 64)


@pytest.fixture(scope="module")
def measured() -> Measurements:
    return Learned().measure(cut(*WORN)[0])


def log_p(measurements: Measurements) -> np.ndarray:
    """(4N, 4N), 0 between sides of one fragment."""
    assert isinstance(measurements.pairs, TouchingSides)
    own = np.arange(4 * measurements.n) // 4
    return np.where(own[:, None] == own, 0, measurements.pairs.side_log_p)


def test_the_shipped_weights_are_sealed_small_and_golden() -> None:
    path = weights_path(SHIPPED, None)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert path.stat().st_size == card["bytes"] < 6_000_000
    assert (card["format"], card["strips"]) == (FORMAT, VERSION)
    for key in ("data", "licence", "command", "minutes", "config", "validation_score"):
        assert card[key] not in ("", "not stated"), key
    model = load_matcher()
    with np.load(path.with_suffix(".golden.npz"), allow_pickle=False) as golden:
        codes = model.encode(golden["strips"])
        for name in ("left", "right", "none"):
            np.testing.assert_allclose(getattr(codes, name), golden[name], atol=1e-3)
        assert golden["left"].std() > 0


def test_the_calibration_belongs_to_the_shipped_weights() -> None:
    path = Path(learned.__file__).parents[1] / "weights" / "calibration.json"
    fitted = json.loads(path.read_text(encoding="utf-8"))["learned"]
    assert fitted["weights_sha256"] == Models.sha256()


def test_changed_weights_are_refused(tmp_path: Path) -> None:
    for suffix in (".onnx", ".json"):
        shutil.copy(weights_path(SHIPPED, None).with_suffix(suffix), tmp_path / f"m{suffix}")
    data = bytearray((tmp_path / "m.onnx").read_bytes())
    data[-100] ^= 1
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(InputError, match=r"sha256 \w+, expected \w+"):
        load_matcher(tmp_path / "m.onnx")
    (tmp_path / "n.onnx").write_bytes(b"no model at all")
    with pytest.raises(FormatError, match="not a usable ONNX model"):
        load_matcher(tmp_path / "n.onnx")
    with pytest.raises(InputError, match="nowhere"):
        load_matcher(tmp_path / "nowhere.onnx")


def test_weights_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "VERSION", "jigsync-strips/999")
    data = weights_path(SHIPPED, None).read_bytes()
    with pytest.raises(FormatError, match=f"must have strips 'jigsync-strips/999'. They have '{VERSION}'"):
        matcher.MatcherModel(data, "x.onnx")


def test_most_neighbours_are_found(measured: Measurements) -> None:
    puzzle, truth = cut(*WORN)
    partner = partners(puzzle, truth)
    inner = partner >= 0
    seen = log_p(measured)
    seen[seen == 0] = -np.inf
    assert np.mean(seen.argmax(axis=1)[inner] == partner[inner]) > 0.5
    assert measured.border is not None
    assert measured.border[~inner].mean() > measured.border[inner].mean()


def test_probabilities_are_symmetric(measured: Measurements) -> None:
    p = log_p(measured)
    np.testing.assert_allclose(p, p.T, atol=1e-3)


def test_the_order_of_the_fragments_does_not_matter(measured: Measurements) -> None:
    puzzle = cut(*WORN)[0]
    order = np.random.default_rng(1).permutation(len(puzzle))
    sides = (4 * order[:, None] + np.arange(4)).ravel()
    again = log_p(Learned().measure(puzzle.permute(order)))
    np.testing.assert_allclose(again, log_p(measured)[np.ix_(sides, sides)], atol=2e-3)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_how_a_fragment_is_stored_does_not_matter(measured: Measurements, turns: int) -> None:
    puzzle = cut(*WORN)[0]
    pixels = list(puzzle.fragments.pixels)
    pixels[4] = z4.turn_pixels(pixels[4], turns)
    again = Learned().measure(replace(puzzle, fragments=Fragments(puzzle.ids, tuple(pixels))))
    sides = turned_sides(len(puzzle), 4, turns)
    np.testing.assert_allclose(log_p(again), log_p(measured)[np.ix_(sides, sides)], atol=2e-3)


def test_large_puzzles_are_measured_in_blocks(measured: Measurements, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probabilities, "DENSE_FRAGMENTS", 5)
    monkeypatch.setattr(probabilities, "BLOCK", 7)
    monkeypatch.setattr(learned, "BLOCK", 7)
    sparse = Learned().measure(cut(*WORN)[0])
    assert isinstance(sparse.pairs, Listing)
    best = log_p(measured)
    best[best == 0] = -np.inf
    dense, listed = measured.sides().to_dense(), sparse.sides().to_dense()
    rows = np.arange(len(best))
    np.testing.assert_allclose(listed[rows, best.argmax(axis=1)], dense[rows, best.argmax(axis=1)], atol=0.05)


def test_blocks_of_the_cost_fit_together() -> None:
    puzzle = cut(*WORN)[0]
    cost = Matched(Models.load().encode(puzzle, read_contours(puzzle)))
    sides = 4 * len(puzzle)
    whole = cost.rows(slice(0, sides))
    parts = np.concatenate([cost.rows(slice(k, min(k + 9, sides))) for k in range(0, sides, 9)])
    np.testing.assert_allclose(parts, whole, rtol=1e-3)
    np.testing.assert_allclose(np.log(whole), np.log(whole.T), atol=1e-3)
    assert cost.own.shape == (sides, 2)


def test_wear_is_read_off_the_contours() -> None:
    gap, rough = {}, {}
    for severity in ("light", "severe", "eroded"):
        _, gap[severity], rough[severity] = wear(read_contours(cut(severity, (3, 4), 64)[0]))
    assert gap["light"] < gap["severe"]
    assert gap["light"] < gap["eroded"]
    assert rough["eroded"] < rough["severe"]


def test_weights_of_products_are_weights_at_a_wear() -> None:
    rng = np.random.default_rng(0)
    feature, own, worn = rng.normal(size=(5, 6)), rng.normal(size=(2, 3)), np.array([1, 0.4, 2.0])
    fitted = Calibration(("a", "b") * 3, rng.normal(size=18), rng.normal(size=9))
    here = at_wear(fitted, ("a", "b"), worn.astype(np.float32))
    np.testing.assert_allclose(worn_features(feature, worn) @ fitted.weights, feature @ here.weights, rtol=1e-5)
    np.testing.assert_allclose(worn_features(own, worn) @ fitted.none, own @ here.none, rtol=1e-5)


def test_flush_squares_are_measured_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "load_matcher", None)
    puzzle = cut("clean", (3, 4), 32)[0]
    np.testing.assert_array_equal(log_p(Learned().measure(puzzle)), log_p(Boundary().measure(puzzle)))


def test_without_onnxruntime_the_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(weights: Path | None) -> None:
        raise JigsyncError("onnxruntime cannot be imported.")

    monkeypatch.setattr(learned, "load_matcher", missing)
    puzzle = cut("light", (2, 3), 48)[0]
    measured = Learned().measure(puzzle)
    np.testing.assert_array_equal(log_p(measured), log_p(Boundary().measure(puzzle)))
    assert "onnxruntime cannot be imported" in measured.note
    solution = jigsync.solve(puzzle, measurer="learned")
    assert solution
    assert "The learned measurer is not used: onnxruntime cannot be imported." in solution.reason
    # Whoever names a file of weights wants that file.
    with pytest.raises(JigsyncError, match="onnxruntime"):
        Learned(weights=Path("mine.onnx")).measure(puzzle)


def test_solve_takes_weights_of_ones_own(tmp_path: Path) -> None:
    from jigsync.cli.solve import _trained

    shutil.copy(weights_path(SHIPPED, None), tmp_path / "mine.onnx")
    shutil.copy(weights_path(likeness.SHIPPED, None), tmp_path / "head.onnx")
    shutil.copy(weights_path(reach.SHIPPED, None), tmp_path / "reach.onnx")
    meter = _trained(tmp_path / "mine.onnx", tmp_path / "head.onnx", tmp_path / "reach.onnx", None)
    assert meter.weights_sha256 == Learned().weights_sha256
    puzzle = cut(*WORN)[0]
    np.testing.assert_array_equal(log_p(meter.measure(puzzle)), log_p(Learned().measure(puzzle)))
    with pytest.raises(OptionError, match="for the measurer 'learned'"):
        _trained(tmp_path / "mine.onnx", None, None, "mgc")
    with pytest.raises(FormatError, match="must have format 'jigsync-likeness/2'"):
        _trained(None, tmp_path / "mine.onnx", None, None)
    with pytest.raises(FormatError, match="must have format 'jigsync-reach/1'"):
        _trained(None, None, tmp_path / "mine.onnx", None)


def test_a_single_fragment_is_no_trouble() -> None:
    pixels = cut(*WORN)[0].fragments.pixels[0]
    assert Learned().measure(Puzzle(Fragments(("f01",), (pixels,)), 64)).n == 1
