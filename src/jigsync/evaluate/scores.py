"""The second half of an evaluation: scores, computed from the cache and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jigsync.evaluate.cache import Cache, Config, Outcome
from jigsync.evaluate.spec import Method, Spec
from jigsync.score.cells import GAUGES, GaugeName, Scores, score


@dataclass(frozen=True)
class Scored:
    """One method's answer to one puzzle, scored.

    Attributes:
        by_gauge: gauge -> measure -> value in 0..1. An upright puzzle has no gauge to choose: best4 is model there.
        gauge_right: is the answer, as given, in the best of the four gauges? None for an upright puzzle.
        best_turns: global turn that brings it there.
        note: what the measurer had to say.
        right_grid: are rows and cols (in the best gauge) those of the truth?
    """

    spec: Spec
    method: Method
    outcome: Outcome
    status: str
    reason: str
    fragments: int
    placed: int
    right_grid: bool
    seconds: float
    measured: float
    by_gauge: dict[GaugeName, dict[str, float]]
    gauge_right: bool | None
    best_turns: int
    note: str = ""

    def of(self, measure: str, gauge: GaugeName) -> float:
        """One measure in one gauge."""
        return self.by_gauge[gauge][measure]

    def row(self) -> dict[str, Any]:
        """A line of scores.csv."""
        own = {
            "puzzle": self.spec.name,
            "picture": self.spec.picture,
            "kind": self.spec.kind,
            "grid": str(self.spec.grid),
            "severity": self.spec.severity,
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
        measures = {f"{name} {gauge}": value for gauge in GAUGES for name, value in self.by_gauge[gauge].items()}
        return {**own, **measures, "reason": self.reason, "note": self.note}


def score_cache(spec: Spec, config: Config, cache: Cache) -> Iterator[Scored]:
    """The scores of every prediction of a puzzle that is there, in the order of the methods."""
    truth = None
    for method in config.methods:
        answer = cache.read(spec, method, config)
        if answer is None:
            continue
        truth = truth or cache.read_truth(spec)
        found = score(answer.solution, truth)
        grid, best = answer.solution.grid, 0 if spec.upright else found.best_turns
        yield Scored(
            spec,
            method,
            answer.outcome,
            answer.solution.status,
            answer.solution.reason,
            found.fragments,
            found.placed,
            grid is not None and grid.turned(best) == truth.grid,
            answer.seconds,
            answer.measured,
            _measures(found, spec.upright),
            None if spec.upright else best == 0,
            best,
            answer.note,
        )


def _measures(found: Scores, upright: bool) -> dict[GaugeName, dict[str, float]]:
    return {"model": found.model.to_json(), "best4": (found.model if upright else found.best4).to_json()}
