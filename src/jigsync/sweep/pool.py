"""Units of work over processes: results as they come, memory bounded, no orphans."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from jigsync.errors import InputError, bad_value

U = TypeVar("U")
R = TypeVar("R")


def run_units(work: Callable[[U], R], units: Sequence[U], workers: int) -> Iterator[tuple[U, R]]:
    """Yields (unit, work(unit)) in the order of completion; the first error stops everything and is raised.

    At most 2 x workers units wait in memory. Workers are fresh processes (no fork of a process with threads), leave
    Ctrl-C to the parent, and end when the parent is gone, even when it was killed.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 1024:
        raise bad_value("workers", "a sweep", "an integer from 1 to 1024", workers)
    if workers == 1 or len(units) < 2:
        yield from ((unit, work(unit)) for unit in units)
        return
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(units)), mp_context=context, initializer=start_worker)
    waiting: dict[Future[R], U] = {}
    queue = iter(units)
    try:
        while True:
            while len(waiting) < 2 * workers and (unit := next(queue, None)) is not None:
                waiting[pool.submit(work, unit)] = unit
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    except BrokenProcessPool:
        raise InputError("A worker process died, most likely for want of memory: try fewer --workers.") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def start_worker() -> None:
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
