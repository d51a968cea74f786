"""The workbench over many mixed jobs while a crowd reads: its memory, and how long reading takes.

python benchmarks/soak.py [--jobs 1000] [--readers 32] [--json]

It starts `jigsync serve` itself. Four clients send jobs of five kinds in turns: uploads of 6 and of 12 fragments that
are solved and drawn, cuts of a bundled picture that are solved, whole solves in one request, and jobs that are
cancelled at once. Whatever is refused with 429 or 503 is sent again when the answer said so; every other answer must be
what was asked for. Meanwhile readers, each on its own connection, ask for a page, a puzzle, a fragment or a job about
once in a second. Memory is what is resident (RSS), of the server and of all processes that it has started, whose shared
pages count in each of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from served import Client, Packed, Served, packed_puzzles

CLIENTS: Final = 4
"""Clients that send jobs."""
POINTS: Final = 10
"""How often memory is read after the start."""
PAUSE: Final = 1.0
"""Seconds that a reader waits between two requests, on average."""
LONGEST: Final = 7200.0
"""Seconds after which the jobs are given up."""


@dataclass
class Seen:
    """What all clients saw.

    Attributes:
        read: seconds of every request of a reader.
        jobs: kind -> finished ones.
        later: answers that told a client to come back.
        job: where the job is that was finished last; the server forgets those of long ago.
    """

    read: list[float] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)
    later: int = 0
    job: str = "/api/about"
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, eq=False)
class Sender:
    """One client that sends jobs."""

    client: Client
    seen: Seen

    def ask(self, status: int, send: Callable[[], tuple[int, Any, bytes]]) -> bytes:
        """The body of an answer with this status, however often the server says that it has no room now."""
        while True:
            got, headers, body = send()
            if got == status:
                return body
            if got not in (429, 503):
                raise RuntimeError(f"answered {got} instead of {status}: {body[:200]!r}")
            with self.seen.lock:
                self.seen.later += 1
            time.sleep(float({name.lower(): value for name, value in headers.items()}["retry-after"]))

    def post(self, status: int, path: str, value: Any) -> bytes:
        """Sends JSON."""
        return self.ask(status, lambda: self.client.send("POST", path, value))

    def upload(self, puzzle: Packed) -> str:
        """Uploads a puzzle; its id."""
        return str(json.loads(self.ask(201, lambda: self.client.upload("/api/puzzles", puzzle)))["id"])

    def job(self, held: str, state: str = "done", **options: Any) -> dict[str, Any]:
        """Solves a held puzzle, or cancels that; the last state of the job."""
        job = json.loads(self.post(202, f"/api/puzzles/{held}/jobs", options))["id"]
        if state == "cancelled":
            self.ask(202, lambda: self.client.send("DELETE", f"/api/jobs/{job}"))
        ended = self.client.follow(job)
        if ended["state"] != state:
            raise RuntimeError(f"a job ended {ended['state']}: {ended['reason']}")
        self.seen.job = f"/api/jobs/{job}"
        return ended

    def close(self, held: str) -> None:
        """Lets a puzzle go."""
        self.ask(204, lambda: self.client.send("DELETE", f"/api/puzzles/{held}"))


def solved(sender: Sender, puzzle: Packed) -> None:
    """Uploaded, solved and drawn."""
    held = sender.upload(puzzle)
    ended = sender.job(held)
    if not sender.post(200, f"/api/puzzles/{held}/picture", {"solution": ended["shown"]["solution"]}):
        raise RuntimeError("an empty picture")
    sender.close(held)


def cut(sender: Sender, number: int) -> None:
    """A bundled picture, cut and solved."""
    options = {"picture": "coffee", "rows": 3, "cols": 4, "seed": number}
    held = json.loads(sender.post(201, "/api/cuts", options))["id"]
    sender.job(held, grid="3x4", seed=number)
    sender.close(held)


def at_once(sender: Sender, puzzle: Packed) -> None:
    """Solved in one request."""
    body = json.loads(sender.ask(200, lambda: sender.client.upload("/solve", puzzle)))
    if not puzzle.solved_by(body):
        raise RuntimeError(f"another answer than the truth for {puzzle.name}")


def cancelled(sender: Sender, puzzle: Packed) -> None:
    """A job that is taken back."""
    held = sender.upload(puzzle)
    sender.job(held, "cancelled")
    sender.close(held)


def run_jobs(served: Served, numbers: Iterator[int], seen: Seen, small: list[Packed], large: list[Packed]) -> None:
    """One client: jobs of all kinds in turns, until there are no more numbers."""
    client = served.client()
    sender = Sender(client, seen)
    kinds: dict[str, Callable[[int], None]] = {
        "6 fragments": lambda k: solved(sender, small[k % len(small)]),
        "12 fragments": lambda k: solved(sender, large[k % len(large)]),
        "cut": lambda k: cut(sender, k),
        "one request": lambda k: at_once(sender, small[k % len(small)]),
        "cancelled": lambda k: cancelled(sender, small[k % len(small)]),
    }
    names = list(kinds)
    try:
        for number in numbers:
            name = names[number % len(names)]
            kinds[name](number // len(names))
            with seen.lock:
                seen.jobs[name] = seen.jobs.get(name, 0) + 1
    except Exception as error:
        with seen.lock:
            seen.wrong.append(f"{type(error).__name__}: {error}")
    finally:
        client.close()


def read(served: Served, paths: list[str], seed: int, seen: Seen, over: threading.Event) -> None:
    """One reader."""
    rng = np.random.default_rng(seed)
    client = served.client()
    try:
        while not over.wait(float(rng.uniform(0.5, 1.5)) * PAUSE):
            path = [*paths, seen.job][int(rng.integers(len(paths) + 1))]
            start = time.perf_counter()
            status, _, body = client.send("GET", path)
            took = time.perf_counter() - start
            with seen.lock:
                seen.read.append(took)
                if status != 200:
                    seen.wrong.append(f"reading {path} was answered {status}: {body[:200]!r}")
    except Exception as error:
        with seen.lock:
            seen.wrong.append(f"a reader broke off: {type(error).__name__}: {error}")
    finally:
        client.close()


def soak(served: Served, jobs: int, readers: int, say: Callable[[str], None]) -> dict[str, Any]:
    """All jobs and readers."""
    small, large = packed_puzzles(12), packed_puzzles(6, "3x4")
    seen, over = Seen(), threading.Event()
    client = served.client()
    held = Sender(client, seen).upload(small[0])
    Sender(client, seen).job(held)  # weights are loaded with the first solve
    client.close()
    paths = ["/", "/api/about", f"/api/puzzles/{held}", f"/api/puzzles/{held}/fragments/f000"]
    numbers = iter(_Counted(jobs))
    crowd = [threading.Thread(target=read, args=(served, paths, k, seen, over)) for k in range(readers)]
    senders = [threading.Thread(target=run_jobs, args=(served, numbers, seen, small, large)) for _ in range(CLIENTS)]
    points: list[tuple[int, float, float]] = []

    def note() -> None:
        server, others = served.memories()
        points.append((sum(seen.jobs.values()), round(server / 1e6, 1), round(others / 1e6, 1)))
        say(f"{points[-1][0]} jobs: {points[-1][1]} MB the server, {points[-1][2]} MB its processes")

    begun = time.monotonic()
    note()
    for thread in (*crowd, *senders):
        thread.start()
    while any(thread.is_alive() for thread in senders) and time.monotonic() - begun < LONGEST:
        time.sleep(0.2)
        if sum(seen.jobs.values()) >= len(points) * jobs // POINTS and len(points) < POINTS:
            note()
    note()
    over.set()
    for thread in (*crowd, *senders):
        thread.join(60)
    if sum(seen.jobs.values()) < jobs and not seen.wrong:
        seen.wrong.append("not all jobs were done in time")
    later = points[1:]
    slopes = [float(np.polyfit([p[0] for p in later], [p[k] for p in later], 1)[0]) for k in (1, 2)]
    return {
        "jobs": dict(sorted(seen.jobs.items())),
        "seconds": round(time.monotonic() - begun, 1),
        "told_to_come_back": seen.later,
        "memory_mb": points,
        "kb_per_job": {"server": round(1e3 * slopes[0], 2), "processes": round(1e3 * slopes[1], 2)},
        "reads": len(seen.read),
        "read_ms": {f"p{p}": round(1e3 * float(np.percentile(seen.read, p)), 1) for p in (50, 90, 99, 100)},
        "wrong": seen.wrong,
    }


class _Counted:
    """Numbers from 0, one for each of many threads that ask."""

    def __init__(self, count: int) -> None:
        self._left, self._lock = itertools.islice(itertools.count(), count), threading.Lock()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._left)


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    points = result["memory_mb"]
    kinds = ", ".join(f"{count} {name}" for name, count in result["jobs"].items())
    lines = [f"{sum(result['jobs'].values())} jobs in {result['seconds']} s ({kinds})"]
    for when, (done, server, others) in zip(
        ("start", "middle", "end"), (points[0], points[len(points) // 2], points[-1]), strict=True
    ):
        lines.append(
            f"memory at the {when:<6} ({done:>4} jobs): {server:7.1f} MB the server, {others:7.1f} MB its processes"
        )
    slope = result["kb_per_job"]
    lines.append(f"growth after the first tenth: {slope['server']} and {slope['processes']} kB a job")
    read = result["read_ms"]
    lines.append(
        f"{result['reads']} requests that read: p50 {read['p50']} ms, p90 {read['p90']} ms, p99 {read['p99']} ms,"
        f" the slowest {read['p100']} ms"
    )
    lines.append(f"{result['told_to_come_back']} requests were told to come back, {len(result['wrong'])} went wrong")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=1000, help="of all kinds together (default 1000)")
    parser.add_argument("--readers", type=int, default=32, help="clients that read (default 32)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    if options.jobs < 2 * POINTS or not 1 <= options.readers <= 200:
        parser.error(f"--jobs must be at least {2 * POINTS}, --readers in 1..200.")
    with tempfile.TemporaryDirectory() as made:
        served = Served(Path(made))
        try:
            result = soak(served, options.jobs, options.readers, lambda text: print(text, file=sys.stderr, flush=True))
        finally:
            served.stop()
        if "Traceback" in served.said.read_text(encoding="utf-8"):
            result["wrong"].append("a traceback")
    print(json.dumps(result) if options.json else table(result))
    for line in result["wrong"][:10]:
        print(f"Wrong: {line}", file=sys.stderr)
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
