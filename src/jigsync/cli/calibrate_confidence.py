"""`jigsync calibrate-confidence`: fit how sure the default solver is of each fragment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import say, say_json


def calibrate_confidence(
    images: Annotated[Path, typer.Argument(help="Folder of upright pictures to cut puzzles from.")],
    out: Annotated[Path, typer.Option(help="JSON file to write; the shipped one is weights/confidence.json.")] = Path(
        "confidence.json"
    ),
    limit: Annotated[int, typer.Option(min=2, help="Use at most this many pictures, evenly spaced.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the puzzles.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file's content.")] = False,
) -> None:
    """Fit the confidence of solved fragments, and measure it on held-out pictures."""

    from jigsync.cli.progress import progress_bar
    from jigsync.io.files import write_json
    from jigsync.io.images import evenly_spaced, list_images
    from jigsync.learn.fit.confidence import calibrate

    pictures = evenly_spaced(list_images(images), limit)
    command = f"jigsync calibrate-confidence IMAGES --limit {limit} --seed {seed}"
    with progress_bar() as bar:
        data = calibrate(pictures, seed, command, workers, lambda done, total: bar("puzzles", done, total))
    write_json(out, data)
    if as_json:
        say_json(data)
        return
    held = data["held_out"]
    say(
        f"{held['fragments']} held-out fragments, {held['right']:.1%} of them right.\n"
        f"  Brier score         {held['brier']:.4f}, of the raw shares of draws {held['brier_of_shares']:.4f}\n"
        f"  calibration error   {held['calibration_error']:.4f},"
        f" of the raw shares of draws {held['calibration_error_of_shares']:.4f}\n"
        f"wrote {out}"
    )
