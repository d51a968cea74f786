"""Routes that bring puzzles in: uploads, bundled and own pictures to cut, and the fragments themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Response, UploadFile
from fastapi import Path as PathParam
from fastapi.responses import StreamingResponse

import jigsync
from jigsync import data
from jigsync.cutting.options import SEVERITIES
from jigsync.solvers import base as solvers
from jigsync.web.answers import FileAnswer, made_file
from jigsync.web.archive import readable
from jigsync.web.bench import Bench, Workbench
from jigsync.web.forms import Files, Id, UploadRoute, small, upload_of
from jigsync.web.limits import Refusal, plenty
from jigsync.web.models import About, CutOptionsModel, FragmentModel, PictureModel, PuzzleModel, plain
from jigsync.web.store import HeldPuzzle
from jigsync.web.uploads import Kind

router = APIRouter(tags=["puzzles"], route_class=UploadRoute)

WindowId = Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]*$", description="of whoever asks")]
FEW = 60
"""Up to so many fragments are cut in a moment."""
BLOCK = 1 << 16
LARGEST_CELL = 128
PREVIEW_CELL = 56


@router.get("/api/about")
async def about(bench: Bench) -> About:
    """Version, limits, bundled pictures, named severities and solvers."""
    return About(
        version=jigsync.__version__,
        limits={name: float(value) for name, value in asdict(bench.limits).items()},
        pictures=list(data.names()),
        severities={name: asdict(damage) for name, damage in SEVERITIES.items()},
        solvers=list(solvers.names()),
    )


def take_upload(
    bench: Workbench, files: list[UploadFile], kind: Kind, seconds: float, *, keep: bool = True
) -> HeldPuzzle:
    """Uploads -> a puzzle; for `Workbench.work`."""
    sent = files[0].filename or "fragments"
    name = readable(sent.rsplit("/", 1)[-1].rsplit(".", 1)[0], 60) if len(files) == 1 else ""
    return bench.make_puzzle("receive_upload", {**upload_of(files), "kind": kind, "name": name}, seconds, keep=keep)


@router.post("/api/puzzles", status_code=201, response_model=PuzzleModel)
async def upload_puzzle(bench: Bench, files: Files, kind: Annotated[Kind, Form()] = "auto") -> Response:
    """Takes fragments: pictures, a puzzle folder's files, a zip of either, a project file, or one scan."""
    held = await bench.work(lambda seconds: take_upload(bench, files, kind, seconds), small=small(files))
    return describe(held, 201)


@router.get("/api/puzzles/{puzzle}", response_model=PuzzleModel)
async def get_puzzle(bench: Bench, puzzle: Id, window: WindowId = "") -> Response:
    """The fragments of a puzzle, where its project file had stopped, and the solve that is under way."""
    held = bench.puzzles.get(puzzle)
    held.opened_in(window)
    return describe(held, job=bench.jobs.of(held.id))


@router.delete("/api/puzzles/{puzzle}", status_code=204)
async def drop_puzzle(bench: Bench, puzzle: Id, window: WindowId = "") -> Response:
    """Lets a puzzle go; said for a window, when no other one has it open."""
    held = bench.puzzles.get(puzzle)
    if held.left_by(window):
        bench.jobs.cancel_all(held)
        bench.puzzles.drop(puzzle)
    return Response(status_code=204)


@router.delete("/api/puzzles/{puzzle}/windows/{window}", status_code=204)
async def leave_puzzle(
    bench: Bench, puzzle: Id, window: Annotated[str, PathParam(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
) -> Response:
    """A window is closed or reloaded; the puzzle stays for whoever comes back."""
    bench.puzzles.get(puzzle).left_by(window)
    return Response(status_code=204)


@router.get(
    "/api/puzzles/{puzzle}/fragments/{fragment}",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "a PNG of at most 400 pixels a side"}},
)
async def fragment_picture(bench: Bench, puzzle: Id, fragment: Annotated[str, PathParam(max_length=64)]) -> Response:
    """A fragment as it was received."""
    held = bench.puzzles.get(puzzle)
    if fragment not in held.ids:
        raise Refusal(404, f"There is no fragment '{readable(fragment)}' in this puzzle.")
    png = await bench.read(lambda: held.shown(fragment))
    # An id is never used for another puzzle, so the browser may keep its fragments.
    return Response(png, media_type="image/png", headers={"Cache-Control": "private, max-age=3600, immutable"})


