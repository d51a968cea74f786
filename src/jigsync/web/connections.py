"""Connections: how many there may be, how long one may take to say what it wants, and to take what it asked for.

    waiting   nothing asked yet, half a head sent, or the rest of a body that was answered already: `header_seconds`
    asking    a request is being answered; its body's pace is the guard's matter, its answer's is ours: every piece
              that fills the line must be taken within `silent_seconds`
    closing   `header_seconds` to take what is on the way

When there are as many as there may be, the one that has waited longest makes room for the next: nobody can keep others
out by opening connections.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from jigsync.web.limits import Limits

LOOK: Final = 0.5
"""Seconds between two looks at all connections."""


class Connection(H11Protocol):
    """One connection, with an eye on the clock."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self._since = time.monotonic()
        self._stuck: float | None = None
        self._closing: float | None = None

    @property
    def asking(self) -> bool:
        """Is a request being answered?"""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a connection in, in place of another one where there are too many."""
        super().connection_made(transport)
        others = [other for other in self.connections if other is not self and isinstance(other, Connection)]
        if not others:
            self.loop.call_later(LOOK, look, self.loop, self.connections)
        open_ones = [other for other in others if not other.transport.is_closing()]
        if len(open_ones) >= self.limits.connections:
            waiting = [other for other in open_ones if not other.asking]
            min(waiting, key=lambda other: other._since, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Counts the time from the first byte of a head."""
        if not self.asking and not self._half():
            self._since = time.monotonic()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Counts the time from the end of an answer."""
        self._since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not take what it asked for as fast as it comes."""
        self._stuck = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It has taken it."""
        self._stuck = None
        super().resume_writing()

    def _half(self) -> bool:
        """Has some of a request arrived that nobody is answering?"""
        return self.conn.their_state is not h11.IDLE or bool(self.conn.trailing_data[0])

    def check(self, now: float) -> None:
        """Ends the connection when its time is over."""
        limits = self.limits
        if self.transport.is_closing():
            self._closing = self._closing or now
            over = now - self._closing > limits.header_seconds
        elif self._stuck is not None:
            over = now - self._stuck > limits.silent_seconds
        else:
            # Between two requests uvicorn waits as long as it is told to.
            waits = not self.asking and (self.cycle is None or self._half())
            over = waits and now - self._since > limits.header_seconds
        if over:
            self.transport.abort()


def look(loop: asyncio.AbstractEventLoop, connections: set[Any]) -> None:
    """Looks at all connections, now and for as long as there are any."""
    now = time.monotonic()
    for connection in list(connections):
        connection.check(now)
    if connections:
        loop.call_later(LOOK, look, loop, connections)
