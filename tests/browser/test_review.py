"""The review of a photograph: outlines are put right by mouse and by keyboard, then solved."""

from __future__ import annotations

import json
from typing import Any

from hands import Open, Picture, drop, solve, wait_for
from scans import apart, cut, lay

from jigsync.io.images import png_bytes

TABLE = lay(cut(), apart([30.0, -4.0, 0.0, 75.0, 0.0, -20.0]))


def outlines(page: Any) -> int:
    return int(page.locator("#review [role=option]").count())


def after(page: Any, count: int) -> None:
    """Waits until so many outlines are there."""
    wait_for(page, "n => document.querySelectorAll('#review [role=option]').length === n", count)


def at(page: Any, x: float, y: float) -> tuple[float, float]:
    """Where a pixel of the photograph is on the screen."""
    left, top, k = json.loads(page.get_attribute("#review-table", "data-view"))
    box = page.locator("#review-table canvas").bounding_box()
    return box["x"] + (x - left) * k, box["y"] + (y - top) * k


def draw(page: Any, *points: tuple[float, float]) -> None:
    page.mouse.move(*at(page, *points[0]))
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*at(page, *point), steps=5)
    page.mouse.up()


def test_a_photograph_is_put_right_and_solved(open_page: Open, picture: Picture) -> None:
    page = open_page()
    height, width = TABLE.shape[:2]
    drop(page, "table.png", png_bytes(TABLE))
    page.wait_for_selector("#review:not([hidden])")
    wait_for(page, "Number(document.getElementById('review-table').dataset.frames ?? 0) > 0")
    assert outlines(page) == 6
    assert "Found 6 fragments in 'table.png'." in page.text_content("#review-notes")
    picture(page, "30-review")

    # By keyboard: two are merged, one is dropped, and both are undone.
    page.focus("#review-table [role=application]")
    page.keyboard.press("n")
    page.keyboard.press("Space")
    page.keyboard.press("m")
    after(page, 5)
    page.keyboard.press("Delete")
    after(page, 4)
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    after(page, 6)
    page.keyboard.press("n")
    chosen = page.get_attribute("#review-table [role=application]", "aria-activedescendant")
    assert chosen == "outline-0"
    page.keyboard.press("Escape")

    # By mouse: split, and the two halves merged again; a brush takes off and adds; one is drawn and redrawn.
    page.check("[name=tool][value=split]")
    draw(page, (width * 0.5, 4), (width * 0.5, height * 0.5))
    after(page, 7)
    page.keyboard.press("Control+z")
    after(page, 6)
    page.check("[name=tool][value=draw]")
    draw(page, (width * 0.32, height * 0.42), (width * 0.36, height * 0.42), (width * 0.34, height * 0.56))
    after(page, 7)
    page.check("[name=tool][value=redraw]")
    draw(page, (width * 0.31, height * 0.41), (width * 0.36, height * 0.41), (width * 0.34, height * 0.57))
    wait_for(page, "document.getElementById('spoken').textContent === 'Redrawn.'")
    page.check("[name=tool][value=add]")
    draw(page, (width * 0.34, height * 0.5), (width * 0.34, height * 0.6))
    wait_for(page, "document.getElementById('spoken').textContent === 'Added.'")
    page.check("[name=tool][value=erase]")
    draw(page, (width * 0.34, height * 0.58), (width * 0.36, height * 0.62))
    wait_for(page, "document.getElementById('spoken').textContent === 'Taken off.'")
    picture(page, "31-review-put-right")
    page.click("#review-drop")
    after(page, 6)

    # Another background starts anew.
    page.check("[name=tool][value=background]")
    page.mouse.click(*at(page, 6, 6))
    wait_for(page, "document.getElementById('spoken').textContent.startsWith('Found')")
    assert outlines(page) == 6

    page.click("#review-use")
    page.wait_for_selector("#bench:not([hidden])")
    assert page.text_content("#title") == "table · 6 fragments"
    solve(page)
    assert "of 6 fragments placed" in page.text_content("#verdict")
    picture(page, "32-from-the-photograph")


def test_several_photographs_on_a_phone(open_page: Open, picture: Picture) -> None:
    page = open_page(390, 844, has_touch=True, is_mobile=True)
    one, other = (
        {"name": f"{name}.png", "mimeType": "image/png", "buffer": png_bytes(TABLE)} for name in ("left", "right")
    )
    page.set_input_files("#photographs", [one, other])
    page.wait_for_selector("#review:not([hidden])")
    assert page.text_content("#review-use") == "Use these 12 fragments"
    assert page.locator("#review-sheets button").all_text_contents() == ["left.png (6)", "right.png (6)"]
    page.tap("#review-sheets button:nth-child(2)")
    page.touchscreen.tap(*at(page, TABLE.shape[1] * 0.5, TABLE.shape[0] * 0.27))
    page.tap("#review-drop")
    assert page.text_content("#review-use") == "Use these 11 fragments"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    picture(page, "33-review-phone", full_page=True)
    page.tap("#review-use")
    page.wait_for_selector("#bench:not([hidden])")
    assert page.text_content("#title") == "left · 11 fragments"
