"""The boundary matcher: which sides touch, from strips along the contour (`measure.strips`).

Encoder, once a side: residual convolutions along the strip, at ROWS / 2 and then, dilated, at ROWS / 4 positions. Each
side has a code "as left" neighbour and one "as right"; the latter has its positions reversed, because the side across
the seam is seen half-turned, so that p below is the same place on the seam for both:

    d(s, t) = sum_p u_s(p) v_t(p) |f_s(p) - g_t(p)|^2      what s expects beyond the seam against what t expects, at
                                                           places that both can tell: u, v in [0, 1]
    c(s, t) = sum_p f'_s(p) . g'_t(p)                      whatever else speaks for or against
    S(s, t) = c(s, t) + c(t, s) - k (d(s, t) + d(t, s))    symmetric: turning the pair by 180 degrees swaps the terms

All of S is left_s . right_t + left_t . right_s for two vectors a side, because u v |f - g|^2 is the dot product of
(u |f|^2, u, -2 u f) and (v, v |g|^2, v g). n_s is the logit of "no neighbour": the picture's edge.

    p(t | s) = exp(S(s, t)) / (exp n_s + sum_t' exp(S(s, t')))

Before its last block a side is told of its whole fragment: what its own positions pool to, and those of all four sides.

No layer looks at other fragments: a fragment's codes do not depend on what it is batched with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from jigsync.measure.strips import CHANNELS, ROWS
from jigsync.values import z4

TOUCHING, BORDER = 0.75, 0.4
"""What S and "no neighbour" count in `placing_losses`: what made the truth likeliest on 80 validation puzzles, eroded
and with a rim cut off, before anything was trained with this loss."""
NEVER: Final = -1e4


@dataclass(frozen=True)
class MatcherOptions:
    """Sizes of the network.

    Attributes:
        fine: channels of the encoder at ROWS / 2 positions, where it has one residual block.
        width: channels at ROWS / 4 positions.
        dilations: one residual block of two convolutions for each, at ROWS / 4 positions.
        near: channels of f and g at each of ROWS / 2 positions.
        code: channels of f' and g' at each of ROWS / 4 positions.
    """

    fine: int = 64
    width: int = 112
    dilations: tuple[int, ...] = (1, 2, 4)
    near: int = 16
    code: int = 16


class _Block(nn.Module):
    """x + W2 * relu(W1 * relu(x)), 3 taps each; W2 starts at 0, so that a deep stack starts as the identity."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.second = nn.Conv1d(width, width, 3, padding=1)
        nn.init.zeros_(self.second.weight)

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.second(torch.relu(self.first(torch.relu(x))))
        return x + inner


