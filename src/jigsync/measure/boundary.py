"""Training-free measurers: costs along the contour, calibrated to probabilities of touching sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jigsync.measure.calibration import Calibration, shipped
from jigsync.measure.contour import Contours, read_contours
from jigsync.measure.costs import Cost, Gradients, Plane, Prediction, SeamBand
from jigsync.measure.probabilities import calibrated
from jigsync.measure.worn import NAMES as WORN
from jigsync.measure.worn import Worn
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle

FLUSH_PIXELS: Final = 0.75
"""A contour nearer to the cell's side than this is at it."""
OBLONG: Final = 0.25
"""Share of straight sides beyond the cell's from which fragments are rectangles: half of theirs are. A cell is a square
of their area, so they leave it on one axis and do not fill it on the other, which is no gap. Pixels across the seam
agree then, and no network was shown anything but squares."""
REGIMES: Final = ("flush", "gapped", "damaged")
"""Squares and rectangles that fill their cells; straight squares with a rim cut off; anything else."""
MEASURERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "boundary": {
        "flush": ("mgc", "prediction", "rim", "seam"),
        "gapped": ("mgc", "prediction", "rim", "seam", "edge", "texture"),
        "damaged": ("mgc", "rim", "seam", "fit", "edge", "texture"),
    },
    "mgc": dict.fromkeys(REGIMES, ("mgc",)),
    "seam": dict.fromkeys(REGIMES, ("seam",)),
    "silhouette": dict.fromkeys(REGIMES, ("fit",)),
}
"""Measurer -> regime -> its costs. Squares have no shape to read, and on flush ones rows need no robustness."""


def make_costs(contours: Contours, names: Sequence[str]) -> list[Cost]:
    """The named costs of a puzzle's sides."""
    made: dict[str, Cost] = {}
    if not set(names).isdisjoint(WORN):
        made.update(Worn(contours).costs())
    if "mgc" in names:
        made["mgc"] = Gradients(contours)
    if "prediction" in names:
        made["prediction"] = Prediction(contours)
    if "plane" in names:
        made["plane"] = Plane(contours)
    if "seam" in names:
        made["seam"] = SeamBand(contours)
    if "rim" in names:
        made["rim"] = SeamBand(contours, 2)
    return [made[name] for name in names]


def regime_of(contours: Contours) -> str:
    """Which of REGIMES applies: read off the fragments, not told."""
    if not contours.straight:
        return "damaged"
    beyond = contours.offset.mean(axis=1) * contours.cell > FLUSH_PIXELS
    oblong = beyond.mean() > OBLONG
    return "flush" if oblong or contours.widest_gap < FLUSH_PIXELS else "gapped"


@dataclass(frozen=True)
class Boundary:
    """A training-free measurer.

    Attributes:
        name: one of MEASURERS.
        straight: read at the cell's straight side instead of the contour (for the studies).
        calibration: fitted weights; None takes the shipped ones of the puzzle's regime.
    """

    name: str = "boundary"
    straight: bool = False
    calibration: Calibration | None = None

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs of sides; sparse for large puzzles."""
        contours = read_contours(puzzle, self.straight)
        regime = regime_of(contours)
        names = MEASURERS[self.name][regime]
        calibration = self.calibration or shipped(self.name, regime, names)
        found = calibrated(puzzle, make_costs(contours, names), calibration, contours.own_features)
        return replace(found, cell=contours.cell)
