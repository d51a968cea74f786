"""The gauge from content: what the assembled picture says about which side is up.

    log p(g) = w log p_whole(g) + a sum_parts log p_part(g) + const

The whole picture is seen in one view, and in closer ones of nine overlapping parts. Parts of one picture err together,
so that a is below 1. `jigsync calibrate-anchor` fits both numbers on pictures that the head was not trained on and
writes `anchor.json`; they belong to one file of weights.
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

from jigsync.errors import FormatError
from jigsync.io.files import parse_json

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-anchor/1"
SHIPPED: Final = "anchor.json"


@dataclass(frozen=True)
class Anchor:
    """The fitted numbers.

    Attributes:
        whole, parts: w and a.
        sha256: of the weights they were fitted for.
    """

    whole: float
    parts: float
    sha256: str = ""

    def log_p(self, whole: Floats, parts: Floats) -> Floats:
        """Log-odds of the four global turns. Shapes: (..., 4), (..., 4) -> (..., 4)."""
        return np.asarray(self.whole * whole + self.parts * parts)


@cache
def shipped() -> Anchor:
    """The numbers that belong to the shipped weights."""
    data = parse_json((files("jigsync.measure") / SHIPPED).read_bytes(), SHIPPED)
    if data.get("format") != FORMAT:
        raise FormatError(f"The file {SHIPPED} must have the format '{FORMAT}'. It has {data.get('format')!r}.")
    numbers: dict[str, Any] = {name: data[name] for name in ("whole", "parts", "sha256")}
    return Anchor(**numbers)


def fit(whole: Floats, parts: Floats) -> Anchor:
    """The numbers that make the true global turns, which are 0, likeliest. Shapes: (M, 4), (M, 4)."""

    def loss(x: Floats) -> float:
        total = Anchor(*np.exp(x)).log_p(whole, parts)
        return float(-log_softmax(total, axis=1)[:, 0].mean())

    found = np.exp(minimize(loss, np.array([-0.5, -1.0]), method="L-BFGS-B", bounds=[(-7.0, 3.0)] * 2).x)
    return Anchor(float(found[0]), float(found[1]))
