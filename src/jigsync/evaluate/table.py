"""Scores of many puzzles -> lines with 95 % intervals, and paired differences between methods.

PA and PA+rot get Wilson's interval, all other measures the bootstrap over puzzles. Refused puzzles count nowhere;
failed and crashed answers count as wrong in every measure. Every interval has a generator of its own, seeded by what
it is about, so that another method or setting in the same evaluation changes no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from jigsync.cutting.options import SEVERITIES
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.scores import Scored
from jigsync.evaluate.spec import Method
from jigsync.score.cells import GAUGES, MEASURES, GaugeName
from jigsync.score.intervals import Interval, bootstrap_mean, paired_difference, wilson
from jigsync.values.layout import Grid

ALL_KINDS: Final = "all"
_SHARES: Final = ("PA", "PA+rot")


@dataclass(frozen=True)
class Line:
    """One method in one setting, over one kind of pictures or ALL_KINDS.

    Attributes:
        by_gauge: gauge -> measure -> interval; empty when every puzzle was refused.
        gauge_right: share of puzzles given in the best of the four gauges; None for upright puzzles.
        seconds: median a puzzle, measuring included.
        refused, failed, crashed: numbers of puzzles; the first count in no measure.
        notes: why, for one puzzle of each; and what the measurer had to say, such as that another one stood in for it.
    """

    grid: Grid
    severity: str
    kind: str
    method: Method
    puzzles: int
    by_gauge: dict[GaugeName, dict[str, Interval]]
    gauge_right: Interval | None
    right_grid: float
    seconds: float
    refused: int
    failed: int
    crashed: int
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> str:
        """What a reader must know beside the figures; "" when all is well."""
        counts = {name: getattr(self, name) for name in ("refused", "failed", "crashed")}
        told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return ". ".join(part for part in (told, *self.notes) if part)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **_setting(self),
            "solver": self.method.solver,
            "measurer": self.method.measurer,
            "puzzles": self.puzzles,
            "measures": {g: {m: i.to_json() for m, i in values.items()} for g, values in self.by_gauge.items()},
            "gauge_right": None if self.gauge_right is None else self.gauge_right.to_json(),
            "right_grid": self.right_grid,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in ("refused", "failed", "crashed")},
            "notes": list(self.notes),
        }

    def rows(self) -> Iterable[dict[str, Any]]:
        """Lines of table.csv: one a gauge and measure."""
        head = {**_setting(self), "solver": self.method.solver, "measurer": self.method.measurer}
        tail = {
            "gauge_right": None if self.gauge_right is None else self.gauge_right.estimate,
            "right_grid": self.right_grid,
            "seconds": self.seconds,
            **{name: getattr(self, name) for name in ("refused", "failed", "crashed")},
        }
        for gauge, values in self.by_gauge.items():
            for measure, interval in values.items():
                yield {**head, "gauge": gauge, "measure": measure, **_figures(interval), **tail}


@dataclass(frozen=True)
class Signs:
    """On how many of the same puzzles the first method is better, equal, worse."""

    better: int
    equal: int
    worse: int


@dataclass(frozen=True)
class Pair:
    """Two methods on the same puzzles of a setting: first minus second."""

    grid: Grid
    severity: str
    kind: str
    first: Method
    second: Method
    by_gauge: dict[GaugeName, dict[str, tuple[Interval, Signs]]]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **_setting(self),
            "first": vars(self.first),
            "second": vars(self.second),
            "measures": {
                gauge: {m: {**i.to_json(), **vars(signs)} for m, (i, signs) in values.items()}
                for gauge, values in self.by_gauge.items()
            },
        }

    def rows(self) -> Iterable[dict[str, Any]]:
        """Lines of pairs.csv: one a gauge and measure."""
        head = {**_setting(self), "first": self.first.label, "second": self.second.label}
        for gauge, values in self.by_gauge.items():
            for measure, (interval, signs) in values.items():
                yield {**head, "gauge": gauge, "measure": measure, **_figures(interval), **vars(signs)}


def lines(scored: Sequence[Scored], seed: int) -> list[Line]:
    """Every setting, method and kind; settings by size and severity, methods in their order, ALL_KINDS first."""
    groups: dict[tuple[Grid, str, str, Method], list[Scored]] = {}
    several = len({one.spec.kind for one in scored}) > 1
    for one in scored:
        for kind in (ALL_KINDS, one.spec.kind) if several else (ALL_KINDS,):
            groups.setdefault((*one.spec.setting, kind, one.method), []).append(one)
    methods = list(dict.fromkeys(one.method for one in scored))
    order = sorted(groups, key=lambda g: (setting_order(g[0], g[1]), g[2] != ALL_KINDS, g[2], methods.index(g[3])))
    return [_line(*group, groups[group], seed) for group in order]


def _line(grid: Grid, severity: str, kind: str, method: Method, group: Sequence[Scored], seed: int) -> Line:
    taken = [one for one in group if one.outcome != "refused"]
    about = (seed, str(grid), severity, kind, method.solver, method.measurer)
    turned = [one.gauge_right for one in taken if one.gauge_right is not None]
    return Line(
        grid,
        severity,
        kind,
        method,
        len(taken),
        {gauge: {name: _interval(taken, name, gauge, about) for name in MEASURES} for gauge in GAUGES} if taken else {},
        wilson(sum(turned), len(turned)) if turned else None,
        float(np.mean([one.right_grid for one in taken])) if taken else 0.0,
        float(np.median([one.seconds for one in taken])) if taken else 0.0,
        len(group) - len(taken),
        sum(one.status == "failed" and one.outcome == "answered" for one in taken),
        sum(one.outcome == "crashed" for one in taken),
        _notes(group),
    )


def _notes(group: Sequence[Scored]) -> tuple[str, ...]:
    reasons = {(one.outcome, one.status): one.reason for one in reversed(group) if one.status == "failed"}
    return tuple(dict.fromkeys([*reasons.values(), *(one.note for one in group if one.note)]))


def _interval(taken: Sequence[Scored], measure: str, gauge: GaugeName, about: tuple[int | str, ...]) -> Interval:
    values = [one.of(measure, gauge) for one in taken]
    if measure in _SHARES:
        return wilson(sum(value == 1.0 for value in values), len(values))
    return bootstrap_mean(values, _generator(*about, measure, gauge))


def pairs(scored: Sequence[Scored], seed: int) -> list[Pair]:
    """Every two methods in every setting, over the puzzles that both took, all kinds together."""
    methods = list(dict.fromkeys(one.method for one in scored))
    settings: dict[tuple[Grid, str], dict[Method, dict[str, Scored]]] = {}
    for one in scored:
        if one.outcome != "refused":
            settings.setdefault(one.spec.setting, {}).setdefault(one.method, {})[one.spec.name] = one
    found = []
    for grid, severity in sorted(settings, key=lambda s: setting_order(*s)):
        answers = settings[grid, severity]
        for first, second in combinations(methods, 2):
            common = [name for name in answers.get(first, {}) if name in answers.get(second, {})]
            if common:
                a, b = ([answers[method][name] for name in common] for method in (first, second))
                found.append(_pair(grid, severity, first, second, a, b, seed))
    return found


def _pair(
    grid: Grid, severity: str, first: Method, second: Method, a: Sequence[Scored], b: Sequence[Scored], seed: int
) -> Pair:
    by_gauge: dict[GaugeName, dict[str, tuple[Interval, Signs]]] = {gauge: {} for gauge in GAUGES}
    for gauge in GAUGES:
        for measure in MEASURES:
            x, y = (np.array([one.of(measure, gauge) for one in group]) for group in (a, b))
            rng = _generator(seed, str(grid), severity, first.label, second.label, measure, gauge)
            signs = Signs(int(np.sum(x > y)), int(np.sum(x == y)), int(np.sum(x < y)))
            by_gauge[gauge][measure] = paired_difference(x, y, rng), signs
    return Pair(grid, severity, ALL_KINDS, first, second, by_gauge)


def setting_order(grid: Grid, severity: str) -> tuple[int, int, int, str]:
    """Small grids first, severities in the order of SEVERITIES, others after them by name."""
    known = list(SEVERITIES)
    return grid.size, grid.rows, known.index(severity) if severity in known else len(known), severity


def _generator(*about: int | str) -> np.random.Generator:
    return np.random.default_rng(derive_seed(*about))


def _setting(of: Line | Pair) -> dict[str, Any]:
    return {"grid": str(of.grid), "severity": of.severity, "kind": of.kind}


def _figures(interval: Interval) -> dict[str, Any]:
    return {"puzzles": interval.n, "estimate": interval.estimate, "low": interval.low, "high": interval.high}
