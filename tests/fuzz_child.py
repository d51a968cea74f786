"""Cases in a process of their own: with a limit on memory and time, and whatever they do to themselves.

The parent has imported what it needs and started no thread; a child is a fork of it and reads case after case. A case
that raises anything but a refusal, takes more memory than `MEMORY`, takes longer than it may or kills its process is a
defect; after the last two another child goes on with the next case.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from fuzz_mutations import Case
from fuzz_readers import Defect, Reader, attempt

MEMORY = 1 << 30
"""Bytes that reading a small hostile file may take at most."""
ADDRESSES = 4 << 30
"""Bytes of address space beyond the parent's: what stops a child before it stops the machine."""

AT_ONCE = 100
"""Cases that one child reads: some readers keep what they loaded."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        defect: what went wrong; "" when the case was taken or refused.
        refused: the sentence of the refusal.
        memory: bytes that it took at its peak.
    """

    defect: str = ""
    refused: str = ""
    seconds: float = 0.0
    memory: int = 0


def run(reader: Reader, case: Case, seconds: float = 60.0) -> Outcome:
    """One case."""
    return next(series(reader, lambda _: case, 1, seconds))


def series(reader: Reader, make: Callable[[int], Case], count: int, seconds: float = 60.0) -> Iterator[Outcome]:
    """Case number 0 .. count - 1; `seconds` for each of them."""
    done = 0
    while done < count:
        until = min(count, done + AT_ONCE)
        inlet, outlet = os.pipe()
        # Whatever a killed child leaves behind goes with this folder.
        with tempfile.TemporaryDirectory(prefix="fuzz-room-") as room:
            gc.freeze()  # else the first collection in a child would copy all that the parent has
            child = os.fork()
            if child == 0:
                os.close(inlet)
                _child(reader, make, range(done, until), outlet, room)
            os.close(outlet)
            try:
                for line in _lines(inlet, seconds):
                    if not line:
                        break
                    done += 1
                    yield Outcome(**json.loads(line))
                else:
                    line = "ended"
            finally:
                os.close(inlet)
                os.kill(child, signal.SIGKILL)  # a child that has ended is still there to be waited for
                _, status = os.waitpid(child, 0)
        if done < until:
            done += 1
            yield Outcome(_fate(reader, "" if line else f"was not done after {seconds:g} s", status), seconds=seconds)


def _fate(reader: Reader, late: str, status: int) -> str:
    if late:
        return f"{reader.name} {late}"
    if os.WIFSIGNALED(status):
        return f"{reader.name} died of {signal.Signals(os.WTERMSIG(status)).name}"
    return f"{reader.name} ended its process with code {os.WEXITSTATUS(status)}"


def _child(reader: Reader, make: Callable[[int], Case], numbers: range, outlet: int, room: str) -> None:
    """Never returns."""
    try:
        limit = _pages("VmSize") + ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        tempfile.tempdir = room
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        for number in numbers:
            os.write(outlet, (json.dumps(asdict(_outcome(reader, make(number)))) + "\n").encode())
    finally:
        os._exit(0)


def _outcome(reader: Reader, case: Case) -> Outcome:
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start = _pages("VmRSS"), time.monotonic()
    defect = refused = ""
    try:
        refused = attempt(reader, case)[:2000]
    except Defect as found:
        defect = str(found)
    memory = max(0, _pages("VmHWM") - before)
    if not defect and memory > MEMORY:
        defect = f"{reader.name} took {memory >> 20} MiB"
    return Outcome(defect, refused, round(time.monotonic() - start, 3), memory)


def _pages(name: str) -> int:
    """A figure of this process's memory in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def _lines(inlet: int, seconds: float) -> Iterator[str]:
    """What the child writes, line by line; "" when it takes too long; ends when the child does."""
    rest = b""
    while True:
        ready, _, _ = select.select([inlet], [], [], seconds)
        if not ready:
            yield ""
            return
        part = os.read(inlet, 65536)
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in lines)
