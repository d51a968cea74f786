"""puzzle.json, truth.json, solution.json and plain folders: exact round trips, one sentence for every defect."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample
from hypothesis import given
from hypothesis import strategies as st

from jigsync.io.cut_folder import save_cut
from jigsync.io.files import json_bytes, parse_json
from jigsync.io.images import png_bytes
from jigsync.io.puzzle_folder import load_folder, load_puzzle, parse_puzzle_json, puzzle_json, save_puzzle
from jigsync.io.schema import Node
from jigsync.io.solution_file import load_solution, parse_solution, save_solution, solution_json
from jigsync.io.truth_file import load_truth, parse_truth, save_truth, truth_json
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError, OptionError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid, Layout
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth


def a_truth() -> Truth:
    return Truth(sample.GRID, sample.PLACEMENT, {"cell": 5, "turns": True}, 2**63 - 1, "0f" * 32, {"redraws": 2})


def a_solution() -> Solution:
    placement = {
        **sample.PLACEMENT,
        "f19": Placed.at(0, 2, 3, 0.25),
        "f30": Placed.nowhere(),
    }
    return Solution(
        "partial", "One was left over.", sample.GRID, placement, Gauge.of_turns(3, (0.5, 0.25, 0.125, 0.125)), "x", 1.5
    )


def same(a: Puzzle, b: Puzzle) -> bool:
    pixels = zip(a.fragments.pixels, b.fragments.pixels, strict=True)
    return (a.ids, a.cell, a.container) == (b.ids, b.cell, b.container) and all(np.array_equal(p, q) for p, q in pixels)


# ---------------------------------------------------------------------------------------------- round trips


def test_puzzle_folder_is_exactly_as_documented(tmp_path: Path) -> None:
    folder = tmp_path / "my puzzle é"
    save_puzzle(folder, sample.puzzle())
    head = json.loads((folder / "puzzle.json").read_text("utf-8"))
    assert head == {
        "format": "jigsync-puzzle/1",
        "cell": 5,
        "container": 5,
        "fragments": [{"id": name, "file": f"fragments/{name}.png"} for name in sample.PLACEMENT],
    }
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert written == sorted(["puzzle.json", *(f"fragments/{name}.png" for name in sample.PLACEMENT)])
    for path in (folder, folder / "puzzle.json", str(folder)):
        assert same(load_puzzle(path), sample.puzzle())
    assert load_puzzle(folder).name == "my puzzle é"


def test_mixed_sizes_without_cell(tmp_path: Path) -> None:
    pixels = tuple(np.full((h, w, 4), 9, dtype=np.uint8) for h, w in ((3, 4), (5, 2)))
    puzzle = Puzzle(Fragments(("b", "a.x-1_"), pixels))
    save_puzzle(tmp_path / "p", puzzle)
    assert same(load_puzzle(tmp_path / "p"), puzzle)


def test_cut_folder_has_the_truth_beside_the_puzzle(tmp_path: Path) -> None:
    save_cut(tmp_path / "cut", sample.puzzle(), a_truth())
    assert {path.name for path in (tmp_path / "cut").iterdir()} == {"puzzle", "truth.json"}
    assert {path.name for path in (tmp_path / "cut" / "puzzle").iterdir()} == {"puzzle.json", "fragments"}
    assert same(load_puzzle(tmp_path / "cut"), sample.puzzle())
    assert load_puzzle(tmp_path / "cut").name == "cut"
    assert load_truth(tmp_path / "cut" / "truth.json") == a_truth()
    before = (tmp_path / "cut" / "truth.json").read_bytes()
    with pytest.raises(OptionError, match="must be empty or not exist"):
        save_cut(tmp_path / "cut", sample.puzzle(), a_truth())
    save_cut(tmp_path / "cut", sample.puzzle(), a_truth(), overwrite=True)
    assert (tmp_path / "cut" / "truth.json").read_bytes() == before


def test_truth_file_is_exactly_as_documented(tmp_path: Path) -> None:
    save_truth(tmp_path / "t.json", a_truth())
    value = json.loads((tmp_path / "t.json").read_text())
    assert list(value) == ["format", "grid", "fragments", "options", "seed", "source_sha256", "flags"]
    assert value["format"] == "jigsync-truth/1"
    assert value["grid"] == [2, 3]
    assert value["fragments"]["f07"] == {"row": 1, "col": 2, "turns": 3}
    assert load_truth(tmp_path / "t.json") == a_truth()


def test_truth_turns_restore_after_the_round_trip(tmp_path: Path) -> None:
    save_cut(tmp_path / "cut", sample.puzzle(), sample.truth())
    puzzle, truth = load_puzzle(tmp_path / "cut"), load_truth(tmp_path / "cut" / "truth.json")
    for name, placed in truth.placement.items():
        assert placed.cell is not None
        assert np.array_equal(np.rot90(puzzle.fragments[name], placed.turns), sample.upright(*placed.cell))


def test_solution_file_is_exactly_as_documented(tmp_path: Path) -> None:
    save_solution(tmp_path / "s.json", a_solution())
    value = json.loads((tmp_path / "s.json").read_text())
    assert list(value) == ["format", "status", "reason", "grid", "gauge", "fragments", "solver", "seconds"]
    assert value["format"] == "jigsync-solution/1"
    assert value["gauge"] == {"turns": 3, "confidence": 0.5, "probabilities": [0.5, 0.25, 0.125, 0.125]}
    assert value["fragments"]["f30"] == {"row": None, "col": None, "turns": 0, "confidence": None}
    told = a_solution()
    assert load_solution(tmp_path / "s.json") == replace(told, gauge=replace(told.gauge, clear=True))


def in_pixels() -> Placement:
    """The sample's placement on cells of 5 x 5 pixels, one fragment left over and one a little off its cell."""
    placed = {name: Placed.at(*p.cell, p.turns, 0.5, pitch=(5, 5)) for name, p in sample.PLACEMENT.items() if p.cell}
    off = Pose.of_degrees(-12.5, (12.25, 2.5))
    return {**placed, "f19": Placed(off, (0, 2), 0.25, component=1), "f30": Placed.nowhere()}


