"""What worker processes do with photographs: decode them, find fragments, put outlines right, cut along them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.io.images import picture_size, read_rgba
from jigsync.scan import outlines as shapes
from jigsync.values.errors import ImageError, InputError
from jigsync.values.puzzle import Puzzle
from jigsync.web.limits import Limits, Refusal, plenty
from jigsync.web.pixels import mapped, write_pixels

MOST_NOTES: Final = 12
OUTSIDE: Final = 0.02
"""Share of a photograph's size that an outline may lie outside of it."""


def take_photographs(
    limits: Limits, upload: str, files: Sequence[Sequence[Any]], names: Sequence[str], folder: str
) -> list[dict[str, Any]]:
    """Uploads -> photographs in files of the folder, and what lies on each."""
    taken, total = [], 0
    with open(upload, "rb") as file:
        for k, ((_, start, size), name) in enumerate(zip(files, names, strict=True)):
            file.seek(start)
            sent = file.read(size)
            height, width = picture_size(sent, name, limits.pixels)
            total += height * width
            if total > limits.pixels:
                raise Refusal(413, f"All photographs together must have at most {plenty(limits.pixels)} pixels.")
            rgba = read_rgba(sent, name=name, max_pixels=limits.pixels)
            write_pixels(Path(folder) / f"photograph-{k}", [rgba])
            shape = {"height": rgba.shape[0], "width": rgba.shape[1]}
            taken.append({**shape, "found": found_on(rgba, name, limits, None)})
    return taken


def found_on(rgba: NDArray[np.uint8], name: str, limits: Limits, background: tuple[int, int] | None) -> dict[str, Any]:
    """Outlines and notes; a photograph on which nothing is found has a note that says so, and is drawn on by hand."""
    try:
        found = shapes.find_outlines(rgba, name, background)
    except ImageError as error:
        return {"outlines": [], "notes": [str(error), "Draw around the fragments, or point at the background."]}
    if len(found.outlines) > limits.fragments:
        count = len(found.outlines)
        raise Refusal(413, f"A puzzle must have at most {limits.fragments:,} fragments. '{name}' shows {count:,}.")
    notes = [f"Found {_few(len(found.outlines), 'fragment')} in '{name}'."]
    if found.specks:
        notes.append(f"{_few(found.specks, 'speck')} left out.")
    listed = [
        {"points": outline.tolist(), "notes": list(said)}
        for outline, said in zip(found.outlines, found.notes, strict=True)
    ]
    return {"outlines": listed, "notes": notes[:MOST_NOTES]}


def _few(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def photograph(picture: dict[str, Any]) -> NDArray[np.uint8]:
    """The pixels of a held photograph."""
    return mapped(Path(picture["path"]), (picture["height"], picture["width"], 4), "photograph")


def shaped(
    do: str, size: Sequence[int], outlines: list[Any], line: list[Any], radius: float
) -> list[list[list[float]]]:
    """The outlines that take the place of those that were given."""
    given = [_within(outline, size) for outline in outlines]
    drawn = _within(line, size)
    if do == "merge":
        if len(given) < 2:
            raise InputError("Merging takes two outlines or more.")
        made = [shapes.merged(given)]
    elif do == "split":
        made = shapes.split(_only(given), drawn)
    elif do == "draw":
        made = [shapes.tidied(drawn)]
    elif do == "add":
        made = shapes.brushed(given[0] if given else None, drawn, radius, add=True)
    else:
        made = shapes.brushed(_only(given), drawn, radius, add=False)
    return [outline.tolist() for outline in made]


def _only(outlines: list[shapes.Outline]) -> shapes.Outline:
    if len(outlines) != 1:
        raise InputError(f"This takes one outline. Got {len(outlines)}.")
    return outlines[0]


def _within(points: Iterable[Any], size: Sequence[int]) -> shapes.Outline:
    """Points as an array, no farther from the photograph than anybody draws: masks are as large as what is drawn."""
    array = np.asarray(list(points), dtype=np.float64).reshape(-1, 2)
    return np.clip(array, -OUTSIDE * np.array(size), (1 + OUTSIDE) * np.array(size))


def cut_sheets(sheets: Sequence[dict[str, Any]], name: str) -> Puzzle:
    """The puzzle of several photographs and their outlines."""
    parts = []
    for sheet in sheets:
        size = sheet["picture"]["width"], sheet["picture"]["height"]
        parts.append((photograph(sheet["picture"]), [_within(points, size) for points in sheet["outlines"]]))
    return shapes.cut_outlines(parts, name)
