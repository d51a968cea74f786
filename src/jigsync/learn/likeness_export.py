"""What of the likeness head is exported: Lite0's first blocks and the head, from views to codes and looks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.export import Deployed, built
from jigsync.learn.likeness import Front, Likeness, LikenessOptions, look_of
from jigsync.measure.likeness import FORMAT, SIZE, VERSION

GOLDEN_VIEWS: Final = 4


class _Sides(nn.Module):
    """Views (M, 3, SIZE, SIZE) -> left and right, whose products are S' / k, and the look."""

    def __init__(self, head: Likeness) -> None:
        super().__init__()
        self.front, self.head = Front(), head

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        maps = self.front(views)
        left, right = self.head.sides(maps)
        return left / self.head.matcher, right, look_of(maps)


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The likeness head of a run; golden views of unit variance."""
    sizes = {name: value for name, value in config["network"].items() if name not in ("matcher_sha256", "placing")}
    head = built(lambda: Likeness(LikenessOptions(**sizes)), weights)
    views = np.random.default_rng(0).standard_normal((GOLDEN_VIEWS, 3, SIZE, SIZE), dtype=np.float32)
    return Deployed(
        _Sides(head).eval(),
        {"views": torch.from_numpy(views)},
        ("left", "right", "look"),
        {"views": {0: "views"}},
        {"format": FORMAT, "views": VERSION},
        half=True,
    )
