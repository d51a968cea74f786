"""The contour network: which samples of fragments' outlines touched (`measure.outline_features` says what they see).

Residual convolutions around every outline, which has no beginning: a block is

    h <- h + W2 relu(W1 [r(s - d), r(s), r(s + d)]),   r = relu(h),   d the block's dilation, in samples

Each sample gets two unit vectors, f "what I show" and g "what I expect across the seam", and n, the logit of "no mate":

    S(s, t) = exp(k) (f_s . g_t + g_s . f_t)                      symmetric
    p(t | s) = exp S(s, t) / (exp n_s + sum_t' exp S(s, t'))      t' over the samples of all other fragments

The loss is -log of p of the true mate or of one next to it. All outlines of a batch lie one after the other in one
array, and neighbours are looked up by number (`outline_features.neighbours`): nothing is padded, whatever the lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from jigsync.measure.outline_features import CHANNELS, DISTANCES

NO_MATE, IGNORED = -1, -2
"""In place of a mate: there is none; there may be one, and nobody says which."""
SHARPNESS: Final = 6.0
"""exp(k) at the start."""


@dataclass(frozen=True)
class ContourOptions:
    """Sizes of the network.

    Attributes:
        width: channels.
        dilations: of the blocks, in samples; each of DISTANCES.
        code: length of f and of g.
        anchors: samples of a puzzle whose loss is taken in a step, at most.
    """

    width: int = 96
    dilations: tuple[int, ...] = (1, 2, 4, 8, 16, 4, 1)
    code: int = 32
    anchors: int = 1024


class _Along(torch.autograd.Function):
    """Rows of x at the neighbours; the neighbours of the other direction bring gradients back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return x.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (back,) = ctx.saved_tensors
        return grads[0].index_select(0, back), None, None


class _Block(nn.Module):
    """Starts as the identity."""

    def __init__(self, width: int, before: int, after: int) -> None:
        super().__init__()
        self.columns = before, after
        self.first = nn.Linear(3 * width, width)
        self.second = nn.Linear(width, width)
        nn.init.zeros_(self.second.weight)

    def forward(self, h: Tensor, near: Tensor) -> Tensor:
        r = torch.relu(h)
        before, after = (near[:, column] for column in self.columns)
        if self.training:
            along: Any = _Along.apply
            sides = along(r, before, after), r, along(r, after, before)
        else:
            sides = r[before], r, r[after]
        inner: Tensor = self.second(torch.relu(self.first(torch.cat(sides, dim=1))))
        return h + inner


class ContourEncoder(nn.Module):
    """Features (T, CHANNELS) and neighbours (T, len(DISTANCES)) int64 -> f, g (T, E), none (T,).

    f and g are scaled so that S(s, t) = f_s . g_t + g_s . f_t.
    """

    def __init__(self, options: ContourOptions) -> None:
        super().__init__()
        width = options.width
        self.stem = nn.Linear(CHANNELS, width)
        self.blocks = nn.ModuleList(_Block(width, DISTANCES.index(-d), DISTANCES.index(d)) for d in options.dilations)
        self.f = nn.Linear(width, options.code)
        self.g = nn.Linear(width, options.code)
        self.none = nn.Linear(width, 1)
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS).log())
        with torch.no_grad():  # what looks alike fits: f and g start as the same map
            self.g.weight.copy_(self.f.weight)
            self.g.bias.copy_(self.f.bias)

    def forward(self, features: Tensor, near: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.stem(features)
        for block in self.blocks:
            h = block(h, near)
        h = torch.relu(h)
        scale = torch.exp(self.sharpness / 2)
        f, g = (scale * _unit(layer(h)) for layer in (self.f, self.g))
        return f, g, self.none(h).squeeze(1)


def _unit(x: Tensor) -> Tensor:
    return x / torch.sqrt((x * x).sum(dim=1, keepdim=True) + 1e-6)


@dataclass(frozen=True)
class Batch:
    """Some puzzles' samples, one after the other.

    Attributes:
        features: (T, CHANNELS) float32.
        near: (T, len(DISTANCES)) int64.
        owner: (T,) int64, the fragment of each sample, numbered through all puzzles.
        mate: (T,) int64, the sample across the seam, NO_MATE or IGNORED.
        sides: (T, 2) int64, the samples before and after on the same outline.
        anchors: of each puzzle, the samples whose loss is taken, (A,).
        spans: start and stop of each puzzle.
    """

    features: Tensor
    near: Tensor
    owner: Tensor
    mate: Tensor
    sides: Tensor
    anchors: Sequence[Tensor]
    spans: Sequence[tuple[int, int]]


def losses(f: Tensor, g: Tensor, none: Tensor, batch: Batch, puzzle: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of a puzzle's anchors: -log p(the truth), whether the likeliest is right, whether they have a mate. (A,) each."""
    first, last = batch.spans[puzzle]
    rows = batch.anchors[puzzle]
    codes, expected = torch.cat([f[first:last], g[first:last]], dim=1), torch.cat([g[rows], f[rows]], dim=1)
    logits = expected @ codes.T
    logits = logits.masked_fill(batch.owner[rows, None] == batch.owner[first:last], -torch.inf)
    every = torch.logsumexp(torch.cat([logits, none[rows, None]], dim=1), dim=1)
    mate = batch.mate[rows]
    has = mate >= 0
    at = mate.clamp_min(first)
    around = torch.cat([at[:, None], batch.sides[at]], dim=1) - first
    own = logits.gather(1, around)
    true = torch.where(has, torch.logsumexp(torch.where(has[:, None], own, 0.0), dim=1), none[rows])
    best = logits.max(dim=1)
    hit = torch.where(
        has, (best.indices[:, None] == around).any(dim=1) & (best.values > none[rows]), best.values < none[rows]
    )
    return every - true, hit.float(), has


class ContourNetwork(nn.Module):
    """The encoder and its loss."""

    def __init__(self, options: ContourOptions) -> None:
        super().__init__()
        self.encoder = ContourEncoder(options)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss over the puzzles of a batch, and what to log."""
        f, g, none = self.encoder(batch.features, batch.near)
        said = [losses(f, g, none, batch, puzzle) for puzzle in range(len(batch.spans))]
        loss = torch.stack([part.mean() for part, _, _ in said]).mean()
        hit, has = torch.cat([part for _, part, _ in said]), torch.cat([part for _, _, part in said])
        return loss, {"top1": hit[has].mean(), "border": hit[~has].sum() / (~has).sum().clamp_min(1)}
