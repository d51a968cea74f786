"""Every view of the page under axe-core, which is in the package axe-playwright-python: nothing serious is found."""

from __future__ import annotations

from typing import Any

import pytest
from hands import Open, drop, solve, wait_for
from scans import apart, cut, lay
from test_canvas import TORN
from web import folder, puzzle_and_truth, zipped

from jigsync.io.images import png_bytes

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
BAD = ("serious", "critical")


def check(page: Any, view: str) -> None:
    found = axe.Axe().run(page).response["violations"]
    bad = [(v["id"], [node["html"][:120] for node in v["nodes"]]) for v in found if v["impact"] in BAD]
    assert bad == [], view


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_nothing_serious(open_page: Open, scheme: str, width: int) -> None:
    page = open_page(width, 860, color_scheme=scheme)
    check(page, "start")
    page.click("#cut-own")
    wait_for(page, "document.getElementById('preview').naturalWidth > 0")
    check(page, "cutter")
    page.keyboard.press("Escape")
    drop(page, "table.png", png_bytes(lay(cut(), apart([30.0, -4.0, 0.0, 75.0, 0.0, -20.0]))))
    page.wait_for_selector("#review:not([hidden])")
    page.focus("#review-table [role=application]")
    page.keyboard.press("n")
    check(page, "review")
    page.click("#start-over")
    drop(page, "torn.zip", zipped(folder(TORN)))
    page.wait_for_selector("#bench:not([hidden])")
    check(page, "canvas before the solve")
    solve(page)
    page.focus("#table [role=application]")
    page.keyboard.press("n")
    page.keyboard.press("f")
    page.wait_for_timeout(800)
    page.click("summary")
    check(page, "canvas after the solve")
    page.click("#start-over")
    drop(page, "grid.zip", zipped(folder(puzzle_and_truth()[0])))
    page.wait_for_selector("#bench:not([hidden])")
    solve(page)
    page.locator("[role=gridcell]").nth(0).click()
    check(page, "grid")
    page.keyboard.press("c")
    page.wait_for_selector("#comparer[open]")
    check(page, "comparer")
