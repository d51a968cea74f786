"""The workbench as a person uses it: from the drop to the download, by mouse, by keyboard, on a phone."""

from __future__ import annotations

import csv
import io
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import Open, Picture, drop, keep, solve, wait_for
from PIL import Image
from web import folder, puzzle_and_truth, zipped

from jigsync import data
from jigsync.io.images import png_bytes, read_rgb, read_rgba
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution
from jigsync.solution import Solution
from jigsync.values.gauge import Gauge
from jigsync.web.jobs import Job
from jigsync.web.models import ProjectModel, Step
from jigsync.web.project import project_bytes

PUZZLE, TRUTH = puzzle_and_truth()
UNKNOWN = Gauge()


def dropped_and_solved(page: Any) -> None:
    drop(page, "chelsea.zip", zipped(folder(PUZZLE)))
    page.wait_for_selector("#bench:not([hidden])")
    solve(page)


def opened_solved(page: Any, gauge: Gauge = UNKNOWN) -> None:
    """A project whose puzzle is solved already."""
    solution = Solution("ok", "", TRUTH.grid, TRUTH.placement, gauge)
    project = ProjectModel(name="chelsea", steps=[Step(solution=solution)])
    drop(page, "solved.zip", project_bytes(PUZZLE, project))
    page.wait_for_selector("[role=gridcell]")


def names(page: Any) -> list[str]:
    """What a screen reader says of every cell."""
    return [cell.get_attribute("aria-label") for cell in page.locator("[role=gridcell]").all()]


