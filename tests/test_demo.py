"""`jigsync demo` and `make demo`'s promise: what README.md says will be there is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image

import jigsync
from jigsync import cli
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.io.solution_file import load_solution
from jigsync.io.truth_file import load_truth
from jigsync.score.poses import score_poses
from jigsync.solution import Solution
from jigsync.values.puzzle import Puzzle

FAST = ["--picture", "astronaut", "--pieces", "6"]


def test_demo_leaves_what_the_readme_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo out"
    assert cli.main(["demo", *FAST, "--seed", "3", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert "6 pieces" in captured.err
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([\w./]+)` \|", readme.partition("demo-out/")[2].partition("\n## ")[0], re.MULTILINE))
    assert {path.name + "/" * path.is_dir() for path in out.iterdir()} == named
    puzzle, solution, truth = (
        load_puzzle(out / "puzzle"),
        load_solution(out / "solution.json"),
        load_truth(out / "truth.json"),
    )
    assert set(puzzle.ids) == set(solution.placement) == set(truth.placement)
    assert not list((out / "puzzle").rglob("*truth*"))
    assert any(placed.pose is not None and placed.pose.turns is None for placed in truth.placement.values())
    again = score_poses(solution, truth, puzzle).to_json()
    for measure in ("fragments", "placed", "right", "perfect", "contacts", "claims", "largest", "upright"):
        assert result["scores"][measure] == again[measure]
    assert result["scores"]["right"] == 1.0, "six torn pieces are easy"
    for name in ("before.png", "after.png", "compare.png"):
        with Image.open(out / name) as picture:
            assert min(picture.size) > 200


def test_demo_replaces_an_older_demo_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", *FAST, "--out", str(tmp_path)]) == 0
    assert str(tmp_path / "after.png") in capsys.readouterr().out
    assert cli.main(["demo", *FAST, "--seed", "1", "--out", str(tmp_path)]) == 0
    assert load_truth(tmp_path / "truth.json").seed == 1
    (tmp_path / "thesis.tex").write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    assert cli.main(["demo", *FAST, "--out", str(tmp_path)]) == 2
    assert "thesis.tex" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--picture", "mona-lisa"], "one of astronaut"),
        (["--pieces", "1"], "'pieces' of"),
        (["--seed", "-1"], "'seed'"),
    ],
)
def test_demo_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str], said: str) -> None:
    out = tmp_path / "out"
    assert cli.main(["demo", "--out", str(out), *option]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_failed_solve_is_told_and_the_fragments_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def solve(puzzle: Puzzle) -> Solution:
        return Solution.failure(puzzle, "greedy", "No two fragments touch.")

    monkeypatch.setattr(jigsync, "solve", solve)
    assert cli.main(["demo", *FAST, "--out", str(tmp_path)]) == 1
    assert "No two fragments touch." in capsys.readouterr().out
    assert (tmp_path / "before.png").exists()
    assert not (tmp_path / "after.png").exists()
    assert not load_solution(tmp_path / "solution.json")