def a_solution_of_format_2(layout: Layout = sample.GRID) -> Solution:
    placement = in_pixels()
    gauge = Gauge.of_turns(3, (0.5, 0.25, 0.125, 0.125), clear=True)
    if layout == FREE:
        placement = {name: replace(placed, cell=None) for name, placed in placement.items()}
        gauge = Gauge((0.0, math.radians(30)), (0.75, 0.25), None)
    return Solution("partial", "One was left over.", layout, placement, gauge, "x", 1.5, pitch=PITCHES[layout])


PITCHES: dict[Layout, tuple[float, float] | None] = {sample.GRID: (5.0, 5.0), FREE: None}


def test_solution_file_of_a_grid_in_pixels_is_exactly_as_documented(tmp_path: Path) -> None:
    save_solution(tmp_path / "s.json", a_solution_of_format_2())
    value = json.loads((tmp_path / "s.json").read_text())
    assert {key: value[key] for key in value if key not in ("fragments", "gauge")} == {
        "format": "jigsync-solution/2",
        "status": "partial",
        "reason": "One was left over.",
        "layout": "grid",
        "grid": [2, 3],
        "pitch": [5, 5],
        "solver": "x",
        "seconds": 1.5,
        "confidence": None,
        "pictures": [
            {
                "component": 0,
                "whole": None,
                "gauge": value["gauge"],
                "layout": "grid",
                "grid": [2, 3],
                "pitch": [5, 5],
                "cells": {"f07": [1, 2], "f02": [0, 0], "f19": [0, 2], "f11": [1, 0], "f03": [0, 1]},
            }
        ],
    }
    assert value["gauge"] == {
        "confidence": 0.5,
        "angles": [0, 90, -180, -90],
        "probabilities": [0.5, 0.25, 0.125, 0.125],
        "clear": True,
        "turns": 3,
    }
    # Turns 3 at row 1, col 2: 270 degrees, the middle of a cell of 5 x 5 pixels.
    f07 = {"angle": -90, "x": 12.5, "y": 7.5, "row": 1, "col": 2, "turns": 3, "confidence": 0.5, "component": 0}
    tilted = pytest.approx(-12.5, abs=1e-12)
    off = {"angle": tilted, "x": 12.25, "y": 2.5, "row": 0, "col": 2, "turns": None, "confidence": 0.25, "component": 1}
    assert (value["fragments"]["f07"], value["fragments"]["f19"]) == (f07, off)
    assert value["fragments"]["f30"] == dict.fromkeys(f07)
    assert solution_json(load_solution(tmp_path / "s.json"))["fragments"]["f07"] == f07
    read = load_solution(tmp_path / "s.json")
    assert (read.layout, read.pitch, read.gauge) == (sample.GRID, (5, 5), a_solution_of_format_2().gauge)


