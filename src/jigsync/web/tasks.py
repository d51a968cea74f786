"""What worker processes do: everything that decodes what was sent, or takes time.

A task gets a `Bench` and JSON values, and gives JSON values; pixels and other large results go to files of the folder
it is given. The server moves them to their place, and removes the folder whatever became of the task.
"""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

import jigsync
from jigsync import data
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.io.files import json_bytes, open_plain, parse_json, read_bytes
from jigsync.io.images import image_bytes_sha256, png_bytes, read_rgb
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution
from jigsync.measure import learned
from jigsync.measure.choice import readings
from jigsync.render.assemble import assemble
from jigsync.scan import extract
from jigsync.solution import Solution
from jigsync.solvers import joint
from jigsync.solvers.base import Assignment, Progress
from jigsync.solvers.fits import fits_for
from jigsync.values.errors import FormatError
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed, cell_pitch
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.web.archive import ZIP, Window, entries_of
from jigsync.web.drawings import PictureFormat, picture_bytes
from jigsync.web.limits import Limits
from jigsync.web.models import CutOptionsModel, KeptPuzzle, SolveOptions, plain
from jigsync.web.photo_tasks import cut_sheets, found_on, photograph, shaped, take_photographs
from jigsync.web.pixels import PuzzleFile, mapped, write_pixels, write_puzzle
from jigsync.web.project import (
    PROJECT_FILE,
    checked,
    project_bytes,
    read_project,
    shown,
    solution_of,
    zip_bytes,
)
from jigsync.web.readings import Remembered
from jigsync.web.spread import spread
from jigsync.web.uploads import Kind, Received, receive

WARM: Final = (learned, joint, extract)
"""Modules that a task would import: whoever starts workers from this module has them already."""

PIXELS_FILE: Final = "pixels"
KEPT_FILE: Final = "kept.json"
KEPT_ZIP: Final = "kept.zip"
RESULT_FILE: Final = "result"


@dataclass
class Bench:
    """What a worker process has for its tasks.

    Attributes:
        limits: the server's.
        say: tells the server of a step.
        stopped: does the server want the task to end?
        holds: id of the puzzle that was measured last, "" for none.
        ready: has anything been measured?
    """

    limits: Limits
    say: Callable[[dict[str, Any]], None]
    stopped: Callable[[], bool]
    holds: str = ""
    ready: bool = False
    _read: Remembered | None = None

    def readings(self, name: str, puzzle: Puzzle) -> Remembered:
        """The ways in which a puzzle is read, each measured when it is asked for; those of the last one are known."""
        if self._read is None or self.holds != name:
            self.forget()
            self._read, self.holds, self.ready = Remembered(lambda: readings(puzzle)), name, True
        return self._read

    def forget(self) -> None:
        """Drops the measurements."""
        self._read, self.holds = None, ""

    def rests(self) -> bool:
        """Does the process, now that its task is done, hold little enough memory to go on?"""
        if _resident() > self.limits.worker_bytes // 2:
            self.forget()
            gc.collect()
        return _resident() <= self.limits.worker_bytes // 2


def _resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


# ---------------------------------------------------------------------------------------------- in


def receive_upload(
    bench: Bench, upload: str, files: Sequence[Sequence[Any]], kind: Kind, name: str, folder: str, keep: bool
) -> dict[str, Any]:
    """Uploads -> a puzzle. `files` are (name, first byte, bytes) of the parts of `upload`."""
    entries = entries_of(_parts(upload, files), bench.limits)
    return _taken(receive(entries, kind, bench.limits, Path(folder), name), Path(folder), keep)


def _parts(upload: str, files: Sequence[Sequence[Any]]) -> Iterator[tuple[str, BinaryIO]]:
    with open(upload, "rb") as file:
        for name, start, size in files:
            yield name, io.BufferedReader(Window(file, start, size))


def _taken(got: Received, folder: Path, keep: bool) -> dict[str, Any]:
    """Leaves a puzzle's files in the folder; what the server has to know about them."""
    held = write_puzzle(folder / PIXELS_FILE, got.puzzle)
    if got.project is not None:
        (folder / PROJECT_FILE).write_bytes(json_bytes(plain(got.project)))
    if keep:
        head = KeptPuzzle(name=got.puzzle.name, notes=list(got.notes), skews=got.skews)
        members = {**puzzle_members(got.puzzle), KEPT_FILE: json_bytes(plain(head))}
        if got.project is not None:
            members[PROJECT_FILE] = json_bytes(plain(got.project))
        (folder / KEPT_ZIP).write_bytes(zip_bytes(members))
    pitch = cell_pitch(got.puzzle, dict.fromkeys(got.puzzle.ids, Placed.nowhere()))
    return {"puzzle": held.to_json(), "pitch": list(pitch), "notes": list(got.notes), "skews": got.skews}


