"""Files are whole or absent; JSON and JSON lines are read strictly and survive a kill."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsync.io import files
from jigsync.values.errors import FormatError, InputError, OptionError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)


def test_write_replaces_and_makes_parents(tmp_path: Path) -> None:
    target = tmp_path / "a b" / "ünï.json"
    files.write_json(target, {"x": [1, None, "é"]})
    files.write_json(target, {"x": 2})
    assert files.read_json(target) == {"x": 2}
    assert names(target.parent) == ["ünï.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


@pytest.mark.usefixtures("full_disk")
def test_full_disk_keeps_the_old_file_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "old.json"
    target.write_bytes(b"old")
    with pytest.raises(InputError, match=r"old\.json' cannot be written: No space left on device\.$"):
        files.write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    with pytest.raises(InputError, match="No space left"):
        files.write_bytes(tmp_path / "new" / "deep" / "file", b"new")
    with pytest.raises(InputError, match="No space left"), files.atomic_folder(tmp_path / "p" / "folder") as folder:
        (folder / "x").write_bytes(b"x")
    assert names(tmp_path) == ["old.json"]


def test_a_value_that_json_cannot_hold_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "a" / "x.json", {"x": float("nan")})
    assert names(tmp_path) == []


def test_atomic_folder_appears_at_once_or_never(tmp_path: Path) -> None:
    target = tmp_path / "made" / "out"
    with pytest.raises(ZeroDivisionError), files.atomic_folder(target) as folder:
        folder.joinpath("half").write_bytes(bytes(1 // target.exists()))
    assert names(tmp_path) == []
    target.mkdir(parents=True)
    with files.atomic_folder(target) as folder:
        (folder / "a").write_bytes(b"1")
    assert names(target) == ["a"]
    assert names(target.parent) == ["out"]


def test_overwrite_replaces_only_our_own_names(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "a").write_bytes(b"old")
    with pytest.raises(OptionError, match="must be empty or not exist"), files.atomic_folder(target):
        pytest.fail("the block must not run")
    with files.atomic_folder(target, overwrite=True, ours=("a",)) as folder:
        (folder / "a").write_bytes(b"new")
    assert (target / "a").read_bytes() == b"new"
    (target / "holiday.jpg").write_bytes(b"mine")
    with pytest.raises(OptionError, match=r"holds 'holiday\.jpg', which is not ours"):
        files.check_output_folder(target, overwrite=True, ours=("a",))
    assert names(tmp_path) == ["out"]


def test_a_failed_swap_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "a").write_bytes(b"old")
    rename, calls = os.rename, []

    def second_fails(src: Path, dst: Path) -> None:
        calls.append(dst)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        rename(src, dst)

    monkeypatch.setattr(os, "rename", second_fails)
    with (
        pytest.raises(InputError, match="Input/output error"),
        files.atomic_folder(target, overwrite=True, ours=("a",)) as folder,
    ):
        (folder / "a").write_bytes(b"new")
    assert (target / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_output_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OptionError, match=r"must be a folder\. Got a file"):
        files.check_output_folder(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        files.write_bytes(tmp_path / "file" / "below", b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"a": NaN}', "NaN is not a number of JSON"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b"[1e999]", "1e999 is too large"),
        (b"[" + b"9" * 5000 + b".0]", "the number 999"),
        (b"[1" + b"0" * 5000 + b"]", "digits"),
        (b'{"' + b"k" * 5000 + b'": 1, "' + b"k" * 5000 + b'": 2}', "kkk...' stands twice"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice"),
        (b'"\\ud800"', "lone surrogate"),
        (b"\xff\xfe", "UTF-8 text. Got byte 0xff"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 6000, "not valid JSON"),
    ],
)
def test_bad_json_is_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(FormatError) as caught:
        files.read_json(tmp_path / "x.json")
    assert words in str(caught.value)
    assert "x.json'" in str(caught.value)
    assert len(str(caught.value)) < len(str(tmp_path)) + 250  # what is quoted is cut off
    assert len(str(caught.value)) < 400


def test_paired_surrogates_are_fine() -> None:
    assert files.parse_json(b'"\\ud83d\\ude00"', "x") == "\U0001f600"


def test_unreadable_json(tmp_path: Path) -> None:
    (tmp_path / "big.json").write_bytes(b"[" + b" " * 100 + b"]")
    with pytest.raises(InputError, match="at most 100 bytes"):
        files.read_json(tmp_path / "big.json", limit=100)
    assert files.read_json(tmp_path / "big.json", limit=102) == []
    with pytest.raises(InputError, match="cannot be read: No such file"):
        files.read_json(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        files.read_json(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        files.read_json("a\0b")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_format_error(data: bytes) -> None:
    try:
        value = files.parse_json(data, "x")
    except FormatError:
        return
    assert files.parse_json(files.json_bytes(value), "x") == value


ROWS = st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=3), max_size=4)


@settings(max_examples=40)
@given(ROWS, ROWS, st.floats(0, 1))
def test_json_lines_survive_a_kill_at_any_byte(
    tmp_path_factory: pytest.TempPathFactory, old: list[dict[str, int]], new: list[dict[str, int]], share: float
) -> None:
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    files.append_jsonl(path, old)
    whole = path.read_bytes()
    cut = round(share * len(whole))
    path.write_bytes(whole[:cut])
    left = files.read_jsonl(path)
    assert left == old[: len(left)]
    assert len(left) >= whole[:cut].count(b"\n")
    files.append_jsonl(path, new)
    assert files.read_jsonl(path) == left + new


def test_json_lines_name_the_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":\n{"a":3}\n')
    with pytest.raises(FormatError, match=r"rows\.jsonl:2' is not valid JSON"):
        files.read_jsonl(path)
    path.write_bytes(b'{"a":1}\n[2]\n')
    with pytest.raises(FormatError, match=r"Line 2 of the file .* must be a JSON object"):
        files.read_jsonl(path)


# ---------------------------------------------------------------------------------------------- left behind

WRITER = """
import sys, time
from pathlib import Path
from jigsync.io import files
kind, target = sys.argv[1:]
with (files.atomic_file if kind == "file" else files.atomic_folder)(target) as made:
    if kind == "folder":
        (made / "half").write_bytes(b"half")
    print("begun", flush=True)
    time.sleep(60)
