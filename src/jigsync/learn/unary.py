"""The unary head: how a fragment, or an assembled picture, stands, and which cell it belongs to.

One network scores one view; the four turns of a fragment go through it in one batch:

    z_k       = score(view_k),   p(turns = k) = softmax_k(z_k)       canvas turns k: view_k would be upright
    xy_k, s_k = centre and log standard deviation of its cell, if view_k is upright

Turning the fragment permutes the views and so the answer: equivariance by construction. Loss, with t the true turns
and c the true centre, for fragments that have one (Gaussian, both axes one variance):

    - log p(t) + CELLS * ( |c - xy_t|^2 / (2 s_t^2) + 2 log s_t )

With another loss than `fixed` the views of one sample are a puzzle whose gauge is unknown, and `gauge_loss` says which
of the four is trained.

Shapes: views (B, 4, 3, S, S) -> z (B, 4), cells (B, 4, 3) as (x, y, log s).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from jigsync.learn.gauge_loss import GaugeCache, chosen, turn_branches, turned_centres, under_gauges
from jigsync.learn.lite0 import FEATURES, Lite0

CELLS: Final = 0.15
"""What the cell's loss counts."""
LOG_SIGMA: Final = (-3.0, 0.5)
"""Range of log s."""
TEMPERATURE: Final = 0.5
"""Of soft-min, at the first step."""


@dataclass(frozen=True)
class UnaryBatch:
    """Views of one or several sizes.

    Attributes:
        views: each (B, 4, 3, S, S) float32.
        turns: each (B,) true canvas turns.
        cells: each (B, 2) true centres, or None where there are none.
        names: what the log calls them.
        puzzles: (samples,) number of every sample's picture; part k of B views has B / samples of each, in order.
    """

    views: tuple[Tensor, ...]
    turns: tuple[Tensor, ...]
    cells: tuple[Tensor | None, ...]
    names: tuple[str, ...]
    puzzles: Tensor | None = None


class Unary(nn.Module):
    """Lite0 and two linear heads.

    Args:
        loss: one of `gauge_loss.LOSSES`.
        puzzles: how many pictures there are, for `cached`.
        cold: step at which soft-min has become the minimum.
    """

    def __init__(self, loss: str = "fixed", puzzles: int = 0, cold: int = 1) -> None:
        super().__init__()
        self.loss, self.cold = loss, cold
        if loss == "cached":
            self.cache = GaugeCache(puzzles)
        if loss == "soft-min":
            self.register_buffer("steps", torch.zeros(()))
        self.encoder = Lite0()
        self.turn = nn.Linear(FEATURES, 1)
        self.cell = nn.Linear(FEATURES, 3)
        for layer in (self.turn, self.cell):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    steps: Tensor

    def score(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """Shapes: (M, 3, S, S) -> z (M,), cells (M, 3)."""
        return self.read(self.encoder(views))

    def read(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Both heads. Shapes: (M, FEATURES) -> z (M,), cells (M, 3)."""
        cell = self.cell(features)
        xy = 0.5 + cell[:, :2]
        return self.turn(features).squeeze(1), torch.cat([xy, cell[:, 2:].clamp(*LOG_SIGMA)], dim=1)

    def forward(self, batch: UnaryBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss and what to log."""
        log: dict[str, Tensor] = {}
        total, branches = torch.zeros(()), []
        for views, turns, centre, name in zip(batch.views, batch.turns, batch.cells, batch.names, strict=True):
            z, cells = self.score(views.flatten(0, 1))
            z, cells = z.view(-1, 4), cells.view(-1, 4, 3)
            log[name] = nn.functional.cross_entropy(z, turns)
            log[f"{name} right"] = (z.argmax(dim=1) == turns).float().mean()
            total = total + log[name]
            if centre is not None:
                log[f"{name} cell"] = cell_loss(cells[torch.arange(len(turns)), turns], centre)
                total = total + CELLS * log[f"{name} cell"]
            if batch.puzzles is not None:
                four = turn_branches(z, turns)
                if centre is not None:
                    four = four + CELLS * gaussian(under_gauges(cells, turns), turned_centres(centre))
                branches.append(four.view(len(batch.puzzles), -1, 4).mean(dim=1))
        if batch.puzzles is None:
            return total, log
        return self._unknown(batch.puzzles, torch.stack(branches).sum(dim=0)), log

    def _unknown(self, puzzles: Tensor, branches: Tensor) -> Tensor:
        """The mean loss of puzzles whose gauge is unknown. Shapes: (P,), (P, 4) -> ()."""
        remembered = self.cache.remember(puzzles, branches) if self.loss == "cached" else None
        temperature = 0.0
        if self.loss == "soft-min":
            temperature = TEMPERATURE * max(0.0, 1 - float(self.steps) / self.cold)
            self.steps += 1
        return chosen(branches, self.loss, temperature, remembered).mean()


def gaussian(cells: Tensor, centre: Tensor) -> Tensor:
    """-log of the Gaussian, up to a constant. Shapes: (..., 3), (..., 2) -> (...)."""
    square = (centre - cells[..., :2]).square().sum(dim=-1)
    return square / 2 * torch.exp(-2 * cells[..., 2]) + 2 * cells[..., 2]


def cell_loss(cells: Tensor, centre: Tensor) -> Tensor:
    """Mean over fragments. Shapes: (B, 3), (B, 2) -> ()."""
    return gaussian(cells, centre).mean()
