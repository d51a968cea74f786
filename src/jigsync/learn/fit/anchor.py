"""Fits and measures the gauge anchor on puzzles that are put together rightly: how often is it right, by what.

From every picture puzzles of several sizes are cut with light to heavy damage and assembled by their truth: the anchor
is about which side is up, not about assembling. Half of the pictures fit, the other half measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.gauge import FORMAT, Anchor, Floats
from jigsync.io.images import read_rgb
from jigsync.measure.unary import UnaryModel, load_unary, measure_fragments, measure_picture, weights_sha256
from jigsync.render.assemble import composed
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values.gauge import votes
from jigsync.values.layout import Grid

PUZZLES: Final = ((3, 128), (5, 128), (10, 64))
"""(n, cell) of the puzzles of a picture."""
SEVERITY: Final = ("light", "medium", "heavy")


@dataclass(frozen=True, eq=False)
class Seen:
    """What the head says of a puzzle: votes of fragments, the whole picture, (4,) each; share of singles right."""

    n: int
    votes: NDArray[np.float64]
    whole: NDArray[np.float64]
    singles: float


def look(path: Path, n: int, cell: int, severity: str, seed: int, model: UnaryModel) -> Seen:
    """One puzzle, assembled by its truth."""
    puzzle, truth = cut_picture(read_rgb(path), CutOptions(Grid(n, n), cell, SEVERITIES[severity]), seed, redraw=n < 8)
    solution = Solution("ok", "", truth.grid, truth.placement)
    log_p, _ = measure_fragments(puzzle, cell, model)
    turns = np.array([truth.placement[name].turns for name in puzzle.ids])
    picture = composed(puzzle, solution, layout_of(puzzle, solution))
    right = float((log_p.argmax(axis=1) == turns).mean())
    return Seen(n, votes(turns, log_p), measure_picture(picture, model, len(puzzle)), right)


def calibrate(
    pictures: Sequence[Path], weights: Path | None, seed: int, command: str, tick: Callable[[int, int], None]
) -> dict[str, Any]:
    """Everything that anchor.json holds."""
    model = load_unary(weights)
    seen: list[list[Seen]] = []
    for k, path in enumerate(pictures):
        seen.append([])
        for n, cell in PUZZLES:
            severity = SEVERITY[(k + n) % len(SEVERITY)]
            seen[-1].append(look(path, n, cell, severity, derive_seed(seed, "anchor", path.name, n), model))
        tick(k + 1, len(pictures))
    fitted, held_out = ([one for part in seen[start::2] for one in part] for start in (0, 1))
    tried = measure(_fit(fitted), fit(*_evidence(fitted)), held_out)
    final = _fit([one for part in seen for one in part])
    return {
        "format": FORMAT,
        "whole": final.whole,
        "sha256": weights_sha256(weights),
        "data": f"{len(pictures)} pictures, {len(PUZZLES)} puzzles each; held out: fitted on half of them",
        "command": command,
        "seed": seed,
        "held_out": tried,
    }


def _evidence(seen: Sequence[Seen]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The whole, and the votes. Shapes: (M, 4) each."""
    return np.stack([one.whole for one in seen]), np.stack([one.votes for one in seen])


def _fit(seen: Sequence[Seen]) -> Anchor:
    return Anchor(float(fit(_evidence(seen)[0])[0]))


def measure(anchor: Anchor, both: NDArray[np.float64], seen: Sequence[Seen]) -> Mapping[str, Any]:
    """By n, the share right of single fragments, fragments voting, the whole, whole and votes; -log p of the last two.

    Shapes: both (2,), the weights of whole and votes.
    """
    out: dict[str, Any] = {"puzzles": len(seen)}
    for n, _ in PUZZLES:
        of = [one for one in seen if one.n == n]
        whole, voted = _evidence(of)
        log_p = {
            "whole": log_softmax(anchor.log_p(whole), axis=1),
            "both": log_softmax(both[0] * whole + both[1] * voted, axis=1),
        }
        right = {
            "single fragments": float(np.mean([one.singles for one in of])),
            **{name: _share(rows) for name, rows in ({"fragments": voted} | log_p).items()},
        }
        nll = {f"{name} nll": float(-rows[:, 0].mean()) for name, rows in log_p.items()}
        out[f"{n}x{n}"] = {name: round(value, 4) for name, value in (right | nll).items()}
    return out


def _share(rows: NDArray[np.float64]) -> float:
    return float((rows.argmax(axis=1) == 0).mean())


def fit(*evidence: Floats) -> Floats:
    """One weight for each kind of evidence, so that the true global turns, which are 0, are likeliest.

    Shapes: K of (M, 4) -> (K,).
    """
    stacked = np.stack(evidence)

    def loss(x: Floats) -> float:
        return float(-log_softmax(np.tensordot(np.exp(x), stacked, 1), axis=1)[:, 0].mean())

    start = np.linspace(-0.5, -1.0, len(stacked))
    return np.asarray(np.exp(minimize(loss, start, method="L-BFGS-B", bounds=[(-7.0, 3.0)] * len(stacked)).x))
