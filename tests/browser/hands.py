"""What a person does on the page, for the tests in a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Open = Callable[..., Any]
Picture = Callable[..., None]

DROP = """
([name, bytes]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], name));
  const options = {dataTransfer: transfer, bubbles: true, cancelable: true};
  for (const type of ['dragenter', 'dragover', 'drop'])
    document.getElementById('drop').dispatchEvent(new DragEvent(type, options));
}
"""


def drop(page: Any, name: str, content: bytes) -> None:
    page.evaluate(DROP, [name, list(content)])


def wait_for(page: Any, expression: str, argument: Any = None, seconds: float = 60) -> None:
    """Waits until an expression holds; playwright's own way needs eval, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression, argument):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(30)


def solve(page: Any) -> None:
    page.click("#solve")
    wait_for(page, "document.getElementById('verdict').dataset.job !== ''")
    page.wait_for_selector("#solve:not([hidden])")


def keep(page: Any, what: str) -> tuple[str, bytes]:
    with page.expect_download() as waiting:
        page.click(f"[data-keep={what}]")
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()
