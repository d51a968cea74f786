"""What the workbench takes at most. Everything that comes over HTTP is held against these numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from jigsync.values.errors import OptionError, bad_value
from jigsync.values.layout import CELLS_PER_FRAGMENT

MOST_FRAGMENTS: Final = 5000
"""Largest limit on the fragments of a puzzle: as many as a scan may show."""

SOLUTION_BYTES: Final = 400
"""That a fragment may take in solution.json."""


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    Attributes:
        upload_bytes: of a request's body, and of all that is in the zip files of an upload together.
        json_bytes: of a request's body that is neither an upload nor a project, and of a puzzle.json in an upload.
        project_bytes: of a project, sent to be kept or found in an upload.
        header_bytes: of a request's line and headers.
        arriving_bytes: of all bodies that are being received or worked on.
        pixels: of one picture, and of all fragments of a puzzle together.
        fragments: of a puzzle.
        files: in an upload, those in its zip files counted.
        running_jobs, waiting_jobs: puzzles that are solved at the same time, and that wait for that.
        connections: open at the same time; beyond them the oldest one that has asked nothing makes room.
        open_requests: requests and streams of progress that are not answered to the end.
        arriving_requests: those whose body has not arrived.
        watchers: streams of progress.
        busy_requests: uploads, cuts and drawings that are worked on or wait.
        puzzles, held_pixels: kept at the same time; what was not used for `idle_seconds` makes room.
        solve_seconds: longest solve.
        work_seconds: longest work on any other request.
        small_seconds: after so long a request that looked small is worked on as a large one, from its beginning.
        stop_seconds: a solver that was told to stop and does not is ended after so long.
        worker_bytes: memory of each process that works on what was sent, beyond the files it maps.
        header_seconds: longest time a connection may take to say what it wants.
        silent_seconds: longest pause of a client in the middle of a request or an answer.
        body_rate: bytes per second that a body must bring, once `silent_seconds` are over.
        unwatched_seconds: a job that nobody asked about for so long is cancelled.
    """

    upload_bytes: int = 256_000_000
    json_bytes: int = 1_000_000
    project_bytes: int = 32_000_000
    header_bytes: int = 32_768
    arriving_bytes: int = 1_000_000_000
    pixels: int = 100_000_000
    fragments: int = 1000
    files: int = 2000
    running_jobs: int = 2
    waiting_jobs: int = 8
    connections: int = 512
    open_requests: int = 256
    arriving_requests: int = 64
    watchers: int = 96
    busy_requests: int = 64
    puzzles: int = 128
    held_pixels: int = 300_000_000
    idle_seconds: float = 600.0
    solve_seconds: float = 600.0
    work_seconds: float = 120.0
    small_seconds: float = 5.0
    stop_seconds: float = 5.0
    worker_bytes: int = 1_500_000_000
    header_seconds: float = 10.0
    silent_seconds: float = 30.0
    body_rate: float = 20_000.0
    unwatched_seconds: float = 120.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < (0 if name in ("waiting_jobs", "idle_seconds") else 1e-3):
                raise OptionError(f"The limit '{name}' of the workbench must be above 0. Got {value} instead.")
        if self.fragments > MOST_FRAGMENTS:
            raise bad_value("fragments", "the workbench's limits", f"at most {MOST_FRAGMENTS}", self.fragments)

    @property
    def cells(self) -> int:
        """Of any grid."""
        return CELLS_PER_FRAGMENT * self.fragments

    @property
    def solution_bytes(self) -> int:
        """Of a body that is neither an upload nor a project: with a solution of this many fragments, it fits."""
        return min(max(self.json_bytes, SOLUTION_BYTES * self.fragments), self.upload_bytes)


class Refusal(Exception):
    """A request that is turned down: HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after


STOPPING = "The workbench is being stopped."


def plenty(number: int) -> str:
    """A large number for people: 256 million."""
    return f"{number / 1e6:g} million" if number >= 10**6 else f"{number:,}"
