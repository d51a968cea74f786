"""How far answers can be believed: the numbers, the words, the fit, the study; and answers of several pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jigsync
from jigsync import belief, cli, data
from jigsync.advice import advised
from jigsync.belief import Belief, Said, fit
from jigsync.corpus import recipes
from jigsync.io.files import write_json
from jigsync.io.solution_file import load_solution, save_solution, solution_json
from jigsync.learn.fit import belief as fitting
from jigsync.score.piles import score_pile
from jigsync.score.sizes import sizes_of
from jigsync.solution import Solution
from jigsync.studies import reliability
from jigsync.values.errors import InputError, JigsyncError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid
from jigsync.values.picture import Picture
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle

READINGS = belief.READINGS
PLAIN = Belief(
    dict.fromkeys(READINGS, np.array([1.0, 0.5, 0.0, -2.0, 0.1])),
    dict.fromkeys(READINGS, np.array([1.0, 0.5, 0.2])),
    dict.fromkeys(READINGS, np.array([1.0, 0.5, -1.0, 0.0])),
    0.7,
)


def said(sure: list[float], component: list[int], pinned: list[bool] | None = None) -> Said:
    return Said(
        "cells",
        np.array(sure),
        np.array(component),
        np.array(pinned or [False] * len(sure)),
        np.zeros(len(sure), dtype=bool),
    )


SIX = Grid(2, 3)


def solution(sure: list[float], grid: Grid = SIX, empty: int = 0, **options: Any) -> Solution:
    """Fragments in the cells of a grid, in order; the last `empty` cells stay empty."""
    ids = "abcdefghijkl"[: len(sure)]
    cells = list(grid.cells())
    placement = {}
    for k, (name, p) in enumerate(zip(ids, sure, strict=True)):
        there = k < grid.size - empty
        placement[name] = Placed.at(*cells[k], 0, p, pitch=(10, 10)) if there else Placed.nowhere(0.0)
    return Solution("ok", "", grid, placement, pitch=(10, 10), **options)


def puzzle_of(names: str, corner: int = 0) -> Puzzle:
    pixels = np.full((8, 8, 4), 200, dtype=np.uint8)
    pixels[0, 0] = corner
    return Puzzle(Fragments(tuple(names), tuple(pixels.copy() for _ in names)))


def several() -> Solution:
    """Two pictures, of two cells and of three."""
    ids = "abcdef"
    poses = {name: Pose.of_turns(0, (10.0 * k, 5.0)) for k, name in enumerate(ids)}
    placement = {name: Placed(poses[name], None, 0.9, int(name in "cde")) for name in ids[:5]}
    placement["f"] = Placed.nowhere(0.0)
    one = Picture(0, Grid(1, 2), Gauge(), (10.0, 10.0), {"a": (0, 0), "b": (0, 1)}, 0.8)
    other = Picture(1, Grid(2, 2), Gauge(), (10.0, 10.0), {"c": (0, 0), "d": (0, 1), "e": (1, 1)}, 0.4)
    return Solution("partial", "", FREE, placement, Gauge(turns=None), parts=(one, other), confidence=0.9)


def test_probabilities_are_those_of_the_formula() -> None:
    one = said([0.9, 0.5, 0.8, 0.0], [0, 0, 1, -1])
    logits = np.log(np.array([0.9, 0.5, 0.8]) / np.array([0.1, 0.5, 0.2]))
    mean = np.array([logits[:2].mean()] * 2 + [logits[2]])
    z = logits + 0.5 * mean - 2 * 0.25 + 0.1
    np.testing.assert_allclose(PLAIN.p(one), [*(1 / (1 + np.exp(-z))), 0.0])
    pinned = said([0.1, 0.5], [0, 0], [True, False])
    assert PLAIN.p(pinned)[0] == 1.0
    surer = PLAIN.p(said([0.95, 0.6, 0.9, 0.0], [0, 0, 1, -1]))
    assert (surer[:3] > PLAIN.p(one)[:3]).all()


def test_an_answer_is_believed_or_not() -> None:
    good = PLAIN.believed(solution([0.99] * 6), "cells", frozenset())
    assert good.status == "ok"
    assert good.confidence is not None
    assert good.confidence > 0.9
    assert good.whole is not None
    bad = PLAIN.believed(solution([0.3] * 6), "cells", frozenset())
    assert bad.status == "unsure"
    assert bad.confidence is not None
    assert bad.confidence < 0.3
    assert (bad.whole or 0.0) < good.whole
    assert PLAIN.believed(solution([0.3] * 6), "cells", frozenset("abcdef")).status == "ok"
    pictures = PLAIN.believed(several(), "cells", frozenset())
    assert pictures.whole is None
    assert [part.whole for part in pictures.parts] != [0.8, 0.4]
    few = PLAIN.believed(solution([0.99] * 6, empty=3), "cells", frozenset())
    assert (few.status, few.confidence) == ("unsure", 0.5)
    asked = PLAIN.believed(solution([0.99] * 6, empty=3), "cells", frozenset(), frozenset("def"))
    assert asked.status == "ok"
    lone = PLAIN.believed(solution([0.2], Grid(1, 1)), "cells", frozenset())
    assert (lone.confidence, lone.whole) == (1.0, 1.0)


def test_the_fit_finds_planted_numbers_and_never_falls() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1.5, (20000, 2)), np.ones((20000, 1))], axis=1)
    true = np.array([1.2, 0.4, -0.3])
    right = rng.random(20000) < 1 / (1 + np.exp(-(x @ true)))
    np.testing.assert_allclose(fit(x, right, np.ones(20000), 2, np.zeros(3), 1e-6), true, atol=0.08)
    assert fit(-x, right, np.ones(20000), 2, np.zeros(3))[:2].min() >= 0
    assert fit(x[:0], right[:0], np.ones(0), 2, true).tolist() == true.tolist()


def test_answers_are_called_right_where_nearly_all_are() -> None:
    p = np.linspace(0, 1, 101)
    assert fitting.threshold(p, p > 0.2) == 0.5
    assert fitting.threshold(p, p > 0.75) == pytest.approx(0.75, abs=0.021)
    assert fitting.threshold(p, np.zeros(101, dtype=bool)) == 0.95


@pytest.mark.parametrize(
    ("made", "asked", "excluded", "status", "sentence"),
    [
        (solution([0.9] * 6), None, "", "ok", ""),
        (solution([0.9] * 5, empty=1), None, "", "ok", "1 cell is empty: photograph the missing piece."),
        (solution([0.9] * 7), None, "g", "ok", ""),
        (
            solution([0.9] * 7),
            None,
            "",
            "partial",
            "The fragment g fits nowhere and may belong to another picture.",
        ),
        (
            solution([0.9] * 8),
            Grid(2, 3),
            "",
            "partial",
            "2 fragments found no cell in the 2x3 grid, which is full: g, h.",
        ),
        (
            solution([0.9] * 6, empty=2),
            None,
            "",
            "partial",
            "2 fragments fit nowhere and may belong to another picture: e, f; 2 cells are empty: photograph the missing"
            " pieces.",
        ),
        (
            several(),
            None,
            "",
            "partial",
            "The pile holds 2 pictures, of 2 and 3 fragments; the fragment f fits nowhere and may belong to another"
            " picture; 1 cell is empty: photograph the missing piece.",
        ),
    ],
)
def test_one_sentence_says_what_to_do(
    made: Solution, asked: Grid | None, excluded: str, status: str, sentence: str
) -> None:
    found = advised(made, puzzle_of("".join(made.placement)), asked, frozenset(excluded))
    assert (found.status, found.reason) == (status, sentence)


def test_what_to_do_when_an_answer_is_probably_wrong() -> None:
    bad = PLAIN.believed(solution([0.3, 0.2, 0.3, 0.3, 0.3, 0.3]), "cells", frozenset())
    cut_out = puzzle_of("abcdef")
    assert "tell the grid" in advised(bad, cut_out, None, frozenset()).reason
    assert "look at the fragments b, a, c, d and 2 more first" in advised(bad, cut_out, Grid(2, 3), frozenset()).reason
    few = PLAIN.believed(solution([0.99] * 6, empty=3), "cells", frozenset())
    assert "3 fragments found no place" in advised(few, cut_out, None, frozenset()).reason
    photographs = Puzzle(Fragments(tuple("abcdef"), tuple(np.full((8 + k, 9, 4), 255, np.uint8) for k in range(6))))
    found = advised(bad, photographs, None, frozenset())
    assert found.status == "unsure"
    assert "jigsync extract" in found.reason


def test_files_keep_pictures_and_confidence(tmp_path: Path) -> None:
    made = several()
    save_solution(tmp_path / "solution.json", made)
    back = load_solution(tmp_path / "solution.json")
    assert back.parts == made.parts
    assert back.confidence == 0.9
    whole = solution([0.9] * 6, whole=0.7, confidence=0.8)
    save_solution(tmp_path / "whole.json", whole)
    assert load_solution(tmp_path / "whole.json").pictures == whole.pictures
    for change in ({"cells": {"z": [0, 0]}}, {"whole": 1.5}, {"grid": [0, 2]}, {"cells": {"a": [0, 2]}}):
        value = solution_json(made)
        value["pictures"][0] |= change
        write_json(tmp_path / "bad.json", value)
        with pytest.raises(JigsyncError):
            load_solution(tmp_path / "bad.json")
    value = {key: part for key, part in solution_json(made).items() if key not in ("pictures", "confidence")}
    write_json(tmp_path / "old.json", value)
    assert load_solution(tmp_path / "old.json").parts == ()


def test_pictures_turn_with_the_whole_and_stand_alone() -> None:
    made = several().turned(1)
    assert [part.grid for part in made.parts] == [Grid(2, 1), Grid(2, 2)]
    assert made.parts[1].cells == {"c": (1, 0), "d": (0, 0), "e": (0, 1)}
    first = several().first()
    assert (first.grid, first.whole, first.parts) == (Grid(1, 2), 0.8, ())
    assert [name for name, placed in first.placement.items() if placed.pose is not None] == ["a", "b"]
    assert several().parts[1].empty == [(1, 0)]


def test_two_real_pictures_in_one_pile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solved as a user would, from pixels: each picture in its own grid, and neither of them lies in the other."""
    monkeypatch.setattr(recipes, "CELL", 48)
    names = ("coffee", "astronaut")
    pictures = [jigsync.io.images.read_rgb(data.picture(name)) for name in names] * 3
    recipe = recipes.Recipe("two pictures", "cell", "light", Grid(3, 4), Grid(3, 3), 12, 0, 0)
    made = recipes.make(recipe, pictures, 7)
    found = jigsync.solve(made.puzzle, threads=1)
    scores = score_pile(found.placement, made.homes, made.puzzle.ids, sizes_of(made.puzzle))
    assert scores.right.all()
    assert found.layout == FREE
    assert sorted(sorted(part.grid.shape) for part in found.parts if part.grid) == [[3, 3], [3, 4]]
    assert all(part.whole is not None and part.whole > 0.5 for part in found.parts)
    assert found.status == "partial"
    assert found.reason == "The pile holds 2 pictures, of 12 and 9 fragments."
    assert found.assemble().size[0] > 0


