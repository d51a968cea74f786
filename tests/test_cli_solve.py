"""`jigsync solve`: puzzles and plain folders in, solution.json and assembled.png out, one sentence when it cannot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sides import cut

import jigsync
from jigsync import Puzzle, Solution, cli, data
from jigsync.gauge import Anchor
from jigsync.io.images import write_png
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.solution_file import load_solution
from jigsync.score.cells import score


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A puzzle folder, 2 x 3, light."""
    save_puzzle(tmp_path / "p", cut("light", (2, 3), 48)[0])
    return tmp_path / "p"


def rectangles(folder: Path, rows: int, cols: int, *, turned: bool, size: tuple[int, int] = (180, 120)) -> np.ndarray:
    """Cuts a bundled picture into a plain folder of pictures with odd names and of several formats."""
    with Image.open(data.picture("coffee")) as picture:
        small = np.asarray(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS))
    folder.mkdir()
    rng = np.random.default_rng(2)
    names = [
        "Große Scherbe.jpg",
        "10.png",
        "2.bmp",
        "a b(c).JPG",
        "привет.png",
        "scan 7.tif",
        "2.jpeg",
        "ñ.webp",
        "zz.png",
    ]
    cells = [band for strip in np.array_split(small, rows) for band in np.array_split(strip, cols, axis=1)]
    for name, k in zip(names, rng.permutation(len(cells)), strict=False):
        turns = int(rng.integers(4)) if turned else 0
        options = {"lossless": True} if name.endswith("webp") else {"quality": 95} if name[-4:] != ".tif" else {}
        Image.fromarray(np.rot90(cells[k], turns).copy()).save(folder / name, **options)
    return small


