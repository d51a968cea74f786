"""Runs the workbench until Ctrl-C."""

from __future__ import annotations

import ipaddress
import logging
import resource
import socket
import threading
import webbrowser
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from jigsync.io.files import reason_of
from jigsync.io.terminal import say_line, to_stderr
from jigsync.values.errors import InputError, MissingExtraError
from jigsync.web.limits import Limits

LOGGERS: Final = ("jigsync.web", "uvicorn.error", "asyncio")
MOST_RECORDS: Final = 100
"""Records that each logger prints in a minute."""
FILES: Final = 2048
"""Open files that the server asks the system for."""
SPARE_FILES: Final = 320
"""Files for everything but connections: uploads on their way, workers' pipes, mapped pixels, answers."""


def run(
    host: str,
    port: int,
    limits: Limits,
    *,
    open_page: bool = False,
    allowed: Iterable[str] = (),
    keep: Path | None = None,
) -> None:
    """Serves the workbench at host:port.

    Args:
        host: an address or a name of this machine.
        port: 0 takes any free one.
        open_page: open the page in the browser when it is there.
        allowed: names, besides localhost and addresses, by which browsers may call it.
        keep: a folder for puzzles and jobs, which are there again when it is started anew; None keeps nothing.
    """
    for package in ("fastapi", "uvicorn", "python_multipart"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtraError("The workbench", package.replace("_", "-"), "web") from None
    from jigsync.web.app import create_app
    from jigsync.web.kept import Kept
    from jigsync.web.server import make_server

    kept = None if keep is None else Kept(keep)
    listening = _listen(host, port)
    address = _address(host, listening.getsockname()[1])
    names = [*allowed] if _is_address(host) else [*allowed, host]
    for name in LOGGERS:
        logging.getLogger(name).handlers = [to_stderr(most=MOST_RECORDS)]
        logging.getLogger(name).propagate = False
    limits = _for_this_process(limits)
    server = make_server(create_app(limits, names, kept), limits)
    say_line(f"The workbench is at {address} - press Ctrl-C to stop it.", err=True)
    if not _is_loopback(host):
        say_line("Everyone who reaches this machine over the network can use it: there is no password.", err=True)
    if open_page:
        threading.Timer(0.8, webbrowser.open, [address]).start()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
        if kept is not None:
            kept.close()


def _for_this_process(limits: Limits) -> Limits:
    """As many connections as there can be, with files to spare for everything else."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES:
        soft = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return replace(limits, connections=max(1, min(limits.connections, soft - SPARE_FILES)))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise InputError(
            f"The workbench cannot listen on {host}:{port}: {reason_of(error)}. Choose another --port or --host."
        ) from None
    return listening


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host == "localhost"


def _address(host: str, port: int) -> str:
    """Where a browser on this machine finds it."""
    if _is_address(host) and (given := ipaddress.ip_address(host)).is_unspecified:
        host = "127.0.0.1" if given.version == 4 else "::1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
