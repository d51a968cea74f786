"""`jigsync reproduce`: the paper's studies, each a table, a picture and a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jigsync.io.terminal import console, say, say_json, say_line

if TYPE_CHECKING:
    from jigsync.studies.reproduce import Written
    from jigsync.studies.result import StudyResult


def reproduce(
    name: Annotated[str, typer.Argument(help="The study, or all; list names them.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder for NAME.csv, .json, .png and .svg.")] = Path("studies"),
    full: Annotated[bool, typer.Option("--full", help="More samples than the quick default.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that share the work.")] = 2,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of every random number.")] = 0,
    images: Annotated[
        Path | None, typer.Option("--images", help="Folder of pictures to cut, for studies that cut some.")
    ] = None,
    dino: Annotated[
        Path | None, typer.Option("--dino", help="Weights of DINOv2 ViT-S/14 for content, instead of Lite0.")
    ] = None,
    measurer: Annotated[
        str | None, typer.Option("--measurer", help="Who measures torn pictures, for studies that tear some.")
    ] = None,
    fragments: Annotated[
        Path | None, typer.Option("--fragments", help="Folder of puzzles that nobody here made, for studies of such.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run a study of the paper and print our values beside the paper's."""
    import time

    from jigsync.cli.progress import progress_bar
    from jigsync.studies import reproduce as studies
    from jigsync.values.errors import JigsyncError, OptionError

    if name == "list":
        if as_json:
            say_json(studies.STUDIES)
        else:
            say(_list(studies.STUDIES))
        return
    names = list(studies.STUDIES) if name == "all" else [name]
    for one in names:
        studies.get(one)
    options = {"images": images, "dino": dino, "measurer": measurer, "fragments": fragments}
    given = {option: value for option, value in options.items() if value is not None}
    done, failed = [], []
    for one in names:
        start = time.perf_counter()
        inputs = {key: value for key, value in given.items() if name != "all" or key in studies.takes(one)}
        if name == "all" and (reason := studies.lacking(one, inputs)):
            say_line(f"jigsync: {one} was skipped. {reason}", err=True)
            continue
        try:
            with progress_bar() as report:
                result = studies.run(one, full=full, workers=workers, seed=seed, progress=report, inputs=inputs)
        except JigsyncError as error:
            if name != "all":
                raise
            failed.append(one)
            say_line(f"jigsync: {one} was left out. {error}", err=True)
            continue
        written = studies.write(result, out, studies.command(one, full, seed, inputs))
        seconds = time.perf_counter() - start
        if as_json:
            files = {"csv": str(written.csv), "png": written.picture and str(written.picture)}
            files["svg"] = written.drawing and str(written.drawing)
            done.append({**result.to_json(), "seconds": round(seconds, 1), **files})
        else:
            _show(result, written, seconds)
        if written.missing:
            say_line(f"jigsync: {written.missing}", err=True)
    if as_json:
        say_json(done[0] if name != "all" else done)
    if failed:
        raise OptionError(f"{len(failed)} of {len(names)} studies could not be run: {', '.join(failed)}.")


def _list(names: dict[str, str]) -> str:
    width = max(len(name) for name in names)
    return "\n".join(f"{name:<{width}}  {line}" for name, line in names.items())


def _show(result: StudyResult, written: Written, seconds: float) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{result.name}: {result.title}", title_justify="left")
    table.add_column("")
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("paper", justify="right", no_wrap=True)
    table.add_column("verdict")
    for value in result.compared:
        table.add_row(value.what, _number(value.ours), _number(value.paper), value.verdict)
    screen = console()
    screen.print(table)
    screen.print(result.verdict, soft_wrap=True, markup=False)
    paths = (written.csv, written.json, written.picture, written.drawing)
    files = ", ".join(str(path) for path in paths if path is not None)
    screen.print(f"{files} ({len(result.rows)} rows, {seconds:.0f} s)", soft_wrap=True, markup=False)


def _number(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
