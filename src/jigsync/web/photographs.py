"""Routes for photographs of many fragments: what was found on them, what a person puts right, and the puzzle of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import FailFast, Field

from jigsync.web.archive import readable
from jigsync.web.bench import Bench
from jigsync.web.forms import Files, Id, UploadRoute, small, upload_of
from jigsync.web.limits import Refusal
from jigsync.web.models import Model, PuzzleModel, plain
from jigsync.web.puzzles import describe

router = APIRouter(tags=["photographs"], route_class=UploadRoute)

MOST_PHOTOGRAPHS = 24
FEW_PIXELS = 16_000_000
"""Of photographs that are looked at in a moment."""
Coordinate = Annotated[float, Field(ge=-20_000, le=120_000)]
Point = tuple[Coordinate, Coordinate]
Line = Annotated[list[Point], FailFast(), Field(min_length=1, max_length=20_000)]
Polygon = Annotated[list[Point], FailFast(), Field(min_length=3, max_length=20_000)]


class OutlineModel(Model):
    """A fragment's outline, in pixels of the photograph."""

    points: Polygon
    notes: list[str] = Field(default_factory=list)


class PhotographModel(Model):
    """A photograph, and what was found on it."""

    id: str
    name: str
    width: int
    height: int
    outlines: list[OutlineModel]
    notes: list[str] = Field(default_factory=list)


class BackgroundRequest(Model):
    """A pixel that is background."""

    x: Annotated[int, Field(ge=0, le=100_000)]
    y: Annotated[int, Field(ge=0, le=100_000)]


class ShapeRequest(Model):
    """What a person does to outlines: see `jigsync.scan.outlines`."""

    do: Literal["merge", "split", "add", "erase", "draw"]
    outlines: Annotated[list[Polygon], FailFast(), Field(max_length=100, default_factory=list)]
    line: Line = Field(default_factory=lambda: [(0.0, 0.0)])
    radius: Annotated[float, Field(ge=0.5, le=2000.0)] = 10.0


class Sheet(Model):
    """A photograph and the outlines that count."""

    photograph: Annotated[str, Field(max_length=64)]
    outlines: Annotated[list[Polygon], FailFast(), Field(max_length=5000)]


class CutRequest(Model):
    """The puzzle to be made."""

    name: Annotated[str, Field(max_length=60)] = "photograph"
    sheets: Annotated[list[Sheet], FailFast(), Field(min_length=1, max_length=MOST_PHOTOGRAPHS)]


@router.post("/api/photographs", status_code=201)
async def upload_photographs(bench: Bench, files: Files) -> list[PhotographModel]:
    """Takes photographs of fragments on a plain background and says what lies on each."""
    if len(files) > MOST_PHOTOGRAPHS:
        raise Refusal(413, f"At most {MOST_PHOTOGRAPHS} photographs are taken at a time. Got {len(files)}.")
    names = [readable((file.filename or "photograph").rsplit("/", 1)[-1], 60) for file in files]
    held = await bench.work(
        lambda seconds: bench.make_photographs(upload_of(files), names, seconds), small=small(files)
    )
    return [
        PhotographModel(id=one.id, name=one.name, width=one.width, height=one.height, **found) for one, found in held
    ]


@router.get(
    "/api/photographs/{photograph}/picture",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}, "description": "a JPEG of at most 2400 pixels a side"}},
)
async def photograph_picture(bench: Bench, photograph: Id) -> Response:
    """A photograph as the page shows it."""
    held = bench.photographs.get(photograph)
    jpeg = await bench.read(held.shown)
    return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600, immutable"})


@router.post("/api/photographs/{photograph}/background")
async def pick_background(bench: Bench, photograph: Id, request: BackgroundRequest) -> PhotographModel:
    """Looks for fragments anew, on the background that a person points at."""
    held = bench.photographs.get(photograph)
    arguments = {"picture": held.to_json(), "background": [request.x, request.y]}
    found = await bench.work(
        lambda seconds: bench.crew.do("find_fragments", arguments, seconds=seconds), small=held.pixels <= FEW_PIXELS
    )
    return PhotographModel(id=held.id, name=held.name, width=held.width, height=held.height, **found)


@router.post("/api/photographs/{photograph}/shape")
async def shape(bench: Bench, photograph: Id, request: ShapeRequest) -> list[OutlineModel]:
    """Merges, splits, paints or draws outlines; gives those that take their place."""
    held = bench.photographs.get(photograph)
    arguments: dict[str, Any] = {"size": [held.width, held.height], **plain(request)}
    told = await bench.work(lambda seconds: bench.crew.do("shape_outlines", arguments, seconds=seconds), small=True)
    return [OutlineModel(points=points) for points in told["outlines"]]


@router.post("/api/photographs/puzzle", status_code=201, response_model=PuzzleModel)
async def cut_photographs(bench: Bench, request: CutRequest) -> Response:
    """Makes a puzzle of what lies within the outlines; nothing is resampled."""
    count = sum(len(sheet.outlines) for sheet in request.sheets)
    if count > bench.limits.fragments:
        raise Refusal(413, f"A puzzle must have at most {bench.limits.fragments:,} fragments. These are {count:,}.")
    held = [bench.photographs.get(sheet.photograph) for sheet in request.sheets]
    sheets = [
        {"picture": one.to_json(), "outlines": plain(sheet)["outlines"]}
        for one, sheet in zip(held, request.sheets, strict=True)
    ]
    arguments = {"name": request.name, "sheets": sheets}
    few = sum(one.pixels for one in held) <= FEW_PIXELS
    made = await bench.work(lambda seconds: bench.make_puzzle("cut_fragments", arguments, seconds), small=few)
    return describe(made, 201)


@router.delete("/api/photographs/{photograph}", status_code=204)
async def drop_photograph(bench: Bench, photograph: Id) -> Response:
    """Lets a photograph go."""
    bench.photographs.get(photograph)
    bench.photographs.drop(photograph)
    return Response(status_code=204)
