"""`jigsync calibrate`: fit the training-free measurers' probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def calibrate(
    images: Annotated[Path, typer.Argument(help="Folder of upright pictures to cut puzzles from.")],
    out: Annotated[Path, typer.Option(help="JSON file to write; the shipped one is measure/calibration.json.")] = Path(
        "calibration.json"
    ),
    limit: Annotated[int, typer.Option(min=2, help="Use at most this many pictures, evenly spaced.")] = 160,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the puzzles.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file's content.")] = False,
) -> None:
    """Fit how costs of touching sides become probabilities, and measure it on held-out pictures."""
    import json

    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from jigsync.io.files import write_json
    from jigsync.io.images import list_images
    from jigsync.study.calibrate import KINDS
    from jigsync.study.calibrate import calibrate as run

    pictures = list_images(images)
    pictures = pictures[:: max(1, len(pictures) // limit)][:limit]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("cutting and measuring", total=len(pictures) * len(KINDS))
        data = run(
            pictures, seed, f"jigsync calibrate IMAGES --limit {limit} --seed {seed}", lambda: progress.advance(task)
        )
    write_json(out, data)
    if as_json:
        print(json.dumps(data))
        return
    table = Table("measurer / regime", "top-1 of all candidates", "log-likelihood", "sides", title="held-out pictures")
    for name, entry in data["measurers"].items():
        held = entry["held_out"]
        table.add_row(name, f"{held['top1']:.3f}", f"{held['log_likelihood']:.3f}", str(held["sides"]))
    Console().print(table)
    print(f"wrote {out}")
