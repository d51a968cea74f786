"""Files made to harm (fuzz_hostile.py), and hostile names, links and pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fuzz_seeds as seeds
import pytest
from fuzz_hostile import CASES, TAKEN
from fuzz_readers import write

import jigsync
from jigsync.cli import main
from jigsync.io.images import natural_key
from jigsync.io.puzzle_folder import load_folder
from jigsync.values.errors import InputError

for needed in ("h5py", "onnx", "torch"):
    pytest.importorskip(needed)

LARGEST = 400 << 20
"""Bytes that reading any of them may take."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    script = Path(__file__).with_name("fuzz_hostile.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=600)
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.xdist_group("hostile")
@pytest.mark.parametrize("name", CASES)
def test_hostile_files_are_refused(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    outcome = outcomes[name]
    assert outcome["defect"] == ""
    assert outcome["refused"] or name in TAKEN
    assert outcome["memory"] < LARGEST


@pytest.fixture
def patience() -> Iterator[None]:
    """Ends a test that waits for ever."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.usefixtures("patience")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    write(seeds.puzzle_folder(), tmp_path)
    (tmp_path / "fragments" / "f07.png").unlink()
    os.mkfifo(tmp_path / "fragments" / "f07.png")
    with pytest.raises(InputError, match="must be a plain file"):
        jigsync.load(tmp_path)


@pytest.mark.usefixtures("patience")
def test_pipes_and_links_in_a_folder_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(seeds.pictures()[0])
    os.mkfifo(tmp_path / "b.png")
    assert jigsync.load(tmp_path).ids == ("a",)
    (tmp_path / "c.png").symlink_to("c.png")
    with pytest.raises(InputError, match=r"c\.png"):
        jigsync.load(tmp_path)


NAMES = (
    b"new\nline.png",
    b"esc\x1b[2J.png",
    b"\xff\xfe.png",
    b"-rf.png",
    b"$(reboot).png",
    b"a'b\"c.png",
    b"\xe2\x80\xae.png",
)


def test_hostile_file_names_are_ids_and_messages_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        with open(os.fsencode(tmp_path) + b"/" + name, "wb") as file:
            file.write(seeds.pictures()[0])
    ids = load_folder(tmp_path).ids
    assert len(ids) == len(NAMES)
    assert all(name.isascii() and name.isprintable() for name in ids)
    with open(os.fsencode(tmp_path) + b"/" + NAMES[1], "wb") as file:
        file.write(b"no picture")
    assert main(["solve", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert told.count("\n") == 1


def test_a_folder_of_any_name_is_shown(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe two\nlines esc\x1b[2J"))
    write(seeds.puzzle_folder(), folder)
    command = [sys.executable, "-m", "jigsync", "show", os.fspath(folder), "--out", str(tmp_path / "sheet.png")]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "sheet.png").is_file()


def test_ten_thousand_names_that_become_one(tmp_path: Path) -> None:
    """Names without a letter that an id may have get numbers, and that is no square of work."""
    from jigsync.io.puzzle_folder import _ids_of

    ids = _ids_of([chr(0x4E00 + k) for k in range(10_000)])
    assert len(set(ids)) == 10_000
    assert ids[:3] == ["fragment", "fragment-2", "fragment-3"]


def test_numbers_of_any_length_sort() -> None:
    names = ["a" + "9" * 5000, "a10", "a9", "a" + "1" * 5000]
    assert sorted(names, key=natural_key)[:2] == ["a9", "a10"]
