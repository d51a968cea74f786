"""Nothing that a file, a folder or a client is called reaches a terminal as anything but text."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import sys
import unicodedata
from pathlib import Path

import pytest

import jigsync
from jigsync import data
from jigsync.cli import main
from jigsync.io.terminal import LONGEST_RECORD, console, plain, say, say_json, say_line, to_stderr

SOURCE = Path(jigsync.__file__).parent
EVIL = "a\x1b[2J\x1b]8;;http://x\x07\x9b31m\x7f\u202e\r\x08b"


def shown(text: str) -> bool:
    """Is every character there to be read?"""
    return all(c == "\n" or not unicodedata.category(c).startswith("C") for c in text)


def test_what_is_there_to_be_read_stays() -> None:
    text = "Überall: 4 x 6 → “ok”, 90°, 木\nsecond line"
    assert plain(text) == text
    assert plain("a\tb") == "a b"
    assert shown(plain(EVIL + "\ud800\u2028"))
    assert plain(EVIL).startswith("a?[2J?]8;;http://x??31m??")


def test_lines_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\ntwo")
    say_line("one\ntwo\r\nthree", err=True)
    assert capsys.readouterr() == ("one\ntwo\n", "one two three\n")


def test_json_is_escaped_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({EVIL: [EVIL]})
    told = capsys.readouterr().out
    assert shown(told)
    assert json.loads(told) == {EVIL: [EVIL]}


def test_a_stream_that_knows_few_characters_gets_those(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    say("é\ud800")
    stream.flush()
    assert stream.buffer.getvalue() == b"??\n"  # type: ignore[attr-defined]


def test_tables_hold_text(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    table = Table(EVIL, title=EVIL)
    table.add_row(EVIL)
    console().print(table)
    console().print(EVIL)
    assert shown(capsys.readouterr().out)


def test_records_are_plain_short_and_few(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("a test of records")
    log.propagate = False
    log.handlers = [to_stderr(most=5, seconds=1e-9), to_stderr(most=3, seconds=3600)]
    try:
        log.handlers = [to_stderr(most=3, seconds=3600)]
        for number in range(50):
            log.warning("%s %d", EVIL, number)
        log.handlers = [to_stderr()]
        log.warning("x" * 10 * LONGEST_RECORD)
        try:
            raise ValueError(EVIL)
        except ValueError:
            log.exception("It failed.")
    finally:
        log.handlers = []
    told = capsys.readouterr().err
    assert shown(told)
    assert told.count("31m") == 4, "three of fifty, and the exception"
    assert len(told) < 2 * LONGEST_RECORD


def test_records_that_were_left_out_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("jigsync.io.terminal.time.monotonic", lambda: now[0])
    log = logging.getLogger("another test of records")
    log.propagate = False
    log.handlers = [to_stderr(most=2, seconds=60)]
    try:
        for second in (0, 1, 2, 3, 61):
            now[0] = second
            log.warning("at %d", second)
    finally:
        log.handlers = []
    told = capsys.readouterr().err.splitlines()
    assert told == ["at 0", "at 1", "(2 messages before this one were left out.)", "at 61"]


MAY_PRINT = {"io/terminal.py", "engine/build.py"}
"""The way itself, and a program for developers that names its own file."""


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_there_is_no_other_way(path: Path) -> None:
    if path.relative_to(SOURCE).as_posix() in MAY_PRINT:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in (
                "print",
                "typer.echo",
                "typer.secho",
                "click.echo",
                "Console",
                "rich.print",
                "sys.stdout.write",
                "sys.stderr.write",
                "logging.StreamHandler",
                "warnings.showwarning",
            ), ast.unparse(node)


# ---------------------------------------------------------------------------------------------- commands


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name for folders and files, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    name = EVIL.replace("/", "")
    os.mkdir(name)
    (Path(name) / f"{name}.png").write_bytes(Path(data.picture("coffee")).read_bytes())
    (Path(name) / f"broken{name}.png").write_bytes(b"no picture")
    return name


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = main([*args])
    out, err = capsys.readouterr()
    assert shown(out + err), args
    return code, out + err


def test_no_command_prints_what_a_name_holds(evil: str, capsys: pytest.CaptureFixture[str]) -> None:
    picture = f"{evil}/{evil}.png"
    for more in ([], ["--json", "--overwrite"]):
        assert run(capsys, "cut", picture, "--grid=2", "--cell=24", f"--out=cut{evil}", *more)[0] == 0
        assert run(capsys, "solve", f"cut{evil}", f"--out=solved{evil}", *more)[0] == 0
        assert run(capsys, "show", f"cut{evil}", f"--out=sheet{evil}.png", *[m for m in more if m == "--json"])[0] == 0
        truth, found = f"cut{evil}/truth.json", f"solved{evil}/solution.json"
        assert run(capsys, "score", found, truth, *[m for m in more if m == "--json"])[0] == 0
    for options in (["--workers=1"], ["--workers=1", "--json"]):
        code, told = run(capsys, "sweep", evil, f"--out=sweep{len(options)}{evil}", "--grids=2", "--cell=16", *options)
        assert code == 0
        assert "--json" in options or "Skipped: The file" in told
        assert run(capsys, "corpus", "report", f"sweep{len(options)}{evil}", *options[1:])[0] == 0
    out = f"--out=p{evil}"
    assert run(capsys, "corpus", "procedural", out, "--count=1", "--size=16", "--beta=1")[0] == 0
    for bad in (
        ["cut", f"{evil}/broken{evil}.png", "--out=x"],
        ["cut", evil, "--out=x"],
        ["extract", f"{evil}/broken{evil}.png"],
        ["solve", f"nowhere{evil}"],
        ["show", f"{evil}/broken{evil}.png"],
        ["solve", f"cut{evil}", "--pin", evil],
        ["solve", f"cut{evil}", "--solver", evil],
        ["solve", f"cut{evil}", "--weights", f"{evil}/broken{evil}.png"],
        [evil],
        ["cut", f"--{evil}"],
    ):
        assert run(capsys, *bad)[0] == 2, bad


def test_warnings_and_records_of_libraries_are_plain(tmp_path: Path) -> None:
    import subprocess

    program = (
        "import logging, sys, threading, warnings\n"
        "from jigsync import cli\n"
        f"evil = {EVIL!r}\n"
        "def command():\n"
        "    warnings.warn(evil)\n"
        "    logging.getLogger('somebody').warning(evil)\n"
        "    thread = threading.Thread(target=lambda: int(evil)); thread.start(); thread.join()\n"
        "cli.COMMANDS = ('probe',)\n"
        "import types; made = types.ModuleType('jigsync.cli.probe'); made.probe = command\n"
        "sys.modules['jigsync.cli.probe'] = made\n"
        "sys.argv = ['jigsync', 'probe']\n"
        "sys.exit(cli.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("31m") == 3
    assert shown(done.stderr)
    assert "Traceback" not in done.stderr
