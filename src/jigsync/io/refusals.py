"""How a refusal by the operating system, or by a store, is worded."""

from __future__ import annotations

import os

from jigsync.values.errors import InputError

StrPath = str | os.PathLike[str]


def reason_of(error: BaseException) -> str:
    """The operating system's few words about a failure, without errno and path."""
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)[:300]


def cannot(verb: str, path: StrPath, error: BaseException) -> InputError:
    """The one way such a refusal is worded."""
    shown = os.fspath(path)
    shown = shown if len(shown) <= 500 else shown[:497] + "..."
    return InputError(f"The path '{shown}' cannot be {verb}: {reason_of(error)}.")
