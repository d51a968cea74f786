"""Which side is up: the stage that fixes the one global turn no pairwise residual can see, from content.

    log p(g) = w log p_whole(g) + sum_i log p_i(k_i + g) + const

p_whole is what the head says about the assembled picture, p_i what the measurer says about single fragments. How sure
the head is depends on the size at which it sees pictures, and w puts that right: `jigsync calibrate-anchor` fits it on
pictures that the head was not trained on and writes weights/anchor.json; it belongs to one file of weights.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import parse_json
from jigsync.measure.unary import load_unary, measure_picture, upright_scores
from jigsync.render.assemble import composed
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values import angles, z4
from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.gauge import Gauge, fix_by_evidence, probabilities, votes
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-anchor/2"
SHIPPED: Final = "anchor.json"
FREE_STEPS: Final = 6
"""Angles of a quarter turn at which a picture with ragged borders is looked at: 15 degrees apart."""
STRAIGHT: Final = 0.93
"""Least share of the smallest rectangle around a picture that its convex hull fills when its borders are straight."""
SURE: Final = Gauge((0.0,), (1.0,), None)
UNKNOWN: Final = Gauge((0.0, angles.QUARTER, -math.pi, -angles.QUARTER), (0.25,) * 4, None)


@dataclass(frozen=True)
class Anchor:
    """The fitted number.

    Attributes:
        whole: w.
        sha256: of the weights it was fitted for.
    """

    whole: float
    sha256: str = ""

    def log_p(self, whole: Floats) -> Floats:
        """Log-odds of the four global turns. Shapes: (..., 4) -> (..., 4)."""
        return self.whole * whole


@cache
def shipped() -> Anchor:
    """The number that belongs to the shipped weights."""
    data = parse_json((files("jigsync.weights") / SHIPPED).read_bytes(), SHIPPED)
    if data.get("format") != FORMAT:
        raise FormatError(f"The file {SHIPPED} must have the format '{FORMAT}'. It has {data.get('format')!r}.")
    numbers: dict[str, Any] = {name: data[name] for name in ("whole", "sha256")}
    return Anchor(**numbers)


class Fixed(NamedTuple):
    """A solution whose gauge is fixed, and a remark for whoever asked where that was not possible."""

    solution: Solution
    remark: str


def fix_gauge(
    puzzle: Puzzle,
    draft: Solution,
    unary_turns: NDArray[np.floating[Any]] | None,
    possible: Sequence[bool],
    given: bool,
) -> Fixed:
    """Turns an assembly so that it stands upright as far as content tells.

    Args:
        draft: in any gauge.
        unary_turns: (N, 4) log-probabilities of canvas turns of single fragments, or None.
        possible: of the four further global turns of a grid; one that would break the asked grid is not.
        given: a pin or `upright` fixes the gauge outright.
    """
    if not isinstance(draft.layout, Grid):
        return Fixed(replace(draft, gauge=SURE), "") if given else _fix_free(puzzle, draft)
    if given:
        return Fixed(_gauged(puzzle, draft, (1.0, 0.0, 0.0, 0.0)), "")
    log_odds, remark = _votes(puzzle, draft, unary_turns), ""
    try:
        seen = measure_picture(composed(puzzle, draft, layout_of(puzzle, draft)), load_unary(), len(puzzle))
        log_odds = log_odds + shipped().log_p(seen)
    except JigsyncError as error:
        remark = _untold(error)
    p = probabilities(log_odds, possible)
    best = fix_by_evidence(p)
    return Fixed(_gauged(puzzle, draft.turned(best), np.roll(p, -best).tolist()), remark)


def _votes(puzzle: Puzzle, draft: Solution, unary_turns: NDArray[np.floating[Any]] | None) -> Floats:
    """(4,) what single fragments say; nothing where their angles are no quarter turns."""
    poses = [draft.placement[name].pose for name in puzzle.ids]
    placed = [k for k, pose in enumerate(poses) if pose is not None]
    turns = [pose.turns for pose in poses if pose is not None]
    if unary_turns is None or None in turns:
        return np.zeros(z4.ORDER)
    return votes(np.array(turns, dtype=np.int64), unary_turns[placed])


def _fix_free(puzzle: Puzzle, draft: Solution) -> Fixed:
    """The likeliest of many angles. Straight outer borders leave four of them: those that make the borders upright."""
    draft = replace(draft, gauge=UNKNOWN)
    try:
        whole = _largest(draft)
        picture = composed(puzzle, whole, layout_of(puzzle, whole))
        border = border_angle(picture[..., 3])
        first = np.arange(FREE_STEPS) * angles.QUARTER / FREE_STEPS if border is None else np.array([border])
        model = load_unary()
        z = np.array([upright_scores(turned_picture(picture, angle), model, len(puzzle)) for angle in first])
    except JigsyncError as error:
        return Fixed(draft, _untold(error))
    p = probabilities(shipped().whole * z.T.ravel())
    angle = angles.wrap((first + np.arange(z4.ORDER)[:, None] * angles.QUARTER).ravel())
    best = int(np.argmax(p))
    further = angles.wrap(angle - angle[best])
    order = [best, *(k for k in np.argsort(np.abs(further), kind="stable").tolist() if k != best)]
    gauge = Gauge(tuple(further[order].tolist()), tuple(p[order].tolist()), None)
    return Fixed(draft.moved(Pose(float(angle[best]), (0.0, 0.0)), gauge), "")


def _largest(draft: Solution) -> Solution:
    """The largest component alone: others do not say how they lie towards it."""
    count = Counter(placed.component for placed in draft.placement.values() if placed.pose is not None)
    if not count:
        return draft
    most = max(count, key=lambda part: (count[part], -part))
    kept = {
        name: placed if placed.component == most else Placed.nowhere(placed.confidence)
        for name, placed in draft.placement.items()
    }
    return replace(draft, placement=kept)


def border_angle(alpha: NDArray[np.uint8]) -> float | None:
    """The further turn, in [0, 90) degrees, that makes a picture's straight borders upright; None for ragged ones.

    A picture with straight borders nearly fills the smallest rectangle around it. Shapes: alpha (H, W).
    """
    solid = (alpha >= 128).astype(np.uint8)
    outlines, _ = cv2.findContours(solid, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    if not outlines:
        return None
    hull = cv2.convexHull(np.concatenate(outlines))
    (_, (width, height), clockwise) = cv2.minAreaRect(hull)
    # Corners that are torn off cost area; borders that are ragged cost more.
    if cv2.contourArea(hull) < STRAIGHT * width * height:
        return None
    return math.radians(clockwise) % angles.QUARTER


def turned_picture(picture: Pixels, angle: float) -> Pixels:
    """A premultiplied picture after a further turn, whole. Shapes: (H, W, 4) -> (H', W', 4)."""
    if angle == 0:
        return picture
    height, width = picture.shape[:2]
    canvas_from_old = angles.matrix(angle)
    size = np.abs(canvas_from_old) @ np.array([width, height])
    out = math.ceil(size[0] - 1e-6), math.ceil(size[1] - 1e-6)
    shift = (np.array(out) - 1) / 2 - canvas_from_old @ ((np.array([width, height]) - 1) / 2)
    affine = np.column_stack([canvas_from_old, shift])
    return np.asarray(cv2.warpAffine(picture, affine, out, flags=cv2.INTER_AREA), dtype=np.uint8)


def _untold(error: JigsyncError) -> str:
    return f"Which side is up is not told by the assembled picture: {error}"


def _gauged(puzzle: Puzzle, solution: Solution, p: Sequence[float]) -> Solution:
    """The solution with what is known of its four gauges."""
    pose = solution.placement[puzzle.ids[0]].pose if len(puzzle) else None
    gauge = Gauge.of_turns(0, p)
    return replace(solution, gauge=replace(gauge, turns=0 if pose is None else pose.turns))
