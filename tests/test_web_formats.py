"""solution.json is one format, in files and over HTTP: the same documents are taken, and refused in the same words."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_formats import JSON, Change, mutate, places, put
from web import Server, folder, puzzle_and_truth, serving, zipped

from jigsync.io.files import json_bytes
from jigsync.io.schema import Node
from jigsync.io.solution_file import load_solution, parse_solution, solution_json
from jigsync.io.solution_schema import SCHEMA
from jigsync.solution import Solution
from jigsync.values.errors import FormatError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE
from jigsync.values.placement import Placed
from jigsync.web.app import create_app

PUZZLE, TRUTH = puzzle_and_truth()
ONE, OTHER = PUZZLE.ids[:2]


def documents() -> dict[str, dict[str, Any]]:
    """One of each kind, all of the same puzzle."""
    quarters = Gauge.of_turns(3, (0.5, 0.25, 0.125, 0.125))
    placement = {name: replace(placed, confidence=0.5) for name, placed in TRUTH.placement.items()}
    grid = Solution("ok", "", TRUTH.layout, placement, quarters, "x", 1.5, pitch=TRUTH.pitch)
    cells = {name: Placed.at(*placed.cell, placed.turns) for name, placed in placement.items() if placed.cell}
    free = {name: replace(placed, cell=None, component=2) for name, placed in placement.items()}
    free[OTHER] = Placed.nowhere()
    return {
        "grid": solution_json(grid),
        "old": solution_json(replace(grid, pitch=None, placement=cells)),
        "free": solution_json(replace(grid, layout=FREE, placement=free, pitch=None, status="partial")),
    }


DOCUMENTS = documents()
GOOD: list[tuple[str, Change]] = [
    *((kind, put("later", [1])) for kind in DOCUMENTS),
    ("grid", put("pitch", ...)),
    ("grid", put("gauge.turns", None)),
    ("grid", put(f"fragments.{ONE}.turns", ...)),
    ("grid", put(f"fragments.{ONE}.component", ...)),
    ("old", put("gauge.probabilities", ...)),
    ("free", put("gauge", {"confidence": 1, "angles": [0], "probabilities": [1]})),
]
BAD: list[tuple[str, Change]] = [
    *((kind, put("format", "jigsync-solution/3")) for kind in DOCUMENTS),
    *((kind, put(key, ...)) for kind in DOCUMENTS for key in ("reason", "gauge", "fragments", "solver", "seconds")),
    *((kind, put(f"fragments.{ONE}.confidence", value)) for kind in DOCUMENTS for value in (1.5, "x", True, ...)),
    *((kind, put("fragments.a/b", {})) for kind in DOCUMENTS),
    *((kind, put("fragments", [])) for kind in DOCUMENTS),
    *((kind, put("status", [])) for kind in DOCUMENTS),
    ("grid", put("layout", "round")),
    ("grid", put("layout", ...)),
    ("grid", put("grid", [2])),
    ("grid", put("pitch", [0, 1])),
    ("grid", put(f"fragments.{ONE}.row", 2)),
    ("grid", put(f"fragments.{ONE}.row", None)),
    ("grid", put(f"fragments.{ONE}.angle", 12.5)),
    ("grid", put(f"fragments.{ONE}.angle", None)),
    ("grid", put(f"fragments.{ONE}.x", 1e9)),
    ("grid", put(f"fragments.{ONE}", DOCUMENTS["grid"]["fragments"][OTHER])),
    ("grid", put("gauge.angles", [0, 90, 180, 270])),
    ("free", put("gauge.probabilities", [0.5, 0.5])),
    ("free", put(f"fragments.{ONE}.component", -1)),
    ("free", put(f"fragments.{ONE}.angle", "steep")),
    ("old", put("grid", None)),
    ("old", put(f"fragments.{ONE}.turns", 4)),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def held(server: Server) -> str:
    name: str = server.upload({"puzzle.zip": zipped(folder(PUZZLE))}).json()["id"]
    return name


def changed(kind: str, change: Change) -> dict[str, Any]:
    value = copy.deepcopy(DOCUMENTS[kind])
    change(value)
    return value


@pytest.mark.parametrize("case", range(len(GOOD) + len(BAD)))
def test_files_and_http_take_and_refuse_the_same(
    case: int, server: Server, held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, change = (GOOD + BAD)[case]
    value = changed(kind, change)
    monkeypatch.chdir(tmp_path)
    Path("solution").write_bytes(json_bytes(value))
    answer = server.post(f"/api/puzzles/{held}/turned", {"solution": value, "turns": 0})
    project = {"format": "jigsync-project/1", "steps": [{"solution": value}]}
    packed = server.post(f"/api/puzzles/{held}/project", project)
    if case >= len(GOOD):
        with pytest.raises(FormatError) as caught:
            load_solution("solution")
        assert (answer.status_code, answer.json()["detail"]) == (422, str(caught.value))
        assert (packed.status_code, str(caught.value) in packed.json()["detail"]) == (422, True)
        return
    found = load_solution("solution")
    assert (answer.status_code, packed.status_code) == (200, 200)
    shown = parse_solution(Node(answer.json()["solution"], "shown"))
    assert (shown.layout, shown.status) == (found.layout, found.status)
    for name, placed in found.placement.items():
        there = shown.placement[name]
        assert (there.cell, there.confidence, there.component) == (placed.cell, placed.confidence, placed.component)
        if kind != "old":
            assert there.pose == placed.pose


def test_the_interface_describes_the_format_once() -> None:
    document = create_app().openapi()
    assert document["components"]["schemas"]["SolutionFile"] == SCHEMA
    assert json.dumps(document).count("jigsync-solution/2") == json.dumps(SCHEMA).count("jigsync-solution/2")


SEEN_BY = jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("kind", DOCUMENTS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_what_the_parser_takes_the_schema_takes(kind: str, data: st.DataObject) -> None:
    value: Any = DOCUMENTS[kind]
    SEEN_BY.validate(value)
    near = st.sampled_from([-1, 0, 1, 0.5, 4, ONE, None, True, 10**30, "free", "grid", [0], [1, 1]])
    for _ in range(data.draw(st.integers(1, 2))):
        value = mutate(value, data.draw(st.sampled_from(places(value))), data.draw(near | JSON))
    try:
        parse_solution(Node(value, "p"))
    except FormatError:
        return
    SEEN_BY.validate(value)


def test_the_schema_refuses_what_has_the_wrong_shape() -> None:
    seen = [not SEEN_BY.is_valid(changed(*case)) for case in BAD]
    assert sum(seen) >= 0.8 * len(BAD)  # the others are of the right shape and say what cannot be
