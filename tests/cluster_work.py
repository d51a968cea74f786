"""What the workers of tests/test_cluster.py do: a light module, for every worker process imports it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jigsync.corpus.pool import Workers, run_units
from jigsync.io import files, remote


@dataclass(frozen=True)
class Spoiled:
    """An engine around another one that does `trouble` before some units."""

    workers: Workers
    trouble: Callable[..., Any]
    folder: Path

    def run(self, work: Callable[[Any], Any], units: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        return run_units(partial(self.trouble, work, self.folder), units, self.workers)


def sign(folder: Path, text: str) -> None:
    """Leaves a file of its own."""
    (folder / f"{time.time_ns()}-{os.getpid()}").write_text(text, encoding="utf-8")


def first(folder: Path, name: str) -> bool:
    """Is it the first one to ask?"""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def die_while_writing(work: Callable[[Any], Any], folder: Path, unit: Any) -> Any:
    """The first unit that comes loses its process by SIGKILL, when its first file is written but not in its place.

    At a URL that is when its shard is there and its stats are not.
    """
    sign(folder, "begun")
    if first(folder, "death"):
        write = remote.Remote.write

        def write_or_die(self: remote.Remote, data: bytes) -> None:
            if self.parent.name == "stats":
                os.kill(os.getpid(), signal.SIGKILL)
            write(self, data)

        files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        remote.Remote.write = write_or_die  # type: ignore[method-assign]
    return work(unit)


def always_die(work: Callable[[Any], Any], folder: Path, unit: Any) -> Any:
    """A unit that kills whoever does it."""
    sign(folder, "killed")
    os.kill(os.getpid(), signal.SIGKILL)


def wait_on_the_second_node(work: Callable[[Any], Any], folder: Path, unit: Any) -> Any:
    """Units wait until every node has one; those on the node that will be lost then wait for ever."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    (folder / f"node-{node}").touch()
    until = time.monotonic() + 120
    while len(list(folder.glob("node-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    if node == (folder / "doomed").read_text(encoding="utf-8"):
        sign(folder, "lost")
        time.sleep(600)
    return work(unit)


def double(number: int) -> int:
    return 2 * number


def here(number: int) -> tuple[str, int]:
    """Where a unit was done."""
    import ray

    return ray.get_runtime_context().get_node_id(), os.getpid()
