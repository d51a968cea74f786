"""`jigsync extract`: one scan of many fragments -> a puzzle folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from jigsync.scan.extract import Extracted

REPORT: Final = "extract.json"


def extract(
    scan: Annotated[Path, typer.Argument(help="A picture of fragments that lie apart on a plain background.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Puzzle folder to write.", metavar="DIR")],
    no_straighten: Annotated[
        bool, typer.Option("--no-straighten", help="Report each fragment's skew, but do not turn it.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier extraction in DIR.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print extract.json.")] = False,
) -> None:
    """Cut the fragments out of one scan: each becomes a picture of its own, turned to its nearest right angle.

    DIR is a puzzle folder for `jigsync solve`; its extract.json tells where each fragment lay and its skew.
    """

    import jigsync
    from jigsync.io.files import atomic_folder, check_output_folder, write_json
    from jigsync.io.puzzle_folder import FRAGMENT_FOLDER, PUZZLE_FILE, save_puzzle

    ours = (PUZZLE_FILE, FRAGMENT_FOLDER, REPORT)
    check_output_folder(out, overwrite=overwrite, ours=ours)
    extracted = jigsync.extract(scan, straighten=not no_straighten)
    with atomic_folder(out, overwrite=overwrite, ours=ours) as folder:
        save_puzzle(folder, extracted.puzzle)
        write_json(folder / REPORT, extracted.to_json())
    if as_json:
        say_json(extracted.to_json())
    else:
        say(_summary(extracted, out))


def _summary(extracted: Extracted, out: Path) -> str:
    """What was found, for a person."""
    found = extracted.fragments
    skews = [abs(e.skew) for e in found.values() if e.straightened and e.skew is not None]
    unknown = sum(e.skew is None for e in found.values())
    lines = [f"Found {len(found)} fragments; they are in {out}."]
    if skews:
        lines.append(f"  straightened   {len(skews)}, by {max(skews):.1f} degrees at most")
    if unknown:
        lines.append(f"  left as is     {unknown}, whose outline does not tell their skew")
    if extracted.specks:
        lines.append(f"  left out       {extracted.specks} specks")
    lines += [f"  {name:<14} {note}" for name, e in found.items() for note in e.notes]
    return "\n".join(lines)