def test_solution_file_of_free_poses_is_exactly_as_documented(tmp_path: Path) -> None:
    save_solution(tmp_path / "s.json", a_solution_of_format_2(FREE))
    value = json.loads((tmp_path / "s.json").read_text())
    assert not {"grid", "pitch"} & set(value)
    assert (value["layout"], value["gauge"]) == (
        "free",
        {"confidence": 0.75, "angles": [0, 30], "probabilities": [0.75, 0.25], "clear": False},
    )
    assert not load_solution(tmp_path / "s.json").gauge.clear
    del value["gauge"]["clear"]
    assert parse_solution(Node(value, "s.json")).gauge.clear, "the likeliest frame, in files that do not say"
    value["gauge"]["clear"] = 1
    with pytest.raises(FormatError, match=r"The 'gauge\.clear' of 's\.json' must be true or false"):
        parse_solution(Node(value, "s.json"))
    tilted = pytest.approx(-12.5, abs=1e-12)
    assert value["fragments"]["f19"] == {"angle": tilted, "x": 12.25, "y": 2.5, "confidence": 0.25, "component": 1}
    assert load_solution(tmp_path / "s.json").layout == FREE


def test_truth_file_in_pixels_is_exactly_as_documented(tmp_path: Path) -> None:
    placement = {name: replace(p, confidence=None, component=0) for name, p in in_pixels().items() if p.pose}
    truth = Truth(sample.GRID, placement, pitch=(5.0, 5.0), contacts=frozenset({("f02", "f07")}))
    save_truth(tmp_path / "t.json", truth)
    value = json.loads((tmp_path / "t.json").read_text())
    assert (value["format"], value["layout"], value["grid"], value["pitch"]) == (
        "jigsync-truth/2",
        "grid",
        [2, 3],
        [5, 5],
    )
    assert value["fragments"]["f07"] == {"angle": -90, "x": 12.5, "y": 7.5, "row": 1, "col": 2, "turns": 3}
    assert value["contacts"] == [["f02", "f07"]]
    assert load_truth(tmp_path / "t.json") == truth
    for key in ("options", "seed", "source_sha256", "flags", "contacts", "pitch"):  # other programs may leave them out
        del value[key]
    assert parse_truth(Node(value, "t.json")).placement == truth.placement


def test_poses_of_files_map_pixels_to_the_canvas() -> None:
    """x_canvas = R(angle)(x_frag - c_frag) + (x, y), counter-clockwise as displayed, y down."""
    value = solution_json(a_solution_of_format_2(FREE))
    value["fragments"]["f19"] |= {"angle": 30, "x": 100, "y": 50}
    pose = parse_solution(Node(value, "s.json")).placement["f19"].pose
    assert pose is not None
    right, down = pose.act(np.array([[10.0, 0.0], [0.0, 10.0]]))
    np.testing.assert_allclose(right, [100 + 10 * math.cos(math.pi / 6), 50 - 5])  # up, as displayed
    np.testing.assert_allclose(down, [100 + 5, 50 + 10 * math.cos(math.pi / 6)])


def test_failed_solution_round_trip(tmp_path: Path) -> None:
    failed = Solution.failure(sample.puzzle(), "x", "No seam was found.")
    save_solution(tmp_path / "s.json", failed)
    read = load_solution(tmp_path / "s.json")
    assert read == failed
    assert not read


def test_probabilities_may_be_left_out() -> None:
    value = solution_json(a_solution())
    del value["gauge"]["probabilities"]
    assert parse_solution(Node(value, "s.json")).gauge.probabilities == pytest.approx((0.5, 1 / 6, 1 / 6, 1 / 6))


# ---------------------------------------------------------------------------------------------- plain folders