def solved(capsys: pytest.CaptureFixture[str], *args: str | Path) -> dict[str, object]:
    """The JSON that a successful solve prints."""
    assert cli.main(["solve", *map(str, args), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    result: dict[str, object] = json.loads(captured.out)
    return result


def refused(capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    """The one sentence that a refused solve says."""
    assert cli.main(["solve", *map(str, args)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("jigsync: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("jigsync: ").strip()


def test_solve_writes_the_solution_and_the_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = cut("light", (2, 3), 48)[1]
    assert cli.main(["solve", str(folder)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    out = folder.with_name("p-solved")
    assert sorted(path.name for path in out.iterdir()) == ["assembled.png", "solution.json"]
    solution = load_solution(out / "solution.json")
    assert score(solution, truth).best4.aa_rot == 1.0
    first, *rest = captured.out.splitlines()
    assert first.startswith(f"6 of 6 fragments placed in a {solution.grid} grid by 'jigsync' in ")
    assert first.endswith(" s: ok.")
    assert any("which side up" in line and f" {solution.gauge.confidence:.0%}" in line for line in rest)
    assert any("confidence" in line and "% on average" in line for line in rest)
    assert str(out / "assembled.png") in captured.out
    assert str(out / "solution.json") in captured.out
    with Image.open(out / "assembled.png") as picture:
        assert sorted(picture.size) == [96, 144]


def test_a_picture_without_a_clear_up_is_said_to_have_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jigsync.gauge.shipped", lambda: Anchor(0.01, 0.01, 0.8))
    assert cli.main(["solve", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "no clear up, " in said
    assert "'jigsync show --gauge four' draws all four ways" in said
    gauge = solved(capsys, folder)["gauge"]
    assert gauge["clear"] is False  # type: ignore[index]
    assert sum(gauge["probabilities"]) == pytest.approx(1)  # type: ignore[index]
    monkeypatch.setattr("jigsync.gauge.shipped", lambda: Anchor(1.0, 0.5, 0.26))
    assert cli.main(["solve", str(folder)]) == 0
    assert re.search(r"which side up +\d+% sure", capsys.readouterr().out)


def test_solve_again_replaces_its_own_answer_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder.with_name("p-solved")
    solved(capsys, folder)
    assert solved(capsys, folder, "--seed", "3")["status"] == "ok"
    assert "must be empty or not exist" in refused(capsys, folder, "--out", out)
    assert solved(capsys, folder, "--out", out, "--overwrite")["status"] == "ok"
    (out / "notes.txt").write_text("mine")
    assert "it holds 'notes.txt', which is not ours" in refused(capsys, folder)
    assert "notes.txt" in refused(capsys, folder, "--out", out, "--overwrite")
    assert (out / "notes.txt").read_text() == "mine"


def test_solve_from_inside_and_from_its_json(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert solved(capsys, ".")["status"] == "ok"
    assert (folder.with_name("p-solved") / "solution.json").exists()
    (folder.with_name("p-solved") / "solution.json").unlink()
    assert solved(capsys, folder / "puzzle.json")["status"] == "ok"
    assert (folder.with_name("p-solved") / "solution.json").exists()
    assert "--out" in refused(capsys, "/")


def test_the_options_reach_the_solver(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def solve(puzzle: Puzzle, solver: str, **options: object) -> Solution:
        seen.update(options, solver=solver)
        return Solution.failure(puzzle, solver, "Nothing fits.")

    monkeypatch.setattr(jigsync, "solve", solve)
    options = ["--solver", "tree", "--measurer", "mgc", "--grid", "3x2", "--pin", "f003=2,1,0", "--pin", "f1=0,0,3"]
    options += ["--exclude", "f004", "--exclude", "f005", "--upright", "--time-limit", "2.5", "--seed", "9"]
    assert cli.main(["solve", str(folder), *options, "--threads", "1", "--out", str(tmp_path / "out")]) == 1
    progress = seen.pop("progress")
    assert callable(progress)
    assert seen == {
        "solver": "tree",
        "measurer": "mgc",
        "grid": "3x2",
        "layout": "auto",
        "pins": {"f003": (2, 1, 0), "f1": (0, 0, 3)},
        "exclude": ["f004", "f005"],
        "upright": True,
        "time_limit": 2.5,
        "seed": 9,
        "threads": 1,
    }
    assert "Not solved: Nothing fits." in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["solution.json"]
    assert not load_solution(tmp_path / "out" / "solution.json")


def test_json_is_the_solution_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = cut("light", (2, 3), 48)[0].ids
    result = solved(capsys, folder, "--grid", "3x2", "--exclude", ids[0], "--out", tmp_path / "deep" / "out")
    assert result == json.loads((tmp_path / "deep" / "out" / "solution.json").read_text())
    assert result["grid"] == [3, 2]
    p = result["gauge"]["probabilities"]  # type: ignore[index]
    assert p[1] == p[3] == 0.0, "these would be 2x3"
    assert p[0] == pytest.approx(1 - p[2])
    assert p[0] >= 0.5
    assert result["fragments"][ids[0]]["row"] is None  # type: ignore[index]


def test_a_pin_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = cut("light", (2, 3), 48)[0].ids
    result = solved(capsys, folder, "--grid", "2x3", "--pin", f"{ids[2]}=1,2,3")
    placed = result["fragments"][ids[2]]  # type: ignore[index]
    assert (placed["row"], placed["col"], placed["turns"]) == (1, 2, 3)
    assert result["gauge"]["confidence"] == 1.0  # type: ignore[index]


@pytest.mark.parametrize("turned", [True, False])
def test_a_plain_folder_of_square_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str], turned: bool) -> None:
    """No alpha, odd names, several formats: every rectangle is a fragment."""
    picture = rectangles(tmp_path / "my scans", 2, 3, turned=turned)
    result = solved(capsys, tmp_path / "my scans", *([] if turned else ["--upright"]))
    assert result["status"] == "ok"
    assert len(result["fragments"]) == 6  # type: ignore[arg-type]
    with Image.open(tmp_path / "my scans-solved" / "assembled.png") as image:
        made = np.asarray(image.convert("RGB")).astype(int)
    turns = [k for k in range(4) if np.rot90(made, k).shape == picture.shape]
    assert min(np.abs(np.rot90(made, k) - picture).mean() for k in (turns if turned else [0])) < 4


@pytest.mark.parametrize("size", [(150, 120), (153, 121)])
def test_a_plain_folder_of_rectangles_and_of_mixed_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: tuple[int, int]
) -> None:
    picture = rectangles(tmp_path / "p", 3, 3, turned=False, size=size)
    result = solved(capsys, tmp_path / "p", "--upright")
    assert (result["status"], result["grid"]) == ("ok", [3, 3])
    with Image.open(tmp_path / "p-solved" / "assembled.png") as image:
        made = np.asarray(image.convert("RGB").resize(size)).astype(int)
    assert np.abs(made - picture).mean() < 12


def test_other_files_in_the_folder_are_left_alone_and_false_pictures_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rectangles(tmp_path / "p", 2, 2, turned=True, size=(96, 96))
    (tmp_path / "p" / "readme.txt").write_text("not a picture, and does not pretend to be one")
    assert len(solved(capsys, tmp_path / "p")["fragments"]) == 4  # type: ignore[arg-type]
    (tmp_path / "p" / "text.png").write_text("not a picture")
    assert "text.png' is not a picture that can be read" in refused(capsys, tmp_path / "p")


def test_one_picture_and_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p").mkdir()
    assert f"The folder '{tmp_path / 'p'}' must hold pictures" in refused(capsys, tmp_path / "p")
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(tmp_path / "p" / "only.png")
    result = solved(capsys, tmp_path / "p")
    assert (result["status"], result["grid"], list(result["fragments"])) == ("ok", [1, 1], ["only"])  # type: ignore[call-overload]
    with Image.open(tmp_path / "p-solved" / "assembled.png") as image:
        assert image.size == (10, 10)


def test_two_identical_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rectangles(tmp_path / "p", 2, 2, turned=True, size=(96, 96))
    (tmp_path / "p" / "twin.png").write_bytes((tmp_path / "p" / "10.png").read_bytes())
    result = solved(capsys, tmp_path / "p", "--grid", "2x3")
    placed: dict[str, dict[str, float]] = result["fragments"]  # type: ignore[assignment]
    assert len(placed) == 5
    assert result["status"] in ("ok", "unsure"), "which of the two stands in the picture is anybody's guess"
    assert max(placed["10"]["confidence"], placed["twin"]["confidence"]) < placed["2"]["confidence"]


def test_a_transparent_picture_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rectangles(tmp_path / "p", 2, 2, turned=True, size=(96, 96))
    Image.new("RGBA", (48, 48)).save(tmp_path / "p" / "ghost.png")
    said = refused(capsys, tmp_path / "p")
    assert said == "The fragment 'ghost' of 'p' must have opaque pixels (alpha from 224). Its highest alpha is 0."
    assert not (tmp_path / "p-solved").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pin", "f003"], "'pin' of a solve must be of the form ID=ROW,COL,TURNS"),
        (["--pin", "f003=1,2"], "'pin' of a solve must be of the form ID=ROW,COL,TURNS"),
        (["--pin", "=1,2,0"], "'pin' of a solve must be of the form ID=ROW,COL,TURNS"),
        (["--pin", "f003=1,2,x"], "Got 'f003=1,2,x'"),
        (["--pin", "f001=1,1,0", "--pin", "f001=0,1,0"], "The fragment 'f001' is pinned twice."),
        (["--pin", "zz=1,1,0"], "pinned fragment 'zz' is not in the puzzle"),
        (["--pin", "f001=9,9,0", "--grid", "2x3"], "outside the 2x3 grid"),
        (["--grid", "2x"], "'grid' of the puzzle must be a number such as 5"),
        (["--grid", "0"], "'rows' of a grid"),
        (["--solver", "magic"], "no solver 'magic'"),
        (["--measurer", "magic"], "no measurer 'magic'"),
        (["--exclude", "zz"], "excluded fragment 'zz'"),
        (["--time-limit", "0"], "'time_limit' of a solve"),
        (["--threads", "0"], "'threads' of a solve"),
    ],
)
def test_bad_options(folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str) -> None:
    assert said in refused(capsys, folder, *options)
    assert not folder.with_name("p-solved").exists()


def test_a_puzzle_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere" in refused(capsys, tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(1, 40), (1, 200), (200, 1), (1, 1), (2, 40)])
def test_thin_fragments_are_solved_like_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: tuple[int, int]
) -> None:
    """A side of one pixel has no rows, and nothing to fit a plane to."""
    noise = np.random.default_rng(2).integers(0, 256, (4, *shape, 3), dtype=np.uint8)
    for number, pixels in enumerate(noise):
        write_png(tmp_path / "thin" / f"{number}.png", pixels)
    assert cli.main(["solve", str(tmp_path / "thin")]) == 0, capsys.readouterr().err
    assert "4 of 4 fragments placed" in capsys.readouterr().out
