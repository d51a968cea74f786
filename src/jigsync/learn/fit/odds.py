"""Fits the log-odds of pair hypotheses (measure/contour_evidence.py): logistic regression on what speaks for each.

Puzzles of every kind the network learns from, of 6 to 60 fragments, are cut from held-out pictures; a hypothesis is
true when its angle and shift are near those of the truth. Pictures are halved: fitted on one half, measured on the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from jigsync.cutting.seeds import derive_seed
from jigsync.learn.contours_mixture import MIXTURE, Kind, Torn, draw_puzzle
from jigsync.measure.contour_evidence import FEATURES
from jigsync.measure.contour_matches import SampleCodes
from jigsync.measure.contour_reading import read
from jigsync.measure.outline import read_outlines
from jigsync.measure.outline_features import features
from jigsync.score.hypotheses import are_true, poses_of
from jigsync.values.outlines import Floats, Ints

Encode = Callable[[NDArray[np.float32], Ints], SampleCodes]

KINDS: Final[Mapping[str, Kind]] = {
    **MIXTURE,
    "crowd": Torn(0.1, pieces=(40, 100), erosion=(0.0, 0.03), photo=(0.0, 0.1), size=(40, 56)),
}
PENALTY: Final = 1e-3


def fit(seen: Floats, true: NDArray[np.bool_], start: Floats) -> Floats:
    """Weights of greatest likelihood, less PENALTY times the square of their distance from the start."""

    def cost(x: Floats) -> tuple[float, Floats]:
        odds = seen @ x
        loss = np.logaddexp(0, np.where(true, -odds, odds)).mean() + PENALTY * np.square(x - start).sum()
        slope = seen.T @ (expit(odds) - true) / len(true) + 2 * PENALTY * (x - start)
        return float(loss), slope

    return np.asarray(minimize(cost, start, jac=True, method="L-BFGS-B").x)


def fit_odds(pictures: Sequence[Path], encode: Encode, start: Floats) -> dict[str, Any]:
    """For the card: the odds, and what they reach on pictures that they were not fitted on.

    Args:
        encode: (features, start of every outline) -> codes: a network's, or `contours_plain.plain_codes`.
        start: the odds that the fit begins with.
    """
    halves: tuple[list[Any], list[Any]] = ([], [])
    for k, path in enumerate(pictures):
        name = list(KINDS)[k // 2 % len(KINDS)]
        puzzle, truth, _ = draw_puzzle([[path]], {name: KINDS[name]}, derive_seed("odds"), k)
        outlines, scans = read_outlines(puzzle)
        found = read(outlines, scans, encode(features(puzzle, outlines, scans), outlines.start))
        poses = poses_of(truth.placement, puzzle.ids)
        halves[k % 2].append((found.described, are_true(found.hypotheses(start), poses, found.size)))
    (seen, true), (held, held_true) = ([np.concatenate(part) for part in zip(*half, strict=True)] for half in halves)
    odds = fit(seen, true, start)
    said = held @ odds
    return {
        "odds": {name: round(float(value), 4) for name, value in zip(FEATURES, odds, strict=True)},
        "held_out": {
            "pictures": len(halves[1]),
            "hypotheses": len(held_true),
            "true_share": round(float(held_true.mean()), 4),
            "mean_probability": round(float(expit(said).mean()), 4),
            "log_likelihood": round(float(-np.logaddexp(0, np.where(held_true, -said, said)).mean()), 4),
        },
    }
