"""Corpora: a deterministic manifest, shards that survive a kill and do not depend on the workers, an honest report."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from jigsync.corpus import sweep as corpus
from jigsync.corpus.manifest import read_manifest
from jigsync.corpus.plan import Sweep, SweepOptions, load_sweep, plan_sweep
from jigsync.corpus.pool import run_units
from jigsync.corpus.report import corpus_report, report_table
from jigsync.corpus.sweep import plan_units, regenerate, write_shards
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.seeds import derive_seed, split_of
from jigsync.io.images import read_rgb, write_png
from jigsync.io.lease import only_writer
from jigsync.io.seal import checksum, sealed
from jigsync.io.shards import read_shard
from jigsync.values.errors import FormatError, ImageError, InputError, OptionError
from jigsync.values.layout import Grid

OPTIONS = SweepOptions((Grid(2, 3), Grid(2, 2)), ("clean", "medium"), per_image=2, cell=16, seed=3)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven usable pictures, one of them white; a copy, an empty file, a strip and a text."""
    folder = tmp_path_factory.mktemp("my pictures é")
    rng = np.random.default_rng(5)
    for k in range(6):
        write_png(folder / f"p {k}.png", rng.integers(0, 256, (40, 56 + k, 3), dtype=np.uint8))
    white = np.full((40, 40, 3), 250, dtype=np.uint8)
    white[:20, :20] = rng.integers(0, 256, (20, 20, 3))
    write_png(folder / "white.png", white)
    (folder / "z copy.png").write_bytes((folder / "p 2.png").read_bytes())
    (folder / "z empty.jpg").write_bytes(b"")
    write_png(folder / "z strip.png", np.zeros((2, 400, 3), dtype=np.uint8))
    (folder / "z text.png").write_bytes(b"hello")
    (folder / "notes.txt").write_bytes(b"no picture")
    return folder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PER_SHARD", 5)


@pytest.fixture(scope="module")
def made(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A whole corpus, made by one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "PER_SHARD", 5)
        sweep = plan_sweep(images, tmp_path_factory.mktemp("corpus") / "out", OPTIONS)
        write_shards(sweep)
    return sweep


