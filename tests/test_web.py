"""The workbench's interface: everything that can be dropped, solved, corrected and kept."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scans import apart, cut, lay
from web import Server, folder, puzzle_and_truth, serving, until, worker_pids, zipped

import jigsync
from jigsync.cli import main
from jigsync.io.images import png_bytes, read_rgba
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution
from jigsync.render.assemble import unpremultiply
from jigsync.web.jobs import Job
from jigsync.web.limits import Limits
from jigsync.web.models import JobModel, SolveOptions
from jigsync.web.solving import _events

PUZZLE, TRUTH = puzzle_and_truth()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def held(server: Server) -> dict[str, Any]:
    answer = server.upload({"puzzle.zip": zipped(folder(PUZZLE))})
    assert answer.status_code == 201, answer.text
    value: dict[str, Any] = answer.json()
    return value


@pytest.fixture(scope="module")
def solution(server: Server, held: dict[str, Any]) -> dict[str, Any]:
    job = server.solved(held["id"])
    assert job["state"] == "done"
    value: dict[str, Any] = job["shown"]["solution"]
    return value


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 201, answer.text
    return [fragment["id"] for fragment in answer.json()["fragments"]]


def straight(name: str) -> bytes:
    pixels = np.array(PUZZLE.fragments[name])
    unpremultiply(pixels)
    return png_bytes(pixels)


# ---------------------------------------------------------------------------------------------- in


@pytest.mark.parametrize("inside", ["", "mine/", "mine/puzzle/", "deep/er/mine/puzzle/"])
def test_a_puzzle_folder_loose_or_zipped(server: Server, inside: str) -> None:
    files = {**folder(PUZZLE, inside), "mine/truth.json": b"{}", "__MACOSX/._x.png": b"?", ".DS_Store": b"?"}
    assert ids(server.upload(files)) == list(PUZZLE.ids)
    assert ids(server.upload({"mine.zip": zipped(files)})) == list(PUZZLE.ids)


def test_pictures_become_fragments_named_after_them(server: Server) -> None:
    files = {f"{k:d} Münze.png": straight(name) for k, name in enumerate(PUZZLE.ids)}
    answer = server.upload(files)
    assert ids(answer) == [f"{k}-M-nze" for k in range(6)]
    again = server.upload({"a/x.png": straight("f000"), "b/x.png": straight("f001"), "c/…….png": straight("f002")})
    assert ids(again) == ["0-x", "1-x", "2-fragment"]


def test_a_scan_is_segmented(server: Server) -> None:
    scan = png_bytes(lay(cut(), apart([3.0, -4.0, 0.0, 5.0, 0.0, -2.0]), specks=4))
    answer = server.upload({"scan.png": scan})
    assert len(ids(answer)) == 6
    assert [f["skew"] for f in answer.json()["fragments"]] == pytest.approx([3.0, -4.0, 0.0, 5.0, 0.0, -2.0], abs=0.5)
    assert answer.json()["notes"][0] == "Found 6 fragments on the scan."
    assert server.solved(answer.json()["id"])["state"] == "done"


def test_an_example_is_cut_and_solved(server: Server) -> None:
    options = {"picture": "rocket", "rows": 2, "cols": 3, "shape": 8, "erosion": 0.05, "photo": 0.05}
    puzzle = server.post("/api/cuts", options).json()
    assert (puzzle["name"], len(puzzle["fragments"])) == ("rocket", 6)
    preview = server.post("/api/cuts/preview", options)
    height, width = read_rgba(preview.content).shape[:2]
    assert width > height > 50


def test_an_own_picture_is_cut(server: Server) -> None:
    picture = np.random.default_rng(5).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    sent = server.send("POST", "/api/pictures", files={"file": ("../../mine.png", png_bytes(picture))}).json()
    assert (sent["name"], sent["width"], sent["height"]) == ("mine.png", 120, 90)
    options = {"picture": sent["id"], "rows": 2, "cols": 2}
    assert len(server.post("/api/cuts", options).json()["fragments"]) == 4


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"readme.txt": b"hello"}, "must hold pictures or a puzzle. It holds only 'readme.txt'"),
        ({".hidden.png": b"?"}, "The upload is empty"),
        ({"a.png": b"", "b.png": b"x"}, "The picture 'a.png' is empty"),
        ({"a.png": b"no picture", "b.png": b"?"}, "The file 'a.png' is not a picture that can be read"),
        ({"puzzle.json": b"{"}, "The file 'puzzle.json' is not valid JSON"),
        (
            {"puzzle.json": folder(PUZZLE)["puzzle.json"]},
            "The picture 'fragments/f000.png' of fragment 'f000' is missing",
        ),
        ({"one.png": png_bytes(np.full((50, 50, 3), 9, np.uint8))}, "No separate fragments were found"),
        ({"x.zip": b"PK\x03\x04 and then nothing"}, "The zip file 'x.zip' cannot be unpacked"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(server: Server, files: dict[str, bytes], words: str) -> None:
    answer = server.upload(files)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert "/tmp" not in answer.json()["detail"]


# ---------------------------------------------------------------------------------------------- solve


def test_a_job_that_ends_while_it_is_sent_ends_in_the_next_event() -> None:
    """Otherwise whoever waits for the end takes what was half done for the answer."""

    class Ending(Job):
        def model(self) -> JobModel:
            before = super().model()
            self.end("done", "as it should")
            return before

    async def heard() -> list[str]:
        return [event async for event in _events(Ending("p", None, SolveOptions()), lambda: False)]

    with ThreadPoolExecutor(1) as thread:  # the browser tests' playwright may have a loop running in this thread
        events = [event.split("\ndata: ") for event in thread.submit(asyncio.run, heard()).result()]
    assert [(kind, json.loads(data)["state"]) for kind, data in events] == [
        ("event: progress", "waiting"),
        ("event: end", "done"),
    ]


def test_progress_is_streamed_and_the_answer_is_right(server: Server, held: dict[str, Any]) -> None:
    job = server.post(f"/api/puzzles/{held['id']}/jobs", {"grid": "2x3", "upright": False}).json()
    events = list(server.events(job["id"]))
    assert [kind for kind, _ in events[:-1]] == ["progress"] * (len(events) - 1)
    kind, last = events[-1]
    assert (kind, last["state"], last["fraction"]) == ("end", "done", 1.0)
    assert last["energy"] < 0
    solved = parse_solution(Node(last["shown"]["solution"], "solution"))
    found = [{k: (p.cell, p.turns) for k, p in solved.turned(t).placement.items()} for t in (0, 2)]
    assert {k: (p.cell, p.turns) for k, p in TRUTH.placement.items()} in found
    assert server.get(f"/api/jobs/{job['id']}").json() == last


def test_pins_and_exclusions_are_respected(server: Server, held: dict[str, Any]) -> None:
    wrong = next(name for name, p in TRUTH.placement.items() if p.cell != (0, 0))
    job = server.solved(
        held["id"], grid="2x3", pins={wrong: [0, 0, 1]}, exclude=["f005" if wrong != "f005" else "f004"]
    )
    fragments = job["shown"]["solution"]["fragments"]
    assert {key: fragments[wrong][key] for key in ("row", "col", "turns", "confidence")} == {
        "row": 0,
        "col": 0,
        "turns": 1,
        "confidence": 1.0,
    }
    assert fragments["f005" if wrong != "f005" else "f004"]["row"] is None
    assert job["shown"]["solution"]["gauge"]["probabilities"] == [1.0, 0.0, 0.0, 0.0]


def test_a_job_that_fails_says_why(server: Server) -> None:
    blank = png_bytes(np.zeros((20, 20, 4), dtype=np.uint8))
    puzzle = server.upload({"a.png": blank, "b.png": blank}).json()
    job = server.solved(puzzle["id"])
    assert (job["state"], job["shown"]) == ("failed", None)
    assert "must have opaque pixels" in job["reason"]


def test_a_job_is_cancelled(server: Server) -> None:
    options = {"picture": "coffee", "rows": 6, "cols": 7, "shape": 0, "erosion": 0.3, "photo": 0.5}
    puzzle = server.post("/api/cuts", options).json()
    job = server.post(f"/api/puzzles/{puzzle['id']}/jobs", {}).json()
    assert server.send("DELETE", f"/api/jobs/{job['id']}").status_code == 202
    last = list(server.events(job["id"]))[-1][1]
    assert last["state"] == "cancelled"
    assert last["reason"]


def test_a_cancelled_job_stops_its_solver() -> None:
    """The worker hears of it, and answers with what it has."""
    options = {"picture": "coffee", "rows": 6, "cols": 7, "shape": 0, "erosion": 0.3, "photo": 0.5}
    with serving(Limits(running_jobs=1)) as server:
        puzzle = server.post("/api/cuts", options).json()
        job = server.post(f"/api/puzzles/{puzzle['id']}/jobs", {}).json()["id"]
        until(lambda: server.get(f"/api/jobs/{job}").json()["shown"])
        before = worker_pids(server)
        assert server.send("DELETE", f"/api/jobs/{job}").status_code == 202
        last = list(server.events(job))[-1][1]
        assert (last["state"], last["shown"] is None) == ("cancelled", False)
        assert worker_pids(server) == before, "nobody had to be ended"


def test_one_request_solves(server: Server) -> None:
    options = json.dumps({"grid": "2x3", "pins": {"f001": [0, 2, 3]}})
    answer = server.upload({"puzzle.zip": zipped(folder(PUZZLE))}, "/solve", options=options)
    assert answer.status_code == 200
    assert parse_solution(Node(answer.json(), "answer")).placement["f001"].cell == (0, 2)
    refused = server.upload({"puzzle.zip": zipped(folder(PUZZLE))}, "/solve", options='{"grid": "none"}')
    assert (refused.status_code, "The 'grid' of a solve" in refused.json()["detail"]) == (422, True)
    refused = server.upload({"puzzle.zip": zipped(folder(PUZZLE))}, "/solve", options='{"exclude": ["f009"]}')
    assert refused.json()["detail"] == "The fragment 'f009' is not in the puzzle."


def test_candidates_and_the_four_gauges(server: Server, held: dict[str, Any], solution: dict[str, Any]) -> None:
    path = f"/api/puzzles/{held['id']}"
    best = server.post(f"{path}/candidates", {"solution": solution, "row": 1, "col": 1}).json()[0]
    assert solution["fragments"][best["id"]]["row"] == 1
    assert best["probability"] > 0.5
    turned = solution
    for _ in range(4):
        answer = server.post(f"{path}/turned", {"solution": turned, "turns": 1})
        turned = answer.json()["solution"]
    assert turned == solution
    once = server.post(f"{path}/turned", {"solution": solution, "turns": 1}).json()
    assert once["solution"]["grid"] == solution["grid"][::-1]
    p = solution["gauge"]["probabilities"]
    assert once["solution"]["gauge"]["probabilities"] == [*p[1:], p[0]]


def test_a_fragment_stays_where_its_pose_is(server: Server, held: dict[str, Any], solution: dict[str, Any]) -> None:
    """A person moves a fragment to another cell, or a little off it; what is contradicted is refused."""
    path, moved = f"/api/puzzles/{held['id']}/turned", json.loads(json.dumps(solution))
    one, other = (next(f for f in moved["fragments"].values() if (f["row"], f["col"]) == c) for c in ((0, 0), (1, 1)))
    keys = ("row", "col", "x", "y")
    for key in keys:
        one[key], other[key] = other[key], one[key]
    stale, one["turns"] = one["angle"], (one["turns"] + 1) % 4
    answer = server.post(path, {"solution": moved, "turns": 0})
    assert (answer.status_code, "whose angle is 90 degrees times its turns" in answer.json()["detail"]) == (422, True)
    one["angle"] = stale + 90
    for off in (0.0, 0.1):
        one["x"], one["y"] = (1.5 - off) * 48, (1.5 + off) * 48
        answer = server.post(path, {"solution": moved, "turns": 0}).json()["solution"]
        found = next(f for f in answer["fragments"].values() if (f["row"], f["col"]) == (1, 1))
        assert (found["x"], found["y"], found["turns"]) == (one["x"], one["y"], one["turns"])


def test_a_solution_of_format_1_is_taken(server: Server, held: dict[str, Any], solution: dict[str, Any]) -> None:
    keys = ("status", "reason", "grid", "solver", "seconds")
    old = {"format": "jigsync-solution/1", **{key: solution[key] for key in keys}}
    old["gauge"] = {key: solution["gauge"][key] for key in ("turns", "confidence")}
    old["fragments"] = {
        name: {key: f[key] for key in ("row", "col", "turns", "confidence")}
        for name, f in solution["fragments"].items()
    }
    answer = server.post(f"/api/puzzles/{held['id']}/solution", {"step": {"solution": old}}).json()
    assert answer["fragments"] == solution["fragments"]


# ---------------------------------------------------------------------------------------------- out


def test_pictures_with_and_without_gaps(server: Server, held: dict[str, Any], solution: dict[str, Any]) -> None:
    path = f"/api/puzzles/{held['id']}/picture"
    plain, gaps, small = (
        read_rgba(server.post(path, {"solution": solution, **more}).content)
        for more in ({}, {"gaps": True}, {"longest": 50})
    )
    rows, cols = solution["grid"]
    assert plain.shape == (rows * 48, cols * 48, 4)
    assert gaps.shape == (rows * 48 + (rows - 1) * 6, cols * 48 + (cols - 1) * 6, 4)
    assert max(small.shape) == 50


def test_a_fragment_is_shown_as_received(server: Server, held: dict[str, Any]) -> None:
    answer = server.get(f"/api/puzzles/{held['id']}/fragments/f003")
    assert answer.content == straight("f003")
    assert server.get(f"/api/puzzles/{held['id']}/fragments/f099").status_code == 404


def test_a_table_for_spreadsheets(server: Server, held: dict[str, Any], solution: dict[str, Any]) -> None:
    step = {"solution": solution, "pinned": ["f002"], "excluded": []}
    answer = server.post(f"/api/puzzles/{held['id']}/table", {"step": step})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["fragment"] for row in rows] == list(PUZZLE.ids)
    for row in rows:
        placed = solution["fragments"][row["fragment"]]
        assert (int(row["row"]), int(row["column"])) == (placed["row"] + 1, placed["col"] + 1)
        assert (int(row["degrees_clockwise"]) + 90 * placed["turns"]) % 360 == 0
        assert row["pinned"] == ("yes" if row["fragment"] == "f002" else "no")


def test_solution_json_is_the_one_of_the_command_line(
    server: Server, held: dict[str, Any], solution: dict[str, Any]
) -> None:
    answer = server.post(f"/api/puzzles/{held['id']}/solution", {"step": {"solution": solution}})
    assert answer.json() == solution
    assert 'filename="solution.json"' in answer.headers["content-disposition"]
    parse_solution(Node(answer.json(), "answer"))


def test_a_project_opens_again_in_the_same_state(
    server: Server, held: dict[str, Any], solution: dict[str, Any], tmp_path: Any
) -> None:
    project = {
        "name": "My vase",
        "grid": "2x3",
        "steps": [{"solution": None}, {"solution": solution, "pinned": ["f001"], "excluded": ["f004"]}],
        "at": 1,
    }
    kept = server.post(f"/api/puzzles/{held['id']}/project", project).content
    opened = server.upload({"renamed.zip": kept}).json()
    assert opened["name"] == "My vase"
    assert [f["id"] for f in opened["fragments"]] == list(PUZZLE.ids)
    assert {key: opened["project"][key] for key in ("grid", "at")} == {"grid": "2x3", "at": 1}
    assert opened["project"]["steps"][1] == project["steps"][1]
    assert server.get(f"/api/puzzles/{opened['id']}/fragments/f002").content == straight("f002")
    again = server.post(f"/api/puzzles/{opened['id']}/project", opened["project"]).content
    assert again == kept
    # Unpacked, it is a puzzle folder like any other.
    zipfile.ZipFile(io.BytesIO(kept)).extractall(tmp_path / "kept")
    assert jigsync.load(tmp_path / "kept").ids == PUZZLE.ids


def test_a_project_of_another_puzzle_is_refused(server: Server, held: dict[str, Any], solution: dict[str, Any]) -> None:
    other = {**solution, "fragments": {f"x{name}": p for name, p in solution["fragments"].items()}}
    del other["pictures"]
    for path, value in (("project", {"steps": [{"solution": other}]}), ("picture", {"solution": other})):
        answer = server.post(f"/api/puzzles/{held['id']}/{path}", value)
        assert answer.status_code == 422
        assert "must name every fragment of the puzzle" in answer.json()["detail"]
    files = {**folder(PUZZLE), "project.json": b'{"steps": [{"pinned": ["f077"]}]}'}
    assert "'f077' is not in the puzzle" in server.upload({"p.zip": zipped(files)}).json()["detail"]
    files["project.json"] = b'{"steps": []}'
    assert "'steps'" in server.upload({"p.zip": zipped(files)}).json()["detail"]


def test_more_files_than_a_form_usually_has(server: Server) -> None:
    answer = server.upload({f"{k}.txt": b"" for k in range(1100)})
    assert (answer.status_code, "must hold pictures" in answer.json()["detail"]) == (422, True)
    answer = server.upload({f"{k}.txt": b"" for k in range(2002)})
    assert (answer.status_code, "2001" in answer.json()["detail"]) == (400, True)


def test_a_puzzle_is_let_go(server: Server) -> None:
    puzzle = server.upload({"p.zip": zipped(folder(PUZZLE))}).json()["id"]
    assert server.send("DELETE", f"/api/puzzles/{puzzle}").status_code == 204
    gone = server.get(f"/api/puzzles/{puzzle}")
    assert (gone.status_code, "There is no such puzzle" in gone.json()["detail"]) == (404, True)


def test_the_interface_is_documented(server: Server) -> None:
    schema = server.get("/openapi.json").json()
    assert {"/solve", "/api/puzzles", "/api/jobs/{job}/events"} <= set(schema["paths"])
    for path in schema["paths"].values():
        for operation in path.values():
            assert operation["summary"]
            assert operation["description"]
            assert {"413", "422", "429", "503"} <= set(operation["responses"])


def test_a_port_that_is_taken_is_one_sentence(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", server.url.rpartition(":")[2]]) == 2
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err
