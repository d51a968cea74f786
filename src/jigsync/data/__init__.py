"""Pictures that ship with the package, all public domain or CC0; ORIGIN.md names where each comes from."""

from __future__ import annotations

from pathlib import Path

from jigsync.values.errors import OptionError

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Names of the bundled pictures, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.jpg")))


def picture(name: str) -> Path:
    """The file of a bundled picture."""
    if name not in names():
        raise OptionError(f"The bundled picture must be one of {', '.join(names())}. Got {name!r} instead.")
    return _FOLDER / f"{name}.jpg"
