"""Everything one server owns, in one object: limits, puzzles, pictures, jobs, workers and the private folder.

Requests that decode, cut or draw run in worker processes, by two lanes. A large one waits for one of the places of
large ones; a small one may take any place, and the last place is kept for it. One that looked small and is not gives
its place back after `Limits.small_seconds` and is worked on again as a large one. What only reads needs no worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request

from jigsync.values.errors import JigsyncError
from jigsync.web.crew import Crew, TooLong
from jigsync.web.jobs import Jobs
from jigsync.web.kept import Kept
from jigsync.web.limits import STOPPING, Limits, Refusal
from jigsync.web.pixels import PuzzleFile
from jigsync.web.project import PROJECT_FILE
from jigsync.web.room import Room
from jigsync.web.store import HeldPhotograph, HeldPicture, HeldPuzzle, Store
from jigsync.web.tasks import KEPT_ZIP, PIXELS_FILE

Result = TypeVar("Result")
WORKERS: Final = 3
"""Uploads, cuts and drawings that are worked on at the same time, one of them a small one."""
READERS: Final = 4
"""Threads for what needs no worker."""

log = logging.getLogger("jigsync.web")


class Workbench:
    """The server's state. Nothing of it outlives `close` but what a `Kept` keeps."""

    def __init__(self, limits: Limits, kept: Kept | None = None) -> None:
        self.limits = limits
        self._kept = kept
        self.puzzles: Store[HeldPuzzle] = Store("puzzle", limits, self._let_go)
        self.pictures: Store[HeldPicture] = Store("picture", limits, lambda picture: picture.remove())
        self.photographs: Store[HeldPhotograph] = Store("photograph", limits, lambda photograph: photograph.remove())
        self._room = Room()
        self.room = self._room.inside
        self.crew = Crew(limits, self.room, WORKERS + limits.running_jobs)
        self.jobs = Jobs(limits, self.crew, kept)
        self._small = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="work")
        self._large = ThreadPoolExecutor(max_workers=WORKERS - 1, thread_name_prefix="work")
        self._readers = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="read")
        self._places = threading.Semaphore(WORKERS)
        self._busy = 0
        self._lock = threading.Lock()
        self._closing = False
        if kept is not None:
            self._restore(kept)

    # ------------------------------------------------------------------------------------------ work

    async def work(self, task: Callable[[float], Result], *, small: bool) -> Result:
        """Runs a task of the crew beside the event loop; Refusal 503 when too many wait.

        Args:
            task: called with the seconds it may take, again when it took longer than a small one may.
            small: does it look as if it would take no time worth speaking of?
        """
        with self._lock:
            if self._busy >= self.limits.busy_requests:
                raise Refusal(503, "The workbench is busy: try again in a moment.", retry_after=5)
            self._busy += 1
        try:
            if small and self.limits.small_seconds < self.limits.work_seconds:
                try:
                    return await self._in(self._small, task, self.limits.small_seconds)
                except TooLong:
                    pass
            return await self._in(self._large, task, self.limits.work_seconds)
        finally:
            with self._lock:
                self._busy -= 1

    async def read(self, task: Callable[[], Result]) -> Result:
        """Runs what takes a moment and no worker beside the event loop."""
        return await self._run(self._readers, task)

    async def _in(self, lane: ThreadPoolExecutor, task: Callable[[float], Result], seconds: float) -> Result:
        def placed() -> Result:
            with self._places:
                return task(seconds)

        return await self._run(lane, placed)

    async def _run(self, pool: ThreadPoolExecutor, task: Callable[[], Result]) -> Result:
        try:
            return await asyncio.wrap_future(pool.submit(task))
        except (CancelledError, asyncio.CancelledError, RuntimeError):
            if self._closing:
                raise Refusal(503, STOPPING, retry_after=5) from None
            raise

    def make_puzzle(self, name: str, arguments: dict[str, Any], seconds: float, *, keep: bool = True) -> HeldPuzzle:
        """A puzzle of a task that leaves one in its folder, held until it is let go.

        Args:
            keep: on the disk as well, when this server does so.
        """
        with self.crew.folder() as folder:
            keep = keep and self._kept is not None
            told = self.crew.do(name, {**arguments, "folder": str(folder), "keep": keep}, seconds=seconds)
            held = self._adopt(folder, told)
            try:
                self.puzzles.add(held)
                if keep and self._kept is not None:
                    self._kept.put_puzzle(held.id, folder / KEPT_ZIP)
            except BaseException:
                self.puzzles.drop(held.id)
                held.remove()
                raise
        return held

    def make_picture(self, arguments: dict[str, Any], name: str, seconds: float) -> HeldPicture:
        """A picture of an upload, held until it is let go."""
        with self.crew.folder() as folder:
            told = self.crew.do("receive_picture", {**arguments, "name": name, "folder": str(folder)}, seconds=seconds)
            held = HeldPicture(told["height"], told["width"], told["sha256"], name)
            held.path = str(self.room / f"picture-{held.id}")
            os.rename(folder / PIXELS_FILE, held.path)
        try:
            return self.pictures.add(held)
        except BaseException:
            held.remove()
            raise

    def make_photographs(
        self, arguments: dict[str, Any], names: list[str], seconds: float
    ) -> list[tuple[HeldPhotograph, dict[str, Any]]]:
        """Photographs of an upload, held until they are let go, and what was found on each."""
        made = []
        with self.crew.folder() as folder:
            asked = {**arguments, "names": names, "folder": str(folder)}
            told = self.crew.do("receive_photographs", asked, seconds=seconds)
            for k, (one, name) in enumerate(zip(told["photographs"], names, strict=True)):
                held = HeldPhotograph(one["height"], one["width"], "", name)
                held.path = str(self.room / f"photograph-{held.id}")
                os.rename(folder / f"photograph-{k}", held.path)
                made.append((held, one["found"]))
        try:
            for held, _ in made:
                self.photographs.add(held)
        except BaseException:
            for held, _ in made:
                self.photographs.drop(held.id)
                held.remove()
            raise
        return made

    def _adopt(self, folder: Path, told: dict[str, Any], name: str = "") -> HeldPuzzle:
        """Moves what a task left behind to where it stays."""
        file, pitch = PuzzleFile.of_json(told["puzzle"]), (int(told["pitch"][0]), int(told["pitch"][1]))
        held = HeldPuzzle(file, pitch, tuple(told["notes"]), told["skews"])
        held.id = name or held.id
        pixels = self.room / f"puzzle-{held.id}"
        os.rename(folder / PIXELS_FILE, pixels)
        held.file = replace(held.file, path=str(pixels))
        if (folder / PROJECT_FILE).exists():
            held.project = self.room / f"project-{held.id}"
            os.rename(folder / PROJECT_FILE, held.project)
        return held

    def _let_go(self, held: HeldPuzzle) -> None:
        held.remove()
        if self._kept is not None:
            self._kept.drop_puzzle(held.id)

    # ------------------------------------------------------------------------------------------ begin and end

    def _restore(self, kept: Kept) -> None:
        """Takes back what the server before this one held."""
        held = {}
        for path in kept.puzzles():
            try:
                with self.crew.folder() as folder:
                    arguments = {"path": str(path), "folder": str(folder)}
                    told = self.crew.do("restore_puzzle", arguments, seconds=self.limits.work_seconds)
                    puzzle = self._adopt(folder, told, path.stem)
                held[puzzle.id] = self.puzzles.add(puzzle)
            except (JigsyncError, Refusal, OSError) as error:
                log.warning("jigsync: The kept puzzle '%s' is left out: %s", path, error)
        self.jobs.restore(held)

    def warm_up(self) -> None:
        """Starts a worker that has loaded what a first solve would wait for, in the background."""

        def task() -> None:
            try:
                self.crew.do("warm_up", {}, seconds=self.limits.work_seconds)
            except (JigsyncError, Refusal, OSError) as error:  # whoever solves is told
                if not self._closing:
                    log.warning("jigsync: No worker could be made ready: %s", error)

        threading.Thread(target=task, daemon=True).start()

    def stop(self) -> None:
        """Ends the work under way; requests that wait for it are answered with 503."""
        self._closing = True
        self.jobs.stop()
        self.crew.close()

    def close(self) -> None:
        """Ends everything and removes the private folder."""
        self.stop()
        for pool in (self._small, self._large, self._readers):
            pool.shutdown(wait=True, cancel_futures=True)
        self.jobs.close()
        self._room.close()


def _bench(request: Request) -> Workbench:
    bench: Workbench = request.app.state.bench
    return bench


Bench = Annotated[Workbench, Depends(_bench)]
