"""Kills, a full disk, unreadable and damaged files: benchmarks/faults.py in short, and damage one by one."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from jigsync.cli import main
from jigsync.io.files import read_json, write_json
from jigsync.io.seal import check_seal, sealed
from jigsync.io.shards import read_shard
from jigsync.values.errors import FormatError, InputError

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))

import faults  # noqa: E402
import kept_server  # noqa: E402
import served  # noqa: E402
import victims  # noqa: E402


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return victims.pictures(tmp_path_factory.mktemp("pictures"), count=2)


@pytest.fixture(scope="module")
def training(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    from learn_quick import QUICK, quick_task

    from jigsync.learn.loop import train

    out = tmp_path_factory.mktemp("training")
    train(quick_task(images), out, QUICK)
    return out


def right(row: faults.Row) -> None:
    assert row.wrong == "", row


# ---------------------------------------------------------------------------------------------- kills


@pytest.fixture(scope="module")
def swept(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[victims.Victim, victims.Outcome, float]:
    """A small sweep, its outcome and how long it takes."""
    victim = victims.sweep_victim(images, per_image=1)
    return victim, *faults.undisturbed(victim, tmp_path_factory.mktemp("swept") / "out")


def test_a_killed_sweep_ends_like_an_undisturbed_one(
    swept: tuple[victims.Victim, victims.Outcome, float], tmp_path: Path
) -> None:
    """A kill of `jigsync eval` is in test_eval.py."""
    victim, reference, seconds = swept
    row = faults.kills(victim, tmp_path, reference, seconds, 1, seed=4)
    right(row)
    assert row.done == 1


def test_a_killed_training_ends_like_an_undisturbed_one(images: Path, training: Path, tmp_path: Path) -> None:
    """Killed for good, as soon as there is a checkpoint; the samples are there already."""
    script = [sys.executable, str(HERE / "learn_quick.py"), str(images), str(tmp_path), "6"]
    shutil.copytree(training / "chunks-0", tmp_path / "chunks-0")
    process = victims.start(script)
    while not (tmp_path / "last.safetensors").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    ended = victims.run(script)
    assert ended.code == 0, ended.said
    assert victims.trained(tmp_path) == victims.trained(training)


def test_a_killed_server_answers_what_was_asked_before(tmp_path: Path) -> None:
    puzzles = served.packed_puzzles(2)
    # A process of its own, too: the last digits depend on the threads of BLAS, which an earlier test may have set.
    reference, _ = kept_server.undisturbed(tmp_path / "undisturbed", puzzles)
    rng = np.random.default_rng(1)
    assert kept_server.killed_round(tmp_path, puzzles, reference, 1, 1.0, rng) == (1, "")


def test_what_is_lost_doubled_or_other_is_told() -> None:
    """The harness itself can fail."""
    assert faults.differs({"a": "1"}, {"a": "1"}) == ""
    told = faults.differs({"a": "1", "b": "2"}, {"b": "3", "c": "4"})
    assert told == "lost: a (1); too many: c (1); other: b (1)"


# ---------------------------------------------------------------------------------------------- full and unreadable


def test_a_full_disk_is_one_sentence_and_the_run_goes_on(
    swept: tuple[victims.Victim, victims.Outcome, float], tmp_path: Path
) -> None:
    try:
        with faults.small_disk(tmp_path / "probe", 100):
            pass
    except (PermissionError, FileNotFoundError) as error:
        pytest.skip(str(error))
    victim, reference, _ = swept
    right(faults.full_disk(victim, tmp_path, reference, 60))


def test_pictures_that_cannot_be_read_are_left_out_and_named(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    shutil.copytree(images, folder)
    rng = np.random.default_rng(0)
    for name, damage in (("locked", faults.unreadable), ("gone", faults.dangling)):
        path = folder / f"{name}.png"
        shutil.copy(next(images.iterdir()), path)
        damage(path, rng)
    command = victims.jigsync("sweep", str(folder), "--out", str(tmp_path / "out"), "--workers", "1")
    ended = victims.run(command, preexec_fn=victims.obey_modes)
    assert ended.code == 0, ended.said
    for name in ("locked", "gone"):
        assert f"{name}.png' cannot be read" in ended.said
    assert "Traceback" not in ended.said


# ---------------------------------------------------------------------------------------------- damage


def test_a_damaged_shard_is_named_and_made_again(
    images: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = ["sweep", str(images), "--out", str(tmp_path / "out"), "--grids", "2", "--severities", "clean", "--cell"]
    command += ["16", "--workers", "1", "--shards", "--json"]
    assert main(command) == 0
    before = victims.whole_tree(tmp_path / "out")
    rng = np.random.default_rng(2)
    for folder, damage in (("shards", faults.flipped), ("shards", faults.cut_off), ("stats", faults.flipped)):
        path = sorted((tmp_path / "out" / folder).iterdir())[0]
        damage(path, rng)
        caplog.clear()
        assert main(command) == 0
        assert path.name in caplog.text
        assert "It is made again." in caplog.text
        assert victims.whole_tree(tmp_path / "out") == before
    caplog.clear()
    assert main(command) == 0
    assert caplog.text == ""
    (tmp_path / "out" / "manifest.jsonl").unlink()
    (tmp_path / "out" / ".jigsync-0.tmp").write_bytes(b"left by a kill")
    assert main(command) == 0
    assert victims.whole_tree(tmp_path / "out") == before
    assert sum(len(list(read_shard(path))) for path in (tmp_path / "out" / "shards").iterdir()) == 2


def test_a_damaged_evaluation_is_named_and_made_again(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["eval", "--images", str(images), "--out", str(out), "--grids", "2", "--severities", "clean", "--cell"]
    command += ["24", "--solvers", "greedy:boundary", "--workers", "1", "--gallery", "0", "--json"]
    assert main(command) == 0
    before = victims.scores(out)
    rng = np.random.default_rng(3)
    for pattern in ("predictions/*/*.jsonl", "truths/*.json"):
        for damage in (faults.flipped, faults.cut_off):
            path = sorted(out.glob(pattern))[0]
            how = damage(path, rng)
            capsys.readouterr()
            assert main(command) == 2, how
            assert str(path) in (said := capsys.readouterr().err)
            assert len([line for line in said.splitlines() if line.startswith("jigsync:")]) == 1
            faults._delete(path)
            assert main(command) == 0
            assert victims.scores(out) == before
    lines = (out / "puzzles.jsonl").read_text().splitlines(keepends=True)
    (out / "puzzles.jsonl").write_text(lines[0] + lines[1][:20])
    assert main(["eval", "--out", str(out), "--gallery", "0"]) == 2
    assert "puzzles.jsonl' is damaged" in capsys.readouterr().err


def test_an_evaluation_killed_while_it_planned_goes_on(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["eval", "--images", str(images), "--out", str(out), "--grids", "2", "--severities", "clean", "--cell"]
    command += ["24", "--solvers", "greedy:boundary", "--workers", "1", "--gallery", "0", "--json"]
    out.mkdir()
    (out / "puzzles.jsonl").write_text("")
    (out / ".jigsync-1.tmp").write_text("")
    assert main(command) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "holiday.txt").touch()
    assert main([*command, "--out", str(tmp_path / "other")]) == 2


@pytest.fixture
def copied(training: Path, tmp_path: Path) -> Path:
    shutil.copytree(training, tmp_path / "run")
    return tmp_path / "run"


def go_on(images: Path, out: Path) -> None:
    from learn_quick import QUICK, quick_task

    from jigsync.learn.loop import train

    train(quick_task(images), out, QUICK)


@pytest.mark.parametrize("damage", [faults.flipped, faults.cut_off, faults.a_folder], ids=lambda d: d.__name__)
def test_a_damaged_checkpoint_goes_back_to_the_one_before(
    damage: faults.Damage, images: Path, copied: Path, training: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(1)
    damage(copied / "last.safetensors", rng)
    if damage is faults.a_folder:
        with pytest.raises(InputError, match=r"last\.safetensors"):
            go_on(images, copied)
        return
    go_on(images, copied)
    assert "last.safetensors' is" in caplog.text
    assert "goes on from" in caplog.text
    assert victims.trained(copied) == victims.trained(training)


def test_two_damaged_checkpoints_are_named(images: Path, copied: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("last", "previous"):
        faults.flipped(copied / f"{name}.safetensors", rng)
    with pytest.raises(FormatError, match=r"previous\.safetensors' is"):
        go_on(images, copied)


def test_a_damaged_chunk_is_made_again(
    images: Path, copied: Path, training: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(5)
    for path in copied.glob("*.safetensors"):
        path.unlink()
    damaged = sorted((copied / "chunks-0").iterdir())[0]
    whole = damaged.read_bytes()
    faults.flipped(damaged, rng)
    with caplog.at_level(logging.WARNING):
        go_on(images, copied)
    assert damaged.name in caplog.text
    assert "It is made again." in caplog.text
    assert damaged.read_bytes() == whole
    assert victims.trained(copied) == victims.trained(training)


def test_a_damaged_curve_is_written_again(images: Path, copied: Path, training: Path) -> None:
    text = (copied / "curve.csv").read_text()
    (copied / "curve.csv").write_text(text[: len(text) // 2].rpartition("\n")[0] + "\n")
    (copied / "validation.csv").unlink()
    go_on(images, copied)
    assert victims.trained(copied) == victims.trained(training)


@pytest.mark.parametrize("written", [b'"step": ', b'"loss": "'])
def test_a_flipped_header_is_found(images: Path, copied: Path, written: bytes) -> None:
    (copied / "previous.safetensors").unlink(missing_ok=True)
    path = copied / "last.safetensors"
    data = bytearray(path.read_bytes())
    header = data.index(b'"jigsync"')
    at = data.index(written.replace(b'"', b'\\"'), header) + len(written.replace(b'"', b'\\"'))
    data[at] ^= 1  # one digit becomes another
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"last\.safetensors' is damaged: it is not what its own checksum says"):
        go_on(images, copied)


def test_what_a_network_leaves_out_is_the_same_after_a_kill(images: Path, training: Path, tmp_path: Path) -> None:
    import torch
    from learn_quick import QUICK, QuickTask, quick_task

    from jigsync.learn.loop import Report, train
    from jigsync.learn.matcher import Matcher

    class Forgetful(Matcher):
        def forward(self, batch: object) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            loss, means = super().forward(batch)
            return loss * torch.nn.functional.dropout(torch.ones(64), 0.5).mean(), means

    class ForgetfulTask(QuickTask):
        def model(self) -> Matcher:
            return Forgetful(self.options)

    def kill(report: Report) -> None:
        if report.step == 5:
            raise KeyboardInterrupt

    task = ForgetfulTask(**vars(quick_task(images)))
    for name in ("whole", "killed"):
        shutil.copytree(training / "chunks-0", tmp_path / name / "chunks-0")
    train(task, tmp_path / "whole", QUICK)
    with pytest.raises(KeyboardInterrupt):
        train(task, tmp_path / "killed", QUICK, kill)
    train(task, tmp_path / "killed", QUICK)
    assert victims.trained(tmp_path / "killed") == victims.trained(tmp_path / "whole") != victims.trained(training)


def test_a_seal_breaks_with_any_digit(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", sealed({"turns": [1, 2], "energy": -0.1, "name": "é"}))
    value = read_json(tmp_path / "x.json")
    check_seal(value, "x.json")
    with pytest.raises(FormatError, match=r"'x\.json' is damaged: it is not what its own checksum says"):
        check_seal({**value, "turns": [1, 3]}, "x.json")
    with pytest.raises(FormatError, match="damaged"):
        check_seal({key: part for key, part in value.items() if key != "sha256"}, "x.json")
