"""Solving in the background: a few workers, a short queue, progress for whoever watches, and a cancel button.

A job keeps only its latest state and a version number. Watchers look at it when they are ready, so that a slow or dead
watcher never holds up the solver or another watcher. Once it has ended it lets go of the puzzle: finished jobs can be
asked for a while, and must not hold its pixels.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from jigsync.values.errors import JigsyncError
from jigsync.web.crew import Crew, NoMemory, Stopped, TooLong
from jigsync.web.kept import Kept
from jigsync.web.limits import Limits, Refusal
from jigsync.web.models import JobModel, KeptJob, Shown, SolveOptions, plain
from jigsync.web.store import HeldPuzzle

State = Literal["waiting", "running", "done", "failed", "cancelled"]
FINISHED: Final = ("done", "failed", "cancelled")
KEPT: Final = 200
"""Finished jobs that can still be asked for."""

GRACE: Final = 30.0
"""Seconds beyond a quarter more than its time limit after which a solve is ended: a search looks at the clock between
its steps, and measuring does not look at all."""

log = logging.getLogger("jigsync.web")


@dataclass(eq=False)
class Job:
    """One solve.

    Attributes:
        puzzle: its id.
        held: it, until the job has ended.
        number: the job's place in the order they were asked for.
        kept: is it kept on the disk?
    """

    puzzle: str
    held: HeldPuzzle | None
    options: SolveOptions
    number: int = 0
    kept: bool = False
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    version: int = 0
    cancelled: bool = False
    stage: str = ""
    fraction: float = 0.0
    energy: float | None = None
    reason: str = ""
    shown: Shown | None = None
    patience: float = 120.0
    seen: float = field(default_factory=time.monotonic)
    begun: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def model(self) -> JobModel:
        """The job as the interface shows it to somebody who asks."""
        self.seen = time.monotonic()
        seconds = self.seconds if self.state in FINISHED else time.monotonic() - self.begun
        return JobModel(
            id=self.id,
            puzzle=self.puzzle,
            state=self.state,
            stage=self.stage,
            fraction=self.fraction,
            energy=self.energy,
            seconds=round(seconds, 3),
            reason=self.reason,
            shown=self.shown,
        )

    def hear(self, step: Mapping[str, Any]) -> None:
        """Takes in how far the solver is; after the job has ended, nothing more."""
        if self.state in FINISHED:
            return
        self.stage, self.fraction = step["stage"], max(self.fraction, step["fraction"])
        if "shown" in step:
            self.energy = step["energy"]
            self.shown = None if step["shown"] is None else Shown.model_validate(step["shown"])
        self.version += 1

    @property
    def unwanted(self) -> bool:
        """Is the solver to stop?"""
        return self.cancelled or self.forgotten

    @property
    def forgotten(self) -> bool:
        """Has nobody asked about it for too long?"""
        return time.monotonic() - self.seen > self.patience

    def end(self, state: State, reason: str = "", result: Shown | None = None) -> None:
        """The last state of a job; the first one to end it counts."""
        if self.state in FINISHED:
            return
        self.seconds = time.monotonic() - self.begun
        self.reason = reason
        if result is not None:
            self.shown, self.fraction = result, 1.0
        self.state = state
        self.version += 1

    @property
    def finished(self) -> bool:
        """Is there nothing more to come?"""
        return self.state in FINISHED


class Jobs:
    """All jobs of a server.

    Attributes:
        closing: is the server about to end?
    """

    def __init__(self, limits: Limits, crew: Crew, kept: Kept | None = None) -> None:
        self._limits = limits
        self._crew = crew
        self._kept = kept
        self._pool = ThreadPoolExecutor(max_workers=limits.running_jobs, thread_name_prefix="solve")
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self.closing = False

    def restore(self, held: Mapping[str, HeldPuzzle]) -> None:
        """Takes back the kept jobs of these puzzles; those that had not finished are solved again."""
        for old in self._kept.jobs() if self._kept is not None else ():
            puzzle = held.get(old.puzzle)
            job = Job(
                old.puzzle, puzzle, old.options, old.number, True, old.id, patience=self._limits.unwatched_seconds
            )
            self._jobs[job.id] = job
            if old.state in FINISHED:
                job.held, job.energy, job.stage = None, old.energy, old.stage
                job.end(old.state, old.reason, old.shown)
                job.seconds, job.fraction = old.seconds, old.fraction
            elif puzzle is None:
                job.end("failed", "The server was started anew and its puzzle is not there any more.")
            else:
                puzzle.jobs += 1
                self._pool.submit(self._run, job)

    def of(self, puzzle: str) -> str | None:
        """The id of the newest job of a puzzle that has not finished."""
        open_ones = [job for job in list(self._jobs.values()) if job.puzzle == puzzle and not job.finished]
        return max(open_ones, key=lambda job: job.number).id if open_ones else None

    def check_room(self) -> None:
        """Refusal 429 when too many wait already."""
        open_jobs = sum(not other.finished for other in list(self._jobs.values()))
        if open_jobs >= self._limits.running_jobs + self._limits.waiting_jobs:
            raise Refusal(
                429,
                f"{open_jobs} puzzles are being solved or wait for it, which is as many as are taken at a time:"
                " try again in a moment.",
                retry_after=5,
            )

    def start(self, held: HeldPuzzle, options: SolveOptions, *, keep: bool = True) -> Job:
        """Queues a solve; Refusal 429 when too many wait already. Without `keep` it is gone after a restart."""
        with self._lock:
            self.check_room()
            number = 1 + max((other.number for other in self._jobs.values()), default=0)
            kept = keep and self._kept is not None
            job = Job(held.id, held, options, number, kept, patience=self._limits.unwatched_seconds)
            self._write(job)
            for name in [name for name, other in self._jobs.items() if other.finished][:-KEPT]:
                self._forget(name)
            self._jobs[job.id] = job
            held.jobs += 1
        self._pool.submit(self._run, job)
        return job

    def drop(self, job: Job) -> None:
        """Forgets a job that nobody can ask for."""
        with self._lock:
            self._forget(job.id)

    def _forget(self, name: str) -> None:
        if self._jobs.pop(name).kept and self._kept is not None:
            self._kept.drop_job(name)

    def _write(self, job: Job) -> None:
        """Keeps a job's state on the disk."""
        if job.kept and self._kept is not None:
            told = job.model().model_dump()
            self._kept.put_job(KeptJob(**told, number=job.number, options=job.options))

    def get(self, name: str) -> Job:
        """The job of this id; Refusal 404 when there is none."""
        job = self._jobs.get(name)
        if job is None:
            raise Refusal(404, "There is no such job: the server may have been started anew.")
        return job

    def cancel(self, job: Job) -> None:
        """Stops a job. One that has something to show ends with it; one that is still waiting or measuring ends now."""
        job.cancelled = True
        with self._lock:
            waiting = job.state == "waiting"
            if job.shown is None:
                job.end("cancelled", "It was cancelled before there was anything to show.")
        if waiting:
            self._done(job)

    def cancel_all(self, held: HeldPuzzle) -> None:
        """Stops the jobs of a puzzle."""
        for job in list(self._jobs.values()):
            if job.held is held and not job.finished:
                self.cancel(job)

    def stop(self) -> None:
        """Stops everything; kept jobs that have not finished go on when the server is started again."""
        with self._lock:
            self.closing = True
        for job in list(self._jobs.values()):
            job.cancelled = True

    def close(self) -> None:
        """Stops everything and waits for that, which takes no time once there are no workers any more."""
        self.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job) -> None:
        try:
            with self._lock:
                if job.forgotten:
                    job.end("cancelled", "It was cancelled: nobody waited for it.")
                held = None if job.finished else job.held
                if held is not None:
                    job.begun = time.monotonic()
                    job.state = "running"
                    job.version += 1
            if held is not None:
                self._solve(job, held)
        except JigsyncError as error:
            job.end("failed", str(error))
        except NoMemory:
            self._cut_short(job, "There was not enough memory to solve this puzzle.")
        except TooLong:
            self._cut_short(job, "The solver did not keep to its time limit and was ended.")
        except Stopped:
            self._cut_short(job, "It was stopped.")
        except Refusal as error:
            if not self.closing:  # otherwise it is solved again after the restart, and whoever follows it reconnects
                self._cut_short(job, error.sentence)
        except Exception:
            log.exception("A job failed.")
            job.end("failed", "Something went wrong in the solver; the server's terminal shows what.")
        finally:
            self._done(job)

    def _done(self, job: Job) -> None:
        """Lets go of the puzzle and keeps the answer, once."""
        with self._lock:
            held, job.held = job.held, None
            if held is None:
                return
            held.jobs -= 1
            if self.closing or job.id not in self._jobs:
                return
            try:
                self._write(job)
            except JigsyncError as error:  # it is solved again after a restart, and can be asked for until then
                log.warning("jigsync: The answer of a job is not kept: %s", error)

    def _cut_short(self, job: Job, reason: str) -> None:
        """Ends a job whose solver was ended: what it had found by then stays."""
        if job.shown is None:
            job.end("cancelled" if job.unwanted else "failed", reason)
        else:
            job.end("cancelled", f"{reason} This is the best so far.")

    def _solve(self, job: Job, held: HeldPuzzle) -> None:
        most = self._limits.solve_seconds
        seconds = most if job.options.time_limit is None else min(job.options.time_limit, most)
        arguments = {
            "name": held.id,
            "puzzle": held.file.to_json(),
            "options": plain(job.options),
            "seconds": seconds,
        }
        told = self._crew.do(
            "solve",
            arguments,
            seconds=1.25 * seconds + GRACE,
            holds=held.id,
            hear=job.hear,
            stopped=lambda: job.unwanted,
        )
        result = None if told["shown"] is None else Shown.model_validate(told["shown"])
        job.energy = told["energy"]
        if result is None:
            job.end("cancelled" if job.unwanted else "failed", told["reason"])
        elif job.unwanted:
            job.end("cancelled", "It was stopped; this is the best so far.", result)
        else:
            job.end("done", told["reason"], result)
