"""Files that are either whole or absent: atomic writes, checked JSON, JSON lines that survive a kill.

A file is written to a hidden temporary sibling, flushed to the disk and renamed; a folder likewise. Whatever goes
wrong on the way, the temporary one is removed and the old contents still stand. Every refusal by the operating
system becomes one sentence (`InputError`), every malformed text a `FormatError` that names the file.

What writes and reads whole files takes a `Remote` too (jigsync.io.remote): there the store keeps that promise.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from jigsync.io.refusals import StrPath as StrPath
from jigsync.io.refusals import cannot as cannot
from jigsync.io.refusals import reason_of as reason_of
from jigsync.io.remote import PREFIX, SUFFIX, Place, Remote, temporary_name
from jigsync.values.errors import FormatError, InputError, OptionError

_BLOCK: Final = 1 << 16
JSON_LIMIT: Final = 64 * 2**20
"""Largest JSON file that is read, in bytes."""


# ---------------------------------------------------------------------------------------------- writing


@contextmanager
def atomic_file(path: StrPath) -> Iterator[BinaryIO]:
    """Yields a binary file that becomes `path`, whole, when the block ends well. Parent folders are made.

    What goes to a `Remote` is held in memory until then.
    """
    if isinstance(path, Remote):
        held = io.BytesIO()
        yield held
        path.write(held.getvalue())
        return
    target = Path(path)
    with _parents(target):
        _clear_once(target.parent)
        temporary, handle = _claimed(target, _new_file)
        try:
            with open(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(target.parent)


def write_bytes(path: StrPath, data: bytes) -> None:
    """Writes a whole file or nothing."""
    with atomic_file(path) as file:
        file.write(data)


def is_leftover(name: str) -> bool:
    """Is it the name of a temporary file?"""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def remove_leftovers(folder: StrPath) -> None:
    """Removes the temporary files and folders that killed processes left in a folder; those of others stay."""
    if isinstance(folder, Remote):
        for name in folder.names():
            if is_leftover(name):
                (folder / name).unlink()
        return
    for path in Path(folder).glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError):  # its process lives, or it is not ours to remove
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
            finally:
                os.close(handle)


def write_json(path: StrPath, value: Any) -> None:
    """Writes a value as indented UTF-8 JSON, keys in the given order; a nan or infinity raises ValueError."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """The bytes `write_json` writes: a pure function of the value."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "backslashreplace")