def test_the_shipped_numbers_say_where_they_come_from() -> None:
    found = belief.shipped()
    assert set(found.fragments) == set(READINGS)
    for table in (found.fragments, found.whole, found.right):
        assert all(numbers[:2].min() >= 0 for numbers in table.values())
    assert 0.5 <= found.ok <= 0.95
    head = json.loads((Path(belief.__file__).parent / "weights" / belief.SHIPPED).read_text(encoding="utf-8"))
    assert head["command"].startswith("jigsync calibrate-belief IMAGES --piles ")
    assert set(head["held_out"]) == set(recipes.ROWS)
    assert Belief.from_json({**found.to_json(), "format": belief.FORMAT}).to_json() == found.to_json()
    with pytest.raises(JigsyncError, match="must have the format"):
        Belief.from_json({"format": "other"})


def test_calibrate_belief_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "ROWS", ("cell", "missing"))
    monkeypatch.setattr(recipes, "CELL", 32)
    out, images = tmp_path / "belief.json", str(data.picture("coffee").parent)
    asked = ["calibrate-belief", images, "--piles", "2", "--out", str(out), "--json"]
    assert cli.main(asked) == 0
    first = json.loads(capsys.readouterr().out)
    assert first == json.loads(out.read_text())
    assert set(first["held_out"]) == {"cell", "missing"}
    kept = tmp_path / "belief.json.piles.jsonl"
    assert len(kept.read_text().splitlines()) == 4

    def solved_again(task: fitting.Task, threads: int) -> None:
        raise AssertionError(task)

    monkeypatch.setattr(fitting, "run_task", solved_again)
    assert cli.main(asked) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert cli.main(asked[:-1]) == 0
    assert "an answer is ok from" in capsys.readouterr().out


