"""`jigsync eval`: methods on puzzles, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jigsync.io.terminal import console, say, say_json, say_line

if TYPE_CHECKING:
    from rich.table import Table

    from jigsync.evaluate.plan import Wanted
    from jigsync.evaluate.predict import Report
    from jigsync.evaluate.run import Evaluation
    from jigsync.evaluate.spec import Spec
    from jigsync.io.remote import Place
    from jigsync.score.intervals import Interval

SHOWN = ("PA", "AA", "AA+rot", "SRA")
WIDE = 110
"""Columns of a terminal from which on an interval stands beside its estimate instead of below it."""
WRITTEN = (".csv", ".html", ".jpg")
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
    grids: Annotated[str | None, typer.Option(help="Such as 3,5,4x6.", show_default="3,5,10")] = None,
    severities: Annotated[
        str | None, typer.Option(help="all, or some of clean,light,medium,heavy,severe,eroded.", show_default="all")
    ] = None,
    solvers: Annotated[str, typer.Option(help="See `jigsync solvers`; tree:mgc is tree with the measurer mgc.")] = (
        "jigsync"
    ),
    measurers: Annotated[
        str | None, typer.Option(help="Every solver runs with each of them.", show_default="learned")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="For measurers that take some, instead of their own.", metavar="FILE")
    ] = None,
    puzzles: Annotated[
        int | None, typer.Option(min=1, help="Of every grid and severity.", show_default="one a picture")
    ] = None,
    gauge: Annotated[
        Literal["model", "best4"], typer.Option(help="Which one leads; both are computed: model is as answered.")
    ] = "model",
    turns: Annotated[bool, typer.Option("--turns/--no-turns", help="Turn fragments, or say they are upright.")] = True,
    known_grid: Annotated[bool, typer.Option("--known-grid", help="Tell the solvers rows and cols.")] = False,
    cell: Annotated[
        int | None, typer.Option(min=8, help="Cell pitch in pixels.", show_default="128; 64 from 10 rows or cols on")
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
    gallery: Annotated[int, typer.Option(min=0, help="Puzzles of every grid and severity in the report.")] = 2,
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

    from jigsync.cli.progress import progress_bar
    from jigsync.corpus.engines import open_engine, processes_here
    from jigsync.evaluate import run
    from jigsync.evaluate.cache import Config
    from jigsync.evaluate.gallery import chosen, shown
    from jigsync.evaluate.plan import methods_of
    from jigsync.evaluate.predict import predict
    from jigsync.evaluate.report import write_report
    from jigsync.io.remote import place

    root = place(out)
    scored_only = images is None and manifest is None and gap is None
    if scored_only:
        specs, config, seed = run.reopen(root)
    else:
        wanted = _wanted(grids, severities, puzzles, cell, turns, split, seed, from_images=not (manifest or gap))
        methods = methods_of(_listed(solvers), _listed(measurers or ""))
        config = Config.of(methods, known_grid, time_limit, weights)
        corpus = None if manifest is None else place(manifest)
        with open_engine(engine, address, workers) as where:
            specs = _plan(root, images, corpus, gap, wanted, processes_here(engine, workers))
            run.begin(root, specs, config, wanted.seed)
            with _progress() as report:
                predict(specs, config, root, where, report)
    with progress_bar() as bar:
        found = run.evaluate(root, specs, config, seed, gauge, scored_only, bar)
        run.write_tables(found)
        pictures = []
        for one in shown(found, picked := chosen(found, gallery), confidence):
            pictures.append(one)
            bar("gallery", len(pictures), len(picked))
        write_report(found, pictures)
    if as_json:
        say_json(found.to_json())
    else:
        _show(found)


def _wanted(
    grids: str | None,
    severities: str | None,
    puzzles: int | None,
    cell: int | None,
    turns: bool,
    split: str | None,
    seed: int,
    from_images: bool,
) -> Wanted:
    from jigsync.evaluate.plan import Wanted
    from jigsync.values.layout import Grid

    listed = _listed(grids or ("3,5,10" if from_images else ""))
    names = () if severities is None or severities.strip() == "all" else _listed(severities)
    return Wanted(tuple(Grid.parse(text) for text in listed), names, puzzles, cell, turns, split or "", seed)


def _plan(
    root: Place, images: Path | None, manifest: Place | None, gap: Path | None, wanted: Wanted, workers: int
) -> list[Spec]:
    """The puzzles; pictures are looked at on this machine, whatever the engine."""
    from jigsync.cli.progress import progress_bar
    from jigsync.evaluate import plan, run
    from jigsync.values.errors import OptionError

    if gap is not None and (images or manifest):
        raise OptionError("--gap goes with neither --images nor --manifest: its puzzles are cut already.")
    run.check_folder(root)
    if gap is not None:
        return plan.from_gap(gap, wanted)
    if manifest is not None:
        return plan.from_manifest(manifest, images, wanted)
    assert images is not None
    with progress_bar() as bar:
        specs, skipped = plan.from_pictures(images, wanted, workers, bar)
    for entry in skipped:
        say_line(f"Skipped: {entry.reason}", err=True)
    return specs


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


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


# ---------------------------------------------------------------------------------------------- tables


def _show(found: Evaluation) -> None:

    from jigsync.evaluate.table import ALL_KINDS
    from jigsync.io.files import list_names

    screen = console()
    screen.print(_main_table(found, beside=screen.width >= WIDE))
    if len({line.kind for line in found.lines}) > 1:
        screen.print(_kind_table(found))
    if found.pairs:
        screen.print(_pair_table(found))
    for line in found.lines:
        if line.kind == ALL_KINDS and line.remarks:
            screen.print(f"{line.method.label} on {line.grid} {line.severity}: {line.remarks}", markup=False)
    if found.missing:
        screen.print(f"{found.missing} predictions are not there yet.")
    files = ", ".join(name for name in list_names(found.root) if name.endswith(WRITTEN))
    screen.print(f"Written to {found.root}: {files}", soft_wrap=True, markup=False)


class _Sections:
    """A table with a heading wherever the setting changes."""

    def __init__(self, title: str, *columns: str) -> None:
        from rich import box
        from rich.table import Table

        self.table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title=title)
        self.table.title_justify = "left"
        for name in columns:
            self.table.add_column(name, justify="left" if not name else "right", no_wrap=True)
        self._setting = ""

    def add(self, setting: str, *values: str) -> None:
        if setting != self._setting:
            if self._setting:
                self.table.add_section()
            self.table.add_row(f"[bold]{setting}[/bold]")
            self._setting = setting
        self.table.add_row(*values)


def _main_table(found: Evaluation, beside: bool) -> Table:
    """All kinds together; intervals beside their estimates, or below them."""
    from jigsync.evaluate.table import ALL_KINDS

    title = f"Per cent of {len(found.specs)} puzzles with 95 % intervals, gauge: {found.lead}"
    table = _Sections(title, "", "n", *SHOWN, "gauge right" if beside else "gauge", "s")
    for line in (line for line in found.lines if line.kind == ALL_KINDS):
        setting = f"{line.grid} {line.severity}"
        if not line.by_gauge:
            table.add(setting, line.method.label, "0", "refused")
            continue
        shares = [_share(line.by_gauge[found.lead][name], beside) for name in SHOWN]
        right = "-" if line.gauge_right is None else _share(line.gauge_right, beside)
        table.add(setting, line.method.label, str(line.puzzles), *shares, right, _seconds(line.seconds))
    return table.table


def _kind_table(found: Evaluation) -> Table:
    """The leading measure by kind of picture."""
    from jigsync.evaluate.table import ALL_KINDS

    kinds = sorted({line.kind for line in found.lines} - {ALL_KINDS})
    table = _Sections(f"AA+rot by kind of picture, gauge: {found.lead}", "", *kinds)
    values = {(line.grid, line.severity, line.method, line.kind): line for line in found.lines}
    for grid, severity, method in dict.fromkeys((line.grid, line.severity, line.method) for line in found.lines):
        of = [values.get((grid, severity, method, kind)) for kind in kinds]
        shares = [_share(line.by_gauge[found.lead]["AA+rot"], True) if line and line.by_gauge else "-" for line in of]
        table.add(f"{grid} {severity}", method.label, *shares)
    return table.table


def _pair_table(found: Evaluation) -> Table:
    """The first method against each other one: difference in AA+rot, interval, signs."""
    title = f"{found.methods[0].label} minus another on the same puzzles, points of AA+rot, gauge: {found.lead}"
    table = _Sections(title, "", "n", "difference", "better", "equal", "worse")
    for pair in (pair for pair in found.pairs if pair.first == found.methods[0]):
        interval, signs = pair.by_gauge[found.lead]["AA+rot"]
        told = f"{100 * interval.estimate:+.1f} [dim][{100 * interval.low:+.1f}, {100 * interval.high:+.1f}][/dim]"
        counts = (str(count) for count in (signs.better, signs.equal, signs.worse))
        table.add(f"{pair.grid} {pair.severity}", f"- {pair.second.label}", str(interval.n), told, *counts)
    return table.table


def _share(interval: Interval, beside: bool) -> str:
    low, high = (f"{100 * value:.1f}".removesuffix(".0") for value in (interval.low, interval.high))
    return f"{100 * interval.estimate:.1f}{' ' if beside else chr(10)}[dim]{low}-{high}[/dim]"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
