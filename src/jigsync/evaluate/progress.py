"""How long work says where it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""report(what, done, total), called now and then."""


def silent(what: str, done: int, total: int) -> None:
    """Reports nothing."""
