"""What the workbench takes at most. Everything that comes over HTTP is held against these numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from jigsync.values.errors import OptionError


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    Attributes:
        upload_bytes: of a request's body, and of a zip file's contents.
        json_bytes: of a request's body that is not an upload.
        arriving_bytes: of all bodies that are being received.
        pixels: of one picture, and of all fragments of a puzzle together.
        fragments: of a puzzle.
        files: in an upload or a zip file.
        running_jobs, waiting_jobs: puzzles that are solved at the same time, and that wait for that.
        open_requests: requests and streams of progress that are not answered to the end.
        busy_requests: uploads, cuts and drawings that are worked on or wait.
        puzzles, held_pixels: kept at the same time; what was not used for `idle_seconds` makes room.
        solve_seconds: longest solve.
        silent_seconds: longest pause of a client in the middle of a request.
        unwatched_seconds: a job that nobody asked about for so long is cancelled.
    """

    upload_bytes: int = 256_000_000
    json_bytes: int = 32_000_000
    arriving_bytes: int = 2_000_000_000
    pixels: int = 100_000_000
    fragments: int = 1000
    files: int = 2000
    running_jobs: int = 2
    waiting_jobs: int = 8
    open_requests: int = 256
    busy_requests: int = 128
    puzzles: int = 128
    held_pixels: int = 300_000_000
    idle_seconds: float = 600.0
    solve_seconds: float = 600.0
    silent_seconds: float = 30.0
    unwatched_seconds: float = 120.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < (0 if name in ("waiting_jobs", "idle_seconds") else 1e-3):
                raise OptionError(f"The limit '{name}' of the workbench must be above 0. Got {value} instead.")


class Refusal(Exception):
    """A request that is turned down: HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after


def plenty(number: int) -> str:
    """A large number for people: 256 million."""
    return f"{number / 1e6:g} million" if number >= 10**6 else f"{number:,}"
