"""How far it is from each side of a fragment to the picture's border, as a trained network tells it.

Seams say what lies beside what, and nothing of where. Worn squares of a large puzzle are put together in regions that
may stand anywhere, and a picture whose two ends look alike is found wound around. So a network that sees all fragments
at once (learn/reach.py) gives every side a function phi of the distance ahead of it; of an axis of L cells

    p(d) = softmax_d (phi_a(u_d) + phi_(a+2)(1 - u_d)),     u_d = (d + 1/2) / L,    d cells ahead of side a

in the fragment's own frame, so that it says nothing of the gauge (`values.border`).

One ONNX file: `looks` (4N, LOOK), `scores` (4N, 4N), `none` (4N,) -> `phi` (4N, KNOTS).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values import z4
from jigsync.values.border import KNOTS

Floats = NDArray[np.float32]
FORMAT: Final = "jigsync-reach/1"
SHIPPED: Final = "reach.onnx"
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


def weights_sha256(weights: Path | None = None) -> str:
    """sha256 of a file of weights, or of the shipped one; "" when it is not there."""
    return shipped_sha256(SHIPPED, weights)


@cache
def load_reach(weights: Path | None = None) -> ReachModel:
    """The head of a file, or the shipped one; kept in memory.

    JigsyncError without onnxruntime, InputError or FormatError when the file is missing, changed or of another version.
    """
    return ReachModel(*read_weights(SHIPPED, weights))
