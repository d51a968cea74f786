"""What of the frame network is exported: its encoder, as `measure.frames` documents it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jigsync.learn.export import Deployed, built
from jigsync.learn.frames import FrameNetwork, FrameOptions
from jigsync.learn.onnx_file import Arrays
from jigsync.measure.frames import CHANNELS, DISTANCES, FORMAT, OUTPUTS, FrameModel
from jigsync.measure.outline_features import VERSION, neighbours

GOLDEN_START: Final = (0, 24, 64)
"""Where the golden outlines start and end."""


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The encoder of a run; golden: two outlines with features of unit variance."""
    sizes = config["network"]
    options = FrameOptions(**{**sizes, "dilations": tuple(sizes["dilations"])})
    encoder = built(lambda: FrameNetwork(options), weights).encoder.eval()
    start = np.array(GOLDEN_START, dtype=np.int64)
    features = np.random.default_rng(0).standard_normal((GOLDEN_START[-1], CHANNELS), dtype=np.float32)
    near = torch.from_numpy(neighbours(start, DISTANCES))
    with torch.no_grad():
        votes = encoder(torch.from_numpy(features), near)
    golden: dict[str, NDArray[Any]] = {"features": features, "start": start, "votes": votes.numpy()}
    return Deployed(
        encoder,
        {"features": torch.from_numpy(features), "near": near},
        tuple(OUTPUTS),
        {"features": {0: "samples"}, "near": {0: "samples"}},
        {"format": FORMAT, "outlines": VERSION},
        golden,
    )


def answers(data: bytes, golden: Arrays) -> dict[str, NDArray[Any]]:
    """What a file makes of the golden outlines."""
    return {"votes": FrameModel(data, "an export").votes(golden["features"], golden["start"])}
