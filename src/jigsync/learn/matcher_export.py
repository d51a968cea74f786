"""What of the boundary matcher is exported: both networks in one file, as `measure.matcher` documents it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jigsync.learn.export import Deployed
from jigsync.learn.matcher import Matcher, MatcherOptions
from jigsync.learn.onnx_file import Arrays
from jigsync.measure.matcher import FORMAT, MatcherModel
from jigsync.measure.strips import CHANNELS, ROWS, VERSION

GOLDEN_SIDES: Final = 4
OUTPUTS: Final = ("left", "right", "none", "ahead", "across", "score")


class _Both(nn.Module):
    """Encoder and re-ranker; what is not asked for is fed empty."""

    def __init__(self, matcher: Matcher) -> None:
        super().__init__()
        self.encoder, self.ranker = matcher.encoder, matcher.ranker

    def forward(self, strips: Tensor, ahead_in: Tensor, across_in: Tensor) -> tuple[Tensor, ...]:
        return *self.encoder(strips), self.ranker(ahead_in, across_in)


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The matcher of a run; golden: sides of unit variance, and the symmetric scores of some pairs of them."""
    sizes = config["network"]
    matcher = Matcher(MatcherOptions(**{**sizes, "dilations": tuple(sizes["dilations"])}))
    matcher.load_state_dict(weights)
    matcher.eval()
    rng = np.random.default_rng(0)
    strips = rng.standard_normal((GOLDEN_SIDES, CHANNELS, ROWS), dtype=np.float32)
    s, t = np.arange(GOLDEN_SIDES), rng.permutation(GOLDEN_SIDES)
    with torch.no_grad():
        codes = matcher.encoder(torch.from_numpy(strips))
        score = matcher.rank(codes[3], codes[4], torch.from_numpy(s), torch.from_numpy(t))
    golden: dict[str, NDArray[Any]] = {"strips": strips, "s": s, "t": t, "score": score.numpy()}
    golden |= {name: value.numpy() for name, value in zip(OUTPUTS, codes, strict=False)}
    # Two tensors: one that is given twice would become one input.
    ahead, across = (torch.zeros(3, sizes["pair"], ROWS // 2) for _ in range(2))
    return Deployed(
        _Both(matcher),
        {"strips": torch.zeros(2, CHANNELS, ROWS), "ahead_in": ahead, "across_in": across},
        OUTPUTS,
        {"strips": {0: "sides"}, "ahead_in": {0: "pairs"}, "across_in": {0: "pairs"}},
        {"format": FORMAT, "strips": VERSION},
        golden,
    )


def answers(data: bytes, golden: Arrays) -> dict[str, NDArray[Any]]:
    """What a file makes of the golden sides and pairs."""
    model = MatcherModel(data, "an export")
    codes = model.encode(golden["strips"])
    return {
        **{name: getattr(codes, name) for name in OUTPUTS[:-1]},
        "score": model.rank(codes, golden["s"], golden["t"]),
    }
