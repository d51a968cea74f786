"""How much the workbench takes: real uploads and solves over HTTP, on this machine, by 1, 8 and 32 clients at once.

python benchmarks/serve_load.py [--clients 1,8,32] [--seconds 20] [--json]

It starts `jigsync serve` itself, on loopback and any free port. A client uploads a puzzle of 6 fragments, starts a
job, follows its events to the end, asks for a fragment and lets the puzzle go; every solution is held against the
truth, every refusal against what a refusal must be: 429 or 503, a sentence in JSON, Retry-After. Latencies are from the
first byte sent to the last one received. Memory over many jobs is the matter of benchmarks/soak.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from served import Client, Packed, Served, packed_puzzles

PUZZLES = 12
ENOUGH = 20
"""Wrong answers after which nobody goes on."""
FOLLOW = "follow a job"
ANY = "any request but that"
PERCENTILES = (50, 90, 99)


@dataclass
class Tally:
    """What all clients of a level saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    solved: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def timed(self, what: str, ask: Callable[[], tuple[int, Any, bytes]]) -> tuple[int, Any, bytes]:
        """Sends a request, counts it, and checks it when it is a refusal."""
        start = time.perf_counter()
        status, headers, body = ask()
        took = time.perf_counter() - start
        with self.lock:
            self.statuses[status] += 1
            if status < 400:
                self.seconds[what].append(took)
                if what != FOLLOW:
                    self.seconds[ANY].append(took)
            else:
                self._check_refusal(what, status, headers, body)
        return status, headers, body

    def _check_refusal(self, what: str, status: int, headers: Any, body: bytes) -> None:
        try:
            reason = json.loads(body)["detail"]
        except (ValueError, KeyError, TypeError):
            reason = ""
        later = {name.lower(): value for name, value in headers.items()}.get("retry-after", "")
        if status not in (429, 503) or not reason or not later.isdigit():
            self.wrong.append(f"{what} was answered {status} {body[:120]!r}, Retry-After '{later}'")
        self.reasons[f"{status}: {reason}"] += 1


def one_visit(client: Client, puzzle: Packed, tally: Tally, over: Callable[[], bool]) -> None:
    """Upload, solve, look, close; turned down, it comes back when it was told to."""
    start = time.perf_counter()
    status, _, body = _until_taken(tally, "upload", lambda: client.upload("/api/puzzles", puzzle), over)
    if status >= 400:
        return
    held = json.loads(body)
    status, _, body = _until_taken(
        tally, "start a job", lambda: client.send("POST", f"/api/puzzles/{held['id']}/jobs", {}), over
    )
    if status < 400:
        job = json.loads(body)["id"]
        _, _, stream = tally.timed(FOLLOW, lambda: client.send("GET", f"/api/jobs/{job}/events"))
        last = json.loads(stream.decode().strip().rpartition("\ndata: ")[2])
        with tally.lock:
            if last["state"] == "done" and puzzle.solved_by(last["shown"]["solution"]):
                tally.solved += 1
                tally.seconds["upload to solution"].append(time.perf_counter() - start)
            else:
                tally.wrong.append(f"{puzzle.name} ended {last['state']} {last['reason']}")
        fragment = held["fragments"][0]["id"]
        tally.timed("a fragment", lambda: client.send("GET", f"/api/puzzles/{held['id']}/fragments/{fragment}"))
    tally.timed("close", lambda: client.send("DELETE", f"/api/puzzles/{held['id']}"))


def _until_taken(
    tally: Tally, what: str, ask: Callable[[], tuple[int, Any, bytes]], over: Callable[[], bool]
) -> tuple[int, Any, bytes]:
    while True:
        status, headers, body = tally.timed(what, ask)
        if status not in (429, 503) or over():
            return status, headers, body
        later = {name.lower(): value for name, value in headers.items()}.get("retry-after", "1")
        time.sleep(float(later))


