"""Fits the confidence of solved fragments on puzzles cut from a folder of pictures.

From every picture six puzzles: two of flush squares, small and large, and four of random damage between none and
severe, because named severities are either solved or not and have little in between. Half of the pictures fit, the
other half measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.corpus.pool import run_units
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.cutting.seeds import derive_seed
from jigsync.engine.search import solve_map
from jigsync.io.images import read_rgb
from jigsync.measure import registry
from jigsync.solvers.confidence import FEATURES, FORMAT, Confidence, Seen, fit, observe
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed, Placement, turn_placement

DAMAGED: Final = 4
"""Puzzles of random damage a picture."""
BINS: Final = 10


@dataclass(frozen=True)
class Task:
    """One puzzle."""

    picture: Path
    options: CutOptions
    seed: int


@dataclass(frozen=True, eq=False)
class Observed:
    """One solved puzzle: what was seen of its fragments and which are right. Shapes: right (N,)."""

    seen: Seen
    right: NDArray[np.bool_]


def draw_options(rng: np.random.Generator) -> list[CutOptions]:
    """The six puzzles of one picture."""
    small, large = int(rng.integers(3, 7)), int(rng.integers(8, 13))
    drawn = [
        CutOptions(Grid(small, small + 1), int(rng.choice([14, 20, 28]))),
        CutOptions(Grid(large, large + 2), int(rng.choice([10, 14, 20, 28]))),
    ]
    for _ in range(DAMAGED):
        damage = Damage(float(rng.uniform(0, 32)), float(rng.uniform(0.02, 0.2)), float(rng.uniform(0, 0.3)))
        rows, wider = int(rng.integers(3, 9)), int(rng.integers(2))
        drawn.append(CutOptions(Grid(rows, rows + wider), int(rng.choice([40, 64, 96])), damage))
    return drawn


def run_task(task: Task, threads: int) -> Observed:
    """Cuts, measures and solves one puzzle; the grid is known, as a wrong one says nothing about fragments."""
    grid = task.options.grid
    puzzle, truth = cut_picture(read_rgb(task.picture), task.options, task.seed)
    scores = registry.get(registry.DEFAULT).measure(puzzle).sides()
    found = solve_map(scores, grid, seed=task.seed % 2**31, threads=threads)
    places = zip(puzzle.ids, found.slots.tolist(), found.turns.tolist(), strict=True)
    placement = {name: Placed.at(*grid.cell(slot), k) for name, slot, k in places}
    seen = observe(scores, found, found.marginals)
    return Observed(seen, right_fragments(placement, grid, truth.placement, truth.grid, puzzle.ids))


def right_fragments(
    placement: Placement, grid: Grid | None, truth: Placement, true_grid: Grid, ids: Sequence[str]
) -> NDArray[np.bool_]:
    """(N,) which fragments have the right slot and turns in the gauge in which most do."""
    best = np.zeros(len(ids), dtype=bool)
    for gauge in range(4) if grid is not None else ():
        assert grid is not None
        turned, turned_grid = turn_placement(placement, grid, gauge)
        if turned_grid != true_grid:
            continue
        same = [(turned[k].cell, turned[k].turns) == (truth[k].cell, truth[k].turns) for k in ids]
        best = max(best, np.array(same), key=np.count_nonzero)
    return best


def calibrate(
    pictures: Sequence[Path], seed: int, command: str, workers: int, tick: Callable[[int, int], None]
) -> dict[str, Any]:
    """Everything that confidence.json holds."""
    tasks = []
    for picture in pictures:
        rng = np.random.default_rng(derive_seed(seed, "confidence", picture.name))
        tasks += [Task(picture, options, int(rng.integers(2**31))) for options in draw_options(rng)]
    solved: dict[Task, Observed] = {}
    for task, observed in run_units(partial(run_task, threads=1 if workers > 1 else 2), tasks, workers):
        solved[task] = observed
        tick(len(solved), len(tasks))
    half = set(pictures[::2])
    learn, held_out = ([solved[t] for t in tasks if (t.picture in half) == way] for way in (True, False))
    fitted = fit(*stacked(learn))
    return {
        "format": FORMAT,
        "features": list(FEATURES),
        "power": fitted.power,
        "weights": [float(w) for w in fitted.weights],
        "bias": fitted.bias,
        "data": f"{len(pictures)} pictures, half of them held out, {len(tasks)} puzzles",
        "command": command,
        "seed": seed,
        "held_out": measure(fitted, held_out),
    }


def stacked(puzzles: Sequence[Observed]) -> tuple[Seen, NDArray[np.bool_], NDArray[np.float64]]:
    """All fragments of some puzzles as one; a puzzle of N fragments weighs sqrt(N), as they go wrong together."""
    log_share = np.concatenate([p.seen.log_share for p in puzzles])
    features = np.concatenate([p.seen.features for p in puzzles])
    weight = np.concatenate([np.full(len(p.right), len(p.right) ** -0.5) for p in puzzles])
    return Seen(log_share, features), np.concatenate([p.right for p in puzzles]), weight


def measure(confidence: Confidence, puzzles: Sequence[Observed]) -> dict[str, float]:
    """Brier score and calibration error of confidences and of the raw shares of draws, on held-out puzzles."""
    seen, right, weight = stacked(puzzles)
    p, share = confidence.of(seen), np.exp(seen.log_share)
    return {
        "fragments": len(right),
        "right": round(float(np.average(right, weights=weight)), 4),
        "brier": round(float(np.average((p - right) ** 2, weights=weight)), 4),
        "brier_of_shares": round(float(np.average((share - right) ** 2, weights=weight)), 4),
        "calibration_error": round(calibration_error(p, right, weight), 4),
        "calibration_error_of_shares": round(calibration_error(share, right, weight), 4),
    }


def calibration_error(
    p: NDArray[np.float64], right: NDArray[np.bool_], weight: NDArray[np.float64] | None = None
) -> float:
    """Mean distance of confidence and share right over ten equal bins of confidence, weighted by what is in them."""
    weight = np.ones(len(p)) if weight is None else weight
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(bins, weight * (p - right), BINS)).sum() / weight.sum())
