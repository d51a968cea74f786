"""The HTTP server around the application: its connections, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from functools import partial
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from jigsync.web.connections import Connection
from jigsync.web.limits import Limits

BACKLOG: Final = 64
"""Connections that wait to be taken in; as many are taken in at once."""
GRACE: Final = 2
"""Seconds that requests under way get once there are no workers any more."""
LONGEST_END: Final = 4.5
"""Seconds after which a server that was told to stop ends, whatever holds it up."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the work first, so that nobody waits for it."""
        await asyncio.to_thread(self._app.state.bench.stop)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called for SIGINT and SIGTERM."""
        if sig == signal.SIGTERM:
            last = threading.Timer(LONGEST_END, os._exit, [128 + sig])
            last.daemon = True
            last.start()
        super().handle_exit(sig, frame)


def make_server(app: FastAPI, limits: Limits, **options: Any) -> uvicorn.Server:
    """A server of the application; `options` are uvicorn's."""
    http: Any = partial(Connection, limits=limits)
    config = uvicorn.Config(
        app,
        http=http,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=GRACE,
        server_header=False,
        h11_max_incomplete_event_size=limits.header_bytes,
        backlog=BACKLOG,
        **options,
    )
    return _Server(config, app)
