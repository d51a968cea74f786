"""Puzzles on disk: what a solver may open.

    DIR/puzzle.json             {"format": "jigsync-puzzle/1", "cell", "container", "fragments": [{"id", "file"}, ...]}
    DIR/fragments/<id>.png      RGBA as presented, colour premultiplied by alpha

`cell` is a hint and may be null, `container` is null for fragments of mixed sizes. There is no grid and no truth. A
plain folder of pictures is a puzzle too: every picture is a fragment.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import StrPath, atomic_folder, json_bytes, leads_outside, read_json
from jigsync.io.images import list_images, png_bytes, read_rgba
from jigsync.io.schema import FRAGMENT_ID, Node, named
from jigsync.values.errors import InputError
from jigsync.values.puzzle import Fragments, Pixels, Puzzle

FORMAT: Final = "jigsync-puzzle/1"
PUZZLE_FILE: Final = "puzzle.json"
FRAGMENT_FOLDER: Final = "fragments"
MAX_CELL: Final = 1 << 20
LONGEST_NAME: Final = 255
"""Bytes of a fragment's file name, folders included."""


def save_puzzle(folder: StrPath, puzzle: Puzzle, *, overwrite: bool = False) -> None:
    """Writes the puzzle folder, all at once; it must be empty, not exist, or be a puzzle folder to overwrite."""
    members = puzzle_members(puzzle)
    with atomic_folder(folder, overwrite=overwrite, ours=(PUZZLE_FILE, FRAGMENT_FOLDER)) as temporary:
        (temporary / FRAGMENT_FOLDER).mkdir()
        for name, data in members.items():
            (temporary / name).write_bytes(data)


def puzzle_members(puzzle: Puzzle) -> dict[str, bytes]:
    """The puzzle folder's files: relative name -> bytes, puzzle.json first."""
    for name in puzzle.ids:
        Node(name, puzzle.name, "id").fragment_id()
    head = puzzle_json(puzzle)
    files = [entry["file"] for entry in head["fragments"]]
    pictures = (png_bytes(pixels) for pixels in puzzle.fragments.pixels)
    return {PUZZLE_FILE: json_bytes(head), **dict(zip(files, pictures, strict=True))}


def puzzle_json(puzzle: Puzzle) -> dict[str, Any]:
    """The value of puzzle.json."""
    entries = [{"id": name, "file": f"{FRAGMENT_FOLDER}/{name}.png"} for name in puzzle.ids]
    return {"format": FORMAT, "cell": puzzle.cell, "container": puzzle.container, "fragments": entries}


def load_puzzle(path: StrPath) -> Puzzle:
    """Reads a puzzle folder, its puzzle.json, the folder `jigsync cut` made, or a plain folder of pictures."""
    given = Path(path)
    if given.is_dir():
        for head in (given / PUZZLE_FILE, given / "puzzle" / PUZZLE_FILE):
            if head.is_file():
                if leads_outside(head, given):
                    raise InputError(f"The file '{head}' must lie inside the puzzle's folder. It leads outside.")
                return _load(head)
        return load_folder(given)
    return _load(given)


def _load(head: Path) -> Puzzle:
    root = Node(read_json(head), os.fspath(head))
    cell, container, files = parse_puzzle_json(root)
    pixels = []
    for name, file in files.items():
        picture = head.parent / file
        if leads_outside(picture, head.parent):
            raise InputError(f"The file '{file}' of '{head}' must lie inside the puzzle's folder. It leads outside.")
        if picture.exists() and not picture.is_file():  # a pipe would be waited for
            raise InputError(f"The file '{file}' of '{head}' must be a plain file. It is something else.")
        pixels.append(as_fragment(read_rgba(picture), container, name, os.fspath(head)))
    return Puzzle(Fragments(tuple(files), tuple(pixels)), cell, container, _name_of(head.parent))


def parse_puzzle_json(root: Node) -> tuple[int | None, int | None, dict[str, str]]:
    """(cell, container, id -> relative file) of a puzzle.json."""
    root.format(FORMAT)
    cell, container = (
        node.integer(1, MAX_CELL) if (node := root.key(key).optional()) else None for key in ("cell", "container")
    )
    files: dict[str, str] = {}
    taken: set[str] = set()
    for entry in root.key("fragments").entries():
        name, node = entry.key("id").fragment_id(), entry.key("file")
        file = node.text()
        plain = PurePosixPath(file)
        outside = plain.is_absolute() or ".." in plain.parts or not plain.parts or re.search(r"[\\:\0]", file)
        if outside or len(os.fsencode(file)) > LONGEST_NAME:
            raise node.refuse("a file inside the puzzle's folder")
        if name in files:
            raise entry.key("id").refuse("unique")
        if file in taken:
            raise node.refuse("unique")
        files[name] = file
        taken.add(file)
    if not files:
        raise root.key("fragments").refuse("a list of at least one fragment")
    return cell, container, files


def as_fragment(pixels: NDArray[np.uint8], container: int | None, name: str, file: str) -> Pixels:
    """A picture that puzzle.json names as fragment `name`, which must fill the puzzle's container when it has one.

    Its colours are multiplied by alpha. Where one is brighter than that allows, another program wrote straight colours,
    and they are multiplied here: as they are, they would show as bright rims.
    """
    if container is not None and pixels.shape[:2] != (container, container):
        height, width = pixels.shape[:2]
        raise InputError(
            f"The fragment '{name}' of '{file}' must be {container} x {container} pixels, its container."
            f" It is {width} x {height}."
        )
    straight = bool((pixels[..., :3].max(axis=-1) > pixels[..., 3]).any())
    return premultiply(pixels) if straight else pixels


def load_folder(folder: StrPath) -> Puzzle:
    """A plain folder of pictures as a puzzle: ids from the file names, colours premultiplied by alpha.

    A picture without alpha is a fragment that fills its rectangle. Nothing is known about the cell.
    """
    pictures = list_images(folder)
    ids = _ids_of([picture.stem for picture in pictures])
    pixels = tuple(premultiply(read_rgba(picture)) for picture in pictures)
    sizes = {side for fragment in pixels for side in fragment.shape[:2]}
    with named(os.fspath(folder)):
        fragments = Fragments(tuple(ids), pixels)
    return Puzzle(fragments, None, sizes.pop() if len(sizes) == 1 else None, _name_of(Path(folder)))


def premultiply(rgba: NDArray[np.uint8]) -> Pixels:
    """Colour c -> round(c alpha / 255).

    Shapes: (H, W, 4) -> (H, W, 4) uint8.
    """
    alpha = rgba[..., 3:].astype(np.uint16)
    if alpha.min() == 255:
        return rgba
    colour = (rgba[..., :3] * alpha + 127) // 255
    return np.concatenate([colour, alpha], axis=-1).astype(np.uint8)


def _ids_of(stems: list[str]) -> list[str]:
    """File stems as unique ids: other characters become '-', a repeated one gets a number."""
    ids: dict[str, None] = {}
    last: dict[str, int] = {}
    for stem in stems:
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).lstrip("._-")[:56] or "fragment"
        number = last.get(base, 1)
        name = base
        while name in ids:
            number += 1
            name = f"{base}-{number}"
        assert FRAGMENT_ID.fullmatch(name)
        last[base] = number
        ids[name] = None
    return list(ids)


def _name_of(folder: Path) -> str:
    """What to call the puzzle of a folder: the folder's name, or its parent's when it is just 'puzzle'."""
    folder = folder.resolve()
    return folder.parent.name if folder.name == "puzzle" and folder.parent.name else folder.name or "puzzle"
