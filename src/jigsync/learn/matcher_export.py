"""What of the boundary matcher is exported: its encoder, as `measure.matcher` documents it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jigsync.learn.export import Deployed, built
from jigsync.learn.matcher import Matcher, MatcherOptions
from jigsync.learn.onnx_file import Arrays
from jigsync.measure.matcher import FORMAT, MatcherModel
from jigsync.measure.strips import CHANNELS, ROWS, VERSION

GOLDEN_SIDES: Final = 8
OUTPUTS: Final = ("left", "right", "none")


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The matcher of a run; golden: sides of unit variance."""
    sizes = {name: value for name, value in config["network"].items() if name != "placing"}
    options = MatcherOptions(**{**sizes, "dilations": tuple(sizes["dilations"])})
    matcher = built(lambda: Matcher(options), weights).eval()
    strips = np.random.default_rng(0).standard_normal((GOLDEN_SIDES, CHANNELS, ROWS), dtype=np.float32)
    with torch.no_grad():
        codes = matcher.encoder(torch.from_numpy(strips))
    golden: dict[str, NDArray[Any]] = {"strips": strips}
    golden |= {name: value.numpy() for name, value in zip(OUTPUTS, codes, strict=True)}
    return Deployed(
        matcher.encoder,
        {"strips": torch.zeros(GOLDEN_SIDES, CHANNELS, ROWS)},
        OUTPUTS,
        {"strips": {0: "sides"}},
        {"format": FORMAT, "strips": VERSION},
        golden,
    )


def answers(data: bytes, golden: Arrays) -> dict[str, NDArray[Any]]:
    """What a file makes of the golden sides."""
    codes = MatcherModel(data, "an export").encode(golden["strips"])
    return {name: getattr(codes, name) for name in OUTPUTS}
