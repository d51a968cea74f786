"""Files of trained weights: where they are, whether they are what they should be, and how onnxruntime opens them.

Beside a file there is a card of the same name (.json) with its sha256; a shipped file must have one. Its metadata say
which format it has and which version of its input it was trained on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jigsync.errors import FormatError, InputError, JigsyncError
from jigsync.io.files import parse_json, read_bytes

LIMIT: Final = 64 * 2**20
"""Largest file of weights that is read, in bytes."""
THREADS: Final = 2


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
        want = parse_json(read_bytes(card, LIMIT), str(card)).get("sha256")
        found = hashlib.sha256(data).hexdigest()
        if want != found:
            raise InputError(f"The weights '{path}' are not those of their card: sha256 {found}, expected {want}.")
    return data, str(path)


def open_session(data: bytes, name: str, metadata: Mapping[str, str]) -> Any:
    """onnxruntime's session of a model that must say this of itself; JigsyncError without onnxruntime."""
    # Its official builds report their use to Microsoft unless they are told not to before they are loaded.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError as error:
        raise JigsyncError(f"onnxruntime, which runs the trained models, cannot be imported: {error}.") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    # Threads that wait by spinning take the cores from the workers of an evaluation, which are many.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own kinds, which are not exported
        raise FormatError(f"The weights '{name}' are not a usable ONNX model: {str(error).rstrip('.')}.") from None
    found = session.get_modelmeta().custom_metadata_map
    for key, want in metadata.items():
        if found.get(key) != want:
            raise FormatError(f"The weights '{name}' must have {key} '{want}'. They have {found.get(key)!r}.")
    return session
