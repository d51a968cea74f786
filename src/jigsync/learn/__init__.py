"""Training of the learned measurers; needs the extra 'learn' (torch). Nothing that solves imports it."""

from __future__ import annotations


def need_torch() -> None:
    """MissingExtraError unless the packages of the extra 'learn' are there."""
    from importlib.util import find_spec

    from jigsync.values.errors import MissingExtraError

    for package in ("torch", "accelerate", "safetensors", "onnx", "onnxscript"):
        if find_spec(package) is None:
            raise MissingExtraError("Training", package, "learn")
