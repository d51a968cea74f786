"""`jigsync train`: make the learned models again, from folders of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from jigsync.learn.loop import Task

train = typer.Typer(no_args_is_help=True)

Images = Annotated[list[Path], typer.Option(help="Folder of upright pictures; repeat for more.", metavar="DIR")]
Out = Annotated[Path, typer.Option(help="Folder of the run; a run that is there goes on.", metavar="RUN")]
Val = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of held-out pictures to validate on.", metavar="DIR", show_default="the pictures'"),
]
Start = Annotated[
    list[Path] | None,
    typer.Option(
        help="Another run, whose best weights a new run starts from; repeat for the mean of some.", metavar="RUN"
    ),
]
Encoder = Annotated[
    Path | None,
    typer.Option(help="ONNX file of a unary head, whose features it reads.", metavar="FILE", show_default="shipped"),
]
Beside = Annotated[
    Path | None,
    typer.Option(help="ONNX file of the matcher it is trained beside.", metavar="FILE", show_default="shipped"),
]
Kinds = Annotated[
    str | None,
    typer.Option(help="Weights of the kinds of puzzles, as eroded=4,gapped=2.", show_default="a mixture"),
]
Placing = Annotated[
    float, typer.Option(min=0, help="What whole fragments count in the loss, beside their single sides.")
]
Steps = Annotated[int, typer.Option(min=1, help="Steps of the whole run.")]
Samples = Annotated[int, typer.Option(min=1, help="Samples a step and process.")]
Reuse = Annotated[float, typer.Option(min=1, help="How often a sample is seen, on average.")]
Rate = Annotated[float, typer.Option(help="Highest learning rate.")]
ValidateEvery = Annotated[int, typer.Option(min=1, help="Steps between validations.")]
SaveMinutes = Annotated[float, typer.Option(help="Minutes between checkpoints, at most.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads of torch.")]
Workers = Annotated[int, typer.Option(min=0, help="Processes that make samples; 0 makes them between the steps.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the samples and the weights.")]
Json = Annotated[bool, typer.Option("--json", help="Print the last validation.")]

LOOP = ("steps", "samples", "reuse", "rate", "validate_every", "save_minutes", "threads", "workers")
"""Options of every model that are those of the training loop, with its own defaults; `_run` hands them on."""


@train.callback()
def _models() -> None:
    """Train a learned model; needs the extra 'learn'."""


@train.command()
def matcher(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    kinds: Kinds = None,
    placing: Placing = 0.0,
    lost: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of the puzzles whose cells are told from outlines: for 'framed'."),
    ] = 0.0,
    steps: Steps = 10_000,
    samples: Samples = 6,
    reuse: Reuse = 2.0,
    rate: Rate = 1e-3,
    validate_every: ValidateEvery = 500,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The boundary matcher: which sides touch."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.matcher_task import MatcherTask
    from jigsync.learn.mixture import MIXTURE, parse_mixture, pictures_of

    mixture = parse_mixture(kinds) if kinds else MIXTURE
    task = MatcherTask(
        pictures_of(images), pictures_of(val or images), seed, mixture=mixture, placing=placing, lost=lost
    )
    _run(ctx, task, out, start, as_json)


@train.command()
def unary(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    turned: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pictures stored turned, and a table of their turns beside it (NAME.csv); repeat for more.",
            metavar="DIR_OR_TAR",
        ),
    ] = None,
    start: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another run, whose best weights a new run starts from, repeat for the mean of some; or an exported"
            " head (ONNX).",
            metavar="RUN_OR_FILE",
        ),
    ] = None,
    loss: Annotated[
        str,
        typer.Option(help="fixed: pictures are known to be upright; min, soft-min, cached: their gauge is unknown."),
    ] = "fixed",
    steps: Steps = 2_000,
    samples: Samples = 16,
    reuse: Reuse = 1.5,
    rate: Rate = 4e-4,
    validate_every: ValidateEvery = 200,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The unary head: which turn and cell of one fragment, which side up for a whole picture."""
    from jigsync.learn import need_torch
    from jigsync.values.errors import OptionError, bad_value

    need_torch()
    from jigsync.learn.gauge_loss import LOSSES
    from jigsync.learn.mixture import pictures_of
    from jigsync.learn.turned import read_turned
    from jigsync.learn.unary_task import UnaryTask

    if loss not in LOSSES:
        raise bad_value("loss", "a training", f"one of {', '.join(LOSSES)}", loss)
    files = [path for path in start or () if path.suffix == ".onnx"]
    if files and len(start or ()) > 1:
        raise OptionError("A training starts from runs or from one exported head, not from both.")
    task = UnaryTask(
        pictures_of(images),
        pictures_of(val or images),
        seed,
        loss,
        max(1, 2 * steps // 3),
        [read_turned(path) for path in turned or ()],
        files[0] if files else None,
    )
    _run(ctx, task, out, None if files else start, as_json, window=64, warm=8)


@train.command()
def pairwise(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    encoder: Encoder = None,
    context: Annotated[bool, typer.Option(help="See the other fragments too; without, it is the comparator.")] = True,
    steps: Steps = 3_000,
    samples: Samples = 6,
    reuse: Reuse = 8.0,
    rate: Rate = 1e-3,
    validate_every: ValidateEvery = 250,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The pairwise model: the relation of two fragments, near or far."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.mixture import pictures_of
    from jigsync.learn.pairwise import PairwiseOptions
    from jigsync.learn.pairwise_task import PairwiseTask

    sizes = PairwiseOptions() if context else PairwiseOptions(rounds=0)
    task = PairwiseTask(pictures_of(images), pictures_of(val or images), seed, encoder, sizes)
    _run(ctx, task, out, start, as_json)


@train.command()
def likeness(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    matcher: Beside = None,
    kinds: Kinds = None,
    placing: Placing = 0.0,
    steps: Steps = 6_000,
    samples: Samples = 6,
    reuse: Reuse = 3.0,
    rate: Rate = 1e-3,
    validate_every: ValidateEvery = 500,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The likeness head: which sides look as if they belonged together, beside the matcher."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.likeness_data import KINDS
    from jigsync.learn.likeness_task import LikenessTask
    from jigsync.learn.mixture import parse_mixture, pictures_of

    mixture = parse_mixture(kinds) if kinds else KINDS
    folders = pictures_of(images), pictures_of(val or images)
    task = LikenessTask(*folders, seed, matcher, mixture=mixture, placing=placing)
    _run(ctx, task, out, start, as_json)


@train.command()
def reach(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    matcher: Beside = None,
    likeness: Annotated[
        Path | None,
        typer.Option(help="ONNX file of the likeness head beside it.", metavar="FILE", show_default="shipped"),
    ] = None,
    steps: Steps = 4_000,
    samples: Samples = 4,
    reuse: Reuse = 10.0,
    rate: Rate = 1e-3,
    validate_every: ValidateEvery = 250,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The reach head: how far it is from each side to the picture's border, by what matcher and likeness see."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.mixture import pictures_of
    from jigsync.learn.reach_task import ReachTask

    task = ReachTask(pictures_of(images), pictures_of(val or images), seed, matcher, likeness)
    _run(ctx, task, out, start, as_json)


@train.command()
def continuous(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    encoder: Encoder = None,
    steps: Steps = 2_000,
    samples: Samples = 8,
    reuse: Reuse = 8.0,
    rate: Rate = 1e-3,
    validate_every: ValidateEvery = 200,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The continuous head: how far a fragment is turned, when it may be any angle."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.continuous_task import ContinuousTask
    from jigsync.learn.mixture import pictures_of

    task = ContinuousTask(pictures_of(images), pictures_of(val or images), seed, encoder)
    _run(ctx, task, out, start, as_json)


@train.command()
def contours(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    steps: Steps = 20_000,
    samples: Samples = 2,
    reuse: Reuse = 3.0,
    rate: Rate = 1e-3,
    validate_every: ValidateEvery = 1000,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The contour network: which samples of fragments' outlines touched, however fragments lie."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.contours_task import ContourTask
    from jigsync.learn.mixture import pictures_of

    task = ContourTask(pictures_of(images), pictures_of(val or images), seed)
    _run(ctx, task, out, start, as_json, window=64, warm=8)


@train.command()
def frames(
    ctx: typer.Context,
    images: Images,
    out: Out,
    val: Val = None,
    start: Start = None,
    steps: Steps = 4_500,
    samples: Samples = 4,
    reuse: Reuse = 6.0,
    rate: Rate = 1.5e-3,
    validate_every: ValidateEvery = 500,
    save_minutes: SaveMinutes = 4.0,
    threads: Threads = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The frame network: where the cell of a fragment is, from its outline."""
    from jigsync.learn import need_torch

    need_torch()
    from jigsync.learn.frames_task import FrameTask
    from jigsync.learn.mixture import pictures_of

    task = FrameTask(pictures_of(images), pictures_of(val or images), seed)
    _run(ctx, task, out, start, as_json, window=64, warm=8)


def _run(ctx: typer.Context, task: Task, out: Path, start: list[Path] | None, as_json: bool, **chunks: int) -> None:
    """Trains as the command's options LOOP say, with a line of progress on stderr at every log."""

    from jigsync.learn.loop import LoopOptions, Report
    from jigsync.learn.loop import train as run

    def report(now: Report) -> None:
        means = "  ".join(f"{name} {value:.3f}" for name, value in now.means.items())
        minutes = now.left / 60
        say(f"{now.step}/{now.steps}  {now.rate:.1f} samples/s  {minutes:.0f} min left  {means}", err=True)

    last = run(task, out, LoopOptions(**{name: ctx.params[name] for name in LOOP}, **chunks), report, start or ())
    if as_json:
        say_json(last)
    else:
        say(f"Trained: {out}")