def tree(folder: Path) -> dict[str, str]:
    """Relative name -> hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ---------------------------------------------------------------------------------------------- seeds and manifest


def test_seeds_and_splits_are_pinned() -> None:
    # printf '[3,"ab","2x3","clean",0]' | sha256sum, the first 63 bits
    assert derive_seed(3, "ab", "2x3", "clean", 0) == 4152775834468073741
    assert derive_seed(3, "ab", "2x3", "clean", 1) != derive_seed(3, "ab", "2x3", "clean", 0)
    # 0.70 = 0.b3333..., 0.85 = 0.d9999... in base 16
    edges = {"b3332": "train", "b3334": "val", "d9998": "val", "d999a": "test", "00000": "train", "fffff": "test"}
    assert {head: split_of(head + "0" * 59) for head in edges} == edges
    shares = Counter(split_of(hashlib.sha256(str(k).encode()).hexdigest()) for k in range(20_000))
    assert [shares[name] / 20_000 for name in ("train", "val", "test")] == pytest.approx([0.7, 0.15, 0.15], abs=0.01)


def test_manifest_rows(made: Sweep, images: Path) -> None:
    lines = [json.loads(line) for line in (made.out / "manifest.jsonl").read_text().splitlines()]
    assert len(lines) == 7 * 2 * 2 * 2
    assert len({line["key"] for line in lines}) == len(lines)
    assert len({line["seed"] for line in lines}) == len(lines)
    for line in lines:
        assert list(line) == ["key", "image", "image_sha256", "split", "seed", "options"]
        assert hashlib.sha256((images / line["image"]).read_bytes()).hexdigest() == line["image_sha256"]
        assert line["split"] == split_of(line["image_sha256"])
        grid, severity, k = line["key"].split("-")[1:]
        assert line["seed"] == derive_seed(3, line["image_sha256"], grid, severity, int(k))
    assert tuple(read_manifest(made.out / "manifest.jsonl")) == made.rows == load_sweep(made.out).rows


def test_unusable_pictures_are_skipped_and_named(made: Sweep) -> None:
    reasons = {entry.image: entry.reason for entry in made.skipped}
    assert list(reasons) == ["z copy.png", "z empty.jpg", "z strip.png", "z text.png"]
    assert reasons["z copy.png"] == "The picture 'z copy.png' is a copy of 'p 2.png'."
    assert "'z empty.jpg' is empty" in reasons["z empty.jpg"]
    assert "'z strip.png' is 400 x 2 pixels" in reasons["z strip.png"]
    assert "'z text.png' is not a picture" in reasons["z text.png"]
    assert load_sweep(made.out).skipped == made.skipped


def test_adding_a_severity_leaves_the_other_puzzles_alone(made: Sweep, images: Path, tmp_path: Path) -> None:
    wider = SweepOptions((Grid(2, 2),), ("medium", "heavy"), per_image=1, cell=16, seed=3)
    seeds = {row.key: row.seed for row in made.rows}
    rows = plan_sweep(images, tmp_path / "out", wider).rows
    shared = [row for row in rows if row.key in seeds]
    assert len(shared) == 7
    assert all(row.seed == seeds[row.key] for row in shared)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": "a.b"}, "The 'key' of '.*:1' must be lower-case"),
        ({"image": "../x.png"}, "The 'image' of '.*:1' must be a path below"),
        ({"image_sha256": "12"}, "must be a sha256"),
        ({"split": "dev"}, "must be one of train, val, test"),
        ({"seed": -1}, "must be an integer in 0"),
        ({"options": {"grid": [2, 2], "size": 3}}, "The 'options' of '.*:1' must be generator options .*'size'"),
        ({"options": {"grid": 5}}, "must be generator options"),
        ({"options": {"grid": [2, 2], "damage": []}}, "must be generator options"),
    ],
)
def test_bad_manifest_lines(made: Sweep, tmp_path: Path, change: dict[str, object], words: str) -> None:
    line = {**made.rows[0].to_json(), **change}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(FormatError, match=words):
        read_manifest(tmp_path / "m.jsonl")


def test_doubled_manifest_keys_are_refused(made: Sweep, tmp_path: Path) -> None:
    line = json.dumps(made.rows[0].to_json()) + "\n"
    (tmp_path / "m.jsonl").write_text(line + line)
    with pytest.raises(FormatError, match=r"The 'key' of '.*:2' must be unique"):
        read_manifest(tmp_path / "m.jsonl")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grids": ()}, "'grids' of a sweep must be a list"),
        ({"grids": (Grid(2, 2), Grid(2, 2))}, "'grids' of a sweep must be a list of different"),
        ({"severities": ("bad",)}, "must be 'all' or some of clean, light"),
        ({"per_image": 0}, "'per_image' of a sweep must be an integer of at least 1"),
        ({"seed": -1}, "'seed' of a sweep"),
        ({"cell": 1}, "'cell' of the puzzle"),
        ({"grids": (Grid(300, 300),)}, "at most 40000 fragments"),
    ],
)
def test_bad_sweep_options(change: dict[str, object], words: str) -> None:
    options = {"grids": (Grid(2, 2),), "severities": ("clean",), **change}
    with pytest.raises(OptionError, match=words):
        SweepOptions(**options)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- shards


def test_shards_hold_exactly_the_manifest(made: Sweep, images: Path) -> None:
    read = {}
    for unit in plan_units(made):
        assert {row.split for row in unit.rows} == {unit.name.split("-")[0]}
        for key, puzzle, truth in read_shard(unit.shard):
            assert key not in read
            read[key] = puzzle, truth
    assert set(read) == {row.key for row in made.rows}
    for row in made.rows:
        puzzle, truth = read[row.key]
        want, want_truth = cut_picture(read_rgb(images / row.image), row.options, row.seed, row.image_sha256)
        assert puzzle.ids == want.ids
        assert all(np.array_equal(puzzle.fragments[name], want.fragments[name]) for name in want.ids)
        assert truth == want_truth


def test_two_workers_write_the_same_bytes(made: Sweep, images: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS, workers=2, progress=lambda *args: seen.append(args))
    write_shards(sweep, workers=2, progress=lambda *args: seen.append(args))
    assert tree(sweep.out) == tree(made.out)
    assert seen[-1] == ("puzzles cut", 56, 56)
    assert ("pictures read", 11, 11) in seen


def meet(unit: tuple[Path, int]) -> int:
    """Signs in and waits for a second process to do the same."""
    folder, _ = unit
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + 60
    while len(os.listdir(folder)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return os.getpid()


def test_work_is_spread_over_processes(tmp_path: Path) -> None:
    units = [(tmp_path, k) for k in range(7)]
    results = dict(run_units(meet, units, 2))
    assert set(results) == set(units)
    assert {str(pid) for pid in results.values()} == set(os.listdir(tmp_path))
    assert len(os.listdir(tmp_path)) == 2
    assert os.getpid() not in results.values()
    with pytest.raises(OptionError, match="'workers' of a sweep must be an integer from 1"):
        list(run_units(meet, units, 0))


KILLED = """
import multiprocessing, os, signal, sys
from jigsync.cli import main
from jigsync.corpus import sweep as corpus

