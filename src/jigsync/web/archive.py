"""What a person dropped -> named bytes, held against the limits while it is unpacked and before it is decoded.

Names are data, never paths: nothing is ever written under a name that came from outside.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, NamedTuple

from jigsync.values.errors import FormatError, InputError, JigsyncError
from jigsync.web.limits import Limits, Refusal, plenty

JUNK: Final = frozenset(("__MACOSX", "Thumbs.db", "desktop.ini"))
ZIP: Final = b"PK\x03\x04"
_BLOCK: Final = 1 << 16
_LONGEST_END: Final = 20 + 22 + 65535
"""Bytes of a zip's last record, its comment and the record before that says where a larger one is."""
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


class Budget:
    """What an upload may still unpack to: one for all its files and zips, so that many are no way round it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes, self._files = limits.upload_bytes, limits.files

    @property
    def left(self) -> int:
        """Bytes."""
        return self._bytes

    def take_file(self) -> None:
        """One more file; Refusal 413 when it is one too many."""
        self.check_files(1)
        self._files -= 1

    def check_files(self, more: int) -> None:
        """Refusal 413 when there is no room for so many more files."""
        if more > self._files:
            raise Refusal(413, f"An upload must hold at most {self._limits.files:,} files: this one holds more.")

    def take(self, size: int) -> None:
        """So many more bytes; Refusal 413 when they are too many."""
        self.check(size)
        self._bytes -= size

    def check(self, more: int) -> None:
        """Refusal 413 when there is no room for so many more bytes."""
        if more > self._bytes:
            limit = plenty(self._limits.upload_bytes)
            raise Refusal(413, f"An upload must unpack to at most {limit} bytes: this one has more.")


class Window(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As of any file."""
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """As of any file."""
        self._file.seek(self._start + min(self._at, self._size))
        data = self._file.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def entries_of(files: Iterable[tuple[str, BinaryIO]], limits: Limits) -> list[Entry]:
    """All files, zips unpacked (not the zips inside them); hidden and system files are left out."""
    budget = Budget(limits)
    found: list[Entry] = []
    for name, file in files:
        kind = file.read(len(ZIP))
        file.seek(0)
        if kind == ZIP:
            found += _unpack(name, file, limits, budget)
            continue
        budget.take_file()
        data = file.read(budget.left + 1)
        budget.take(len(data))
        if parts := _parts(name):
            found.append(Entry(parts, data))
    return found


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a relative name; empty for what nobody meant to send. FormatError when it leads outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = tuple(part for part in path.parts if part not in (".", ""))
    if path.is_absolute() or ".." in parts or "\0" in name or (parts and parts[0].endswith(":")):
        raise FormatError(f"The entry '{readable(name)}' leads outside the upload: it is refused.")
    if not parts or any(part.startswith(".") or part in JUNK for part in parts):
        return ()
    return parts


def _unpack(name: str, file: BinaryIO, limits: Limits, budget: Budget) -> list[Entry]:
    shown = readable(name)
    _check_directory(file, shown, limits)
    found = []
    try:
        with zipfile.ZipFile(file) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            budget.check_files(len(infos))
            budget.check(sum(info.file_size for info in infos))
            for info in infos:
                parts = _parts(info.filename)
                if info.flag_bits & 1:
                    raise InputError(f"The zip file '{shown}' is encrypted: unpack it first.")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise InputError(f"The zip file '{shown}' must be packed by the usual method, deflate.")
                if not parts or stat.S_ISLNK(info.external_attr >> 16):
                    continue
                budget.take_file()
                found.append(Entry(parts, _read(archive, info, budget)))
    except (JigsyncError, Refusal, MemoryError):
        raise
    except Exception as error:  # a broken file leads zipfile into errors of any kind
        raise FormatError(f"The zip file '{shown}' cannot be unpacked: {readable(str(error)).rstrip('.')}.") from None
    return found


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> bytes:
    """An entry's bytes. Asked for all of them at once, zipfile unpacks up to 1 GB before it looks at the size that the
    directory gives; asked for a block, no more than that block."""
    blocks = []
    with archive.open(info) as file:
        while block := file.read(_BLOCK):
            budget.take(len(block))
            blocks.append(block)
    return b"".join(blocks)


def _check_directory(file: BinaryIO, shown: str, limits: Limits) -> None:
    """zipfile reads the whole directory into memory when it opens a file: look at its size before."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - _LONGEST_END))
    data = file.read(_LONGEST_END)
    end = data.rfind(b"PK\x05\x06")
    if end < 0 or end + 22 > len(data):
        raise FormatError(f"The zip file '{shown}' cannot be unpacked: its directory is missing.")
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    if size > _LARGEST_RECORD * limits.files or data[max(0, end - 20) : end - 16] == b"PK\x06\x07":
        raise Refusal(413, f"A zip file must hold at most {limits.files:,} files: '{shown}' holds more.")
