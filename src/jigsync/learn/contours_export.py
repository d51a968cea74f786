"""What of the contour network is exported: its encoder, as `measure.contours` documents it, and the odds of hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jigsync.learn.contours import ContourNetwork, ContourOptions
from jigsync.learn.export import Deployed, built
from jigsync.learn.fit.odds import fit_odds
from jigsync.learn.onnx_file import Arrays
from jigsync.measure.contours import FORMAT, OUTPUTS, ContourModel
from jigsync.measure.outline_features import CHANNELS, DISTANCES, VERSION, neighbours
from jigsync.measure.weights import read_weights
from jigsync.values.errors import OptionError

GOLDEN_START: Final = (0, 24, 64)
"""Where the golden outlines start and end."""


def about_held_out(out: Path, pictures: Sequence[Path], encoder: Path | None) -> dict[str, Any]:
    """For the card: the odds of hypotheses, fitted on puzzles of pictures that were not trained on."""
    if encoder is not None:
        raise OptionError("The contour network has no unary head: its export takes no 'encoder'.")
    return fit_odds(pictures, ContourModel(*read_weights("", out)))


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The encoder of a run; golden: two outlines with features of unit variance."""
    sizes = config["network"]
    options = ContourOptions(**{**sizes, "dilations": tuple(sizes["dilations"])})
    encoder = built(lambda: ContourNetwork(options), weights).encoder.eval()
    start = np.array(GOLDEN_START, dtype=np.int64)
    features = np.random.default_rng(0).standard_normal((GOLDEN_START[-1], CHANNELS), dtype=np.float32)
    near = neighbours(start, DISTANCES)
    with torch.no_grad():
        codes = encoder(torch.from_numpy(features), torch.from_numpy(near))
    golden: dict[str, NDArray[Any]] = {"features": features, "start": start}
    golden |= {name: value.numpy() for name, value in zip(OUTPUTS, codes, strict=True)}
    return Deployed(
        encoder,
        {"features": torch.from_numpy(features), "near": torch.from_numpy(near)},
        tuple(OUTPUTS),
        {"features": {0: "samples"}, "near": {0: "samples"}},
        {"format": FORMAT, "outlines": VERSION},
        golden,
    )


def answers(data: bytes, golden: Arrays) -> dict[str, NDArray[Any]]:
    """What a file makes of the golden outlines."""
    codes = ContourModel(data, "an export").encode(golden["features"], golden["start"])
    return {name: getattr(codes, name) for name in OUTPUTS}
