"""What single fragments tell about which side is up, and where they belong: the trained unary head.

    z_k = score(view_k),   log p(turns = k) = log softmax_k(z)         canvas turns k: view_k would be upright

One ONNX file (learn/unary.py has the mathematics): `views` (M, 3, S, S) -> `z` (M,), `cells` (M, 3) as (x, y, log s) of
the centre of the cell if that view is upright, `features` (M, F). S is FRAGMENT; assembled pictures are asked by
`measure/upright.py`, with views of WHOLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from jigsync.measure.parts import spans
from jigsync.measure.views import VERSION, Views, fragment_views, prepared
from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values import z4
from jigsync.values.measurements import UnaryCells
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float32]
FORMAT: Final = "jigsync-unary/1"
SHIPPED: Final = "unary.onnx"
OUTPUTS: Final[Mapping[str, tuple[int | None, ...]]] = {"z": (), "cells": (3,), "features": (None,)}
VIEWS_AT_ONCE: Final = 64


class UnaryModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str) -> None:
        """Args: the file's bytes, and how messages call it."""
        self._session = open_session(data, name, {"format": FORMAT, "views": VERSION})

    def run(self, names: list[str], views: Views) -> list[Floats]:
        """The named outputs, for all views. Shapes: (..., S, S, 3) uint8 -> (M, ...) each."""
        flat = views.reshape(-1, *views.shape[-3:])
        parts = [partial(prepared, flat[part]) for part in spans(len(flat), VIEWS_AT_ONCE)]
        return self._session.run_parts({name: OUTPUTS[name] for name in names}, "views", parts)

    def score(self, views: Views) -> tuple[Floats, Floats]:
        """Shapes: (..., S, S, 3) uint8 -> z (M,), cells (M, 3)."""
        z, cells = self.run(["z", "cells"], views)
        return z, cells


@cache
def load_unary(weights: Path | None = None) -> UnaryModel:
    """The head of a file, or the shipped one; kept in memory.

    JigsyncError without onnxruntime, InputError or FormatError when the file is missing, changed or of another version.
    """
    return UnaryModel(*read_weights(SHIPPED, weights))


def weights_sha256(weights: Path | None = None) -> str:
    """sha256 of a file of weights, or of the shipped one; "" when it is not there."""
    return shipped_sha256(SHIPPED, weights)


def measure_fragments(puzzle: Puzzle, cell: float, model: UnaryModel) -> tuple[NDArray[np.float64], UnaryCells]:
    """Log-probabilities of canvas turns (N, 4) and the cells, for the cell pitch in pixels.

    A fragment's cell is a mixture of four Gaussians, one a turn, with weights p(turns = k):

        xy = sum_k p_k xy_k,   s^2 = sum_k p_k (s_k^2 + |xy_k - xy|^2 / 2)
    """
    z, cells = model.score(fragment_views(puzzle, cell))
    log_p = log_softmax(z.reshape(-1, z4.ORDER).astype(np.float64), axis=1)
    by_turn = cells.reshape(-1, z4.ORDER, 3).astype(np.float64)
    p = np.exp(log_p)[..., None]
    xy = (p * by_turn[..., :2]).sum(axis=1)
    spread = np.square(by_turn[..., :2] - xy[:, None]).sum(axis=2) / 2
    variance = (p[..., 0] * (np.exp(2 * by_turn[..., 2]) + spread)).sum(axis=1)
    return log_p, UnaryCells(xy, np.sqrt(variance))
