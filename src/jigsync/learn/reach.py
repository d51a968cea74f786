"""The reach head: how far it is from each side of a fragment to the picture's border, told by all fragments together.

Whoever sees the whole heap knows more than one who sees a fragment: which of them are backdrop, where a frame runs,
what only two others continue. A token is a side. It begins with what Lite0 sees there and behind (`looks` of the
likeness head), as it is and against the puzzle's mean, and with what the scores leave to "no neighbour". A round is

    turn    the four sides of a fragment speak with each other: W (h_a, h_(a+1), h_(a+2), h_(a+3))
    seam    a side hears who may lie across: sum_t p(t | s) V h_t + p(none | s) e,  p at learned temperatures
    look    attention to all sides of the puzzle

and the end is a piecewise linear function phi_s of KNOTS values on [0, 1]. Of an axis of L cells, the fragment with its
side a to one end and a + 2 to the other, d cells between a and that end,

    p(d) = softmax_d (phi_a(u_d) + phi_(a+2)(1 - u_d)),     u_d = (d + 1/2) / L

which is in the fragment's own frame: turning a fragment permutes its tokens, and the gauge does not enter.

Shapes: looks (4N, LOOK), scores (4N, 4N) with NEVER within a fragment, none (4N,) -> phi (4N, KNOTS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from jigsync.learn.likeness import LOOK, SPREAD
from jigsync.values import z4
from jigsync.values.border import KNOTS

HINTS: Final = 4
"""Numbers a side that its scores tell at once."""


@dataclass(frozen=True)
class ReachOptions:
    """Sizes of the network.

    Attributes:
        width: channels of a token.
        rounds: of turn, seam and look.
        heads: of attention.
        seams: temperatures at which a side hears who may lie across.
        drop: share of the looks that training leaves out: there are many of them, and few pictures.
    """

    width: int = 96
    rounds: int = 3
    heads: int = 4
    seams: int = 2
    drop: float = 0.3


class _Turn(nn.Module):
    """Sides of one fragment, each seeing the others in the order in which they follow."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.hear = nn.Linear(z4.ORDER * width, 2 * width)
        self.say = nn.Linear(2 * width, width)
        nn.init.zeros_(self.say.weight)

    def forward(self, h: Tensor) -> Tensor:
        sides = self.norm(h).view(-1, z4.ORDER, h.shape[1])
        around = torch.cat([torch.cat([sides[:, k:], sides[:, :k]], dim=1) for k in range(z4.ORDER)], dim=2)
        said: Tensor = self.say(torch.relu(self.hear(around.view(-1, z4.ORDER * h.shape[1]))))
        return h + said


class _Seam(nn.Module):
    """What may lie across, by the scores."""

    def __init__(self, width: int, seams: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.cold = nn.Parameter(torch.linspace(-0.5, 0.5, seams))
        self.say = nn.Linear(seams * (width + 1), width)
        nn.init.zeros_(self.say.weight)

    def forward(self, h: Tensor, scores: Tensor) -> Tensor:
        across = self.norm(h)
        heard = []
        for cold in self.cold:
            p = torch.softmax(torch.exp(cold) * scores, dim=1)
            heard += [p[:, :-1] @ across, p[:, -1:]]
        said: Tensor = self.say(torch.cat(heard, dim=1))
        return h + said


class _Look(nn.Module):
    """Attention to all sides."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.ask = nn.Linear(width, 3 * width)
        self.say = nn.Linear(width, width)
        nn.init.zeros_(self.say.weight)

    def forward(self, h: Tensor) -> Tensor:
        each = h.shape[1] // self.heads
        asked = self.ask(self.norm(h)).view(-1, 3, self.heads, each)
        query, key, value = (asked[:, k].transpose(0, 1) for k in range(3))
        weight = torch.softmax(query @ key.transpose(1, 2) * each**-0.5, dim=2)
        said: Tensor = self.say((weight @ value).transpose(0, 1).reshape(-1, h.shape[1]))
        return h + said


class Reach(nn.Module):
    """The network and its loss."""

    def __init__(self, options: ReachOptions) -> None:
        super().__init__()
        width = options.width
        self.drop = nn.Dropout(options.drop)
        self.read = nn.Linear(2 * LOOK + HINTS, width)
        self.turns = nn.ModuleList(_Turn(width) for _ in range(options.rounds + 1))
        self.seams = nn.ModuleList(_Seam(width, options.seams) for _ in range(options.rounds))
        self.looks = nn.ModuleList(_Look(width, options.heads) for _ in range(options.rounds))
        self.norm = nn.LayerNorm(width)
        self.phi = nn.Linear(width, KNOTS)
        nn.init.zeros_(self.phi.weight)  # everything anywhere
        nn.init.zeros_(self.phi.bias)

    def knots(self, looks: Tensor, scores: Tensor, none: Tensor) -> Tensor:
        """phi of every side. Shapes: (4N, LOOK), (4N, 4N), (4N,) -> (4N, KNOTS)."""
        looks = looks / SPREAD
        apart = looks - looks.mean(dim=0)
        apart = apart / (apart.square().mean(dim=0).sqrt() + 0.1)
        logits = torch.cat([scores, none[:, None]], dim=1)
        total = logits.logsumexp(dim=1)
        many = torch.zeros_like(none) + torch.log(torch.ones_like(none).sum() / z4.ORDER) - 4
        hints = [none - total, scores.amax(dim=1) - total, total - total.mean(), many]
        h = self.read(torch.cat([self.drop(looks), self.drop(apart), torch.stack(hints, dim=1) / 4], dim=1))
        for turn, seam, look in zip(self.turns, self.seams, self.looks, strict=False):
            h = look(seam(turn(h), logits))
        found: Tensor = self.phi(self.norm(self.turns[-1](h)))
        return found

    def gains(self, looks: Tensor, scores: Tensor, none: Tensor, ahead: Tensor, length: Tensor) -> Tensor:
        """log p of the true place on both axes against "anywhere", nats.

        Shapes: as `knots`; ahead (4N,) cells between a side and the border, length (4N,) of that axis -> (2N,).
        """
        phi = self.knots(looks, scores, none).view(-1, z4.ORDER, KNOTS)
        ahead, length = ahead.view(-1, z4.ORDER), length.view(-1, z4.ORDER)
        gains = []
        for a in range(2):
            for cells in sorted(set(length[:, a].tolist())):
                rows = length[:, a] == cells
                log_p = axis_logits(phi[rows, a], phi[rows, a + 2], cells).log_softmax(dim=1)
                gains.append(log_p.gather(1, ahead[rows, a, None]).squeeze(1) + math.log(cells))
        return torch.cat(gains)

    def forward(self, puzzles: list[tuple[Tensor, ...]]) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of some puzzles, each what `gains` takes: minus the gain; there is nothing more to log."""
        return -torch.stack([self.gains(*puzzle).mean() for puzzle in puzzles]).mean(), {}


def axis_logits(one: Tensor, other: Tensor, cells: int) -> Tensor:
    """phi_a(u_d) + phi_(a+2)(1 - u_d) for d = 0 .. cells - 1. Shapes: (M, KNOTS) each -> (M, cells)."""
    at = (torch.arange(cells) + 0.5) / cells * (KNOTS - 1)
    low = at.long().clamp(max=KNOTS - 2)
    part = at - low
    one, other = ((1 - part) * phi[:, low] + part * phi[:, low + 1] for phi in (one, other))
    return one + other.flip(1)
