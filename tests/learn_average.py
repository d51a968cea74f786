"""A regression small enough to compare runs number by number; as a script, one process of a distributed run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.chunks import SIZE, Sample
from jigsync.learn.loop import LoopOptions, train

ALONE = LoopOptions(
    steps=6, samples=2 * SIZE, reuse=1e9, window=2, warm=2, log_every=1, validate_every=6, save_minutes=0.0, workers=0
)
EACH = LoopOptions(
    steps=6, samples=SIZE, reuse=1e9, window=1, warm=1, log_every=1, validate_every=6, save_minutes=0.0, workers=0
)
"""The same 32 samples a step: all by one process, or half of them by each of two."""


@dataclass(frozen=True)
class Points:
    """Process r has samples from r * SIZE on."""

    first: int

    def sample(self, k: int) -> Sample:
        x = np.random.default_rng(self.first + k).standard_normal(5).astype(np.float32)
        return {"x": x, "y": np.sin(3 * x[:1]) + x[1:2] * x[2:3]}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        return (self.layers(batch[0]) - batch[1]).square().mean(), {}


class Regression:
    name, seed, muon = "regression", 4, False

    def config(self) -> dict[str, Any]:
        return {}

    def data_config(self) -> dict[str, Any]:
        return {}

    def data(self, rank: int) -> Points:
        return Points(rank * SIZE)

    def model(self) -> nn.Module:
        return Net()

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(np.stack([sample[key] for sample in samples])) for key in ("x", "y"))

    def validation(self) -> None:
        return None

    def validate(self, model: nn.Module, sets: None) -> dict[str, float]:
        return {"score": 0.0}


if __name__ == "__main__":
    train(Regression(), Path(sys.argv[1]), EACH)
