"""`jigsync serve` as a process: it starts, says where, serves, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from web import folder, puzzle_and_truth, until, zipped

from jigsync.cli import main
from jigsync.values.errors import OptionError
from jigsync.web.limits import Limits
from jigsync.web.serve import MOST_RECORDS, _address

COMMAND = [sys.executable, "-m", "jigsync", "serve", "--port", "0"]


def started(tmp_path: Path, *options: str, files: int | None = None) -> tuple[subprocess.Popen[str], str]:
    """The server and where it is; `files` is the system's limit on those it may have open."""
    command = [*COMMAND, *options]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    return process, found[0].rstrip("/")


def test_it_serves_until_it_is_stopped_and_removes_everything(tmp_path: Path) -> None:
    process, url = started(tmp_path)
    try:
        puzzle, _ = puzzle_and_truth()
        assert url.startswith("http://127.0.0.1:")
        assert "JigSync" in requests.get(url, timeout=20).text
        sent = requests.post(f"{url}/solve", files={"files": ("x.zip", zipped(folder(puzzle)))}, timeout=60)
        assert sent.json()["status"] == "ok"
        assert len(list(tmp_path.glob("jigsync-*"))) == 1
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "Traceback" not in said
    assert process.returncode in (0, 130)
    assert list(tmp_path.iterdir()) == []


def children(tmp_path: Path) -> set[int]:
    """The processes of a server that has this folder for its files."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={tmp_path}".encode() in path.read_bytes().split(b"\0"):
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_signal_ends_it_whatever_it_is_doing(tmp_path: Path) -> None:
    process, url = started(tmp_path)
    parts = urlsplit(url)
    heavy = {"picture": "coffee", "rows": 10, "cols": 100, "shape": 32}
    with ThreadPoolExecutor(4) as clients, ExitStack() as stack:
        held = requests.post(f"{url}/api/cuts", json={"picture": "coffee", "shape": 0}, timeout=60).json()["id"]
        job = requests.post(f"{url}/api/puzzles/{held}/jobs", json={}, timeout=60).json()["id"]
        answers = [clients.submit(requests.post, f"{url}/api/cuts", json=heavy, timeout=60) for _ in range(3)]
        answers.append(clients.submit(requests.get, f"{url}/api/jobs/{job}/events", timeout=60))
        slow = stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=60))
        slow.sendall(b"POST /api/cuts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n-")
        stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=60))
        until(lambda: len(children(tmp_path)) >= 5)
        process.terminate()
        _, said = process.communicate(timeout=30)
        ends = [(answer.result().status_code, answer.result().text) for answer in answers[:3]]
        slow.recv(4096)
    assert process.returncode == 143
    assert said.splitlines()[-1] == "jigsync: Stopped by SIGTERM."
    assert len(said.splitlines()) <= 2, "beside it, that the slow client's request was ended"
    assert ends == [(503, '{"detail":"The workbench is being stopped."}')] * 3
    until(lambda: not children(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_signal_ends_it_when_its_own_processes_do_not(tmp_path: Path) -> None:
    """Neither the workers nor the process that would end them can be told anything, and there are 120 s for a cut."""
    process, url = started(tmp_path)
    parts = urlsplit(url)
    requests.post(f"{url}/api/cuts", json={"picture": "coffee", "rows": 2, "cols": 2}, timeout=60)
    others = children(tmp_path) - {process.pid}
    body = b'{"picture": "coffee", "rows": 10, "cols": 100}'
    said = f"POST /api/cuts HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    try:
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
            client.sendall(said.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            for _ in range(3):
                requests.get(f"{url}/api/about", timeout=60)
            process.terminate()
            process.communicate(timeout=60)
    finally:
        process.kill()
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert process.returncode == 143
    until(lambda: not children(tmp_path))


def test_a_killed_server_takes_its_workers_along(tmp_path: Path) -> None:
    process, url = started(tmp_path)
    with ThreadPoolExecutor(1) as client:
        heavy = {"picture": "coffee", "rows": 10, "cols": 100, "shape": 32}
        answer = client.submit(requests.post, f"{url}/api/cuts", json=heavy, timeout=60)
        until(lambda: len(children(tmp_path)) >= 4)
        process.kill()
        process.communicate(timeout=30)
        assert isinstance(answer.exception(), requests.ConnectionError)
    until(lambda: not children(tmp_path))


def test_a_signal_to_all_of_its_processes_loses_no_job(tmp_path: Path) -> None:
    """As a service manager sends it: workers may be gone before the server has heard of it."""
    keep = tmp_path / "kept"
    process, url = started(tmp_path, "--keep", str(keep))
    held = requests.post(f"{url}/api/cuts", json={"picture": "coffee", "rows": 6, "cols": 7}, timeout=60).json()["id"]
    job = requests.post(f"{url}/api/puzzles/{held}/jobs", json={}, timeout=60).json()["id"]
    until(lambda: requests.get(f"{url}/api/jobs/{job}", timeout=60).json()["state"] == "running")
    for pid in children(tmp_path) - {process.pid}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    process.terminate()
    process.communicate(timeout=30)
    assert json.loads((keep / "jobs" / f"{job}.json").read_text())["state"] == "waiting"


def test_a_crowd_is_neither_let_in_nor_told_of(tmp_path: Path) -> None:
    """More connections than the process may have files, and as many requests that are none."""
    process, url = started(tmp_path, files=400)
    parts = urlsplit(url)
    try:
        with ExitStack() as stack:
            for _ in range(500):
                client = stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=20))
                with suppress(ConnectionError):
                    client.sendall(b"GET / HTTP/1.1\r\nHost: lo")
            assert requests.get(f"{url}/api/about", timeout=20).status_code == 200
        for _ in range(300):
            with socket.create_connection((parts.hostname, parts.port), timeout=20) as client:
                client.sendall(b"\x1b[2J\r\n\r\n")
                assert client.recv(4096).startswith(b"HTTP/1.1 400")
        for _ in range(100):
            assert requests.get(f"{url}/api/puzzles/{'x' * 20_000}", timeout=20).status_code == 422
    finally:
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert said.count("Invalid HTTP request") == MOST_RECORDS
    assert len(said.splitlines()) == MOST_RECORDS + 1
    assert len(said) < 100 * MOST_RECORDS


def test_no_part_of_it_reports_to_anybody(tmp_path: Path) -> None:
    """onnxruntime keeps an id of the machine for its reports beside temporary files, unless it is told not to."""
    pytest.importorskip("onnxruntime")
    program = "from jigsync.measure.matcher import load_matcher\nload_matcher()\nprint('loaded')\n"
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, list(tmp_path.iterdir())) == ("loaded\n", []), done.stderr


def test_the_extra_is_named_when_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve"]) == 2
    assert "The workbench needs the package 'fastapi'" in (said := capsys.readouterr().err)
    assert "pip install 'jigsync[web]'" in said


def test_wrong_addresses_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "203.0.113.7"]) == 2
    assert "cannot listen on 203.0.113.7:8765" in capsys.readouterr().err
    assert main(["serve", "--max-jobs", "0"]) == 2


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/"),
        ("0.0.0.0", "http://127.0.0.1:80/"),
        ("::", "http://[::1]:80/"),
        ("fe80::7", "http://[fe80::7]:80/"),
        ("bench.example", "http://bench.example:80/"),
    ],
)
def test_the_page_is_where_it_says(host: str, address: str) -> None:
    assert _address(host, 80) == address


@pytest.mark.parametrize("wrong", [{"pixels": 0}, {"upload_bytes": -1}, {"waiting_jobs": -1}])
def test_limits_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Limits(**wrong)
