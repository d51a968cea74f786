"""Routes that give results out: pictures, solution.json, a table, a project file."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import Final

from fastapi import APIRouter, Request, Response

from jigsync.io.files import json_bytes
from jigsync.io.solution_file import solution_json
from jigsync.solution import Solution
from jigsync.values.errors import InputError
from jigsync.values.placement import Placed
from jigsync.web.answers import FileAnswer, made_file
from jigsync.web.bench import Bench
from jigsync.web.drawings import KINDS
from jigsync.web.forms import SMALL, Container, Id
from jigsync.web.models import PictureRequest, Step, TableRequest
from jigsync.web.project import check_step

router = APIRouter(tags=["results"])

FEW_PIXELS: Final = 8_000_000
"""Of a puzzle that is drawn or packed in a moment."""
COLUMNS = (
    *("fragment", "x", "y", "degrees_clockwise", "group", "row", "column", "turns"),
    *("confidence", "pinned", "belongs"),
)


@router.post(
    "/api/puzzles/{puzzle}/picture",
    response_class=Response,
    responses={
        200: {
            "content": {kind: {} for kind, _ in KINDS.values()},
            "description": "the assembled picture, or its layers",
        }
    },
)
async def picture(bench: Bench, puzzle: Id, request: PictureRequest) -> FileAnswer:
    """The assembled picture, with or without gaps, in one piece or in layers, or a sheet to print."""
    held = bench.puzzles.get(puzzle)
    grid = request.solution.grid
    if grid is not None and grid.size > bench.limits.cells:
        raise InputError(f"The grid must have at most {bench.limits.cells} cells. Got {grid}.")
    arguments = {
        "puzzle": held.file.to_json(),
        "solution": solution_json(request.solution),
        "format": request.format,
        "gaps": request.gaps,
        "longest": request.longest,
    }
    made = await bench.work(
        lambda seconds: made_file(bench, "draw", arguments, seconds), small=held.pixels <= FEW_PIXELS
    )
    kind, suffix = KINDS[request.format]
    return FileAnswer(made, kind, f"assembled.{suffix}")


@router.post(
    "/api/puzzles/{puzzle}/solution",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}, "description": "solution.json"}},
)
async def solution_file(bench: Bench, puzzle: Id, request: TableRequest) -> Response:
    """solution.json of a state, checked."""
    held = bench.puzzles.get(puzzle)
    solution = await bench.read(lambda: _solution(check_step(request.step, held.puzzle)))
    return Response(
        json_bytes(solution_json(solution)), media_type="application/json", headers=_as_file("solution.json")
    )


@router.post(
    "/api/puzzles/{puzzle}/table",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}, "description": "one row for each fragment"}},
)
async def table(bench: Bench, puzzle: Id, request: TableRequest) -> Response:
    """A state as a table for spreadsheets."""
    held = bench.puzzles.get(puzzle)
    solution = await bench.read(lambda: _solution(check_step(request.step, held.puzzle)))
    return Response(
        csv_of(solution, request.step), media_type="text/csv; charset=utf-8", headers=_as_file("fragments.csv")
    )


@router.post(
    "/api/puzzles/{puzzle}/project",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "a project file"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ProjectModel"}}},
        }
    },
)
async def project(bench: Bench, puzzle: Id, request: Request) -> FileAnswer:
    """Everything in one file that opens again in the same state; unpacked, it is a puzzle folder."""
    held = bench.puzzles.get(puzzle)
    container = Container(bench.room)
    part = container.add()
    try:
        async for block in request.stream():
            await bench.read(partial(part.write, block))
        arguments = {"puzzle": held.file.to_json(), "body": str(container.path)}
        made = await bench.work(
            lambda seconds: made_file(bench, "pack_project", arguments, seconds),
            small=part.size <= SMALL and held.pixels <= FEW_PIXELS,
        )
    finally:
        part.close()
    return FileAnswer(made, "application/zip", "puzzle.jigsync.zip")


def csv_of(solution: Solution, step: Step) -> str:
    """One line for each fragment; rows, columns and groups count from 1.

    Ids start with a letter or digit, so no spreadsheet takes one for a formula.
    """
    buffer = io.StringIO()
    write = csv.writer(buffer, lineterminator="\r\n").writerow
    write(COLUMNS)
    for name, placed in solution.placement.items():
        sure = "" if placed.confidence is None else f"{placed.confidence:.4f}"
        flags = ("yes" if name in step.pinned else "no", "no" if name in step.excluded else "yes")
        write((name, *_place(placed), sure, *flags))
    return buffer.getvalue()


def _place(placed: Placed) -> tuple[object, ...]:
    """The columns that say where a fragment is: its centre in pixels, its cell and quarter turns where it has them."""
    if placed.pose is None:
        return ("",) * 7
    (x, y), pose = placed.pose.xy, placed.pose
    cell = ("", "") if placed.cell is None else (placed.cell[0] + 1, placed.cell[1] + 1)
    turns = "" if pose.turns is None else pose.turns
    return (f"{x:.2f}", f"{y:.2f}", f"{-pose.degrees % 360:g}", placed.component + 1, *cell, turns)


def _solution(found: Solution | None) -> Solution:
    if found is None:
        raise InputError("There is no solution yet: solve the puzzle first.")
    return found


def _as_file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
