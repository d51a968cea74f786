"""`jigsync show` and `jigsync score`, through the program's own entry."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sample
from PIL import Image

from jigsync import cli
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.solution_file import save_solution
from jigsync.io.truth_file import save_truth
from jigsync.render.four import ways
from jigsync.render.style import RED
from jigsync.solution import Solution
from jigsync.values.gauge import Gauge
from jigsync.values.placement import Placed

SWAPPED = {**sample.PLACEMENT, "f02": Placed.at(0, 2, 1), "f19": Placed.at(0, 0, 0)}
TURNED = {**sample.PLACEMENT, "f30": Placed.at(1, 1, 2, 0.25)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a space and an accent in its name: a puzzle, its truth and some answers."""
    folder = tmp_path / "a é"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    save_puzzle("mosaic/puzzle", sample.puzzle())
    save_truth("mosaic/truth.json", sample.truth())
    save_solution("right.json", answer(sample.PLACEMENT))
    save_solution("swapped.json", answer(SWAPPED))
    save_solution("turned.json", answer(TURNED).turned(1))
    save_solution("failed.json", Solution.failure(sample.puzzle(), "greedy", "No side fits [any] other."))
    return folder


def answer(placement: dict[str, Placed]) -> Solution:
    return Solution("ok", "", sample.GRID, placement, solver="by hand")


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = cli.main(args)
    out, err = capsys.readouterr()
    return code, out, err


def pixels(name: str) -> np.ndarray:
    with Image.open(name) as picture:
        return np.asarray(picture.convert("RGBA"))


@pytest.mark.usefixtures("here")
def test_show_a_puzzle_is_a_contact_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "show", "mosaic")
    assert (code, err) == (0, "")
    assert out.startswith("Wrote mosaic-sheet.png (")
    assert "6 fragments as presented" in out
    assert pixels("mosaic-sheet.png").shape[1] > 100


@pytest.mark.usefixtures("here")
def test_show_with_a_solution_is_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "mosaic/puzzle", "--solution", "right.json")
    assert (code, out) == (0, "Wrote mosaic-assembled.png (15 x 10): 6 of 6 fragments placed.\n")
    np.testing.assert_array_equal(pixels("mosaic-assembled.png"), sample.picture())


@pytest.mark.usefixtures("here")
def test_show_with_the_truth_alone_is_the_true_picture(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "mosaic", "--truth", "mosaic/truth.json", "--out", "new/deep/t.png")
    assert code == 0
    assert "the true assembly" in out
    np.testing.assert_array_equal(pixels("new/deep/t.png"), sample.picture())


@pytest.mark.usefixtures("here")
def test_show_marks_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "mosaic", "-s", "swapped.json", "-t", "mosaic/truth.json", "-o", "m.png")
    assert code == 0
    assert "6 of 6 fragments placed, 4 right, 2 in the wrong slot (red)." in out
    marked = pixels("m.png").astype(int)
    red = (np.abs(marked[..., :3] - RED) <= 4).all(axis=-1)
    third = marked.shape[1] // 3
    upper = slice(0, 20)
    assert red[upper, :third].any()
    assert not red[upper, third : 2 * third].any()
    assert red[upper, 2 * third :].any()


