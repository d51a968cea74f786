"""The second half of an evaluation: scores, computed from the cache and nothing else.

Every answer is scored by its poses. Where the truth has a grid, slots are scored too; an answer without a grid then has
no fragment in a slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from jigsync.evaluate.cache import Cache, Config, Outcome
from jigsync.evaluate.spec import Method, Spec
from jigsync.score.cells import GAUGES, MEASURES, GaugeName, score
from jigsync.score.chance import chance
from jigsync.score.posed import posed
from jigsync.score.poses import PoseScores, score_placement
from jigsync.score.theirs import their_chance, their_scores
from jigsync.solution import Solution
from jigsync.values.layout import Grid
from jigsync.values.placement import Placement
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

POSES: Final = ("right", "perfect", "contacts", "claims", "largest", "upright", "angle", "centre")
"""The measures of poses: shares in 0..1, but for the median errors in degrees and pixels."""
ERRORS: Final = ("angle", "centre")


@dataclass(frozen=True)
class Scored:
    """One method's answer to one puzzle, scored.

    Attributes:
        poses: measure of POSES -> value; None where there is no case, such as no contact claimed.
        by_gauge: gauge -> measure of slots -> value in 0..1; empty where the truth has no grid. An upright puzzle has
            no gauge to choose: best4 is model there.
        theirs: metric of THEIRS -> value, None where it has none; empty unless they were asked for.
        chance: measure -> what a guess reaches.
        gauge_right: is the answer, as given, in the best of the four gauges? None without a grid in truth and answer,
            and where there is no gauge to choose.
        best_turns: global turn that brings it there.
        note: what the measurer had to say.
        right_grid: are rows and cols (in the best gauge) those of the truth? None without a grid.
        gridless: has the truth a grid and the answer, which did not fail, none?
    """

    spec: Spec
    method: Method
    outcome: Outcome
    status: str
    reason: str
    fragments: int
    placed: int
    right_grid: bool | None
    seconds: float
    measured: float
    poses: dict[str, float | None]
    by_gauge: dict[GaugeName, dict[str, float]]
    gauge_right: bool | None
    best_turns: int
    note: str = ""
    gridless: bool = False
    theirs: dict[str, float | None] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)

    def of(self, measure: str, gauge: GaugeName) -> float | None:
        """One measure; of slots, in one gauge. None where there is no case."""
        if measure in MEASURES:
            return self.by_gauge.get(gauge, {}).get(measure)
        return self.poses[measure] if measure in POSES else self.theirs.get(measure)

    def slot(self, measure: str, gauge: GaugeName) -> float:
        """One measure of slots of a puzzle that has a grid."""
        return self.by_gauge[gauge][measure]

    def row(self) -> dict[str, Any]:
        """A line of scores.csv."""
        setting = self.spec.setting
        own = {
            "puzzle": self.spec.name,
            "picture": self.spec.picture,
            "kind": self.spec.kind,
            "form": setting.form,
            "severity": setting.severity,
            "presentation": setting.presentation,
            "solver": self.method.solver,
            "measurer": self.method.measurer,
            "outcome": self.outcome,
            "status": self.status,
            "fragments": self.fragments,
            "placed": self.placed,
            "right_grid": self.right_grid,
            "gauge_right": self.gauge_right,
            "best_turns": self.best_turns,
            "seconds": self.seconds,
            "seconds_measuring": self.measured,
        }
        slots = {f"{name} {gauge}": self.by_gauge.get(gauge, {}).get(name) for gauge in GAUGES for name in MEASURES}
        return {**own, **self.poses, **slots, **self.theirs, "reason": self.reason, "note": self.note}


def score_cache(spec: Spec, config: Config, cache: Cache, theirs: bool = False) -> Iterator[Scored]:
    """The scores of every prediction of a puzzle that is there, in the order of the methods.

    Args:
        theirs: the metrics of others too.
    """
    home: tuple[Truth, Puzzle] | None = None
    guess: dict[str, float] | None = None
    for method in config.methods:
        answer = cache.read(spec, method, config)
        if answer is None:
            continue
        home = home or (cache.read_truth(spec), cache.read_shapes(spec))
        truth, shapes = home
        solution = answer.solution
        both = posed(solution, truth, shapes)
        found = score_placement(both.answer, both.home, both.sizes, both.contacts, both.claimed)
        if guess is None:
            guess = chance(truth, spec.upright) | (their_chance(both, shapes, spec.seed) if theirs else {})
        slots = _slots(solution, truth, spec.upright, found.foreign)
        yield Scored(
            spec,
            method,
            answer.outcome,
            solution.status,
            solution.reason,
            found.fragments,
            found.placed,
            slots.right_grid,
            answer.seconds,
            answer.measured,
            _measures(found),
            slots.by_gauge,
            slots.gauge_right,
            slots.best_turns,
            answer.note,
            bool(solution) and solution.grid is None and isinstance(truth.layout, Grid),
            their_scores(both, shapes) if theirs else {},
            guess,
        )


def _measures(found: PoseScores) -> dict[str, float | None]:
    """In the order of POSES."""
    shares = found.right, float(found.perfect), found.contacts, found.claimed, found.largest, float(found.upright)
    return dict(zip(POSES, (*shares, found.angle_error, found.xy_error), strict=True))


@dataclass(frozen=True)
class _Slots:
    by_gauge: dict[GaugeName, dict[str, float]] = field(default_factory=dict)
    gauge_right: bool | None = None
    best_turns: int = 0
    right_grid: bool | None = None


def _slots(solution: Solution, truth: Truth, upright: bool, foreign: tuple[str, ...]) -> _Slots:
    """The scores of slots, where the truth has a grid; fragments that it does not name are left out."""
    if not isinstance(truth.layout, Grid):
        return _Slots()
    known: Placement = {name: placed for name, placed in solution.placement.items() if name not in foreign}
    found = score(replace(solution, placement=known), truth)
    best = 0 if upright else found.best_turns
    both: dict[GaugeName, dict[str, float]] = {
        "model": found.model.to_json(),
        "best4": (found.model if upright else found.best4).to_json(),
    }
    grid = solution.grid
    right = grid is not None and grid.turned(best) == truth.layout
    chosen = not upright and not (solution and grid is None)  # what failed is in the gauge that it is in
    return _Slots(both, best == 0 if chosen else None, best, right)
