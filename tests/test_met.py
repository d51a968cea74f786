"""The Met download against a local stand-in of the museum's API, made here."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from jigsync.cli import main
from jigsync.corpus import met
from jigsync.corpus.download import Client, Refused, Unreachable, host_of
from jigsync.corpus.met import fetch
from jigsync.io.files import read_jsonl
from jigsync.io.images import list_images, png_bytes
from jigsync.values.errors import InputError, OptionError


def picture(number: int) -> bytes:
    return png_bytes(np.random.default_rng(number).integers(0, 256, (12, 20, 3), dtype=np.uint8))


@dataclass
class Museum:
    """The stand-in: objects by id, faults by path (each fault is used up once), and what was asked."""

    base: str = ""
    objects: dict[int, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    queries: list[dict[str, list[str]]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        self.asked.append(parts.path)
        faults = self.faults.get(parts.path, [])
        fault = faults.pop(0) if faults else ""
        if parts.path == "/v1/search":
            self.queries.append(parse_qs(parts.query))
            body = json.dumps({"total": len(self.objects), "objectIDs": list(self.objects) or None}).encode()
        elif parts.path.startswith("/v1/objects/"):
            found = self.objects.get(int(parts.path.rsplit("/", 1)[1]))
            fault = fault if found is not None else "404"
            body = json.dumps(found).encode()
        else:
            body = picture(int(parts.path.rsplit("/", 1)[1].split(".")[0]))
        self.send(handler, body, fault)

    def send(self, handler: BaseHTTPRequestHandler, body: bytes, fault: str) -> None:
        if fault.isdigit():
            handler.send_response(int(fault))
            handler.send_header("Retry-After", "7" if fault == "429" else "soon")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if fault.startswith("http"):
            handler.send_response(302)
            handler.send_header("Location", fault)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if fault == "hang":
            self.release.wait(60)
        if fault == "broken":
            body = body[: len(body) // 2]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2] if fault == "cut" else body)

    def add(self, number: int, **changes: Any) -> None:
        self.objects[number] = {
            "objectID": number,
            "isPublicDomain": True,
            "primaryImage": f"{self.base.removesuffix('/v1')}/images/{number}.png",
            "title": f"Vase é {number}",
            "artistDisplayName": "",
            "objectDate": "ca. 1770",
            "objectURL": f"https://example.org/{number}",
            **changes,
        }


@pytest.fixture
def museum(monkeypatch: pytest.MonkeyPatch) -> Iterator[Museum]:
    monkeypatch.setenv("no_proxy", "*")
    state = Museum()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                state.answer(self)
            except ConnectionError:  # the reader was killed or lost its patience
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.base = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for number in (40, 7, 11, 300):
        state.add(number)
    yield state
    state.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


def quick(museum: Museum, **options: Any) -> tuple[Client, list[float]]:
    waits: list[float] = []
    settings = {"pause": 0.0, "backoff": 1.0, "timeout": 5.0, "sleep": waits.append, **options}
    return Client(frozenset((host_of(museum.base),)), **settings), waits


def run(museum: Museum, out: Path, limit: int, **options: Any) -> met.Fetched:
    return fetch(out, limit, base_url=museum.base, client=quick(museum, **options)[0])


def test_pictures_and_licences(museum: Museum, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    client, waits = quick(museum)
    out = tmp_path / "met é"
    result = fetch(out, 3, base_url=museum.base, client=client, progress=lambda *args: seen.append(args))
    assert (result.pictures, result.downloaded, result.failed) == (3, 3, ())
    assert [path.name for path in list_images(out)] == ["7.png", "11.png", "40.png"]
    rows = read_jsonl(out / "licences.jsonl")
    assert rows[0] == {
        "object_id": 7,
        "title": "Vase é 7",
        "artist": "",
        "date": "ca. 1770",
        "licence": "CC0-1.0",
        "url": "https://example.org/7",
        "image_url": f"{museum.base.removesuffix('/v1')}/images/7.png",
        "file": "7.png",
        "bytes": len(picture(7)),
        "sha256": hashlib.sha256(picture(7)).hexdigest(),
    }
    assert (out / "11.png").read_bytes() == picture(11)
    assert museum.queries == [{"isHighlight": ["true"], "isPublicDomain": ["true"], "hasImages": ["true"], "q": ["*"]}]
    assert seen[-1] == ("pictures", 3, 3)
    assert waits == []


def test_resume_asks_only_for_what_is_missing(museum: Museum, tmp_path: Path) -> None:
    run(museum, tmp_path / "out", 2)
    museum.asked.clear()
    result = run(museum, tmp_path / "out", 3)
    assert (result.pictures, result.downloaded) == (3, 1)
    assert museum.asked == ["/v1/search", "/v1/objects/40", "/images/40.png"]
    museum.asked.clear()
    assert run(museum, tmp_path / "out", 3).downloaded == 0
    assert museum.asked == []
    # A picture that is gone or was cut is fetched again; its line stands twice, the last one counts.
    (tmp_path / "out" / "7.png").write_bytes(b"half")
    (tmp_path / "out" / "11.png").unlink()
    assert run(museum, tmp_path / "out", 3).downloaded == 2
    assert (tmp_path / "out" / "7.png").read_bytes() == picture(7)


def test_retries_with_backoff(museum: Museum, tmp_path: Path) -> None:
    museum.faults = {
        "/v1/search": ["503"],
        "/v1/objects/7": ["429", "500"],
        "/images/7.png": ["cut", "hang", "504"],
    }
    client, waits = quick(museum, timeout=0.3)
    assert fetch(tmp_path / "out", 1, base_url=museum.base, client=client).pictures == 1
    # The first retry after 1, then 2, then 4 seconds; a 429 says how long, and 7 is longer than 1.
    assert waits == [1.0, 7.0, 2.0, 1.0, 2.0, 4.0]
    assert (tmp_path / "out" / "7.png").read_bytes() == picture(7)


def test_a_broken_picture_is_tried_twice_then_left_for_another_day(museum: Museum, tmp_path: Path) -> None:
    museum.faults = {"/images/7.png": ["broken", "broken"], "/images/11.png": ["broken"]}
    result = run(museum, tmp_path / "out", 2)
    assert [entry.object_id for entry in result.failed] == [7]
    assert "broken or truncated" in result.failed[0].reason
    assert [path.name for path in list_images(tmp_path / "out")] == ["11.png", "40.png"]
    assert not (tmp_path / "out" / "skipped.jsonl").exists()
    assert run(museum, tmp_path / "out", 3).failed == ()
    assert (tmp_path / "out" / "7.png").read_bytes() == picture(7)


def test_objects_that_can_never_be_used_are_remembered(museum: Museum, tmp_path: Path) -> None:
    museum.add(1, isPublicDomain=False)
    museum.add(2, primaryImage="")
    museum.add(3, primaryImage="https://elsewhere.example/3.jpg")
    museum.add(4, primaryImage="file:///etc/passwd")
    museum.add(5, title=17)
    museum.objects[6] = None  # type: ignore[assignment]
    museum.faults = {"/images/7.png": ["http://elsewhere.example/7.png"]}
    result = run(museum, tmp_path / "out", 2)
    reasons = {entry.object_id: entry.reason for entry in result.failed}
    assert reasons[1] == "The object 1 is not in the public domain."
    assert reasons[2] == "The object 2 has no picture."
    host = host_of(museum.base)
    assert reasons[3] == f"The address 'https://elsewhere.example/3.jpg' must be on {host}."
    assert reasons[4] == f"The address 'file:///etc/passwd' must be on {host}."
    assert "'title'" in reasons[5]
    assert "status 404" in reasons[6]
    assert "http://elsewhere.example/7.png' must be on" in reasons[7]
    assert [row["object_id"] for row in read_jsonl(tmp_path / "out" / "skipped.jsonl")] == [1, 2, 3, 4, 6, 7]
    museum.asked.clear()
    assert run(museum, tmp_path / "out", 3).pictures == 3
    # Nonsense (object 5) may be better another day.
    assert museum.asked == ["/v1/search", "/v1/objects/5", "/images/5.png", "/v1/objects/300", "/images/300.png"]


def test_size_limit(museum: Museum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(met, "MAX_PICTURE", 100)
    with pytest.raises(InputError, match=r"gave no picture that can be used\. .* must have at most 100 bytes"):
        run(museum, tmp_path / "out", 1)
    assert list_of(tmp_path / "out") == ["skipped.jsonl"]


def list_of(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_dead_server_stops_the_download(museum: Museum, tmp_path: Path) -> None:
    for number in range(400, 410):
        museum.add(number)
    for number in range(500):
        museum.faults[f"/v1/objects/{number}"] = ["503"] * 9
    with pytest.raises(InputError, match=r"Stopped after 5 objects in a row without .* after 2 attempts: status 503"):
        run(museum, tmp_path / "out", 9, attempts=2)
    assert Counter(museum.asked).most_common(1)[0][1] == 2
    museum.faults = {"/v1/search": ["403"]}
    with pytest.raises(Unreachable, match="answers with status 403"):
        run(museum, tmp_path / "out", 1)
    with pytest.raises(Unreachable, match="cannot be read after 2 attempts: Connection refused"):
        fetch(
            tmp_path / "none", 1, base_url="http://127.0.0.1:9/v1", client=Client(frozenset(("127.0.0.1:9",)), 0, 2, 0)
        )
    assert list_of(tmp_path) == []


def test_nothing_found(museum: Museum, tmp_path: Path) -> None:
    museum.objects.clear()
    with pytest.raises(InputError, match="gave no picture that can be used"):
        run(museum, tmp_path / "out", 1)
    assert list_of(tmp_path) == []


def test_pause_between_requests() -> None:
    waits: list[float] = []
    client = Client(frozenset(("127.0.0.1:9",)), pause=50.0, attempts=3, backoff=0.0, sleep=waits.append)
    with pytest.raises(Unreachable):
        client.get("http://127.0.0.1:9/", 10)
    # The clock stands still for a fake sleep: the second request has to wait 50 seconds, the third 100.
    assert [round(wait) for wait in waits if wait] == [50, 100]


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1:9/x", "http://127.0.0.1/x", "http://[", "", "http://127.0.0.1:9@evil/"]
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(Refused, match="must be on 127"):
        Client(frozenset(("127.0.0.1:9",))).get(url, 10)


@pytest.mark.parametrize("limit", [0, -1, 10**9, True])
def test_bad_limits(tmp_path: Path, limit: int) -> None:
    with pytest.raises(OptionError, match="'limit' of the download"):
        fetch(tmp_path, limit)


def test_folders_of_others_are_left_alone(museum: Museum, tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"mine")
    with pytest.raises(OptionError, match=r"must be empty or hold an earlier download\. It holds 'holiday\.jpg'"):
        run(museum, tmp_path, 1)
    with pytest.raises(OptionError, match=r"must be a folder\. Got a file"):
        run(museum, tmp_path / "holiday.jpg", 1)
    with pytest.raises(OptionError, match="base address must be a web address"):
        fetch(tmp_path / "out", 1, base_url="ftp://x")
    assert museum.asked == []


def test_kill_and_resume(museum: Museum, tmp_path: Path) -> None:
    out = tmp_path / "out"
    museum.faults = {"/images/40.png": ["hang"]}
    command = [sys.executable, "-m", "jigsync", "corpus", "fetch-met", f"--out={out}", f"--base-url={museum.base}"]
    process = subprocess.Popen([*command, "--limit=4"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and "/images/40.png" not in museum.asked:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    museum.release.set()
    with open(out / "licences.jsonl", "ab") as file:
        file.write(b'{"object_id": 40, "ti')
    museum.faults.clear()
    result = run(museum, out, 4)
    assert (result.pictures, result.downloaded) == (4, 2)
    rows = read_jsonl(out / "licences.jsonl")
    assert [row["object_id"] for row in rows] == [7, 11, 40, 300]
    assert all(hashlib.sha256((out / row["file"]).read_bytes()).hexdigest() == row["sha256"] for row in rows)


def test_command_line(museum: Museum, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    museum.add(1, isPublicDomain=False)
    options = ["corpus", "fetch-met", f"--out={tmp_path / 'out'}", "--limit=1", f"--base-url={museum.base}"]
    assert main([*options, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["pictures"] == 1
    assert result["failed"] == [{"object_id": 1, "reason": "The object 1 is not in the public domain."}]
    assert main(options) == 0
    assert capsys.readouterr().out.startswith("1 pictures (0 new, 0 skipped) in")
