"""Requests that were made to cost much: what the workbench answers, what they take, and how long others wait.

python benchmarks/attacks.py [--only WORDS] [--json]

It starts `jigsync serve` with its defaults and sends one attack after the other: bodies, archives and pictures of the
largest size that is let in, and slow clients in crowds. Meanwhile a probe asks for `/api/about` ten times per second on
a connection of its own. Printed are the answers, the seconds until the last of them, the longest wait of the probe, and
the most memory (RSS) that the server and any one of its processes held. Exit code 1 when one held more than 1.5 GB.
"""

from __future__ import annotations

import argparse
import io
import json
import socket
import struct
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import requests
from served import Served, packed_puzzles

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from test_blocks import (
    jpeg_of_padding,
    jpeg_of_scans,
    jpeg_of_segments,
    png_of_empty_chunks,
    tiff_of_pages,
    tiff_of_strips,
)

from jigsync.io.images import png_bytes

MOST_BYTES: Final = 1_500_000_000
"""Memory that no process may exceed."""
PROBE: Final = 0.1
"""Seconds between two questions of the probe."""
PATIENCE: Final = 600.0
"""Seconds that an answer may take."""


@dataclass(frozen=True)
class Row:
    """What came of an attack.

    Attributes:
        answers: status -> how many.
        waited: the longest wait of the probe.
        server_mb, worker_mb: most memory of the server, and of any process that it started.
    """

    attack: str
    answers: dict[str, int]
    said: str
    seconds: float
    waited: float
    server_mb: float
    worker_mb: float


class Watch:
    """The probe, and an eye on memory, while it is entered."""

    def __init__(self, served: Served) -> None:
        self.waited, self.server, self.worker = 0.0, 0, 0
        self._served, self._over = served, threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._probe, self._weigh)]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _probe(self) -> None:
        with requests.Session() as session:
            while not self._over.wait(PROBE):
                start = time.perf_counter()
                status = session.get(f"http://127.0.0.1:{self._served.port}/api/about", timeout=PATIENCE).status_code
                self.waited = max(self.waited, time.perf_counter() - start if status == 200 else PATIENCE)

    def _weigh(self) -> None:
        while not self._over.wait(PROBE):
            server, others = self._served.each()
            self.server, self.worker = max(self.server, server), max(self.worker, *others, 0)


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def lying(count: int) -> bytes:
    """A zip whose entry says that it has 10 bytes."""
    honest = zipped({"a.png": bytes(count)})
    at = honest.index(b"PK\x01\x02")
    return honest[: at + 24] + struct.pack("<I", 10) + honest[at + 28 :]


def deep_json(count: int) -> bytes:
    """A puzzle.json of very many empty lists."""
    return b'{"a": [' + b"[]," * count + b"0]}"


Send = Callable[[str], list[requests.Response]]
"""Sends an attack to a server at this address."""


def upload(*files: bytes, kind: str = "auto", times: int = 1) -> Send:
    """Files, by so many clients at once."""

    def send(url: str) -> list[requests.Response]:
        # What a file is told by its bytes; its name must be a picture's.
        parts = [("files", (f"{k}.png", content)) for k, content in enumerate(files)]
        return at_once(
            lambda: requests.post(f"{url}/api/puzzles", files=parts, data={"kind": kind}, timeout=PATIENCE), times
        )

    return send


