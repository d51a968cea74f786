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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import ValidationError

from jigsync.io.files import (
    cannot,
    json_bytes,
    parse_json,
    read_bytes,
    read_json,
    remove_leftovers,
    write_bytes,
    write_json,
)
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.io.seal import SEAL, check_seal, sealed
from jigsync.values.errors import FormatError, JigsyncError, OptionError
from jigsync.web.archive import entries_of
from jigsync.web.limits import Limits, Refusal
from jigsync.web.models import KeptJob, KeptPuzzle, plain
from jigsync.web.project import PROJECT_FILE, zip_bytes
from jigsync.web.store import HeldPuzzle
from jigsync.web.uploads import receive

KEPT_FILE: Final = "kept.json"
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

    def put_puzzle(self, held: HeldPuzzle) -> None:
        """Keeps a puzzle."""
        head = KeptPuzzle(name=held.puzzle.name, notes=list(held.notes), skews=held.skews)
        members = {**puzzle_members(held.puzzle), KEPT_FILE: json_bytes(plain(head))}
        if held.project is not None:
            members[PROJECT_FILE] = json_bytes(plain(held.project))
        write_bytes(self._puzzles / f"{held.id}.zip", zip_bytes(members))

    def put_job(self, job: KeptJob) -> None:
        """Keeps a job."""
        write_json(self._jobs / f"{job.id}.json", sealed(plain(job)))

    def drop_puzzle(self, name: str) -> None:
        """Forgets a puzzle."""
        (self._puzzles / f"{name}.zip").unlink(missing_ok=True)

    def drop_job(self, name: str) -> None:
        """Forgets a job."""
        (self._jobs / f"{name}.json").unlink(missing_ok=True)

    def puzzles(self, limits: Limits, room: Path) -> Iterator[HeldPuzzle]:
        """The puzzles that are there, oldest first; `room` is the private folder they are unpacked in."""
        for path in sorted(self._puzzles.glob("*.zip"), key=_age):
            try:
                yield _read_puzzle(path, limits, room)
            except (JigsyncError, Refusal) as error:
                _left_out("puzzle", path, error)

    def jobs(self) -> Iterator[KeptJob]:
        """The jobs that are there, in the order they were asked for."""
        found = []
        for path in self._jobs.glob("*.json"):
            try:
                found.append(_read_job(path))
            except JigsyncError as error:
                _left_out("job", path, error)
        return iter(sorted(found, key=lambda job: job.number))


def _age(path: Path) -> tuple[int, str]:
    return path.lstat().st_mtime_ns, path.name


def _left_out(what: str, path: Path, error: Exception) -> None:
    log.warning("jigsync: The kept %s '%s' is left out: %s", what, path, error)


def _read_puzzle(path: Path, limits: Limits, room: Path) -> HeldPuzzle:
    # Pixels and fragments are what was let in; packed anew they may take more bytes than they came in.
    roomy = replace(limits, upload_bytes=8 * limits.pixels + limits.upload_bytes, files=limits.fragments + 8)
    entries = entries_of([(os.fspath(path), read_bytes(path, roomy.upload_bytes))], roomy)
    heads = [entry for entry in entries if entry.parts == (KEPT_FILE,)]
    if not heads:
        raise FormatError(f"The file '{path}' holds no '{KEPT_FILE}'.")
    try:
        head = KeptPuzzle.model_validate(parse_json(heads[0].data, f"{path}: {KEPT_FILE}"))
    except ValidationError as error:
        raise FormatError(f"The '{KEPT_FILE}' of '{path}' is not usable: {error.errors()[0]['msg']}.") from None
    got = receive(entries, "fragments", roomy, room, head.name)
    return HeldPuzzle(got.puzzle, tuple(head.notes), head.skews, got.project, id=path.stem)


def _read_job(path: Path) -> KeptJob:
    value = read_json(path)
    if not isinstance(value, dict):
        raise FormatError(f"The file '{path}' must be a JSON object.")
    check_seal(value, os.fspath(path))
    try:
        return KeptJob.model_validate({key: part for key, part in value.items() if key != SEAL})
    except ValidationError as error:
        raise FormatError(f"The file '{path}' is not usable: {error.errors()[0]['msg']}.") from None
