"""`jigsync corpus`: reports on corpora, and where pictures for them come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import console, say, say_json, say_line

corpus = typer.Typer(add_completion=False, no_args_is_help=True, help="Report on a corpus; get pictures for one.")

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.", metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@corpus.command()
def report(
    folder: Annotated[str, typer.Argument(help="Folder or URL that `jigsync sweep` made.", show_default=False)],
    sample: Annotated[int, typer.Option(help="Puzzles to cut again when there are no shards.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Count blank fragments, mean gradient, flagged puzzles and splits.

    Exit code 1 when the corpus is not sound: a picture in two splits, a puzzle lost or doubled.
    """

    from jigsync.corpus.report import corpus_report, report_table

    found = corpus_report(folder, sample=sample)
    if as_json:
        say_json(found.to_json())
    else:
        console().print(report_table(found))
    if not found.sound:
        raise typer.Exit(1)


@corpus.command()
def procedural(
    out: Out,
    beta: Annotated[str, typer.Option(help="Exponents of the 1/f^beta power spectrum.")] = "0.5,1,1.5,2,2.5,3",
    count: Annotated[int, typer.Option(help="Pictures of each beta.")] = 10,
    size: Annotated[int, typer.Option(help="Side in pixels.")] = 512,
    seed: Annotated[int, typer.Option(help="The same options and seed give the same pictures.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make stationary 1/f^beta pictures, the control in which there is nothing to find."""

    from jigsync.cli.progress import progress_bar
    from jigsync.corpus.procedural import write_procedural
    from jigsync.values.errors import bad_value

    try:
        betas = tuple(float(part) for part in beta.split(","))
    except ValueError:
        raise bad_value("beta", "a procedural picture", "numbers such as 0.5,1,2", beta) from None
    with progress_bar() as progress:
        names = write_procedural(out, betas, count=count, size=size, seed=seed, progress=progress)
    if as_json:
        say_json({"out": str(out), "pictures": names})
    else:
        say(f"{len(names)} pictures in {out}")


@corpus.command("fetch-met")
def fetch_met(
    out: Out,
    limit: Annotated[int, typer.Option(help="Pictures to have at the end.")] = 100,
    base_url: Annotated[
        str | None, typer.Option(help="Another address of the API, for tests.", show_default="the museum's")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download CC0 highlights of the Metropolitan Museum of Art, politely, with a licence manifest.

    Run the same command again after it was stopped: it goes on where it was.
    """

    from jigsync.cli.progress import progress_bar
    from jigsync.corpus.met import BASE_URL, fetch

    with progress_bar() as progress:
        result = fetch(out, limit, base_url=base_url or BASE_URL, progress=progress)
    if as_json:
        say_json(result.to_json())
        return
    for entry in result.failed:
        say_line(f"Skipped object {entry.object_id}: {entry.reason}", err=True)
    say(
        f"{result.pictures} pictures ({result.downloaded} new, {len(result.failed)} skipped) in {out}; licences in"
        f" {result.manifest}"
    )
