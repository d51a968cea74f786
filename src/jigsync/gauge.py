"""Which side is up: the stage that fixes the one global turn no pairwise residual can see, from content.

    log p(g) = w head_g + v document_g + sum_i log p_i(k_i + g) + const

head and document are what two networks say about the assembled picture (measure/upright.py), p_i what the measurer says
about single fragments. Without a grid g is any angle: the picture is looked at every few degrees and where its straight
borders lie level,

    log p(g) = w head_g + v document_g + log prior(g),   prior(g) = s / 4 for the four turns of the borders,
                                                                    (1 - s) / 24 for the others

with s the probability that the borders tell. Some pictures have no up, or none that shows: the answer is *clear* when
it is at least as sure as those which are right in CLEAR of all cases. `jigsync calibrate-anchor` fits w, v and that
threshold on pictures that no network was trained on and writes weights/anchor.json, which belongs to two files of
weights.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import parse_json
from jigsync.measure.borders import borders
from jigsync.measure.upright import Looker
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
FORMAT: Final = "jigsync-anchor/3"
SHIPPED: Final = "anchor.json"
STEPS: Final = 6
"""Angles of a quarter turn at which a picture without a grid is looked at: 15 degrees apart."""
FINER: Final = 3
"""The likeliest of them is looked at again, this part of their distance to both sides."""
SURE_BORDERS: Final = 0.98
"""Borders that are so sure leave no other angles to be looked at."""
CLEAR: Final = 0.95
"""Share of clear answers that are right."""
NEAR: Final = math.radians(22.5)
"""Angles so near to one another put the same side up."""
SURE: Final = Gauge((0.0,), (1.0,), None, clear=True)
UNKNOWN: Final = Gauge((0.0, angles.QUARTER, -math.pi, -angles.QUARTER), (0.25,) * 4, None)


@dataclass(frozen=True)
class Anchor:
    """The fitted numbers.

    Attributes:
        head, document: w and v.
        clear: least probability of an answer that is clear.
        head_sha256, document_sha256: of the weights they were fitted for.
    """

    head: float
    document: float
    clear: float = 1.0
    head_sha256: str = ""
    document_sha256: str = ""

    def log_p(self, seen: Floats) -> Floats:
        """Log-odds of the four global turns. Shapes: (..., 2, 4) -> (..., 4)."""
        return np.asarray(self.head * seen[..., 0, :] + self.document * seen[..., 1, :])


@cache
def shipped() -> Anchor:
    """The numbers that belong to the shipped weights."""
    data = parse_json((files("jigsync.weights") / SHIPPED).read_bytes(), SHIPPED)
    if data.get("format") != FORMAT:
        raise FormatError(f"The file {SHIPPED} must have the format '{FORMAT}'. It has {data.get('format')!r}.")
    numbers: dict[str, Any] = {field.name: data[field.name] for field in fields(Anchor)}
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
        return Fixed(_gauged(puzzle, draft, (1.0, 0.0, 0.0, 0.0), True), "")
    log_odds, remark = _votes(puzzle, draft, unary_turns), ""
    try:
        seen = Looker.shipped().look(composed(puzzle, draft, layout_of(puzzle, draft)))
        log_odds = log_odds + shipped().log_p(seen)
    except JigsyncError as error:
        remark = _untold(error)
    p = probabilities(log_odds, possible)
    best = fix_by_evidence(p)
    clear = bool(p[best] >= shipped().clear)
    return Fixed(_gauged(puzzle, draft.turned(best), np.roll(p, -best).tolist(), clear), remark)


def _votes(puzzle: Puzzle, draft: Solution, unary_turns: NDArray[np.floating[Any]] | None) -> Floats:
    """(4,) what single fragments say; nothing where their angles are no quarter turns."""
    poses = [draft.placement[name].pose for name in puzzle.ids]
    placed = [k for k, pose in enumerate(poses) if pose is not None]
    turns = [pose.turns for pose in poses if pose is not None]
    if unary_turns is None or None in turns:
        return np.zeros(z4.ORDER)
    return votes(np.array(turns, dtype=np.int64), unary_turns[placed])


def _fix_free(puzzle: Puzzle, draft: Solution) -> Fixed:
    """The likeliest of many angles."""
    draft = replace(draft, gauge=UNKNOWN)
    try:
        whole = _largest(draft)
        angle, p = any_angle(composed(puzzle, whole, layout_of(puzzle, whole)), Looker.shipped(), shipped())
    except JigsyncError as error:
        return Fixed(draft, _untold(error))
    best = int(np.argmax(p))
    further = angles.wrap(angle - angle[best])
    order = [best, *(k for k in np.argsort(np.abs(further), kind="stable").tolist() if k != best)]
    clear = bool(p[np.abs(further) <= NEAR].sum() >= shipped().clear)
    gauge = Gauge(tuple(further[order].tolist()), tuple(p[order].tolist()), None, clear)
    return Fixed(draft.moved(Pose(float(angle[best]), (0.0, 0.0)), gauge), "")


def any_angle(picture: Pixels, looker: Looker, anchor: Anchor) -> tuple[Floats, Floats]:
    """Further turns that may make a picture upright, in radians, and the probability of each.

    Shapes: (H, W, 4), colour times alpha -> (K,), (K,).
    """
    found = borders(picture[..., 3])
    first, prior = np.array([found.angle]), np.array([found.sure])
    if found.sure < SURE_BORDERS:
        first = np.append(first, np.arange(STEPS) * angles.QUARTER / STEPS)
        prior = np.append(prior, np.full(STEPS, (1 - found.sure) / STEPS))
    seen = anchor.log_p(looker.look_at(picture, first))
    angle = (first[:, None] + np.arange(z4.ORDER) * angles.QUARTER).ravel()
    p = probabilities((seen + np.log(prior)[:, None]).ravel())
    best = int(np.argmax(p))
    if best >= z4.ORDER:  # not of the borders
        row, turns = divmod(best, z4.ORDER)
        beside = angles.QUARTER / STEPS / FINER * np.array([-1.0, 1.0])
        finer = anchor.log_p(looker.look_at(picture, first[row] + beside))[:, turns]
        if finer.max() > seen[row, turns]:
            angle[best] += beside[int(np.argmax(finer))]
    return angles.wrap(angle), p


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


def _untold(error: JigsyncError) -> str:
    return f"Which side is up is not told by the assembled picture: {error}"


def _gauged(puzzle: Puzzle, solution: Solution, p: Sequence[float], clear: bool) -> Solution:
    """The solution with what is known of its four gauges."""
    pose = solution.placement[puzzle.ids[0]].pose if len(puzzle) else None
    gauge = Gauge.of_turns(0, p, clear)
    return replace(solution, gauge=replace(gauge, turns=0 if pose is None else pose.turns))
