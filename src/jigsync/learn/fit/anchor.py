"""Fits and measures the gauge anchor on puzzles that are put together rightly: how often is it right, and how surely.

From every picture puzzles of several shapes are cut with light to severe damage, and one is torn; they are assembled by
their truth, with small errors of poses where there is no grid: the anchor is about which side is up, not about
assembling. Half of the pictures fit, the other half measures; what ships is fitted on all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.gauge import CLEAR, FORMAT, Anchor, Floats
from jigsync.io.images import read_rgb
from jigsync.measure.borders import borders
from jigsync.measure.document import document_sha256, load_document
from jigsync.measure.unary import load_unary, weights_sha256
from jigsync.measure.upright import Looker
from jigsync.render.assemble import composed
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values import angles
from jigsync.values.layout import FREE, Grid, Layout
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

GRIDS: Final = (Grid(3, 3), Grid(5, 5), Grid(4, 6), Grid(6, 4))
CELL: Final = 96
SEVERITY: Final = ("light", "medium", "heavy", "severe")
TORN: Final = "torn"
PIECES: Final = (12, 30)
ERRORS: Final = (math.radians(0.5), 1.0)
"""Standard deviations of the errors of a torn puzzle's poses: an angle, and pixels."""
FIRST: Final = 10
"""Fewest answers of which a share is taken."""
TOLERANCE: Final = math.radians(5.0)
"""Of what is upright."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What is seen of a puzzle whose true further turn is 0.

    Attributes:
        kind: its grid, or TORN.
        log_odds: (2, 4) of the head and of the document network.
        straight: one of the four further turns is upright; of a torn puzzle they are those of its borders.
    """

    kind: str
    log_odds: Floats
    straight: bool = True


def look(path: Path, kind: Grid | str, severity: str, seed: int, looker: Looker) -> Seen:
    """One puzzle, assembled by its truth."""
    rgb = read_rgb(path)
    if isinstance(kind, Grid):
        puzzle, truth = cut_picture(rgb, CutOptions(kind, CELL, SEVERITIES[severity]), seed, redraw=False)
        return Seen(str(kind), looker.look(_picture(puzzle, kind, truth.placement)))
    rng = np.random.default_rng(seed)
    options = TearOptions(int(rng.integers(PIECES[0], PIECES[1] + 1)), CELL, photo=SEVERITIES[severity].photo)
    puzzle, truth = tear_picture(rgb, options, seed)
    lying = Pose(float(rng.uniform(-math.pi, math.pi)), (0.0, 0.0))
    placement = {}
    for name, placed in truth.placement.items():
        assert placed.pose is not None
        x, y = (np.array(placed.pose.xy) + rng.normal(0, ERRORS[1], 2)).tolist()
        placement[name] = Placed(lying.compose(Pose(placed.pose.angle + rng.normal(0, ERRORS[0]), (x, y))))
    picture = _picture(puzzle, FREE, placement)
    further = borders(picture[..., 3]).angle
    seen = looker.look_at(picture, np.array([further]))[0]
    error = angles.wrap(further + lying.angle)
    turns = angles.nearest_turns(error)
    return Seen(kind, np.roll(seen, turns, axis=1), abs(angles.wrap(error - angles.of_turns(turns))) <= TOLERANCE)


def _picture(puzzle: Puzzle, layout: Layout, placement: Placement) -> Pixels:
    solution = Solution("ok", "", layout, placement)
    return composed(puzzle, solution, layout_of(puzzle, solution))


