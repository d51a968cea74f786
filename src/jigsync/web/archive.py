"""What a person dropped -> named bytes, held against the limits before anything is unpacked or decoded.

Names are data, never paths: nothing is ever written under a name that came from outside.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from jigsync.values.errors import FormatError, InputError, JigsyncError
from jigsync.web.limits import Limits, Refusal, plenty

JUNK: Final = frozenset(("__MACOSX", "Thumbs.db", "desktop.ini"))
ZIP: Final = b"PK\x03\x04"
_LARGEST_RECORD: Final = 512  # bytes of one entry in a zip's directory that we put up with


class Entry(NamedTuple):
    """One file: the parts of its relative name, and its bytes."""

    parts: tuple[str, ...]
    data: bytes

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def shown(self) -> str:
        """The whole name, for messages; cut short, unprintable characters replaced."""
        return readable("/".join(self.parts))


def readable(text: str, longest: int = 80) -> str:
    """A name from outside, fit to be shown."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def entries_of(files: Iterable[tuple[str, bytes]], limits: Limits) -> list[Entry]:
    """All files, zips unpacked (not the zips inside them); hidden and system files are left out."""
    found: list[Entry] = []
    for name, data in files:
        if data[:4] == ZIP:
            found += _unpack(name, data, limits)
        else:
            found += _entry(name, data)
        if len(found) > limits.files:
            raise Refusal(413, f"An upload must hold at most {limits.files:,} files: this one holds more.")
    if sum(len(entry.data) for entry in found) > limits.upload_bytes:
        raise Refusal(413, _unpacked(limits))
    return found


def _entry(name: str, data: bytes) -> list[Entry]:
    parts = _parts(name)
    return [Entry(parts, data)] if parts else []


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a relative name; empty for what nobody meant to send. FormatError when it leads outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = tuple(part for part in path.parts if part not in (".", ""))
    if path.is_absolute() or ".." in parts or "\0" in name or (parts and parts[0].endswith(":")):
        raise FormatError(f"The entry '{readable(name)}' leads outside the upload: it is refused.")
    if not parts or any(part.startswith(".") or part in JUNK for part in parts):
        return ()
    return parts


def _unpack(name: str, data: bytes, limits: Limits) -> list[Entry]:
    shown = readable(name)
    _check_directory(data, shown, limits)
    found = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            if len(infos) > limits.files:
                raise Refusal(
                    413, f"A zip file must hold at most {limits.files:,} files: '{shown}' has {len(infos):,}."
                )
            if sum(info.file_size for info in infos) > limits.upload_bytes:
                raise Refusal(413, _unpacked(limits))
            for info in infos:
                parts = _parts(info.filename)
                if info.flag_bits & 1:
                    raise InputError(f"The zip file '{shown}' is encrypted: unpack it first.")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise InputError(f"The zip file '{shown}' must be packed by the usual method, deflate.")
                if not parts or stat.S_ISLNK(info.external_attr >> 16):
                    continue
                # zipfile gives no more than the size that was added up above, whatever the entry unpacks to.
                found.append(Entry(parts, archive.read(info)))
    except (JigsyncError, Refusal):
        raise
    except Exception as error:  # a broken file leads zipfile into errors of any kind
        raise FormatError(f"The zip file '{shown}' cannot be unpacked: {readable(str(error)).rstrip('.')}.") from None
    return found


def _check_directory(data: bytes, shown: str, limits: Limits) -> None:
    """zipfile reads the whole directory into memory when it opens a file: look at its size before."""
    end = data.rfind(b"PK\x05\x06", -(22 + 65535))
    if end < 0 or end + 22 > len(data):
        raise FormatError(f"The zip file '{shown}' cannot be unpacked: its directory is missing.")
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    if size > _LARGEST_RECORD * limits.files or data[max(0, end - 20) : end - 16] == b"PK\x06\x07":
        raise Refusal(413, _too_many(shown, limits))


def _too_many(shown: str, limits: Limits) -> str:
    return f"A zip file must hold at most {limits.files:,} files: '{shown}' holds more."


def _unpacked(limits: Limits) -> str:
    return f"An upload must unpack to at most {plenty(limits.upload_bytes)} bytes: this one has more."
