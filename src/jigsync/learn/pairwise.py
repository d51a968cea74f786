"""The pairwise model: 192 logits of an ordered pair of fragments, from features of their four views.

Features f_(i,m) of view m of fragment i (the fragment turned by m), and the score and cell that the unary head reads
off them, come from the frozen unary head. A projection and, with context, attention over the views of all other
fragments make codes e_(i,m). One scorer S looks at two views as if both stood in one canvas, and scores the 48 buckets
of their displacement there:

    S(u, v) = W relu(A u + B v + (P u) * (Q v) + c log N)             (48,)
    L_ij[b, r] = 1/4 sum_m S(e_(i,m), e_(j,m+r))[T_m b]               T_m b: the bucket in i's frame turned by m
    logits_ij  = (L_ij + L_ji[REVERSE]) / 2

Turning i permutes its views, which moves L by TURN_I; turning j by TURN_J (values/vocabulary.py): equivariance by
construction, and so is the symmetry under reversal. Attention weighs single views, so it keeps both.

The comparator is the same model without attention: it sees two fragments and how many there are.

Shapes: features (N, 4, F + HEADS) -> logits (N, N, 192), the diagonal unused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.lite0 import FEATURES
from jigsync.measure.described import HEADS
from jigsync.values import vocabulary as v
from jigsync.values import z4

DROPPED: Final = 0.5
"""Share of the features that training leaves out: there are many of them, and few puzzles."""


@dataclass(frozen=True)
class PairwiseOptions:
    """Sizes of the network: codes, hidden units of the scorer, rounds and heads of attention (0: the comparator)."""

    code: int = 48
    hidden: int = 64
    rounds: int = 2
    heads: int = 4


@dataclass(frozen=True)
class PairBatch:
    """Some puzzles. Shapes: features each (N, 4, F + HEADS), relations each (N, N) with -1 on the diagonal."""

    features: tuple[Tensor, ...]
    relations: tuple[Tensor, ...]


class Attention(nn.Module):
    """Views look at the views of all other fragments. Shapes: (4N, D) -> (4N, D)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.after = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def forward(self, codes: Tensor, own: Tensor) -> Tensor:
        """`own` (4N, 4N) is True between views of one fragment."""
        x = self.norm(codes)
        q, k, value = (
            part(x).unflatten(1, (self.heads, -1)).transpose(0, 1) for part in (self.query, self.key, self.value)
        )
        score = q @ k.transpose(1, 2) * (q.shape[-1] ** -0.5)
        # Finite: a puzzle of one fragment has nobody to look at.
        seen = torch.softmax(torch.where(own, torch.full_like(score, -1e4), score), dim=-1) @ value
        codes = codes + self.out(seen.transpose(0, 1).flatten(1))
        return codes + self.after(codes)  # type: ignore[no-any-return]


def _gathers() -> Tensor:
    """(4, 192): for every m, where S(e_(i,m), e_(j,m+r))[T_m b] is in S flattened as (m, k, bucket)."""
    every = np.arange(v.RELATIONS)
    rows = []
    for m in range(z4.ORDER):
        bucket = v.bucket(v.TURN_I[m, every])
        rows.append((m * z4.ORDER + (m + v.relative(every)) % z4.ORDER) * v.BUCKETS + bucket)
    return torch.from_numpy(np.stack(rows))


class Pairwise(nn.Module):
    """The pairwise model, or the comparator."""

    def __init__(self, options: PairwiseOptions) -> None:
        super().__init__()
        code, hidden = options.code, options.hidden
        self.project = nn.Sequential(nn.LayerNorm(FEATURES), nn.Dropout(DROPPED), nn.Linear(FEATURES, code))
        self.told = nn.Sequential(nn.Linear(HEADS, code), nn.ReLU(), nn.Linear(code, code))
        self.context = nn.ModuleList(Attention(code, options.heads) for _ in range(options.rounds))
        self.norm = nn.LayerNorm(code)
        self.first, self.second = nn.Linear(code, 2 * hidden), nn.Linear(code, 2 * hidden)
        self.count = nn.Linear(1, hidden)
        self.out = nn.Linear(hidden, v.BUCKETS)
        self.register_buffer("gathers", _gathers(), persistent=False)
        self.register_buffer("reverse", torch.from_numpy(v.REVERSE.copy()), persistent=False)

    gathers: Tensor
    reverse: Tensor

    def logits(self, features: Tensor) -> Tensor:
        """Shapes: (N, 4, F + HEADS) -> (N, N, 192)."""
        n = features.shape[0]
        flat = features.flatten(0, 1)
        codes = self.project(flat[:, :FEATURES]) + self.told(flat[:, FEATURES:])
        fragment = torch.arange(n).repeat_interleave(z4.ORDER)
        own = fragment[:, None] == fragment
        for layer in self.context:
            codes = layer(codes, own)
        codes = self.norm(codes)
        a, p = self.first(codes).chunk(2, dim=1)
        b, q = self.second(codes).chunk(2, dim=1)
        many = torch.log(torch.ones(1, 1) * n) - 2.5
        hidden = torch.relu(a[:, None] + b + p[:, None] * q + self.count(many))
        scores = self.out(hidden).unflatten(0, (n, z4.ORDER)).unflatten(2, (n, z4.ORDER))
        each = scores.transpose(1, 2).flatten(2)
        one = sum(each[:, :, self.gathers[m]] for m in range(z4.ORDER)) / z4.ORDER
        assert isinstance(one, Tensor)
        return (one + one.transpose(0, 1)[:, :, self.reverse]) / 2

    def forward(self, batch: PairBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss over puzzles, each the mean over its pairs, and what to log."""
        losses, right = [], []
        for features, relations in zip(batch.features, batch.relations, strict=True):
            apart = relations >= 0
            logits, target = self.logits(features)[apart], relations[apart]
            losses.append(nn.functional.cross_entropy(logits, target))
            right.append((logits.argmax(dim=1) == target).float().mean())
        return torch.stack(losses).mean(), {"right": torch.stack(right).mean()}
