"""Losses of a unary head on puzzles whose global turn, the gauge, is not known.

A puzzle's fragments carry turns t_i and centres c_i of a canvas that was itself turned by an unknown amount. Under the
hypothesis that g more turns make it upright, fragment i has turns t_i + g and the centre 1/2 + R(g)(c_i - 1/2), so a
puzzle has four losses, one a gauge, each the mean over its fragments:

    l_g = mean_i [ - log p_i(t_i + g) + w * cell(i, t_i + g, 1/2 + R(g)(c_i - 1/2)) ]

    fixed      l_0                         the gauge is known: the control
    min        min_g l_g                   the paper's; the gradient flows through the winner
    soft-min   - T log sum_g exp(- l_g / T)     T falls to 0 during training
    cached     l_g at g = argmin of the running mean of this puzzle's l_g over epochs

An equivariant head (learn/unary.py) gives the same four losses in another order when the whole puzzle is turned, so
`min` and `soft-min` do not depend on how the pictures were turned, and find "up" only up to one turn for all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.values import z4

LOSSES: Final = ("fixed", "min", "soft-min", "cached")
KEEP: Final = 0.9
"""How much of a puzzle's running mean a new epoch keeps."""


def turned_centres(centre: Tensor) -> Tensor:
    """1/2 + R(g)(c - 1/2) for the four g. Shapes: (..., 2) -> (..., 4, 2)."""
    matrices = torch.from_numpy(np.stack([z4.matrix(g) for g in range(z4.ORDER)])).to(centre.dtype)
    return 0.5 + torch.einsum("gab,...b->...ga", matrices, centre - 0.5)


def under_gauges(by_turn: Tensor, turns: Tensor) -> Tensor:
    """What a head says of turns t + g, for the four g. Shapes: (..., 4, *), (...) -> (..., 4, *)."""
    at = (turns[..., None] + torch.arange(z4.ORDER)) % z4.ORDER
    extra = by_turn.dim() - at.dim()
    index = at.reshape(*at.shape, *(1,) * extra).expand(*at.shape, *by_turn.shape[at.dim() :])
    return by_turn.gather(at.dim() - 1, index)


def turn_branches(z: Tensor, turns: Tensor) -> Tensor:
    """- log p(t + g). Shapes: z (..., 4), turns (...) -> (..., 4)."""
    return -under_gauges(torch.log_softmax(z, dim=-1), turns)


def chosen(branches: Tensor, loss: str, temperature: float = 0.0, remembered: Tensor | None = None) -> Tensor:
    """The loss of every puzzle. Shapes: (P, 4), remembered (P, 4) for `cached` -> (P,)."""
    if loss == "fixed":
        return branches[:, 0]
    if loss == "soft-min" and temperature > 0:
        return -temperature * torch.logsumexp(-branches / temperature, dim=1)
    by = branches if remembered is None else remembered
    return branches.gather(1, by.argmin(dim=1, keepdim=True)).squeeze(1)


class GaugeCache(nn.Module):
    """Running means of every puzzle's four losses; a buffer, so that a checkpoint holds it."""

    def __init__(self, puzzles: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(puzzles, z4.ORDER))
        self.register_buffer("seen", torch.zeros(puzzles))

    means: Tensor
    seen: Tensor

    @torch.no_grad()
    def remember(self, puzzle: Tensor, branches: Tensor) -> Tensor:
        """Takes in the losses of some puzzles; returns their means. Shapes: (P,), (P, 4) -> (P, 4)."""
        keep = torch.where(self.seen[puzzle] > 0, KEEP, 0.0)[:, None]
        self.means[puzzle] = keep * self.means[puzzle] + (1 - keep) * branches.detach()
        self.seen[puzzle] = 1.0
        return self.means[puzzle]
