"""Fits how the pairwise model and the boundary are mixed into one distribution (measure/pairwise.py).

Pictures are halved: the six numbers are fitted on the puzzles of one half, by the mean log-likelihood of the true
relations, and measured on those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.io.images import read_rgb
from jigsync.measure.learned import Learned
from jigsync.measure.pairwise import Mixing, PairwiseModel, features_of
from jigsync.measure.unary import UnaryModel
from jigsync.score.true_relations import relations_of
from jigsync.values import vocabulary as v
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float64]
SEVERE: Final = ("medium", "severe", "eroded")
SIZES: Final = (3, 5, 8)
CELL: Final = 64
PENALTY: Final = 1e-4
"""Times the squared distance of the numbers from where they start."""


def measured(
    puzzle: Puzzle, relations: NDArray[np.int64], model: PairwiseModel, encoder: UnaryModel
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """What the boundary and the model say of every ordered pair, and the truth. Shapes: (P, 192), (P, 192), (P,)."""
    assert puzzle.cell is not None
    i, j = np.nonzero(relations >= 0)
    logits = model.logits(features_of(puzzle, puzzle.cell, encoder))[i, j]
    boundary = Learned().measure(puzzle).symmetric(i, j)
    return boundary.astype(np.float64), logits.astype(np.float64), relations[i, j]


def log_likelihood(mixing: Mixing, boundary: Floats, logits: Floats, target: NDArray[np.int64]) -> float:
    """Mean over pairs."""
    return float(mixing.log_p(boundary, logits)[np.arange(len(target)), target].mean())


def fit(boundary: Floats, logits: Floats, target: NDArray[np.int64]) -> Mixing:
    """The six numbers of greatest likelihood."""
    start = np.array(astuple(Mixing()))

    def cost(x: Floats) -> float:
        penalty = PENALTY * float(np.square(x - start).sum())
        return penalty - log_likelihood(Mixing(*map(float, x)), boundary, logits, target)

    found = minimize(cost, start, method="L-BFGS-B", options={"maxiter": 40})
    return Mixing(*(round(float(value), 4) for value in found.x))


def fit_mixing(
    pictures: Sequence[Path], model: PairwiseModel, encoder: UnaryModel, report: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """For the card: the mixing, and what it reaches on pictures that it was not fitted on."""
    halves: tuple[list[Any], list[Any]] = ([], [])
    for k, path in enumerate(pictures):
        n = SIZES[k // 2 % len(SIZES)]
        options = CutOptions(Grid(n, n), CELL, SEVERITIES[SEVERE[k // 2 % len(SEVERE) - k % 2]])
        puzzle, truth = cut_picture(read_rgb(path), options, k, redraw=False)
        halves[k % 2].append(measured(puzzle, relations_of(puzzle, truth), model, encoder))
        report()
    fitted_on, held = ([np.concatenate(part) for part in zip(*half, strict=True)] for half in halves)
    mixing = fit(*fitted_on)
    boundary, logits, target = held
    log_p = mixing.log_p(boundary, logits)
    right = log_p.argmax(axis=1) == target
    unit = v.IS_UNIT[target]
    return {
        "mixing": vars(mixing),
        "held_out": {
            "pictures": len(halves[1]),
            "pairs": len(target),
            "log_likelihood": round(log_likelihood(mixing, boundary, logits, target), 4),
            "log_likelihood_boundary_alone": round(float(boundary[np.arange(len(target)), target].mean()), 4),
            "unit_top1": round(float(right[unit].mean()), 4),
            "other_top1": round(float(right[~unit].mean()), 4),
            "unit_share_said": round(float(np.exp(log_p)[:, v.IS_UNIT].sum(axis=1).mean()), 4),
            "unit_share": round(float(unit.mean()), 4),
        },
    }
