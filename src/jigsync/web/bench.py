"""Everything one server owns, in one object: limits, puzzles, pictures, jobs, workers and the private folder."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final, TypeVar

from fastapi import Depends, Request

from jigsync.web.jobs import Jobs
from jigsync.web.kept import Kept
from jigsync.web.limits import Limits, Refusal
from jigsync.web.room import Room
from jigsync.web.store import HeldPicture, HeldPuzzle, Store

Result = TypeVar("Result")
WORKERS: Final = 4
"""Uploads, cuts and drawings that are worked on at the same time."""


log = logging.getLogger("jigsync.web")


class Workbench:
    """The server's state. Nothing of it outlives `close` but what a `Kept` keeps."""

    def __init__(self, limits: Limits, kept: Kept | None = None) -> None:
        self.limits = limits
        self._kept = kept
        self.puzzles: Store[HeldPuzzle] = Store("puzzle", limits, kept.drop_puzzle if kept else lambda _: None)
        self.pictures: Store[HeldPicture] = Store("picture", limits)
        self.jobs = Jobs(limits, kept)
        self._room = Room()
        self.room = self._room.inside
        self._pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="work")
        self._busy = 0
        self._lock = threading.Lock()
        if kept is not None:
            self._restore(kept)

    def _restore(self, kept: Kept) -> None:
        """Takes back what the server before this one held."""
        held = {}
        for puzzle in kept.puzzles(self.limits, self.room):
            try:
                held[puzzle.id] = self.puzzles.add(puzzle)
            except Refusal as error:
                log.warning("jigsync: The kept puzzle '%s' is left out: %s", puzzle.id, error.sentence)
        self.jobs.restore(held)

    def hold(self, puzzle: HeldPuzzle) -> HeldPuzzle:
        """Holds a puzzle until it is let go, and keeps it on the disk when this server does so."""
        self.puzzles.add(puzzle)
        if self._kept is not None:
            try:
                self._kept.put_puzzle(puzzle)
            except BaseException:
                self.puzzles.drop(puzzle.id)
                raise
        return puzzle

    async def work(self, task: Callable[[], Result]) -> Result:
        """Runs a task beside the event loop; Refusal 503 when too many wait."""
        with self._lock:
            if self._busy >= self.limits.busy_requests:
                raise Refusal(503, "The workbench is busy: try again in a moment.", retry_after=5)
            self._busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, task)
        finally:
            with self._lock:
                self._busy -= 1

    def close(self) -> None:
        """Stops the jobs and removes the private folder."""
        self.jobs.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._room.close()


def _bench(request: Request) -> Workbench:
    bench: Workbench = request.app.state.bench
    return bench


Bench = Annotated[Workbench, Depends(_bench)]
