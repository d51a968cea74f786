"""The one way to a terminal: whatever a file, a folder or a client is called, it cannot move the cursor or paint.

Names may hold anything but a slash and a zero byte. `plain` replaces what is not there to be read; `say`, `console` and
`to_stderr` print nothing that has not been through it.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_RECORD: Final = 8000
"""Characters of a log record that are printed."""


def plain(text: str) -> str:
    """The text with `?` for every character that is neither printable nor a newline."""
    if all(line.isprintable() for line in text.split("\n")):
        return text
    return "".join(c if c == "\n" or c.isprintable() else " " if c == "\t" else "?" for c in text)


def say(text: str, *, err: bool = False) -> None:
    """Prints a text for a person, on stdout or stderr."""
    stream = sys.stderr if err else sys.stdout
    coding = getattr(stream, "encoding", None) or "utf-8"
    print(plain(text).encode(coding, "replace").decode(coding), file=stream)


def say_line(text: str, *, err: bool = False) -> None:
    """Prints a sentence, on one line whatever is named in it."""
    say(" ".join(text.split()), err=err)


def say_json(value: Any) -> None:
    """Prints a value for a program, on stdout; control characters are escaped, as JSON may have them."""
    print(json.dumps(value).replace("\x7f", "\\u007f"))


def console(*, err: bool = False) -> Console:
    """A rich console for tables and progress."""
    from collections.abc import Iterable

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Plain(Console):
        """Every text is made plain when it is rendered, before colours are put around it."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(plain(segment.text), segment.style)

    return Plain(stderr=err, highlight=False)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = plain(super().format(record))
        return text if len(text) <= LONGEST_RECORD else text[:LONGEST_RECORD] + "..."


class _Sparing(logging.Filter):
    """Lets so many records through in every `seconds`, and says how many it did not."""

    def __init__(self, most: int, seconds: float) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._begun, self._count = -seconds, 0
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        with self._lock:
            now = time.monotonic()
            if now - self._begun >= self._seconds:
                left_out = self._count - self._most
                self._begun, self._count = now, 0
                if left_out > 0:
                    record.msg = f"({left_out} messages before this one were left out.)\n{record.getMessage()}"
                    record.args = None
            self._count += 1
            return self._count <= self._most


def to_stderr(most: int | None = None, seconds: float = 60.0) -> logging.Handler:
    """A handler that prints log records for a person on stderr.

    Args:
        most: at most so many in every `seconds`; None for all.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(message)s"))
    if most is not None:
        handler.addFilter(_Sparing(most, seconds))
    return handler
