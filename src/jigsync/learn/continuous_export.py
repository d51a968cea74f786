"""What of the continuous-angle head is exported: features (M, 4, F + HEADS) -> z (M, 4), vectors (M, 4, 2)."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn

from jigsync.learn.continuous import Continuous
from jigsync.learn.export import Deployed
from jigsync.learn.lite0 import FEATURES
from jigsync.measure.continuous import FORMAT
from jigsync.measure.described import HEADS

GOLDEN: Final = 3


class _Read(nn.Module):
    def __init__(self, model: Continuous) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.model.read(features)


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The head of a run; golden features of unit variance."""
    model = Continuous()
    model.load_state_dict(weights)
    features = torch.randn(GOLDEN, 4, FEATURES + HEADS, generator=torch.Generator().manual_seed(0))
    properties = {"format": FORMAT, "encoder_sha256": config["network"]["encoder_sha256"]}
    return Deployed(
        _Read(model.eval()), {"features": features}, ("z", "vectors"), {"features": {0: "parts"}}, properties, half=True
    )
