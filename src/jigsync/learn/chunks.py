"""Training samples from worker processes: chunks of consecutive samples on the disk, a sliding window in memory.

Sample k is a pure function of k, chunk c holds samples c * SIZE .. (c + 1) * SIZE - 1, and step i reads a window of
chunks that depends on i alone. So what is trained on does not depend on how fast or how many the workers are, and a
resumed run sees what the killed one would have seen; chunks that are still on the disk need not be made again. Their
header holds a hash of the samples: a damaged chunk is named and made again.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import cannot, remove_leftovers, write_bytes
from jigsync.io.seal import SEAL
from jigsync.values.errors import FormatError, InputError

log = logging.getLogger("jigsync.learn")

Sample = Mapping[str, NDArray[Any]]
SIZE: Final = 16
"""Samples a chunk."""
AHEAD: Final = 12
"""Chunks that are made before they are needed."""


class Data(Protocol):
    """A stream of training samples; picklable, for it goes to the workers."""

    def sample(self, k: int) -> Sample:
        """The k-th sample."""


def make_chunk(data: Data, path: Path, chunk: int) -> None:
    """Writes one chunk, whole or not at all."""
    from safetensors.numpy import save

    arrays = {
        f"{j}.{name}": np.ascontiguousarray(value)
        for j in range(SIZE)
        for name, value in data.sample(chunk * SIZE + j).items()
    }
    write_bytes(path, save(arrays, metadata={SEAL: _hash(arrays)}))


class Chunks:
    """The window of chunks around the current step."""

    def __init__(self, data: Data, folder: Path, workers: int) -> None:
        self._data, self._folder = data, folder
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        self._pool = _pool(workers) if workers else None
        self._pending: dict[int, Future[None]] = {}
        self._loaded: dict[int, list[Sample]] = {}

    def window(self, first: int, last: int) -> list[Sample]:
        """All samples of chunks first .. last; older chunks are deleted, the next AHEAD ones are asked for."""
        for chunk in [c for c in self._loaded if c < first]:
            del self._loaded[chunk]
            self._path(chunk).unlink(missing_ok=True)
        for chunk in range(first, last + 1 + AHEAD):
            self._ask(chunk)
        return [sample for chunk in range(first, last + 1) for sample in self._get(chunk)]

    def close(self) -> None:
        """Ends the workers; chunks stay on the disk for a resumed run."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _path(self, chunk: int) -> Path:
        return self._folder / f"{chunk:07d}.safetensors"

    def _ask(self, chunk: int) -> None:
        if self._pool is None or chunk in self._loaded or chunk in self._pending or self._path(chunk).exists():
            return
        with _one_thread_each():
            self._pending[chunk] = self._pool.submit(make_chunk, self._data, self._path(chunk), chunk)

    def _get(self, chunk: int) -> Sequence[Sample]:
        if chunk not in self._loaded:
            pending = self._pending.pop(chunk, None)
            if pending is not None:
                pending.result()
            elif not self._path(chunk).exists():
                make_chunk(self._data, self._path(chunk), chunk)
            try:
                self._loaded[chunk] = _load(self._path(chunk))
            except InputError as error:
                log.warning("jigsync: %s It is made again.", error)
                make_chunk(self._data, self._path(chunk), chunk)
                self._loaded[chunk] = _load(self._path(chunk))
        return self._loaded[chunk]


def _load(path: Path) -> list[Sample]:
    """The samples of a chunk; InputError, naming the file, when they are not what was written."""
    from safetensors import SafetensorError, safe_open

    samples: list[dict[str, NDArray[Any]]] = [{} for _ in range(SIZE)]
    try:
        with safe_open(path, "numpy") as file:
            seal = (file.metadata() or {}).get(SEAL)
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
    except OSError as error:
        raise cannot("read", path, error) from None
    except (SafetensorError, ValueError, TypeError) as error:
        raise FormatError(f"The chunk '{path}' is damaged: {error}.") from None
    if seal != _hash(arrays):
        raise FormatError(f"The chunk '{path}' is damaged: its samples are not what its own checksum says.")
    for key, value in arrays.items():
        j, name = key.split(".", 1)
        samples[int(j)][name] = value
    return list(samples)


def _hash(arrays: Mapping[str, NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {value.dtype.str} {value.shape}".encode())
        found.update(value.tobytes())
    return found.hexdigest()


def _pool(workers: int) -> ProcessPoolExecutor:
    import multiprocessing

    from jigsync.corpus.pool import start_worker

    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started meanwhile do their sums in one thread; this one, and what it starts later, do not.

    A pool starts its processes as work is submitted, and BLAS reads the environment when it is loaded.
    """
    unset = [name for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]
