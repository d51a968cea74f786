"""What the frozen unary head says of views, as input of the heads that build on it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.unary import UnaryModel
from jigsync.measure.views import Views

HEADS: Final = 4
"""Numbers of the unary head's own answer, after the features: score, x, y, log s."""


def described(views: Views, encoder: UnaryModel) -> NDArray[np.float16]:
    """Features of every view, its score, and the cell if it is upright.

    The score is taken relative to the mean of the four turns, the cell relative to the centre.

    Shapes: (M, 4, S, S, 3) uint8 -> (M, 4, F + HEADS).
    """
    features, z, cells = encoder.run(["features", "z", "cells"], views)
    score, where = z.reshape(views.shape[:2]), cells.reshape(*views.shape[:2], 3)
    heads = [(score - score.mean(axis=1, keepdims=True))[..., None], where[..., :2] - 0.5, where[..., 2:]]
    return np.concatenate([features.reshape(*views.shape[:2], -1), *heads], axis=2).astype(np.float16)
