"""A folder in which a server keeps its puzzles and jobs, so that a killed one goes on where it was.

    DIR/puzzles/<id>.zip     the puzzle's folder, with kept.json and, when it came with one, project.json
    DIR/jobs/<id>.json       what was asked for, and once it is finished the answer, sealed
    DIR/.lock                held by the server

A file is whole before the request that made it is answered: what a client was told of is there after a kill. A job
that had not finished is solved again, which gives the same answer. A damaged file is named on stderr and left alone; it
costs the puzzle or job that it holds, not the others.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from jigsync.io.files import atomic_file, cannot, read_json, remove_leftovers, write_json
from jigsync.io.seal import SEAL, check_seal, sealed
from jigsync.values.errors import FormatError, JigsyncError, OptionError
from jigsync.web.models import KeptJob, plain
from jigsync.web.project import checked

LOCK_FILE: Final = ".lock"

log = logging.getLogger("jigsync.web")


class Kept:
    """The folder, open and locked; one server at a time."""

    def __init__(self, folder: Path) -> None:
        self._puzzles, self._jobs = folder / "puzzles", folder / "jobs"
        try:
            for part in (folder, self._puzzles, self._jobs):
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock: BinaryIO = open(folder / LOCK_FILE, "ab")  # noqa: SIM115 - open as long as the server
        except OSError as error:
            raise cannot("used to keep puzzles in", folder, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise OptionError(f"Another server keeps its puzzles in '{folder}': name another folder.") from None
        for part in (self._puzzles, self._jobs):
            remove_leftovers(part)

    def close(self) -> None:
        """Lets others have the folder."""
        self._lock.close()

    def put_puzzle(self, name: str, packed: Path) -> None:
        """Keeps a puzzle that a worker has packed into a zip file."""
        with open(packed, "rb") as source, atomic_file(self._puzzles / f"{name}.zip") as file:
            shutil.copyfileobj(source, file)

    def put_job(self, job: KeptJob) -> None:
        """Keeps a job."""
        write_json(self._jobs / f"{job.id}.json", sealed(plain(job)))

    def drop_puzzle(self, name: str) -> None:
        """Forgets a puzzle."""
        (self._puzzles / f"{name}.zip").unlink(missing_ok=True)

    def drop_job(self, name: str) -> None:
        """Forgets a job."""
        (self._jobs / f"{name}.json").unlink(missing_ok=True)

    def puzzles(self) -> list[Path]:
        """The zip files of the puzzles that are there, oldest first; a file's stem is the puzzle's id."""
        return sorted(self._puzzles.glob("*.zip"), key=_age)

    def jobs(self) -> Iterator[KeptJob]:
        """The jobs that are there, in the order they were asked for."""
        found = []
        for path in self._jobs.glob("*.json"):
            try:
                found.append(_read_job(path))
            except JigsyncError as error:
                log.warning("jigsync: The kept job '%s' is left out: %s", path, error)
        return iter(sorted(found, key=lambda job: job.number))


def _age(path: Path) -> tuple[int, str]:
    return path.lstat().st_mtime_ns, path.name


def _read_job(path: Path) -> KeptJob:
    value = read_json(path)
    if not isinstance(value, dict):
        raise FormatError(f"The file '{path}' must be a JSON object.")
    check_seal(value, os.fspath(path))
    return checked(KeptJob, {key: part for key, part in value.items() if key != SEAL}, f"file '{path}'")
