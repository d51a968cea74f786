"""The continuous head: a density on the circle, moved by quarter turns exactly; the same in torch, ONNX and numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
torch.set_num_threads(1)

from jigsync.learn import checkpoint  # noqa: E402
from jigsync.learn import continuous as learned  # noqa: E402
from jigsync.learn.continuous import AngleBatch, Continuous  # noqa: E402
from jigsync.learn.export import check_golden, export_run  # noqa: E402
from jigsync.learn.lite0 import FEATURES  # noqa: E402
from jigsync.measure.continuous import ContinuousModel, log_density  # noqa: E402
from jigsync.measure.described import HEADS  # noqa: E402
from jigsync.values.errors import FormatError  # noqa: E402


@pytest.fixture(scope="module")
def answer() -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(2)
    return torch.randn(3, 4, generator=made), 2 * torch.randn(3, 4, 2, generator=made)


def test_the_density_sums_to_one_and_is_the_same_in_numpy(answer: tuple[torch.Tensor, torch.Tensor]) -> None:
    z, vectors = answer
    grid = np.tile(np.arange(0, 360, 0.5), (3, 1))
    log_p = log_density(z.numpy(), vectors.numpy(), grid)
    np.testing.assert_allclose(np.exp(log_p).mean(axis=1) * 2 * np.pi, 1, atol=1e-5)
    there = learned.log_density(z, vectors, torch.from_numpy(grid[:, 77]).float())
    np.testing.assert_allclose(there.numpy(), log_p[:, 77], atol=1e-4)


def test_a_quarter_turn_moves_the_density(answer: tuple[torch.Tensor, torch.Tensor]) -> None:
    z, vectors = answer
    angle = torch.tensor([10.0, 200.0, 301.0])
    # View k of what is stored turned by one is view k + 1 of before, and 90 degrees less make it upright.
    turned = learned.log_density(z.roll(-1, 1), vectors.roll(-1, 1), angle - 90)
    torch.testing.assert_close(turned, learned.log_density(z, vectors, angle))


def test_planted_angles_are_learned_and_exported(tmp_path: Path) -> None:
    torch.manual_seed(0)
    angles = torch.rand(256) * 360
    left = torch.deg2rad(angles[:, None] - 90 * torch.arange(4))
    features = torch.zeros(256, 4, FEATURES + HEADS)
    # Told many times over: training leaves half of them out.
    features[..., :300], features[..., 300:600] = torch.cos(left)[..., None], torch.sin(left)[..., None]
    features[..., 600:900] = -features[..., :300]
    features[..., 900:1200] = -features[..., 300:600]
    model = Continuous()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(80):
        loss, _ = model(AngleBatch(features, angles))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    config = {"model": "continuous", "network": {"encoder_sha256": "abc"}}
    checkpoint.save(tmp_path / checkpoint.BEST, config, checkpoint.Progress(1), {"average": model.state_dict()})
    out = tmp_path / "c.onnx"
    assert export_run([tmp_path], out, {}) < 0.05
    assert check_golden(out) < 0.05
    found = ContinuousModel(out.read_bytes(), "c.onnx", "abc").angles(features.numpy())
    off = np.abs((found - angles.numpy() + 180) % 360 - 180)
    assert np.median(off) < 10
    with pytest.raises(FormatError, match=r"must have encoder_sha256 'other'"):
        ContinuousModel(out.read_bytes(), "c.onnx", "other")
