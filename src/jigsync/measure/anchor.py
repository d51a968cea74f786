"""The gauge from content: what the assembled picture says about which side is up.

    log p(g) = w log p_whole(g) + const

How sure the head is depends on the size at which pictures are shown to it, and w puts that right. `jigsync
calibrate-anchor` fits it on pictures that the head was not trained on and writes `anchor.json`; it belongs to one file
of weights. It also fits whole and fragments together:

    log p(g) = w log p_whole(g) + a sum_i log p_i(g) + const

which was no better than the whole alone, and takes 4 N more views.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from jigsync.io.files import parse_json
from jigsync.values.errors import FormatError

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-anchor/2"
SHIPPED: Final = "anchor.json"


@dataclass(frozen=True)
class Anchor:
    """The fitted number.

    Attributes:
        whole: w.
        sha256: of the weights it was fitted for.
    """

    whole: float
    sha256: str = ""

    def log_p(self, whole: Floats) -> Floats:
        """Log-odds of the four global turns. Shapes: (..., 4) -> (..., 4)."""
        return self.whole * whole


@cache
def shipped() -> Anchor:
    """The number that belongs to the shipped weights."""
    data = parse_json((files("jigsync.weights") / SHIPPED).read_bytes(), SHIPPED)
    if data.get("format") != FORMAT:
        raise FormatError(f"The file {SHIPPED} must have the format '{FORMAT}'. It has {data.get('format')!r}.")
    numbers: dict[str, Any] = {name: data[name] for name in ("whole", "sha256")}
    return Anchor(**numbers)


def fit(*evidence: Floats) -> Floats:
    """One weight for each kind of evidence, so that the true global turns, which are 0, are likeliest.

    Shapes: K of (M, 4) -> (K,).
    """
    stacked = np.stack(evidence)

    def loss(x: Floats) -> float:
        return float(-log_softmax(np.tensordot(np.exp(x), stacked, 1), axis=1)[:, 0].mean())

    start = np.linspace(-0.5, -1.0, len(stacked))
    return np.exp(minimize(loss, start, method="L-BFGS-B", bounds=[(-7.0, 3.0)] * len(stacked)).x)
