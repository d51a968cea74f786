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

Re-ranker, once a promising pair: with a_s, b_s two more maps at ROWS / 2 positions, b again reversed,

    C(s, t) = r(a_s + b_t) + r(a_t + b_s)           r: two convolutions along the seam, pooled to one number

    p(t | s) = exp(S + C)(s, t) / (exp n_s + sum_t' exp(S + C)(s, t'))

No normalisation layer looks at other strips: a strip's code does not depend on what it is batched with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from jigsync.measure.strips import CHANNELS, ROWS


@dataclass(frozen=True)
class MatcherOptions:
    """Sizes of the network.

    Attributes:
        fine: channels of the encoder at ROWS / 2 positions, where it has one residual block.
        width: channels at ROWS / 4 positions.
        dilations: one residual block of two convolutions for each, at ROWS / 4 positions.
        near: channels of f and g at each of ROWS / 2 positions.
        code: channels of f' and g' at each of ROWS / 4 positions.
        pair: channels of the re-ranker.
    """

    fine: int = 64
    width: int = 112
    dilations: tuple[int, ...] = (1, 2, 4)
    near: int = 16
    code: int = 16
    pair: int = 48


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
    """Strips (S, CHANNELS, ROWS) -> left and right (S, E), none (S,), ahead and across (S, pair, ROWS / 2).

    S(s, t) = left_s . right_t + left_t . right_s.
    """

    def __init__(self, options: MatcherOptions) -> None:
        super().__init__()
        fine, width = options.fine, options.width
        self.parts = (options.near, options.near, 1, 1, options.pair, options.pair)
        self.stem = nn.Conv1d(CHANNELS, fine, 6, stride=2, padding=2)
        self.place = nn.Parameter(torch.zeros(1, fine, ROWS // 2))
        self.fine = _Block(fine, 1)
        self.down = nn.Conv1d(fine, width, 4, stride=2, padding=1)
        self.blocks = nn.Sequential(*(_Block(width, dilation) for dilation in options.dilations))
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

    def forward(self, strips: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        fine = torch.relu(self.fine(self.stem(strips) + self.place))
        h = torch.relu(self.blocks(self.down(fine)))
        maps = self.near(fine) + self.wide(h).repeat_interleave(2, dim=2)
        f, g, u, v, ahead, across = maps.split(self.parts, dim=1)
        u, v = torch.sigmoid(u), torch.sigmoid(v)
        k = torch.exp(self.scales[0]) * (f.shape[1] * f.shape[2]) ** -0.5
        left = -k * u * torch.cat([f.square().sum(dim=1, keepdim=True), torch.ones_like(u), -2 * f], dim=1)
        right = v * torch.cat([torch.ones_like(v), g.square().sum(dim=1, keepdim=True), g], dim=1)
        also_left, also_right = self.codes(h).chunk(2, dim=1)
        also_left = also_left * torch.exp(self.scales[1]) * (also_left.shape[1] * also_left.shape[2]) ** -0.5
        left = torch.cat([left.flatten(1), also_left.flatten(1)], dim=1)
        right = torch.cat([right.flip(2).flatten(1), also_right.flip(2).flatten(1)], dim=1)
        none = self.none(torch.cat([h.mean(dim=2), h.amax(dim=2)], dim=1)).squeeze(1)
        return left, right, none, ahead, across.flip(2)


class Ranker(nn.Module):
    """Maps of both sides of a seam (P, pair, ROWS / 2) each -> (P,): r(a_s + b_t)."""

    def __init__(self, options: MatcherOptions) -> None:
        super().__init__()
        pair = options.pair
        self.first = nn.Conv1d(pair, pair, 4, stride=2, padding=1)
        self.second = nn.Conv1d(pair, pair, 3, padding=1)
        last = nn.Linear(pair, 1)
        nn.init.zeros_(last.weight)
        self.out = nn.Sequential(nn.Linear(2 * pair, pair), nn.ReLU(), last)

    def forward(self, ahead: Tensor, across: Tensor) -> Tensor:
        x = torch.relu(self.first(torch.relu(ahead + across)))
        x = x + torch.relu(self.second(x))
        score: Tensor = self.out(torch.cat([x.mean(dim=2), x.amax(dim=2)], dim=1))
        return score.squeeze(1)


HARD: Final = 10
"""Candidates of a side that are re-ranked in training."""


@dataclass(frozen=True)
class Batch:
    """Some puzzles' sides, one after the other.

    Attributes:
        strips: (S, CHANNELS, ROWS) float32.
        partner: (S,) the touching side within the side's own puzzle, -1 for none.
        spans: start and stop of each puzzle.
        chosen: (R,) ascending sides whose candidates are re-ranked.
    """

    strips: Tensor
    partner: Tensor
    spans: tuple[tuple[int, int], ...]
    chosen: Tensor


def side_logits(left: Tensor, right: Tensor) -> Tensor:
    """S of all sides of one puzzle, -inf between sides of one fragment. Shapes: (S, E) each -> (S, S)."""
    logits = left @ right.T
    logits = logits + logits.T
    fragment = torch.arange(len(left)) // 4
    return logits.masked_fill(fragment[:, None] == fragment, -torch.inf)


def hardest(logits: Tensor, partner: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest candidates of each row by S, and which is true: their number for none, -1 when it is missing.

    The true side is not put among them by force: next to candidates that were chosen for a high S it would stand out by
    a low one, and the re-ranker would learn to contradict S.

    Shapes: (R, S), (R,) -> (R, K), (R,).
    """
    found = logits.topk(min(HARD, logits.shape[1] - 4), dim=1).indices
    hit = found == partner[:, None]
    target = torch.where(hit.any(dim=1), hit.int().argmax(dim=1), -1)
    return found, torch.where(partner >= 0, target, found.shape[1])


class Matcher(nn.Module):
    """Encoder and re-ranker, trained together."""

    def __init__(self, options: MatcherOptions) -> None:
        super().__init__()
        self.encoder = Encoder(options)
        self.ranker = Ranker(options)

    def rank(self, ahead: Tensor, across: Tensor, s: Tensor, t: Tensor) -> Tensor:
        """C of pairs of sides. Shapes: ahead, across of all sides, s, t (P,) -> (P,)."""
        score: Tensor = self.ranker(ahead[s], across[t]) + self.ranker(ahead[t], across[s])
        return score

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss of a batch of puzzles, and what to log. The loss is inside forward so that it can be distributed.

        encode: -log p(true | s) over all candidates by S alone; rank: by S + C over the HARD candidates that S finds
        likeliest, and none, of the sides whose true one is among them.
        """
        left, right, none, ahead, across = self.encoder(batch.strips)
        totals: dict[str, list[Tensor]] = {"encode": [], "top1": [], "rank": [], "ranked": []}
        for start, stop in batch.spans:
            sides = slice(start, stop)
            partner, chosen = (
                batch.partner[sides],
                batch.chosen[(batch.chosen >= start) & (batch.chosen < stop)] - start,
            )
            logits = side_logits(left[sides], right[sides])
            target = torch.where(partner >= 0, partner, stop - start)
            full = torch.cat([logits, none[sides, None]], dim=1)
            totals["encode"].append(nn.functional.cross_entropy(full, target, reduction="none"))
            totals["top1"].append((logits.argmax(dim=1) == partner)[partner >= 0].float())
            candidates, target = hardest(logits.detach()[chosen], partner[chosen])
            told = target >= 0
            chosen, candidates, target = chosen[told], candidates[told], target[told]
            s, t = chosen.repeat_interleave(candidates.shape[1]) + start, candidates.flatten() + start
            ranked = self.rank(ahead, across, s, t).view_as(candidates) + logits[chosen].gather(1, candidates)
            full = torch.cat([ranked, none[chosen + start, None]], dim=1)
            totals["rank"].append(nn.functional.cross_entropy(full, target, reduction="none"))
            totals["ranked"].append((full.argmax(dim=1) == target).float())
        means = {name: (all_of := torch.cat(parts)).sum() / max(1, len(all_of)) for name, parts in totals.items()}
        return means["encode"] + means["rank"], means