def calibrate(
    pictures: Sequence[Path], weights: Path | None, seed: int, command: str, tick: Callable[[int, int], None]
) -> dict[str, Any]:
    """Everything that anchor.json holds."""
    looker = Looker(load_unary(weights), load_document())
    seen: list[list[Seen]] = []
    for k, path in enumerate(pictures):
        seen.append([])
        shapes: list[Grid | str] = [*GRIDS[:2], GRIDS[2 + k // 2 % 2], TORN]
        for j, kind in enumerate(shapes):
            severity = SEVERITY[(k // 2 + j) % len(SEVERITY)]
            seen[-1].append(look(path, kind, severity, derive_seed(seed, "anchor", path.name, str(kind)), looker))
        tick(k + 1, len(pictures))
    halves = [[one for part in seen[start::2] for one in part] for start in (0, 1)]
    answers = [one for start in (0, 1) for one in answered(fitted(halves[start]), halves[1 - start])]
    kinds = ("all", *dict.fromkeys(one.kind for one in answers))
    final = fitted([one for part in seen for one in part])
    return {
        "format": FORMAT,
        **asdict(final),
        "head_sha256": weights_sha256(weights),
        "document_sha256": document_sha256(),
        "data": f"{len(pictures)} pictures, 4 puzzles each; held out: each half by what was fitted on the other",
        "command": command,
        "seed": seed,
        "held_out": {kind: measure([one for one in answers if kind in ("all", one.kind)]) for kind in kinds},
    }


def fitted(seen: Sequence[Seen]) -> Anchor:
    """The numbers that make the true turns likeliest, and the threshold above which CLEAR of the answers are right."""
    straight = np.stack([one.log_odds for one in seen if one.straight])
    head, document = fit(straight[:, 0], straight[:, 1]).tolist()
    answers = answered(Anchor(head, document), seen)
    return Anchor(head, document, threshold(np.array([a.sure for a in answers]), np.array([a.right for a in answers])))


def fit(*evidence: Floats) -> Floats:
    """One weight for each kind of evidence, so that the true global turns, which are 0, are likeliest.

    Shapes: K of (M, 4) -> (K,).
    """
    stacked = np.stack(evidence)

    def loss(x: Floats) -> float:
        return float(-log_softmax(np.tensordot(np.exp(x), stacked, 1), axis=1)[:, 0].mean())

    start = np.linspace(-0.5, -1.0, len(stacked))
    return np.asarray(np.exp(minimize(loss, start, method="L-BFGS-B", bounds=[(-7.0, 3.0)] * len(stacked)).x))


def threshold(sure: Floats, right: NDArray[np.bool_]) -> float:
    """The least probability so that of answers as sure, and of answers that are surer by any bound, CLEAR are right.

    The FIRST surest are too few to count by themselves. 1 where there is none. Shapes: (M,), (M,).
    """
    order = np.argsort(-sure, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    poor = np.flatnonzero(share[FIRST:] < CLEAR)
    last = FIRST + int(poor[0]) - 1 if len(poor) else len(order) - 1
    return float(sure[order[last]]) if share[last] >= CLEAR else 1.0


@dataclass(frozen=True)
class Answer:
    """How sure the likeliest turn of a puzzle is, whether that is clear, whether it is right, log p of the true one."""

    kind: str
    sure: float
    clear: bool
    right: bool
    log_p: float


def answered(anchor: Anchor, seen: Sequence[Seen]) -> list[Answer]:
    """What the anchor makes of puzzles."""
    out = []
    for one in seen:
        log_p = log_softmax(anchor.log_p(one.log_odds))
        sure = float(np.exp(log_p.max()))
        right = bool(log_p.argmax() == 0) and one.straight
        out.append(Answer(one.kind, sure, sure >= anchor.clear, right, float(log_p[0])))
    return out


def measure(answers: Sequence[Answer]) -> dict[str, float]:
    """The share right, -log p, the share that is clear, and the share right of those."""
    clear = [one.right for one in answers if one.clear]
    return {
        "puzzles": len(answers),
        "right": round(float(np.mean([one.right for one in answers])), 4),
        "nll": round(-float(np.mean([one.log_p for one in answers])), 4),
        "clear": round(len(clear) / len(answers), 4),
        "right of clear": round(sum(clear) / max(1, len(clear)), 4),
    }
