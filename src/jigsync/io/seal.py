"""A checksum inside a JSON object, so that a flipped bit is found where the value would still look plausible.

The key `sha256` holds the hash of the object without it, in one fixed form: keys sorted, no blanks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from jigsync.values.errors import FormatError

SEAL: Final = "sha256"


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its checksum."""
    return {**value, SEAL: checksum(value)}


def checksum(value: Any) -> str:
    """The hash of plain JSON values; the key SEAL on top is left out."""
    plain = {key: part for key, part in value.items() if key != SEAL} if isinstance(value, Mapping) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def check_seal(value: Mapping[str, Any], file: str) -> None:
    """FormatError, naming the file, unless the object is what was sealed."""
    if value.get(SEAL) != checksum(value):
        raise FormatError(f"The file '{file}' is damaged: it is not what its own checksum says.")
