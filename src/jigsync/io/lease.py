"""One writer a folder.

On a local file system that is a lock, which falls with its process, however it ends. A store has no such thing: there
the writer keeps an object that it writes anew every BEAT seconds. Whoever finds one watches it: when it changes, its
writer lives and the newcomer is refused; when it stays as it is for LEASE seconds, the writer is dead and its place is
taken. No clocks are compared. A lease saves double work and mixed requests; that shards are right does not rest on it,
for two writers of the same request write the same bytes.
"""

from __future__ import annotations

import fcntl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jigsync.io.remote import Place, Remote
from jigsync.values.errors import InputError, OptionError

LOCK_FILE: Final = ".lock"
BEAT = 5.0
LEASE = 20.0
_LIMIT: Final = 1000


@contextmanager
def only_writer(folder: Place) -> Iterator[None]:
    """Holds a folder; OptionError when another process has it."""
    with _leased(folder) if isinstance(folder, Remote) else _locked(folder):
        yield


def _taken(folder: Place) -> OptionError:
    return OptionError(f"Another process is writing to '{folder}': wait for it or name a new folder.")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK_FILE, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(folder) from None
        yield


@contextmanager
def _leased(folder: Remote) -> Iterator[None]:
    lock = folder / LOCK_FILE
    owner = uuid.uuid4().hex
    if not lock.create(_text(owner, 0)):
        _watch(lock, folder)
        lock.write(_text(owner, 0))
    over = threading.Event()
    beating = threading.Thread(target=_keep, args=(lock, owner, over), daemon=True)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()
        if _owner(lock) == owner:
            lock.unlink()


def _watch(lock: Remote, folder: Remote) -> None:
    """Comes back when the lock's writer is gone or dead; raises when it lives."""
    first, until = _read(lock), time.monotonic() + LEASE
    while (now := _read(lock)) == first and time.monotonic() < until:
        time.sleep(LEASE / 20)
    if now not in (first, b""):
        raise _taken(folder)


def _keep(lock: Remote, owner: str, over: threading.Event) -> None:
    """Writes the lock anew until it is over, or until another has taken it for dead."""
    count = 0
    while not over.wait(BEAT):
        count += 1
        try:
            if _owner(lock) != owner:
                return
            lock.write(_text(owner, count))
        except InputError:
            continue  # the store did not answer: the next beat may get through


def _text(owner: str, count: int) -> bytes:
    return f"{owner} {count}\n".encode()


def _owner(lock: Remote) -> str:
    return _read(lock).decode("ascii", "replace").partition(" ")[0]


def _read(lock: Remote) -> bytes:
    """The lock's bytes, empty when there is none."""
    try:
        return lock.read(_LIMIT)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return b""
        raise