def restore_puzzle(bench: Bench, path: str, folder: str) -> dict[str, Any]:
    """A puzzle that an earlier server kept in a file."""
    # Pixels and fragments are what was let in; packed anew they may take more bytes than they came in.
    limits = bench.limits
    roomy = replace(limits, upload_bytes=8 * limits.pixels + limits.upload_bytes, files=limits.fragments + 8)
    with open_plain(path) as packed:
        if packed.read(len(ZIP)) != ZIP:
            raise FormatError(f"The file '{path}' is damaged: it does not begin as a zip file.")
        packed.seek(0)
        entries = entries_of([(os.path.basename(path), packed)], roomy)
    head = next((entry for entry in entries if entry.parts == (KEPT_FILE,)), None)
    if head is None:
        raise FormatError(f"The file '{path}' holds no '{KEPT_FILE}'.")
    value = parse_json(head.data, f"{path}: {KEPT_FILE}", limits.solution_bytes)
    kept = checked(KeptPuzzle, value, f"'{KEPT_FILE}' of '{path}'")
    got = receive(entries, "fragments", roomy, Path(folder), kept.name)
    return _taken(replace(got, notes=tuple(kept.notes), skews=kept.skews), Path(folder), keep=False)


def receive_picture(
    bench: Bench, upload: str, files: Sequence[Sequence[Any]], name: str, folder: str
) -> dict[str, Any]:
    """An upload -> a picture to cut."""
    [(_, start, size)] = files
    with open(upload, "rb") as file:
        file.seek(start)
        sent = file.read(size)
    rgb = read_rgb(sent, name=name, max_pixels=bench.limits.pixels)
    write_pixels(Path(folder) / PIXELS_FILE, [rgb])
    return {"height": rgb.shape[0], "width": rgb.shape[1], "sha256": image_bytes_sha256(sent)}


def receive_photographs(
    bench: Bench, upload: str, files: Sequence[Sequence[Any]], names: Sequence[str], folder: str
) -> dict[str, Any]:
    """Uploads -> photographs of fragments, and what lies on each."""
    return {"photographs": take_photographs(bench.limits, upload, files, names, folder)}


def find_fragments(bench: Bench, picture: dict[str, Any], background: Sequence[int]) -> dict[str, Any]:
    """What lies on a photograph whose background somebody has pointed at."""
    x, y = background
    return found_on(photograph(picture), picture["name"], bench.limits, (x, y))


def shape_outlines(
    bench: Bench, do: str, size: Sequence[int], outlines: list[Any], line: list[Any], radius: float
) -> dict[str, Any]:
    """Outlines put right."""
    return {"outlines": shaped(do, size, outlines, line, radius)}


def cut_fragments(bench: Bench, name: str, sheets: Sequence[dict[str, Any]], folder: str, keep: bool) -> dict[str, Any]:
    """Photographs and outlines -> a puzzle."""
    return _taken(Received(cut_sheets(sheets, name)), Path(folder), keep)


# ---------------------------------------------------------------------------------------------- cut


def cut(
    bench: Bench, picture: dict[str, Any], options: dict[str, Any], cell: int, folder: str, keep: bool
) -> dict[str, Any]:
    """A damaged, turned, shuffled puzzle of a picture; where the fragments belong is forgotten."""
    name, wanted = picture["name"], CutOptionsModel.model_validate(options)
    rgb, sha256 = _picture(picture)
    puzzle, _ = cut_picture(rgb, _cut_options(wanted, cell), wanted.seed, sha256, name)
    return _taken(Received(replace(puzzle, name=name)), Path(folder), keep)


def preview(bench: Bench, picture: dict[str, Any], options: dict[str, Any], cell: int, folder: str) -> dict[str, Any]:
    """What a cut would do: every fragment at its place, pulled apart."""
    wanted = CutOptionsModel.model_validate(options)
    upright = _cut_options(wanted, cell, turns=False, shuffle=False)
    puzzle, truth = cut_picture(_picture(picture)[0], upright, wanted.seed, "", picture["name"])
    solution = Solution("ok", "", truth.layout, truth.placement, pitch=truth.pitch)
    drawn = assemble(puzzle, solution, gaps=True)
    (Path(folder) / RESULT_FILE).write_bytes(png_bytes(np.asarray(drawn)))
    return {}


def _picture(picture: dict[str, Any]) -> tuple[Any, str]:
    """(pixels, sha256) of an uploaded picture, or of a bundled one."""
    if "path" not in picture:
        sent = read_bytes(data.picture(picture["name"]), 10**8)
        return read_rgb(sent, name=picture["name"]), image_bytes_sha256(sent)
    shape = picture["height"], picture["width"], 3
    return mapped(Path(picture["path"]), shape, "picture"), picture["sha256"]


def _cut_options(options: CutOptionsModel, cell: int, **more: Any) -> CutOptions:
    damage = Damage(options.shape, options.erosion, options.photo)
    return CutOptions(Grid(options.rows, options.cols), cell=cell, damage=damage, **more)


# ---------------------------------------------------------------------------------------------- solve


