"""How fluid the free canvas is: the time between frames in a real browser while fragments are dragged.

python benchmarks/page_frames.py [--fragments 1000] [--seconds 3] [--json]

It starts the workbench on a free port, opens a puzzle whose fragments all lie on the table, and drags one fragment,
drags all of them, moves the view and zooms, each for so many seconds. A frame's time is from one
`requestAnimationFrame` to the next; 60 frames a second are 16.7 ms each. "Drawing" is what our own code takes of that.
Debian's chromium without a screen draws without a graphics card, so take the figures for an upper bound, and on a
machine that does other work for more than that.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))

from hands import wait_for
from web import serving

import jigsync
from jigsync import data
from jigsync.solution import Solution
from jigsync.values.gauge import Gauge
from jigsync.values.pose import Pose
from jigsync.web.limits import Limits
from jigsync.web.models import ProjectModel, Step
from jigsync.web.project import project_bytes

COUNT = """
() => {
  window.frames_ = [];
  let last = performance.now();
  const tick = (now) => { window.frames_.push(now - last); last = now; window.counting = requestAnimationFrame(tick); };
  window.counting = requestAnimationFrame((now) => { last = now; window.counting = requestAnimationFrame(tick); });
}
"""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fragments", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.fragments, options.seconds)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.fragments} fragments, load average {os.getloadavg()[0]:.1f}")
    for what, row in found.items():
        times = ", ".join(f"{name} {row[name]:.1f}" for name in ("median", "p99", "longest", "drawing"))
        print(f"  {what:<14} {row['frames']:>4} frames, ms: {times}; over 50 ms: {row['over50']}")


def measured(count: int, seconds: float) -> dict[str, dict[str, float]]:
    """What was done -> how long its frames were."""
    from playwright.sync_api import sync_playwright

    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    if chromium is None:
        raise SystemExit("There is no chromium.")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with serving(Limits()) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(server.url)
        page.wait_for_selector("#example:enabled")
        content = table_of(count)
        page.set_input_files("#files", {"name": "many.zip", "mimeType": "application/zip", "buffer": content})
        page.wait_for_selector("#bench:not([hidden])", timeout=120_000)
        wait_for(page, "document.getElementById('table').dataset.loaded === 'all'", seconds=300)
        page.wait_for_timeout(1500)
        found = {what: during(page, what, seconds) for what in ("drag one", "drag all", "move the view", "zoom")}
        browser.close()
    return found


def table_of(count: int) -> bytes:
    """A project file of a puzzle whose fragments lie where they belong, free."""
    rows = next(k for k in range(math.isqrt(count), 0, -1) if count % k == 0)
    puzzle, truth = jigsync.cut_with_truth(data.picture("coffee"), (rows, count // rows), "light", cell=48)
    placed = Solution("ok", "", truth.layout, truth.placement, solver="truth", pitch=truth.pitch)
    free = placed.moved(Pose.identity(), Gauge((0.0,), (1.0,), None))
    step = Step(solution=free)
    return project_bytes(puzzle, ProjectModel(name="many", steps=[step]))


def during(page: Any, what: str, seconds: float) -> dict[str, float]:
    """Frames while something is done."""
    box = page.locator("#table canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.focus("#table [role=application]")
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    if what == "drag all":
        page.keyboard.press("Control+a")
    # Beyond the fragments there is only the table to take hold of.
    start = (box["x"] + 4, box["y"] + 4) if what == "move the view" else middle
    page.mouse.move(*start)
    if what != "zoom":
        page.mouse.down()
    page.wait_for_timeout(200)
    page.evaluate("document.getElementById('table').dataset.longest = '0'")
    page.evaluate(COUNT)
    for k in range(int(seconds * 60)):
        turn = 2 * math.pi * k / 90
        if what == "zoom":
            page.mouse.wheel(0, 40 if k % 60 < 30 else -40)
        else:
            page.mouse.move(start[0] + 160 * math.sin(turn), start[1] + 90 * math.sin(2 * turn))
    frames = np.array(page.evaluate("() => { cancelAnimationFrame(window.counting); return window.frames_; }"))
    paint = float(page.get_attribute("#table", "data-longest") or 0)
    if what != "zoom":
        page.mouse.up()
    page.keyboard.press("Control+z")
    return {
        "frames": len(frames),
        "median": float(np.median(frames)),
        "p99": float(np.percentile(frames, 99)),
        "longest": float(frames.max()),
        "over50": int((frames > 50).sum()),
        "drawing": paint,
    }


if __name__ == "__main__":
    main()
