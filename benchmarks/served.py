"""A `jigsync serve` process on loopback, a small client for it, and puzzles with known answers to send."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jigsync
from jigsync import data
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.values.truth import Truth

PATIENCE: Final = 120.0
"""Seconds after which a silent server counts as dead."""


@dataclass(frozen=True, eq=False)
class Packed:
    """A puzzle as a zip file, and where its fragments belong."""

    name: str
    content: bytes
    truth: Truth

    def solved_by(self, solution: Mapping[str, Any]) -> bool:
        """Does a solution.json place every fragment rightly, up to the global turn?"""
        from jigsync.io.schema import Node
        from jigsync.io.solution_file import parse_solution

        found = parse_solution(Node(dict(solution), self.name))
        true = self.truth.placement
        return any(
            all((p.cell, p.turns) == (true[name].cell, true[name].turns) for name, p in turned.placement.items())
            for turned in (found.turned(turns) for turns in range(4))
        )


def packed_puzzles(count: int, grid: str = "2x3", cell: int = 48) -> list[Packed]:
    """Small, lightly damaged puzzles of the bundled pictures, in turns."""
    made = []
    for number in range(count):
        picture = data.names()[number % len(data.names())]
        puzzle, truth = jigsync.cut_with_truth(data.picture(picture), grid, "light", cell=cell, seed=100 + number)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, content in puzzle_members(puzzle).items():
                archive.writestr(zipfile.ZipInfo(name), content)
        made.append(Packed(f"{picture}-{number}.zip", buffer.getvalue(), truth))
    return made


class Client:
    """One connection that is kept open. `send` raises OSError or HTTPException when the server is gone."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)

    def send(self, method: str, path: str, value: Any = None) -> tuple[int, Mapping[str, str], bytes]:
        """(status, headers, body) of a request with a JSON body, or none."""
        body = None if value is None else json.dumps(value).encode()
        return self._ask(method, path, body, {} if body is None else {"Content-Type": "application/json"})

    def upload(self, path: str, puzzle: Packed) -> tuple[int, Mapping[str, str], bytes]:
        """Sends a puzzle as a form."""
        edge = "jigsync-0-edge"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="files"; filename="{puzzle.name}"\r\n\r\n'
        body = head.encode() + puzzle.content + f"\r\n--{edge}--\r\n".encode()
        return self._ask("POST", path, body, {"Content-Type": f"multipart/form-data; boundary={edge}"})

    def follow(self, job: str) -> dict[str, Any]:
        """The last state of a job, after the whole stream of its events."""
        status, _, body = self.send("GET", f"/api/jobs/{job}/events")
        if status != 200:
            raise RuntimeError(f"The job {job} answered {status}: {body[:200]!r}")
        last = body.decode().strip().rpartition("\ndata: ")[2]
        ended: dict[str, Any] = json.loads(last)
        return ended

    def close(self) -> None:
        """Hangs up."""
        self._connection.close()

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # the next request opens a new one
            raise


class Served:
    """A running server; its standard error goes to a file."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.said = folder / "serve.txt"
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "jigsync", "serve", "--port", str(port), *options]
        with open(self.said, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, env={**os.environ, "TMPDIR": str(temporary)}
            )
        self.port = self._wait()

    def client(self) -> Client:
        """A new connection."""
        return Client("127.0.0.1", self.port)

    def kill(self) -> None:
        """SIGKILL: it can do nothing about it."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def memory(self) -> int:
        """Bytes in memory (RSS) of the process and all its children."""
        return sum(self.memories())

    def memories(self) -> tuple[int, int]:
        """Bytes in memory (RSS) of the process, and of all its children."""
        server, others = self.each()
        return server, sum(others)

    def each(self) -> tuple[int, list[int]]:
        """Bytes in memory (RSS) of the process, and of every one of its children."""
        return _rss(self.process.pid), [_rss(pid) for pid in _children(self.process.pid)]

    def _wait(self) -> int:
        """The port, once it answers."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(r"http://[^:]+:(\d+)/", self.said.read_text(encoding="utf-8"))
            if found:
                client = Client("127.0.0.1", int(found[1]))
                try:
                    client.send("GET", "/api/about")
                    return int(found[1])
                except OSError:
                    pass
                finally:
                    client.close()
            time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"The server did not start: {self.said.read_text(encoding='utf-8').strip()}")


def _rss(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return 1024 * int(found[1]) if found else 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = [int(child) for child in file.read_text(encoding="ascii").split()]
        except OSError:
            continue
        found += [*below, *(further for child in below for further in _children(child))]
    return found
