"""Fits the calibration of the training-free measurers on puzzles cut from a folder of pictures.

Half of the pictures fit the weights, the other half measures them: every figure in the file is held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.io.files import read_json
from jigsync.io.images import read_rgb
from jigsync.io.schema import Node
from jigsync.measure import backbone as backbones
from jigsync.measure import content, learned
from jigsync.measure.boundary import MEASURERS, make_costs, regime_of
from jigsync.measure.calibration import CONTENT, FEATURES_PER_COST, FORMAT, LEARNED, Calibration, Example, fit
from jigsync.measure.contour import Contours, read_contours
from jigsync.measure.costs import Cost
from jigsync.measure.probabilities import dense_features, dense_log_costs
from jigsync.score.touching import touching
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle

KINDS: Final[Mapping[str, Sequence[SquareOptions | CutOptions]]] = {
    "flush": [SquareOptions(28, Grid(12, 16)), SquareOptions(64, Grid(6, 8)), SquareOptions(128, Grid(4, 5))],
    "gapped": [SquareOptions(50, Grid(7, 9), erode=2), SquareOptions(50, Grid(7, 9), erode=5)],
    "damaged": [CutOptions(Grid(4, 5), damage=damage) for name, damage in SEVERITIES.items() if name != "clean"],
}
"""Regime -> the puzzles it is fitted on."""
SIDES_A_PUZZLE: Final = 24
SMALL_GRID: Final = 20


CONTENT_KINDS: Final[Mapping[str, Sequence[SquareOptions | CutOptions]]] = {
    "flush": [SquareOptions(128, Grid(4, 5))],
    "gapped": [SquareOptions(50, Grid(6, 7), erode=5)],
    "damaged": KINDS["damaged"],
}
"""The same for content: a network takes its time, and sees little in a fragment of 28 pixels."""
LEARNED_KINDS: Final[Mapping[str, Sequence[SquareOptions | CutOptions]]] = {
    "gapped": [
        SquareOptions(50, Grid(7, 9), erode=2),
        SquareOptions(50, Grid(7, 9), erode=5),
        SquareOptions(64, Grid(6, 6), erode=3),
        SquareOptions(50, Grid(10, 10), erode=5),
    ],
    "damaged": [
        *KINDS["damaged"],
        *(CutOptions(Grid(7, 7), 64, SEVERITIES[name]) for name in ("medium", "heavy", "severe", "eroded")),
        *(CutOptions(Grid(3, 3), damage=SEVERITIES[name]) for name in ("severe", "eroded")),
        CutOptions(Grid(10, 10), 64, SEVERITIES["eroded"]),
    ],
}
"""The same for the trained matcher, which is for what is worn: also for many and for few fragments."""


@dataclass(frozen=True)
class Family:
    """Measurers that are fitted together.

    Attributes:
        measurers: measurer -> regime -> its costs.
        kinds: regime -> the puzzles.
        make: (puzzle, contours, names of costs) -> costs, and the features of single sides.
        worn: the weights depend on the puzzle's wear (`measure.learned`).
    """

    measurers: Mapping[str, Mapping[str, tuple[str, ...]]]
    kinds: Mapping[str, Sequence[SquareOptions | CutOptions]]
    make: Callable[[Puzzle, Contours, Sequence[str]], tuple[list[Cost], NDArray[np.float32]]]
    worn: bool = False

    def names(self, regime: str) -> list[str]:
        """Every cost that some measurer uses in a regime."""
        return list(dict.fromkeys(name for by_regime in self.measurers.values() for name in by_regime[regime]))


BOUNDARY: Final = Family(
    MEASURERS, KINDS, lambda puzzle, contours, names: (make_costs(contours, names), contours.own_features)
)


def content_family(weights: Path | None = None) -> Family:
    """The content measurers on Lite0, or on DINOv2 from a file."""
    backbone = backbones.get(weights)

    def make(puzzle: Puzzle, contours: Contours, names: Sequence[str]) -> tuple[list[Cost], NDArray[np.float32]]:
        return content.content_costs(names, contours, content.show(puzzle, backbone)), contours.own_features

    return Family(content.MEASURERS, CONTENT_KINDS, make)


def learned_family(weights: Path | None = None, likeness: Path | None = None) -> Family:
    """The measurers of the trained matcher: the shipped one, or that of a file."""
    models = learned.Models.load(weights, likeness)
    return Family(
        learned.MEASURERS,
        LEARNED_KINDS,
        lambda puzzle, contours, names: learned.learned_costs(names, contours, models.encode(puzzle, contours)),
        worn=True,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """A side's candidates with the features of all costs, its own, and the wear of its puzzle.

    Shapes: feature (C, 3 K), own (G,), worn (3,) or, where weights do not depend on it, (1,).
    """

    feature: NDArray[np.float32]
    own: NDArray[np.float32]
    true: int
    worn: NDArray[np.float32]

    def example(self, pick: NDArray[np.int64]) -> Example:
        """The side with some of the features, times the wear."""
        feature, own = (learned.worn_features(part, self.worn) for part in (self.feature[:, pick], self.own))
        return Example(feature, own, self.true)


def _sides(
    family: Family, pictures: Sequence[Path], regime: str, rng: np.random.Generator, tick: Callable[[], None]
) -> Iterator[_Side]:
    for picture in pictures:
        rgb = read_rgb(picture)
        for options in family.kinds[regime]:
            seed = int(rng.integers(2**31))
            if isinstance(options, SquareOptions):
                puzzle, truth = cut_squares(rgb, options, seed)
            else:
                # Large severe grids never pass the area floor: they are kept as they are in the end anyway.
                puzzle, truth = cut_picture(rgb, options, seed, redraw=options.grid.size <= SMALL_GRID)
            contours = read_contours(puzzle)
            if regime_of(contours) != regime:
                continue
            costs, own = family.make(puzzle, contours, family.names(regime))
            with np.errstate(invalid="ignore"):
                feature = dense_features(*dense_log_costs(costs, len(puzzle)))
            worn = learned.wear(contours) if family.worn else np.ones(1, dtype=np.float32)
            partner = touching(truth.placement, puzzle.ids)
            for s in rng.choice(len(partner), SIDES_A_PUZZLE, replace=False):
                other = np.flatnonzero(np.arange(len(partner)) // z4.ORDER != s // z4.ORDER)
                true = int(np.searchsorted(other, partner[s])) if partner[s] >= 0 else -1
                yield _Side(feature[s, other], own[s], true, worn)
        tick()


def calibrate(
    family: Family, pictures: Sequence[Path], seed: int, command: str, tick: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """What calibration.json holds of a family."""
    rng = np.random.default_rng(seed)
    half = (len(pictures) + 1) // 2
    measurers: dict[str, Any] = {}
    for regime in family.kinds:
        learn = list(_sides(family, pictures[:half], regime, rng, tick))
        held_out = list(_sides(family, pictures[half:], regime, rng, tick))
        names = family.names(regime)
        for measurer, by_regime in family.measurers.items():
            costs = by_regime[regime]
            pick = np.concatenate([np.arange(FEATURES_PER_COST) + FEATURES_PER_COST * names.index(c) for c in costs])
            called = learned.worn_names(costs) if family.worn else costs
            fitted, _ = fit(called, [side.example(pick) for side in learn])
            measurers[f"{measurer}/{regime}"] = {
                "costs": list(called),
                "weights": [float(w) for w in fitted.weights],
                "none": [float(w) for w in fitted.none],
                "held_out": _measure(fitted, pick, held_out),
            }
    return {
        "data": f"{len(pictures)} pictures, half of them held out, {SIDES_A_PUZZLE} sides a puzzle",
        "command": command,
        "seed": seed,
        "measurers": measurers,
    }


def older(path: Path) -> dict[str, Any] | None:
    """What an earlier fit wrote to a file; None when there is no file, FormatError when it is something else."""
    if not path.exists():
        return None
    root = Node(read_json(path), str(path))
    root.format(FORMAT)
    return root.object()


def merged(
    old: Mapping[str, Any] | None, fitted: Mapping[str, Any], backbone: str | None, networks: str | None = None
) -> dict[str, Any]:
    """The whole file: the fitted family, and of an older file the families that were not fitted now.

    Args:
        backbone: name of the network when the content family was fitted, else None.
        networks: sha256 of the weights when the learned family was fitted, else None.
    """
    old = old or {}
    if backbone is None and networks is None:
        kept = {key: old[key] for key in (CONTENT, LEARNED) if key in old}
        return {"format": FORMAT, **fitted, CONTENT: {"measurers": {}}, **kept}
    if networks is not None:
        return {"measurers": {}, **old, "format": FORMAT, LEARNED: {"weights_sha256": networks, **fitted}}
    return {"measurers": {}, **old, "format": FORMAT, CONTENT: {"backbone": backbone, **fitted}}


def _measure(calibration: Calibration, pick: NDArray[np.int64], sides: Sequence[_Side]) -> dict[str, float]:
    """Top-1 accuracy of sides that have a neighbour, mean log-likelihood (nats) of all sides, and how well the
    border is told (area under the curve)."""
    right, likelihood, border = [], [], []
    for side in sides:
        example = side.example(pick)
        logits = np.append(calibration.logits(example.feature), calibration.no_neighbour(example.own))
        log_p = logits.astype(np.float64) - np.logaddexp.reduce(logits.astype(np.float64))
        likelihood.append(log_p[side.true])
        border.append((side.true < 0, log_p[-1]))
        if side.true >= 0:
            right.append(int(np.argmax(logits[:-1])) == side.true)
    return {
        "sides": len(sides),
        "top1": round(float(np.mean(right)), 4),
        "log_likelihood": round(float(np.mean(likelihood)), 4),
        "border_auc": round(_auc(border), 4),
    }


def _auc(judged: Sequence[tuple[bool, float]]) -> float:
    """Probability that a side of the border gets more than one inside: the Mann-Whitney statistic."""
    on_border, value = (np.array(part) for part in zip(*judged, strict=True))
    rank = rankdata(value)
    inside, outside = int((~on_border).sum()), int(on_border.sum())
    return float((rank[on_border].sum() - outside * (outside + 1) / 2) / max(1, inside * outside))
