"""The command line: `jigsync COMMAND`.

A command is one function (or, for a family such as `corpus report`, one `typer.Typer`) called like its module:
`jigsync fetch-met` would be `fetch_met` in `jigsync.cli.fetch_met`. COMMANDS is the one place they are registered, in
the order in which the help lists them. A module is imported only when its command runs or its help is shown, so a
module imports the standard library and typer at its top, everything heavier inside its function.

What a command raises becomes one sentence on stderr and an exit code, never a traceback:

    2     JigsyncError (bad input), a wrong option, OSError (full disk, missing right), too little memory
    70    anything else: a defect of ours; the sentence says where
    130   Ctrl-C
    143   SIGTERM; what was half written is gone by then
    n     typer.Exit(n), for a command that has something to say with its code
"""

from __future__ import annotations

import importlib
import logging
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from jigsync import __version__
from jigsync.io.terminal import say, say_line, to_stderr
from jigsync.values.errors import JigsyncError, is_of_memory

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
    "calibrate-belief",
    "calibrate-confidence",
    "calibrate-anchor",
    "train",
    "export",
)

BAD_INPUT = 2
DEFECT = 70
INTERRUPTED = 130
TERMINATED = 143

LEAST_KILOBYTES = {resource.RLIMIT_AS: ("-v", 1_200_000), resource.RLIMIT_DATA: ("-d", 600_000)}
"""Limit of a process -> how the shell calls it, and the kB that our libraries and a small puzzle need: `demo` takes
926 000 and 434 000. With less, some of the libraries wait for ever while they load, and some end the process."""


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
        say(f"jigsync {__version__}")
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
    try:
        if args is None:
            args = sys.argv[1:]
            _settle()
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
    except _Terminated:
        return _say("Stopped by SIGTERM.", TERMINATED)
    except MemoryError:
        return _say("There is not enough memory for this.")
    except ImportError as error:  # of a library that is damaged, or for which there is no memory left
        return _say(f"A part of JigSync cannot be loaded: {_first_line(error)}")
    except Exception as error:
        if is_of_memory(error):
            return _say(f"There is not enough memory for this: {_first_line(error)}")
        return _say(f"This is a defect of JigSync: {_place(error)}: {_first_line(error)}", DEFECT)
    if code == INTERRUPTED:
        _say("Stopped by Ctrl-C.")
    return code if isinstance(code, int) else 0


class _Terminated(BaseException):
    """SIGTERM, as an exception: what is half done is taken back on the way out, as with Ctrl-C."""


def _settle() -> None:
    """What holds for the whole process, and only for a process of our own."""

    def terminate(number: int, frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)
    for kind, (flag, least) in LEAST_KILOBYTES.items():
        limit = resource.getrlimit(kind)[0]
        if limit == resource.RLIM_INFINITY:
            continue
        if limit < 1024 * least:
            raise JigsyncError(
                f"There is not enough memory for JigSync: it needs {least} kB at least, and 'ulimit {flag}' allows"
                f" {limit // 1024}."
            )
        # OpenBLAS does not fail when there is no memory for its threads: it waits for ever, or ends the process.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    logging.lastResort = to_stderr()
    logging.lastResort.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(to_stderr())
    threading.excepthook = lambda told: None if told.exc_value is None else _tell(told.exc_value)
    sys.unraisablehook = lambda told: None if told.exc_value is None else _tell(told.exc_value)


def _tell(error: BaseException) -> None:
    """A sentence about what went wrong where nobody could catch it."""
    say_line(f"jigsync: {_place(error)}: {_first_line(error)}", err=True)


def _place(error: BaseException) -> str:
    """The kind of an error, and where in our files it was raised or caused."""
    ours = [
        frame for frame in traceback.extract_tb(error.__traceback__) if f"{os.sep}jigsync{os.sep}" in frame.filename
    ]
    where = f" in {ours[-1].filename.rpartition(f'{os.sep}jigsync{os.sep}')[2]}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{where}"


def _first_line(error: BaseException) -> str:
    while isinstance(error, ImportError) and isinstance(error.__cause__ or error.__context__, ImportError):
        error = error.__cause__ or error.__context__ or error  # which library it was, before the advice that follows
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"{line.rstrip('.')[:300]}."


def _drop_output() -> None:
    """Drops what stdout cannot take: some Pythons would complain once more when they flush at exit (3.11.2)."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(sentence: str, code: int = BAD_INPUT) -> int:
    if sentence:  # a family without its command has shown its help instead
        say_line(f"jigsync: {sentence}", err=True)
    return code


def _os_sentence(error: OSError) -> str:
    """What the operating system refused, and for which file when it said so."""
    names = " -> ".join(f"'{os.fsdecode(name)}'" for name in (error.filename, error.filename2) if name is not None)
    return f"{error.strerror or error}: {names}." if names else f"{error.strerror or error}."
