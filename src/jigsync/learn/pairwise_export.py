"""What of the pairwise model is exported: features of all fragments in, logits of all pairs out.

features (N, 4, F + HEADS) float32 -> logits (N, N, 192)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.export import Deployed, built
from jigsync.learn.fit.mixing import fit_mixing
from jigsync.learn.lite0 import FEATURES
from jigsync.learn.pairwise import Pairwise, PairwiseOptions
from jigsync.measure.described import HEADS
from jigsync.measure.pairwise import FORMAT, Mixing, PairwiseModel
from jigsync.measure.unary import load_unary, weights_sha256
from jigsync.measure.weights import read_weights
from jigsync.values.vocabulary import VERSION

GOLDEN_FRAGMENTS: Final = 3


def about_held_out(out: Path, pictures: Sequence[Path], encoder: Path | None) -> dict[str, Any]:
    """For the card: how it is mixed with the boundary, fitted on pictures that were not trained on."""
    model = PairwiseModel(*read_weights("", out), weights_sha256(encoder), Mixing())
    return fit_mixing(pictures, model, load_unary(encoder))


class _Logits(nn.Module):
    def __init__(self, model: Pairwise) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Tensor) -> tuple[Tensor]:
        return (self.model.logits(features),)


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The pairwise model of a run; golden features of unit variance."""
    sizes = dict(config["network"])
    encoder = sizes.pop("encoder_sha256")
    options = PairwiseOptions(**sizes)
    model = built(lambda: Pairwise(options), weights)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((GOLDEN_FRAGMENTS, 4, FEATURES + HEADS), dtype=np.float32)
    return Deployed(
        _Logits(model.eval()),
        {"features": torch.from_numpy(features)},
        ("logits",),
        {"features": {0: "fragments"}},
        {"format": FORMAT, "vocabulary": VERSION, "encoder_sha256": encoder},
        half=True,
    )
