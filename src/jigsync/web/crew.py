"""The server's worker processes: started when they are needed, kept warm, ended when they take too long.

    crew.do("receive_upload", {...}, seconds=5)     waits for the answer; call it beside the event loop

What becomes of a task:

    it answers             its value, or what it raised: Refusal, InputError, OSError
    it takes too long      its process is killed: TooLong
    it takes too much      of memory, which the process cannot get: NoMemory
    its process ends       by a defect of a decoder, say: it is begun anew, and when that happens again, Broken
    it is told to stop     it answers with what it has within `Limits.stop_seconds`, or it is killed: Stopped
"""

from __future__ import annotations

import errno
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from jigsync.values.errors import InputError
from jigsync.web.limits import STOPPING, Limits, Refusal
from jigsync.web.nursery import nursery

LOOK: Final = 0.05
"""Seconds between two looks at the clock while a task runs."""
LONGEST_END: Final = 1.0
"""Seconds that a killed process may take to be gone."""
LONGEST: Final = 1 << 26
"""Bytes of a message from a worker."""
MEASURING: Final = ("warm_up", "solve", "candidates", "fits")
"""Tasks that measure."""
TRIES: Final = 2
"""How often a task is begun whose worker ends: the system may have ended it, for lack of memory or with all processes
of a group, which says nothing about the task."""

log = logging.getLogger("jigsync.web")

Hear = Callable[[dict[str, Any]], None]


class TooLong(Refusal):
    """A task was ended because its time was over."""

    def __init__(self, seconds: float) -> None:
        super().__init__(413, f"This took longer than {seconds:g} s and was given up: send something smaller.")


class NoMemory(Refusal):
    """A task needed more memory than a worker may have."""

    def __init__(self) -> None:
        super().__init__(413, "This takes more memory than the workbench has for one request: send something smaller.")


class Broken(Refusal):
    """A worker broke down."""

    def __init__(self) -> None:
        super().__init__(422, "The program that worked on this broke down: it cannot be used.")


class Stopped(Exception):
    """A task was told to stop, and was ended when it did not."""


class _Worker:
    """One process, as the server sees it.

    Attributes:
        holds: id of the puzzle that it has measured last.
        ready: has it loaded what measuring takes?
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.holds, self.ready = "", False
        self._pid, self._wire = nursery().start(limits)

    def do(
        self, name: str, arguments: dict[str, Any], seconds: float, hear: Hear, stopped: Callable[[], bool]
    ) -> dict[str, Any]:
        """The worker's last word on a task; EOFError when it dies."""
        self._tell({"task": name, "arguments": arguments})
        end, told = time.monotonic() + seconds, False
        while time.monotonic() < end:
            if self._wire.poll(LOOK):
                said: dict[str, Any] = json.loads(self._wire.recv_bytes(LONGEST))
                if "step" not in said:
                    self.holds, self.ready = said.get("holds", ""), said.get("ready", False)
                    return said
                hear(said["step"])
            if not told and stopped():
                told = True
                end = min(end, time.monotonic() + self._limits.stop_seconds)
                self._tell({"stop": True})
        if told:
            raise Stopped
        raise TooLong(seconds)

    def _tell(self, order: dict[str, Any]) -> None:
        self._wire.send_bytes(json.dumps(order).encode())

    @property
    def idle(self) -> bool:
        """Does it wait for a task? One that has ended does not."""
        try:
            return not self._wire.poll(0)
        except OSError:
            return False

    def kill(self) -> None:
        """Ends it now; whoever waits for its answer gets EOFError."""
        nursery().kill(self._pid)

    def bury(self) -> None:
        """Ends it, waits for that, and closes the pipe, which alone would end it; for whoever has it."""
        self.kill()
        end = time.monotonic() + LONGEST_END
        with suppress(EOFError, OSError):
            while self._wire.poll(max(0.0, end - time.monotonic())):
                self._wire.recv_bytes(LONGEST)
        self._wire.close()