def drag(page: Any, start: Any, end: Any) -> None:
    a, b = start.bounding_box(), end.bounding_box()
    page.mouse.move(a["x"] + a["width"] / 2, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(a["x"] + a["width"] / 2 + 9, a["y"] + a["height"] / 2, steps=2)
    page.mouse.move(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2, steps=4)
    page.mouse.up()


def long_drag(page: Any, start: Any, end: Any) -> None:
    """A finger that presses, waits and moves."""
    session = page.context.new_cdp_session(page)
    a, b = start.bounding_box(), end.bounding_box()

    def touch(kind: str, box: Any = None, share: float = 0.0) -> None:
        points = []
        if box is not None:
            x, y = (a[k] + share * (b[k] - a[k]) + a[s] / 2 for k, s in (("x", "width"), ("y", "height")))
            points = [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", a)
    page.wait_for_timeout(350)
    for step in range(1, 5):
        touch("touchMove", a, step / 4)
    touch("touchEnd")


def test_from_the_drop_to_the_download(open_page: Open, picture: Picture, tmp_path: Path) -> None:
    page = open_page()
    picture(page, "01-start")
    drop(page, "chelsea.zip", zipped(folder(PUZZLE)))
    page.wait_for_selector("#bench:not([hidden])")
    assert page.text_content("#title") == "chelsea · 6 fragments"
    assert page.locator("[role=option]").count() == 6
    picture(page, "02-dropped")
    solve(page)
    verdict = page.text_content("#verdict")
    assert any(f"6 of 6 fragments placed in a {grid} grid" in verdict for grid in ("2 \u00d7 3", "3 \u00d7 2")), (
        "either way up"
    )
    wait_for(page, "[...document.querySelectorAll('#gauge-choices img')].every(i => i.src && i.complete)")
    picture(page, "03-solved")
    shown = shares(page)
    assert abs(sum(shown) - 100) <= 2
    assert shown[0] == max(shown)

    name, content = keep(page, "solution")
    assert name == "chelsea-solution.json"
    solution = parse_solution(Node(json.loads(content), name))
    right = {k: (p.cell, p.turns) for k, p in TRUTH.placement.items()}
    assert right in [{k: (p.cell, p.turns) for k, p in solution.turned(t).placement.items()} for t in range(4)]
    assert sorted(read_rgba(keep(page, "picture")[1]).shape) == [4, 96, 144]
    assert sorted(read_rgba(keep(page, "gaps")[1]).shape) == [4, 102, 156]
    assert len(list(csv.reader(io.StringIO(keep(page, "table")[1].decode())))) == 7
    name, content = keep(page, "project")
    assert name == "chelsea.jigsync.zip"
    assert "project.json" in zipfile.ZipFile(io.BytesIO(content)).namelist()


def test_a_correction_changes_the_result_and_is_undone(open_page: Open, picture: Picture) -> None:
    page = open_page()
    dropped_and_solved(page)
    before = names(page)
    cells = page.locator("[role=gridcell]")
    moved, other = before[0].split(",")[0], before[4].split(",")[0]
    where = ",".join(before[4].split(",")[1:3])
    row = int(where.split(",")[0].split()[1])
    drag(page, cells.nth(0), cells.nth(4))
    after = names(page)
    assert after[4].startswith(f"{moved},{where}")
    assert after[4].endswith("pinned")
    assert after[0].startswith(f"{other}, row 1, column 1")
    picture(page, "04-moved")
    assert json.loads(keep(page, "solution")[1])["fragments"][moved]["row"] == row - 1

    # Solving again keeps the pin, wrong as it is.
    solve(page)
    assert any(name.startswith(f"{moved},{where}") for name in names(page))
    assert "Your pins decide it" in page.text_content("#gauge-text")

    # Without the pin the solver puts it right.
    cells.nth([name.startswith(f"{moved},") for name in names(page)].index(True)).click()
    page.keyboard.press("p")
    assert not any("pinned" in name for name in names(page))
    solve(page)
    assert not any(name.startswith(f"{moved},{where}") for name in names(page))

    for _ in range(4):
        page.keyboard.press("Control+z")
    assert names(page) == before
    assert page.is_enabled("#redo")
    page.keyboard.press("Control+Shift+z")
    assert names(page) == after
    page.click("#undo")
    assert names(page) == before


def test_everything_by_keyboard(open_page: Open, picture: Picture) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    opened_solved(page)
    before = names(page)
    first = before[0].split(",")[0]
    page.locator("[role=gridcell]").nth(0).focus()
    page.keyboard.press("r")
    turned = names(page)[0]
    assert turned != before[0]
    assert "pinned" in turned
    page.keyboard.press("Shift+R")
    assert names(page)[0].split(", ")[:3] == [*before[0].split(", ")[:2], names(page)[0].split(", ")[2]]
    page.keyboard.press("Enter")
    assert "picked up" in page.text_content("#spoken")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert names(page)[4].startswith(f"{first}, row 2, column 2")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(first)
    page.keyboard.press("x")
    assert page.locator("[role=listitem]").count() == 1
    assert "does not belong" in page.locator("[role=listitem] button").get_attribute("aria-label")
    assert names(page)[4] == "row 2, column 2, empty"
    picture(page, "05-not-belonging")
    page.keyboard.press("x")
    assert "not placed" in page.locator("[role=listitem] button").get_attribute("aria-label")
    page.keyboard.press("g")
    wait_for(page, "document.querySelectorAll('[role=row]').length === 3")
    page.keyboard.press("Control+y")  # nothing to redo
    page.keyboard.press("Control+z")
    wait_for(page, "document.querySelectorAll('[role=row]').length === 2")


def test_two_candidates_are_compared(open_page: Open, picture: Picture) -> None:
    page = open_page()
    opened_solved(page)
    cells = page.locator("[role=gridcell]")
    drag(page, cells.nth(1), cells.nth(2))
    right = names(page)[1].split(",")[0]
    cells.nth(2).click()
    page.keyboard.press("c")
    page.wait_for_selector("#comparer[open]")
    assert "now here" in page.text_content("#caption-a")
    assert right in page.text_content("#caption-b")
    picture(page, "06-compare")
    page.click("#use-b")
    assert names(page)[2].startswith(f"{right}, row 1, column 3")


def test_the_four_gauges(open_page: Open) -> None:
    page = open_page()
    opened_solved(page, Gauge.of_turns(0, (0.7, 0.05, 0.15, 0.1)))
    assert shares(page) == [70, 5, 15, 10]
    assert page.text_content("#gauge-text") == "How likely each way up is; the first is as shown."
    start = names(page)
    seen = [start]
    for _ in range(3):
        page.click("#gauge-choices button:nth-child(2)")
        wait_for(page, "before => document.querySelector('[role=gridcell]').ariaLabel !== before", seen[-1][0])
        seen.append(names(page))
        assert shares(page)[-len(seen) + 1] == 70, "each picture keeps its probability"
    assert len({tuple(one) for one in seen}) == 4
    page.click("#gauge-choices button:nth-child(2)")
    wait_for(page, "before => document.querySelector('[role=gridcell]').ariaLabel === before", start[0])
    assert names(page) == start
    assert shares(page) == [70, 5, 15, 10]


def shares(page: Any) -> list[int]:
    """What the page says of the four ways up, in percent."""
    return [int(button.inner_text().split()[0]) for button in page.locator("#gauge-choices button").all()]


def test_a_project_opens_in_the_same_state(open_page: Open, server: Any) -> None:
    page = open_page()
    opened_solved(page)
    drag(page, page.locator("[role=gridcell]").nth(0), page.locator("[role=gridcell]").nth(5))
    state = names(page)
    _, project = keep(page, "project")
    page.reload()
    page.wait_for_selector("[role=gridcell]")
    assert names(page) == state, "a reload loses nothing"
    page.click("#start-over")
    page.wait_for_selector("#start:not([hidden])")
    drop(page, "kept.zip", project)
    page.wait_for_selector("[role=gridcell]")
    assert names(page) == state
    page.click("#undo")
    assert names(page) != state


def test_a_folder_and_an_own_picture(open_page: Open, picture: Picture, tmp_path: Path) -> None:
    page = open_page()
    save_puzzle(tmp_path / "mine", PUZZLE)
    page.set_input_files("#folder", tmp_path / "mine")
    page.wait_for_selector("#bench:not([hidden])")
    assert page.text_content("#title") == "mine · 6 fragments"
    page.click("#start-over")

    page.click("#cut-own")
    own = np.random.default_rng(1).integers(0, 256, (80, 100, 3), dtype=np.uint8)
    page.set_input_files("#own", {"name": "own.png", "mimeType": "image/png", "buffer": png_bytes(own)})
    wait_for(page, "document.getElementById('preview').naturalWidth > 0")
    old = page.get_attribute("#preview", "src")
    page.fill("#rows", "2")
    page.fill("#cols", "3")
    page.fill("#shape", "30")
    wait_for(page, "old => document.getElementById('preview').src !== old", old)
    assert page.text_content("#shape-out") == "30 px"
    picture(page, "08-cut")
    page.click("#make")
    page.wait_for_selector("#bench:not([hidden])")
    assert page.text_content("#title") == "own.png · 6 fragments"


def test_an_example_is_put_together(open_page: Open, picture: Picture) -> None:
    """The picture that README.md shows."""
    page = open_page(height=900)
    page.click("#example")
    page.wait_for_selector("#bench:not([hidden])")
    solve(page)
    seen = read_rgba(keep(page, "picture")[1])[..., :3]
    original = read_rgb(data.picture("astronaut"))
    cut = (len(original) - original.shape[1] * 4 // 6) // 2
    assert np.corrcoef(shrunk(seen), shrunk(original[cut:-cut]))[0, 1] > 0.8  # upright, by the answer itself
    page.locator("[role=gridcell]").nth(10).click()
    page.keyboard.press("p")
    page.locator("[role=gridcell]").nth(8).click()
    wait_for(page, "[...document.querySelectorAll('#gauge-choices img')].every(i => i.src && i.complete)")
    page.wait_for_timeout(700)
    picture(page, "00-workbench")


def shrunk(rgb: Any) -> Any:
    """A picture as 24 x 36 grey values."""
    small = Image.fromarray(np.ascontiguousarray(rgb)).convert("L").resize((36, 24))
    return np.asarray(small, dtype=float).ravel()


def test_an_example_solved_and_cancelled(open_page: Open, picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    hear = Job.hear

    def slowly(job: Job, step: Mapping[str, Any]) -> None:
        time.sleep(0.25)  # a solver that can be caught at work
        hear(job, step)

    monkeypatch.setattr(Job, "hear", slowly)
    page = open_page(color_scheme="dark")
    page.click("#example")
    page.wait_for_selector("#bench:not([hidden])")
    page.click("#solve")
    page.wait_for_selector("[role=gridcell]")  # the picture grows while the solver works
    assert page.is_visible("#progress")
    assert "energy" in page.text_content("#progress-energy")
    page.click("#cancel")
    page.wait_for_selector("#verdict:not([hidden])")
    assert page.text_content("#verdict").startswith("It was stopped; this is the best so far.")
    assert page.locator("[role=gridcell]").count() == 24
    picture(page, "09-dark")
    page.click("#solve")
    page.click("#start-over")
    page.wait_for_selector("#start:not([hidden])")
    page.wait_for_timeout(300)


def test_errors_are_shown_where_they_happen(open_page: Open, picture: Picture) -> None:
    page = open_page(allowed="status of 422")
    drop(page, "notes.txt", b"hello")
    page.wait_for_selector(".error")
    assert "must hold pictures or a puzzle" in page.text_content(".error")
    picture(page, "10-refused")
    page.click(".error button")
    assert page.locator(".error").count() == 0

    single = png_bytes(np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8))
    drop(page, "photo.png", single)
    page.wait_for_selector("#review:not([hidden])")
    assert "'photo.png' must show its fragments on a plain background" in page.text_content("#review-notes")
    assert page.is_disabled("#review-use")
    page.click("#review-cut")
    page.wait_for_selector("#cutter[open]")
    page.keyboard.press("Escape")
    drop(page, "pieces.zip", zipped({"a.heic": b"?", "b.pdf": b"?"}))
    page.wait_for_selector(".error")
    assert "'a.heic' was left out: HEIC cannot be read here. Save it as JPEG or PNG." in page.text_content(".error")

    blank = png_bytes(np.zeros((30, 30, 4), dtype=np.uint8))
    drop(page, "blank.zip", zipped({"a.png": blank, "b.png": blank}))
    page.wait_for_selector("#bench:not([hidden])")
    solve(page)
    assert "It could not be solved: The fragment 'a' " in page.text_content("#verdict")
    picture(page, "11-failed")
    page.fill("#grid", "banana")
    page.click("#solve")
    page.wait_for_selector(".error")
    assert "A grid is rows x columns, for example 4x6, or empty for any. 'banana' is not one." in page.text_content(
        ".error"
    )


def test_phone_width(open_page: Open, picture: Picture) -> None:
    page = open_page(390, 844, has_touch=True, is_mobile=True)
    picture(page, "12-phone-start")
    opened_solved(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    before = names(page)
    cells = page.locator("[role=gridcell]")
    cells.nth(0).tap()
    page.tap("#move")
    cells.nth(4).tap()
    assert names(page)[4].startswith(before[0].split(",")[0])
    page.tap("#turn")
    picture(page, "13-phone", full_page=True)
    assert page.locator("#turn").bounding_box()["height"] >= 40
    # A finger that rests on a fragment picks it up; one that moves at once scrolls.
    moved, scrolled = names(page)[0].split(",")[0], page.evaluate("scrollY")
    long_drag(page, cells.nth(0), cells.nth(2))
    assert names(page)[2].startswith(f"{moved}, row 1, column 3")
    assert page.evaluate("scrollY") == scrolled
    cells.nth(4).tap()
    page.tap("#compare")
    page.wait_for_selector("#comparer[open]")
    picture(page, "14-phone-compare")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(open_page: Open, scheme: str) -> None:
    """Every pair of text and ground that the page uses has a contrast of at least 4.5 (WCAG AA)."""
    page = open_page(color_scheme=scheme)
    colours = page.evaluate(
        "names => names.map(n => getComputedStyle(document.documentElement).getPropertyValue(n).trim())",
        ["--ink", "--soft", "--accent", "--warn", "--accent-ink", "--paper", "--card", "--table", "--warn-soft"],
    )
    ink, soft, accent, warn, accent_ink, paper, card, table, warn_soft = colours
    pairs = [(ink, paper), (ink, card), (soft, paper), (soft, card), (soft, table), (accent_ink, accent), (warn, paper)]
    for text, ground in [*pairs, (accent, card), (ink, warn_soft)]:
        assert contrast(text, ground) >= 4.5, (text, ground)


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_nothing_without_a_name(open_page: Open) -> None:
    """Every button and field can be found by a screen reader."""
    page = open_page()
    opened_solved(page)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, [role=gridcell]')].filter(e => !e.closest('dialog') &&
             e.getAttribute('aria-hidden') !== 'true' && e.type !== 'file' &&
             !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert unnamed == []
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
