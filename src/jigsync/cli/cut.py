"""`jigsync cut`: a picture becomes a damaged, turned, shuffled puzzle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from jigsync.cutting.options import Damage


def cut(
    image: Annotated[Path, typer.Argument(help="The picture to cut.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to make: puzzle/ and truth.json.", metavar="DIR")],
    grid: Annotated[str, typer.Option(help="5 is 5 x 5; 4x6 is 4 rows of 6.")] = "3",
    severity: Annotated[
        str | None,
        typer.Option(help="clean, light, medium, heavy, severe or eroded.", show_default="medium; clean for gap"),
    ] = None,
    shape: Annotated[
        float | None, typer.Option(help="Fracture amplitude A, 0 .. 32 px at a cell of 128.", show_default="0")
    ] = None,
    erosion: Annotated[float | None, typer.Option(help="Erosion eps_geo, 0 .. 0.4.", show_default="0")] = None,
    photo: Annotated[float | None, typer.Option(help="Photometric damage eps_photo, 0 .. 1.", show_default="0")] = None,
    cell: Annotated[int, typer.Option(help="Cell pitch in pixels.")] = 128,
    seed: Annotated[int, typer.Option(help="The same picture, options and seed give the same puzzle.")] = 0,
    no_turns: Annotated[bool, typer.Option("--no-turns", help="Leave every fragment upright.")] = False,
    no_shuffle: Annotated[bool, typer.Option("--no-shuffle", help="Present the fragments in slot order.")] = False,
    paper_order: Annotated[
        bool, typer.Option("--paper-order", help="Noise and JPEG before the turn, as the paper did.")
    ] = False,
    preset: Annotated[
        str, typer.Option(help="fracture: shared curves; gap: a blob inside every square cell.")
    ] = "fracture",
    presentation: Annotated[
        str,
        typer.Option(
            help="cell: in a container, by quarter turns; cropped: trimmed, by quarter turns; any: trimmed, any angle."
        ),
    ] = "cell",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier cut in DIR.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Cut a picture into a damaged, turned, shuffled puzzle.

    Damage is one named severity, or any of --shape, --erosion and --photo (those left out are 0).
    """
    from typing import Any, cast

    from jigsync.cutting.generate import cut_picture
    from jigsync.cutting.handed import Presentation
    from jigsync.cutting.options import CutOptions, Preset
    from jigsync.io.cut_folder import OURS, save_cut
    from jigsync.io.files import check_output_folder, read_bytes
    from jigsync.io.images import MAX_BYTES, image_bytes_sha256, read_rgb
    from jigsync.values.layout import Grid

    options = CutOptions(
        grid=Grid.parse(grid),
        cell=cell,
        damage=_damage(severity, shape, erosion, photo, preset),
        turns=not no_turns,
        shuffle=not no_shuffle,
        paper_order=paper_order,
        preset=cast(Preset, preset),
        presentation=cast(Presentation, presentation),
    )
    check_output_folder(out, overwrite=overwrite, ours=OURS)
    data = read_bytes(image, MAX_BYTES)
    rgb = read_rgb(data, name=str(image))
    puzzle, truth = cut_picture(rgb, options, seed, image_bytes_sha256(data), f"The picture '{image}'")
    save_cut(out, puzzle, truth, overwrite=overwrite)
    if as_json:
        result: dict[str, Any] = {
            "puzzle": str(out / "puzzle"),
            "truth": str(out / "truth.json"),
            "fragments": len(puzzle),
            "container": puzzle.container,
            "options": options.to_json(),
            "seed": seed,
            "source_sha256": truth.source_sha256,
            "flags": dict(truth.flags),
        }
        say_json(result)
    else:
        say(f"Cut {len(puzzle)} fragments ({options.grid}) into {out / 'puzzle'}; truth in {out / 'truth.json'}")


def _damage(
    severity: str | None, shape: float | None, erosion: float | None, photo: float | None, preset: str
) -> Damage:
    """One named severity or single axes, never both; medium by default (gap has no curves: clean)."""
    from jigsync.cutting import options
    from jigsync.values.errors import OptionError

    axes = {"shape": shape, "erosion": erosion, "photo": photo}
    given = {name: value for name, value in axes.items() if value is not None}
    if severity is not None and given:
        raise OptionError(
            f"Give either --severity or single axes. Got --severity {severity} and --{next(iter(given))}."
        )
    if given:
        return options.Damage(**given)
    return options.severity(severity or ("clean" if preset == "gap" else "medium"))
