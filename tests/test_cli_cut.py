"""`jigsync cut`, `sweep` and `corpus` from the command line: what they write and what they say."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jigsync import data
from jigsync.cli import main
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions, Damage
from jigsync.io.images import read_rgb, write_png
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.io.truth_file import load_truth
from jigsync.values.layout import Grid


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one picture whose name has a space and an accent."""
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(2).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    write_png("my picture é.png", pixels)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(list(args))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (["--severity=heavy", "--grid=2x3"], CutOptions(Grid(2, 3), 16, SEVERITIES["heavy"])),
        (["--grid=2"], CutOptions(Grid(2, 2), 16, SEVERITIES["medium"])),
        (["--shape=4", "--photo=0.5", "--no-turns"], CutOptions(Grid(3, 3), 16, Damage(4, 0, 0.5), turns=False)),
        (["--erosion=0.1", "--no-shuffle"], CutOptions(Grid(3, 3), 16, Damage(0, 0.1, 0), shuffle=False)),
        (["--photo=0.2", "--paper-order"], CutOptions(Grid(3, 3), 16, Damage(0, 0, 0.2), paper_order=True)),
        (["--preset=gap"], CutOptions(Grid(3, 3), 16, preset="gap")),
    ],
)
@pytest.mark.usefixtures("here")
def test_cut_writes_the_puzzle_of_its_options(
    capsys: pytest.CaptureFixture[str], args: list[str], options: CutOptions
) -> None:
    code, out, err = run(capsys, "cut", "my picture é.png", "--cell=16", "--seed=9", "-o", "out ü/x", "--json", *args)
    assert (code, err) == (0, "")
    picture = Path("my picture é.png")
    sha = hashlib.sha256(picture.read_bytes()).hexdigest()
    puzzle, truth = cut_picture(read_rgb(picture), options, 9, sha)
    read = load_puzzle("out ü/x/puzzle")
    assert read.ids == puzzle.ids
    assert all(np.array_equal(read.fragments[name], puzzle.fragments[name]) for name in puzzle.ids)
    assert load_truth("out ü/x/truth.json") == truth
    result = json.loads(out)
    assert result["options"] == options.to_json()
    assert (result["fragments"], result["seed"], result["source_sha256"]) == (options.grid.size, 9, sha)
    assert (result["puzzle"], result["truth"]) == ("out ü/x/puzzle", "out ü/x/truth.json")


def test_cut_overwrites_only_when_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("cut", "my picture é.png", "--cell=16", "--grid=2", "--out=out")
    code, out, _ = run(capsys, *args)
    assert code == 0
    assert out == f"Cut 4 fragments (2x2) into {Path('out', 'puzzle')}; truth in {Path('out', 'truth.json')}\n"
    first = load_truth("out/truth.json")
    assert run(capsys, *args, "--seed=1")[0] == 2
    assert load_truth("out/truth.json") == first
    assert run(capsys, *args, "--seed=1", "--overwrite")[0] == 0
    assert load_truth("out/truth.json").seed == 1
    assert sorted(os.listdir(here)) == ["my picture é.png", "out"]


def test_a_disk_that_is_full_leaves_nothing(here: Path) -> None:
    # Files over 3000 bytes cannot be written in this child: what a full disk is to the program.
    done = subprocess.run(
        [sys.executable, "-m", "jigsync", "cut", "my picture é.png", "--grid=2", "--out=a/out"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("jigsync: The path '")
    assert done.stderr.endswith("cannot be written: File too large.\n")
    assert os.listdir(here) == ["my picture é.png"]


def test_sweep_and_report(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bad one.png").write_bytes(b"no picture")
    args = ("sweep", ".", "--out", "/".join((str(here), "sub", "corpus")), "--grids=2,1x3", "--cell=16", "--workers=1")
    code, out, err = run(capsys, *args, "--severities=clean,eroded", "--per-image=2", "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["puzzles"], result["images"], result["shards"], result["report"]) == (8, 1, 0, None)
    assert [entry["image"] for entry in result["skipped"]] == ["bad one.png"]
    assert sorted(os.listdir("sub/corpus")) == ["manifest.jsonl", "sweep.json"]
    code, out, err = run(capsys, *args, "--severities=clean,eroded", "--per-image=2", "--shards")
    assert code == 0
    assert err.startswith("Skipped: The file 'bad one.png' is not a picture")
    assert "Corpus report (shares from the shards)" in out
    assert "8 puzzles of 1 pictures (1 skipped), 1 shards, in" in out
    report = json.loads(Path("sub/corpus/report.json").read_text())
    code, out, err = run(capsys, "corpus", "report", "sub/corpus", "--json")
    assert (code, json.loads(out), err) == (0, report, "")
    assert report["sound"] is True
    manifest = Path("sub/corpus/manifest.jsonl")
    split = json.loads(manifest.read_text().splitlines()[0])["split"]
    other = "test" if split != "test" else "val"
    manifest.write_text(manifest.read_text().replace(f'"split":"{split}"', f'"split":"{other}"', 1))
    code, _, err = run(capsys, "corpus", "report", "sub/corpus")
    assert (code, "manifest.jsonl' is damaged" in err) == (2, True)
    sweep = json.loads(Path("sub/corpus/sweep.json").read_text())
    del sweep["manifest"]  # as older corpora are: then the report finds that a picture is in two splits
    Path("sub/corpus/sweep.json").write_text(json.dumps(sweep))
    assert run(capsys, "corpus", "report", "sub/corpus")[0] == 1


@pytest.mark.usefixtures("here")
def test_procedural_pictures_become_a_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    args = ("corpus", "procedural", "--out=noise", "--beta=0.5, 3", "--count=2", "--size=32", "--seed=1")
    code, out, err = run(capsys, *args)
    assert (code, out, err) == (0, "4 pictures in noise\n", "")
    code, out, _ = run(capsys, "sweep", "noise", "--out=corpus", "--severities=all", "--cell=8", "--json")
    assert code == 0
    assert json.loads(out)["puzzles"] == 4 * len(SEVERITIES)


STUCK = """
import sys, time
from jigsync.io import cut_folder
usual = cut_folder.save_puzzle
def slow(*args):
    usual(*args)
    print("half way", flush=True)
    time.sleep(60)
cut_folder.save_puzzle = slow
from jigsync.cli import main
sys.exit(main())
"""


def stuck_half_way(*args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", STUCK, *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n"
    return process


def test_a_cut_that_is_told_to_end_takes_back_what_it_did(tmp_path: Path) -> None:
    with stuck_half_way(
        "cut", str(data.picture("coffee")), "--grid=2", "--cell=16", f"--out={tmp_path}/a/out"
    ) as process:
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (143, "jigsync: Stopped by SIGTERM.\n")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_cut_left_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    args = ("cut", str(data.picture("coffee")), "--grid=2", "--cell=16", f"--out={tmp_path}/out")
    with stuck_half_way(*args) as process:
        process.kill()
    assert [path.name.startswith(".jigsync-") for path in tmp_path.iterdir()] == [True]
    assert main([*args]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
