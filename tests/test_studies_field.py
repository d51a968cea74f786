"""Studies of what the field measures: they count rightly, and what they hand over is what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jigsync import data
from jigsync.api import solve
from jigsync.cli import main
from jigsync.cutting.squares import SquareOptions
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.cutting.web import WebOptions, web_picture
from jigsync.evaluate.progress import silent
from jigsync.io.cut_folder import save_cut
from jigsync.score.cells import score
from jigsync.studies import continuous_puzzles, frame, real, reproduce, tears, web_pictures
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    with Image.open(data.picture("astronaut")) as picture:
        picture.resize((200, 160)).save(folder / "astronaut.png")
    return folder


def task(images: Path, cell: int = 64, severity: str = "clean") -> frame.Task:
    return frame.Task(images / "astronaut.png", severity, ("boundary",), cell, 5, 1)


def test_a_shift_takes_away_what_the_container_told(images: Path) -> None:
    """Boundary cues align fragments by the middle of their containers: 16 pixels further they see nothing."""
    found = {}
    for how in ("as cut", "shifted 16"):
        puzzle, truth = frame.handed_over(task(images, severity="light"), how)
        found[how] = frame.in_place(solve(puzzle, measurer="boundary", grid=frame.GRID, threads=1), truth, puzzle)
    assert found["as cut"] == 1
    assert found["shifted 16"] < 0.5


def test_shifted_fragments_are_the_same_elsewhere(images: Path) -> None:
    puzzle, truth = frame.handed_over(task(images, severity="light"), "as cut")
    moved, home = frame.handed_over(task(images, severity="light"), "shifted 8")
    assert moved.container == puzzle.container
    for name in puzzle.ids:
        before, after = truth.placement[name].pose, home.placement[name].pose
        assert before is not None
        assert after is not None
        pixels, shifted = puzzle.fragments[name], moved.fragments[name]
        (y, x), (v, u) = (np.argwhere(part[..., 3] > 0).mean(axis=0) for part in (pixels, shifted))
        assert np.hypot(u - x, v - y) == pytest.approx(4, abs=1), "8 px of 128 are 4 of 64"
        # The same pixel of the picture, through either pose.
        middle = np.array(pixels.shape[1::-1]) / 2
        assert before.act(np.array([x, y]) - middle) == pytest.approx(after.act(np.array([u, v]) - middle))
    assert score(solve(puzzle, grid=frame.GRID, threads=1), home).best4.aa == 1, "cells are what they were"


def test_frame(images: Path) -> None:
    result = frame.run_pictures([images / "astronaut.png"], ("clean",), ("boundary",), 48, 1, 0, silent)
    assert [row["handed"] for row in result.rows] == list(frame.HANDED)
    (compared,) = result.compared
    assert compared.what == "boundary, as cut: fragments in place"
    assert "shifted 2" in compared.verdict
    assert "any" in compared.verdict
    assert "erratum 12" in result.verdict


def test_continuous_puzzles_and_tears(images: Path, tmp_path: Path) -> None:
    puzzles = continuous_puzzles.run_sizes((2,), 1, 48, 1, 0, silent, images)
    torn = tears.run_tears((4,), ("tear",), (0.0, 0.02), 1, 48, 1, 0, silent, images)
    assert [row["presentation"] for row in (*puzzles.rows, *torn.rows)] == ["any"] * 6
    assert {row["severity"] for row in torn.rows} == {"clean", "0.02 off"}
    assert puzzles.compared[0].what == "jigsync, 2 x 2: fragments right, 1 puzzles"
    assert " of 4 [" in str(puzzles.compared[0].ours)
    assert continuous_puzzles.PAPER == {3: 6, 5: 6}
    for result in (puzzles, torn):
        written = reproduce.write(result, tmp_path)
        kept = json.loads(written.json.read_text(encoding="utf-8"))
        assert kept["presentation"] == "any"
        assert "contours" in kept["weights"]


def test_real_fragments(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rgb = np.asarray(Image.open(data.picture("coffee")).convert("RGB").resize((160, 120)))
    for k in range(2):
        puzzle, truth = tear_picture(rgb, TearOptions(3, 40), k)
        save_cut(tmp_path / "sets" / "paper" / f"p{k}", puzzle, truth)
    result = real.run_sets(tmp_path / "sets", None, ("free:contours-plain",), 1, 0, silent)
    assert [row["puzzle"] for row in result.rows] == ["p0", "p1", "all"] or [row["puzzle"] for row in result.rows] == [
        "p1",
        "p0",
        "all",
    ]
    assert "Q_pos (RePAIR)" in result.rows[0]
    assert result.compared[0].what == "free+contours-plain, paper: right, 2 puzzles"
    with pytest.raises(OptionError, match="needs --fragments"):
        reproduce.run("real")
    assert reproduce.lacking("real", {"fragments": tmp_path}) == ""
    monkeypatch.setattr(reproduce, "STUDIES", {"real": "", "orbit": ""})
    assert main(["reproduce", "all", "--out", str(tmp_path / "out"), "--json"]) == 0, "skipped, and no failure"
    told = capsys.readouterr()
    assert "real was skipped. The study 'real' needs --fragments" in told.err
    assert [one["name"] for one in json.loads(told.out)] == ["orbit"]


# ------------------------------------------------------------------------------------------------ web


def test_pictures_of_the_web() -> None:
    with Image.open(data.picture("coffee")) as picture:
        rgb = np.asarray(picture.convert("RGB"))
    assert (web_picture(rgb, WebOptions(), 1) == rgb).all(), "nothing asked for, nothing done"
    small = web_picture(rgb, WebOptions(100), 1)
    assert max(small.shape[:2]) == 100
    assert web_picture(small, WebOptions(500), 1).shape == small.shape, "never enlarged"
    coarse, fine = (web_picture(rgb, WebOptions(None, (q, q)), 1).astype(int) - rgb for q in (30, 95))
    assert np.abs(coarse).mean() > np.abs(fine).mean() > 0
    drawn = {web_picture(rgb, WebOptions(None, (20, 95)), seed).tobytes() for seed in range(4)}
    assert len(drawn) == 4
    framed = web_picture(rgb, WebOptions(border=0.1), 2)
    changed = (framed != rgb).any(axis=2)
    wide = round(0.1 * min(rgb.shape[:2]))
    assert framed.shape == rgb.shape
    assert not changed[wide:-wide, wide:-wide].any()
    assert len(np.unique(framed[changed])) == 1


@pytest.mark.parametrize("wrong", [{"longest": 4}, {"quality": (90, 80)}, {"border": 0.9}, {"quality": (0, 5)}])
def test_no_such_picture(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="of a picture of the web"):
        WebOptions(**wrong)  # type: ignore[arg-type]


def test_web_pictures(images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        web_pictures,
        "FORMS",
        {
            "as they are": WebOptions(),
            "small": WebOptions(60),
            "compressed": WebOptions(None, (10, 10)),
            "blank borders": WebOptions(border=0.2),
        },
    )
    options = SquareOptions(24, Grid(2, 3), 1, turns=False)
    result = web_pictures.run_pictures([images / "astronaut.png"], options, 1, 0, silent)
    assert [row["form"] for row in result.rows] == list(web_pictures.FORMS)
    assert result.compared[0].what == "as they are: AA of 1 pictures"
    assert "costs most" in result.verdict
    arguments = ["bench-squares", str(images), "--piece", "24", "--grid", "2x3", "--no-turns", "--json"]
    assert main([*arguments, "--downsize", "80", "--jpeg", "75-95", "--border", "0.05"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"]["pictures"] == 1
    assert main([*arguments, "--jpeg", "good"]) == 2
    assert "a quality such as 80 or 75-95" in capsys.readouterr().err
