"""A worker process: it does the tasks of `jigsync.web.tasks` one after another, as the server asks over a pipe.

Messages are JSON both ways; pixels go through files in the server's private folder.

    server -> worker   {"task": name, "arguments": {...}}, and while it works {"stop": true}
    worker -> server   {"step": {...}} now and then, then once {"done": {...}} or {"failed": {...}}

The process cannot take more memory than `Limits.worker_bytes`, says nothing on any terminal, and ends when the server
is gone, whatever it is doing.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import resource
import signal
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final

from jigsync.values.errors import JigsyncError, is_of_memory
from jigsync.web.limits import Limits, Refusal
from jigsync.web.tasks import TASKS, Bench

OBJECTS: Final = 200_000
"""New objects after which Python looks for what nobody needs: a large JSON file makes millions that all are needed."""
LIKELY_KILLED: Final = 500
"""How much rather than others the kernel kills a worker when the machine is out of memory."""
LONGEST_TRACE: Final = 4000


def work(wire: Connection, limits: Limits) -> None:
    """Does what is asked for until the server closes its end; the main function of a worker process."""
    _settle(limits)
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(wire, asked, stop), daemon=True).start()
    bench = Bench(limits, lambda step: _say(wire, {"step": step}), stop.is_set)
    while True:
        order = asked.get()
        try:
            done = TASKS[order["task"]](bench, **order["arguments"])
            said: dict[str, Any] = {"done": done, "holds": bench.holds, "ready": bench.ready}
        except Exception as error:
            said = {"failed": _failure(error)}
        _say(wire, said)
        # What a library keeps after it ran out of memory, or after it met a defect, is nothing to go on with.
        if said.get("failed", {}).get("kind") in ("memory", "defect") or not bench.rests():
            os._exit(0)


def _settle(limits: Limits) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    os.umask(0o077)
    gc.set_threshold(OBJECTS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(LIKELY_KILLED))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limits.worker_bytes, limits.worker_bytes))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _listen(wire: Connection, asked: queue.SimpleQueue[dict[str, Any]], stop: threading.Event) -> None:
    """Takes orders, also while another one is being worked on."""
    try:
        while True:
            order = json.loads(wire.recv_bytes())
            if "stop" in order:
                stop.set()
            else:
                stop.clear()  # what stopped the task before this one comes too late
                asked.put(order)
    finally:
        os._exit(0)


def _say(wire: Connection, said: dict[str, Any]) -> None:
    try:
        wire.send_bytes(json.dumps(said).encode())
    except BaseException:  # the server is gone, or there is no memory left to tell it anything
        os._exit(1)


def _failure(error: Exception) -> dict[str, Any]:
    """What the server makes its answer of."""
    if isinstance(error, Refusal):
        return {
            "kind": "refusal",
            "status": error.status,
            "sentence": error.sentence,
            "retry_after": error.retry_after,
        }
    if is_of_memory(error):
        return {"kind": "memory"}
    system = error.__cause__ if isinstance(error, JigsyncError) else error
    if isinstance(system, OSError):
        return {"kind": "system", "errno": system.errno, "sentence": system.strerror or str(system)}
    if isinstance(error, JigsyncError):
        return {"kind": "input", "sentence": str(error)}
    return {"kind": "defect", "trace": traceback.format_exc()[-LONGEST_TRACE:]}
