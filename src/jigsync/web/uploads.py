"""Uploads -> puzzles: a puzzle folder, loose pictures, one scan of many fragments, or a project file.

What is decoded goes through a private folder under names of our own, because `jigsync.load` reads folders; it is gone
again when this returns.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import jigsync
from jigsync.io.files import json_bytes, parse_json
from jigsync.io.images import SUFFIXES, natural_key, picture_size
from jigsync.io.puzzle_folder import FRAGMENT_FOLDER, PUZZLE_FILE, parse_puzzle_json
from jigsync.io.schema import Node
from jigsync.values.errors import ImageError, InputError
from jigsync.values.puzzle import Puzzle
from jigsync.web.archive import Entry, readable
from jigsync.web.limits import Limits, Refusal, plenty
from jigsync.web.project import PROJECT_FILE, Project, read_project

Kind = Literal["auto", "fragments", "scan"]

UNREAD: Final = {
    **dict.fromkeys((".heic", ".heif"), "HEIC"),
    ".avif": "AVIF",
    ".pdf": "PDF",
    ".svg": "SVG",
    **dict.fromkeys((".cr2", ".cr3", ".nef", ".arw", ".dng", ".raf", ".orf"), "a camera's raw format"),
    **dict.fromkeys((".psd", ".xcf", ".ora", ".kra"), "a file of layers"),
    ".jxl": "JPEG XL",
}
"""Suffixes of what people take for pictures and no library here opens."""
MOST_NAMED: Final = 12
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, eq=False)
class Received:
    """What an upload turned out to be.

    Attributes:
        puzzle: its fragments.
        notes: sentences for the person who sent it.
        skews: of a scan, id -> degrees or None.
        project: the state to go on from, when it was a project file.
    """

    puzzle: Puzzle
    notes: tuple[str, ...] = ()
    skews: dict[str, float | None] | None = None
    project: Project | None = None


def receive(entries: list[Entry], kind: Kind, limits: Limits, room: Path, name: str = "") -> Received:
    """Makes sense of an upload.

    Args:
        entries: what `entries_of` gave.
        kind: "auto" takes a single picture for a scan and several for fragments.
        room: the private folder.
        name: what to call the puzzle; found from the entries when empty.
    """
    heads = [e for e in entries if e.name == PUZZLE_FILE]
    pictures = [e for e in entries if PurePosixPath(e.name).suffix.lower() in SUFFIXES]
    pictures.sort(key=lambda e: natural_key("/".join(e.parts)))
    called = name or _name_of(entries)
    if heads:
        head = min(heads, key=lambda e: len(e.parts))
        received = _puzzle_folder(head, entries, limits, room)
    elif not pictures:
        raise InputError(_nothing(entries))
    elif kind == "scan" or (kind == "auto" and len(pictures) == 1):
        received = _scan(pictures, limits, room)
    else:
        received = _loose(pictures, limits, room)
    if not heads:
        received = replace(received, notes=(*received.notes, *_left_out(entries)))
    if received.project is not None:
        called = received.project.name
    return replace(received, puzzle=replace(received.puzzle, name=called))


def _nothing(entries: list[Entry]) -> str:
    if not entries:
        return "The upload is empty: drop pictures, a folder of them, a zip file, or one scan."
    what = " ".join(_left_out(entries)[:3])
    return (
        f"The upload must hold pictures or a puzzle. It holds only '{entries[0].shown}' and the like. {what}".rstrip()
    )


def _left_out(entries: list[Entry]) -> tuple[str, ...]:
    """A note for every file that is a picture or a document but cannot be read, with what to do."""
    left = [e for e in entries if PurePosixPath(e.name).suffix.lower() in UNREAD]
    notes = [
        f"'{e.shown}' was left out: {UNREAD[PurePosixPath(e.name).suffix.lower()]} cannot be read here."
        " Save it as JPEG or PNG."
        for e in left[:MOST_NAMED]
    ]
    return (*notes, f"{len(left) - MOST_NAMED} more files were left out.") if len(left) > MOST_NAMED else tuple(notes)


def _name_of(entries: list[Entry]) -> str:
    """The folder all files are in, or the only file's stem, or nothing in particular."""
    roots = {e.parts[0] for e in entries}
    if len(roots) == 1:
        return readable(PurePosixPath(roots.pop()).stem, 60)
    return "fragments"


def _check_pictures(pictures: list[Entry], limits: Limits) -> None:
    """Reads the headers only: number of fragments, pixels of each and of all."""
    if len(pictures) > limits.fragments:
        raise Refusal(
            413, f"A puzzle must have at most {limits.fragments:,} fragments. These are {len(pictures):,} pictures."
        )
    total = 0
    for entry in pictures:
        try:
            height, width = picture_size(entry.data, entry.shown, limits.pixels)
        except ImageError as error:
            if "pixels" in str(error):
                raise Refusal(413, str(error)) from None
            raise
        total += height * width
        if total > limits.pixels:
            raise Refusal(413, f"All fragments together must have at most {plenty(limits.pixels)} pixels.")


