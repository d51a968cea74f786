"""A real workbench server on a free port, and small things to send to it."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import requests

import jigsync
from jigsync import data
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth
from jigsync.web.guard import Guard
from jigsync.web.kept import Kept
from jigsync.web.limits import Limits
from jigsync.web.nursery import nursery


@dataclass(frozen=True, eq=False)
class Server:
    """Where it is, and the application that runs there."""

    url: str
    app: Any

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        return requests.request(method, self.url + path, timeout=60, **options)

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, value: Any = None, **options: Any) -> requests.Response:
        return self.send("POST", path, json=value, **options)

    def upload(self, files: dict[str, bytes], path: str = "/api/puzzles", **fields: str) -> requests.Response:
        sent = [("files", (name, content)) for name, content in files.items()]
        return self.send("POST", path, files=sent, data=fields)

    def events(self, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """(kind, job) of every server-sent event, until the stream ends."""
        with self.send("GET", f"/api/jobs/{job}/events", stream=True) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            kind = ""
            for line in answer.iter_lines(decode_unicode=True):
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    yield kind, json.loads(line[6:])

    def solved(self, puzzle: str, **options: Any) -> dict[str, Any]:
        """Solves a held puzzle; the job's last state."""
        job = self.post(f"/api/puzzles/{puzzle}/jobs", options)
        assert job.status_code == 202, job.text
        return list(self.events(job.json()["id"]))[-1][1]


@contextmanager
def serving(limits: Limits | None = None, names: tuple[str, ...] = (), kept: Kept | None = None) -> Iterator[Server]:
    """A running server."""
    from jigsync.web.app import create_app
    from jigsync.web.server import make_server

    app = create_app(limits, names, kept)
    server = make_server(app, limits or Limits(), port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Server(f"http://127.0.0.1:{port}", app)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


class Gate:
    """Stopped processes."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def open(self, keep: Collection[int] = ()) -> None:
        """Lets them go on, all but those to keep."""
        for pid in self._pids:
            if pid not in keep:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self._pids = [pid for pid in self._pids if pid in keep]


@contextmanager
def gate(server: Server) -> Iterator[Gate]:
    """Worker processes, and the one they come from, stopped until the gate is opened; what they do is let end first."""
    until(lambda: not busy_pids(server))
    made = Gate([nursery_pid(), *worker_pids(server)])
    try:
        yield made
    finally:
        made.open()


@contextmanager
def stuck(server: Server, puzzle: str) -> Iterator[str]:
    """A job whose worker gets nowhere, while the other workers do what they are asked for."""
    with gate(server) as closed:
        job = server.post(f"/api/puzzles/{puzzle}/jobs", {}).json()["id"]
        until(lambda: busy_pids(server))
        closed.open(keep=busy_pids(server))
        yield job


def busy_pids(server: Server) -> set[int]:
    """The worker processes that have something to do."""
    crew = server.app.state.bench.crew
    with crew._lock:
        return {worker._pid for worker in crew._all - set(crew._idle)}


def guard_of(server: Server) -> Guard:
    """What counts a server's requests."""
    layer = server.app.middleware_stack
    while not isinstance(layer, Guard):
        layer = layer.app
    return layer


def nursery_pid() -> int:
    """The process that workers come from."""
    process = nursery()._process
    assert process is not None
    return process.pid


def worker_pids(server: Server) -> list[int]:
    """The worker processes of a server."""
    return [worker._pid for worker in server.app.state.bench.crew._all]


def until(true: Callable[[], object], seconds: float = 30) -> None:
    """Waits for something that comes about."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def puzzle_and_truth(grid: str = "2x3", seed: int = 3) -> tuple[Puzzle, Truth]:
    """A small puzzle that the default solver gets right."""
    return jigsync.cut_with_truth(data.picture("chelsea"), grid, "light", cell=48, seed=seed)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file, whatever the names are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def folder(puzzle: Puzzle, inside: str = "") -> dict[str, bytes]:
    """A puzzle folder's files."""
    return {inside + name: content for name, content in puzzle_members(puzzle).items()}
