"""The application: routes, errors as one sentence, the page's files, and the guard around all of it."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import jigsync
from jigsync.io.files import reason_of
from jigsync.values.errors import JigsyncError
from jigsync.web import outputs, photographs, puzzles, sharing, solving
from jigsync.web.bench import Workbench
from jigsync.web.guard import LATER, Guard
from jigsync.web.kept import Kept
from jigsync.web.limits import Limits, Refusal
from jigsync.web.models import Problem

log = logging.getLogger("jigsync.web")

SHORT: Final = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""What the system says when it has not enough of something for now."""
TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Problem, "description": "The request cannot be read."},
    403: {"model": Problem, "description": "The request comes from another site, or under another name."},
    404: {"model": Problem, "description": "There is no such thing (any more)."},
    408: {"model": Problem, "description": "The client fell silent."},
    409: {"model": Problem, "description": "Another window was faster."},
    413: {"model": Problem, "description": "Too large: bytes, pixels, files or fragments."},
    422: {"model": Problem, "description": "The request was read but cannot be done."},
    429: {"model": Problem, "description": "Too many puzzles are being solved."},
    503: {"model": Problem, "description": "The workbench is full or busy."},
}


def create_app(limits: Limits | None = None, names: Iterable[str] = (), kept: Kept | None = None) -> FastAPI:
    """The whole server as one ASGI application.

    Args:
        limits: what it takes; the defaults when None.
        names: host names it answers to, besides localhost and addresses.
        kept: where it keeps puzzles and jobs; without, they are gone when it stops.
    """
    taken = limits or Limits()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.bench = await asyncio.to_thread(Workbench, taken, kept)
        app.state.bench.warm_up()
        try:
            yield
        finally:
            await asyncio.to_thread(app.state.bench.close)

    app = FastAPI(
        title="JigSync workbench",
        version=jigsync.__version__,
        description="Puts fragments of a picture back together. The page at / uses nothing but this interface.",
        docs_url=None,  # its assets would come from another host
        redoc_url=None,
        lifespan=lifespan,
        responses=PROBLEMS,
    )
    for part in (puzzles, photographs, sharing, solving, outputs):
        app.include_router(part.router)
    _add_errors(app)
    _add_page(app)
    app.add_middleware(Guard, limits=taken, names=tuple(names))
    return app


def _add_errors(app: FastAPI) -> None:
    def problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"detail": sentence}, status, headers)

    @app.exception_handler(JigsyncError)
    async def refused_input(request: Request, error: JigsyncError) -> JSONResponse:
        if isinstance(error.__cause__, OSError):  # a file of ours could not be written
            return refused_by_system(error.__cause__)
        return problem(422, str(error))

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        later = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return problem(error.status, error.sentence, later)

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["loc"][-1] == "grid" and first["type"] == "string_pattern_mismatch":
            return problem(422, "A 'grid' is rows x columns, such as 4x6, or one number for both.")
        place = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
        return problem(422, f"The '{place[:100]}' of the request is not usable: {first['msg']}.")

    def refused_by_system(error: OSError) -> JSONResponse:
        """Uploads go through the disk: when that is full, the client may come back."""
        if error.errno in SHORT:
            return problem(503, f"The server cannot take it now: {reason_of(error)}.", LATER)
        log.error("A request failed.", exc_info=error)
        return problem(500, "Something went wrong in the server; its terminal shows what.")

    @app.exception_handler(OSError)
    async def system(request: Request, error: OSError) -> JSONResponse:
        return refused_by_system(error)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, OSError):  # while the form was read, which FastAPI calls a bad request
            return refused_by_system(error.__cause__)
        headers = dict(error.headers) if error.headers else None
        return problem(error.status_code, str(error.detail), headers)


def _add_page(app: FastAPI) -> None:
    """The page's files are read once: no path of a request ever reaches the file system."""
    folder = files("jigsync.web").joinpath("static")
    page = {
        item.name: (item.read_bytes(), TYPES[suffix])
        for item in folder.iterdir()
        if (suffix := "." + item.name.rpartition(".")[2]) in TYPES
    }

    def show(name: str) -> Response:
        if name not in page:
            raise Refusal(404, "There is no such page.")
        content, kind = page[name]
        return Response(content, media_type=kind)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return show("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return show(name)
