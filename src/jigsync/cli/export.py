"""`jigsync export`: a trained run as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import say, say_json


def export(
    run: Annotated[
        list[Path],
        typer.Argument(
            help="Folder of a run of `jigsync train`; several, that started from one another, are averaged.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="ONNX file; its card and golden tensors go beside it.")],
    data: Annotated[str, typer.Option(help="For the card: what it was trained on.")] = "not stated",
    licence: Annotated[str, typer.Option(help="For the card: the licence of data and weights.")] = "not stated",
    command: Annotated[str, typer.Option(help="For the card: the command that trained it.")] = "not stated",
    val: Annotated[
        Path | None,
        typer.Option(
            help="For a pairwise model: pictures that were not trained on, to fit how it is mixed.", metavar="DIR"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=4, help="Use at most this many of them, evenly spaced.")] = 48,
    encoder: Annotated[
        Path | None,
        typer.Option(help="With --val: ONNX file of its unary head.", metavar="FILE", show_default="shipped"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the largest difference as JSON.")] = False,
) -> None:
    """Write the best network of a run, or the mean of some, as ONNX and check it against torch."""
    import json

    from jigsync.learn import need_torch
    from jigsync.values.errors import OptionError

    need_torch()
    from jigsync.io.images import evenly_spaced, list_images
    from jigsync.learn.export import add_held_out, export_run

    if out.suffix != ".onnx":
        raise OptionError(f"The 'out' of an export must end in .onnx. Got '{out}' instead.")
    difference = export_run(run, out, {"data": data, "licence": licence, "command": command})
    held = {} if val is None else add_held_out(out, evenly_spaced(list_images(val), limit), encoder)
    text = f"wrote {out}; largest difference between ONNX and torch: {difference:.2g}"
    if held:
        text += f"\n{json.dumps(held)}"
    if as_json:
        say_json({"out": str(out), "max_difference": difference, **held})
    else:
        say(text)