def test_the_study_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(recipes, "CELL", 32)
    names = [data.picture(name) for name in data.names()]
    tasks = reliability.tasks_of(names, ("cell",), 2, 3) + reliability.tasks_of(names, (reliability.UNSEEN,), 1, 3)
    result = reliability.run_tasks(tasks, 1, 0, lambda *_: None, " Left out.")
    assert [one.what.partition(":")[0] for one in result.compared] == ["cell", "unseen kinds"]
    assert all("calibration error" in one.verdict for one in result.compared)
    assert result.verdict.endswith("Left out.")
    for row in result.rows:
        assert row["from"] <= row["confidence"] <= row["to"]
        assert row["right_low"] <= row["right"] <= row["right_high"]
    result.plot(tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").stat().st_size > 5000
    with pytest.raises(InputError, match="There is no folder"):
        reliability.published(tmp_path / "nowhere")
    with pytest.raises(InputError, match="must hold sets of puzzles"):
        reliability.published(tmp_path)


def judged(sure: list[float], right: list[bool], status: str = "ok", good: bool = True) -> reliability.Judged:
    whole = ((0.5, good),)
    return reliability.Judged(np.array(sure), np.array(right), status, good, whole, 0.5, None, 0.0, 1.0, 0.1)


def test_the_table_counts() -> None:
    low, high = reliability.table("made", [judged([0.05, 0.95, 1.0, 0.91], [False, True, True, False])])
    assert (low["from"], low["fragments"], low["right"]) == (0.0, 1, 0.0)
    assert (high["from"], high["fragments"]) == (0.9, 3)
    assert high["right"] == pytest.approx(2 / 3)
    group = [judged([1.0], [True]), judged([0.2], [False], "unsure", False), judged([0.9], [False], "partial", False)]
    assert reliability.statuses(group) == (
        "of 2 answers not called unsure 1 are good, of 2 that are not good 1 are called unsure"
    )
