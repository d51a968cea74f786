"""How a refusal by the operating system, or by a store, is worded."""

from __future__ import annotations

import os

from jigsync.errors import InputError

StrPath = str | os.PathLike[str]


def reason_of(error: BaseException) -> str:
    """The operating system's few words about a failure, without errno and path."""
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def cannot(verb: str, path: StrPath, error: BaseException) -> InputError:
    """The one way such a refusal is worded."""
    return InputError(f"The path '{os.fspath(path)}' cannot be {verb}: {reason_of(error)}.")
