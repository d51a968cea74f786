"""Routes that bring puzzles in: uploads, bundled and own pictures to cut, and the fragments themselves."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import asdict, replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Form, Request, Response, UploadFile
from fastapi import Path as PathParam
from fastapi.routing import APIRoute
from pydantic import Field

import jigsync
from jigsync import data
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions, Damage
from jigsync.io.files import read_bytes
from jigsync.io.images import image_bytes_sha256, png_bytes, read_rgb
from jigsync.render.assemble import assemble
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.solvers import base as solvers
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.web.archive import entries_of, readable
from jigsync.web.bench import Bench, Workbench
from jigsync.web.limits import Refusal, plenty
from jigsync.web.models import About, CutOptionsModel, FragmentModel, PictureModel, PuzzleModel
from jigsync.web.store import HeldPicture, HeldPuzzle
from jigsync.web.uploads import Kind, receive


class _Upload(Request):
    """A request whose form may have as many files as the limits say, instead of a thousand."""

    def form(self, **_: Any) -> Any:
        """As starlette's, which counts parts before we do."""
        return super().form(max_files=self.app.state.bench.limits.files + 1)


class UploadRoute(APIRoute):
    """A route that takes uploads."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Hands `_Upload` to the usual handler."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await usual(_Upload(request.scope, request.receive))

        return handler


router = APIRouter(tags=["puzzles"], route_class=UploadRoute)

Id = Annotated[str, PathParam(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Files = Annotated[list[UploadFile], Field(description="pictures, a zip file, a project file, or one scan")]

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


def read_uploads(files: list[UploadFile]) -> list[tuple[str, bytes]]:
    """(name, bytes) of every file; for workers, so that only as many uploads are in memory as there are of them."""
    return [(file.filename or "fragments", file.file.read()) for file in files]


def take_upload(bench: Workbench, files: list[UploadFile], kind: Kind) -> HeldPuzzle:
    """Uploads -> a puzzle, not held yet; for workers."""
    sent = read_uploads(files)
    name = readable(sent[0][0].rsplit("/", 1)[-1].rsplit(".", 1)[0], 60) if len(sent) == 1 else ""
    got = receive(entries_of(sent, bench.limits), kind, bench.limits, bench.room, name)
    return HeldPuzzle(got.puzzle, got.notes, got.skews, got.project)


@router.post("/api/puzzles", status_code=201)
async def upload_puzzle(bench: Bench, files: Files, kind: Annotated[Kind, Form()] = "auto") -> PuzzleModel:
    """Takes fragments: pictures, a puzzle folder's files, a zip of either, a project file, or one scan."""
    return describe(await bench.work(lambda: bench.hold(take_upload(bench, files, kind))))


@router.get("/api/puzzles/{puzzle}")
async def get_puzzle(bench: Bench, puzzle: Id) -> PuzzleModel:
    """The fragments of a puzzle, and where its project file had stopped."""
    return describe(bench.puzzles.get(puzzle))


@router.delete("/api/puzzles/{puzzle}", status_code=204)
async def drop_puzzle(bench: Bench, puzzle: Id) -> Response:
    """Lets a puzzle go."""
    bench.jobs.cancel_all(bench.puzzles.get(puzzle))
    bench.puzzles.drop(puzzle)
    return Response(status_code=204)


@router.get(
    "/api/puzzles/{puzzle}/fragments/{fragment}",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "a PNG of at most 400 pixels a side"}},
)
async def fragment_picture(bench: Bench, puzzle: Id, fragment: Annotated[str, PathParam(max_length=64)]) -> Response:
    """A fragment as it was received."""
    held = bench.puzzles.get(puzzle)
    if fragment not in held.puzzle.ids:
        raise Refusal(404, f"There is no fragment '{readable(fragment)}' in this puzzle.")
    png = await bench.work(lambda: held.shown(fragment))
    # An id is never used for another puzzle, so the browser may keep its fragments.
    return Response(png, media_type="image/png", headers={"Cache-Control": "private, max-age=3600, immutable"})


