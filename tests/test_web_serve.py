"""`jigsync serve` as a process: it starts, says where, serves, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from web import folder, puzzle_and_truth, zipped

from jigsync.cli import main
from jigsync.values.errors import OptionError
from jigsync.web.limits import Limits
from jigsync.web.serve import _address

COMMAND = [sys.executable, "-m", "jigsync", "serve", "--port", "0"]


def started(tmp_path: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [*COMMAND, *options], stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
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
