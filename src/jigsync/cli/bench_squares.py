"""`jigsync bench-squares`: the literature's square puzzles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import console, say_json


def bench_squares(
    pictures: Annotated[Path, typer.Argument(help="Folder of pictures.", show_default=False)],
    side: Annotated[int, typer.Option("--piece", help="Side of a square in pixels.")] = 28,
    turns: Annotated[bool, typer.Option("--turns/--no-turns", help="Unknown orientation, or upright.")] = True,
    grid: Annotated[
        str | None,
        typer.Option(help="Resize every picture to this grid: 10, 18x24.", show_default="as many squares as it holds"),
    ] = None,
    erode: Annotated[int, typer.Option(help="Pixels cut from every side of every square.")] = 0,
    downsize: Annotated[
        int | None, typer.Option(help="First make the longer side so many pixels, as the web's pictures are.")
    ] = None,
    jpeg: Annotated[
        str | None, typer.Option(help="Then compress it at a quality drawn from LOW-HIGH, such as 75-95.", metavar="Q")
    ] = None,
    border: Annotated[
        float, typer.Option(help="Before both, blank this share of the shorter side along two opposite sides.")
    ] = 0.0,
    solver: Annotated[str, typer.Option(help="See `jigsync solvers`.")] = "jigsync",
    measurer: Annotated[str | None, typer.Option(help="See `jigsync solve`.", show_default="learned")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many pictures.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds a picture.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of turns, shuffle and search.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Cut pictures into squares, solve and score them: direct, neighbour, perfect.

    As in the literature the solver is told rows and cols. With unknown orientation the best of the four global turns
    counts. "Same pixels" is direct with identical fragments, such as a blank sky, interchangeable. Upright, direct is
    AA and perfect is PA.
    """
    from dataclasses import asdict

    from rich import box
    from rich.table import Table

    from jigsync.cli.progress import progress_bar
    from jigsync.cutting.squares import SquareOptions
    from jigsync.cutting.web import WebOptions
    from jigsync.io.images import list_images
    from jigsync.studies.squares import run_squares
    from jigsync.values.layout import Grid

    options = SquareOptions(side, None if grid is None else Grid.parse(grid), erode, turns)
    web = WebOptions(downsize, _qualities(jpeg), border)
    files = list_images(pictures)[:limit]
    rows = []
    with progress_bar() as bar:
        bar("pictures", 0, len(files))
        for row in run_squares(files, options, solver, measurer, seed, time_limit, web):
            rows.append(row)
            bar("pictures", len(rows), len(files))
    count = len(rows)
    shares = ("direct", "same_pixels", "neighbour", "sra")
    means = {
        "pictures": count,
        **{name: sum(getattr(r, name) for r in rows) / count for name in shares},
        "perfect": sum(r.perfect for r in rows),
        "seconds": sum(r.seconds for r in rows) / count,
    }
    if as_json:
        say_json({"mean": means, "rows": [asdict(r) for r in rows]})
        return
    table = Table("picture", "N", "direct", "same pixels", "neighbour", "SRA", "perfect", "s", box=box.SIMPLE)
    for r in rows:
        values = [f"{getattr(r, name):.1%}" for name in shares]
        table.add_row(r.picture, str(r.fragments), *values, "yes" if r.perfect else "", f"{r.seconds:.1f}")
    table.add_section()
    values = [f"{means[name]:.1%}" for name in shares]
    table.add_row(f"mean of {count}", "", *values, f"{means['perfect']} of {count}", f"{means['seconds']:.1f}")
    console().print(table)


def _qualities(text: str | None) -> tuple[int, int] | None:
    """75-95, or 80 for one."""
    from jigsync.values.errors import bad_value

    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,3})\s*(?:-\s*(\d{1,3}))?\s*", text)
    if match is None:
        raise bad_value("jpeg", "a picture of the web", "a quality such as 80 or 75-95", text)
    return int(match[1]), int(match[2] or match[1])