def test_plain_folder_is_a_puzzle(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    rgb = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    rgba = np.array([[[200, 100, 50, 51], [200, 100, 50, 0], [200, 100, 50, 255]]], dtype=np.uint8)
    for name, pixels in {"10.png": rgb, "2.png": rgba, "2.bmp": rgb, "é ü.png": rgb, "_.png": rgb}.items():
        (folder / name).write_bytes(png_bytes(pixels))
    (folder / "readme.txt").write_text("no picture")
    puzzle = load_puzzle(folder)
    assert puzzle.ids == ("2", "2-2", "10", "fragment", "fragment-2")
    assert (puzzle.cell, puzzle.container, puzzle.name) == (None, None, "scans")
    assert puzzle.fragments["2-2"].tolist() == [[[40, 20, 10, 51], [0, 0, 0, 0], [200, 100, 50, 255]]]
    assert np.array_equal(puzzle.fragments["10"][..., :3], rgb)
    assert puzzle.fragments["10"][..., 3].min() == 255


def test_plain_folder_of_equal_squares_has_a_container(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(png_bytes(np.zeros((7, 7, 3), dtype=np.uint8)))
    assert load_folder(tmp_path).container == 7


def test_our_fragments_are_not_premultiplied_twice(tmp_path: Path) -> None:
    pixels = np.full((4, 4, 4), 60, dtype=np.uint8)
    save_puzzle(tmp_path / "p", Puzzle(Fragments(("a",), (pixels,)), 2, 4))
    assert load_puzzle(tmp_path / "p").fragments["a"].tolist() == pixels.tolist()


def test_straight_colours_of_another_program_are_multiplied_by_alpha(tmp_path: Path) -> None:
    straight = np.array([[[200, 100, 50, 51], [255, 255, 255, 0], [200, 100, 50, 255]]], dtype=np.uint8)
    save_puzzle(tmp_path / "p", Puzzle(Fragments(("a", "b"), (straight, straight[:, 2:]))))
    read = load_puzzle(tmp_path / "p")
    assert read.fragments["a"].tolist() == [[[40, 20, 10, 51], [0, 0, 0, 0], [200, 100, 50, 255]]]
    assert read.fragments["b"].tolist() == straight[:, 2:].tolist()


def test_empty_folder_and_missing_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="It holds none"):
        load_puzzle(tmp_path)
    with pytest.raises(InputError, match=r"none' cannot be read: No such file"):
        load_puzzle(tmp_path / "none")


# ---------------------------------------------------------------------------------------------- defects

Change = Callable[[dict[str, Any]], Any]


def put(path: str, value: Any) -> Change:
    """Sets the value at a dotted path; numbers index lists; `...` removes it."""

    def change(root: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        node: Any = root
        for step in steps:
            node = node[step]
        if value is ...:
            del node[last]
        else:
            node[last] = value

    return change


PUZZLE_DEFECTS = [
    (put("format", "jigsync-puzzle/2"), r"The 'format' of 'p' must be 'jigsync-puzzle/1'. Got 'jigsync-puzzle/2' inst"),
    (put("format", ...), "The key 'format' is missing in the file 'p'."),
    (put("cell", ...), "The key 'cell' is missing"),
    (put("cell", 0), "The 'cell' of 'p' must be an integer in 1.."),
    (put("cell", 1.5), "The 'cell' of 'p' must be an integer"),
    (put("container", True), "The 'container' of 'p' must be an integer"),
    (put("fragments", {}), "The 'fragments' of 'p' must be a list. Got {} instead."),
    (put("fragments", []), "a list of at least one fragment"),
    (put("fragments.1", 7), "The 'fragments[1]' of 'p' must be a JSON object. Got 7 instead."),
    (put("fragments.1.id", ...), "The key 'id' is missing in the 'fragments[1]' of 'p'."),
    (put("fragments.1.id", "f07"), "The 'fragments[1].id' of 'p' must be unique. Got 'f07' instead."),
    (put("fragments.1.id", "../x"), "The 'fragments[1].id' of 'p' must be an id of 1 to 64 letters"),
    (put("fragments.1.id", ""), "must be an id"),
    (put("fragments.1.id", ".hidden"), "must be an id"),
    (put("fragments.1.id", "a\n"), "must be an id"),
    (put("fragments.1.id", "é"), "must be an id"),
    (put("fragments.1.id", 3), "The 'fragments[1].id' of 'p' must be a string. Got 3 instead."),
    (put("fragments.1.file", "fragments/f07.png"), "The 'fragments[1].file' of 'p' must be unique."),
    (put("fragments.1.file", "../f.png"), "must be a file inside the puzzle's folder. Got '../f.png' instead."),
    (put("fragments.1.file", "a/../../f.png"), "must be a file inside"),
    (put("fragments.1.file", "/etc/passwd"), "must be a file inside"),
    (put("fragments.1.file", "C:\\f.png"), "must be a file inside"),
    (put("fragments.1.file", ""), "must be a file inside"),
    (put("fragments.1.file", "a\0b"), "must be a file inside"),
    (put("fragments.1.file", None), "must be a string. Got None instead."),
]

TRUTH_DEFECTS = [
    (put("format", None), "The 'format' of 'p' must be 'jigsync-truth/2' or 'jigsync-truth/1'. Got None instead."),
    (put("grid", [2]), "The 'grid' of 'p' must be a list of 2. Got [2] instead."),
    (put("grid", [2, 0]), "The 'grid[1]' of 'p' must be an integer in 1..99999. Got 0 instead."),
    (put("grid", 6), "The 'grid' of 'p' must be a list of 2"),
    (put("fragments", []), "The 'fragments' of 'p' must be a JSON object"),
    (put("fragments.f19.row", ...), "The key 'row' is missing in the 'fragments.f19' of 'p'."),
    (put("fragments.f19.row", None), "The 'fragments.f19.row' of 'p' must be an integer in 0..1. Got None instead."),
    (put("fragments.f19.row", 2), "The 'fragments.f19.row' of 'p' must be an integer in 0..1. Got 2 instead."),
    (put("fragments.f19.col", -1), "must be an integer in 0..2. Got -1 instead."),
    (put("fragments.f19.turns", 4), "must be an integer in 0..3. Got 4 instead."),
    (put("fragments.f19.col", 0), "In the file 'p': The fragments 'f02' and 'f19' are both at cell (0, 0)."),
    (put("fragments.a/b", {}), "must be an id"),
    (put("options", None), "The 'options' of 'p' must be a JSON object"),
    (put("flags", 1), "The 'flags' of 'p' must be a JSON object"),
    (put("seed", -1), "The 'seed' of 'p' must be an integer in 0.."),
    (put("source_sha256", "12"), "must be a sha256 in 64 hex digits, or empty"),
    (put("source_sha256", ...), "The key 'source_sha256' is missing"),
]

SOLUTION_DEFECTS = [
    (put("format", 1), "The 'format' of 'p' must be 'jigsync-solution/2' or 'jigsync-solution/1'. Got 1 instead."),
    (put("status", "good"), "The 'status' of 'p' must be 'ok', 'unsure', 'partial' or 'failed'. Got 'good' instead."),
    (put("status", []), "The 'status' of 'p' must be 'ok'"),
    (put("reason", None), "The 'reason' of 'p' must be a string"),
    (put("grid", None), "must be unplaced (row and col null), as the solution names no grid"),
    (put("grid", "2x3"), "must be a list of 2"),
    (put("gauge", None), "The 'gauge' of 'p' must be a JSON object"),
    (put("gauge.turns", 7), "The 'gauge.turns' of 'p' must be an integer in 0..3"),
    (put("gauge.confidence", 1.5), "The 'gauge.confidence' of 'p' must be a number in 0..1"),
    (put("gauge.confidence", 0.75), "the first one equal to the confidence"),
    (put("gauge.probabilities", [0.5, 0.5]), "must be a list of 4"),
    (put("gauge.probabilities", [0.5, 0.5, 0.5, 0.5]), "four probabilities that sum to 1"),
    (put("gauge.probabilities.2", "x"), "The 'gauge.probabilities[2]' of 'p' must be a number in 0..1. Got 'x' inst"),
    (put("fragments.f19.row", None), "whose row and col are both numbers or both null"),
    (put("fragments.f19.row", 2), "must be an integer in 0..1. Got 2 instead."),
    (put("fragments.f19.confidence", ...), "The key 'confidence' is missing"),
    (put("fragments.f19.confidence", -0.1), "must be a number in 0..1"),
    (put("fragments.f19.turns", None), "must be an integer in 0..3"),
    (put("fragments.f19.col", 0), "In the file 'p': The fragments 'f02' and 'f19' are both at cell (0, 0)."),
    (put("solver", 5), "The 'solver' of 'p' must be a string"),
    (put("seconds", "3"), "The 'seconds' of 'p' must be a number"),
    (put("seconds", True), "The 'seconds' of 'p' must be a number"),
]

IN_PIXELS_DEFECTS = [
    (put("layout", "round"), "The 'layout' of 'p' must be 'grid' or 'free'. Got 'round' instead."),
    (put("layout", ...), "The key 'layout' is missing in the file 'p'."),
    (put("grid", ...), "The key 'grid' is missing"),
    (put("pitch", [5]), "The 'pitch' of 'p' must be a list of 2"),
    (put("pitch", [5, 0]), "The 'pitch[1]' of 'p' must be a number in 0.001..1e+07. Got 0 instead."),
    (put("fragments.f07.angle", ...), "The key 'angle' is missing in the 'fragments.f07' of 'p'."),
    (
        put("fragments.f07.angle", "9"),
        "The 'fragments.f07.angle' of 'p' must be a number in -360..360. Got '9' instead.",
    ),
    (put("fragments.f07.angle", 80), "a fragment whose angle is 90 degrees times its turns"),
    (put("fragments.f07.x", None), "a fragment whose angle, x and y are all numbers or all null"),
    (put("fragments.f07.y", 1e8), "must be a number in -1e+07..1e+07"),
    (put("fragments.f07.turns", 4), "must be an integer in 0..3"),
    (put("fragments.f07.row", None), "whose row and col are both numbers or both null"),
    (put("fragments.f30.row", 0), "whose row and col are both numbers or both null"),
    (put("fragments.f30", {"angle": None, "x": None, "y": None, "row": 0, "col": 0}), "as it has no pose"),
    (put("fragments.f07.component", -1), "must be an integer in 0.."),
    (put("gauge.angles", [0, 90, 180]), "as many probabilities as there are angles"),
    (put("gauge.angles", [0, 80, 180, 270]), "the four quarter turns 0, 90, -180, -90, as the layout is a grid"),
]

FORMATS: dict[str, tuple[Callable[[], Any], Callable[[Node], Any]]] = {
    "puzzle": (lambda: puzzle_json(sample.puzzle()), parse_puzzle_json),
    "truth": (lambda: truth_json(a_truth()), parse_truth),
    "solution": (lambda: solution_json(a_solution()), parse_solution),
    "in pixels": (lambda: solution_json(a_solution_of_format_2()), parse_solution),
}
DEFECTS = [
    *(("puzzle", *defect) for defect in PUZZLE_DEFECTS),
    *(("truth", *defect) for defect in TRUTH_DEFECTS),
    *(("solution", *defect) for defect in SOLUTION_DEFECTS),
    *(("in pixels", *defect) for defect in IN_PIXELS_DEFECTS),
]


@pytest.mark.parametrize(("kind", "change", "sentence"), DEFECTS, ids=[f"{d[0]}-{k}" for k, d in enumerate(DEFECTS)])
def test_every_defect_is_one_sentence(kind: str, change: Change, sentence: str) -> None:
    make, parse = FORMATS[kind]
    value = copy.deepcopy(make())
    parse(Node(value, "p"))
    change(value)
    with pytest.raises(FormatError) as caught:
        parse(Node(value, "p"))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, "x", [], [[]], True])
