"""Files of trained weights: where they are, whether they are what they should be, and how onnxruntime opens them.

Beside a file there is a card of the same name (.json) with its sha256; a shipped file must have one. Its metadata say
which format it has and which version of its input it was trained on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import read_bytes, read_json
from jigsync.io.schema import Node
from jigsync.measure.onnx_check import check_model
from jigsync.measure.parts import side_by_side
from jigsync.values.errors import FormatError, InputError, JigsyncError, is_of_memory

Floats = NDArray[np.float32]

LIMIT: Final = 64 * 2**20
"""Largest file of weights that is read, in bytes."""
MEMORY: Final = 2 << 30
"""Bytes that all models of a process may take together, beyond what is given to them."""


def weights_path(shipped: str, weights: Path | None) -> Path:
    """The file of weights, or the shipped one of this name."""
    return Path(str(files("jigsync.weights") / shipped)) if weights is None else weights


def weights_sha256(shipped: str, weights: Path | None) -> str:
    """sha256 of a file of weights; "" when it is not there."""
    path = weights_path(shipped, weights)
    return hashlib.sha256(read_bytes(path, LIMIT)).hexdigest() if path.exists() else ""


def read_weights(shipped: str, weights: Path | None) -> tuple[bytes, str]:
    """The bytes of a file and its name; InputError when they are not those of its card."""
    path = weights_path(shipped, weights)
    data = read_bytes(path, LIMIT)
    card = path.with_suffix(".json")
    if weights is None or card.exists():
        want = read_card(card).get("sha256")
        found = hashlib.sha256(data).hexdigest()
        if want != found:
            raise InputError(
                f"The weights '{path}' are not those of their card: sha256 {found}, expected {str(want)[:64]}."
            )
    return data, str(path)


def read_card(path: Path) -> dict[str, Any]:
    """What a card says."""
    return Node(read_json(path), str(path)).object()


class Session:
    """A loaded model whose answers are what they should be, or an error."""

    def __init__(self, session: Any, name: str) -> None:
        self._session, self._name = session, name

    def run(self, wanted: Mapping[str, tuple[int | None, ...]], feed: Mapping[str, NDArray[Any]]) -> list[Floats]:
        """The named outputs; FormatError unless they are finite numbers of these shapes, None being any length."""
        try:
            answers: list[Floats] = self._session.run(list(wanted), dict(feed))
        except Exception as error:
            _check_memory(error)
            raise FormatError(f"The weights '{self._name}' cannot be run: {_words(error)}.") from None
        for (output, shape), answer in zip(wanted.items(), answers, strict=True):
            sizes = answer.shape if isinstance(answer, np.ndarray) and answer.dtype == np.float32 else ()
            fits = len(sizes) == len(shape) and all(w in (None, n) for w, n in zip(shape, sizes, strict=True))
            if not fits:
                raise FormatError(f"The weights '{self._name}' must give '{output}' as {shape} floats. Got {sizes}.")
            if not np.isfinite(answer).all():
                raise FormatError(f"The weights '{self._name}' give '{output}' that is not finite.")
        return answers

    def run_parts(
        self, wanted: Mapping[str, tuple[int | None, ...]], given: str, parts: Sequence[Callable[[], Floats]]
    ) -> list[Floats]:
        """The outputs for all parts of an input, joined; shapes are those of one row, and the same for every part.

        Parts are made and run side by side.
        """

        def answer(make: Callable[[], Floats]) -> list[Floats]:
            part = make()
            return self.run({output: (len(part), *shape) for output, shape in wanted.items()}, {given: part})

        answers = side_by_side([partial(answer, make) for make in parts])
        try:
            return [np.concatenate(column) for column in zip(*answers, strict=True)]
        except ValueError as error:
            raise FormatError(f"The weights '{self._name}' give other shapes every time: {error}.") from None


@cache
def _bound_memory(onnxruntime: Any) -> None:
    """All sessions of the process share one arena, which ends at MEMORY: a model can ask for any amount."""
    place = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg({"max_mem": MEMORY}))


def open_session(data: bytes, name: str, metadata: Mapping[str, str]) -> Session:
    """A model that must say this of itself and hold nothing but arithmetic; JigsyncError without onnxruntime."""
    check_model(data, name)
    # Its official builds report their use to Microsoft unless they are told not to before they are loaded.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError as error:
        raise JigsyncError(f"onnxruntime, which runs the trained models, cannot be imported: {error}.") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # parts are run side by side instead, see `measure.parts`
    options.log_severity_level = 4  # it would print what a model calls its nodes, whatever that does to a terminal
    options.add_session_config_entry("session.load_model_format", "ONNX")  # the other one is not checked above
    options.add_session_config_entry("session.use_env_allocators", "1")
    try:
        _bound_memory(onnxruntime)
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        found = session.get_modelmeta().custom_metadata_map
    except Exception as error:  # onnxruntime's own kinds, which are not exported
        _check_memory(error)
        raise FormatError(f"The weights '{name}' are not a usable ONNX model: {_words(error)}.") from None
    for key, want in metadata.items():
        if found.get(key) != want:
            raise FormatError(f"The weights '{name}' must have {key} '{want}'. They have {str(found.get(key))[:80]!r}.")
    return Session(session, name)


def _check_memory(error: Exception) -> None:
    """A lack of memory is no fault of the weights; asking for more than MEMORY is."""
    if is_of_memory(error) and f"{MEMORY}" not in str(error):
        raise MemoryError from None


def _words(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300]