"""


def writing(kind: str, target: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, kind, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_cleared_away_and_nothing_else(tmp_path: Path, kind: str) -> None:
    dead, alive = writing(kind, tmp_path / "dead"), writing(kind, tmp_path / "alive")
    with alive, dead:
        dead.kill()
        dead.wait()
        assert len(names(tmp_path)) == 2
        (tmp_path / "file").mkdir()
        with files.atomic_folder(tmp_path / "new"):
            pass
        [left] = [name for name in names(tmp_path) if files.is_leftover(name)]
        alive.kill()
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == ["file", "new"]
    assert files.is_leftover(left)


def test_a_writer_clears_a_folder_once(tmp_path: Path) -> None:
    (tmp_path / ".jigsync-0.tmp").write_bytes(b"left by a kill")
    files.write_bytes(tmp_path / "a", b"")
    assert names(tmp_path) == ["a"]
    (tmp_path / ".jigsync-0.tmp").write_bytes(b"left by a kill")
    files.write_bytes(tmp_path / "b", b"")
    assert names(tmp_path) == [".jigsync-0.tmp", "a", "b"], "a folder of very many files is not listed for each"


def test_what_is_no_file_of_ours_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".jigsync-1.tmp").symlink_to(elsewhere)
    os.mkfifo(tmp_path / ".jigsync-2.tmp")
    files.remove_leftovers(tmp_path)
    assert elsewhere.is_dir()
    assert ".jigsync-1.tmp" in names(tmp_path)


def test_a_newcomer_that_is_taken_for_a_leftover_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making a file and locking it there is a moment."""
    made = []
    usual = files._new_folder

    def cleared_at_once(path: Path) -> int:
        handle = usual(path)
        made.append(path)
        if len(made) == 1:
            files.remove_leftovers(tmp_path)
        return handle

    monkeypatch.setattr(files, "_new_folder", cleared_at_once)
    with files.atomic_folder(tmp_path / "new") as folder:
        (folder / "x").write_bytes(b"x")
    assert (len(made), names(tmp_path), names(tmp_path / "new")) == (2, ["new"], ["x"])


def test_a_folder_behind_a_link_that_leads_nowhere_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(OptionError, match="Got a link that leads nowhere"),
        files.atomic_folder(tmp_path / "link"),
    ):
        pass
    assert names(tmp_path) == ["link"]


@pytest.mark.parametrize("read", [lambda path: files.read_bytes(path, 9), files.read_json, files.read_jsonl])
def test_a_pipe_is_not_waited_for(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    os.mkfifo(tmp_path / "pipe")
    signal.alarm(20)
    try:
        with pytest.raises(InputError, match="pipe' cannot be read: it must be a plain file"):
            read(tmp_path / "pipe")
    finally:
        signal.alarm(0)
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path)


def test_reading_takes_as_much_memory_as_there_is_to_read(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert files.read_bytes(tmp_path / "small", 1 << 30) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert files.read_bytes(Path("/proc/self/stat"), 1 << 20), "says it has no bytes, and has some"


def test_json_has_a_limit_wherever_it_comes_from() -> None:
    text = b"[" + b"1," * 200 + b"1]"
    assert len(files.parse_json(text, "x", len(text))) == 201
    with pytest.raises(InputError, match=rf"'x' must have at most {len(text) - 1} bytes"):
        files.parse_json(text, "x", len(text) - 1)
