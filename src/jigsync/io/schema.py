"""A cursor over parsed JSON: every defect becomes one sentence naming the file, the place, what is allowed and what
was found.

    The 'fragments[3].file' of 'a/puzzle.json' must be a string. Got 5 instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.layout import Grid

FRAGMENT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What an id may be: it is a file name on every system, and never a path."""

MAX_SIDE: Final = 99_999
"""Largest number of rows or cols in a file."""


class Node:
    """A JSON value, the file it came from and its place in that file.

    A file has tens of thousands of them: where one stands is put into words when somebody asks.
    """

    __slots__ = ("_above", "_step", "file", "value")

    def __init__(self, value: Any, file: str, place: str = "") -> None:
        self.value, self.file = value, file
        self._above: Node | None = None
        self._step: str | int = place

    @property
    def place(self) -> str:
        """Where it stands, as in 'fragments[3].file'; "" for the whole file."""
        above, step = self._above.place if self._above is not None else "", self._step
        if isinstance(step, int):
            return f"{above}[{step}]"
        shown = step if len(step) <= 60 else step[:57] + "..."
        return f"{above}.{shown}" if above else shown

    def refuse(self, allowed: str) -> FormatError:
        """The error that says what was allowed here."""
        got = repr(self.value)
        got = got if len(got) <= 60 else got[:57] + "..."
        what = f"The '{self.place}' of '{self.file}'" if self.place else f"The file '{self.file}'"
        return FormatError(f"{what} must be {allowed}. Got {got} instead.")

    def key(self, name: str) -> Node:
        """The value under a key that must exist."""
        if name not in self.object():
            place = f"the '{self.place}' of '{self.file}'" if self.place else f"the file '{self.file}'"
            raise FormatError(f"The key '{name}' is missing in {place}.")
        return self._below(name, self.value[name])

    def has(self, name: str) -> bool:
        """Is there such a key?"""
        return name in self.object()

    def object(self) -> dict[str, Any]:
        """A JSON object."""
        if not isinstance(self.value, dict):
            raise self.refuse("a JSON object")
        return self.value

    def items(self) -> Iterator[tuple[str, Node]]:
        """Keys and values of a JSON object, in the file's order."""
        return ((name, self._below(name, value)) for name, value in self.object().items())

    def entries(self, length: int | None = None) -> list[Node]:
        """A JSON list, of a given length."""
        if not isinstance(self.value, list) or (length is not None and len(self.value) != length):
            raise self.refuse("a list" if length is None else f"a list of {length}")
        return [self._below(k, value) for k, value in enumerate(self.value)]

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.refuse("a string")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """A whole number, low <= value <= high; true and 1.0 are none."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            raise self.refuse(f"an integer in {low}..{high}")
        return self.value

    def boolean(self) -> bool:
        """true or false."""
        if not isinstance(self.value, bool):
            raise self.refuse("true or false")
        return self.value

    def number(self, low: float, high: float) -> float:
        """A number, low <= value <= high."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool) or not low <= self.value <= high:
            raise self.refuse(f"a number in {low:g}..{high:g}")
        return float(self.value)

    def optional(self) -> Node | None:
        """None when the value is null."""
        return None if self.value is None else self

    def format(self, expected: str) -> None:
        """Checks the file's own name of its format."""
        found = self.key("format")
        if found.value != expected:
            raise found.refuse(repr(expected))

    def one_of_formats(self, *expected: str) -> str:
        """The file's own name of its format, one of several."""
        found = self.key("format")
        if found.value not in expected:
            raise found.refuse(" or ".join(repr(name) for name in expected))
        return found.text()

    def grid(self) -> Grid:
        """[rows, cols]."""
        rows, cols = self.entries(2)
        return Grid(rows.integer(1, MAX_SIDE), cols.integer(1, MAX_SIDE))

    def fragment_id(self) -> str:
        """A fragment's id."""
        name = self.text()
        if not FRAGMENT_ID.fullmatch(name):
            raise self.refuse("an id of 1 to 64 letters, digits and . _ - that starts with a letter or digit")
        return name

    def _below(self, step: str | int, value: Any) -> Node:
        node = Node(value, self.file)
        node._above, node._step = self, step
        return node


@contextmanager
def named(file: str) -> Iterator[None]:
    """Adds the file's name to what a value's own checks say."""
    try:
        yield
    except JigsyncError as error:
        raise FormatError(f"In the file '{file}': {error}") from None
