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
SMALLEST: Final = 1e-30
"""Least share of a softmax whose logarithm is taken."""


@dataclass(frozen=True)
class ContourOptions:
    """Sizes of the network.

    Attributes:
        width: channels.
        dilations: of the blocks, in samples; each of DISTANCES.
        code: length of f and of g.
        anchors: samples of a puzzle whose loss is taken in a step, at most.
    """

    width: int = 128
    dilations: tuple[int, ...] = (1, 2, 4, 8, 16, 4, 1)
    code: int = 32
    anchors: int = 768


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


class Block(nn.Module):
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
        self.blocks = nn.ModuleList(Block(width, DISTANCES.index(-d), DISTANCES.index(d)) for d in options.dilations)
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


class _Nats(torch.autograd.Function):
    """-log p of the truth, in as few passes over the scores as there can be, and in one array of them.

    The gradient of a score is p(t | s) - p(t | s, the truth), and so is that of the logit of "no mate".
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, Tensor]:
        expected, codes, none, around, has, blocks = given
        scores = expected @ codes.T
        for rows, columns in blocks:
            scores[rows, columns] = -torch.inf
        best = scores.max(dim=1)
        top = torch.maximum(best.values, none)
        share = scores.sub_(top[:, None]).exp_()
        of_none = torch.exp(none - top)
        total = share.sum(dim=1) + of_none
        true = torch.where(has, share.gather(1, around).sum(dim=1), of_none).clamp_min(SMALLEST)
        ctx.save_for_backward(expected, codes, share, of_none, total, true, around, has)
        found = (best.indices[:, None] == around).any(dim=1) & (best.values > none)
        hit = torch.where(has, found, best.values < none)
        ctx.mark_non_differentiable(hit)
        return total.log() - true.log(), hit

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        expected, codes, share, of_none, total, true, around, has = ctx.saved_tensors
        grad = grads[0]
        own = share.gather(1, around) * (grad * has / true)[:, None]
        of_scores = share.mul_((grad / total)[:, None]).scatter_add_(1, around, -own)
        of_no_mate = grad * (of_none / total - (~has).to(grad.dtype))
        return of_scores @ codes, of_scores.T @ expected, of_no_mate, None, None, None


def losses(f: Tensor, g: Tensor, none: Tensor, batch: Batch, puzzle: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of a puzzle's anchors: -log p(the truth), whether the likeliest is right, whether they have a mate. (A,) each."""
    first, last = batch.spans[puzzle]
    rows = batch.anchors[puzzle]
    codes, expected = torch.cat([f[first:last], g[first:last]], dim=1), torch.cat([g[rows], f[rows]], dim=1)
    mate = batch.mate[rows]
    has = mate >= 0
    at = mate.clamp_min(first)
    around = torch.cat([at[:, None], batch.sides[at]], dim=1) - first
    blocks = _same_fragment(batch.owner[rows], batch.owner[first:last])
    nats, hit = _Nats.apply(expected, codes, none[rows], around, has, blocks)  # type: ignore[no-untyped-call]
    return nats, hit.float(), has


def _same_fragment(asking: Tensor, owner: Tensor) -> list[tuple[slice, slice]]:
    """For every fragment its rows and its columns of the scores; both are sorted by fragment. Shapes: (A,), (S,)."""
    fragments = torch.arange(int(owner[0]), int(owner[-1]) + 2)
    rows, columns = (torch.searchsorted(numbers, fragments).tolist() for numbers in (asking, owner))
    return [(slice(*rows[k : k + 2]), slice(*columns[k : k + 2])) for k in range(len(fragments) - 1)]


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
