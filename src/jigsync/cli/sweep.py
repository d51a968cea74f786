"""`jigsync sweep`: a folder of pictures becomes a corpus."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from jigsync.io.terminal import console, say, say_json, say_line

if TYPE_CHECKING:
    from jigsync.cutting.handed import Presentation
    from jigsync.cutting.tear_options import Style


def sweep(
    images: Annotated[Path, typer.Argument(help="Folder of pictures, or one picture.", show_default=False)],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Folder of the corpus, or its URL, such as s3://b/c.", metavar="DIR")
    ],
    grids: Annotated[
        str | None, typer.Option(help="Grids to cut, such as 3,5,4x6.", show_default="3; none with --pieces")
    ] = None,
    severities: Annotated[str, typer.Option(help="all, or some of clean,light,medium,heavy,severe,eroded.")] = "all",
    presentation: Annotated[
        str | None, typer.Option(help="Some of cell,cropped,any.", show_default="cell; any for torn pieces")
    ] = None,
    pieces: Annotated[
        str | None, typer.Option(help="Numbers of pieces to tear, such as 9,25.", show_default="nothing is torn")
    ] = None,
    style: Annotated[str, typer.Option(help="How to tear: some of tear,cuts,knobs.")] = "tear",
    per_image: Annotated[int, typer.Option(help="Puzzles of each picture and combination of these.")] = 1,
    shards: Annotated[
        bool, typer.Option("--shards", help="Write WebDataset shards too, not just the manifest.")
    ] = False,
    workers: Annotated[
        int, typer.Option(help="Processes, 0 is one a core; with Ray shards under way, 0 is two a core.")
    ] = 0,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Processes here, or a Ray cluster.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of a running Ray, or auto.", show_default="a Ray of its own", metavar="ADDRESS"),
    ] = None,
    cell: Annotated[int, typer.Option(help="Cell pitch, and size of torn pieces, in pixels.")] = 128,
    seed: Annotated[int, typer.Option(help="Seed of the whole sweep.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Plan a corpus of puzzles from a folder of pictures, and cut or tear it into shards.

    The manifest alone is a whole corpus: every puzzle can be made again from it. Run the same command again after it
    was stopped: it goes on where it was, on either engine. The result depends neither on the workers nor on the engine.
    Pictures that cannot be used are skipped and named.
    """
    from collections import Counter

    from jigsync.cli.progress import progress_bar
    from jigsync.corpus.engines import open_engine, processes_here
    from jigsync.corpus.plan import REPORT_FILE, SweepOptions, plan_sweep
    from jigsync.corpus.report import corpus_report, report_table
    from jigsync.corpus.sweep import write_shards
    from jigsync.cutting.options import SEVERITIES
    from jigsync.io.files import write_json
    from jigsync.io.remote import place
    from jigsync.values.errors import OptionError
    from jigsync.values.layout import Grid

    names = tuple(SEVERITIES) if severities.strip() == "all" else _listed(severities)
    options = SweepOptions(
        ()
        if grids is None and pieces
        else tuple(Grid.parse(text) for text in ("3" if grids is None else grids).split(",")),
        names,
        per_image,
        cell,
        seed,
        cast("tuple[Presentation, ...] | None", None if presentation is None else _listed(presentation)),
        tuple(_number(text) for text in _listed(pieces or "")),
        cast("tuple[Style, ...]", _listed(style)),
    )
    if engine == "ray" and not shards:
        raise OptionError("--engine ray goes with --shards: the manifest is made on this machine.")
    target = place(out)
    count, report = 0, None
    with open_engine(engine, address, workers) as where, progress_bar() as progress:
        processes = processes_here(engine, workers)
        corpus = plan_sweep(images, target, options, workers=processes, progress=progress)
        if shards:
            count = write_shards(corpus, workers=where, progress=progress)
            report = corpus_report(target)
            write_json(target / REPORT_FILE, report.to_json())
    result = {
        "out": out,
        "puzzles": len(corpus.rows),
        "images": len({row.image_sha256 for row in corpus.rows}),
        "splits": dict(Counter(row.split for row in corpus.rows)),
        "skipped": [{"image": entry.image, "reason": entry.reason} for entry in corpus.skipped],
        "shards": count,
        "report": None if report is None else report.to_json(),
    }
    if as_json:
        say_json(result)
        return
    for entry in corpus.skipped:
        say_line(f"Skipped: {entry.reason}", err=True)
    if report is not None:
        console().print(report_table(report))
    say(
        f"{result['puzzles']} puzzles of {result['images']} pictures ({len(corpus.skipped)} skipped), {count} shards,"
        f" in {out}"
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


def _number(text: str) -> int:
    from jigsync.values.errors import bad_value

    if not re.fullmatch(r"\d{1,9}", text):
        raise bad_value("pieces", "a sweep", "a list of numbers such as 9,25", text)
    return int(text)
