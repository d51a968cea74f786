"""`jigsync tear`, and the presentations of `jigsync cut`, from the command line."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from jigsync.cli import main
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.images import read_rgb, write_png
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.io.truth_file import load_truth
from jigsync.values.layout import FREE, Grid
from jigsync.values.puzzle import Puzzle

PICTURE = "my picture é.png"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one picture whose name has a space and an accent."""
    monkeypatch.chdir(tmp_path)
    write_png(PICTURE, np.random.default_rng(2).integers(0, 256, (60, 80, 3), dtype=np.uint8))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(list(args))
    out, err = capsys.readouterr()
    return code, out, err


def same(one: Puzzle, other: Puzzle) -> bool:
    pairs = zip(one.fragments.pixels, other.fragments.pixels, strict=True)
    return one.ids == other.ids and all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ([], TearOptions(12, 24)),
        (["--pieces=6", "--style=cuts", "--upright"], TearOptions(6, 24, "cuts", turns=False)),
        (["--style=knobs", "--no-turns", "--no-shuffle"], TearOptions(12, 24, "knobs", turns=False, shuffle=False)),
        (
            ["--erosion=0.03", "--rim=2", "--photo=0.1", "--presentation=cropped"],
            TearOptions(12, 24, "tear", 0.03, 2.0, 0.1, "cropped"),
        ),
    ],
)
def test_tear_writes_the_puzzle_of_its_options(
    capsys: pytest.CaptureFixture[str], args: list[str], options: TearOptions
) -> None:
    code, out, err = run(capsys, "tear", PICTURE, "--size=24", "--seed=9", "-o", "out ü/x", "--json", *args)
    assert (code, err) == (0, "")
    sha = hashlib.sha256(Path(PICTURE).read_bytes()).hexdigest()
    puzzle, truth = tear_picture(read_rgb(PICTURE), options, 9, sha)
    assert same(load_puzzle("out ü/x"), puzzle)
    read = load_truth("out ü/x/truth.json")
    assert (read.layout, read.contacts, read.source_sha256) == (truth.layout, truth.contacts, sha)
    head = json.loads(Path("out ü/x/puzzle/puzzle.json").read_text())
    assert (head["cell"], head["container"]) == (None, None)
    result = json.loads(out)
    assert result["options"] == options.to_json()
    assert result["layout"] == ("3x4" if options.style == "knobs" else "free")
    assert (result["fragments"], result["seed"]) == (options.pieces, 9)
    assert result["contacts"] == len(truth.contacts or ()) > 0


def test_tear_overwrites_only_when_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("tear", PICTURE, "--size=16", "--pieces=4", "--out=out")
    code, out, _ = run(capsys, *args)
    assert code == 0
    assert out == f"Tore 4 pieces (tear) into {Path('out', 'puzzle')}; truth in {Path('out', 'truth.json')}\n"
    assert load_truth("out/truth.json").layout == FREE
    assert run(capsys, *args, "--seed=1")[0] == 2
    assert load_truth("out/truth.json").seed == 0
    assert run(capsys, *args, "--seed=1", "--overwrite")[0] == 0
    assert load_truth("out/truth.json").seed == 1
    assert sorted(os.listdir(here)) == [PICTURE, "out"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--pieces=1"], "from 2 to 1000"),
        (["--pieces=1001"], "from 2 to 1000"),
        (["--pieces=-3"], "from 2 to 1000"),
        (["--pieces=76"], "is 80 x 60 pixels: too small for 76 pieces of at least 8 x 8 pixels"),
        (["--pieces=7", "--style=knobs"], "7 jigsaw pieces do not fill a picture of 80 x 60 pixels"),
        (["--erosion=nan"], "'erosion'"),
        (["--erosion=-0.01"], "'erosion'"),
        (["--rim=-1"], "'rim'"),
        (["--rim=inf"], "'rim'"),
        (["--photo=nan"], "'photo'"),
        (["--size=4"], "'size'"),
        (["--size=1024", "--pieces=75"], "at most 64,000,000"),
        (["--style=burn"], "'style'"),
        (["--presentation=cell"], "'presentation'"),
        (["--seed=-1"], "'seed'"),
        (["--pieces=many"], "a valid integer"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], args: list[str], words: str
) -> None:
    code, out, err = run(capsys, "tear", PICTURE, "--out=out", *args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
    assert os.listdir(here) == [PICTURE], "nothing is written"


@pytest.mark.parametrize("presentation", ["cell", "cropped", "any"])
def test_cut_presents(capsys: pytest.CaptureFixture[str], presentation: str) -> None:
    args = ("cut", PICTURE, "--grid=2x3", "--cell=16", f"--presentation={presentation}", "-o", "out", "--json")
    code, out, err = run(capsys, *args)
    assert (code, err) == (0, "")
    options = CutOptions(Grid(2, 3), 16, SEVERITIES["medium"], presentation=presentation)  # type: ignore[arg-type]
    puzzle, truth = cut_picture(read_rgb(PICTURE), options, 0)
    read = load_puzzle("out")
    assert same(read, puzzle)
    assert (read.cell, read.container) == ((16, 40) if presentation == "cell" else (None, None))
    assert load_truth("out/truth.json").grid == truth.grid
    assert json.loads(out)["container"] == read.container


def test_cut_refuses_an_unknown_presentation(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["--presentation=loose"], ["--presentation=any", "--paper-order"]):
        code, _, err = run(capsys, "cut", PICTURE, "--out=out", *args)
        assert (code, err.count("\n")) == (2, 1)
        assert "'presentation'" in err
    assert os.listdir(here) == [PICTURE]
