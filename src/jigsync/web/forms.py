"""The form of an upload: all its files in one file of the private folder, so that a request takes one open file and no
memory, however many parts it has."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import Path as PathParam
from fastapi import Request, Response, UploadFile
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.datastructures import FormData
from starlette.datastructures import UploadFile as PartOfForm
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

Id = Annotated[str, PathParam(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Files = Annotated[list[UploadFile], Field(description="pictures, a zip file, a project file, or one scan")]

SMALL = 4_000_000
"""Bytes of an upload that is expected to be worked on in a moment."""


class Container:
    """The file that holds what arrives, until every part of it is closed."""

    def __init__(self, room: Path) -> None:
        self.path = room / f"upload-{secrets.token_hex(8)}"
        self._parts = 0
        self._file: BinaryIO | None = None
        self.size = 0

    def add(self) -> Part:
        """A new part; it is written when those before it are whole."""
        if self._file is None:
            self._file = open(self.path, "xb", buffering=0)  # noqa: SIM115 - open as long as its parts
        self._parts += 1
        return Part(self)

    def write(self, data: bytes) -> None:
        """At the end."""
        assert self._file is not None
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.size += len(data)

    def let_go(self) -> None:
        """One part less."""
        self._parts -= 1
        if self._parts == 0 and self._file is not None:
            self._file.close()
            os.unlink(self.path)


class Part:
    """One file of an upload, as starlette writes it; read by a worker, from `container.path`.

    Attributes:
        start, size: where it lies.
    """

    def __init__(self, container: Container) -> None:
        self.container, self.start, self.size = container, 0, 0
        self._open = True

    def write(self, data: bytes) -> None:
        """More of it."""
        if not self.size:
            self.start = self.container.size
        self.container.write(data)
        self.size += len(data)

    def seek(self, offset: int) -> None:
        """There is nothing to do: nobody reads it through this object."""

    def close(self) -> None:
        """Lets the container go with its last part."""
        if self._open:
            self._open = False
            self.container.let_go()


class _Parser(MultiPartParser):
    """Puts files into a container instead of a temporary file each."""

    container: Container

    def on_headers_finished(self) -> None:
        """Called by the parser before the first byte of a part."""
        super().on_headers_finished()
        usual = self._current_part.file
        if usual is not None:
            usual.file.close()
            part: Any = self.container.add()
            self._files_to_close_on_error.append(part)
            self._current_part.file = PartOfForm(part, size=0, filename=usual.filename, headers=usual.headers)


class _Upload(Request):
    """A request whose form may have as many files as the limits say."""

    async def _get_form(self, **_: Any) -> FormData:
        """As starlette's, with a parser of our own."""
        if self._form is None:
            if not self.headers.get("content-type", "").startswith("multipart/form-data"):
                self._form = FormData()
                return self._form
            bench = self.app.state.bench
            parser = _Parser(self.headers, self.stream(), max_files=bench.limits.files + 1, max_fields=100)
            parser.container = Container(bench.room)
            try:
                self._form = await parser.parse()
            except MultiPartException as error:
                raise HTTPException(400, error.message) from error
        return self._form


class UploadRoute(APIRoute):
    """A route that takes uploads."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Hands `_Upload` to the usual handler."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await usual(_Upload(request.scope, request.receive))

        return handler


def upload_of(files: list[UploadFile]) -> dict[str, Any]:
    """Where the files of a form lie, as a task takes them."""
    parts: list[Any] = [file.file for file in files]
    listed = [(file.filename or "fragments", part.start, part.size) for file, part in zip(files, parts, strict=True)]
    return {"upload": str(parts[0].container.path), "files": listed}


def small(files: list[UploadFile]) -> bool:
    """Does an upload look as if it were worked on in a moment?"""
    return sum(file.size or 0 for file in files) <= SMALL
