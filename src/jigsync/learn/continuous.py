"""The continuous-angle head: small layers on what the frozen unary head says of four views.

measure/continuous.py has the formula. Half of the features are left out in training: the encoder knows the pictures
that it was trained on better than others, and a head must not count on that. The encoder's own score of a view goes
round the layers.

Shapes: features (B, 4, F + HEADS) -> z (B, 4), vectors (B, 4, 2); loss - log p(angle), per radian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.lite0 import FEATURES
from jigsync.values import z4

HIDDEN: Final = 32
DROPPED: Final = 0.5


@dataclass(frozen=True)
class AngleBatch:
    """Shapes: features (B, 4, F + HEADS), angles (B,) degrees."""

    features: Tensor
    angles: Tensor


class Continuous(nn.Module):
    """One small network for every view."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(FEATURES),
            nn.Dropout(DROPPED),
            nn.Linear(FEATURES, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, 3),
        )
        self.told = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.told.weight, 0.5)

    def read(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Shapes: (B, 4, F + HEADS) -> z (B, 4), vectors (B, 4, 2)."""
        out = self.layers(features[..., :FEATURES])
        score = self.told(features[..., FEATURES : FEATURES + 1])
        return out[..., 0] + score[..., 0], out[..., 1:]

    def forward(self, batch: AngleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss and what to log."""
        loss = -log_density(*self.read(batch.features), batch.angles).mean()
        return loss, {"nats better than chance": np.log(2 * np.pi) - loss.detach()}


def log_density(z: Tensor, vectors: Tensor, angles: Tensor) -> Tensor:
    """log p(angle), per radian. Shapes: (B, 4), (B, 4, 2), (B,) degrees -> (B,)."""
    left = torch.deg2rad(angles[:, None] - 90.0 * torch.arange(z4.ORDER))
    kappa = torch.linalg.vector_norm(vectors, dim=2)
    dot = vectors[..., 0] * torch.cos(left) + vectors[..., 1] * torch.sin(left)
    each = dot - kappa - torch.log(2 * np.pi * torch.special.i0e(kappa))
    return torch.logsumexp(torch.log_softmax(z, dim=1) + each, dim=1)
