"""Scores of many puzzles -> lines with 95 % intervals, and paired differences between methods.

Yes/no measures (`SHARES`) get Wilson's interval, errors the bootstrap of their median, all other measures the bootstrap
of their mean over puzzles. Refused puzzles count nowhere; failed and crashed answers count as wrong in every measure. A
measure that has no case in a puzzle, such as claimed contacts where nothing is claimed, leaves that puzzle out: n says
how many are left. Every interval has a generator of its own, seeded by what it is about, so that another method or
setting in the same evaluation changes no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import numpy as np

from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.scores import ERRORS, POSES, Scored
from jigsync.evaluate.spec import Method, Setting
from jigsync.score.cells import GAUGES, MEASURES, GaugeName
from jigsync.score.intervals import Interval, bootstrap_mean, bootstrap_median, paired_difference, wilson
from jigsync.score.theirs import THEIR_ERRORS

ALL_KINDS: Final = "all"
SHARES: Final = ("PA", "PA+rot", "perfect", "upright")
"""Yes or no, puzzle by puzzle."""
LEAD: Final = "right"
"""The measure that every layout has: what methods are compared by."""
MEDIANS: Final = (*ERRORS, *THEIR_ERRORS)
"""Measures of which less is better."""
NO_GAUGE: Final = "-"
"""What table.csv calls the gauge of a measure that needs none."""


@dataclass(frozen=True)
class Line:
    """One method in one setting, over one kind of pictures or ALL_KINDS.

    Attributes:
        poses: measure of POSES, and metric of others, -> interval; those without a single case are left out.
        by_gauge: gauge -> measure of slots -> interval; empty without a grid, or when every puzzle was refused.
        chance: measure -> mean of what a guess reaches.
        gauge_right: share of puzzles given in the best of the four gauges; None for upright puzzles.
        right_grid: share of puzzles answered in the true rows and cols; None without a grid.
        seconds: median a puzzle, measuring included.
        refused, failed, crashed: numbers of puzzles; the first count in no measure.
        notes: why, for one puzzle of each; and what the measurer had to say, such as that another one stood in for it.
    """

    setting: Setting
    kind: str
    method: Method
    puzzles: int
    by_gauge: dict[GaugeName, dict[str, Interval]]
    gauge_right: Interval | None
    right_grid: float | None
    seconds: float
    refused: int
    failed: int
    crashed: int
    notes: tuple[str, ...] = ()
    poses: dict[str, Interval] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)

    @property
    def remarks(self) -> str:
        """What a reader must know beside the figures; "" when all is well."""
        counts = {name: getattr(self, name) for name in ("refused", "failed", "crashed")}
        told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return ". ".join(part for part in (told, *self.notes) if part).replace(".. ", ". ")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **_head(self),
            "solver": self.method.solver,
            "measurer": self.method.measurer,
            "puzzles": self.puzzles,
            "poses": {measure: interval.to_json() for measure, interval in self.poses.items()},
            "measures": {g: {m: i.to_json() for m, i in values.items()} for g, values in self.by_gauge.items()},
            "chance": self.chance,
            "gauge_right": None if self.gauge_right is None else self.gauge_right.to_json(),
            "right_grid": self.right_grid,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in ("refused", "failed", "crashed")},
            "notes": list(self.notes),
        }

    def rows(self) -> Iterable[dict[str, Any]]:
        """Lines of table.csv: one a gauge and measure."""
        head = {**_head(self), "solver": self.method.solver, "measurer": self.method.measurer}
        tail = {
            "gauge_right": None if self.gauge_right is None else self.gauge_right.estimate,
            "right_grid": self.right_grid,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in ("refused", "failed", "crashed")},
        }
        for gauge, values in ((NO_GAUGE, self.poses), *self.by_gauge.items()):
            for measure, interval in values.items():
                guess = self.chance.get(measure) if gauge != "best4" else None
                yield {**head, "gauge": gauge, "measure": measure, **_figures(interval), "chance": guess, **tail}


@dataclass(frozen=True)
class Signs:
    """On how many of the same puzzles the first method is better, equal, worse."""

    better: int
    equal: int
    worse: int


Difference = tuple[Interval, Signs]


@dataclass(frozen=True)
class Pair:
    """Two methods on the same puzzles of a setting: first minus second."""

    setting: Setting
    kind: str
    first: Method
    second: Method
    by_gauge: dict[GaugeName, dict[str, Difference]]
    poses: dict[str, Difference] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **_head(self),
            "first": vars(self.first),
            "second": vars(self.second),
            "poses": _differences(self.poses),
            "measures": {gauge: _differences(values) for gauge, values in self.by_gauge.items()},
        }

    def rows(self) -> Iterable[dict[str, Any]]:
        """Lines of pairs.csv: one a gauge and measure."""
        head = {**_head(self), "first": self.first.label, "second": self.second.label}
        for gauge, values in ((NO_GAUGE, self.poses), *self.by_gauge.items()):
            for measure, (interval, signs) in values.items():
                yield {**head, "gauge": gauge, "measure": measure, **_figures(interval), **vars(signs)}


def lines(scored: Sequence[Scored], seed: int) -> list[Line]:
    """Every setting, method and kind; settings in their order, methods in theirs, ALL_KINDS first."""
    groups: dict[tuple[Setting, str, Method], list[Scored]] = {}
    several = len({one.spec.kind for one in scored}) > 1
    for one in scored:
        for kind in (ALL_KINDS, one.spec.kind) if several else (ALL_KINDS,):
            groups.setdefault((one.spec.setting, kind, one.method), []).append(one)
    methods = list(dict.fromkeys(one.method for one in scored))
    order = sorted(groups, key=lambda g: (g[0].order, g[1] != ALL_KINDS, g[1], methods.index(g[2])))
    return [_line(*group, groups[group], seed) for group in order]


def _line(setting: Setting, kind: str, method: Method, group: Sequence[Scored], seed: int) -> Line:
    taken = [one for one in group if one.outcome != "refused"]
    about = (seed, setting.label, kind, method.solver, method.measurer)
    turned = [one.gauge_right for one in taken if one.gauge_right is not None]
    grids = [one.right_grid for one in taken if one.right_grid is not None]
    slots: dict[GaugeName, dict[str, Interval]] = {
        gauge: found for gauge in GAUGES if (found := _intervals(taken, MEASURES, gauge, about))
    }
    return Line(
        setting,
        kind,
        method,
        len(taken),
        slots,
        wilson(sum(turned), len(turned)) if turned else None,
        float(np.mean(grids)) if grids else None,
        float(np.median([one.seconds for one in taken])) if taken else 0.0,
        len(group) - len(taken),
        sum(one.status == "failed" and one.outcome == "answered" for one in taken),
        sum(one.outcome == "crashed" for one in taken),
        _notes(group),
        _intervals(taken, _without_gauge(taken), "model", about),
        {name: float(np.mean([one.chance[name] for one in taken])) for name in (taken[0].chance if taken else ())},
    )


def _without_gauge(taken: Sequence[Scored]) -> tuple[str, ...]:
    """The measures of poses, and the metrics of others where they were asked for."""
    return (*POSES, *(taken[0].theirs if taken else ()))


def _notes(group: Sequence[Scored]) -> tuple[str, ...]:
    reasons = {(one.outcome, one.status): one.reason for one in reversed(group) if one.status == "failed"}
    gridless = sum(one.gridless for one in group)
    told = [f"{gridless} answered without a grid, which counts as wrong slots"] if gridless else []
    return tuple(dict.fromkeys([*reasons.values(), *told, *(one.note for one in group if one.note)]))


def _intervals(
    taken: Sequence[Scored], measures: Iterable[str], gauge: GaugeName, about: tuple[int | str, ...]
) -> dict[str, Interval]:
    found = {}
    for measure in measures:
        values = [value for one in taken if (value := one.of(measure, gauge)) is not None]
        if not values:
            continue
        rng = _generator(*about, measure, gauge)
        if measure in SHARES:
            found[measure] = wilson(sum(value == 1.0 for value in values), len(values))
        else:
            found[measure] = (bootstrap_median if measure in MEDIANS else bootstrap_mean)(values, rng)
    return found


def pairs(scored: Sequence[Scored], seed: int) -> list[Pair]:
    """Every two methods in every setting, over the puzzles that both took, all kinds together."""
    methods = list(dict.fromkeys(one.method for one in scored))
    settings: dict[Setting, dict[Method, dict[str, Scored]]] = {}
    for one in scored:
        if one.outcome != "refused":
            settings.setdefault(one.spec.setting, {}).setdefault(one.method, {})[one.spec.name] = one
    found = []
    for setting in sorted(settings, key=lambda setting: setting.order):
        answers = settings[setting]
        for first, second in combinations(methods, 2):
            common = [name for name in answers.get(first, {}) if name in answers.get(second, {})]
            if common:
                both = [(answers[first][name], answers[second][name]) for name in common]
                found.append(_pair(setting, first, second, both, seed))
    return found


def _pair(setting: Setting, first: Method, second: Method, both: Sequence[tuple[Scored, Scored]], seed: int) -> Pair:
    about = (seed, setting.label, first.label, second.label)
    by_gauge: dict[GaugeName, dict[str, Difference]] = {
        gauge: found for gauge in GAUGES if (found := _compared(both, MEASURES, gauge, about))
    }
    measures = _without_gauge([one for one, _ in both])
    return Pair(setting, ALL_KINDS, first, second, by_gauge, _compared(both, measures, "model", about))


def _compared(
    both: Sequence[tuple[Scored, Scored]], measures: Iterable[str], gauge: GaugeName, about: tuple[int | str, ...]
) -> dict[str, Difference]:
    """First minus second over the puzzles in which both have a case; of errors the smaller one is better."""
    found = {}
    for measure in measures:
        values = [(a.of(measure, gauge), b.of(measure, gauge)) for a, b in both]
        known = np.array([pair for pair in values if None not in pair], dtype=np.float64)
        if not len(known):
            continue
        x, y = known.T
        gain = y - x if measure in MEDIANS else x - y
        signs = Signs(int(np.sum(gain > 0)), int(np.sum(gain == 0)), int(np.sum(gain < 0)))
        found[measure] = paired_difference(x, y, _generator(*about, measure, gauge)), signs
    return found


def _generator(*about: int | str) -> np.random.Generator:
    return np.random.default_rng(derive_seed(*about))


def _head(of: Line | Pair) -> dict[str, Any]:
    setting = of.setting
    named = {"form": setting.form, "severity": setting.severity, "presentation": setting.presentation}
    return {**named, "kind": of.kind}


def _differences(values: dict[str, Difference]) -> dict[str, Any]:
    return {measure: {**interval.to_json(), **vars(signs)} for measure, (interval, signs) in values.items()}


def _figures(interval: Interval) -> dict[str, Any]:
    return {"puzzles": interval.n, "estimate": interval.estimate, "low": interval.low, "high": interval.high}
