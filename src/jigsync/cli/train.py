"""`jigsync train`: make the learned models again, from folders of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

train = typer.Typer(no_args_is_help=True)


@train.callback()
def _models() -> None:
    """Train a learned model; needs the extra 'learn'."""


@train.command()
def matcher(
    images: Annotated[list[Path], typer.Option(help="Folder of upright pictures; repeat for more.", metavar="DIR")],
    out: Annotated[Path, typer.Option(help="Folder of the run; a run that is there goes on.", metavar="RUN")],
    val: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of held-out pictures to validate on.", metavar="DIR", show_default="the pictures'"),
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="Another run, whose best weights a new run starts from.", metavar="RUN")
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(help="Weights of the kinds of puzzles, as eroded=4,gapped=2.", show_default="a mixture of all"),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the whole run.")] = 10_000,
    samples: Annotated[int, typer.Option(min=1, help="Puzzles a step and process.")] = 6,
    reuse: Annotated[float, typer.Option(min=1, help="How often a puzzle is seen, on average.")] = 4.0,
    rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    validate_every: Annotated[int, typer.Option(min=1, help="Steps between validations.")] = 500,
    save_minutes: Annotated[float, typer.Option(help="Minutes between checkpoints, at most.")] = 4.0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    workers: Annotated[int, typer.Option(min=0, help="Processes that cut puzzles; 0 cuts between the steps.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the puzzles and the weights.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the last validation.")] = False,
) -> None:
    """The boundary matcher: which sides touch."""
    import json

    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.loop import LoopOptions, Report
    from jigsync.learn.loop import train as run
    from jigsync.learn.matcher_task import MatcherTask
    from jigsync.learn.mixture import MIXTURE, parse_mixture, pictures_of

    def report(now: Report) -> None:
        means = "  ".join(f"{name} {value:.3f}" for name, value in now.means.items())
        minutes = now.left / 60
        typer.echo(f"{now.step}/{now.steps}  {now.rate:.1f} puzzles/s  {minutes:.0f} min left  {means}", err=True)

    mixture = parse_mixture(kinds) if kinds else MIXTURE
    task = MatcherTask(pictures_of(images), pictures_of(val or images), seed, mixture=mixture)
    options = LoopOptions(
        steps=steps,
        samples=samples,
        reuse=reuse,
        rate=rate,
        validate_every=validate_every,
        save_minutes=save_minutes,
        threads=threads,
        workers=workers,
    )
    last = run(task, out, options, report, start)
    typer.echo(json.dumps(last) if as_json else f"Trained: {out}")
