"""The free canvas as a person uses it: torn pieces at any angle, moved by mouse, by keyboard and on a phone."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hands import Open, Picture, drop, keep, solve, wait_for
from PIL import Image
from web import folder, zipped

import jigsync
from jigsync import data
from jigsync.io.images import read_rgba
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution
from jigsync.score.poses import score_poses
from jigsync.values.pose import Pose

TORN, TRUTH = jigsync.tear_with_truth(data.picture("coffee"), 6, seed=3, size=80)


def torn(page: Any) -> None:
    """Drops the pieces."""
    drop(page, "torn.zip", zipped(folder(TORN)))
    page.wait_for_selector("#bench:not([hidden])")
    drawn(page)


def drawn(page: Any) -> None:
    """Waits until the canvas shows what there is."""
    before = int(page.get_attribute("#table", "data-frames") or 0)
    wait_for(page, "before => Number(document.getElementById('table').dataset.frames ?? 0) > before", before - 1)
    page.wait_for_timeout(150)


def said(page: Any) -> dict[str, str]:
    """id -> what a screen reader says of every fragment."""
    return {text.split(",")[0]: text for text in page.locator("[role=option]").all_text_contents()}


def choose(page: Any, name: str) -> None:
    """By keyboard."""
    page.focus("#table [role=application]")
    for _ in range(2 * len(TORN)):
        if page.get_attribute("#table [role=application]", "aria-activedescendant") == f"on-table-{name}":
            return
        page.keyboard.press("n")
    pytest.fail(f"{name} cannot be chosen")


def numbers(page: Any) -> tuple[float, float, float]:
    """x, y and degrees clockwise of the selected fragment."""
    x, y, angle = (float(page.input_value(f"#pose-{part}")) for part in ("x", "y", "angle"))
    return x, y, angle


def handle(page: Any) -> tuple[float, float]:
    """The middle of the selected fragment on the screen."""
    box = page.locator("#table canvas").bounding_box()
    at = page.evaluate("JSON.parse(document.getElementById('table').dataset.chosen)")
    return box["x"] + at[0], box["y"] + at[1]


def kept_solution(page: Any) -> Any:
    return parse_solution(Node(json.loads(keep(page, "solution")[1]), "solution.json"))


def drag_by(page: Any, start: tuple[float, float], dx: float, dy: float) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + dx / 2, start[1] + dy / 2, steps=3)
    page.mouse.move(start[0] + dx, start[1] + dy, steps=3)
    page.mouse.up()


def test_torn_pieces_are_put_together(open_page: Open, picture: Picture, tmp_path: Any) -> None:
    page = open_page()
    torn(page)
    assert all("not placed" in text for text in said(page).values())
    picture(page, "20-torn")
    solve(page)
    verdict = page.text_content("#verdict")
    assert verdict.startswith("Put together. 6 of 6 fragments placed freely")
    drawn(page)
    picture(page, "21-torn-solved")
    solution = kept_solution(page)
    assert score_poses(solution, TRUTH, TORN).perfect
    # What the command line says, the page says.
    same = jigsync.solve(TORN)
    assert solution.status == same.status
    for name, placed in same.placement.items():
        assert placed.confidence == pytest.approx(solution.placement[name].confidence)

    # The picture at full resolution, in one piece and in layers.
    whole = read_rgba(keep(page, "picture")[1])
    name, tiff = keep(page, "tiff")
    assert name == "torn.tif"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(tiff))), whole)
    svg = ElementTree.fromstring(keep(page, "svg")[1])
    assert len(svg.findall("{http://www.w3.org/2000/svg}g")) == 6
    ora = zipfile.ZipFile(io.BytesIO(keep(page, "ora")[1]))
    assert ora.infolist()[0].filename == "mimetype"
    assert len(ElementTree.fromstring(ora.read("stack.xml")).findall("stack/layer")) == 6
    assert np.array_equal(read_rgba(ora.read("mergedimage.png")), whole)
    assert keep(page, "sheet")[1].startswith(b"%PDF")
    rows = list(csv.DictReader(io.StringIO(keep(page, "table")[1].decode())))
    for row in rows:
        pose = solution.placement[row["fragment"]].pose
        assert (float(row["x"]), float(row["y"])) == pytest.approx(pose.xy, abs=0.006)
        assert math.isclose((float(row["degrees_clockwise"]) + pose.degrees + 180) % 360, 180, abs_tol=1e-3)


def test_fragments_are_moved_and_turned_before_the_first_solve(open_page: Open, picture: Picture) -> None:
    page = open_page()
    torn(page)
    choose(page, "f002")
    x, y, _ = numbers(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("r")
    page.keyboard.press("t")
    page.keyboard.press("t")
    page.keyboard.press("Shift+T")
    assert numbers(page) == (pytest.approx(x + 1), pytest.approx(y + 10), pytest.approx(16))
    assert "turned 16° clockwise" in said(page)["f002"]

    # By mouse: the fragment follows, the handle turns it, Shift and the wheel too.
    before = numbers(page)
    start = handle(page)
    drag_by(page, start, 60, -30)
    moved = numbers(page)
    assert moved[0] > before[0] + 10
    assert moved[1] < before[1] - 5
    assert moved[2] == before[2]
    page.mouse.move(*handle(page))
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 100)
    page.keyboard.up("Shift")
    wait_for(page, "angle => Math.abs(document.getElementById('pose-angle').valueAsNumber - angle) < 0.06", 17)
    grip = page.evaluate("JSON.parse(document.getElementById('table').dataset.handle)")
    box = page.locator("#table canvas").bounding_box()
    middle = handle(page)
    top = box["x"] + grip[0], box["y"] + grip[1]
    page.mouse.move(*top)
    page.mouse.down()
    page.mouse.move(middle[0] + 80, middle[1] - 20, steps=3)
    page.mouse.move(middle[0] + 90, middle[1], steps=3)
    page.mouse.up()
    assert abs(numbers(page)[2] - 107) < 12

    # By numbers.
    page.fill("#pose-angle", "-33.5")
    page.keyboard.press("Tab")
    assert "turned 33.5° counter-clockwise" in said(page)["f002"]
    picture(page, "22-by-hand")
    assert page.text_content("#verdict").strip() == "By hand: 1 of 6 fragments on the table."

    # What does not belong is left out of the solve, what is locked stays.
    page.focus("#table [role=application]")
    page.keyboard.press("p")
    locked = numbers(page)
    page.keyboard.press("ArrowLeft")
    assert numbers(page) == locked
    assert "is locked" in page.text_content("#spoken")
    choose(page, "f004")
    page.keyboard.press("x")
    assert "does not belong" in said(page)["f004"]
    solve(page)
    assert "5 of 6 fragments placed" in page.text_content("#verdict")
    choose(page, "f002")
    assert numbers(page) == locked
    solution = kept_solution(page)
    assert solution.placement["f004"].pose is None
    assert "locked" in said(page)["f002"]


def test_where_a_fragment_fits(open_page: Open, picture: Picture) -> None:
    page = open_page()
    torn(page)
    solve(page)
    right = kept_solution(page).placement["f001"].pose
    choose(page, "f001")
    page.keyboard.press("l")
    assert "not placed" in said(page)["f001"]
    assert page.text_content("#verdict").startswith("Only partly put together. 5 of 6")
    page.keyboard.press("f")
    page.wait_for_selector("#fit-list button")
    drawn(page)
    picture(page, "23-fits")
    page.keyboard.press("1")
    again = kept_solution(page).placement["f001"].pose
    assert near(again, right)
    assert page.text_content("#verdict").startswith("Put together.")
    assert "1 fragment is where you put them" in page.text_content("#verdict")

    # Dragged near a proposed place it snaps there.
    for _ in range(30):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("f")
    page.wait_for_selector("#fit-list button")
    at = handle(page)
    scale = page.evaluate("Number(document.getElementById('table').dataset.scale)")
    drag_by(page, at, 300 * scale + 9, 5)
    assert near(kept_solution(page).placement["f001"].pose, right)


def near(one: Pose, other: Pose) -> bool:
    return math.dist(one.xy, other.xy) < 8 and abs((one.degrees - other.degrees + 180) % 360 - 180) < 5


def test_groups_move_together_and_the_whole_turns(open_page: Open) -> None:
    page = open_page()
    torn(page)
    solve(page)
    before = kept_solution(page)
    choose(page, "f000")
    page.keyboard.press("a")
    assert page.locator("[role=option][aria-selected=true]").count() == 6
    drag_by(page, handle(page), 40, 24)
    after = kept_solution(page)
    steps = [np.subtract(after.placement[n].pose.xy, before.placement[n].pose.xy) for n in TORN.ids]
    assert np.allclose(steps, steps[0], atol=1e-6)
    assert np.hypot(*steps[0]) > 5
    assert [p.confidence for p in after.placement.values()] == [p.confidence for p in before.placement.values()]
    page.keyboard.press("j")  # they are one group: now each is its own
    assert len({p.component for p in kept_solution(page).placement.values()}) == 6
    page.keyboard.press("j")
    assert len({p.component for p in kept_solution(page).placement.values()}) == 1
    page.fill("#whole-angle", "20")
    page.click("#whole button")
    turned = kept_solution(page)
    for name in TORN.ids:
        angle = after.placement[name].pose.degrees - turned.placement[name].pose.degrees
        assert abs((angle + 180) % 360 - 180 - 20) < 1e-6
    assert turned.gauge.probabilities[0] == 0
    assert sum(turned.gauge.probabilities) == pytest.approx(1)


def test_a_grid_is_lifted_onto_the_canvas(open_page: Open, picture: Picture) -> None:
    puzzle = jigsync.cut(data.picture("chelsea"), "2x3", "light", cell=48, seed=3)
    page = open_page()
    drop(page, "chelsea.zip", zipped(folder(puzzle)))
    page.wait_for_selector("#bench:not([hidden])")
    solve(page)
    assert page.locator("[role=gridcell]").count() == 6
    before = kept_solution(page)
    page.click("#free-canvas")
    page.wait_for_selector("#table:not([hidden])")
    after = kept_solution(page)
    assert after.grid is None
    assert {n: p.pose for n, p in after.placement.items()} == {n: p.pose for n, p in before.placement.items()}
    drawn(page)
    picture(page, "24-lifted")
    page.keyboard.press("Control+z")
    assert page.locator("[role=gridcell]").count() == 6


def test_a_reload_during_a_solve_finds_it_again(open_page: Open, server: Any) -> None:
    page = open_page()
    torn(page)
    page.click("#solve")
    page.wait_for_selector("#cancel:not([hidden])")
    page.reload()
    page.wait_for_selector("#bench:not([hidden])")
    wait_for(page, "document.getElementById('verdict-head').textContent === 'Put together.'")
    assert all("sure" in text for text in said(page).values())
    # And a verdict is not stale after a reload, nor after an undo.
    page.reload()
    page.wait_for_selector("#verdict:not([hidden])")
    assert page.text_content("#verdict").startswith("Put together. 6 of 6")
    page.focus("#table [role=application]")
    page.keyboard.press("n")
    page.keyboard.press("l")
    assert "5 of 6" in page.text_content("#verdict")
    page.keyboard.press("Control+z")
    assert "6 of 6" in page.text_content("#verdict")
    page.keyboard.press("Control+z")
    assert not page.is_visible("#verdict")


def shared(page: Any, after: int = 0) -> int:
    """Waits until the server has what the window shows, in a version above `after`; the version."""
    found = page.wait_for_function(
        """after => Object.values(sessionStorage).map(text => {
            try { return JSON.parse(text); } catch { return {}; }
        }).filter(kept => kept && kept.synced && kept.version > after).map(kept => kept.version)[0]""",
        arg=after,
    )
    return int(found.json_value())


def test_two_windows_of_one_puzzle(open_page: Open, picture: Picture) -> None:
    page = open_page(allowed="status of 409")
    torn(page)
    solve(page)
    version = shared(page)
    other = page.context.new_page()
    other.on("dialog", lambda dialog: dialog.accept())
    page.evaluate("window.kept = JSON.stringify({...sessionStorage})")
    other.goto(page.url)
    other.evaluate(
        "kept => Object.entries(JSON.parse(kept)).forEach(([k, v]) => sessionStorage.setItem(k, v))",
        page.evaluate("window.kept"),
    )
    other.reload()
    other.wait_for_selector("#verdict:not([hidden])")
    assert said(other) == said(page)

    choose(page, "f000")
    page.keyboard.press("Shift+ArrowUp")
    shared(page, version)
    choose(other, "f003")
    other.keyboard.press("Shift+ArrowDown")
    other.wait_for_selector(".error")
    assert "Another window has changed this puzzle" in other.text_content(".error")
    picture(other, "25-two-windows")
    other.click("text=Show what it has")
    assert said(other) == said(page)
    other.keyboard.press("Control+z")  # what was here before is not lost

    # Starting over in one window leaves the other its puzzle.
    other.click("#start-over")
    other.wait_for_selector("#start:not([hidden])")
    name, content = keep(page, "project")
    assert name == "torn.jigsync.zip"
    drop(other, "kept.zip", content)
    other.wait_for_selector("#bench:not([hidden])")
    assert said(other) == said(page)


def test_a_phone_and_the_dark(open_page: Open, picture: Picture) -> None:
    page = open_page(390, 844, has_touch=True, is_mobile=True, color_scheme="dark")
    torn(page)
    solve(page)
    drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator("#table canvas").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("[role=option][aria-selected=true]").count() == 1
    picture(page, "26-phone-canvas", full_page=True)
    page.tap("#turn-right")
    assert "placed by you" in page.text_content("#one-text")
    assert page.locator("#turn-right").bounding_box()["height"] >= 40
