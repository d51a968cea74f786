"""Which side is up: the stage that fixes the one global turn no pairwise residual can see, from content.

    log p(g) = w log p_whole(g) + sum_i log p_i(k_i + g) + const

p_whole is what the head says about the assembled picture, p_i what the measurer says about single fragments. How sure
the head is depends on the size at which it sees pictures, and w puts that right: `jigsync calibrate-anchor` fits it on
pictures that the head was not trained on and writes weights/anchor.json; it belongs to one file of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.io.files import parse_json
from jigsync.measure.unary import load_unary, measure_picture
from jigsync.render.assemble import composed
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.gauge import Gauge, fix_by_evidence, probabilities, votes
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-anchor/2"
SHIPPED: Final = "anchor.json"


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
    """Turns a placement so that it stands upright as far as content tells.

    Args:
        draft: placed in a grid, in any gauge.
        unary_turns: (N, 4) log-probabilities of canvas turns of single fragments, or None.
        possible: of the four further global turns; one that would break the asked grid is not.
        given: a pin or `upright` fixes the gauge outright.
    """
    if given:
        return Fixed(_gauged(puzzle, draft, (1.0, 0.0, 0.0, 0.0)), "")
    placed = [k for k, name in enumerate(puzzle.ids) if draft.placement[name].pose is not None]
    turns = np.array([draft.placement[puzzle.ids[k]].turns for k in placed], dtype=np.int64)
    log_odds, remark = votes(turns, None if unary_turns is None else unary_turns[placed]), ""
    try:
        seen = measure_picture(composed(puzzle, draft, layout_of(puzzle, draft)), load_unary(), len(puzzle))
        log_odds = log_odds + shipped().log_p(seen)
    except JigsyncError as error:
        remark = f"Which side is up is not told by the assembled picture: {error}"
    p = probabilities(log_odds, possible)
    best = fix_by_evidence(p)
    return Fixed(_gauged(puzzle, draft.turned(best), np.roll(p, -best).tolist()), remark)


def _gauged(puzzle: Puzzle, solution: Solution, p: Sequence[float]) -> Solution:
    """The solution with what is known of its four gauges."""
    first = solution.placement[puzzle.ids[0]].turns if len(puzzle) else 0
    return replace(solution, gauge=Gauge.of_turns(first, p))
