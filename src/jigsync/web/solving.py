"""Routes that solve: jobs with a stream of progress, candidates for a cell, and one request that does it all."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from jigsync.io.files import json_bytes
from jigsync.io.solution_file import solution_json
from jigsync.solvers import base as solvers
from jigsync.values.errors import InputError, OptionError
from jigsync.values.layout import Grid, check_cells
from jigsync.web.bench import Bench
from jigsync.web.forms import Files, Id, UploadRoute, small
from jigsync.web.jobs import FINISHED, Job
from jigsync.web.limits import STOPPING, Refusal
from jigsync.web.models import (
    CandidateModel,
    CellRequest,
    FitModel,
    FitsRequest,
    JobModel,
    Shown,
    SolutionFile,
    SolveOptions,
    TurnRequest,
    plain,
)
from jigsync.web.project import shown, solution_of
from jigsync.web.puzzles import take_upload
from jigsync.web.uploads import Kind

router = APIRouter(tags=["solving"], route_class=UploadRoute)

FEW = 150
"""Up to so many fragments are measured in a moment."""
LOOK = 0.08
"""Seconds between two looks at a job."""
HEARTBEAT = 10.0
"""Seconds after which a silent stream says that it is still there."""


@router.post("/api/puzzles/{puzzle}/jobs", status_code=202)
async def start_job(bench: Bench, puzzle: Id, options: SolveOptions) -> JobModel:
    """Starts solving a puzzle. Follow `/api/jobs/{job}/events`, or ask for `/api/jobs/{job}`."""
    held = bench.puzzles.get(puzzle)
    _check(options, held.ids)
    job = await bench.read(lambda: bench.jobs.start(held, options))
    return job.model()


def _check(options: SolveOptions, ids: tuple[str, ...]) -> None:
    solvers.get(options.solver)
    if options.grid is not None:
        check_cells(Grid.parse(options.grid), len(ids))
    if options.pins and options.places:
        raise OptionError("A solve pins fragments in cells or at poses, not both.")
    if strangers := {*options.pins, *options.places, *options.exclude} - set(ids):
        raise OptionError(f"The fragment '{min(strangers)}' is not in the puzzle.")


@router.get("/api/jobs/{job}")
async def get_job(bench: Bench, job: Id) -> JobModel:
    """Where a job is."""
    return bench.jobs.get(job).model()


@router.delete("/api/jobs/{job}", status_code=202)
async def cancel_job(bench: Bench, job: Id) -> JobModel:
    """Cancels a job; the best placement so far stays."""
    found = bench.jobs.get(job)
    bench.jobs.cancel(found)
    return found.model()


@router.get(
    "/api/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "a job, whenever it changes"}},
)
async def job_events(bench: Bench, job: Id) -> StreamingResponse:
    """A job as server-sent events: `progress` whenever it changes, `end` once, then the stream closes."""
    return StreamingResponse(_events(bench.jobs.get(job), lambda: bench.jobs.closing), media_type="text/event-stream")


async def _events(job: Job, closing: Callable[[], bool]) -> AsyncIterator[str]:
    seen, quiet, drawn = -1, 0.0, None
    while not closing():  # a browser asks again, and finds the server that was started anew
        job.seen = time.monotonic()
        version = job.version
        if version != seen:
            model = job.model()
            ended = model.state in FINISHED  # of what is sent: the job itself may end meanwhile
            # The placement is the bulk of an event: it is sent when it changes.
            same = model.shown is drawn and not ended
            seen, quiet, drawn = version, 0.0, model.shown
            value = model.model_dump(mode="json", exclude={"shown"} if same else None)
            yield f"event: {'end' if ended else 'progress'}\ndata: {json.dumps(value)}\n\n"
            if ended:
                return
        elif quiet >= HEARTBEAT:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK)
        quiet += LOOK


@router.post("/api/puzzles/{puzzle}/turned")
async def turned(bench: Bench, puzzle: Id, request: TurnRequest) -> Shown:
    """The same assembly after a further global turn."""
    held = bench.puzzles.get(puzzle)

    def turn() -> Shown | None:
        opened = held.puzzle
        return shown(solution_of(request.solution, opened).turned(request.turns), opened)

    found = await bench.read(turn)
    if found is None:
        raise InputError("A solution that failed cannot be turned.")
    return found


@router.post("/api/puzzles/{puzzle}/candidates")
async def cell_candidates(bench: Bench, puzzle: Id, request: CellRequest) -> list[CandidateModel]:
    """The fragments that fit a cell best, given its neighbours."""
    held = bench.puzzles.get(puzzle)
    arguments = {
        "name": held.id,
        "puzzle": held.file.to_json(),
        "solution": solution_json(request.solution),
        "row": request.row,
        "col": request.col,
        "limit": request.limit,
    }
    told = await bench.work(
        lambda seconds: bench.crew.do("candidates", arguments, seconds=seconds, holds=held.id),
        small=len(held.ids) <= FEW,
    )
    return [CandidateModel(**candidate) for candidate in told["candidates"]]


@router.post("/api/puzzles/{puzzle}/fits")
async def fragment_fits(bench: Bench, puzzle: Id, request: FitsRequest) -> list[FitModel]:
    """The likeliest places of a fragment beside those that are placed."""
    held = bench.puzzles.get(puzzle)
    if request.fragment not in held.ids:
        raise Refusal(404, f"There is no fragment '{request.fragment}' in this puzzle.")
    arguments = {"name": held.id, "puzzle": held.file.to_json(), **plain(request)}
    told = await bench.work(
        lambda seconds: bench.crew.do("fits", arguments, seconds=seconds, holds=held.id),
        small=len(held.ids) <= FEW,
    )
    return [FitModel(**fit) for fit in told["fits"]]


@router.post("/solve", response_model=SolutionFile)
async def solve(
    bench: Bench,
    request: Request,
    files: Files,
    kind: Annotated[Kind, Form()] = "auto",
    options: Annotated[str, Form(description="a SolveOptions object as JSON", max_length=100_000)] = "{}",
) -> Response:
    """Fragments in, solution.json out, in one request: for scripts.

    `curl -F files=@fragments.zip http://127.0.0.1:8765/solve`. Hanging up cancels the solve.
    """
    wanted = _options(options)
    bench.jobs.check_room()  # before anything is decoded
    held = await bench.work(lambda seconds: take_upload(bench, files, kind, seconds, keep=False), small=small(files))
    job = None
    try:
        _check(wanted, held.ids)
        job = bench.jobs.start(held, wanted, keep=False)
        while not job.finished and not bench.jobs.closing:
            job.seen = time.monotonic()
            if await request.is_disconnected():
                bench.jobs.cancel(job)
                break
            await asyncio.sleep(LOOK)
    finally:
        bench.puzzles.drop(held.id)
        if job is not None and job.finished:
            bench.jobs.drop(job)
    if bench.jobs.closing:
        raise Refusal(503, STOPPING, retry_after=5)
    if job.shown is None or not job.finished:
        raise Refusal(422, job.reason or "It was cancelled.")
    return Response(json_bytes(solution_json(job.shown.solution)), media_type="application/json")


def _options(text: str) -> SolveOptions:
    try:
        return SolveOptions.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "options"
        raise OptionError(f"The '{place[:100]}' of a solve is not usable: {first['msg']}.") from None
