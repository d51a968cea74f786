"""Checkpoints: one safetensors file with the network, its running average and the optimiser, whole or absent.

The header holds JSON: the step, the best score so far, the run's config and the version of the code. Nothing random
is stored: every draw is a function of the seed and the step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jigsync.errors import FormatError
from jigsync.io.files import write_bytes

LAST = "last.safetensors"
BEST = "best.safetensors"


@dataclass(frozen=True)
class Progress:
    """Where a run stands: finished steps, best validation score, seconds of training."""

    step: int = 0
    best: float = -1e30
    seconds: float = 0.0


def save(path: Path, config: dict[str, Any], progress: Progress, tensors: dict[str, dict[str, Tensor]]) -> None:
    """Writes groups of named tensors ("model", "average", ...) and what the header says."""
    from safetensors.torch import save as to_bytes

    flat = {f"{group}/{name}": t.contiguous() for group, named in tensors.items() for name, t in named.items()}
    header = {"jigsync": json.dumps({"config": config, "progress": vars(progress)})}
    write_bytes(path, to_bytes(flat, metadata=header))


def load(path: Path) -> tuple[dict[str, Any], Progress, dict[str, dict[str, Tensor]]]:
    """The config, the progress and the groups of tensors of a checkpoint; FormatError when it is none of ours."""
    from safetensors import SafetensorError, safe_open

    groups: dict[str, dict[str, Tensor]] = {}
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {})["jigsync"])
            for key in file.keys():  # noqa: SIM118 - not a mapping
                group, _, name = key.partition("/")
                groups.setdefault(group, {})[name] = file.get_tensor(key)
        return header["config"], Progress(**header["progress"]), groups
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise FormatError(f"The file '{path}' is not a checkpoint of `jigsync train`: {error}.") from None


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Adam's moments and step counts by parameter name."""
    named = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state[parameter].items():
            named[f"{name}/{key}"] = value
    return named


def restore_optimiser(optimiser: torch.optim.Optimizer, model: nn.Module, named: dict[str, Tensor]) -> None:
    """The inverse of optimiser_tensors."""
    parameters = dict(model.named_parameters())
    for key, value in named.items():
        name, _, moment = key.rpartition("/")
        optimiser.state[parameters[name]][moment] = value
