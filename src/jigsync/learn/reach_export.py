"""What of the reach head is exported: from what is seen of all sides to phi."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.export import Deployed, built
from jigsync.learn.likeness import LOOK
from jigsync.learn.reach import Reach, ReachOptions
from jigsync.measure.reach import FORMAT, apart
from jigsync.values import z4

GOLDEN_FRAGMENTS: Final = 5


class _Phi(nn.Module):
    def __init__(self, model: Reach) -> None:
        super().__init__()
        self.model = model

    def forward(self, looks: Tensor, scores: Tensor, none: Tensor) -> tuple[Tensor]:
        return (self.model.knots(looks, scores, none),)


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The reach head of a run; golden looks and scores of unit variance."""
    sizes = {name: value for name, value in config["network"].items() if name != "networks_sha256"}
    model = built(lambda: Reach(ReachOptions(**sizes)), weights)
    rng, sides = np.random.default_rng(0), z4.ORDER * GOLDEN_FRAGMENTS
    given = {
        "looks": rng.standard_normal((sides, LOOK), dtype=np.float32),
        "scores": apart(rng.standard_normal((sides, sides), dtype=np.float32)),
        "none": rng.standard_normal(sides, dtype=np.float32),
    }
    all_sides = (z4.ORDER, "fragments")
    return Deployed(
        _Phi(model).eval(),
        {name: torch.from_numpy(value) for name, value in given.items()},
        ("phi",),
        {"looks": {0: all_sides}, "scores": {0: all_sides, 1: all_sides}, "none": {0: all_sides}},
        {"format": FORMAT, "networks_sha256": config["network"]["networks_sha256"]},
        half=True,
    )
