"""`jigsync calibrate-belief`: fit how far the answers of the default solver can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import say, say_json


def calibrate_belief(
    images: Annotated[Path, typer.Argument(help="Folder of upright pictures to make piles of.")],
    out: Annotated[Path, typer.Option(help="JSON file to write; the shipped one is weights/belief.json.")] = Path(
        "belief.json"
    ),
    piles: Annotated[int, typer.Option(min=2, help="Piles of every kind.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the piles.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    again: Annotated[bool, typer.Option("--again", help="Solve all piles anew, also those of a run before.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file's content.")] = False,
) -> None:
    """Fit the probabilities of fragments, pictures and answers on piles of every kind, and measure them.

    Solved piles are kept in OUT.piles.jsonl: a run that was stopped goes on from there. They are of the weights that
    solved them; use --again after weights have changed.
    """

    from jigsync.cli.progress import progress_bar
    from jigsync.io.files import write_json
    from jigsync.io.images import list_images
    from jigsync.learn.fit.belief import calibrate

    kept = out.with_name(f"{out.name}.piles.jsonl")
    if again:
        kept.unlink(missing_ok=True)
    command = f"jigsync calibrate-belief IMAGES --piles {piles} --seed {seed}"
    with progress_bar() as bar:
        data = calibrate(
            list_images(images), piles, seed, command, kept, workers, lambda done, total: bar("piles", done, total)
        )
    write_json(out, data)
    if as_json:
        say_json(data)
        return
    rows = [
        f"  {row:14} {held['sure']:6.1%} sure, {held['right']:6.1%} right; error {held['calibration_error']:.3f}"
        f" ({held['fragments']} fragments)"
        for row, held in data["held_out"].items()
        if "sure" in held
    ]
    say("\n".join(["held-out pictures:", *rows, f"an answer is ok from {data['ok']:.2f}", f"wrote {out}"]))
