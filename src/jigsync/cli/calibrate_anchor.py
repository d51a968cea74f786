"""`jigsync calibrate-anchor`: fit what the assembled picture counts for which side is up, and when that is clear."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import say, say_json


def calibrate_anchor(
    images: Annotated[Path, typer.Argument(help="Folder of upright pictures to cut puzzles from.")],
    out: Annotated[Path, typer.Option(help="JSON file to write; the shipped one is weights/anchor.json.")] = Path(
        "anchor.json"
    ),
    weights: Annotated[
        Path | None, typer.Option(help="Weights of a unary head (ONNX).", show_default="the shipped ones")
    ] = None,
    limit: Annotated[int, typer.Option(min=2, help="Use at most this many pictures, evenly spaced.")] = 90,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the puzzles.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file's content.")] = False,
) -> None:
    """Fit the gauge anchor, and measure it on held-out pictures."""

    from jigsync.cli.progress import progress_bar
    from jigsync.io.files import write_json
    from jigsync.io.images import evenly_spaced, list_images
    from jigsync.learn.fit.anchor import calibrate

    pictures = evenly_spaced(list_images(images), limit)
    command = f"jigsync calibrate-anchor IMAGES --limit {limit} --seed {seed}"
    with progress_bar() as bar:
        data = calibrate(pictures, weights, seed, command, lambda done, total: bar("pictures", done, total))
    write_json(out, data)
    if as_json:
        say_json(data)
        return
    say("held-out pictures:")
    for name, values in data["held_out"].items():
        say(f"  {name:6} " + "  ".join(f"{what} {value:.3g}" for what, value in values.items()))
    say(f"wrote {out}")
