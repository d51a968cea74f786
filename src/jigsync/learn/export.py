"""From a run to a file that ships: ONNX, checked against torch, with its card and golden tensors beside it.

Every kind of model says what is deployed of it (`Deployed`); the checks, the files and the card are the same for all.
"""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.io.files import read_bytes, read_json, write_bytes, write_json
from jigsync.learn import checkpoint
from jigsync.learn.onnx_file import Arrays, largest_difference, properties_of, rounded, run_onnx, run_torch, to_onnx
from jigsync.measure.weights import LIMIT
from jigsync.values.errors import FormatError, JigsyncError, OptionError

Network = TypeVar("Network", bound=nn.Module)

TOLERANCE: Final = 1e-3
"""Largest difference between ONNX and torch with the same weights that is accepted, on inputs of unit variance."""
KINDS: Final[Mapping[str, str]] = {
    "matcher": "jigsync.learn.matcher_export",
    "unary": "jigsync.learn.unary_export",
    "pairwise": "jigsync.learn.pairwise_export",
    "likeness": "jigsync.learn.likeness_export",
    "reach": "jigsync.learn.reach_export",
    "continuous": "jigsync.learn.continuous_export",
    "contours": "jigsync.learn.contours_export",
    "frames": "jigsync.learn.frames_export",
}
"""Model -> the module whose `deployed(config, weights)` says what of it is exported, and whose `answers(data, golden)`,
if it has one, asks a file; a format is "jigsync-MODEL/VERSION"."""


@dataclass(frozen=True, eq=False)
class Deployed:
    """What of a trained model is exported.

    Attributes:
        network: takes the inputs by position and returns the outputs as a tuple.
        inputs: name -> an example.
        outputs: names.
        dynamic: input -> axis -> name of a length, or (factor, name) for its multiples.
        properties: what the file says about itself: "format", and the versions of what it reads.
        golden: inputs and what torch makes of them; None: the examples and the outputs.
        half: weights are stored in half precision.
        card: what the card says beyond the rest.
    """

    network: nn.Module
    inputs: Mapping[str, Tensor]
    outputs: Sequence[str]
    dynamic: Mapping[str, Mapping[int, str | tuple[int, str]]]
    properties: Mapping[str, str]
    golden: Arrays | None = None
    half: bool = False
    card: Mapping[str, Any] = field(default_factory=dict)


def load_run(run: Path) -> tuple[dict[str, Any], checkpoint.Progress, dict[str, Tensor]]:
    """Config, progress and best weights of a run; OptionError when it is of no model that can be exported."""
    best = run / checkpoint.BEST
    if not best.exists():
        raise OptionError(f"The run '{run}' has no {checkpoint.BEST} yet: train until its first validation.")
    config, progress, groups = checkpoint.load(best)
    found = config.get("model")
    if not isinstance(found, str) or found not in KINDS:
        raise OptionError(f"The run '{run}' must be of {', '.join(KINDS)}. It is of {str(found)[:60]}.")
    return config, progress, checkpoint.named_tensors(groups, "average", best)


def export_run(runs: Sequence[Path], out: Path, card: Mapping[str, Any]) -> float:
    """Writes OUT.onnx, its card (.json) and golden tensors (.golden.npz); returns the largest difference from torch.

    Of several runs the mean of their best weights is exported, and the card tells of the first. The golden outputs are
    those of torch with the weights as they were trained, so that the difference includes what storing them in half
    precision costs.

    Args:
        card: what a person has to say about it: data, licence, command, numbers.
    """
    config, progress, weights = load_run(runs[0])
    if len(runs) > 1:
        weights = checkpoint.best_weights(runs)
    kind = _made(config, weights)
    golden = kind.golden or _answers_of_torch(kind)
    if kind.half:
        rounded(kind.network)
    data = to_onnx(kind.network, kind.inputs, kind.outputs, _dims(kind.dynamic), kind.properties, kind.half)
    found = _answers(data, golden)
    same = largest_difference(found, _answers_of_torch(kind) if kind.half else golden)
    if not same < TOLERANCE:
        raise JigsyncError(f"ONNX and torch differ by {same:.3g}, more than {TOLERANCE:g}: nothing is written.")
    difference = largest_difference(found, golden)
    write_bytes(out, data)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **golden)
    write_bytes(golden_path(out), buffer.getvalue())
    about = {
        **kind.properties,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "parameters": sum(parameter.numel() for parameter in kind.network.parameters()),
        "step": progress.step,
        "minutes": round(progress.seconds / 60, 1),
        **({"validation_score": round(progress.best, 4)} if len(runs) == 1 else {"runs": len(runs)}),
        "config": config,
        "onnx_minus_torch": float(f"{difference:.3g}"),
        **kind.card,
        **card,
    }
    write_json(out.with_suffix(".json"), about)
    return difference


