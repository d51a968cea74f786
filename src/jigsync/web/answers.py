"""Answers that a worker leaves in a file: sent block by block, as fast as the client takes them, and removed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, Final

from fastapi.responses import StreamingResponse

from jigsync.web.bench import Workbench
from jigsync.web.tasks import RESULT_FILE

BLOCK: Final = 1 << 16


def made_file(bench: Workbench, task: str, arguments: dict[str, Any], seconds: float) -> BinaryIO:
    """The file that a task leaves as its result, open and without a name; for `Workbench.work`."""
    with bench.crew.folder() as folder:
        bench.crew.do(task, {**arguments, "folder": str(folder)}, seconds=seconds)
        return open(folder / RESULT_FILE, "rb")


class FileAnswer(StreamingResponse):
    """A file's contents; it is closed when they have been sent, or when nobody wants them any more."""

    def __init__(self, file: BinaryIO, kind: str, name: str = "") -> None:
        headers = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
        if name:
            headers["Content-Disposition"] = f'attachment; filename="{name}"'
        super().__init__(_blocks(file), media_type=kind, headers=headers)


async def _blocks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block
