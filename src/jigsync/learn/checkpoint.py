"""Checkpoints: one safetensors file with the network, its running average and the optimiser, whole or absent.

The header holds JSON: the step, the best score so far, the curve, the run's config, the version of the code and a hash
of all this and the tensors. Nothing random is stored: every draw is a function of the seed and the step. The checkpoint
before the last one is kept too: when the last one turns out to be damaged, a run goes on from there and comes to the
same end.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jigsync.io.files import cannot, open_plain, parse_json, write_bytes
from jigsync.io.schema import Node
from jigsync.values.errors import FormatError, InputError, OptionError

LAST = "last.safetensors"
PREVIOUS = "previous.safetensors"
BEST = "best.safetensors"


log = logging.getLogger("jigsync.learn")

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Progress:
    """Where a run stands: finished steps, best validation score, seconds of training, rows of its curves by file."""

    step: int = 0
    best: float = -1e30
    seconds: float = 0.0
    curves: Mapping[str, Rows] = field(default_factory=dict)


def save(path: Path, config: dict[str, Any], progress: Progress, tensors: dict[str, dict[str, Tensor]]) -> None:
    """Writes groups of named tensors ("model", "average", ...) and what the header says."""
    from safetensors.torch import save as to_bytes

    flat = {f"{group}/{name}": t.contiguous() for group, named in tensors.items() for name, t in named.items()}
    told: dict[str, Any] = {"config": config, "progress": vars(progress)}
    told["checksum"] = _checksum(told, flat)
    write_bytes(path, to_bytes(flat, metadata={"jigsync": json.dumps(told)}))


def save_last(folder: Path, config: dict[str, Any], progress: Progress, tensors: dict[str, dict[str, Tensor]]) -> None:
    """Writes a run's checkpoint; the one that was there, unless it is damaged, stays as the previous one."""
    last = folder / LAST
    if last.exists():
        with suppress(InputError):
            load(last)
            os.replace(last, folder / PREVIOUS)
    save(last, config, progress, tensors)


def load_last(folder: Path) -> tuple[dict[str, Any], Progress, dict[str, dict[str, Tensor]]] | None:
    """A run's checkpoint, or None when there is none; the previous one, and it is said so, when the last is damaged."""
    last, previous = folder / LAST, folder / PREVIOUS
    if not last.exists():  # killed between the two
        return load(previous) if previous.exists() else None
    try:
        return load(last)
    except InputError as error:
        if not previous.exists():
            raise
        log.warning("jigsync: %s The training goes on from '%s'.", error, previous)
        return load(previous)


def load(path: Path) -> tuple[dict[str, Any], Progress, dict[str, dict[str, Tensor]]]:
    """The config, the progress and the groups of tensors of a checkpoint; FormatError when it is none of ours."""
    from safetensors import SafetensorError, safe_open

    groups: dict[str, dict[str, Tensor]] = {}
    open_plain(path).close()
    try:
        with safe_open(path, "pt") as file:
            header = Node(parse_json((file.metadata() or {})["jigsync"].encode(), str(path)), str(path))
            flat = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
    except OSError as error:
        raise cannot("read", path, error) from None
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise FormatError(f"The file '{path}' is not a checkpoint of `jigsync train`: {error}.") from None
    config, told = header.key("config").object(), header.key("progress")
    progress = Progress(
        told.key("step").integer(0, 10**15),
        told.key("best").number(-1e300, 1e300),
        told.key("seconds").number(0.0, 1e15),
        {name: [_row(row) for row in rows.entries()] for name, rows in told.key("curves").items()},
    )
    if header.key("checksum").text() != _checksum(header.object(), flat):
        raise FormatError(f"The file '{path}' is damaged: it is not what its own checksum says.")
    for key, tensor in flat.items():
        group, _, name = key.partition("/")
        groups.setdefault(group, {})[name] = tensor
    return config, progress, groups


def _row(row: Node) -> dict[str, str]:
    return {name: value.text() for name, value in row.items()}


def _checksum(told: Mapping[str, Any], flat: dict[str, Tensor]) -> str:
    """Of what the header tells and of the tensors."""
    header = json.dumps([told["config"], told["progress"]], sort_keys=True)
    return hashlib.sha256(f"{header} {tensors_sha256(flat)}".encode()).hexdigest()


def named_tensors(groups: dict[str, dict[str, Tensor]], group: str, path: Path) -> dict[str, Tensor]:
    """One group of a checkpoint; FormatError when it has none of this name."""
    if group not in groups:
        raise FormatError(f"The file '{path}' is not a checkpoint of `jigsync train`: it has no '{group}'.")
    return groups[group]


def best_weights(runs: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the best weights of some runs; OptionError when they are of different networks.

    Runs that started from one another lie in one valley, and its middle is lower than its sides (Wortsman et al. 2022).
    """
    mean: dict[str, Tensor] = {}
    for run in runs:
        weights = named_tensors(load(run / BEST)[2], "average", run / BEST)
        if mean and shapes_of(weights) != shapes_of(mean):
            raise OptionError(f"The runs '{runs[0]}' and '{run}' must be of one network to be averaged.")
        mean = {name: value / len(runs) + mean.get(name, 0) for name, value in weights.items()}
    return mean


def shapes_of(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    """Name -> shape."""
    return {name: value.shape for name, value in weights.items()}


def restore(network: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Puts the weights of a file into a network; FormatError when they are those of another one."""
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        words = " ".join(str(error).split())[:200]
        raise FormatError(f"The file '{path}' is of another network: {words}.") from None


def tensors_sha256(flat: dict[str, Tensor]) -> str:
    """A hash of named tensors: names, types, shapes and values."""
    found = hashlib.sha256()
    for name in sorted(flat):
        values = flat[name].detach().cpu().contiguous()
        found.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        found.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's moments and step counts by parameter name."""
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
        if name not in parameters or moment not in ("step", "exp_avg", "exp_avg_sq", "momentum"):
            raise FormatError(f"The checkpoint is of another optimiser: it has '{key[:100]}'.")
        optimiser.state[parameters[name]][moment] = value
