"""Where worker processes come from: a process that has imported all they need, has no threads, and forks them.

So a new worker is there in some milliseconds, shares its libraries' memory with the others, and has none of the
server's sockets, locks and threads. (`multiprocessing` has such a server too; it runs the main program's file anew in
every child, which is not ours to run.)

    server -> nursery   {"start": limits} with the worker's end of a pipe, {"kill": pid}
    nursery -> server   {"ready": true} or {"failed": sentence} once, {"started": pid} for every start

It ends with the server, and takes its children along.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, Final, NoReturn

from jigsync.values.errors import JigsyncError
from jigsync.web.limits import Limits

PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from jigsync.web.nursery import tend; tend(int(sys.argv[2]))"
)
LONGEST: Final = 4096
"""Bytes of a message."""
PATIENCE: Final = 120.0
"""Seconds that importing everything may take."""


class Nursery:
    """The process that forks workers, as the server sees it; it is started when the first worker is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def start(self, limits: Limits) -> tuple[int, Connection]:
        """A new worker: its process id and our end of its pipe."""
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._lock:
                pid = self._ask(limits, theirs)
        except BaseException:
            ours.close()
            raise
        return pid, Connection(ours.detach())

    def kill(self, pid: int) -> None:
        """Ends a worker, if it is one of this nursery and has not ended."""
        with self._lock, suppress(OSError):
            if self._channel is not None:
                self._channel.send(json.dumps({"kill": pid}).encode())

    def close(self) -> None:
        """Ends it and all its workers."""
        with self._lock:
            self._forget()

    def _ask(self, limits: Limits, theirs: socket.socket) -> int:
        order = json.dumps({"start": asdict(limits)}).encode()
        for _ in range(2):
            channel = self._channel or self._begin()
            try:
                socket.send_fds(channel, [order], [theirs.fileno()])
                return int(json.loads(channel.recv(LONGEST))["started"])
            except (OSError, ValueError, KeyError):  # it has been ended; another one may do
                self._forget()
        raise JigsyncError("No process can be started that would work on this.")

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._channel = ours
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(sys.path), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        ours.settimeout(PATIENCE)
        try:
            said = json.loads(ours.recv(LONGEST))
        except (OSError, ValueError):
            said = {"failed": "it ended before it was ready"}
        if "ready" not in said:
            self._forget()
            raise JigsyncError(f"No process can be started that would work on this: {said.get('failed')}.")
        return ours

    def _forget(self) -> None:
        channel, process = self._channel, self._process
        self._channel = self._process = None
        if channel is not None:
            channel.close()
        if process is not None:
            try:
                process.wait(2.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@cache
def nursery() -> Nursery:
    """The one of this process."""
    made = Nursery()
    atexit.register(made.close)
    return made


# ---------------------------------------------------------------------------------------------- the process itself


def tend(handle: int) -> NoReturn:
    """Forks workers until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    channel = socket.socket(fileno=handle)
    try:
        from jigsync.web.worker import work
    except Exception as error:
        _tell(channel, {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
        os._exit(1)
    gc.freeze()  # what all workers share is not looked at again, which would copy it
    children: set[int] = set()

    def reap(*_: object) -> None:
        with suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                children.discard(pid)

    signal.signal(signal.SIGCHLD, reap)
    _tell(channel, {"ready": True})
    while True:
        order, handles = _next(channel)
        if "kill" in order and order["kill"] in children:
            os.kill(order["kill"], signal.SIGKILL)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                channel.close()
                _as_worker(work, handles[0], order["start"])
            children.add(pid)
            _tell(channel, {"started": pid})
        for received in handles:
            os.close(received)
        if not order:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)


def _as_worker(work: Any, handle: int, limits: dict[str, Any]) -> NoReturn:
    try:
        work(Connection(handle), Limits(**limits))
    finally:
        os._exit(1)


def _tell(channel: socket.socket, said: dict[str, Any]) -> None:
    with suppress(OSError):
        channel.send(json.dumps(said).encode())


def _next(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next order and the open files that come with it; an empty one when the server is gone."""
    try:
        text, handles, _, _ = socket.recv_fds(channel, LONGEST, 1)
    except OSError:
        return {}, []
    return (json.loads(text) if text else {}), list(handles)
