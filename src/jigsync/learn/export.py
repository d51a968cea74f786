"""From a run to a file that ships: ONNX, checked against torch, with its card and golden tensors beside it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.errors import JigsyncError, OptionError
from jigsync.io.files import read_bytes, write_bytes, write_json
from jigsync.learn import checkpoint
from jigsync.learn.matcher import Matcher, MatcherOptions
from jigsync.measure.matcher import FORMAT, LIMIT, MatcherModel
from jigsync.measure.strips import CHANNELS, ROWS, VERSION

TOLERANCE: Final = 1e-3
"""Largest difference between ONNX and torch that is accepted, on inputs of unit variance."""
GOLDEN_SIDES: Final = 4


class _Deployed(nn.Module):
    """Both networks with the inputs and outputs that `measure.matcher` documents."""

    def __init__(self, matcher: Matcher) -> None:
        super().__init__()
        self.encoder, self.ranker = matcher.encoder, matcher.ranker

    def forward(self, strips: Tensor, ahead_in: Tensor, across_in: Tensor) -> tuple[Tensor, ...]:
        return *self.encoder(strips), self.ranker(ahead_in, across_in)


def load_run(run: Path) -> tuple[Matcher, dict[str, Any], checkpoint.Progress]:
    """The best network of a run, its config and where it stood."""
    best = run / checkpoint.BEST
    if not best.exists():
        raise OptionError(f"The run '{run}' has no {checkpoint.BEST} yet: train until its first validation.")
    config, progress, groups = checkpoint.load(best)
    if config["model"] != "matcher":
        raise OptionError(f"The run '{run}' must be of a matcher. It is of a {config['model']}.")
    sizes = config["network"]
    matcher = Matcher(MatcherOptions(**{**sizes, "dilations": tuple(sizes["dilations"])}))
    matcher.load_state_dict(groups["average"])
    return matcher.eval(), config, progress


def export_matcher(run: Path, out: Path, card: dict[str, Any]) -> float:
    """Writes OUT.onnx, its card (.json) and golden tensors (.golden.npz); returns the largest difference from torch.

    Args:
        card: what a person has to say about it: data, licence, command, numbers.
    """
    matcher, config, progress = load_run(run)
    data = _onnx(_Deployed(matcher), config)
    model = MatcherModel(data, str(out))
    golden = _golden(matcher)
    difference = _difference(model, golden)
    if not difference < TOLERANCE:
        raise JigsyncError(f"ONNX and torch differ by {difference:.3g}, more than {TOLERANCE:g}: nothing is written.")
    write_bytes(out, data)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **golden)
    write_bytes(golden_path(out), buffer.getvalue())
    sizes = sum(p.numel() for p in matcher.parameters())
    made = {
        "format": FORMAT,
        "strips": VERSION,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "parameters": sizes,
        "step": progress.step,
        "minutes": round(progress.seconds / 60, 1),
        "validation_score": round(progress.best, 4),
        "config": config,
        "onnx_minus_torch": float(f"{difference:.3g}"),
        **card,
    }
    write_json(out.with_suffix(".json"), made)
    return difference


def golden_path(weights: Path) -> Path:
    """Where the golden tensors of a file of weights are."""
    return weights.with_suffix(".golden.npz")


def check_golden(weights: Path) -> float:
    """Largest difference between what a file of weights gives and its golden tensors."""
    with np.load(golden_path(weights), allow_pickle=False) as stored:
        golden = dict(stored)
    return _difference(MatcherModel(read_bytes(weights, LIMIT), str(weights)), golden)


def _golden(matcher: Matcher) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs of unit variance and what torch makes of them."""
    rng = np.random.default_rng(0)
    strips = rng.standard_normal((GOLDEN_SIDES, CHANNELS, ROWS), dtype=np.float32)
    s, t = np.arange(GOLDEN_SIDES), rng.permutation(GOLDEN_SIDES)
    with torch.no_grad():
        left, right, none, ahead, across = matcher.encoder(torch.from_numpy(strips))
        score = matcher.rank(ahead, across, torch.from_numpy(s), torch.from_numpy(t))
    named = {"left": left, "right": right, "none": none, "ahead": ahead, "across": across, "score": score}
    return {"strips": strips, "s": s, "t": t, **{name: value.numpy() for name, value in named.items()}}


def _difference(model: MatcherModel, golden: dict[str, np.ndarray[Any, Any]]) -> float:
    codes = model.encode(golden["strips"])
    found = {
        "left": codes.left,
        "right": codes.right,
        "none": codes.none,
        "ahead": codes.ahead,
        "across": codes.across,
        "score": model.rank(codes, golden["s"], golden["t"]),
    }
    return max(float(np.abs(value - golden[name]).max()) for name, value in found.items())


def _onnx(network: _Deployed, config: dict[str, Any]) -> bytes:
    """The bytes of the ONNX file, any number of sides and pairs."""
    import onnx

    sides, pairs = torch.export.Dim("sides"), torch.export.Dim("pairs")
    # Two tensors: one that is given twice would become one input.
    ahead, across = (torch.zeros(3, config["network"]["pair"], ROWS // 2) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")  # torch's own, about its own insides
        path = Path(folder) / "matcher.onnx"
        torch.onnx.export(
            network,
            (torch.zeros(2, CHANNELS, ROWS), ahead, across),
            path,
            input_names=["strips", "ahead_in", "across_in"],
            output_names=["left", "right", "none", "ahead", "across", "score"],
            dynamic_shapes={"strips": {0: sides}, "ahead_in": {0: pairs}, "across_in": {0: pairs}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        model = onnx.load(path)
    onnx.helper.set_model_props(model, {"format": FORMAT, "strips": VERSION})
    for node in model.graph.node:  # where the exporter was called from is nobody's business
        del node.metadata_props[:]
        node.doc_string = ""
    data: bytes = model.SerializeToString(deterministic=True)
    return data


@contextlib.contextmanager
def _quiet() -> Any:
    """torch.onnx logs that torchvision is not installed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
