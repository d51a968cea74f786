"""Routes that give results out: pictures, solution.json, a table, a project file."""

from __future__ import annotations

import csv
import io

import numpy as np
from fastapi import APIRouter, Response

from jigsync.io.files import json_bytes
from jigsync.io.images import png_bytes
from jigsync.io.solution_file import solution_json
from jigsync.render.assemble import assemble
from jigsync.solution import Solution
from jigsync.values.errors import InputError
from jigsync.web.bench import Bench
from jigsync.web.models import PictureRequest, ProjectModel, Step, TableRequest
from jigsync.web.project import check_step, project_bytes, solution_of
from jigsync.web.puzzles import Id

router = APIRouter(tags=["results"])

COLUMNS = ("fragment", "row", "column", "turns", "degrees_clockwise", "confidence", "pinned", "belongs")


@router.post(
    "/api/puzzles/{puzzle}/picture",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "the assembled picture"}},
)
async def picture(bench: Bench, puzzle: Id, request: PictureRequest) -> Response:
    """The assembled picture, with or without gaps between the cells."""
    held = bench.puzzles.get(puzzle)
    solution = solution_of(request.solution, held.puzzle)
    if solution.grid is not None and solution.grid.size > 4 * bench.limits.fragments:
        raise InputError(f"The grid must have at most {4 * bench.limits.fragments} cells. Got {solution.grid}.")

    def task() -> bytes:
        drawn = assemble(held.puzzle, solution, gaps=request.gaps)
        if request.longest is not None:
            drawn.thumbnail((request.longest, request.longest))
        return png_bytes(np.asarray(drawn))

    return Response(await bench.work(task), media_type="image/png", headers=_as_file("assembled.png"))


@router.post(
    "/api/puzzles/{puzzle}/solution",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}, "description": "solution.json"}},
)
async def solution_file(bench: Bench, puzzle: Id, request: TableRequest) -> Response:
    """solution.json of a state, checked."""
    held = bench.puzzles.get(puzzle)
    solution = _solution(check_step(request.step, held.puzzle))
    return Response(
        json_bytes(solution_json(solution)), media_type="application/json", headers=_as_file("solution.json")
    )


@router.post(
    "/api/puzzles/{puzzle}/table",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}, "description": "one row a fragment; rows and columns count from 1"}},
)
async def table(bench: Bench, puzzle: Id, request: TableRequest) -> Response:
    """A state as a table for spreadsheets."""
    held = bench.puzzles.get(puzzle)
    solution = _solution(check_step(request.step, held.puzzle))
    return Response(
        csv_of(solution, request.step), media_type="text/csv; charset=utf-8", headers=_as_file("fragments.csv")
    )


@router.post(
    "/api/puzzles/{puzzle}/project",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "a project file"}},
)
async def project(bench: Bench, puzzle: Id, request: ProjectModel) -> Response:
    """Everything in one file that opens again in the same state; unpacked, it is a puzzle folder."""
    held = bench.puzzles.get(puzzle)
    if request.at >= len(request.steps):
        raise InputError(f"The project shows step {request.at} of {len(request.steps)}.")

    def task() -> bytes:
        for step in request.steps:
            check_step(step, held.puzzle)
        return project_bytes(held.puzzle, request)

    return Response(await bench.work(task), media_type="application/zip", headers=_as_file("puzzle.jigsync.zip"))


def csv_of(solution: Solution, step: Step) -> str:
    """One line a fragment. Ids start with a letter or digit, so no spreadsheet takes one for a formula."""
    buffer = io.StringIO()
    write = csv.writer(buffer, lineterminator="\r\n").writerow
    write(COLUMNS)
    for name, placed in solution.placement.items():
        cell = ("", "") if placed.row is None or placed.col is None else (placed.row + 1, placed.col + 1)
        sure = "" if placed.confidence is None else f"{placed.confidence:.4f}"
        flags = ("yes" if name in step.pinned else "no", "no" if name in step.excluded else "yes")
        write((name, *cell, placed.turns, -90 * placed.turns % 360, sure, *flags))
    return buffer.getvalue()


def _solution(found: Solution | None) -> Solution:
    if found is None:
        raise InputError("There is no solution yet: solve the puzzle first.")
    return found


def _as_file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