@pytest.mark.parametrize("kind", FORMATS)
def test_not_even_an_object(kind: str, value: Any) -> None:
    with pytest.raises(FormatError, match="The file 'p' must be a JSON object"):
        FORMATS[kind][1](Node(value, "p"))


def test_unknown_keys_are_ignored() -> None:
    for make, parse in FORMATS.values():
        assert parse(Node({**make(), "later": [1]}, "p")) == parse(Node(make(), "p"))


def test_container_must_be_filled(tmp_path: Path) -> None:
    save_puzzle(tmp_path / "p", sample.puzzle())
    (tmp_path / "p" / "fragments" / "f02.png").write_bytes(png_bytes(np.zeros((5, 6, 4), dtype=np.uint8)))
    with pytest.raises(InputError, match=r"'f02' of .*puzzle\.json' must be 5 x 5 pixels, its container\. It is 6 x 5"):
        load_puzzle(tmp_path / "p")
    (tmp_path / "p" / "fragments" / "f02.png").unlink()
    with pytest.raises(InputError, match=r"f02\.png' cannot be read: No such file"):
        load_puzzle(tmp_path / "p")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    save_puzzle(tmp_path / "p", sample.puzzle())
    outside = tmp_path / "outside.png"
    inside = tmp_path / "p" / "fragments" / "f02.png"
    inside.rename(outside)
    inside.symlink_to(outside)
    with pytest.raises(InputError, match="must lie inside the puzzle's folder"):
        load_puzzle(tmp_path / "p")


