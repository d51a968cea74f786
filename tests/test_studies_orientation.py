"""Studies `orientation` and `main` at tiny sizes: what must come out of pictures whose answer is known."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from jigsync.evaluate.progress import silent
from jigsync.measure import backbone as backbones
from jigsync.measure.backbone import Backbone
from jigsync.studies import cues, decoding, main, orientation, reproduce
from jigsync.studies.coherence import coherence
from jigsync.studies.orientation import PROBE, Read, correlation, fit_softmax, probe

TORCH = "needs the extra 'content' (torch), which is not installed"


def fragment(grey: np.ndarray, margin: int = 0) -> np.ndarray:
    rgba = np.zeros((grey.shape[0] + 2 * margin, grey.shape[1] + 2 * margin, 4), dtype=np.uint8)
    inner = rgba[margin : rgba.shape[0] - margin, margin : rgba.shape[1] - margin]
    inner[..., :3] = grey[..., None]
    inner[..., 3] = 255
    return rgba


# ------------------------------------------------------------------------------------------------ coherence


def test_coherence_is_one_for_stripes_and_low_for_noise() -> None:
    rng = np.random.default_rng(0)
    stripes = fragment((127 + 100 * np.sin(np.arange(64) / 3))[None].repeat(64, axis=0).astype(np.uint8))
    noise = fragment(cv2.GaussianBlur(rng.uniform(0, 255, (64, 64)), (0, 0), 1.0).astype(np.uint8))
    assert coherence(stripes, 64) > 0.97
    assert coherence(noise, 64) < 0.6
    assert coherence(fragment(np.full((64, 64), 90, np.uint8)), 64) == 0


def test_coherence_sees_neither_turns_nor_the_mask() -> None:
    rng = np.random.default_rng(1)
    grey = cv2.GaussianBlur(rng.uniform(0, 255, (48, 48)), (0, 0), 2.0).astype(np.uint8)
    grey[:, :20] = 40
    value = coherence(fragment(grey), 48)
    for turns in range(1, 4):
        assert coherence(np.rot90(fragment(grey), turns), 48) == pytest.approx(value, abs=0.02)
    # A bright flat fragment on nothing: its straight contour must not count as structure.
    assert coherence(fragment(np.full((40, 40), 250, np.uint8), margin=12), 40) == 0


# ------------------------------------------------------------------------------------------------ probe


def reads_of(count: int, told: float, rng: np.random.Generator) -> list[Read]:
    """Fragments whose features are one-hot in the turns left, plus noise; `told` 0 leaves the noise."""
    out = []
    for _ in range(count):
        turns = rng.integers(0, 4, 9)
        left = (turns[:, None] - np.arange(4)) % 4
        features = told * np.eye(4)[left] + rng.normal(0, 0.3, (9, 4, 4))
        out.append(Read(turns, rng.random(9), features.astype(np.float32), None))
    return out


def test_the_probe_reads_what_is_there_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    assert np.mean(probe(reads_of(20, 2.0, rng))) > 0.95
    assert np.mean(probe(reads_of(60, 0.0, rng))) == pytest.approx(0.25, abs=0.07)


def test_each_half_is_read_by_the_other() -> None:
    """The second half of the pictures lies about its turns: read by the first half it is wrong, by itself not."""
    rng = np.random.default_rng(3)
    reads = reads_of(20, 2.0, rng)
    for k in range(1, 20, 2):
        reads[k] = Read((reads[k].turns + 1) % 4, reads[k].coherence, reads[k].features, None)
    assert np.mean(probe(reads)) < 0.1


def test_softmax_regression_separates() -> None:
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 4, 200)
    x = np.eye(4)[classes] * 3 + rng.normal(0, 0.2, (200, 4))
    assert np.mean(fit_softmax(x, classes)(x) == classes) > 0.98


def test_correlation() -> None:
    rng = np.random.default_rng(5)
    x = [rng.random(9) for _ in range(30)]
    found = correlation(x, [one > 0.5 for one in x], rng)
    assert found.low < found.estimate < found.high
    assert found.low > 0.7
    assert found.n == 270
    none = correlation(x, [rng.random(9) > 0.5 for _ in x], rng)
    assert none.low < 0 < none.high
    assert correlation(x, [np.ones(9, bool)] * 30, rng).estimate == 0


# ------------------------------------------------------------------------------------------------ the study


def bright_above(folder: Path, count: int) -> list[Path]:
    """Pictures in which every fragment is bright above and dark below."""
    folder.mkdir()
    paths = []
    rng = np.random.default_rng(6)
    for k in range(count):
        row = np.tile(np.linspace(230, 20, 32), 3)[:, None] + rng.normal(0, 8, (96, 96))
        paths.append(folder / f"p{k}.png")
        Image.fromarray(np.clip(row, 0, 255).astype(np.uint8)).convert("RGB").save(paths[-1])
    return paths


def test_the_whole_study_knows_which_side_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that sees four quarters and pictures that tell their top: any slip of a sign would show."""
    torch = pytest.importorskip("torch", reason=TORCH)

    def forward(x):  # type: ignore[no-untyped-def]
        return torch.nn.functional.adaptive_avg_pool2d(x.mean(dim=1, keepdim=True), 2).flatten(1), x

    quarters = Backbone("quarters", 32, (0.5, 0.5, 0.5), (1.0, 1.0, 1.0), forward)
    monkeypatch.setattr(backbones, "get", lambda weights=None: quarters)
    monkeypatch.setattr(decoding, "measure", lambda puzzle, name: type("Silent", (), {"unary_turns": None}))
    result = orientation.run_pictures(bright_above(tmp_path / "in", 6), 32, 1, 0, silent)
    of = {row["what"]: row for row in result.rows}
    assert of["accuracy"]["value"] == 1
    assert of["accuracy"]["fragments"] == 54
    assert [row["what"] for row in result.rows[2:]] == [f"quintile {k}" for k in range(1, 6)]
    assert sum(of[f"quintile {k}"]["fragments"] for k in range(1, 6)) == 54
    assert result.compared[0].paper == "37.9-45.1 %"
    assert "tells nothing about single fragments" in result.verdict


