"""A polite HTTP reader: one request at a time with a pause between them, retries with backoff, host and size limits."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from typing import IO, Final
from urllib.parse import urlsplit

from jigsync import __version__
from jigsync.io.files import reason_of
from jigsync.values.errors import InputError, OptionError

RETRIED: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
FINAL: Final = frozenset((404, 410))
MAX_WAIT: Final = 60.0
"""Longest wait before a retry, in seconds, whatever the server asks for."""


class Unreachable(InputError):
    """The server did not answer properly; another day it may."""


class Refused(InputError):
    """The answer is final: not there, too large, or on a host that is not asked."""


@dataclass
class Client:
    """Reads from a fixed set of hosts.

    Attributes:
        hosts: "host" or "host:port" that may be asked, redirects included.
        pause: seconds between the starts of two requests.
        attempts: requests before giving up on one address.
        backoff: seconds before the first retry; doubled for each further one.
        timeout: seconds without an answer.
    """

    hosts: frozenset[str]
    pause: float = 0.5
    attempts: int = 5
    backoff: float = 1.0
    timeout: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    _next: float = field(default=0.0, init=False)

    def get(self, url: str, limit: int) -> bytes:
        """The body, at most `limit` bytes."""
        self.check(url)
        opener = urllib.request.build_opener(_Redirects(self.check))
        request = urllib.request.Request(url, headers={"User-Agent": f"jigsync/{__version__}"})
        failure, wait = "", 0.0
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(min(MAX_WAIT, wait))
            self._pause()
            wait = self.backoff * 2.0**attempt
            try:
                with opener.open(request, timeout=self.timeout) as response:
                    data: bytes = response.read(limit + 1)
                    if len(data) > limit:
                        raise Refused(f"The answer of '{url}' must have at most {limit} bytes. It has more.")
                    if response.length:
                        raise http.client.IncompleteRead(data, response.length)
                return data
            except urllib.error.HTTPError as error:
                error.close()
                failure = f"status {error.code}"
                if error.code not in RETRIED:
                    kind = Refused if error.code in FINAL else Unreachable
                    raise kind(f"The address '{url}' answers with {failure}.") from None
                wait = max(wait, _retry_after(error.headers))
            except (OSError, http.client.HTTPException) as error:
                failure = reason_of(getattr(error, "reason", None) or error)
        raise Unreachable(f"The address '{url}' cannot be read after {self.attempts} attempts: {failure}.")

    def check(self, url: str) -> None:
        """Raises Refused for an address outside the allowed hosts."""
        try:
            parts = urlsplit(url)
            allowed = parts.scheme in ("http", "https") and parts.netloc in self.hosts
        except ValueError:
            allowed = False
        if not allowed:
            raise Refused(f"The address '{url}' must be on {' or '.join(sorted(self.hosts))}.")

    def _pause(self) -> None:
        now = time.monotonic()
        if now < self._next:
            self.sleep(self._next - now)
        self._next = max(now, self._next) + self.pause


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        self._check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _retry_after(headers: Message) -> float:
    """Seconds the server asks to wait; a date instead of a number counts as nothing said."""
    text = str(headers.get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdigit() else 0.0


def host_of(url: str) -> str:
    """The "host:port" of an http(s) address; OptionError for anything else."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts.netloc
    except ValueError:
        pass
    raise OptionError(f"The base address must be a web address such as https://host/path. Got '{url}' instead.")