def run_clients(served: Served, count: int, puzzles: Sequence[Packed], tally: Tally, over: Callable[[], bool]) -> None:
    """So many clients, each on a thread and a connection of its own, until it is over."""

    def visit(number: int) -> None:
        client = served.client()
        turn = number
        try:
            while not over() and len(tally.wrong) < ENOUGH:
                one_visit(client, puzzles[turn % len(puzzles)], tally, over)
                turn += count
        except Exception as error:
            with tally.lock:
                tally.wrong.append(f"a client broke off: {type(error).__name__}: {error}")
        finally:
            client.close()

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def level(served: Served, count: int, puzzles: Sequence[Packed], seconds: float) -> dict[str, Any]:
    """What `count` clients get in so many seconds."""
    tally = Tally()
    start = time.monotonic()
    run_clients(served, count, puzzles, tally, lambda: time.monotonic() - start > seconds)
    took = time.monotonic() - start
    return {
        "clients": count,
        "seconds": round(took, 1),
        "requests": tally.statuses.total(),
        "requests_per_s": round(tally.statuses.total() / took, 1),
        "solves": tally.solved,
        "solves_per_s": round(tally.solved / took, 2),
        "refused": {str(status): tally.statuses[status] for status in (429, 503) if tally.statuses[status]},
        "reasons": dict(tally.reasons.most_common(3)),
        "latency_ms": {
            what: {f"p{p}": round(1e3 * float(np.percentile(values, p)), 1) for p in PERCENTILES}
            for what, values in sorted(tally.seconds.items())
        },
        "memory_mb": round(served.memory() / 1e6, 1),
        "wrong": tally.wrong,
    }


def burst(served: Served, puzzle: Packed, count: int = 64) -> dict[str, Any]:
    """So many jobs asked for at the same moment: some are taken, the others told when to come back."""
    tally = Tally()
    client = served.client()
    held = json.loads(client.upload("/api/puzzles", puzzle)[2])["id"]
    gate = threading.Barrier(count)

    def ask() -> None:
        own = served.client()
        gate.wait()
        tally.timed("a job at once", lambda: own.send("POST", f"/api/puzzles/{held}/jobs", {}))
        own.close()

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.send("DELETE", f"/api/puzzles/{held}")
    client.close()
    statuses = {str(status): number for status, number in sorted(tally.statuses.items())}
    return {"at_once": count, "statuses": statuses, "reasons": dict(tally.reasons.most_common(2)), "wrong": tally.wrong}


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = ["clients  requests/s  solves/s  refused   request p50/p90/p99 ms     solve p50/p90/p99 ms   memory MB"]
    for row in result["levels"]:
        light, whole = (
            "/".join(f"{value:.0f}" for value in row["latency_ms"].get(what, {}).values())
            for what in (ANY, "upload to solution")
        )
        refused = sum(row["refused"].values())
        lines.append(
            f"{row['clients']:>7} {row['requests_per_s']:>11} {row['solves_per_s']:>9} {refused:>8}"
            f" {light:>25} {whole:>25} {row['memory_mb']:>11}"
        )
    lines.append(f"64 jobs asked for at once: {result['burst']['statuses']}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--clients", default="1,8,32", help="numbers of clients at once (default 1,8,32)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of every number of clients (default 20)")
    parser.add_argument("--max-jobs", type=int, default=2, help="of the server: solved at the same time (default 2)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    try:
        counts = [int(part) for part in options.clients.split(",")]
    except ValueError:
        parser.error(f"--clients must be numbers such as 1,8,32. Got '{options.clients}'.")
    if min(counts) < 1 or max(counts) > 200 or options.seconds <= 0 or options.max_jobs < 1:
        parser.error("--clients must be in 1..200, --seconds and --max-jobs above 0.")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    puzzles = packed_puzzles(PUZZLES)
    with tempfile.TemporaryDirectory() as made:
        served = Served(Path(made), "--max-jobs", str(options.max_jobs))
        try:
            level(served, 1, puzzles, 1.0)  # weights are loaded with the first solve
            result: dict[str, Any] = {"memory_at_start_mb": round(served.memory() / 1e6, 1), "levels": []}
            for count in counts:
                say(f"{count} clients for {options.seconds:g} s ...")
                result["levels"].append(level(served, count, puzzles, options.seconds))
            result["burst"] = burst(served, puzzles[0])
        finally:
            served.stop()
        said = served.said.read_text(encoding="utf-8")
    parts = [*result["levels"], result["burst"]]
    wrong = [line for part in parts for line in part["wrong"]] + (["a traceback"] if "Traceback" in said else [])
    print(json.dumps(result) if options.json else table(result))
    for line in wrong[:10]:
        say(f"Wrong: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