@router.post("/api/pictures", status_code=201)
async def upload_picture(bench: Bench, file: UploadFile) -> PictureModel:
    """Takes a picture to cut puzzles from."""

    def task() -> HeldPicture:
        [(name, sent)] = read_uploads([file])
        shown = readable(name.rsplit("/", 1)[-1], 60)
        rgb = read_rgb(sent, name=shown, max_pixels=bench.limits.pixels)
        return HeldPicture(rgb, image_bytes_sha256(sent), shown)

    held = bench.pictures.add(await bench.work(task))
    return PictureModel(id=held.id, name=held.name, width=held.rgb.shape[1], height=held.rgb.shape[0])


@router.post("/api/cuts", status_code=201)
async def cut(bench: Bench, options: CutOptionsModel) -> PuzzleModel:
    """Cuts a picture into a damaged, turned, shuffled puzzle; where the fragments belong is forgotten."""
    picture = _picture(bench, options.picture)
    cell = _cell_for(bench, options)

    def task() -> HeldPuzzle:
        puzzle, _ = cut_picture(picture.rgb, _cut_options(options, cell), options.seed, picture.sha256, picture.name)
        return bench.hold(HeldPuzzle(replace(puzzle, name=picture.name)))

    return describe(await bench.work(task))


@router.post(
    "/api/cuts/preview",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "a small PNG"}},
)
async def preview(bench: Bench, options: CutOptionsModel) -> Response:
    """What the cut would do, small: every fragment at its place, pulled apart."""
    picture = _picture(bench, options.picture)
    cell = max(8, min(PREVIEW_CELL, _cell_for(bench, options), 840 // max(options.rows, options.cols)))

    def task() -> bytes:
        upright = _cut_options(options, cell, turns=False, shuffle=False)
        puzzle, truth = cut_picture(picture.rgb, upright, options.seed, "", picture.name)
        return png_bytes(np.asarray(assemble(puzzle, Solution("ok", "", truth.grid, truth.placement), gaps=True)))

    return Response(await bench.work(task), media_type="image/png")


def _picture(bench: Workbench, name: str) -> HeldPicture:
    """An uploaded picture, or a bundled one by its name."""
    if name not in data.names():
        return bench.pictures.get(name)
    sent = read_bytes(data.picture(name), 10**8)
    return HeldPicture(read_rgb(sent, name=name), image_bytes_sha256(sent), name, id=name)


def _cell_for(bench: Workbench, options: CutOptionsModel) -> int:
    """The largest cell for which all containers (2.5 cells a side) keep to the limit."""
    count = options.rows * options.cols
    if count > bench.limits.fragments:
        raise Refusal(413, f"A puzzle must have at most {plenty(bench.limits.fragments)} fragments. Got {count:,}.")
    return max(16, min(LARGEST_CELL, int((bench.limits.pixels / (6.3 * count)) ** 0.5)))


def _cut_options(options: CutOptionsModel, cell: int, **more: Any) -> CutOptions:
    damage = Damage(options.shape, options.erosion, options.photo)
    return CutOptions(Grid(options.rows, options.cols), cell=cell, damage=damage, **more)


def describe(held: HeldPuzzle) -> PuzzleModel:
    """A held puzzle as the interface shows it."""
    puzzle = held.puzzle
    nowhere = {name: Placed.nowhere() for name in puzzle.ids}
    pitch = layout_of(puzzle, Solution("partial", "", Grid(1, 1), nowhere)).pitch
    skews = held.skews or {}
    fragments = [
        FragmentModel(id=name, width=pixels.shape[1], height=pixels.shape[0], skew=skews.get(name))
        for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True)
    ]
    return PuzzleModel(
        id=held.id,
        name=puzzle.name,
        fragments=fragments,
        pitch=list(pitch),
        notes=list(held.notes),
        project=held.project,
    )
