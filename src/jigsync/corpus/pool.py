"""Units of work over processes: results as they come, memory bounded, no orphans, no unit lost with its process."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from jigsync.values.errors import InputError, bad_value

U = TypeVar("U")
R = TypeVar("R")

ATTEMPTS: Final = 3
"""A unit whose process dies this often stops everything: it may be the unit that kills them."""


class Engine(Protocol):
    """Where units of work are done.

    A unit may be done more than once, when the process that did it died before it could say so; its result is yielded
    once. So `work` must leave the same behind when it is repeated.
    """

    def run(self, work: Callable[[U], R], units: Sequence[U]) -> Iterator[tuple[U, R]]:
        """Yields (unit, work(unit)) in the order of completion; the first error stops everything and is raised."""
        ...


Workers = int | Engine
"""A number of processes on this machine, or another engine."""


def run_units(work: Callable[[U], R], units: Sequence[U], workers: Workers) -> Iterator[tuple[U, R]]:
    """Yields (unit, work(unit)) in the order of completion; the first error stops everything and is raised.

    At most 2 x workers units wait in memory. Workers are fresh processes (no fork of a process with threads), leave
    Ctrl-C to the parent, and end when the parent is gone, even when it was killed. When one of them dies, the units
    that were under way are done again, at most ATTEMPTS times.
    """
    if not isinstance(workers, int):
        yield from workers.run(work, units)
        return
    if isinstance(workers, bool) or not 1 <= workers <= 1024:
        raise bad_value("workers", "a sweep", "an integer from 1 to 1024", workers)
    if workers == 1 or len(units) < 2:
        yield from ((unit, work(unit)) for unit in units)
        return
    yield from _over_processes(work, units, workers)


def _over_processes(work: Callable[[U], R], units: Sequence[U], workers: int) -> Iterator[tuple[U, R]]:
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    left = deque(enumerate(units))
    deaths: Counter[int] = Counter()
    while left:
        pool = ProcessPoolExecutor(min(workers, len(left)), mp_context=context, initializer=start_worker)
        under_way: dict[Future[R], tuple[int, U]] = {}
        try:
            while left or under_way:
                while left and len(under_way) < 2 * workers:
                    under_way[pool.submit(work, left[0][1])] = left[0]
                    left.popleft()
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                # What was finished counts, also when the pool broke right after it.
                for future in sorted(done, key=lambda future: isinstance(future.exception(), BrokenProcessPool)):
                    result = future.result()
                    yield under_way.pop(future)[1], result
        except BrokenProcessPool:
            # Nobody knows whose process it was: all of them are suspects, and all are done again.
            again = sorted(under_way.values(), key=lambda numbered: numbered[0], reverse=True)
            deaths.update(number for number, _ in again)
            if max(deaths.values(), default=0) >= ATTEMPTS:
                raise worker_died("try fewer --workers") from None
            left.extendleft(again)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def worker_died(advice: str) -> InputError:
    """What is said when a unit's process died again and again."""
    return InputError(f"A worker process died {ATTEMPTS} times, most likely for want of memory: {advice}.")


def start_worker() -> None:
    """What every worker process does first."""
    import cv2

    cv2.setNumThreads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
