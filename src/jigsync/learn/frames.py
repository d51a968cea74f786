"""The frame network: where the cell of a fragment is, from its outline alone (`measure.frames` counts its votes).

Residual convolutions around the outline, as in `learn.contours`. With D the distance of the centre that the votes of an
outline give from the true one, in pitches, A the wrapped error of its angle and B that of log(pitch / size),

    loss = 2 log c + D / c  +  log a + |A| / a  +  log b + |B| / b           Laplace, with spreads c, a, b of its own

for a fragment of rows and columns; for all, CELLED times the cross-entropy of whether it is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from jigsync.learn.contours import Block
from jigsync.measure.frames import CHANNELS, DISTANCES, STEEPEST, VOTES

SPREADS: Final = (-3.0, -3.0, -3.0)
"""Logarithms of c, a, b at the start."""
LEAST: Final = -6.0
"""Of the logarithms of spreads: below, the loss of a lucky guess has no bound."""
CELLED: Final = 2.0


@dataclass(frozen=True)
class FrameOptions:
    """Sizes of the network.

    Attributes:
        width: channels.
        dilations: of the blocks, in samples; each of DISTANCES.
    """

    width: int = 128
    dilations: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 32, 8, 2)


@dataclass(frozen=True)
class FrameBatch:
    """Some puzzles' outlines, one after the other.

    Attributes:
        features, near: (T, CHANNELS), (T, len(DISTANCES)).
        owner: (T,) int64, the fragment of each sample.
        puzzle: (N,) int64, the puzzle of each fragment.
        normal: (T, 2); its tangent is (-n_y, n_x).
        centre: (N, 2) true centres from the centroids, in sizes.
        angle: (N,) true angles, radians, modulo a quarter turn.
        pitch: (N,) log(pitch / size).
        celled: (N,) 1 for fragments of rows and columns, 0 for others, which have no true centre, angle and pitch.
    """

    features: Tensor
    near: Tensor
    owner: Tensor
    puzzle: Tensor
    normal: Tensor
    centre: Tensor
    angle: Tensor
    pitch: Tensor
    celled: Tensor


class FrameEncoder(nn.Module):
    """Features (T, CHANNELS) and neighbours (T, len(DISTANCES)) -> votes (T, VOTES)."""

    def __init__(self, options: FrameOptions) -> None:
        super().__init__()
        width = options.width
        self.stem = nn.Linear(CHANNELS, width)
        self.blocks = nn.ModuleList(Block(width, DISTANCES.index(-d), DISTANCES.index(d)) for d in options.dilations)
        self.votes = nn.Linear(width, VOTES)
        with torch.no_grad():
            self.votes.weight.mul_(0.1)
            self.votes.bias.zero_()
            self.votes.bias[2] = 1.0  # along the outline, where nothing is known
            self.votes.bias[8:11] = torch.tensor(SPREADS)

    def forward(self, features: Tensor, near: Tensor) -> Tensor:
        h = self.stem(features)
        for block in self.blocks:
            h = block(h, near)
        votes: Tensor = self.votes(torch.relu(h))
        return votes


@dataclass(frozen=True)
class Errors:
    """Of every fragment: D (pitches), |A| (radians), |B|, the logarithms of their spreads (N, 3), and the log-odds that
    it is one of rows and columns beside whether it is."""

    centre: Tensor
    angle: Tensor
    pitch: Tensor
    spreads: Tensor
    logit: Tensor
    celled: Tensor

    def loss(self) -> Tensor:
        """(N,)."""
        c, a, b = self.spreads.clamp_min(LEAST).unbind(dim=1)
        where = 2 * c + self.centre * torch.exp(-c) + a + self.angle * torch.exp(-a) + b + self.pitch * torch.exp(-b)
        return self.celled * where + CELLED * binary_cross_entropy_with_logits(
            self.logit, self.celled, reduction="none"
        )

    def mean(self, of: Tensor) -> Tensor:
        """Over the fragments of rows and columns."""
        return (of * self.celled).sum() / self.celled.sum().clamp_min(1)

    def wrong(self) -> Tensor:
        """Share of the fragments taken for the other sort."""
        return ((self.logit > 0) != (self.celled > 0)).float().mean()


def errors_of(votes: Tensor, batch: FrameBatch) -> Errors:
    """What is wrong with what the votes say."""
    count = len(batch.angle)

    def total(x: Tensor) -> Tensor:
        return torch.zeros(count, *x.shape[1:], dtype=x.dtype).index_add(0, batch.owner, x)

    def shares(logits: Tensor) -> Tensor:
        weight = torch.exp(logits.clamp(-STEEPEST, STEEPEST))
        return (weight / total(weight)[batch.owner])[:, None]

    w, v = shares(votes[:, 4]), shares(votes[:, 5])
    tangent = torch.stack([-batch.normal[:, 1], batch.normal[:, 0]], dim=1)
    said = total(w * (votes[:, :1] * batch.normal + votes[:, 1:2] * tangent))
    per_pitch = torch.exp(-batch.pitch)[:, None]
    away = torch.sqrt((((said - batch.centre) * per_pitch) ** 2).sum(dim=1) + 1e-8)
    tau = 4 * torch.atan2(-tangent[:, 1], tangent[:, 0])
    cos, sin = torch.cos(tau), torch.sin(tau)
    a, b = votes[:, 2], votes[:, 3]
    axis = total(v * torch.stack([a * cos - b * sin, a * sin + b * cos], dim=1))
    want = torch.stack([torch.cos(4 * batch.angle), torch.sin(4 * batch.angle)], dim=1)
    cross = axis[:, 1] * want[:, 0] - axis[:, 0] * want[:, 1]
    off = torch.atan2(cross, (axis * want).sum(dim=1) + 1e-9) / 4
    u = torch.exp(votes[:, 7].clamp(-STEEPEST, STEEPEST))
    means = total(votes[:, 8:]) / total(torch.ones_like(a))[:, None]
    alike = batch.puzzle[:, None] == torch.arange(int(batch.puzzle.max()) + 1)
    weight, said_pitch, spread = (alike.T.to(u.dtype) @ x for x in (total(u), total(u * votes[:, 6]), means[:, 2]))
    pitch = (said_pitch / weight)[batch.puzzle] - batch.pitch
    spread = (spread / alike.sum(dim=0))[batch.puzzle]
    spreads = torch.cat([means[:, :2], spread[:, None]], dim=1)
    return Errors(away, off.abs(), pitch.abs(), spreads, means[:, 3], batch.celled)


class FrameNetwork(nn.Module):
    """The encoder and its loss."""

    def __init__(self, options: FrameOptions) -> None:
        super().__init__()
        self.encoder = FrameEncoder(options)

    def forward(self, batch: FrameBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss over the fragments of a batch, and what to log."""
        found = errors_of(self.encoder(batch.features, batch.near), batch)
        logged = {
            "centre": found.mean(found.centre),
            "degrees": torch.rad2deg(found.mean(found.angle)),
            "pitch": found.mean(found.pitch),
            "wrong": found.wrong(),
        }
        return found.loss().mean(), logged
