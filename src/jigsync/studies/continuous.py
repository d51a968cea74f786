"""Study `continuous`: how well a fragment's angle is told when it may be any, as a tolerance curve.

Round parts of pictures (no corners that would tell), turned by a uniform angle, resampled once. The continuous head is
set beside the four-way head on the same views: that one can only answer multiples of 90 degrees, and so is within 45
of the truth where it names the nearest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.corpus.pool import run_units
from jigsync.cutting.photometry import jpeg_quality, jpeg_round_trip
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.progress import Progress
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.measure.continuous import load_continuous, round_views
from jigsync.measure.described import HEADS as NUMBERS
from jigsync.measure.described import described
from jigsync.measure.unary import load_unary
from jigsync.score.intervals import Interval, wilson
from jigsync.studies.cues import pictures_of
from jigsync.studies.figure import figure, line_style
from jigsync.studies.result import Compared, StudyResult

Floats = NDArray[np.float64]
TOLERANCES: Final = (5.0, 10.0, 22.5, 45.0)
"""Degrees."""
SHARE: Final = 1 / 3
"""Diameter of a part in shorter sides of the picture: a cell of 3 x 3."""
PARTS: Final = 9
"""Parts of a picture, on a 3 x 3 grid of its middle square."""
PICTURES: Final = 40
FULL_PICTURES: Final = 400
HEADS: Final = ("continuous", "four-way")
NOT_COMPARABLE: Final = "cannot be compared: the paper's table is marked as invented in its own source"


@dataclass(frozen=True)
class Task:
    """One picture."""

    picture: Path
    seed: int
    weights: Path | None
    encoder: Path | None


def run_task(task: Task) -> dict[str, Floats]:
    """How far each head is off, in degrees, for each part. Shapes: -> (PARTS,) each."""
    rgb, rng = read_rgb(task.picture), np.random.default_rng(task.seed)
    side = SHARE * min(rgb.shape[:2])
    middle = np.array(rgb.shape[1::-1]) / 2
    angles = rng.uniform(0, 360, PARTS)
    views = []
    for k, angle in enumerate(angles):
        row, col = divmod(k, 3)
        x, y = middle + side * np.array([col - 1, row - 1])
        quality = jpeg_quality(rng)
        turned = round_views(rgb, (float(x), float(y)), side, float(angle))
        views.append([jpeg_round_trip(np.ascontiguousarray(view), quality) for view in turned])
    said = described(np.array(views), load_unary(task.encoder))
    found = load_continuous(task.weights, task.encoder).angles(said)
    four = 90.0 * said[..., -NUMBERS].argmax(axis=1)
    return {"continuous": apart(found, angles), "four-way": apart(four, angles)}


def apart(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """Absolute difference of angles, 0 .. 180. Shapes: (M,), (M,) -> (M,)."""
    return np.asarray(np.abs((a - b + 180) % 360 - 180))


def chance(tolerance: float) -> float:
    """Share within a tolerance of an answer that knows nothing."""
    return tolerance / 180


def ceiling(head: str, tolerance: float) -> float:
    """Share within a tolerance of a head that is always as right as it can be."""
    return 1.0 if head == "continuous" else min(1.0, tolerance / 45)


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """The tolerance curves of the shipped heads."""
    return run_pictures(FULL_PICTURES if full else PICTURES, workers, seed, progress, images)


def run_pictures(
    count: int,
    workers: int,
    seed: int,
    progress: Progress,
    images: Path | None = None,
    weights: Path | None = None,
    encoder: Path | None = None,
) -> StudyResult:
    """The study at a chosen size; pictures that begin again are turned by other angles."""
    pictures = evenly_spaced(pictures_of(images), count)
    tasks = [
        Task(pictures[k % len(pictures)], derive_seed(seed, "continuous", k), weights, encoder) for k in range(count)
    ]
    found: dict[Task, dict[str, Floats]] = {}
    progress("continuous", 0, count)
    for task, off in run_units(run_task, tasks, workers):
        found[task] = off
        progress("continuous", len(found), count)
    off = {head: np.concatenate([found[task][head] for task in tasks]) for head in HEADS}
    rows = [_row(head, tolerance, off[head]) for head in HEADS for tolerance in TOLERANCES]
    return StudyResult(
        name="continuous",
        title="angle of single round fragments, any angle: share within a tolerance",
        rows=rows,
        compared=[_compare(row) for row in rows],
        verdict=_verdict(rows, off, len(pictures)),
        settings={
            "pictures": len(pictures),
            "fragments": PARTS * count,
            "images": "bundled" if images is None else "a folder",
            "weights": "shipped" if weights is None else "a file",
            "seed": seed,
        },
        plot=partial(_plot, off),
    )


def _row(head: str, tolerance: float, off: Floats) -> dict[str, Any]:
    share = wilson(int((off <= tolerance).sum()), len(off))
    return {
        "head": head,
        "tolerance": tolerance,
        "fragments": share.n,
        "within": share.estimate,
        "within_low": share.low,
        "within_high": share.high,
        "chance": chance(tolerance),
        "ceiling": ceiling(head, tolerance),
    }


def _compare(row: dict[str, Any]) -> Compared:
    share = Interval(row["within"], row["within_low"], row["within_high"], row["fragments"])
    said = f"chance {100 * row['chance']:.1f} %, at most {100 * row['ceiling']:.1f} %"
    return Compared(f"{row['head']} head, within {row['tolerance']:g} degrees", share.percent(), "not quoted", said)


def _verdict(rows: Sequence[dict[str, Any]], off: dict[str, Floats], pictures: int) -> str:
    at = {(row["head"], row["tolerance"]): row["within"] for row in rows}
    medians = ", ".join(f"{head} {np.median(off[head]):.0f}" for head in HEADS)
    curve = " / ".join(f"{100 * at['continuous', tolerance]:.1f}" for tolerance in TOLERANCES)
    return (
        f"Within {' / '.join(f'{t:g}' for t in TOLERANCES)} degrees the continuous head is right for {curve} % of"
        f" {rows[0]['fragments']} round parts of {pictures} pictures; the four-way head on the same parts names the"
        f" nearest quarter turn for {100 * at['four-way', 45.0]:.1f} %. Median error in degrees: {medians} (chance 90)."
        f" Parts of one picture are not independent, as the intervals take them to be. The paper: {NOT_COMPARABLE}."
    )


def _plot(off: dict[str, Floats], path: Path) -> None:
    tolerance = np.arange(0, 181)
    with figure(path, 1, 1, (6.5, 4)) as (_, axis):
        for k, head in enumerate(HEADS):
            share = [100 * (off[head] <= t).mean() for t in tolerance]
            axis.plot(tolerance, share, **{**line_style(k), "marker": ""}, label=f"{head} head")
        axis.plot(tolerance, tolerance / 1.8, color="#555555", linestyle=":", lw=1.2, label="chance")
        axis.set(xlabel="tolerance, degrees", ylabel="within it, per cent", title="Angle of single round fragments")
        axis.set_xticks(range(0, 181, 45))
        axis.legend()