class Encoder(nn.Module):
    """Strips (S, CHANNELS, ROWS) of whole fragments -> left and right (S, E), none (S,).

    S(s, t) = left_s . right_t + left_t . right_s.
    """

    def __init__(self, options: MatcherOptions) -> None:
        super().__init__()
        fine, width = options.fine, options.width
        self.parts = (options.near, options.near, 1, 1)
        self.stem = nn.Conv1d(CHANNELS, fine, 6, stride=2, padding=2)
        self.place = nn.Parameter(torch.zeros(1, fine, ROWS // 2))
        self.fine = _Block(fine, 1)
        self.down = nn.Conv1d(fine, width, 4, stride=2, padding=1)
        self.blocks = nn.Sequential(*(_Block(width, dilation) for dilation in options.dilations))
        self.context = nn.Linear(4 * width, width)
        nn.init.zeros_(self.context.weight)
        self.codes = nn.Conv1d(width, 2 * options.code, 1)
        self.near = nn.Conv1d(fine, sum(self.parts), 1)
        self.wide = nn.Conv1d(width, sum(self.parts), 1)
        self.none = nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, 1))
        self.scales = nn.Parameter(torch.tensor([0.0, 0.0]))
        with torch.no_grad():  # what looks alike fits: f and g start as the same map
            for layer in (self.near, self.wide):
                for tensor in (layer.weight, layer.bias):
                    assert tensor is not None
                    tensor[options.near : 2 * options.near] = tensor[: options.near]

    def forward(self, strips: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fine = torch.relu(self.fine(self.stem(strips) + self.place))
        h = self.blocks[:-1](self.down(fine))
        own = _pooled(torch.relu(h))
        whole = own.view(-1, z4.ORDER, own.shape[1]).mean(dim=1).repeat_interleave(z4.ORDER, dim=0)
        h = torch.relu(self.blocks[-1](h + self.context(torch.cat([own, whole], dim=1))[:, :, None]))
        maps = self.near(fine) + self.wide(h).repeat_interleave(2, dim=2)
        f, g, u, v = maps.split(self.parts, dim=1)
        u, v = torch.sigmoid(u), torch.sigmoid(v)
        k = torch.exp(self.scales[0]) * (f.shape[1] * f.shape[2]) ** -0.5
        left = -k * u * torch.cat([f.square().sum(dim=1, keepdim=True), torch.ones_like(u), -2 * f], dim=1)
        right = v * torch.cat([torch.ones_like(v), g.square().sum(dim=1, keepdim=True), g], dim=1)
        also_left, also_right = self.codes(h).chunk(2, dim=1)
        also_left = also_left * torch.exp(self.scales[1]) * (also_left.shape[1] * also_left.shape[2]) ** -0.5
        left = torch.cat([left.flatten(1), also_left.flatten(1)], dim=1)
        right = torch.cat([right.flip(2).flatten(1), also_right.flip(2).flatten(1)], dim=1)
        none = self.none(_pooled(h)).squeeze(1)
        return left, right, none


def _pooled(x: Tensor) -> Tensor:
    """Mean and maximum along the strip. Shapes: (S, C, L) -> (S, 2 C)."""
    return torch.cat([x.mean(dim=2), x.amax(dim=2)], dim=1)


@dataclass(frozen=True)
class Batch:
    """Some puzzles' sides, one after the other.

    Attributes:
        strips: (S, CHANNELS, ROWS) float32.
        partner: (S,) the touching side within the side's own puzzle, -1 for none.
        spans: start and stop of each puzzle.
    """

    strips: Tensor
    partner: Tensor
    spans: tuple[tuple[int, int], ...]


def side_logits(left: Tensor, right: Tensor) -> Tensor:
    """S of all sides of one puzzle, -inf between sides of one fragment. Shapes: (S, E) each -> (S, S)."""
    logits = left @ right.T
    logits = logits + logits.T
    fragment = torch.arange(len(left)) // z4.ORDER
    return logits.masked_fill(fragment[:, None] == fragment, -torch.inf)


def side_losses(logits: Tensor, none: Tensor, partner: Tensor) -> Tensor:
    """-log p(true | s). Shapes: (S, S), (S,), (S,) -> (S,)."""
    target = torch.where(partner >= 0, partner, len(logits))
    return nn.functional.cross_entropy(torch.cat([logits, none[:, None]], dim=1), target, reduction="none")


def placing_losses(logits: Tensor, none: Tensor, partner: Tensor) -> Tensor:
    """-log p(fragment i where it belongs | all others where they belong), against turning it and exchanging it.

    What (j, q), fragment j with q turns more, would score where i belongs, with a_i the sides of i and t(a_i) what they
    truly touch, is

        E(i; j, q) = TOUCHING sum_{a_i inside} S(t(a_i), (a + q)_j) + BORDER sum_{a_i on the border} n_{(a + q)_j}

    and with D = E - E(i; i, 0), over all j that do not touch i and all turns of both,

        -log p_i = log(1 + sum_{q > 0} exp D(i; i, q) + sum_{j, q, r} exp(D(i; j, q) + D(j; i, r))).

    Evidence that several sides of a fragment share, as its mean colour, counts once here, while each side's own softmax
    takes it for news. Shapes: (S, S), (S,), (S,) -> (S / 4,).
    """
    n = len(logits) // z4.ORDER
    turns = torch.arange(z4.ORDER)
    seen = torch.cat([TOUCHING * logits, BORDER * none[None]])[torch.where(partner >= 0, partner, len(logits))]
    after = (turns[:, None] + turns) % z4.ORDER
    seen = seen.view(n, z4.ORDER, n, z4.ORDER).gather(3, after[None, :, None, :].expand(n, -1, n, -1)).sum(dim=1)
    seen = seen.clamp_min(NEVER)  # -inf where j touches i
    own = seen.diagonal().T
    lead = seen.logsumexp(dim=2) - own[:, :1]
    exchanged = (lead + lead.T).masked_fill(torch.eye(n, dtype=torch.bool), NEVER)
    return torch.cat([own - own[:, :1], exchanged], dim=1).logsumexp(dim=1)


def loss_of(said: Sequence[tuple[Tensor, Tensor, Tensor]], placing: float) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of what is said of some puzzles, and what to log.

    Mean `side_losses`, plus `placing` times mean `placing_losses`. Shapes of each puzzle: logits (S, S), none and
    partner (S,).
    """
    loss = torch.cat([side_losses(*puzzle) for puzzle in said]).mean()
    if not placing:
        return loss, {}
    placed = torch.cat([placing_losses(*puzzle) for puzzle in said]).mean()
    return loss + placing * placed, {"placing": placed}


class Matcher(nn.Module):
    """The encoder and its loss: that of the sides, and `placing` times that of the placing."""

    def __init__(self, options: MatcherOptions, placing: float = 0.0) -> None:
        super().__init__()
        self.encoder = Encoder(options)
        self.placing = placing

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch of puzzles, and what to log.

        The loss is inside forward so that it can be distributed.
        """
        left, right, none = self.encoder(batch.strips)
        every = [slice(*span) for span in batch.spans]
        said = [(side_logits(left[sides], right[sides]), none[sides], batch.partner[sides]) for sides in every]
        hits = [(logits.argmax(dim=1) == partner)[partner >= 0].float() for logits, _, partner in said]
        loss, means = loss_of(said, self.placing)
        return loss, {"top1": torch.cat(hits).mean()} | means
