"""The picture's border: which sides lie on it, and how far the others are from it.

    p(d) = softmax_d (phi_a(u_d) + phi_(a+2)(1 - u_d)),     u_d = (d + 1/2) / L,    d cells ahead of side a

phi is what a measurer tells of every side, at KNOTS places; of an axis of L cells a pose is worth log p(d) L: against
"anywhere".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_softmax

from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.listing import MIN_REST

Floats = NDArray[np.float32]

KNOTS: Final = 9
"""Places of [0, 1], evenly spread, at which phi is told; between them it is linear."""
FEW, MANY = 1.5, 0.5
"""What the border counts against touching sides in a puzzle of up to 9 fragments and of very many, see `border_weight`.
Best4 AA+rot on validation pictures: 3 x 3, severe, 40 of them, `boundary`, at 0 / 1 / 1.5 / 2: 0.51, 0.82, 0.84, 0.84;
eroded, 90, `learned`, at 0 / 0.5 / 1 / 1.5: 0.50, 0.56, 0.59, 0.61. But eroded 5 x 5, 75, at 0.5 / 1 / 1.5: 0.39, 0.37,
0.35. The weight that tells true placements best from ones with two fragments swapped, eroded, is 1.6 +- 0.7 at 3 x 3,
0.4 +- 0.3 at 5 x 5 and 0.6 +- 0.3 at 10 x 10."""
LOWEST_BORDER: Final = -8.0
"""Least log-probability of a side to lie on the border."""


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


def border_weight(n: int) -> float:
    """MANY + (FEW - MANY) min(1, 9 / N)^2: with more fragments touching sides say more of who lies on the border."""
    return MANY + (FEW - MANY) * min(1.0, 9 / max(n, 1)) ** 2


def border_odds(log_p: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Log-odds of the border against the share of sides that lie there, x = logit p - c - logit q.

    A square grid of N fragments has q = 1 / sqrt(N) of its sides on the border. A measurer's p need not sum up to
    that (its calibration saw other puzzles), so c is what makes it: mean sigmoid(logit p - c) = q. Otherwise sides
    that are all a little too sure of the border would make every grid long.

    Shapes: (4N,) -> (4N,).
    """
    n = len(log_p) / z4.ORDER
    q = 1 / np.sqrt(max(n, 4.0))
    log_p = np.clip(log_p.astype(np.float64), LOWEST_BORDER, -MIN_REST)
    odds = log_p - np.log(-np.expm1(log_p))
    c = float(brentq(lambda shift: expit(odds - shift).mean() - q, odds.min() - 2, odds.max() + 20))
    return np.asarray(odds - c - np.log(q / (1 - q)))
