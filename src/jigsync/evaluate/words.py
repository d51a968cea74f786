"""What tables say: the measures' names, meanings and figures, the same on the terminal and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jigsync.evaluate.table import MEDIANS, Line
from jigsync.score.intervals import Interval
from jigsync.score.theirs import THEIRS

POSES_SHOWN: Final = ("right", "perfect", "contacts", "claims", "largest", "upright", "angle", "centre")
SLOTS_SHOWN: Final = ("PA", "AA", "AA+rot", "PA+rot", "SRA", "rotation")
MEANING: Final = {
    "right": "fragments at their place and angle, the whole moved as one",
    "perfect": "puzzles with every fragment right",
    "contacts": "true neighbours that lie to each other as they should",
    "claims": "neighbours in the answer that lie to each other as they should",
    "largest": "fragments in the largest part that right contacts join",
    "upright": "puzzles whose answer stands within 5 degrees of the truth",
    "angle": "median error of an angle, in degrees; the median puzzle",
    "centre": "median error of a centre, in pixels; the median puzzle",
    "PA": "puzzles with every fragment in its slot",
    "AA": "fragments in their slot",
    "AA+rot": "fragments in their slot and turned right",
    "PA+rot": "puzzles with every fragment in its slot and turned right",
    "SRA": "true neighbours still side by side, as they were",
    "rotation": "fragments turned right",
    **THEIRS,
}


def figure(measure: str, value: float) -> str:
    """One figure: errors in their unit, all others in per cent."""
    return f"{value:.1f}" if measure in MEDIANS else f"{100 * value:.1f}"


def ends(measure: str, interval: Interval) -> tuple[str, str]:
    """The interval's two ends, as short as can be."""
    low, high = (figure(measure, value).removesuffix(".0") for value in (interval.low, interval.high))
    return low, high


def theirs_shown(lines: list[Line]) -> tuple[str, ...]:
    """The metrics of others that some line has."""
    return tuple(name for name in THEIRS if any(name in line.poses for line in lines))


def weights_told(identity: Mapping[str, Any]) -> str:
    """Which networks a method may have run, by the first digits of their sha256."""
    networks = identity.get("networks") or {}
    return f"weights {', '.join(f'{name} {sha}' for name, sha in networks.items())}" if networks else "no weights"
