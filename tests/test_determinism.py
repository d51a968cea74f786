"""The same seed gives the same solution: on one thread and two, in this process and in another, as it did yesterday."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "golden.py"


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["golden"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


tool = _tool()
GOLDEN: dict[Any, dict[str, dict[str, Any]]] = tool.read_golden()


def test_twenty_puzzles_are_written_down_and_solved_rightly() -> None:
    assert tuple(GOLDEN) == tool.RECIPES
    assert len({recipe.name for recipe in GOLDEN}) == 20
    assert all(set(answers) == set(tool.MEASURERS) for answers in GOLDEN.values())
    wrong = [recipe.name for recipe, answers in GOLDEN.items() if not all(a["right"] for a in answers.values())]
    assert wrong == []
    assert {turns for answers in GOLDEN.values() for turns in answers["learned"]["turns"]} == {0, 1, 2, 3}


@pytest.mark.parametrize("recipe", tool.RECIPES, ids=lambda recipe: recipe.name)
def test_a_golden_solution_on_one_thread(recipe: Any) -> None:
    puzzle, truth = recipe.make()
    for measurer, golden in GOLDEN[recipe].items():
        found = tool.answer(tool.solve(recipe, puzzle, measurer, 1), truth)
        assert tool.differences(golden, found) == [], f"{measurer}; if that is meant: python tools/golden.py --write"


def test_golden_solutions_on_two_threads_in_another_process() -> None:
    """Hashes of strings differ from process to process: nothing may rest on the order of a set."""
    environment = {**os.environ, "PYTHONHASHSEED": "20240229"}
    done = subprocess.run(
        [sys.executable, str(TOOL), "--check", "--threads", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_difference_is_told() -> None:
    recipe, answers = next(iter(GOLDEN.items()))
    golden = answers["learned"]
    assert tool.differences(golden, golden) == []
    turned = [*golden["turns"][:-1], (golden["turns"][-1] + 1) % 4]
    [told] = tool.differences(golden, {**golden, "turns": turned})
    assert told.startswith("turns [")
    [told] = tool.differences(golden, {**golden, "energy": 1.02 * golden["energy"]})
    assert told.startswith("energy")
    puzzle, truth = replace(recipe, seed=recipe.seed + 1).make()
    assert tool.differences(golden, tool.answer(tool.solve(recipe, puzzle, "boundary", 1), truth))


@pytest.mark.parametrize("args", [[], ["--write", "--check"], ["--check", "--threads", "two"]])
def test_the_tool_refuses_other_arguments(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(args) == 2
    assert "usage" in capsys.readouterr().err
