"""The first half of an evaluation: every method's answer to every puzzle, into the cache.

A unit of work is one puzzle: it is made once, measured once by each measurer, and solved by every method that has no
prediction yet. Processes, on one machine or on several that share the folder, claim puzzles one by one; so do the
workers of a Ray cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from jigsync.api import solve
from jigsync.corpus.pool import Workers, run_units
from jigsync.corpus.sweep import SHARED_SECONDS
from jigsync.evaluate.cache import Cache, Config, Outcome, Prediction
from jigsync.evaluate.fingerprint import AUTO, meter_of, method_identity
from jigsync.evaluate.spec import Method, Spec
from jigsync.io.remote import Place, Remote, only_here
from jigsync.solution import Solution
from jigsync.values.errors import InputError, JigsyncError, MissingExtraError, OptionError
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle

WAIT: Final = 1.0
"""Seconds between two looks at what other processes work on."""

Report = Callable[[int, int, int], None]
"""report(puzzles done, of so many, of them with other processes)."""


@dataclass(frozen=True)
class Unit:
    """One puzzle and all methods. Pickled to the workers."""

    spec: Spec
    config: Config
    root: Place
    threads: int

    @property
    def missing(self) -> list[Method]:
        """The methods that have no prediction yet, those of one measurer together."""
        stored = Cache(self.root)
        todo = [method for method in self.config.methods if not stored.has(self.spec, method, self.config)]
        return sorted(todo, key=lambda method: method.measurer)


def predict(specs: Sequence[Spec], config: Config, root: Place, workers: Workers, report: Report) -> None:
    """Fills the cache; comes back when every prediction is there, whoever made it."""
    if only_here(root) and workers != 1:
        raise OptionError(f"No other process can write to '{root}': use one worker of the engine local.")
    threads = 2 if workers == 1 else 1
    # Absolute, for a worker may have another working folder.
    shared = root if isinstance(root, Remote) else root.absolute()
    asked = config if config.weights is None else replace(config, weights=config.weights.absolute())
    units = [Unit(spec, asked, shared, threads) for spec in specs]
    lacking = {spec.name for spec in Cache(shared).lacking(specs, config)}
    todo = [unit for unit in units if unit.spec.name in lacking]
    done = len(units) - len(todo)
    report(done, len(units), 0)
    while todo:
        busy: list[Unit] = []
        for unit, finished in run_units(work, todo, workers):
            if finished:
                _check_shared(unit)
                done += 1
            else:
                busy.append(unit)
            report(done, len(units), len(busy))
        todo = _wait(busy, lambda left: report(len(units) - left, len(units), left))
        done = len(units) - len(todo)


def _check_shared(unit: Unit) -> None:
    """A worker on another machine may have written to a folder of the same name there."""
    until = time.monotonic() + SHARED_SECONDS
    while not isinstance(unit.root, Remote) and unit.missing:
        if time.monotonic() > until:
            raise InputError(
                f"A worker answered '{unit.spec.name}', but its prediction is not in '{unit.root}' here: --out must be"
                " a folder that all machines share, or a URL."
            )
        time.sleep(WAIT)


def _wait(busy: Sequence[Unit], report: Callable[[int], None]) -> list[Unit]:
    """Waits until others have finished these puzzles, or have let go of some: those are left to do."""
    left = list(busy)
    while left := [unit for unit in left if unit.missing]:
        report(len(left))
        free = []
        for unit in left:
            with Cache(unit.root).claimed(unit.spec) as ours:
                free += [unit] if ours else []
        if free:
            return left
        time.sleep(WAIT)
    return []


def work(unit: Unit) -> bool:
    """Makes the missing predictions of a puzzle; False when another process has claimed it."""
    stored = Cache(unit.root)
    with stored.claimed(unit.spec) as ours:
        if not ours:
            return False
        todo = unit.missing
        if todo:
            _check_code(unit.config)
            puzzle, truth = unit.spec.source.make()
            stored.write_truth(unit.spec, truth, puzzle)
            for measurer, methods in groupby(todo, key=lambda method: method.measurer):
                _solve_all(unit, puzzle, measurer, list(methods), stored)
    return True


def _solve_all(unit: Unit, puzzle: Puzzle, measurer: str, methods: Sequence[Method], stored: Cache) -> None:
    """One measurement, every solver that goes by it; without a measurer every solver asks for readings as it goes."""
    start = time.perf_counter()
    try:
        measured = None if measurer == AUTO else meter_of(measurer, unit.config.weights).measure(puzzle)
    except Exception as error:
        for method in methods:
            outcome, solution = _failed(puzzle, method, error)
            stored.write(unit.spec, method, unit.config, Prediction(solution, outcome, 0.0, 0.0, unit.threads))
        return
    measuring = 0.0 if measured is None else time.perf_counter() - start
    note = str(getattr(measured, "note", ""))
    for method in methods:
        outcome, solution, seconds = _solve(unit, puzzle, method, measured)
        answer = Prediction(solution, outcome, measuring + seconds, measuring, unit.threads, note)
        stored.write(unit.spec, method, unit.config, answer)


def _solve(
    unit: Unit, puzzle: Puzzle, method: Method, measured: Measurements | None
) -> tuple[Outcome, Solution, float]:
    start = time.perf_counter()
    outcome: Outcome = "answered"
    try:
        solution = solve(
            puzzle,
            method.solver,
            measurements=measured,
            grid=unit.spec.grid if unit.config.known_grid else None,
            upright=unit.spec.upright,
            time_limit=unit.config.time_limit,
            seed=unit.spec.seed,
            threads=unit.threads,
        )
    except Exception as error:
        outcome, solution = _failed(puzzle, method, error)
    return outcome, solution, time.perf_counter() - start


def _failed(puzzle: Puzzle, method: Method, error: Exception) -> tuple[Outcome, Solution]:
    """What an exception means: our own errors refuse, others are defects. One puzzle must not cost a night's run."""
    if isinstance(error, MissingExtraError | MemoryError | OSError):
        raise error  # the machine's doing, and another time it may be different
    if isinstance(error, JigsyncError):
        return "refused", Solution.failure(puzzle, method.solver, str(error))
    return "crashed", Solution.failure(puzzle, method.solver, f"{type(error).__name__}: {error}")


def _check_code(config: Config) -> None:
    """A worker must run the code that the keys were made for; it looks once, after loading it."""
    for method, identity in config.methods.items():
        if _identity(method, config.weights) != identity:
            raise InputError("The code of JigSync changed while the evaluation was starting: start it again.")


@cache
def _identity(method: Method, weights: Path | None) -> dict[str, object]:
    return method_identity(method.solver, method.measurer, weights)