corpus.PER_SHARD = 5
run_units = corpus.run_units

def first_then_die(work, units, workers):
    results = run_units(work, units, workers)
    yield next(results)
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

corpus.run_units = first_then_die
main(sys.argv[1:])
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_resume_after_sigkill(made: Sweep, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--grids=2x3,2", "--severities=clean,medium", "--per-image=2", "--cell=16", "--seed=3", "--workers=2"]
    command = [sys.executable, "-c", KILLED, "sweep", str(images), "--out", str(out), "--shards", *options]
    killed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    workers = [int(pid) for pid in killed.stdout.split()]
    assert len(workers) == 2
    until = time.monotonic() + 30
    while any(alive(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in workers)
    units = plan_units(load_sweep(out))
    assert 1 <= sum(unit.done for unit in units) < len(units)
    # What a kill in the middle of a write leaves behind.
    (out / "shards" / ".jigsync-0.tmp").write_bytes(b"half")
    kept = {unit.name: unit.shard.stat().st_mtime_ns for unit in units if unit.done}
    write_shards(plan_sweep(images, out, OPTIONS))
    assert tree(out) == tree(made.out)
    assert all(unit.shard.stat().st_mtime_ns == kept[unit.name] for unit in units if unit.name in kept)


def test_a_kill_between_shard_and_stats(made: Sweep, images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    write_shards(sweep)
    units = plan_units(sweep)
    units[1].stats.unlink()
    units[1].shard.write_bytes(b"old")
    units[2].shard.unlink()
    write_shards(sweep)
    assert tree(sweep.out) == tree(made.out)


def test_a_full_disk_leaves_no_half_shard(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InputError, match=r"\.tar' cannot be written: No space left on device"):
        write_shards(sweep)
    assert sorted(path.name for path in sweep.out.iterdir()) == [".lock", "manifest.jsonl", "sweep.json"]


def test_two_writers_do_not_meet(images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    with only_writer(sweep.out), pytest.raises(OptionError, match="Another process is writing to"):
        write_shards(sweep)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_picture_that_changed_is_named(tmp_path: Path, workers: int) -> None:
    folder = tmp_path / "pictures"
    rng = np.random.default_rng(1)
    for k in range(3):
        write_png(folder / f"{k}.png", rng.integers(0, 256, (20, 20, 3), dtype=np.uint8))
    sweep = plan_sweep(folder, tmp_path / "out", OPTIONS)
    write_png(folder / "1.png", np.zeros((20, 20, 3), dtype=np.uint8))
    with pytest.raises(ImageError, match=r"1\.png' is not the one the manifest was made of"):
        write_shards(sweep, workers=workers)


def test_output_folders_that_are_refused(made: Sweep, images: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"holds another sweep \(other options\)"):
        plan_sweep(images, made.out, SweepOptions((Grid(2, 2),), ("clean",)))
    other = tmp_path / "other"
    write_png(other / "a.png", np.zeros((9, 9, 3), dtype=np.uint8))
    with pytest.raises(OptionError, match=r"holds another sweep \(other images\)"):
        plan_sweep(other, made.out, OPTIONS)
    with pytest.raises(OptionError, match=r"must be empty or hold a sweep\. Got one with 'a\.png'"):
        plan_sweep(images, other, OPTIONS)
    with pytest.raises(InputError, match="Not a directory"):
        plan_sweep(images, other / "a.png", OPTIONS)


def test_no_usable_picture(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"None of the 1 pictures in '.*in' can be used: The file 'a\.png' is not"):
        plan_sweep(tmp_path / "in", tmp_path / "out", OPTIONS)
    assert not (tmp_path / "out").exists()


def test_one_picture_is_a_corpus_too(images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images / "p 1.png", tmp_path / "out", OPTIONS)
    assert {row.image for row in sweep.rows} == {"p 1.png"}
    assert len(list(regenerate(sweep.images, sweep.rows[:2]))) == 2


# ---------------------------------------------------------------------------------------------- report


def test_report_counts(made: Sweep) -> None:
    report = corpus_report(made.out)
    total, *parts = report.parts
    assert report.sound
    shards = sum(-(-count // 5) for count in Counter(row.split for row in made.rows).values())
    assert (report.source, report.shards, report.shards_done, report.skipped) == ("shards", shards, shards, 4)
    assert (total.images, total.puzzles, total.fragments, total.measured) == (7, 56, 28 * 10, 56)
    assert [part.name for part in parts] == [
        "train",
        "val",
        "test",
        "2x3 clean",
        "2x3 medium",
        "2x2 clean",
        "2x2 medium",
    ]
    assert sum(part.puzzles for part in parts[:3]) == 56
    # Of the white picture a quarter has content: 3 of 4 cells are blank at 2 x 2; at 2 x 3 the crop keeps rows 7 to 33.
    assert parts[5].blank_share == pytest.approx(3 / 28)
    assert parts[5].gradient is not None
    assert parts[5].gradient > 30
    text = str(report_table(report).caption)
    assert text.startswith("0 images in two splits, 0 puzzles missing, 0 doubled, 4 pictures skipped,")


def test_gradient_and_blank_by_hand(tmp_path: Path) -> None:
    # Left cell flat, right cell a ramp of 5 grey levels a pixel; every step right of the seam counts 5.
    picture = np.full((16, 32, 3), 100, dtype=np.uint8)
    picture[:, 16:] += (5 * np.arange(1, 17, dtype=np.uint8))[None, :, None]
    write_png(tmp_path / "in" / "a.png", picture)
    plan_sweep(tmp_path / "in", tmp_path / "out", SweepOptions((Grid(1, 2),), ("clean",), cell=16))
    part = corpus_report(tmp_path / "out").parts[0]
    steps = 16 * 31 + 15 * 32
    assert part.gradient == pytest.approx(16 * 16 * 5 / steps, abs=1e-4)
    assert part.blank_share == 0.5
    assert part.flagged_share == 0.0


def test_a_sample_of_the_manifest_agrees_with_the_shards(made: Sweep, images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    whole = corpus_report(sweep.out, sample=1000)
    assert whole.source == "sample"
    assert whole.parts == corpus_report(made.out).parts
    few = corpus_report(sweep.out, sample=7)
    assert few.parts[0].measured == 7
    assert few.parts[0].puzzles == 56
    assert few.sound
    with pytest.raises(OptionError, match="'sample' of a corpus report"):
        corpus_report(sweep.out, sample=0)


def test_the_report_finds_leaks_losses_and_doubles(images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    write_shards(sweep)
    stats = plan_units(sweep)[0].stats
    written = json.loads(stats.read_text())
    entries = written["puzzles"]
    stats.write_text(json.dumps(sealed({**written, "puzzles": [entries[0], entries[0], *entries[2:]]})))
    report = corpus_report(sweep.out)
    assert report.missing == (entries[1]["key"],)
    assert report.doubled == (entries[0]["key"],)
    assert not report.sound
    stats.write_text(json.dumps(written))
    assert corpus_report(sweep.out).sound
    lines = [row.to_json() for row in sweep.rows]
    lines[0]["split"] = next(name for name in ("train", "val", "test") if name != lines[0]["split"])
    (sweep.out / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(FormatError, match=r"manifest\.jsonl' is damaged: it is not the one 'sweep.json' tells of"):
        corpus_report(sweep.out)
    head = json.loads((sweep.out / "sweep.json").read_text())
    (sweep.out / "sweep.json").write_text(json.dumps({**head, "manifest": checksum(lines)}))
    assert corpus_report(sweep.out).images_in_two_splits == (lines[0]["image_sha256"],)
    stats.write_text(json.dumps(sealed({**written, "puzzles": [{"key": "x"}]})))
    with pytest.raises(FormatError, match=r"The key 'fragments' is missing in the 'puzzles\[0\]' of"):
        corpus_report(sweep.out)


def test_report_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sweep\.json' cannot be read: No such file"):
        corpus_report(tmp_path)
