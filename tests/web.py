"""A real workbench server on a free port, and small things to send to it."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

import jigsync
from jigsync import data
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth
from jigsync.web.kept import Kept
from jigsync.web.limits import Limits


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
    import uvicorn

    from jigsync.web.app import create_app

    app = create_app(limits, names, kept)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
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