def _puzzle_folder(head: Entry, entries: list[Entry], limits: Limits, room: Path) -> Received:
    folder = head.parts[:-1]
    inside = {"/".join(e.parts[len(folder) :]): e for e in entries if e.parts[: len(folder)] == folder}
    root = Node(parse_json(head.data, head.shown, limits.solution_bytes), head.shown)
    cell, container, files = parse_puzzle_json(root)
    pictures = {}
    for name, file in files.items():
        if file not in inside:
            raise InputError(f"The picture '{readable(file)}' of fragment '{name}' is missing in the upload.")
        pictures[name] = inside[file]
    _check_pictures(list(pictures.values()), limits)
    listed: dict[str, Any] = {"format": root.key("format").text(), "cell": cell, "container": container}
    listed["fragments"] = [{"id": name, "file": f"{FRAGMENT_FOLDER}/{name}.png"} for name in pictures]
    with tempfile.TemporaryDirectory(dir=room) as made:
        (Path(made) / FRAGMENT_FOLDER).mkdir()
        for name, entry in pictures.items():
            (Path(made) / FRAGMENT_FOLDER / f"{name}.png").write_bytes(entry.data)
        (Path(made) / PUZZLE_FILE).write_bytes(json_bytes(listed))
        puzzle = _without_path(made, lambda: jigsync.load(made))
    project = inside.get(PROJECT_FILE)
    state = None if project is None else read_project(project.data, project.shown, puzzle, limits)
    return Received(puzzle, project=state)


def _loose(pictures: list[Entry], limits: Limits, room: Path) -> Received:
    if len(pictures) < 2:
        raise InputError("One picture makes no puzzle: drop all fragments together, or one scan that shows them all.")
    _check_pictures(pictures, limits)
    digits = len(str(len(pictures)))
    with tempfile.TemporaryDirectory(dir=room) as made:
        # Ids come from file names: a leading number keeps the order, and the loader makes them unique.
        stems = [_PLAIN.sub("-", PurePosixPath(e.name).stem).strip("-._")[:48] for e in pictures]
        distinct = len({stem.lower() for stem in stems if stem}) == len(stems)
        for number, (entry, stem) in enumerate(zip(pictures, stems, strict=True)):
            plain = stem if distinct else f"{number:0{digits}d}-{stem or 'fragment'}"
            (Path(made) / f"{plain}.png").write_bytes(entry.data)
        puzzle = _without_path(made, lambda: jigsync.load(made))
    return Received(puzzle)


def _scan(pictures: list[Entry], limits: Limits, room: Path) -> Received:
    if len(pictures) > 1:
        raise InputError(f"A scan is one picture that shows all fragments. Got {len(pictures)} pictures.")
    _check_pictures(pictures, limits)
    with tempfile.TemporaryDirectory(dir=room) as made:
        file = Path(made) / "scan"
        file.write_bytes(pictures[0].data)
        extracted = _without_path(str(file), lambda: jigsync.extract(file), pictures[0].shown)
    count = len(extracted.puzzle)
    if count < 2:
        raise InputError(
            f"The picture '{pictures[0].shown}' shows one fragment, not many on a plain background."
            " To make a puzzle of it, press 'Cut my own picture'."
        )
    if count > limits.fragments:
        raise Refusal(413, f"A puzzle must have at most {limits.fragments:,} fragments. This scan shows {count:,}.")
    skews = {name: e.skew for name, e in extracted.fragments.items()}
    return Received(extracted.puzzle, _scan_notes(extracted), skews)


def _scan_notes(extracted: Any) -> tuple[str, ...]:
    straightened = [abs(e.skew) for e in extracted.fragments.values() if e.straightened]
    notes = [f"Found {len(extracted.puzzle)} fragments on the scan."]
    if straightened:
        notes.append(f"{len(straightened)} were straightened, by {max(straightened):.1f}° at most.")
    if unknown := sum(e.skew is None for e in extracted.fragments.values()):
        notes.append(f"{unknown} left as is, whose outline does not tell their skew.")
    if extracted.specks:
        notes.append("1 speck was left out." if extracted.specks == 1 else f"{extracted.specks} specks were left out.")
    notes += [f"{name} {note}." for name, e in extracted.fragments.items() for note in e.notes]
    return tuple(notes[:12])


def _without_path(path: str, work: Any, shown: str = "the upload") -> Any:
    """Runs `work`; an error's sentence names the upload instead of our private folder."""
    try:
        return work()
    except InputError as error:
        raise type(error)(str(error).replace(path, shown).replace(f"{shown}/", "")) from None
