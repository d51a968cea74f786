"""The likeness head: which sides belong together, from maps of EfficientNet-Lite0.

    map (112, 7, 7) of a fragment turned to face east -> 784 channels at 7 rows -> two convolutions along the rows
    -> f and g (code, 7)
    S'(s, t) = c(s, t) + c(t, s),   c(s, t) = sum_p f_s(p) . g_t(6 - p)

g has its rows reversed because the side across the seam is seen half-turned. The head is trained on what the matcher
leaves open: with S and n the matcher's own scores of sides and of "no neighbour",

    p(t | s) = exp(k S(s, t) + S'(s, t)) / (exp(k n_s) + sum_t' exp(k S(s, t') + S'(s, t')))

where k, too, is learned: the matcher counts for less once somebody else has a say. What is exported is S' / k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from jigsync.learn.lite0 import Lite0
from jigsync.learn.matcher import loss_of
from jigsync.learn.onnx_file import fold

BLOCKS: Final = 11
"""Of Lite0: to stride 16."""
CHANNELS, ROWS = 112, 7
LOOK: Final = 3 * CHANNELS
SPREAD: Final = 5.0
"""Usual standard deviation of a channel of the map."""


@dataclass(frozen=True)
class LikenessOptions:
    """Sizes of the head.

    Attributes:
        width: channels within.
        code: channels of f and g at each row.
        drop: share of the map's numbers that training leaves out.
    """

    width: int = 128
    code: int = 16
    drop: float = 0.2


class Front(nn.Module):
    """The first blocks of Lite0, never trained. Shapes: views (M, 3, 112, 112) -> (M, CHANNELS, ROWS, ROWS)."""

    def __init__(self) -> None:
        super().__init__()
        network = Lite0().eval()
        fold(network)
        self.layers = nn.Sequential(network.stem, *network.blocks[:BLOCKS]).requires_grad_(False)

    def forward(self, views: Tensor) -> Tensor:
        found: Tensor = self.layers(views)
        return found


def look_of(maps: Tensor) -> Tensor:
    """Means of the map at the side, in the middle and behind. Shapes: (M, CHANNELS, ROWS, ROWS) -> (M, LOOK)."""
    parts = (maps[..., 5:], maps[..., 2:5], maps[..., :2])
    return torch.cat([part.mean(dim=(2, 3)) for part in parts], dim=1)


class Likeness(nn.Module):
    """The head and its loss beside the matcher's scores: of the sides, and `placing` times that of the placing."""

    def __init__(self, options: LikenessOptions, placing: float = 0.0) -> None:
        super().__init__()
        self.placing = placing
        width = options.width
        self.drop = nn.Dropout(options.drop)
        self.read = nn.Conv1d(CHANNELS * ROWS, width, 3, padding=1)
        self.along = nn.Conv1d(width, width, 3, padding=1)
        self.codes = nn.Conv1d(width, 2 * options.code, 1)
        self.matcher = nn.Parameter(torch.ones(()))
        with torch.no_grad():  # S' starts at 0
            self.codes.weight[options.code :] = 0
            assert self.codes.bias is not None
            self.codes.bias.zero_()

    def sides(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """left and right, whose products make S'. Shapes: (M, CHANNELS, ROWS, ROWS) -> (M, E), (M, E)."""
        flat = (maps / SPREAD).transpose(2, 3).flatten(1, 2)
        h = torch.relu(self.read(self.drop(flat)))
        h = torch.relu(h + self.along(h))
        f, g = self.codes(h).chunk(2, dim=1)
        return f.flatten(1) * (f.shape[1] * f.shape[2]) ** -0.5, g.flip(2).flatten(1)

    def said(self, maps: Tensor, scores: Tensor, none: Tensor, partner: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is said of one puzzle's sides, and the truth, as the losses take them.

        Shapes: maps of 4N sides, scores (4N, 4N), none and partner (4N,) -> logits (4N, 4N), none and partner (4N,).
        """
        left, right = self.sides(maps)
        likeness = left @ right.T
        return self.matcher * scores + likeness + likeness.T, self.matcher * none, partner

    def forward(self, puzzles: list[tuple[Tensor, Tensor, Tensor, Tensor]]) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of some puzzles, and what to log; each is what `said` takes."""
        loss, means = loss_of([self.said(*puzzle) for puzzle in puzzles], self.placing)
        return loss, {"matcher": self.matcher} | means