def test_a_trained_head_has_its_row_and_a_missing_network_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cues, "without_network", lambda weights=None: "no network in this test")

    def measure(puzzle, name):  # type: ignore[no-untyped-def]
        return type("Told", (), {"unary_turns": np.log(np.tile([0.7, 0.1, 0.1, 0.1], (len(puzzle), 1)))})

    monkeypatch.setattr(decoding, "measure", measure)
    result = orientation.run_pictures(bright_above(tmp_path / "in", 4), 32, 1, 0, silent)
    assert {row["reader"] for row in result.rows} == {"learned"}
    assert "The probe was left out: no network in this test" in result.verdict
    assert result.compared[2].paper == "89.4 %"
    pytest.importorskip("matplotlib", reason="needs the extra 'study' (matplotlib), which is not installed")
    assert reproduce.write(result, tmp_path).drawing is not None
    assert PROBE not in {row["reader"] for row in result.rows}


# ------------------------------------------------------------------------------------------------ main


def test_main_is_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "SOLVERS", ("jigsync", "tree", "exact"))
    result = main.run_sizes((2, 5), ("clean", "severe"), 1, 32, 1, 0, silent, measurer="boundary")
    assert [(row["solver"], row["n"], row["severity"]) for row in result.rows] == [
        *((solver, 2, severity) for severity in ("clean", "severe") for solver in ("jigsync", "tree", "exact")),
        *((solver, 5, severity) for severity in ("clean", "severe") for solver in ("jigsync", "tree")),
    ]
    assert all(row["AA_best4"] >= row["AA"] for row in result.rows)
    refused = next(c for c in result.compared if c.what.startswith("exact, 5 x 5"))
    assert refused.ours == "refused"
    assert "none of its figures can be set against these" in result.verdict
    assert "5 x 5 tree" in result.verdict
    assert "5 x 5 exact" not in result.verdict
    pytest.importorskip("matplotlib", reason="needs the extra 'study' (matplotlib), which is not installed")
    assert reproduce.write(result, tmp_path).drawing is not None
