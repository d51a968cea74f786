"""EfficientNet-Lite0 as an encoder to train further: ImageNet weights, statistics of batch normalisation frozen.

With frozen statistics a picture's features do not depend on what it is batched with. Trained the usual way, a batch
of fragments that all have one turn carries the answer in its statistics (SPEC 5).
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from jigsync.measure.backbone import lite0_network

FEATURES: Final = 1280
FROZEN: Final = 5
"""So many blocks, to stride 8, stay as ImageNet's weights made them; their backward pass is saved."""


class Lite0(nn.Module):
    """Pictures (B, 3, S, S), (rgb * 255 - 127) / 128 -> features (B, FEATURES)."""

    def __init__(self) -> None:
        super().__init__()
        network = lite0_network().to(memory_format=torch.channels_last)
        self.stem = nn.Sequential(network._conv_stem, network._bn0, nn.ReLU6())
        self.blocks = nn.ModuleList(network._blocks)
        self.head = nn.Sequential(network._conv_head, network._bn1, nn.ReLU6())
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                # Frozen: nothing is counted, and loading does not ask for the count.
                module.num_batches_tracked = None
                module.track_running_stats = False
        for part in (self.stem, *self.blocks[:FROZEN]):
            part.requires_grad_(False)
        self.train()

    def train(self, mode: bool = True) -> Lite0:
        """Training mode, except for the statistics."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x.contiguous(memory_format=torch.channels_last))
        for block in self.blocks:
            x = block(x)
        features: Tensor = self.head(x).mean(dim=(2, 3))
        return features