def test_a_link_out_of_a_folder_of_pictures_is_refused(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside.png", tmp_path / "p"
    folder.mkdir()
    for path in (outside, folder / "a.png"):
        path.write_bytes(png_bytes(np.full((5, 6, 3), 9, dtype=np.uint8)))
    (folder / "b.png").symlink_to("a.png")
    assert load_puzzle(folder).ids == ("a", "b")
    (tmp_path / "link").symlink_to(folder)
    assert load_puzzle(tmp_path / "link").ids == ("a", "b")
    (folder / "c.png").symlink_to(outside)
    with pytest.raises(InputError, match=r"'c\.png' of .* must lie inside the folder\. It leads outside"):
        load_puzzle(folder)


def test_links_in_a_ring_are_one_sentence(tmp_path: Path) -> None:
    save_puzzle(tmp_path / "p", sample.puzzle())
    inside = tmp_path / "p" / "fragments" / "f02.png"
    inside.unlink()
    inside.symlink_to(inside)
    with pytest.raises(InputError, match="Too many levels of symbolic links"):
        load_puzzle(tmp_path / "p")


def test_a_puzzle_json_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    save_puzzle(tmp_path / "p", sample.puzzle())
    (tmp_path / "p" / "puzzle.json").rename(tmp_path / "head.json")
    (tmp_path / "p" / "puzzle.json").symlink_to(tmp_path / "head.json")
    with pytest.raises(InputError, match=r"puzzle\.json' must lie inside the puzzle's folder"):
        load_puzzle(tmp_path / "p")


def test_unsafe_ids_are_not_written(tmp_path: Path) -> None:
    puzzle = Puzzle(Fragments(("../x",), (np.zeros((2, 2, 4), dtype=np.uint8),)))
    with pytest.raises(FormatError, match="must be an id"):
        save_puzzle(tmp_path / "p", puzzle)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------- fuzz

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for step, below in steps for place in places(below, (*here, step)))]


