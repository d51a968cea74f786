"""How far it is from each side of a fragment to the picture's border, as a trained network tells it.

Seams say what lies beside what, and nothing of where. Worn squares of a large puzzle are put together in regions that
may stand anywhere, and a picture whose two ends look alike is found wound around. So a network that sees all fragments
at once (learn/reach.py) gives every side a function phi of the distance ahead of it; of an axis of L cells

    p(d) = softmax_d (phi_a(u_d) + phi_(a+2)(1 - u_d)),     u_d = (d + 1/2) / L,    d cells ahead of side a

in the fragment's own frame, so that it says nothing of the gauge. What a pose is worth is log p L, summed over both
axes: against "anywhere".

One ONNX file: `looks` (4N, LOOK), `scores` (4N, 4N), `none` (4N,) -> `phi` (4N, KNOTS).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values import z4
from jigsync.values.layout import Grid

Floats = NDArray[np.float32]
FORMAT: Final = "jigsync-reach/1"
SHIPPED: Final = "reach.onnx"
KNOTS: Final = 9
"""Places of [0, 1], evenly spread, at which phi is told; between them it is linear."""
NEVER: Final = -1e4
"""Score of two sides of one fragment."""


class ReachModel:
    """A loaded file of weights."""

    def __init__(self, data: bytes, name: str) -> None:
        """Args: the file's bytes, and how messages call it."""
        self._session = open_session(data, name, {"format": FORMAT})

    def phi(self, looks: Floats, scores: Floats, none: Floats) -> Floats:
        """phi of every side. Shapes: (4N, LOOK), (4N, 4N) whatever within a fragment, (4N,) -> (4N, KNOTS)."""
        feed = {"looks": looks, "scores": apart(scores), "none": none}
        return self._session.run({"phi": (len(none), KNOTS)}, feed)[0]


def apart(scores: Floats) -> Floats:
    """Scores with NEVER between sides of one fragment. Shapes: (4N, 4N) -> (4N, 4N)."""
    fragment = np.arange(len(scores)) // z4.ORDER
    return np.where(fragment[:, None] == fragment, np.float32(NEVER), scores).astype(np.float32)


def pose_terms(phi: Floats, grid: Grid) -> Floats:
    """log p L of every fragment's pose, summed over both axes. Shapes: (4N, KNOTS) -> (N, slots, 4)."""
    sides = phi.reshape(-1, z4.ORDER, KNOTS)
    out = np.zeros((len(sides), grid.size, z4.ORDER), dtype=np.float32)
    for bearing in range(2):
        ahead, length = cells_ahead(grid, bearing)
        for turns in range(z4.ORDER):
            side = z4.between(turns, bearing)
            out[:, :, turns] += _log_p(sides[:, side], sides[:, z4.compose(side, 2)], length)[:, ahead]
    return out


def cells_ahead(grid: Grid, bearing: int) -> tuple[NDArray[np.int64], int]:
    """Cells between every slot and the border at a bearing of the canvas, and cells of that axis. Shapes: (slots,)."""
    along = np.array(list(grid.cells())) @ np.array(z4.bearing_offset(bearing))
    ahead = along.max() - along
    return ahead, int(ahead.max()) + 1


def _log_p(one: Floats, other: Floats, cells: int) -> Floats:
    """log p(d) L. Shapes: (N, KNOTS) each -> (N, cells)."""
    at = (np.arange(cells) + 0.5) / cells * (KNOTS - 1)
    low = np.minimum(at.astype(np.int64), KNOTS - 2)
    part = (at - low).astype(np.float32)
    one, other = ((1 - part) * phi[:, low] + part * phi[:, low + 1] for phi in (one, other))
    return np.asarray(log_softmax(one + other[:, ::-1], axis=1) + np.log(cells), dtype=np.float32)


def weights_sha256(weights: Path | None = None) -> str:
    """sha256 of a file of weights, or of the shipped one; "" when it is not there."""
    return shipped_sha256(SHIPPED, weights)


@cache
def load_reach(weights: Path | None = None) -> ReachModel:
    """The head of a file, or the shipped one; kept in memory.

    JigsyncError without onnxruntime, InputError or FormatError when the file is missing, changed or of another version.
    """
    return ReachModel(*read_weights(SHIPPED, weights))