class Crew:
    """All workers of a server, at most so many at a time.

    Whoever calls `do` sees to it that no more than `size` tasks run at the same time; the server's lanes do.
    """

    def __init__(self, limits: Limits, room: Path, size: int) -> None:
        self._limits, self._room, self._size = limits, room, size
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._folders = 0

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder for what a task leaves behind; it is removed, with all that nobody has moved away."""
        with self._lock:
            self._folders += 1
            made = self._room / f"task-{self._folders}"
        made.mkdir(mode=0o700)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def do(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        seconds: float,
        holds: str = "",
        hear: Hear = lambda step: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """The value of a task of `jigsync.web.tasks`.

        Args:
            arguments: the task's, as JSON values.
            seconds: after so long it is ended.
            holds: the puzzle that the task would measure; a worker that has measured it is preferred.
            hear: told of every step.
            stopped: True when the task is to end with what it has.
        """
        for left in reversed(range(TRIES)):
            worker = self._take(name in MEASURING, holds)
            try:
                said = worker.do(name, arguments, seconds, hear, stopped)
            except (EOFError, OSError, ValueError):  # it is dead, or says what no worker says
                self._lose(worker)
                self._check_open()
                log.warning("jigsync: A worker ended while it did '%s'.", name)
                if not left:
                    raise Broken from None
                time.sleep(10 * LOOK)  # what has ended it may be about to stop the server as well
            except BaseException:
                self._lose(worker)
                self._check_open()
                raise
            else:
                self._give_back(worker)
                return _value(said, name)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Ends all workers now; tasks under way are refused."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for worker in self._all:
                worker.kill()
            self._all -= set(idle)
        for worker in idle:
            worker.bury()

    def _check_open(self) -> None:
        if self._closed:
            raise Refusal(503, STOPPING, retry_after=5)

    def _take(self, measures: bool, holds: str) -> _Worker:
        """An idle worker, or a new one."""
        while True:
            with self._lock:
                self._check_open()
                worker = self._choose(measures, holds)
            if worker is None:
                worker = _Worker(self._limits)
                with self._lock:
                    if not self._closed:
                        self._all.add(worker)
                        return worker
                worker.bury()
                continue
            if worker.idle:
                return worker
            self._lose(worker)

    def _choose(self, measures: bool, holds: str) -> _Worker | None:
        """Takes an idle worker, or none so that a new one is made. Measuring is for those that have done it before,
        the one that has measured this puzzle first; everything else is for the others."""
        if not self._idle:
            return None

        def fitness(place: int) -> tuple[bool, bool, bool, int]:
            worker = self._idle[place]
            forgets = measures and worker.holds != ""
            # Of equals, the one that was used last is warm; of those that would forget something, the one before.
            return (
                measures and worker.holds == holds,
                worker.ready == measures,
                not forgets,
                -place if forgets else place,
            )

        place = max(range(len(self._idle)), key=fitness)
        if self._idle[place].ready and not measures and len(self._all) < self._size:
            return None
        return self._idle.pop(place)

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        self._lose(worker)

    def _lose(self, worker: _Worker) -> None:
        worker.bury()
        with self._lock:
            self._all.discard(worker)


def _value(said: dict[str, Any], name: str) -> dict[str, Any]:
    """What a task gave, or its error as one of this process."""
    if "done" in said:
        value: dict[str, Any] = said["done"]
        return value
    failed: dict[str, Any] = said["failed"]
    kind = failed["kind"]
    if kind == "refusal":
        raise Refusal(failed["status"], failed["sentence"], failed["retry_after"])
    if kind == "input":
        raise InputError(failed["sentence"])
    if kind == "system":
        raise OSError(failed["errno"] or errno.EIO, failed["sentence"])
    if kind == "memory":
        raise NoMemory
    log.error("jigsync: The task '%s' failed.\n%s", name, failed["trace"])
    raise Refusal(500, "Something went wrong in the server; its terminal shows what.")
