"""`jigsync solvers`: every way to reassemble a puzzle, and what each of them takes for granted."""

from __future__ import annotations

from typing import Annotated

import typer

from jigsync.io.terminal import console, say_json


def solvers(as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:
    """List the solvers: name, idea, and what each assumes."""

    from jigsync.solvers import base

    listed = [base.get(name) for name in base.names()]
    if as_json:
        rows = [{"name": solver.name, "summary": solver.summary, "assumes": solver.assumes} for solver in listed]
        say_json(rows)
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for solver in listed:
        table.add_row(f"[bold]{solver.name}", solver.summary)
        table.add_row("", f"[dim]{solver.assumes}")
    console().print(table)
