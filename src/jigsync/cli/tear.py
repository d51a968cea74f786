"""`jigsync tear`: a picture becomes a puzzle without a grid: torn paper, straight cuts or jigsaw pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsync.io.terminal import say, say_json


def tear(
    image: Annotated[Path, typer.Argument(help="The picture to tear.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make: puzzle/ and truth.json.", metavar="DIR")],
    pieces: Annotated[int, typer.Option(help="Number of pieces, 2 .. 1000.")] = 12,
    style: Annotated[
        str, typer.Option(help="tear: torn paper; cuts: straight cuts; knobs: a classic jigsaw.")
    ] = "tear",
    size: Annotated[
        int, typer.Option(help="The picture is scaled so that pieces have about size x size pixels.")
    ] = 128,
    erosion: Annotated[
        float, typer.Option(help="Mean depth taken off every edge, share of the size, 0 .. 0.15.")
    ] = 0.0,
    rim: Annotated[
        float, typer.Option(help="Mean width of white rims of torn paper, px, 0 .. 0.15 of the size.")
    ] = 0.0,
    photo: Annotated[float, typer.Option(help="Photometric damage eps_photo, 0 .. 1.")] = 0.0,
    presentation: Annotated[str, typer.Option(help="any: any angle; cropped: quarter turns.")] = "any",
    seed: Annotated[int, typer.Option(help="The same picture, options and seed give the same puzzle.")] = 0,
    upright: Annotated[bool, typer.Option("--upright", "--no-turns", help="Leave every fragment upright.")] = False,
    no_shuffle: Annotated[bool, typer.Option("--no-shuffle", help="Present the fragments as they were drawn.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier puzzle in DIR.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Tear a picture into pieces of any shape that lie at any angle."""
    from typing import Any, Literal, cast

    from jigsync.cutting.tear import tear_picture
    from jigsync.cutting.tear_options import Style, TearOptions
    from jigsync.io.cut_folder import OURS, save_cut
    from jigsync.io.files import check_output_folder, read_bytes
    from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb

    options = TearOptions(
        pieces=pieces,
        size=size,
        style=cast(Style, style),
        erosion=erosion,
        rim=rim,
        photo=photo,
        presentation=cast(Literal["cropped", "any"], presentation),
        turns=not upright,
        shuffle=not no_shuffle,
    )
    check_output_folder(out, overwrite=overwrite, ours=OURS)
    data = read_bytes(image, MAX_BYTES)
    rgb = read_rgb(data, name=str(image))
    puzzle, truth = tear_picture(rgb, options, seed, image_bytes_sha256(data), f"The picture '{image}'")
    save_cut(out, puzzle, truth, overwrite=overwrite)
    if as_json:
        contacts = truth.contacts or ()
        result: dict[str, Any] = {
            "puzzle": str(out / "puzzle"),
            "truth": str(out / "truth.json"),
            "fragments": len(puzzle),
            "layout": str(truth.layout),
            "contacts": len(contacts),
            "options": options.to_json(),
            "seed": seed,
            "source_sha256": truth.source_sha256,
            "flags": dict(truth.flags),
        }
        say_json(result)
    else:
        say(f"Tore {len(puzzle)} pieces ({style}) into {out / 'puzzle'}; truth in {out / 'truth.json'}")
