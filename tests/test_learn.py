"""Training: the same puzzles whoever cuts them, the same curve after a kill, files that are checked when loaded."""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from learn_quick import QUICK, TINY, QuickTask, quick_task  # noqa: E402

from jigsync.data import picture  # noqa: E402
from jigsync.io.images import read_rgb, write_png  # noqa: E402
from jigsync.learn import checkpoint, loop  # noqa: E402
from jigsync.learn.chunks import SIZE, Chunks, Sample, make_chunk  # noqa: E402
from jigsync.learn.curve import Line, drawn  # noqa: E402
from jigsync.learn.export import check_golden, export_run, golden_path  # noqa: E402
from jigsync.learn.loop import LoopOptions, Report, train  # noqa: E402
from jigsync.learn.matcher import BORDER, TOUCHING, Matcher, placing_losses, side_logits  # noqa: E402
from jigsync.learn.matcher_data import augmented  # noqa: E402
from jigsync.learn.mixture import MIXTURE, draw_puzzle, parse_mixture, pictures_of  # noqa: E402
from jigsync.measure.matcher import load_matcher  # noqa: E402
from jigsync.measure.strips import CHANNELS, ROWS  # noqa: E402
from jigsync.score.touching import touching  # noqa: E402
from jigsync.values.errors import FormatError, InputError, OptionError  # noqa: E402
from jigsync.values.layout import Grid  # noqa: E402
from jigsync.values.placement import Placed  # noqa: E402