@router.post("/api/pictures", status_code=201)
async def upload_picture(bench: Bench, file: UploadFile) -> PictureModel:
    """Takes a picture to cut puzzles from."""
    shown = readable((file.filename or "picture").rsplit("/", 1)[-1], 60)
    held = await bench.work(lambda seconds: bench.make_picture(upload_of([file]), shown, seconds), small=small([file]))
    return PictureModel(id=held.id, name=held.name, width=held.width, height=held.height)


@router.post("/api/cuts", status_code=201, response_model=PuzzleModel)
async def cut(bench: Bench, options: CutOptionsModel) -> Response:
    """Cuts a picture into a damaged, turned, shuffled puzzle; where the fragments belong is forgotten."""
    arguments = _arguments(bench, options, _cell_for(bench, options))
    return describe(
        await bench.work(lambda seconds: bench.make_puzzle("cut", arguments, seconds), small=_few(options)), 201
    )


@router.post(
    "/api/cuts/preview",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "a small PNG"}},
)
async def preview(bench: Bench, options: CutOptionsModel) -> FileAnswer:
    """What the cut would do, small: every fragment at its place, pulled apart."""
    cell = max(8, min(PREVIEW_CELL, _cell_for(bench, options), 840 // max(options.rows, options.cols)))
    arguments = _arguments(bench, options, cell)
    made = await bench.work(lambda seconds: made_file(bench, "preview", arguments, seconds), small=_few(options))
    return FileAnswer(made, "image/png")


def _arguments(bench: Workbench, options: CutOptionsModel, cell: int) -> dict[str, Any]:
    """Of a task that cuts: an uploaded picture, or a bundled one by its name."""
    name = options.picture
    picture = {"name": name} if name in data.names() else bench.pictures.get(name).to_json()
    return {"picture": picture, "options": plain(options), "cell": cell}


def _few(options: CutOptionsModel) -> bool:
    """Is it cut in a moment?"""
    return options.rows * options.cols <= FEW


def _cell_for(bench: Workbench, options: CutOptionsModel) -> int:
    """The largest cell for which all containers (2.5 cells a side) keep to the limit."""
    count = options.rows * options.cols
    if count > bench.limits.fragments:
        raise Refusal(413, f"A puzzle must have at most {plenty(bench.limits.fragments)} fragments. Got {count:,}.")
    return max(16, min(LARGEST_CELL, int((bench.limits.pixels / (6.3 * count)) ** 0.5)))


def describe(held: HeldPuzzle, status: int = 200, job: str | None = None) -> Response:
    """A held puzzle as the interface shows it. A project is as its file has it, never in memory as a whole."""
    skews = held.skews or {}
    fragments = [
        FragmentModel(id=name, width=width, height=height, skew=skews.get(name))
        for name, (height, width) in zip(held.ids, held.file.sizes, strict=True)
    ]
    model = PuzzleModel(
        id=held.id,
        name=held.file.name,
        fragments=fragments,
        pitch=list(held.pitch),
        notes=list(held.notes),
        job=job,
        version=held.version,
    )
    head = json.dumps(plain(model), ensure_ascii=False).encode()
    if held.project is None:
        return Response(head, status, media_type="application/json")
    before, after = head.split(b'"project": null')
    blocks = _around(before + b'"project": ', held.project, after)
    return StreamingResponse(blocks, status, media_type="application/json")


def _around(before: bytes, path: Path, after: bytes) -> Iterator[bytes]:
    """The blocks of a text with a file in it; a file that is gone by now is null."""
    yield before
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                yield block
    except FileNotFoundError:
        yield b"null"
    yield after
