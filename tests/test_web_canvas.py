"""The interface behind the free canvas: any pose, what stays, what fits, windows, layers, photographs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
from PIL import Image
from scans import apart, cut, lay
from web import Server, folder, serving, zipped

import jigsync
from jigsync import data
from jigsync.io.images import png_bytes, read_rgba
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution
from jigsync.score.poses import score_poses
from jigsync.solution import Solution
from jigsync.values.layout import FREE
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.web.readings import Remembered
from jigsync.web.spread import spread

TORN, TRUTH = jigsync.tear_with_truth(data.picture("coffee"), 6, seed=3, size=80)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def held(server: Server) -> str:
    name: str = server.upload({"torn.zip": zipped(folder(TORN))}).json()["id"]
    return name


@pytest.fixture(scope="module")
def solution(server: Server, held: str) -> dict[str, Any]:
    job = server.solved(held)
    assert job["state"] == "done"
    value: dict[str, Any] = job["shown"]["solution"]
    return value


def read(value: dict[str, Any]) -> Solution:
    return parse_solution(Node(value, "answer"))


def test_torn_pieces_are_solved_as_on_the_command_line(solution: dict[str, Any]) -> None:
    found, same = read(solution), jigsync.solve(TORN)
    assert score_poses(found, TRUTH, TORN).perfect
    assert (found.status, found.reason, found.layout) == (same.status, same.reason, same.layout)
    assert [p.confidence for p in found.placement.values()] == [p.confidence for p in same.placement.values()]


def test_places_stay_where_they_are(server: Server, held: str) -> None:
    places = {"f002": [700.0, -120.5, 33.0], "f004": [0.0, 0.0, 0.0]}
    job = server.solved(held, places={"f002": places["f002"]}, exclude=["f005"])
    fragments = job["shown"]["solution"]["fragments"]
    assert [fragments["f002"][key] for key in ("x", "y", "angle")] == pytest.approx(places["f002"])
    assert fragments["f005"]["x"] is None
    both = server.post(f"/api/puzzles/{held}/jobs", {"places": places, "pins": {"f001": [0, 0, 0]}})
    assert (both.status_code, "not both" in both.json()["detail"]) == (422, True)


def test_where_a_fragment_fits(server: Server, held: str, solution: dict[str, Any]) -> None:
    right = read(solution).placement["f001"].pose
    assert right is not None
    value = {**solution, "fragments": {**solution["fragments"], "f001": dict.fromkeys(solution["fragments"]["f001"])}}
    del value["pictures"]
    fits = server.post(f"/api/puzzles/{held}/fits", {"solution": value, "fragment": "f001"}).json()
    assert isinstance(fits, list), fits
    assert 1 <= len(fits) <= 6
    assert [f["log_odds"] for f in fits] == sorted((f["log_odds"] for f in fits), reverse=True)
    best = fits[0]
    assert np.hypot(best["x"] - right.xy[0], best["y"] - right.xy[1]) < 8
    assert abs((best["angle"] - right.degrees + 180) % 360 - 180) < 5
    assert "f001" not in best["beside"]
    assert server.post(f"/api/puzzles/{held}/fits", {"solution": value, "fragment": "f777"}).status_code == 404


def test_a_window_never_overwrites_another(server: Server, held: str, solution: dict[str, Any]) -> None:
    path = f"/api/puzzles/{held}/state"
    assert server.get(path).status_code == 404
    first = server.send("PUT", path, json={"base": 0, "step": {"solution": solution}})
    assert first.json() == {"version": 1}
    late = server.send("PUT", path, json={"base": 0, "step": {"solution": None}})
    assert (late.status_code, late.json()["detail"]) == (409, "Another window has changed this puzzle meanwhile.")
    kept = server.get(path).json()
    assert (kept["version"], kept["step"]["solution"]["fragments"]) == (1, solution["fragments"])
    assert server.get(f"/api/puzzles/{held}").json()["version"] == 1
    stranger = {"base": 1, "step": {"pinned": ["f099"]}}
    assert server.send("PUT", path, json=stranger).status_code == 422


def test_a_puzzle_stays_for_the_windows_that_have_it(server: Server) -> None:
    puzzle = server.upload({"torn.zip": zipped(folder(TORN))}).json()["id"]
    for window in ("one", "two", "three"):
        assert server.get(f"/api/puzzles/{puzzle}", params={"window": window}).status_code == 200
    assert server.send("DELETE", f"/api/puzzles/{puzzle}/windows/three").status_code == 204
    assert server.send("DELETE", f"/api/puzzles/{puzzle}", params={"window": "one"}).status_code == 204
    assert server.get(f"/api/puzzles/{puzzle}").status_code == 200
    assert server.send("DELETE", f"/api/puzzles/{puzzle}", params={"window": "two"}).status_code == 204
    assert server.get(f"/api/puzzles/{puzzle}").status_code == 404


def test_a_solve_under_way_is_named(server: Server) -> None:
    puzzle = server.upload({"torn.zip": zipped(folder(TORN))}).json()["id"]
    job = server.post(f"/api/puzzles/{puzzle}/jobs", {}).json()["id"]
    assert server.get(f"/api/puzzles/{puzzle}").json()["job"] == job
    list(server.events(job))
    assert server.get(f"/api/puzzles/{puzzle}").json()["job"] is None


def test_pictures_and_layers_at_full_resolution(server: Server, held: str, solution: dict[str, Any]) -> None:
    def drawn(kind: str) -> bytes:
        answer = server.post(f"/api/puzzles/{held}/picture", {"solution": solution, "format": kind})
        assert answer.status_code == 200, answer.text
        return answer.content

    whole = read_rgba(drawn("png"))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(drawn("tiff")))), whole)
    ora = zipfile.ZipFile(io.BytesIO(drawn("ora")))
    assert (ora.infolist()[0].filename, ora.read("mimetype")) == ("mimetype", b"image/openraster")
    image = ElementTree.fromstring(ora.read("stack.xml"))
    assert (int(image.get("w", 0)), int(image.get("h", 0))) == whole.shape[1::-1]
    layers = {layer.get("name"): layer for layer in image.iter("layer")}
    assert sorted(name or "" for name in layers) == sorted(TORN.ids)
    # Each layer is the picture, where it alone is seen.
    for layer in layers.values():
        pixels = read_rgba(ora.read(layer.get("src", "")))
        left, top = int(layer.get("x", 0)), int(layer.get("y", 0))
        under = whole[top : top + pixels.shape[0], left : left + pixels.shape[1]]
        inside = cv2.erode((pixels[..., 3] == 255).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
        assert (np.abs(pixels[inside].astype(int) - under[inside]) <= 1).mean() > 0.97
    svg = ElementTree.fromstring(drawn("svg"))
    assert (float(svg.get("width", 0)), float(svg.get("height", 0))) == whole.shape[1::-1]
    assert len(svg.findall("{http://www.w3.org/2000/svg}g/{http://www.w3.org/2000/svg}image")) == len(TORN)
    assert drawn("sheet").startswith(b"%PDF")


def test_a_photograph_becomes_a_puzzle(server: Server) -> None:
    table = lay(cut(), apart([30.0, -4.0, 0.0, 75.0, 0.0, -20.0]))
    [sheet] = server.upload({"table.png": png_bytes(table)}, "/api/photographs").json()
    assert (sheet["width"], sheet["height"]) == table.shape[1::-1]
    assert len(sheet["outlines"]) == 6
    path = f"/api/photographs/{sheet['id']}"
    shown = server.get(f"{path}/picture")
    assert (shown.headers["content-type"], read_rgba(shown.content).shape[:2]) == ("image/jpeg", table.shape[:2])
    two = [one["points"] for one in sheet["outlines"][:2]]
    [one] = server.post(f"{path}/shape", {"do": "merge", "outlines": two}).json()
    assert len(one["points"]) > 4
    refused = server.post(f"{path}/shape", {"do": "split", "outlines": two[:1], "line": [[0, 0], [1, 1]]})
    assert (refused.status_code, "must go through" in refused.json()["detail"]) == (422, True)
    again = server.post(f"{path}/background", {"x": 3, "y": 3}).json()
    assert len(again["outlines"]) == 6
    outlines = [one["points"] for one in sheet["outlines"][1:]]
    made = server.post(
        "/api/photographs/puzzle", {"name": "t", "sheets": [{"photograph": sheet["id"], "outlines": outlines}]}
    )
    assert made.status_code == 201, made.text
    assert (made.json()["name"], len(made.json()["fragments"])) == ("t", 5)
    assert server.send("DELETE", path).status_code == 204
    assert server.get(f"{path}/picture").status_code == 404


def test_what_is_left_out_is_named(server: Server) -> None:
    fragment = png_bytes(np.full((30, 30, 3), 9, np.uint8))
    notes = server.upload({"a.png": fragment, "b.png": fragment, "c.heic": b"?", "d.pdf": b"?"}).json()["notes"]
    assert notes[0] == "'c.heic' was left out: HEIC cannot be read here. Save it as JPEG or PNG."
    assert notes[1].startswith("'d.pdf' was left out: PDF")


def test_components_lie_beside_each_other_and_pins_stay() -> None:
    poses = {name: Pose.of_degrees(10.0 * k, (3.0 * k, 2.0 * k)) for k, name in enumerate(TORN.ids)}
    placement = {name: Placed(pose, component=k // 3) for k, (name, pose) in enumerate(poses.items())}
    made = Solution("partial", "", FREE, placement, puzzle=TORN)
    apart_ = spread(TORN, made).placement
    first, second = ([apart_[name].pose for name in TORN.ids[part]] for part in (slice(3), slice(3, 6)))
    assert min(p.xy[0] for p in second if p) - max(p.xy[0] for p in first if p) > 40 or (
        min(p.xy[1] for p in second if p) - max(p.xy[1] for p in first if p) > 40
    )
    pinned = spread(TORN, made, (TORN.ids[0],)).placement
    assert [pinned[name].pose for name in TORN.ids[:3]] == [poses[name] for name in TORN.ids[:3]]
    assert min(pinned[name].pose.xy[0] for name in TORN.ids[3:]) > max(poses[name].xy[0] for name in TORN.ids[:3])


def test_a_reading_is_measured_once_and_again_after_a_failure() -> None:
    tried = []

    def ways() -> Iterator[Any]:
        tried.append("first")
        yield "first"
        tried.append("second")
        if len(tried) < 4:
            raise OSError("full")
        yield "second"

    read_ = Remembered(ways)
    assert next(iter(read_)) == next(iter(read_)) == "first"
    assert tried == ["first"]
    with pytest.raises(OSError, match="full"):
        list(read_)
    assert list(read_) == ["first", "second"]