def add_held_out(out: Path, pictures: Sequence[Path], encoder: Path | None) -> dict[str, Any]:
    """Adds to the card of an export what its kind finds out on held-out pictures; returns that.

    OptionError for kinds that need none.
    """
    card = read_json(out.with_suffix(".json"))
    model = card["config"]["model"]
    ask = getattr(importlib.import_module(KINDS[model]), "about_held_out", None)
    if ask is None:
        raise OptionError(f"The export of a {model} takes no 'val': nothing of it is fitted on held-out pictures.")
    found: dict[str, Any] = ask(out, pictures, encoder)
    write_json(out.with_suffix(".json"), {**card, **found})
    return found


def golden_path(weights: Path) -> Path:
    """Where the golden tensors of a file of weights are."""
    return weights.with_suffix(".golden.npz")


def check_golden(weights: Path) -> float:
    """Largest difference between what a file of weights gives and its golden tensors."""
    with np.load(golden_path(weights), allow_pickle=False) as stored:
        golden = dict(stored)
    return largest_difference(_answers(read_bytes(weights, LIMIT), golden), golden)


def _made(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    deployed = importlib.import_module(KINDS[config["model"]]).deployed
    try:
        made: Deployed = deployed(config, weights)
    except (AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        words = " ".join(str(error).split())[:200]
        raise FormatError(f"The weights of the run are not those of a {config['model']}: {words}.") from None
    return made


def built(make: Callable[[], Network], weights: dict[str, Tensor]) -> Network:
    """The network that `make` makes, with these weights; a RuntimeError when they are those of another one.

    It is made without numbers first: a config can ask for any size, the weights are as large as their file.
    """
    with torch.device("meta"):
        shapes = checkpoint.shapes_of(make().state_dict())
    if shapes != checkpoint.shapes_of(weights):
        raise RuntimeError("other tensors, or tensors of other shapes, than the config tells of")
    network = make()
    network.load_state_dict(weights)
    return network


def _answers_of_torch(kind: Deployed) -> Arrays:
    """Examples and outputs."""
    inputs = {name: value.numpy() for name, value in kind.inputs.items()}
    return {**inputs, **run_torch(kind.network, inputs, kind.outputs)}


def _answers(data: bytes, golden: Arrays) -> Arrays:
    """What a file makes of golden inputs."""
    model = properties_of(data)["format"].removeprefix("jigsync-").partition("/")[0]
    ask: Callable[[bytes, Arrays], Arrays] = getattr(importlib.import_module(KINDS[model]), "answers", run_onnx)
    return ask(data, golden)


def _dims(dynamic: Mapping[str, Mapping[int, str | tuple[int, str]]]) -> dict[str, dict[int, Any]]:
    """Names as `torch.export.Dim`, one of each."""
    made: dict[str, Any] = {}
    out: dict[str, dict[int, Any]] = {}
    for name, axes in dynamic.items():
        out[name] = {}
        for axis, length in axes.items():
            factor, key = length if isinstance(length, tuple) else (1, length)
            dim = made.setdefault(key, torch.export.Dim(key))
            out[name][axis] = dim if factor == 1 else factor * dim
    return out