def post(path: str, body: Any, times: int = 1) -> Send:
    """A body, JSON unless it is bytes already, by so many clients at once."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    return lambda url: at_once(lambda: requests.post(url + path, data=data, headers=headers, timeout=PATIENCE), times)


def at_once(ask: Callable[[], requests.Response], times: int) -> list[requests.Response]:
    """The answers of so many clients."""
    answers: list[requests.Response] = []
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def crowd(said: bytes, count: int, seconds: float, drip: bytes = b"") -> Send:
    """So many connections that have said this and then nothing, or a little every second."""

    def send(url: str) -> list[requests.Response]:
        port = int(url.rpartition(":")[2])
        with ExitStack() as stack:
            clients = []
            for _ in range(count):
                with suppress(OSError):
                    clients.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)))
                    clients[-1].sendall(said)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(1.0)
                for client in clients if drip else ():
                    with suppress(OSError):
                        client.sendall(drip)
        return []

    return send


def attacks() -> Iterator[tuple[str, Send]]:
    """Name and deed of every attack."""
    jobs = f"/api/puzzles/{'x' * 16}/jobs"
    bomb = zipped({"a.png": bytes(250_000_000)})
    form = (
        b"POST /api/puzzles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n"
        b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
    )
    yield "a list of 499 000 numbers where ids belong", post(jobs, b'{"exclude":[' + b"0," * 499_000 + b"0]}")
    yield "the same, 31 MB", post(jobs, b'{"exclude":[' + b"0," * 15_500_000 + b"0]}")
    yield "12 zips that unpack to 250 MB each", upload(*[bomb] * 12)
    yield "the same from 8 clients", upload(*[bomb] * 12, times=8)
    yield "an entry of 1 GB that says 10 bytes", upload(lying(1_000_000_000))
    yield "a puzzle.json of 250 MB in a zip", upload(zipped({"puzzle.json": deep_json(83_000_000)}))
    yield "a TIFF of 40 000 pages", upload(tiff_of_pages(40_000), times=4)
    yield "a TIFF of 4 million strips", upload(tiff_of_strips(4_000_000))
    yield "a JPEG of 5 million segments", upload(jpeg_of_segments(5_000_000))
    yield "a JPEG of 20 MB of padding", upload(jpeg_of_padding(20_000_000))
    yield "a JPEG of 1000 passes", upload(jpeg_of_scans(1000))
    yield "a PNG of 1.5 million empty chunks", upload(png_of_empty_chunks(1_500_000))
    yield "a scan of 100 million pixels", upload(png_bytes(np.zeros((10_000, 10_000), np.uint8)), kind="scan", times=4)
    yield (
        "100 x 10 fragments, 4 clients",
        post("/api/cuts", {"picture": "coffee", "rows": 10, "cols": 100, "shape": 32}, 4),
    )
    yield "1100 half-sent heads", crowd(b"GET / HTTP/1.1\r\nHost: lo", 1100, 15.0)
    yield "256 bodies, a byte per second", crowd(form, 256, 60.0, drip=b"-")
    yield (
        "256 connections that do not take what they asked for",
        crowd(b"GET /static/app.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50, 256, 30.0),
    )


def strike(served: Served, name: str, send: Send) -> Row:
    """One attack."""
    start = time.monotonic()
    with Watch(served) as watch:
        answers = send(f"http://127.0.0.1:{served.port}")
        seconds = time.monotonic() - start
    counts = Counter(str(answer.status_code) for answer in answers)
    said = "" if not answers or answers[0].status_code < 400 else str(answers[0].json()["detail"])
    return Row(
        name, dict(counts), said, round(seconds, 1), round(watch.waited, 2), watch.server / 1e6, watch.worker / 1e6
    )


@contextmanager
def serving() -> Iterator[Served]:
    """A server that has solved something already."""
    with tempfile.TemporaryDirectory() as made:
        served = Served(Path(made))
        try:
            client = served.client()
            [puzzle] = packed_puzzles(1)
            client.upload("/solve", puzzle)
            client.close()
            yield served
        finally:
            served.stop()
        if "Traceback" in served.said.read_text(encoding="utf-8"):
            raise RuntimeError("The server's log holds a traceback.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="attacks whose name holds these words")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    rows = []
    with serving() as served:
        for name, send in attacks():
            if options.only in name:
                rows.append(strike(served, name, send))
                print(f"  {name}: {rows[-1].answers} in {rows[-1].seconds} s", file=sys.stderr, flush=True)
    print(json.dumps([asdict(row) for row in rows]) if options.json else table(rows))
    return 1 if any(1e6 * max(row.server_mb, row.worker_mb) > MOST_BYTES for row in rows) else 0


def table(rows: list[Row]) -> str:
    """The rows as text."""
    lines = [f"{'attack':<54} answers    seconds  probe waited s  server MB  worker MB"]
    for row in rows:
        answers = " ".join(f"{count}x{status}" for status, count in row.answers.items()) or "-"
        lines.append(
            f"{row.attack:<54} {answers:<10} {row.seconds:7.1f} {row.waited:15.2f}"
            f" {row.server_mb:10.0f} {row.worker_mb:10.0f}"
        )
    return "\n".join([*lines, *sorted({f"said: {row.said}" for row in rows if row.said})])


if __name__ == "__main__":
    sys.exit(main())
