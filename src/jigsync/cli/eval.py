"""`jigsync eval`: methods on puzzles, with intervals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from jigsync.io.terminal import say, say_json, say_line

if TYPE_CHECKING:
    from jigsync.cutting.handed import Presentation
    from jigsync.cutting.tear_options import Style
    from jigsync.evaluate.predict import Report
    from jigsync.evaluate.spec import Spec
    from jigsync.evaluate.wanted import Wanted

EVERY = 60.0
"""Seconds between two lines about progress where there is no terminal."""


def eval(
    out: Annotated[
        str, typer.Option("--out", "-o", help="Folder or URL of the run; alone: score what it holds.", metavar="RUN")
    ],
    images: Annotated[Path | None, typer.Option(help="Folder of pictures to cut, or one picture.")] = None,
    manifest: Annotated[
        str | None, typer.Option(help="manifest.jsonl of a corpus by `jigsync sweep`, or its folder or URL.")
    ] = None,
    gap: Annotated[Path | None, typer.Option(help="Folder of the GAP data set.")] = None,
    fragments: Annotated[
        Path | None,
        typer.Option(help="Folder of puzzles that nobody here made: puzzle/ and truth.json, alone or in sets."),
    ] = None,
    grids: Annotated[
        str | None, typer.Option(help="Such as 3,5,4x6.", show_default="3,5,10; none with --pieces")
    ] = None,
    severities: Annotated[
        str | None, typer.Option(help="all, or some of clean,light,medium,heavy,severe,eroded.", show_default="all")
    ] = None,
    presentation: Annotated[
        str | None, typer.Option(help="Some of cell,cropped,any.", show_default="cell; any for torn pieces")
    ] = None,
    pieces: Annotated[
        str | None, typer.Option(help="Numbers of pieces to tear, such as 9,25,100.", show_default="nothing is torn")
    ] = None,
    style: Annotated[
        str | None, typer.Option(help="How to tear: some of tear,cuts,knobs.", show_default="tear")
    ] = None,
    erosions: Annotated[
        str | None,
        typer.Option(
            help="Of tears: mean depths off every edge as shares of the size, such as 0,0.02; nothing else is damaged.",
            show_default="those of the severities",
        ),
    ] = None,
    solvers: Annotated[str, typer.Option(help="See `jigsync solvers`; tree:mgc is tree with the measurer mgc.")] = (
        "jigsync"
    ),
    measurers: Annotated[
        str | None,
        typer.Option(help="Every solver runs with each of them.", show_default="what fits, as `jigsync solve` has it"),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="For measurers that take some, instead of their own.", metavar="FILE")
    ] = None,
    puzzles: Annotated[
        int | None, typer.Option(min=1, help="Of every setting, or set of fragments.", show_default="one a picture")
    ] = None,
    gauge: Annotated[
        Literal["model", "best4"],
        typer.Option(help="Which one leads the table of slots; both are computed: model is as answered."),
    ] = "model",
    turns: Annotated[bool, typer.Option("--turns/--no-turns", help="Turn fragments, or say they are upright.")] = True,
    known_grid: Annotated[bool, typer.Option("--known-grid", help="Tell the solvers rows and cols.")] = False,
    cell: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="Cell pitch, and size of torn pieces, in pixels.",
            show_default="128; 64 from 10 rows or cols on",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only pictures of train, val or test.", show_default="all; GAP: test")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds of solving a puzzle.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of puzzles, solvers and intervals.")] = 0,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes, 0 is one a core; with Ray puzzles under way, 0 is two a core.")
    ] = 0,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Processes here, or a Ray cluster.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of a running Ray, or auto.", show_default="a Ray of its own", metavar="ADDRESS"),
    ] = None,
    others: Annotated[
        bool, typer.Option("--others", help="Score by the metrics of RePAIR, Derech, ShreddingNet and PairingNet too.")
    ] = False,
    gallery: Annotated[int, typer.Option(min=0, help="Puzzles of every setting in the report.")] = 2,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="In the gallery, tint fragments in blue, the more the less sure.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json.")] = False,
) -> None:
    """Run solvers on puzzles and compare them, every figure with its 95 % interval.

    Answers go to RUN/predictions first, and scores are computed from there. Run the same command again after it was
    stopped: it goes on where it was, on either engine. Several processes or machines may share RUN. What can change an
    answer is part of its name, so a changed solver, option or picture never meets an old answer. RUN/report.html shows
    everything.
    """

    from jigsync.cli.eval_tables import show
    from jigsync.cli.progress import progress_bar
    from jigsync.corpus.engines import open_engine, processes_here
    from jigsync.evaluate import plan, run
    from jigsync.evaluate.cache import Config
    from jigsync.evaluate.gallery import chosen, shown
    from jigsync.evaluate.plan import methods_of
    from jigsync.evaluate.predict import predict
    from jigsync.evaluate.report import write_report
    from jigsync.evaluate.wanted import Wanted
    from jigsync.io.remote import place
    from jigsync.values.layout import Grid

    root = place(out)
    sources = {"--images": images, "--manifest": manifest, "--gap": gap, "--fragments": fragments}
    scored_only = not any(sources.values())
    if scored_only:
        specs, config, seed = run.reopen(root)
    else:
        asked: dict[str, object] = {
            "--grids": grids,
            "--severities": severities,
            "--presentation": presentation,
            "--pieces": pieces,
        }
        asked |= {"--style": style, "--erosions": erosions, "--cell": cell, "--split": split}
        _check(sources, {**asked, "--no-turns": None if turns else True})
        cut = manifest is None and gap is None and fragments is None
        listed = grids if grids is not None else "3,5,10" if cut and pieces is None else ""
        wanted = Wanted(
            tuple(Grid.parse(text) for text in _listed(listed)),
            () if severities is None or severities.strip() == "all" else _listed(severities),
            puzzles,
            cell,
            turns,
            split or "",
            seed,
            cast("tuple[Presentation, ...]", _listed(presentation)),
            tuple(int(_number("pieces", text)) for text in _listed(pieces)),
            cast("tuple[Style, ...]", _listed(style)),
            tuple(_number("erosions", text) for text in _listed(erosions)),
        )
        methods = methods_of(_listed(solvers), _listed(measurers))
        config = Config.of(methods, known_grid, time_limit, weights)
        corpus = None if manifest is None else place(manifest)
        with open_engine(engine, address, workers) as where:
            run.check_folder(root)
            if gap is not None:
                specs = plan.from_gap(gap, wanted)
            elif corpus is not None:
                specs = plan.from_manifest(corpus, images, wanted)
            else:
                specs = _specs(images, fragments, wanted, processes_here(engine, workers))
            run.begin(root, specs, config, wanted.seed)
            with _progress() as report:
                predict(specs, config, root, where, report)
    with progress_bar() as bar:
        found = run.evaluate(root, specs, config, seed, gauge, scored_only, bar, others)
        run.write_tables(found)
        pictures = []
        for one in shown(found, picked := chosen(found, gallery), confidence):
            pictures.append(one)
            bar("gallery", len(pictures), len(picked))
        write_report(found, pictures)
    if as_json:
        say_json(found.to_json())
    else:
        show(found)


def _check(sources: Mapping[str, object], asked: Mapping[str, object]) -> None:
    """OptionError for two sources, and for settings of puzzles that are there already."""
    from jigsync.values.errors import OptionError

    named = [name for name, value in sources.items() if value is not None]
    given = [name for name, value in asked.items() if value is not None]
    if "--gap" in named and named != ["--gap"]:
        raise OptionError(
            "--gap goes with neither --images nor --manifest nor --fragments: its puzzles are cut already."
        )
    if "--fragments" in named and (others := [name for name in named if name != "--fragments"] + given):
        raise OptionError(f"--fragments takes puzzles as they are: it does not go with {others[0]}.")


def _specs(images: Path | None, fragments: Path | None, wanted: Wanted, workers: int) -> list[Spec]:
    """Puzzles of pictures or folders of fragments; both are looked at on this machine, whatever the engine."""
    from jigsync.cli.progress import progress_bar
    from jigsync.evaluate.found import from_fragments
    from jigsync.evaluate.plan import from_pictures

    if fragments is not None:
        specs, skipped = from_fragments(fragments, wanted.puzzles, wanted.seed)
    else:
        assert images is not None
        with progress_bar() as bar:
            specs, skipped = from_pictures(images, wanted, workers, bar)
    for entry in skipped:
        say_line(f"Skipped: {entry.reason}", err=True)
    return specs


def _number(name: str, text: str) -> float:
    from jigsync.values.errors import bad_value

    if not re.fullmatch(r"\d{1,9}" if name == "pieces" else r"\d{0,3}\.?\d{1,9}", text):
        raise bad_value(name, "an evaluation", "a list of numbers", text)
    return float(text)


@contextmanager
def _progress() -> Iterator[Report]:
    """A bar with the time left; where stderr is no terminal, a line now and then."""
    import sys
    import time

    from jigsync.cli.progress import progress_bar

    start = last = time.monotonic()
    first: int | None = None
    with progress_bar(period=1e9) as bar:

        def report(done: int, total: int, elsewhere: int) -> None:
            nonlocal last, first
            first = done if first is None else first
            bar("puzzles", done, total)
            now = time.monotonic()
            if not sys.stderr.isatty() and now - last > EVERY:
                last = now
                made = done - first
                left = f", about {_minutes((now - start) / made * (total - done))} left" if made else ""
                others = f", {elsewhere} with other processes" if elsewhere else ""
                say(f"{done} of {total} puzzles{others}{left}", err=True)

        yield report


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
