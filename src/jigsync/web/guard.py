"""What stands before every request: who may ask, how much may be sent, and the headers of every answer.

A page of another site must not reach this server through the visitor's browser:

    Host            must be an address or a name that is ours: a site that points its own name here (DNS rebinding)
                    sends its own name
    Origin          must be ours where a browser sends it
    Sec-Fetch-Site  must not say that another site asked; only the page itself may be linked to from elsewhere

Bodies are counted while they arrive. A client that falls silent in the middle of one, or dawdles, is let go, and
neither bodies nor streams of progress can take all the requests that may be open: reading always gets through.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jigsync.web.limits import STOPPING, Limits, plenty

SECURITY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

LATER: Final = {"Retry-After": "5"}
LOOPBACK_NAMES: Final = ("localhost",)


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, limits: Limits, names: Iterable[str] = ()) -> None:
        self.app = app
        self.limits = limits
        self.names = {name.lower().rstrip(".") for name in (*LOOPBACK_NAMES, *names)}
        self.arriving = 0
        self.open = 0
        self.bodies = 0
        self.watchers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = _Answer(send, scope["path"])
        watches = scope["path"].endswith("/events")
        refused = (
            self._long(scope)
            or self._stranger(headers, scope["path"])
            or self._too_large(headers, scope["path"])
            or self._too_many(_has_body(headers), watches)
        )
        if refused is not None:
            await refused(scope, receive, answer.send)
            return
        body = _Body(self, receive, self._most(headers, scope["path"]), _has_body(headers))
        self.open += 1
        self.watchers += watches
        try:
            await self.app(scope, body.receive, answer.send)
        except asyncio.CancelledError:  # the server is being stopped, and has waited long enough for this request
            if not answer.begun:
                await _problem(503, STOPPING, LATER)(scope, receive, answer.send)
        finally:
            self.open -= 1
            self.watchers -= watches
            body.over()

    def _long(self, scope: Scope) -> JSONResponse | None:
        size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(k) + len(v) for k, v in scope["headers"])
        if size > self.limits.header_bytes:
            return _problem(431, f"A request's headers must have at most {self.limits.header_bytes:,} bytes.")
        return None

    def _stranger(self, headers: Headers, path: str) -> JSONResponse | None:
        host = headers.get("host", "")
        if not self._ours(host):
            return _problem(
                403, "This server answers to localhost and to addresses only: start it with --allow-host NAME for more."
            )
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return _problem(403, "Requests from other sites are refused.")
        site = headers.get("sec-fetch-site", "none")
        linked = path == "/" and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not linked:
            return _problem(403, "Requests from other sites are refused.")
        return None

    def _ours(self, host: str) -> bool:
        """An IP address (no name, so nobody can point it elsewhere) or a known name, with or without a port."""
        if host.startswith("["):
            name, _, port = host[1:].partition("]")
            port = port.removeprefix(":")
        else:
            name, _, port = host.partition(":")
        if port and not port.isdigit():
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower().rstrip(".") in self.names
        return True

    def _most(self, headers: Headers, path: str) -> int:
        """Bytes that the body may have."""
        if headers.get("content-type", "").startswith("multipart/"):
            return self.limits.upload_bytes
        if path.endswith("/project"):
            return min(self.limits.project_bytes, self.limits.upload_bytes)
        return self.limits.solution_bytes

    def _too_large(self, headers: Headers, path: str) -> JSONResponse | None:
        length = headers.get("content-length", "0")
        most = self._most(headers, path)
        if not length.isdigit() or int(length) > most:
            return _problem(413, _too_large(most))
        return None

    def _too_many(self, has_body: bool, watches: bool) -> JSONResponse | None:
        limits = self.limits
        if self.open >= limits.open_requests:
            return _problem(503, f"{self.open} requests are open: try again in a moment.", LATER)
        if has_body and self.bodies >= limits.arriving_requests:
            return _problem(503, f"{self.bodies} requests are being sent: try again in a moment.", LATER)
        if watches and self.watchers >= limits.watchers:
            return _problem(503, f"{self.watchers} streams of progress are open: try again in a moment.", LATER)
        return None


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


class _Body:
    """A request's body, counted while it arrives."""

    def __init__(self, guard: Guard, receive: Receive, most: int, has_body: bool) -> None:
        self.guard, self.most, self.got = guard, most, 0
        self._receive = receive
        self._whole = False
        self._arrives = has_body
        self._begun = time.monotonic()
        guard.bodies += has_body

    async def receive(self) -> Message:
        """The next message of the body; HTTPException when there is too much of it, or too little for too long."""
        if self._whole:  # only the end of the connection is left to come, and that may take its time
            return await self._receive()
        limits = self.guard.limits
        # A body that is sent byte by byte ends like one that is not sent at all.
        late = self._begun + limits.silent_seconds + self.got / limits.body_rate - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), min(max(0.0, late), limits.silent_seconds))
        except TimeoutError:
            slow = f"A request must be sent at {limits.body_rate:,.0f} bytes per second at least."
            silent = f"Nothing was sent for {limits.silent_seconds:g} s."
            raise HTTPException(408, silent if late > limits.silent_seconds or not self.got else slow) from None
        size = len(message.get("body", b""))
        self.got += size
        self.guard.arriving += size
        self._whole = not message.get("more_body", False)
        if self._whole:
            self._arrived()
        if self.got > self.most:
            raise HTTPException(413, _too_large(self.most))
        if self.guard.arriving > limits.arriving_bytes:
            raise HTTPException(503, "Too much is being uploaded at the same time: try again in a moment.", LATER)
        return message

    def over(self) -> None:
        """The request has been answered."""
        self._arrived()
        self.guard.arriving -= self.got

    def _arrived(self) -> None:
        self.guard.bodies -= self._arrives
        self._arrives = False


def _too_large(most: int) -> str:
    return f"A request must have at most {plenty(most)} bytes: this one has more."


def _problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": sentence}, status, headers)


class _Answer:
    """An answer, with the headers that all of them have.

    Attributes:
        begun: has anything been sent?
    """

    def __init__(self, send: Send, path: str) -> None:
        self.begun = False
        self._send, self._path = send, path

    async def send(self, message: Message) -> None:
        """Sends a part of it."""
        self.begun = True
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store" if self._path.startswith(("/api", "/solve")) else "no-cache")
        await self._send(message)