def mutate(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    value = copy.deepcopy(value)
    node = value
    for step in place[:-1]:
        node = node[step]
    node[place[-1]] = new
    return value


@pytest.mark.parametrize("kind", FORMATS)
@given(data=st.data())
def test_mutated_files_give_a_value_or_a_format_error(kind: str, data: st.DataObject) -> None:
    make, parse = FORMATS[kind]
    value = make()
    for _ in range(data.draw(st.integers(1, 3))):
        near = st.sampled_from([-1, 0, 1, 2, 3, 4, 0.5, "f02", None, True, 10**30])
        value = mutate(value, data.draw(st.sampled_from(places(value))), data.draw(near | JSON))
    try:
        read = parse(Node(parse_json(json_bytes(value), "p"), "p"))
    except FormatError:
        return
    assert isinstance(read, tuple | Truth | Solution)


@pytest.mark.parametrize("kind", FORMATS)
@given(data=st.data())
def test_corrupted_bytes_give_a_value_or_a_format_error(kind: str, data: st.DataObject) -> None:
    make, parse = FORMATS[kind]
    raw = bytearray(json_bytes(make()))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = parse(Node(parse_json(bytes(raw), "p"), "p"))
    except FormatError:
        return
    assert isinstance(read, tuple | Truth | Solution)


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_any_truth_and_solution_survive(rows: int, cols: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.sampled_from(list(Grid(rows, cols).cells())), unique=True))
    turns = st.integers(0, 3)
    sure = st.none() | st.floats(0, 1)
    placement = {f"x{3 * k}": Placed.at(*cell, data.draw(turns), data.draw(sure)) for k, cell in enumerate(cells)}
    solution = Solution("ok", data.draw(st.text(max_size=9)), Grid(rows, cols), placement)
    assert parse_solution(Node(parse_json(json_bytes(solution_json(solution)), "p"), "p")) == solution
    sure_less = {name: Placed.at(p.row, p.col, p.turns) for name, p in placement.items()}
    truth = Truth(Grid(rows, cols), sure_less)
    assert parse_truth(Node(parse_json(json_bytes(truth_json(truth)), "p"), "p")) == truth