class Killed(Exception):
    """Stands for SIGKILL."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("coffee", "rocket"):
        write_png(folder / f"{name}.png", read_rgb(picture(name))[:200, :260])
    return folder


@pytest.fixture(scope="module")
def task(images: Path) -> QuickTask:
    return quick_task(images)


@pytest.fixture(scope="module")
def run(task: QuickTask, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    train(task, out, QUICK)
    return out


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "samples_per_s"} for row in csv.DictReader(file)]


def test_a_puzzle_is_a_function_of_its_number(images: Path) -> None:
    pictures = pictures_of([images])
    seen = []
    for k in range(12):
        puzzle, truth, kind = draw_puzzle(pictures, MIXTURE, 5, k)
        again, _, _ = draw_puzzle(pictures, MIXTURE, 5, k)
        assert all((a == b).all() for a, b in zip(puzzle.fragments.pixels, again.fragments.pixels, strict=True))
        assert 3 <= min(truth.grid.shape) <= max(truth.grid.shape) <= 5
        seen.append((kind, puzzle.cell, truth.grid.shape))
    assert len(set(seen)) > 6


def test_a_kind_says_what_is_cut(images: Path) -> None:
    pictures = pictures_of([images])
    for name, cell in (("tenths", 64), ("rims", 50)):
        for k in range(4):
            puzzle, truth, kind = draw_puzzle(pictures, parse_mixture(f"{name}=1"), 5, k)
            assert (kind, puzzle.cell) == (name, cell)
            assert max(truth.grid.shape) > 3  # of pictures of hundreds of pixels


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must hold pictures"):
        pictures_of([tmp_path])


def test_workers_and_files_change_nothing(task: QuickTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jigsync.learn.chunks.AHEAD", 1)
    alone, helped = Chunks(task.data(0), tmp_path / "a", 0), Chunks(task.data(0), tmp_path / "b", 1)
    for first, last in ((0, 0), (0, 1), (1, 2)):
        here, there = alone.window(first, last), helped.window(first, last)
        assert len(here) == SIZE * (last - first + 1)
        for a, b in zip(here, there, strict=True):
            assert all((a[key] == b[key]).all() for key in a)
    helped.close()
    assert not (tmp_path / "a" / "0000000.safetensors").exists()
    make_chunk(task.data(0), tmp_path / "c", 2)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a" / "0000002.safetensors").read_bytes()


class Threads:
    """Samples that tell what the process that makes them was told of threads."""

    def sample(self, k: int) -> Sample:
        return {"threads": np.array([int(os.environ.get("OMP_NUM_THREADS", "0"))])}


def test_workers_alone_are_kept_to_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    chunks = Chunks(Threads(), tmp_path, 1)
    assert {int(sample["threads"][0]) for sample in chunks.window(0, 0)} == {1}
    assert dict(os.environ) == before
    chunks.close()


def test_augmenting_keeps_which_sides_touch(task: QuickTask) -> None:
    sample = task.data(0).sample(1)
    x, partner = augmented(sample, np.random.default_rng(0))
    assert (partner == sample["partner"]).all()
    inner = np.flatnonzero(partner >= 0)
    assert (partner[partner[inner]] == inner).all()
    assert x.shape == sample["strips"].shape
    assert np.isfinite(x).all()


def test_scores_are_symmetric_and_know_no_batch() -> None:
    torch.manual_seed(0)
    matcher = Matcher(TINY).eval()
    torch.nn.init.normal_(matcher.encoder.context.weight)
    strips = torch.randn(12, CHANNELS, ROWS)
    left, right, none = matcher.encoder(strips)
    logits = side_logits(left, right)
    torch.testing.assert_close(logits, logits.T)
    assert torch.isinf(logits[:4, :4]).all()
    assert torch.isfinite(logits[:4, 4:]).all()
    torch.testing.assert_close(matcher.encoder(strips[4:8])[2], none[4:8])


def test_a_side_knows_its_whole_fragment_whichever_way_round() -> None:
    torch.manual_seed(0)
    matcher = Matcher(TINY).eval()
    torch.nn.init.normal_(matcher.encoder.context.weight)
    strips = torch.randn(4, CHANNELS, ROWS)
    left = matcher.encoder(strips)[0]
    order = [0, 3, 2, 1]  # as a mirror has it
    torch.testing.assert_close(matcher.encoder(strips[order])[0], left[order])
    other = strips.clone()
    other[3] += 1
    assert (matcher.encoder(other)[0][0] - left[0]).abs().max() > 1e-4


def turned(placed: Placed, turns: int) -> Placed:
    """In the same cell, with these turns."""
    assert placed.cell is not None
    return Placed.at(*placed.cell, turns)


def test_the_loss_of_placing_is_that_of_all_turns_and_exchanges() -> None:
    grid = Grid(2, 3)
    n = grid.size
    placement = {str(i): Placed.at(*divmod(i, grid.cols), (3 * i) % 4) for i in range(n)}
    ids = tuple(placement)
    partner = touching(placement, ids)
    torch.manual_seed(0)
    logits = torch.randn(4 * n, 4 * n)
    fragment = torch.arange(4 * n) // 4
    logits = (logits + logits.T).masked_fill(fragment[:, None] == fragment, -torch.inf)
    none = torch.randn(4 * n)

    def energy(at: dict[str, Placed]) -> float:
        touched = touching(at, ids)
        inside = [TOUCHING * float(logits[s, t]) for s, t in enumerate(touched) if s < t]
        return sum(inside) + sum(BORDER * float(none[s]) for s, t in enumerate(touched) if t < 0)

    found = placing_losses(logits, none, torch.from_numpy(partner))
    for i, here in enumerate(ids):
        others = [{here: turned(placement[here], (placement[here].turns + k) % 4)} for k in range(4)]
        for j, there in enumerate(ids):
            if i != j and not (partner[4 * i : 4 * i + 4] // 4 == j).any():
                a, b = placement[here], placement[there]
                turns = itertools.product(range(4), repeat=2)
                others += [{here: turned(b, k), there: turned(a, m)} for k, m in turns]
        lead = [energy({**placement, **other}) - energy(placement) for other in others]
        assert found[i].item() == pytest.approx(float(np.log(np.exp(lead).sum())), rel=1e-4)


def test_a_run_may_start_from_the_mean_of_others_and_count_placing(task: QuickTask, run: Path, tmp_path: Path) -> None:
    placing = replace(task, placing=0.5)
    train(placing, tmp_path, replace(QUICK, steps=1), start=[run, run])
    assert "placing" in rows(tmp_path / "curve.csv")[0]
    assert checkpoint.load(tmp_path / checkpoint.LAST)[0]["start"] == [str(run), str(run)]
    with pytest.raises(OptionError, match="name a new folder"):
        train(task, tmp_path, replace(QUICK, steps=2), start=[run, run])
    assert export_run([tmp_path], tmp_path / "m.onnx", {}) < 1e-4


def test_a_run_leaves_its_files(run: Path) -> None:
    config, progress, groups = checkpoint.load(run / checkpoint.LAST)
    assert progress.step == QUICK.steps
    assert config["network"]["width"] == 8
    assert config["version"]
    assert set(groups) == {"model", "average", "optimiser"}
    assert [row["step"] for row in rows(run / "curve.csv")] == ["1", "2", "3", "4", "5", "6"]
    assert [row["step"] for row in rows(run / "validation.csv")] == ["3", "6"]
    assert (run / "curve.png").exists()


def test_a_killed_run_goes_on_as_if_nothing_had_happened(task: QuickTask, run: Path, tmp_path: Path) -> None:
    def kill(report: Report) -> None:
        if report.step == 4:
            raise Killed

    with pytest.raises(Killed):
        train(task, tmp_path, QUICK, kill)
    assert checkpoint.load(tmp_path / checkpoint.LAST)[1].step == 3
    train(task, tmp_path, QUICK)
    assert rows(tmp_path / "curve.csv") == rows(run / "curve.csv")
    assert rows(tmp_path / "validation.csv") == rows(run / "validation.csv")
    here, there = (checkpoint.load(path / checkpoint.LAST)[2] for path in (tmp_path, run))
    assert all(torch.equal(here[group][name], there[group][name]) for group in here for name in here[group])


def test_another_network_does_not_go_on_with_a_run(task: QuickTask, run: Path) -> None:
    other = replace(task, options=replace(TINY, width=16))
    with pytest.raises(OptionError, match="name a new folder"):
        train(other, run, QUICK)
    with pytest.raises(OptionError, match="has rate"):
        train(task, run, replace(QUICK, rate=1.0))


def test_the_rate_rises_and_falls() -> None:
    options = LoopOptions(steps=1000)
    rates = [options.rate_at(step) for step in range(1000)]
    assert rates[0] < rates[loop.RISE // 2] < rates[loop.RISE] == options.rate
    assert rates[600] == options.rate > rates[800] > rates[999] > 0
    assert options.chunks_at(0) == (0, options.warm - 1)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"what")
    with pytest.raises(FormatError, match="not a checkpoint"):
        checkpoint.load(tmp_path / "x.safetensors")


def test_an_export_is_checked_golden_and_sealed(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.onnx"
    assert export_run([run], out, {"licence": "none"}) < 1e-4
    card = json.loads(out.with_suffix(".json").read_text())
    assert card["licence"] == "none"
    assert card["config"]["network"]["code"] == 4
    assert check_golden(out) < 1e-4
    load_matcher(out)
    data = bytearray(out.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.onnx").write_bytes(data)
    (tmp_path / "bad.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match="sha256"):
        load_matcher(tmp_path / "bad.onnx")
    with np.load(golden_path(out)) as golden:
        assert golden["strips"].shape[1:] == (CHANNELS, ROWS)


def test_of_several_runs_the_mean_is_exported(run: Path, tmp_path: Path) -> None:
    config, progress, groups = checkpoint.load(run / checkpoint.BEST)
    weights = groups["average"]
    for name, factor in (("double", 2.0), ("nothing", 0.0)):
        (tmp_path / name).mkdir()
        changed = {key: factor * value for key, value in weights.items()}
        checkpoint.save(tmp_path / name / checkpoint.BEST, config, progress, {"average": changed})
    mean = checkpoint.best_weights([tmp_path / "double", tmp_path / "nothing"])
    assert all(torch.equal(mean[key], value) for key, value in weights.items())
    out = tmp_path / "m.onnx"
    export_run([tmp_path / "double", tmp_path / "nothing"], out, {})
    assert json.loads(out.with_suffix(".json").read_text())["runs"] == 2
    (tmp_path / "other").mkdir()
    checkpoint.save(tmp_path / "other" / checkpoint.BEST, config, progress, {"average": {"x": torch.zeros(1)}})
    with pytest.raises(OptionError, match="must be of one network"):
        checkpoint.best_weights([run, tmp_path / "other"])


def test_weights_of_another_version_are_refused(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "m.onnx"
    export_run([run], out, {})
    monkeypatch.setattr("jigsync.measure.matcher.VERSION", "jigsync-strips/999")
    with pytest.raises(FormatError, match=r"must have strips 'jigsync-strips/999'. They have 'jigsync-strips/1'"):
        load_matcher(out)
    (tmp_path / "no.onnx").write_bytes(b"nonsense")
    with pytest.raises(FormatError, match="not a usable ONNX model"):
        load_matcher(tmp_path / "no.onnx")


def test_two_processes_train_one_network(images: Path, run: Path, tmp_path: Path) -> None:
    script = Path(__file__).with_name("learn_quick.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(script), str(images), str(tmp_path), "2"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    config, progress, _ = checkpoint.load(tmp_path / checkpoint.LAST)
    assert config["processes"] == 2
    assert progress.step == 2
    # The second process trains on puzzles of its own, and both sets of gradients count.
    first, second = ((tmp_path / f"chunks-{rank}" / "0000000.safetensors").read_bytes() for rank in (0, 1))
    assert first == (run / "chunks-0" / "0000000.safetensors").read_bytes() != second
    assert rows(tmp_path / "curve.csv")[1] != rows(run / "curve.csv")[1]


def test_a_picture_of_the_curve_shows_every_model() -> None:
    """Of validation the shares; of a model without any, as the likeness head, all of it, as what it gained."""
    [share] = drawn("validation.csv", [{"step": "1", "score": "2", "5x5 top1": "0.5", "5x5 nll": "3"}])
    assert share == Line("5x5 top1", [1], [0.5], relative=False)
    gains = [{"step": "1", "score": "2", "5x5 nll": "3.25"}, {"step": "4", "score": "2.5", "5x5 nll": "3"}]
    assert drawn("validation.csv", gains) == [
        Line("score (2.000)", [1, 4], [0, 0.5], relative=True),
        Line("5x5 nll (3.250)", [1, 4], [0, -0.25], relative=True),
    ]
    means = [{"step": "1", "rate": "2", "samples_per_s": "3", "loss": "4", "top1": "5"}]
    assert drawn("curve.csv", means) == [Line("loss", [1], [4], relative=False), Line("top1", [1], [5], relative=False)]
    assert drawn("curve.csv", []) == []
