"""The measurers `pairwise` and `comparator`: one distribution over 192 relations, and what they do without a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sides import cut

from jigsync.measure import pairwise
from jigsync.measure.learned import Learned
from jigsync.measure.pairwise import Mixing, PairwiseMeasurer
from jigsync.measure.weights import weights_path
from jigsync.values import vocabulary as v
from jigsync.values.errors import InputError
from jigsync.values.pairs import Relations

WORN = ("severe", (3, 4), 64)


class Planted:
    """A model that prefers one relation for all pairs."""

    mixing = Mixing(bias=0.5)

    def logits(self, features: np.ndarray) -> np.ndarray:
        n = len(features)
        assert features.shape == (n, 4, 8)
        return np.tile(np.where(np.arange(v.RELATIONS) == 150, 5.0, 0.0), (n, n, 1)).astype(np.float32)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "load_pairwise", lambda *_: Planted())
    monkeypatch.setattr(pairwise, "load_unary", lambda _: None)
    monkeypatch.setattr(pairwise, "features_of", lambda puzzle, cell, encoder: np.zeros((len(puzzle), 4, 8)))


@pytest.mark.usefixtures("planted")
def test_boundary_and_model_make_one_distribution() -> None:
    puzzle, _ = cut(*WORN)
    found, boundary = PairwiseMeasurer().measure(puzzle), Learned().measure(puzzle)
    assert isinstance(found.pairs, Relations)
    apart = ~np.eye(len(puzzle), dtype=bool)
    p = np.exp(found.pairs.dense[apart].astype(np.float64))
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    i, j = np.nonzero(apart)
    unit = np.exp(boundary.symmetric(i, j)[:, v.IS_UNIT].astype(np.float64))
    # Among unit steps the boundary decides, among the others the model.
    np.testing.assert_allclose(
        p[:, v.IS_UNIT] / p[:, v.IS_UNIT].sum(axis=1, keepdims=True), unit / unit.sum(axis=1)[:, None], atol=1e-4
    )
    others = np.where(v.IS_UNIT, 0, p)
    assert (others.argmax(axis=1) == 150).all()
    assert p[:, v.IS_UNIT].sum() > unit.sum()  # the bias
    assert found.border is not None
    assert not found.unit_only
    assert np.isfinite(found.sides().to_dense()).all()


@pytest.mark.usefixtures("planted")
def test_large_puzzles_are_measured_by_their_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairwise, "DENSE_LIMIT", 11)
    found = PairwiseMeasurer().measure(cut(*WORN)[0])
    assert not isinstance(found.pairs, Relations)
    assert "takes 2 to 11 fragments" in found.note


def test_without_a_model_the_answer_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise InputError("The weights are gone.")

    monkeypatch.setattr(pairwise, "load_pairwise", broken)
    found = PairwiseMeasurer("comparator").measure(cut(*WORN)[0])
    assert not isinstance(found.pairs, Relations)
    assert found.note == "The measurer 'comparator' is not used: The weights are gone."
    with pytest.raises(InputError, match="gone"):
        PairwiseMeasurer("pairwise", tmp_path / "mine.onnx").measure(cut(*WORN)[0])


def test_another_card_is_another_measurer(tmp_path: Path) -> None:
    mine = tmp_path / "mine.onnx"
    seen = set()
    for data, card in ((b"a", "{}"), (b"b", "{}"), (b"b", '{"mixing": {"bias": 1}}')):
        mine.write_bytes(data)
        mine.with_suffix(".json").write_text(card)
        seen.add(PairwiseMeasurer("pairwise", mine).weights_sha256)
    assert len(seen) == 3


@pytest.mark.parametrize("name", ["pairwise", "comparator", "continuous"])
def test_shipped_heads_are_sealed_golden_and_belong_to_the_shipped_encoder(name: str) -> None:
    path = weights_path(f"{name}.onnx", None)
    if not path.exists():
        pytest.skip("not shipped yet")
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    encoder = json.loads(weights_path("unary.onnx", None).with_suffix(".json").read_text(encoding="utf-8"))
    assert card["encoder_sha256"] == encoder["sha256"]
    assert path.stat().st_size == card["bytes"] < 2_000_000
    for key in ("data", "licence", "command", "minutes", "config", "validation_score"):
        assert card[key] not in ("", "not stated"), key
    import onnxruntime

    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    with np.load(path.with_suffix(".golden.npz"), allow_pickle=False) as golden:
        names = [output.name for output in session.get_outputs()]
        for output, found in zip(names, session.run(names, {"features": golden["features"]}), strict=True):
            np.testing.assert_allclose(found, golden[output], atol=0.05)