@contextmanager
def atomic_folder(path: StrPath, *, overwrite: bool = False, ours: Collection[str] = ()) -> Iterator[Path]:
    """Yields a temporary sibling folder that becomes `path`, all at once, when the block ends well.

    Args:
        path: the folder to make; it must not exist or be empty (see `check_output_folder`).
        overwrite: replace a folder that holds nothing but `ours`.
        ours: names this kind of output consists of.
    """
    check_output_folder(path, overwrite=overwrite, ours=ours)
    target = Path(path).resolve()
    with _parents(target):
        remove_leftovers(target.parent)
        temporary, handle = _claimed(target, _new_folder)
        try:
            yield temporary
            for folder, _, names in os.walk(temporary):
                for name in names:
                    _sync(Path(folder, name))
                _sync(Path(folder))
            _swap(temporary, target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            os.close(handle)
        _sync(target.parent)


def check_output_folder(path: StrPath, *, overwrite: bool = False, ours: Collection[str] = ()) -> None:
    """Raises OptionError unless `path` is absent, an empty folder, or holds only `ours` and may be overwritten."""
    try:
        names = sorted(os.listdir(path))
    except FileNotFoundError:
        if os.path.islink(path):
            raise OptionError(
                f"The output '{os.fspath(path)}' must be a folder. Got a link that leads nowhere."
            ) from None
        return
    except (OSError, ValueError) as error:
        if isinstance(error, NotADirectoryError) and os.path.lexists(path):
            raise OptionError(f"The output '{os.fspath(path)}' must be a folder. Got a file instead.") from None
        raise cannot("used as the output folder", path, error) from None
    strangers = [name for name in names if name not in ours]
    if names and not overwrite:
        raise OptionError(
            f"The output folder '{os.fspath(path)}' must be empty or not exist. Got one that holds '{names[0]}'."
        )
    if strangers:
        raise OptionError(
            f"The output folder '{os.fspath(path)}' is not overwritten: it holds '{strangers[0]}', which is not ours."
        )


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Makes the parent folders of `target`; takes the new ones away again when the block fails."""
    made: list[Path] = []
    try:
        for parent in [*reversed(target.parent.parents), target.parent]:
            if not parent.exists():
                parent.mkdir(exist_ok=True)
                made.append(parent)
        yield
    except BaseException as error:
        for parent in reversed(made):
            try:
                parent.rmdir()
            except OSError:
                break
        if isinstance(error, OSError | ValueError):
            raise cannot("written", target, error) from error
        raise


def _sibling(target: Path) -> Path:
    """A hidden name next to `target` that nobody uses."""
    return target.parent / temporary_name()


def _claimed(target: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    """A new temporary file or folder next to `target`, and its open handle, locked: the lock falls with its process,
    which tells what a killed one has left from what is being written."""
    while True:
        path = _sibling(target)
        handle = make(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody has just taken it for a leftover
            os.close(handle)
            continue
        except OSError:  # there are no locks here, so nobody takes anything for a leftover
            return path, handle
        if path.exists():
            return path, handle
        os.close(handle)


def _new_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _new_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, os.O_RDONLY)


@lru_cache(maxsize=256)
def _clear_once(folder: Path) -> None:
    """Removes what killed processes left in a folder, the first time that this process writes there."""
    remove_leftovers(folder)


def _swap(temporary: Path, target: Path) -> None:
    """Puts the folder `temporary` at `target`; an old folder steps aside first, and back when that fails."""
    if not target.exists():
        os.rename(temporary, target)
        return
    aside = _sibling(target)
    os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except BaseException:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _sync(path: Path) -> None:
    """Flushes a file or, where the system can, a folder's entries to the disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ---------------------------------------------------------------------------------------------- reading


def read_bytes(path: StrPath, limit: int) -> bytes:
    """A file's bytes; InputError when it is missing, unreadable, a folder, or larger than `limit` bytes."""
    if isinstance(path, Remote):
        return path.read(limit)
    with open_plain(path) as file:
        try:
            # As many as there are, not as many as there may be: that much memory would be taken first.
            data = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
            while len(data) <= limit and (more := file.read(_BLOCK)):
                data += more
        except OSError as error:
            raise cannot("read", path, error) from None
    _check_size(data, path, limit)
    return data


def leads_outside(path: StrPath, folder: StrPath) -> bool:
    """Is a path, its links followed, not inside the folder? What a folder was given for is what is in it."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def open_plain(path: StrPath) -> io.BufferedReader:
    """A file, open to be read; InputError when it is missing, unreadable or not plain: a pipe would be waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise cannot("read", path, error) from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise cannot("read", path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    raise InputError(f"The path '{os.fspath(path)}' cannot be read: it must be a plain file.")


def _check_size(data: bytes, name: StrPath, limit: int) -> None:
    if len(data) > limit:
        raise InputError(f"The file '{os.fspath(name)}' must have at most {limit} bytes. It has more.")


def list_names(folder: Place) -> list[str]:
    """What is in an output folder, sorted; nothing when there is no such folder. What a kill left does not count."""
    try:
        names = folder.names() if isinstance(folder, Remote) else os.listdir(folder)
        return sorted(name for name in names if not is_leftover(name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot("used as the output folder", folder, error) from None


def read_json(path: StrPath, limit: int = JSON_LIMIT) -> Any:
    """The value of a JSON file. Refuses nan, infinities, repeated keys, lone surrogates and endless nesting."""
    return parse_json(read_bytes(path, limit), os.fspath(path), limit)


def parse_json(data: bytes, name: str, limit: int = JSON_LIMIT) -> Any:
    """The value of JSON bytes, at most `limit` of them; `name` is the file they came from, for the error's sentence.

    What is parsed takes up to thirty times the memory of its text.
    """
    _check_size(data, name, limit)
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite_float, object_pairs_hook=_unique_keys
        )
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"The file '{name}' must be UTF-8 text. Got byte {error.object[error.start]:#04x}.") from None
    except UnicodeEncodeError:
        raise FormatError(f"The file '{name}' must be UTF-8 text. Got a lone surrogate.") from None
    except RecursionError:
        raise FormatError(f"The file '{name}' is not usable JSON: it is nested too deeply.") from None
    except ValueError as error:
        raise FormatError(f"The file '{name}' is not valid JSON: {error}.") from None
    return value


_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_short(text)} is too large")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {_short(twice)!r} stands twice in one object")
    return value


# ---------------------------------------------------------------------------------------------- JSON lines


def json_line(row: dict[str, Any]) -> bytes:
    """One compact line of JSON, newline included."""
    return (json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def write_jsonl(path: StrPath, rows: Iterable[dict[str, Any]]) -> None:
    """Writes all rows, atomically."""
    write_bytes(path, b"".join(json_line(row) for row in rows))


def append_jsonl(path: StrPath, rows: Iterable[dict[str, Any]]) -> None:
    """Appends rows and flushes them to the disk; a torn last line left by a kill is cut off first."""
    target = Path(path)
    with _parents(target), open(target, "a+b") as file:
        file.seek(0)
        old = file.read()
        kept, rest = _split_torn(old)
        if kept != old:
            file.truncate(len(kept))
        file.write((b"\n" if rest else b"") + b"".join(json_line(row) for row in rows))
        file.flush()
        os.fsync(file.fileno())


def read_jsonl(path: StrPath, limit: int = 16 * JSON_LIMIT) -> list[dict[str, Any]]:
    """All rows of a JSON-lines file. A torn last line (killed while writing) is left out; any other is an error."""
    kept, _ = _split_torn(read_bytes(path, limit))
    rows = []
    for number, line in enumerate(kept.split(b"\n"), start=1):
        if line.strip():
            row = parse_json(line, f"{os.fspath(path)}:{number}")
            if not isinstance(row, dict):
                raise FormatError(f"Line {number} of the file '{os.fspath(path)}' must be a JSON object.")
            rows.append(row)
    return rows


def _split_torn(data: bytes) -> tuple[bytes, bool]:
    """(bytes without a torn last line, does the last kept line lack its newline?)."""
    end = data.rfind(b"\n") + 1
    last = data[end:]
    if not last:
        return data, False
    try:
        whole = isinstance(parse_json(last, ""), dict)
    except InputError:
        whole = False
    return (data, True) if whole else (data[:end], False)
