"""What of the unary head is exported: views in; turn score, cell and features out.

views (M, 3, S, S) float32, (rgb - 127) / 128, S a multiple of 32  ->  z (M,), cells (M, 3), features (M, 1280)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.learn.export import Deployed
from jigsync.learn.onnx_file import constants_of, fold, unfold
from jigsync.learn.unary import Unary
from jigsync.measure.unary import FORMAT
from jigsync.measure.views import FRAGMENT, VERSION
from jigsync.measure.weights import open_session, read_weights
from jigsync.values.errors import FormatError

STRIDE: Final = 32
GOLDEN_VIEWS: Final = 4


class _Head(nn.Module):
    """The unary head with outputs as a tuple."""

    def __init__(self, unary: Unary) -> None:
        super().__init__()
        self.unary = unary

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.unary.encoder(views)
        return *self.unary.read(features), features


def deployed(config: dict[str, Any], weights: dict[str, Tensor]) -> Deployed:
    """The unary head of a run; golden views of unit variance."""
    unary = Unary()
    unary.load_state_dict({name: weights[name] for name in unary.state_dict()})  # not what a loss remembers
    unary.eval()
    fold(unary.encoder)
    views = np.random.default_rng(0).standard_normal((GOLDEN_VIEWS, 3, FRAGMENT, FRAGMENT), dtype=np.float32)
    return Deployed(
        _Head(unary),
        {"views": torch.from_numpy(views)},
        ("z", "cells", "features"),
        {"views": {0: "views", 2: (STRIDE, "side"), 3: (STRIDE, "side")}},
        {"format": FORMAT, "views": VERSION},
        half=True,
    )


def restored(path: Path) -> dict[str, Tensor]:
    """The weights of an exported head, to train on from: what folding and halving made of them gives the same answers.

    InputError or FormatError when the file holds none.
    """
    data, name = read_weights("", path)
    open_session(data, name, {"format": FORMAT})
    found = constants_of(data)
    folded = {key.removeprefix("unary."): value for key, value in found.items()}
    unary = Unary()
    try:
        encoder = unfold(unary.encoder, {key.removeprefix("encoder."): value for key, value in folded.items()})
        heads = {key: folded[key] for key in ("turn.weight", "turn.bias", "cell.weight", "cell.bias")}
    except KeyError as error:
        raise FormatError(f"The weights '{name}' cannot be trained on: they have no {error}.") from None
    return {**{f"encoder.{key}": value for key, value in encoder.items()}, **heads}
