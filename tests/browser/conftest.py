"""A real browser (Debian's chromium) before a real server; pictures of every page go to build/screenshots/."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the helpers beside the other tests

from web import Server, serving

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no chromium: `make test` installs Debian's when it runs as root on Debian")
    from playwright.sync_api import sync_playwright

    # Chromium refuses to run as root inside its sandbox, and containers run as root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=arguments)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, server: Server) -> Iterator[Callable[..., Any]]:
    """Opens the workbench in a fresh window; a complaint on the browser's console fails the test."""
    contexts, complaints = [], []

    def opened(width: int = 1280, height: int = 860, allowed: str = "", **options: Any) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce", accept_downloads=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("dialog", lambda dialog: dialog.accept())
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text)
                if message.type in ("error", "warning") and not (allowed and allowed in message.text)
                else None
            ),
        )
        page.goto(server.url)
        page.wait_for_selector("#example:enabled")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Callable[[Any, str], None]:
    """Keeps a picture of a page."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)

    def keep(page: Any, name: str, **options: Any) -> None:
        page.screenshot(path=SCREENSHOTS / f"{name}.png", **options)

    return keep
