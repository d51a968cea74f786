"""`jigsync lay`: a photograph of a puzzle's fragments on a table, with its truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import say, say_json

BLURRY = 2.0
"""From this enlargement on the summary says that the fragments look soft."""


def lay(
    puzzle: Annotated[Path, typer.Argument(help="A puzzle folder, or a folder of pictures.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make: photo.jpg and lay.json.", metavar="DIR")],
    background: Annotated[str, typer.Option(help="plain, paper, linoleum, wood or cloth.")] = "plain",
    tone: Annotated[
        str, typer.Option(help="any, light, dark, green, grey or brown, as far as the background has it.")
    ] = "any",
    seed: Annotated[int, typer.Option(help="The same puzzle, options and seed give the same photograph.")] = 0,
    width: Annotated[int, typer.Option(help="Width of the photograph in pixels.")] = 4000,
    height: Annotated[
        int | None, typer.Option(help="Height of the photograph in pixels.", show_default="3/4 of the width")
    ] = None,
    table: Annotated[float, typer.Option(help="Width of the table in the photograph, mm.", metavar="MM")] = 400.0,
    share: Annotated[float, typer.Option(help="Share of the photograph that fragments cover.")] = 0.3,
    scale: Annotated[
        float | None,
        typer.Option(help="Pixels of the photograph for one of the fragments.", show_default="set by --share"),
    ] = None,
    gap: Annotated[float, typer.Option(help="Least distance between fragments, mm.", metavar="MM")] = 4.0,
    touching: Annotated[int, typer.Option(help="Let so many pairs of fragments touch.", metavar="PAIRS")] = 0,
    turn: Annotated[float, typer.Option(help="Turn fragments by up to so many degrees either way.")] = 180.0,
    card: Annotated[str, typer.Option(help="White card beside the fragments: none, bank, a6, a5 or a4.")] = "none",
    texture: Annotated[float, typer.Option(help="How much of the table's texture is seen; 0 is one colour.")] = 1.0,
    shadow: Annotated[float, typer.Option(help="How dark shadows are, 0 .. 1.")] = 0.6,
    lift: Annotated[
        float, typer.Option(help="How far fragments stand off the table: paper 0.1, card 2, curled 5.", metavar="MM")
    ] = 2.0,
    softness: Annotated[float, typer.Option(help="How wide penumbras are, 0 .. 1.")] = 0.5,
    light_from: Annotated[
        float | None,
        typer.Option(help="Where the light comes from, counter-clockwise from the right.", metavar="DEGREES"),
    ] = None,
    falloff: Annotated[float, typer.Option(help="How much darker the darkest corner is, 0 .. 0.9.")] = 0.3,
    tilt: Annotated[float, typer.Option(help="The camera is off the vertical by up to so many degrees.")] = 2.0,
    balance: Annotated[float, typer.Option(help="Error of the white balance, 0 .. 0.5.")] = 0.04,
    exposure: Annotated[float, typer.Option(help="Up to so many stops too bright or too dark.")] = 0.25,
    blur: Annotated[float, typer.Option(help="Blur of the lens, pixels.")] = 0.8,
    noise: Annotated[float, typer.Option(help="Noise of the camera; 1 is a telephone's indoors.")] = 1.0,
    jpeg: Annotated[int, typer.Option(help="JPEG quality, 1 .. 100; 0 writes photo.png instead.")] = 90,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier photograph in DIR.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Photograph a puzzle's fragments lying on a table, for testing what finds them.

    DIR/lay.json is the truth: where every fragment lies, its outline, its box, and the camera.
    """

    from jigsync.cutting.lay import lay_puzzle
    from jigsync.cutting.lay_options import LayOptions
    from jigsync.io.files import check_output_folder
    from jigsync.io.lay_file import LAY_FILE, OURS, save_lay
    from jigsync.io.puzzle_folder import load_puzzle

    options = LayOptions(
        width=width,
        height=width * 3 // 4 if height is None else height,
        table_mm=table,
        background=background,
        tone=tone,
        texture=texture,
        share=share,
        scale=scale,
        gap=gap,
        touching=touching,
        turn=turn,
        card=card,
        shadow=shadow,
        lift=lift,
        softness=softness,
        light_from=light_from,
        falloff=falloff,
        tilt=tilt,
        balance=balance,
        exposure=exposure,
        blur=blur,
        noise=noise,
        jpeg=jpeg,
    )
    check_output_folder(out, overwrite=overwrite, ours=OURS)
    pixels, truth = lay_puzzle(load_puzzle(puzzle), options, seed)
    save_lay(out, pixels, truth, options.jpeg, overwrite=overwrite)
    if as_json:
        result = {
            "photo": str(out / truth.photo),
            "truth": str(out / LAY_FILE),
            "size": [truth.height, truth.width],
            "fragments": len(truth.fragments),
            "scale": truth.scale,
            "mm_per_pixel": truth.mm_per_pixel,
            "options": options.to_json(),
            "seed": seed,
        }
        say_json(result)
        return
    say(
        f"Laid {len(truth.fragments)} fragments on {background}: {out / truth.photo} ({truth.width} x {truth.height});"
        f" truth in {out / LAY_FILE}"
    )
    if truth.scale > BLURRY:
        say(f"The fragments are enlarged {truth.scale:.1f} times and look soft: cut larger ones, or lower --width.")
