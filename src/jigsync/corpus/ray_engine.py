"""Units of work over a Ray cluster, the same way as over processes.

The driver keeps a bounded number of units under way and hands out each of them again when the worker or the node that
had it died, at most ATTEMPTS times; Ray's own retries are off, so that this is the only place that counts. A worker
first compares what it runs with what the driver runs: other code or other libraries could write other bytes.

    --address          none: a Ray of its own on this machine; auto: the one this machine belongs to; HOST:PORT
    --workers N        units under way at once; 0 is two for each core of the cluster
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar

import jigsync
from jigsync.corpus.pool import ATTEMPTS, worker_died
from jigsync.io.refusals import reason_of
from jigsync.values.errors import InputError, JigsyncError, MissingExtraError, OptionError, bad_value

U = TypeVar("U")
R = TypeVar("R")

ADDRESS: Final = re.compile(r"([\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})")
CONNECT_SECONDS = 10.0
JOIN_SECONDS = 60.0
"""How long a Ray may take to let us join."""
STARTS: Final = 3
"""Tries to start a Ray here: its node gives up when a busy machine has not started its helpers in 15 seconds."""
STORE_BYTES: Final = 100 * 2**20
"""Object store of a Ray of our own: units and results are a few kilobytes, pictures and shards never go through it."""
LIBRARIES: Final = ("numpy", "scipy", "Pillow", "opencv-python-headless", "onnxruntime")
"""Whose versions can change a shard's bytes or a score."""


@dataclass(frozen=True)
class RayEngine:
    """Implements `pool.Engine`.

    Attributes:
        most: units under way at once, 0 for two a core.
        identity: what the workers must run, `identity_here` of the driver.
    """

    most: int
    identity: Mapping[str, str]

    def run(self, work: Callable[[U], R], units: Sequence[U]) -> Iterator[tuple[U, R]]:
        """See `pool.Engine`."""
        ray = _ray()
        exceptions = ray.exceptions
        gone = (
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.OutOfMemoryError,
            exceptions.ObjectLostError,
            exceptions.LocalRayletDiedError,
        )
        do = ray.remote(_do).options(num_cpus=1, max_retries=0, name="jigsync")
        left = deque((unit, 1) for unit in units)
        under_way: dict[Any, tuple[U, int]] = {}
        try:
            while left or under_way:
                cores = int(ray.cluster_resources().get("CPU", 0))
                most = self.most or 2 * max(1, cores)
                while left and len(under_way) < most:
                    unit, attempt = left.popleft()
                    under_way[do.remote(dict(self.identity), work, unit)] = unit, attempt
                done, _ = ray.wait(list(under_way), num_returns=1, timeout=60.0)
                if not done and not cores:
                    raise InputError("No machine of the Ray cluster has a core left for a worker.")
                for ref in done:
                    unit, attempt = under_way.pop(ref)
                    try:
                        result: R = ray.get(ref)
                    except gone as error:
                        if attempt >= ATTEMPTS:
                            raise worker_died(
                                f"the last time, Ray said: {_first_line(str(error)).rstrip('.')}"
                            ) from None
                        left.appendleft((unit, attempt + 1))
                        continue
                    except exceptions.RayTaskError as error:
                        raise _cause(error) from None
                    yield unit, result
        finally:
            for ref in under_way:
                with suppress(Exception):
                    ray.cancel(ref, force=True)


@contextmanager
def ray_engine(address: str | None, workers: int) -> Iterator[RayEngine]:
    """Joins the Ray at an address, or starts one here, for as long as the block lasts.

    Meanwhile what is printed goes to stderr, for Ray prints when a worker dies, and stdout belongs to results.
    """
    if not 0 <= workers <= 100_000:
        raise bad_value("workers", "Ray", "an integer from 0 to 100000", workers)
    # Read by ray when it is imported: nothing is reported to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Read by the nodes we start: Ray's workers have a niceness of 15 otherwise, and lose to everything else.
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray = _ray()
    if address is not None:
        _reach(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "jigsync"}
    if address is None:
        cpus = workers or os.cpu_count() or 1
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    with redirect_stdout(sys.stderr):
        _join(ray, address, options)
        try:
            yield RayEngine(workers, identity_here())
        finally:
            ray.shutdown()


def _join(ray: Any, address: str | None, options: Mapping[str, Any]) -> None:
    for left in reversed(range(STARTS if address is None else 1)):
        try:
            ray.init(address=address or "local", **options)
            return
        except Exception as error:  # ConnectionError, RuntimeError (another version of ray there), its own kinds
            ray.shutdown()
            if not left:
                raise _not_joined(address, str(error)) from None


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingExtraError("The engine 'ray'", "ray", "cluster") from None


def _reach(address: str) -> None:
    """Is there a Ray that lets us join? Where none answers, Ray itself would try for ever: so a child tries first."""
    found = ADDRESS.fullmatch(address)
    if found is None and address != "auto":
        raise OptionError(f"The option --address must be 'auto' or HOST:PORT of a Ray head. Got '{address}' instead.")
    if found is not None:
        host, port = found[1].strip("[]"), int(found[2])
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise InputError(f"No Ray answers at '{address}': {reason_of(error)}.") from None
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _JOIN, address], capture_output=True, text=True, timeout=JOIN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"No Ray answers at '{address}' within {JOIN_SECONDS:g} seconds.") from None
    if tried.returncode:
        raise _not_joined(address, tried.stdout)


_JOIN: Final = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    print(error)
    sys.exit(1)
"""


def _not_joined(address: str | None, reason: str) -> InputError:
    where = "started here" if address is None else f"joined at '{address}'"
    return InputError(f"Ray cannot be {where}: {_first_line(reason)}")


# ---------------------------------------------------------------------------------------------- on the worker


def _do(expected: Mapping[str, str], work: Callable[[U], R], unit: U) -> R:
    """One unit, on a worker; our own errors say where they happened."""
    try:
        _prepare(tuple(expected.items()))
        return work(unit)
    except JigsyncError as error:
        raise InputError(f"On the Ray node {socket.gethostname()} ({_node()}): {error}") from None


@cache
def _prepare(expected: tuple[tuple[str, str], ...]) -> None:
    """Once a process: the driver's code and libraries, one thread."""
    check_identity(dict(expected), identity_here())
    import cv2

    cv2.setNumThreads(1)


def _node() -> str:
    return str(_ray().util.get_node_ip_address())


def check_identity(expected: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Names the first difference."""
    for name, value in expected.items():
        if found.get(name) != value:
            raise InputError(
                f"This worker has {name} {found.get(name) or 'missing'}, the driver has {name} {value}: install the"
                " same there, for others may write other bytes."
            )


@cache
def identity_here() -> Mapping[str, str]:
    """What this process runs: versions, and a hash of the package's own code."""
    return {
        "jigsync": jigsync.__version__,
        "code of jigsync": _code_hash(Path(jigsync.__file__).parent),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: _version(name) for name in LIBRARIES},
    }


def _code_hash(package: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".json"):
            found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


# ---------------------------------------------------------------------------------------------- what went wrong


def _cause(error: Any) -> BaseException:
    """The exception that a unit raised, or a sentence when the worker could not even begin."""
    text = str(error)
    if missing := re.search(r"No module named '([\w.]+)'", text):
        return InputError(
            f"A Ray worker has no module '{missing[1]}': install jigsync {jigsync.__version__} on every node of the"
            " cluster, as docs/scale.md tells."
        )
    cause: BaseException = getattr(error, "cause", None) or error
    return cause


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "it did not say why")
    return line.strip().rstrip(".") + "."