@pytest.mark.usefixtures("here")
def test_show_in_the_best_gauge(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer stands on its side; only in best4 is the one wrong turn left."""
    common = ("show", "mosaic", "-s", "turned.json", "-t", "mosaic/truth.json", "--json")
    facts = json.loads(run(capsys, *common)[1])
    assert (facts["rows"], facts["cols"], facts["right"]) == (3, 2, 0)
    facts = json.loads(run(capsys, *common, "--gauge", "best4")[1])
    assert (facts["rows"], facts["cols"], facts["turned_by"]) == (2, 3, 3)
    assert (facts["right"], facts["turn"], facts["slot"], facts["unplaced"]) == (5, 1, 0, 0)
    assert facts["kind"] == "marked"
    assert Path(facts["picture"]).is_file()
    _, out, _ = run(capsys, *common[:-1], "--gauge", "best4")
    assert "shown turned by 270 degrees counter-clockwise" in out


@pytest.mark.usefixtures("here")
def test_show_all_four_ways_up(capsys: pytest.CaptureFixture[str]) -> None:
    placed = {name: Placed.at(*at.cell, at.turns, pitch=(5.0, 5.0)) for name, at in sample.PLACEMENT.items() if at.cell}
    unclear = Gauge.of_turns(0, (0.4, 0.3, 0.2, 0.1))
    save_solution("unclear.json", replace(answer(sample.PLACEMENT | placed), gauge=unclear, pitch=(5.0, 5.0)))
    code, out, _ = run(capsys, "show", "mosaic", "-s", "unclear.json", "--gauge", "four")
    assert code == 0
    assert "mosaic-four.png" in out
    assert "the four ways up; the picture has no clear up" in out
    shown = pixels("mosaic-four.png")
    assert shown.shape[1] > 3 * shown.shape[0]
    code, out, _ = run(capsys, "show", "mosaic", "-s", "unclear.json", "--gauge", "four", "--json")
    said = json.loads(out)
    assert said["probabilities"] == [0.4, 0.3, 0.2, 0.1]
    assert said["clear"] is False
    many = Gauge((0.0, 0.5, 1.5, -1.5, 3.0), (0.3, 0.2, 0.1, 0.3, 0.1), None)
    assert [share for _, share in ways(many)] == pytest.approx([0.5, 0.1, 0.1, 0.3])


@pytest.mark.usefixtures("here")
def test_show_gaps_and_confidence(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "show", "mosaic", "-s", "right.json", "--gaps", "-o", "g.png")
    assert pixels("g.png").shape[:2] == (2 * 5 + 1, 3 * 5 + 2)
    code, _, _ = run(capsys, "show", "mosaic", "-s", "turned.json", "--confidence", "-o", "c.png")
    assert code == 0
    assert pixels("c.png").shape[0] > 100  # zoomed, with a legend


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("nowhere",), "'nowhere' cannot be read"),
        (("mosaic", "-s", "failed.json"), "The solution failed (No side fits [any] other)"),
        (("mosaic", "-s", "nowhere.json"), "'nowhere.json' cannot be read"),
        (("mosaic", "-s", "mosaic/truth.json"), "'jigsync-solution/1'"),
        (("mosaic", "-o", "x.jpg"), "ends in .png"),
        (("mosaic", "--gauge", "best4"), "needs both --solution and --truth"),
        (("mosaic", "--gauge", "best5", "-s", "right.json"), "'best5'"),
        (("mosaic", "--confidence"), "--confidence needs --solution"),
        (("mosaic", "--gaps"), "--gaps needs"),
    ],
)
def test_show_refuses(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], sentence: str) -> None:
    before = sorted(Path().iterdir())
    code, out, err = run(capsys, "show", *args)
    assert (code, out) == (2, "")
    assert err.startswith("jigsync: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert sorted(Path().iterdir()) == before


@pytest.mark.usefixtures("here")
def test_show_refuses_a_solution_of_another_puzzle(capsys: pytest.CaptureFixture[str]) -> None:
    save_solution("other.json", answer({"x1": Placed.at(0, 0, 0)}))
    for more in ((), ("-t", "mosaic/truth.json")):
        code, _, err = run(capsys, "show", "mosaic", "-s", "other.json", *more)
        assert code == 2
        assert "'x1'" in err


@pytest.mark.usefixtures("here")
def test_score_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "score", "right.json", "mosaic/truth.json")
    assert (code, err) == (0, "")
    assert "Solved: all 6 fragments are in their slot and turned right." in out
    code, out, _ = run(capsys, "score", "turned.json", "mosaic/truth.json")
    assert code == 0
    assert "by 270 degrees counter-clockwise it would be 5 of 6: the global turn is wrong." in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["rotation"][:4] == ["0.0", "%", "83.3", "%"]
    assert rows["PA"][:2] == ["no", "yes"]
    assert rows["PA+rot"][:2] == ["no", "no"]


@pytest.mark.usefixtures("here")
def test_score_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "score", "swapped.json", "mosaic/truth.json", "--json")
    scores = json.loads(out)
    assert code == 0
    assert (scores["status"], scores["solver"], scores["fragments"], scores["placed"]) == ("ok", "by hand", 6, 6)
    assert scores["model"]["AA"] == pytest.approx(4 / 6)
    assert scores["model"]["SRA"] == pytest.approx(3 / 7)
    assert scores["best4"]["PA"] == 0.0


@pytest.mark.usefixtures("here")
def test_score_of_a_failure_names_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "score", "failed.json", "mosaic/truth.json")
    assert code == 0
    assert "The solver failed: No side fits [any] other." in out


@pytest.mark.usefixtures("here")
def test_score_counts_what_is_not_placed(capsys: pytest.CaptureFixture[str]) -> None:
    save_solution("part.json", answer({**sample.PLACEMENT, "f30": Placed.nowhere()}))
    _, out, _ = run(capsys, "score", "part.json", "mosaic/truth.json")
    assert "5 of 6 fragments are in their slot, 5 of them turned right. Not placed: 1." in out


@pytest.mark.usefixtures("here")
def test_score_refuses_mixed_up_files(capsys: pytest.CaptureFixture[str]) -> None:
    save_solution("other.json", answer({"x1": Placed.at(0, 0, 0)}))
    for args in (("other.json", "mosaic/truth.json"), ("mosaic/truth.json", "right.json"), ("no.json", "no.json")):
        code, out, err = run(capsys, "score", *args)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
