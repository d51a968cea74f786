"""The command line: `jigsync COMMAND`.

A command is one function (or, for a family such as `corpus report`, one `typer.Typer`) called like its module:
`jigsync fetch-met` would be `fetch_met` in `jigsync.cli.fetch_met`. COMMANDS is the one place they are registered, in
the order in which the help lists them. A module is imported only when its command runs or its help is shown, so a
module imports the standard library and typer at its top, everything heavier inside its function.

What a command raises becomes one sentence on stderr and an exit code, never a traceback:

    2     JigsyncError (bad input), a wrong option, OSError (full disk, missing right)
    130   Ctrl-C
    n     typer.Exit(n), for a command that has something to say with its code
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from jigsync import __version__
from jigsync.values.errors import JigsyncError

COMMANDS: tuple[str, ...] = (
    "demo",
    "serve",
    "extract",
    "cut",
    "tear",
    "lay",
    "solve",
    "sweep",
    "corpus",
    "show",
    "score",
    "solvers",
    "eval",
    "bench-squares",
    "reproduce",
    "calibrate",
    "calibrate-confidence",
    "calibrate-anchor",
    "train",
    "export",
)

BAD_INPUT = 2
INTERRUPTED = 130


class _Commands(Mapping[str, Any]):
    """name -> command, imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        attribute = name.replace("-", "_")
        target = getattr(importlib.import_module(f"jigsync.cli.{attribute}"), attribute)
        if isinstance(target, typer.Typer):
            command = get_command(target)
            command.name = name
            return command
        single = typer.Typer(add_completion=False)
        single.command(name)(target)
        return get_command(single)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _LazyGroup(TyperGroup):
    """A group whose commands are imported one by one, on demand."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        commands: Any = _Commands()
        self.commands = commands


app = typer.Typer(cls=_LazyGroup, add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jigsync {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Puts fragments of a picture back together: shuffled, turned, broken along curves, eroded and stained."""


def main(args: Sequence[str] | None = None) -> int:
    """Runs `jigsync ARGS` (default: the process's own arguments) and returns the exit code."""
    if args is None:
        args = sys.argv[1:]
    try:
        code = get_command(app).main(args=args or ["--help"], prog_name="jigsync", standalone_mode=False)
        sys.stdout.flush()
    except JigsyncError as error:
        return _say(str(error))
    except typer.TyperException as error:
        return _say(error.format_message())
    except typer.Abort:
        return _say("Stopped: a question was left without an answer.")
    except BrokenPipeError:  # the reader (`| head`) has seen enough
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        return _say(_os_sentence(error))
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        _say("Stopped by Ctrl-C.")
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Drops what stdout cannot take: some Pythons would complain once more when they flush at exit (3.11.2)."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(sentence: str) -> int:
    if sentence:  # a family without its command has shown its help instead
        # File names may hold anything, also what moves the cursor or paints the terminal.
        plain = "".join(c if c.isprintable() else "?" for c in " ".join(sentence.split()))
        print("jigsync:", plain, file=sys.stderr)
    return BAD_INPUT


def _os_sentence(error: OSError) -> str:
    """What the operating system refused, and for which file when it said so."""
    names = " -> ".join(f"'{os.fsdecode(name)}'" for name in (error.filename, error.filename2) if name is not None)
    return f"{error.strerror or error}: {names}." if names else f"{error.strerror or error}."
