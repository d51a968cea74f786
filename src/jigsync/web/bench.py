"""Everything one server owns, in one object: limits, puzzles, pictures, jobs, workers and the private folder."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Final, TypeVar

from fastapi import Depends, Request

from jigsync.web.jobs import Jobs
from jigsync.web.limits import Limits, Refusal
from jigsync.web.store import HeldPicture, HeldPuzzle, Store

Result = TypeVar("Result")
WORKERS: Final = 4
"""Uploads, cuts and drawings that are worked on at the same time."""


class Workbench:
    """The server's state. Nothing of it outlives `close`."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.puzzles: Store[HeldPuzzle] = Store("puzzle", limits)
        self.pictures: Store[HeldPicture] = Store("picture", limits)
        self.jobs = Jobs(limits)
        self._folder = tempfile.TemporaryDirectory(prefix="jigsync-")  # mode 0700
        self.room = Path(self._folder.name)
        self._pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="work")
        self._busy = 0
        self._lock = threading.Lock()

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
        self._folder.cleanup()


def _bench(request: Request) -> Workbench:
    bench: Workbench = request.app.state.bench
    return bench


Bench = Annotated[Workbench, Depends(_bench)]