def solve(bench: Bench, name: str, puzzle: dict[str, Any], options: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Solves a puzzle; every step says how far it is, and the best placement when there is a better one."""
    wanted = SolveOptions.model_validate(options)
    opened = PuzzleFile.of_json(puzzle).open()
    drawn: Assignment | None = None
    pinned = tuple(wanted.places)

    def watch(step: Progress) -> bool:
        nonlocal drawn
        told: dict[str, Any] = {"stage": step.stage, "fraction": step.fraction}
        if step.best is not None and step.best is not drawn:
            drawn = step.best
            told |= {"energy": drawn.energy, "shown": _shown(_on_the_way(drawn, opened), opened, pinned)}
        bench.say(told)
        return not bench.stopped()

    solution = jigsync.solve(
        opened,
        wanted.solver,
        measurements=bench.readings(name, opened),
        grid=wanted.grid,
        layout="free" if wanted.places and wanted.layout == "auto" else wanted.layout,
        pins={**wanted.pins, **{name: Pose.of_degrees(turn, (x, y)) for name, (x, y, turn) in wanted.places.items()}},
        exclude=wanted.exclude,
        upright=wanted.upright,
        seed=wanted.seed,
        time_limit=seconds,
        progress=watch,
    )
    return {"reason": solution.reason, "energy": solution.energy, "shown": _shown(solution, opened, pinned)}


def _shown(solution: Solution, puzzle: Puzzle, pinned: Sequence[str] = ()) -> dict[str, Any] | None:
    value = shown(spread(puzzle, solution, pinned), puzzle)
    return None if value is None else plain(value)


def _on_the_way(best: Assignment, puzzle: Puzzle) -> Solution:
    """A placement before the global turn is decided."""
    placement, pitch = best.placed(puzzle)
    return Solution(best.status, best.reason, best.layout, placement, energy=best.energy, pitch=pitch)


def candidates(
    bench: Bench, name: str, puzzle: dict[str, Any], solution: dict[str, Any], row: int, col: int, limit: int
) -> dict[str, Any]:
    """The fragments that fit a cell best."""
    opened = PuzzleFile.of_json(puzzle).open()
    found = jigsync.candidates(
        opened,
        solution_of(parse_solution(Node(solution, "solution")), opened),
        row,
        col,
        measurements=bench.readings(name, opened),
        limit=limit,
    )
    return {"candidates": [candidate._asdict() for candidate in found]}


def fits(
    bench: Bench, name: str, puzzle: dict[str, Any], solution: dict[str, Any], fragment: str, limit: int
) -> dict[str, Any]:
    """The likeliest places of a fragment beside those that are placed."""
    opened = PuzzleFile.of_json(puzzle).open()
    placement = solution_of(parse_solution(Node(solution, "solution")), opened).placement
    read = bench.readings(name, opened)
    # Outlines tell poses to the pixel; what is known of cells only does where nothing reads outlines.
    known = next((m for m in read if isinstance(m.pairs, Hypothesised)), None) or next(iter(read))
    size = float(max(cell_pitch(opened, placement)))
    hypotheses = known.hypotheses() if isinstance(known.pairs, Hypothesised) else known.pairs.hypotheses(size)
    found = fits_for(hypotheses, opened.ids, placement, fragment, size, limit)
    return {
        "fits": [
            {"x": f.pose.xy[0], "y": f.pose.xy[1], "angle": f.pose.degrees, "log_odds": f.log_odds, "beside": f.beside}
            for f in found
        ]
    }


def warm_up(bench: Bench) -> dict[str, Any]:
    """Loads what the first solve would wait for."""
    next(iter(bench.readings("", jigsync.cut(data.picture("coffee"), "2x2", "light", cell=32))))
    bench.forget()
    return {}


# ---------------------------------------------------------------------------------------------- out


def draw(
    bench: Bench,
    puzzle: dict[str, Any],
    solution: dict[str, Any],
    format: PictureFormat,
    gaps: bool,
    longest: int | None,
    folder: str,
) -> dict[str, Any]:
    """The assembled picture as it is shown: a person may have moved components towards each other."""
    opened = PuzzleFile.of_json(puzzle).open()
    found = solution_of(parse_solution(Node(solution, "solution")), opened)
    if found.grid is None:
        found = replace(found, placement={name: replace(p, component=0) for name, p in found.placement.items()})
    written = picture_bytes(opened, found, format, gaps, longest)
    (Path(folder) / RESULT_FILE).write_bytes(written)
    return {}


def pack_project(bench: Bench, puzzle: dict[str, Any], body: str, folder: str) -> dict[str, Any]:
    """The project file of what was sent."""
    opened = PuzzleFile.of_json(puzzle).open()
    project = read_project(read_bytes(body, bench.limits.project_bytes), "request", opened, bench.limits)
    (Path(folder) / RESULT_FILE).write_bytes(project_bytes(opened, project))
    return {}


TASKS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    task.__name__: task
    for task in (
        receive_upload,
        restore_puzzle,
        receive_picture,
        receive_photographs,
        find_fragments,
        shape_outlines,
        cut_fragments,
        cut,
        preview,
        solve,
        candidates,
        fits,
        warm_up,
        draw,
        pack_project,
    )
}
