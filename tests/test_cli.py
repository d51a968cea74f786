"""The wrapper: whatever a command raises becomes one sentence and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import jigsync
from jigsync import cli
from jigsync.values.errors import FormatError, MissingExtraError

Command = Callable[..., Any]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[Command | typer.Typer], None]:
    """Registers a stand-in for a command module called `probe-it`."""

    def add(target: Command | typer.Typer) -> None:
        module = types.ModuleType("jigsync.cli.probe_it")
        module.probe_it = target  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "jigsync.cli.probe_it", module)
        monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, "probe-it"))

    return add


def raising(error: BaseException) -> Command:
    def probe_it() -> None:
        """Raise."""
        raise error

    return probe_it


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (FormatError("The file 'a b.json' is\n not JSON."), 2, "jigsync: The file 'a b.json' is not JSON.\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x/é"), 2, "jigsync: No space left on device: 'x/é'.\n"),
        (PermissionError(errno.EACCES, "Permission denied"), 2, "jigsync: Permission denied.\n"),
        (OSError(errno.EXDEV, "Cross-device link", "a", None, "b"), 2, "jigsync: Cross-device link: 'a' -> 'b'.\n"),
        (OSError("truncated file"), 2, "jigsync: truncated file.\n"),
        (
            MissingExtraError("Training", "torch", "train"),
            2,
            "jigsync: Training needs the package 'torch', which is not installed: pip install 'jigsync[train]'.\n",
        ),
        (KeyboardInterrupt(), 130, "jigsync: Stopped by Ctrl-C.\n"),
        (typer.Abort(), 2, "jigsync: Stopped: a question was left without an answer.\n"),
        (typer.Exit(3), 3, ""),
        (typer.Exit(), 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_errors_become_one_sentence(
    register: Callable[[Command], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    sentence: str,
) -> None:
    register(raising(error))
    assert cli.main(["probe-it"]) == code
    captured = capsys.readouterr()
    assert captured.err == sentence
    assert captured.out == ""


def test_a_defect_is_one_sentence_that_says_where(
    register: Callable[[Command], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def defective() -> None:
        from jigsync.values.layout import Grid

        Grid.parse(None)  # type: ignore[arg-type]

    register(defective)
    assert cli.main(["probe-it"]) == cli.DEFECT
    said = capsys.readouterr().err
    assert re.fullmatch(r"jigsync: This is a defect of JigSync: TypeError in values/layout\.py:\d+: .*\n", said)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "There is not enough memory for this."),
        (RuntimeError("can't start new thread"), "There is not enough memory for this: can't start new thread."),
        (
            ImportError("x.so: failed to map segment"),
            "A part of JigSync cannot be loaded: x.so: failed to map segment.",
        ),
    ],
)
def test_a_lack_of_memory_is_one_sentence(
    register: Callable[[Command], None], capsys: pytest.CaptureFixture[str], error: Exception, words: str
) -> None:
    register(raising(error))
    assert cli.main(["probe-it"]) == 2
    assert capsys.readouterr().err == f"jigsync: {words}\n"


LITTLE = [("-v", 1_200_000, 1_199_999), ("-v", 1_200_000, 200_000), ("-d", 600_000, 599_999)]


@pytest.mark.parametrize(("flag", "least", "kilobytes"), LITTLE)
@pytest.mark.parametrize("line", ["demo --out out", "solve puzzle"])
def test_too_little_memory_is_one_sentence(tmp_path: Path, line: str, flag: str, least: int, kilobytes: int) -> None:
    """Libraries wait for ever while they load, or end the process by a signal, when there is no memory for them."""
    command = f"ulimit {flag} {kilobytes}; exec '{sys.executable}' -m jigsync {line}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    sentence = (
        f"jigsync: There is not enough memory for JigSync: it needs {least} kB at least, and 'ulimit {flag}' allows"
        f" {kilobytes}.\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("flag", "least"), cli.LEAST_KILOBYTES.values())
def test_the_least_memory_is_enough(tmp_path: Path, flag: str, least: int) -> None:
    command = f"ulimit {flag} {least}; exec '{sys.executable}' -m jigsync demo --out out"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["probe-it", "--seed", "many"], "--seed"),
        (["probe-it", "--nonsense"], "--nonsense"),
        (["probe-it", "superfluous"], "superfluous"),
        (["probe-itt"], "Did you mean 'probe-it'?"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_one_sentence_too(
    register: Callable[[Command], None], capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    def probe_it(seed: int = 0) -> None:
        """Do nothing."""

    register(probe_it)
    assert cli.main(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("jigsync: ")
    assert captured.err.count("\n") == 1
    assert said in captured.err


def test_a_command_gets_its_options(register: Callable[[Command], None], capsys: pytest.CaptureFixture[str]) -> None:
    def probe_it(name: str, seed: int = 0) -> None:
        """Print."""
        print(name, seed + 1)

    register(probe_it)
    assert cli.main(["probe-it", "ärger 1", "--seed", "4"]) == 0
    assert capsys.readouterr().out == "ärger 1 5\n"


def test_a_family_of_commands(register: Callable[[typer.Typer], None], capsys: pytest.CaptureFixture[str]) -> None:
    family = typer.Typer(no_args_is_help=True, help="A family.")

    @family.command()
    def one() -> None:
        """The first."""
        print("one")

    @family.command()
    def two() -> None:
        """The second."""
        raise FormatError("Two is not there.")

    register(family)
    assert cli.main(["probe-it", "one"]) == 0
    assert capsys.readouterr().out == "one\n"
    assert cli.main(["probe-it", "two"]) == 2
    assert capsys.readouterr().err == "jigsync: Two is not there.\n"
    assert cli.main(["probe-it"]) == 2
    captured = capsys.readouterr()
    assert "The second." in captured.out
    assert captured.err == ""


def test_only_the_wanted_command_is_imported(
    register: Callable[[Command], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register(lambda: None)
    monkeypatch.setattr(cli, "COMMANDS", ("not-there", *cli.COMMANDS))
    assert cli.main(["probe-it"]) == 0
    assert cli.main(["not-there"]) == 2
    assert "cannot be loaded: No module named 'jigsync.cli.not_there'." in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"jigsync {jigsync.__version__}\n"
    assert cli.main([]) == 0
    assert "Usage: jigsync" in capsys.readouterr().out


def test_every_command_module_is_registered_and_has_help() -> None:
    found = [importlib.import_module(f"jigsync.cli.{at.name}") for at in pkgutil.iter_modules(cli.__path__)]
    names = [module.__name__.rpartition(".")[2] for module in found]
    having = {name for module, name in zip(found, names, strict=True) if hasattr(module, name)}
    assert having == {name.replace("-", "_") for name in cli.COMMANDS}
    commands = cli._Commands()
    assert list(commands) == list(cli.COMMANDS)
    assert len(commands) == len(cli.COMMANDS)
    for name in commands:
        assert commands[name].name == name
        assert commands[name].get_short_help_str()


def run(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jigsync", *args]
    return subprocess.run(command, text=True, timeout=120, **{"capture_output": True, **options})


def test_python_m_jigsync() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"jigsync {jigsync.__version__}\n", "")
    done = run("no-such-command")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "jigsync: No such command 'no-such-command'.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_stdout() -> None:
    with open("/dev/full", "w") as full:
        done = run("--version", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "jigsync: No space left on device.\n"


def test_a_reader_that_leaves_early() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = run("--version", capture_output=False, stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
