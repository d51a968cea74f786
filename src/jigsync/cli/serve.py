"""`jigsync serve`: the workbench, a page on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; only this machine reaches the default.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 takes any free port.", min=0, max=65535)] = 8765,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A further name by which browsers may call this server. Repeat for more.", metavar="NAME"),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Folder for puzzles and jobs: they are there again when the server is started anew.",
            metavar="DIR",
            show_default="kept in memory, gone at the end",
        ),
    ] = None,
    max_upload: Annotated[int, typer.Option(help="Largest upload, MB.", min=1)] = 256,
    max_pixels: Annotated[int, typer.Option(help="Largest picture and sum of all fragments, megapixels.", min=1)] = 100,
    max_fragments: Annotated[int, typer.Option(help="Most fragments of a puzzle.", min=1)] = 1000,
    max_jobs: Annotated[int, typer.Option(help="Puzzles that are solved at the same time; others wait.", min=1)] = 2,
) -> None:
    """Open the workbench: drop fragments, watch them come together, correct, keep the result.

    Everything stays on this machine. Uploads live in memory and a private temporary folder that is removed at the end,
    unless you --keep them; stop the server with Ctrl-C. Needs the extra `web`.
    """
    from jigsync.web.limits import Limits
    from jigsync.web.serve import run

    limits = Limits(
        upload_bytes=max_upload * 10**6,
        pixels=max_pixels * 10**6,
        fragments=max_fragments,
        running_jobs=max_jobs,
    )
    run(host, port, limits, open_page=open_page, allowed=allow_host or (), keep=keep)
