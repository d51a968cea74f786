"""Which engine the command line asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from jigsync.corpus.pool import Workers
from jigsync.values.errors import OptionError

EngineName = Literal["local", "ray"]


def processes_here(name: EngineName, workers: int) -> int:
    """Processes of this machine: what --workers says, unless it says it of a cluster; else one a core."""
    return (workers if name == "local" else 0) or os.cpu_count() or 1


@contextmanager
def open_engine(name: EngineName, address: str | None, workers: int) -> Iterator[Workers]:
    """Processes here, or a Ray cluster, for as long as the block lasts.

    Args:
        name: local or ray.
        address: of a running Ray, "auto" to find it, None to start one here.
        workers: processes, 0 for one a core; with Ray units under way at once, 0 for two a core of the cluster.
    """
    if name == "local":
        if address is not None:
            raise OptionError("--address goes with --engine ray.")
        yield processes_here(name, workers)
        return
    from jigsync.corpus.ray_engine import ray_engine

    with ray_engine(address, workers) as engine:
        yield engine
