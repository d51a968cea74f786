"""`jigsync calibrate`: fit the training-free measurers' probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import console, say, say_json


def calibrate(
    images: Annotated[Path, typer.Argument(help="Folder of upright pictures to cut puzzles from.")],
    out: Annotated[Path, typer.Option(help="JSON file to write; the shipped one is weights/calibration.json.")] = Path(
        "calibration.json"
    ),
    limit: Annotated[int, typer.Option(min=2, help="Use at most this many pictures, evenly spaced.")] = 160,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the puzzles.")] = 0,
    content: Annotated[
        bool, typer.Option("--content", help="Fit the content measurers instead; needs the extra 'content'.")
    ] = False,
    learned: Annotated[
        bool, typer.Option("--learned", help="Fit the learned measurers instead, on pictures not trained on.")
    ] = False,
    weights: Annotated[
        Path | None,
        typer.Option(help="With --learned: ONNX file of the matcher.", metavar="FILE", show_default="shipped"),
    ] = None,
    likeness: Annotated[
        Path | None,
        typer.Option(help="With --learned: another likeness head.", metavar="FILE", show_default="shipped"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file's content.")] = False,
) -> None:
    """Fit how costs of touching sides become probabilities, and measure it on held-out pictures.

    Measurers of an older file that are not fitted now stay in it.
    """
    from rich.progress import Progress
    from rich.table import Table

    from jigsync.io.files import write_json
    from jigsync.io.images import evenly_spaced, list_images
    from jigsync.learn.fit.calibrate import BOUNDARY, content_family, learned_family, merged, older
    from jigsync.learn.fit.calibrate import calibrate as run
    from jigsync.measure.backbone import LITE0
    from jigsync.measure.learned import Models
    from jigsync.values.errors import OptionError

    if content and learned:
        raise OptionError("The options --content and --learned exclude each other: fit one after the other.")
    family = content_family() if content else learned_family(weights, likeness) if learned else BOUNDARY
    old = older(out)
    pictures = evenly_spaced(list_images(images), limit)
    option = " --content" if content else " --learned" if learned else ""
    command = f"jigsync calibrate IMAGES{option} --limit {limit} --seed {seed}"
    with Progress(console=console(err=True), transient=True) as progress:
        task = progress.add_task("cutting and measuring", total=len(pictures) * len(family.kinds))
        fitted = run(family, pictures, seed, command, lambda: progress.advance(task))
    data = merged(
        old,
        fitted,
        LITE0 if content else None,
        Models.sha256(weights, likeness) if learned else None,
    )
    write_json(out, data)
    if as_json:
        say_json(data)
        return
    table = Table("measurer / regime", "top-1 of all candidates", "log-likelihood", "sides", title="held-out pictures")
    for name, entry in fitted["measurers"].items():
        held = entry["held_out"]
        table.add_row(name, f"{held['top1']:.3f}", f"{held['log_likelihood']:.3f}", str(held["sides"]))
    console().print(table)
    say(f"wrote {out}")
