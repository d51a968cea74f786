"""Writes docs/cli.md from the program itself, or checks that it is fresh.

python tools/cli_reference.py --write
python tools/cli_reference.py --check      (exit code 1 when docs/cli.md is not what --write would write)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from jigsync.cli import app

TARGET = Path(__file__).parents[1] / "docs" / "cli.md"
WIDTH = 100

HEAD = """# Command line

Made from the program by `python tools/cli_reference.py --write`; `make test` checks that it is fresh.

Every command ends with exit code 0 when it did its work, 2 after bad input (one sentence on stderr, no traceback) and
130 after Ctrl-C. Results go to stdout, progress and complaints to stderr.
"""


def pages(command: Any, path: str, parent: Any = None) -> Iterator[str]:
    """The help of a command and of everything below it, as plain text of a fixed width."""
    command.rich_markup_mode = None
    context = command.make_context(path, ["--help"], parent=parent, resilient_parsing=True)
    context.terminal_width = context.max_content_width = WIDTH
    text = "\n".join(line.rstrip() for line in context.get_help().strip().splitlines())
    yield f"## {path}\n\n```text\n{text}\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from pages(below, f"{path} {name}")


def reference() -> str:
    """The whole page."""
    return "\n".join([HEAD, *pages(get_command(app), "jigsync")])


def main(args: list[str]) -> int:
    """Runs the tool and returns its exit code."""
    if args == ["--write"]:
        TARGET.write_text(reference(), encoding="utf-8")
        return 0
    if args == ["--check"]:
        if TARGET.read_text(encoding="utf-8") == reference():
            return 0
        print("docs/cli.md is not fresh: run 'make docs' and commit it.", file=sys.stderr)
        return 1
    print("usage: python tools/cli_reference.py --write | --check", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
