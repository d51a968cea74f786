"""Joint MAP refinement: the placement of highest energy under side scores and unary terms.

    energy = sum over touching slot pairs of score[side_at(i, k_i, b), side_at(j, k_j, b + 2)]
             + sum over placed fragments of unary_turns[i, k_i] + unary_cells[i, slot_i]

maximised over slots and turns of all fragments. Independent restarts (growth, annealing, large-neighbourhood
search; docs/design/engine.md) run in threads; the best energy wins, ties go to the earlier restart, so the answer
depends on the seed and not on the number of threads. With a time limit it depends on the machine's speed too.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.errors import bad_value
from jigsync.measure.sides import SideScores
from jigsync.puzzle import Grid
from jigsync.sync.engine_library import Plan, Report
from jigsync.sync.engine_problem import CompiledProblem, Poses, poses_of

Progress = Callable[[float, float], bool | None]
"""Called about ten times a second with the best energy so far and the share of planned work that is done; returning
False cancels the search, which then returns the best placement it has."""

ROUND = 2
"""Restarts that run before the search asks whether to go on; fixed, so that threads cannot change the answer."""


@dataclass(frozen=True, eq=False)
class MapResult:
    """The best placement found.

    Attributes:
        slots: (N,) int32, -1 for unplaced.
        turns: (N,) int32, 0 for unplaced.
        energy: of this placement, higher is better.
        starts: restarts run.
        moves: proposals made by all of them.
        seconds: wall time.
        marginals: (N,) share of samples near the optimum in which a fragment keeps slot and turns; 0 for unplaced.
        finished: False when a time limit or a cancel ended it.
    """

    slots: NDArray[np.int32]
    turns: NDArray[np.int32]
    energy: float
    starts: int
    moves: int
    seconds: float
    marginals: NDArray[np.float64]
    finished: bool = True


@dataclass(frozen=True)
class Effort:
    """How much one solve does.

    Attributes:
        restarts: most restarts, in rounds of ROUND.
        agree: stop after a round once so many restarts reached the best energy.
        plan: of each restart.
    """

    restarts: int
    agree: int
    plan: Plan


def effort_for(n: int, effort: float) -> Effort:
    """Work that grows with the number of fragments: about 10 ms for 9, 1-2 s for 100, 5 s for 432."""
    moves = int(effort * 6000 * n**1.15)
    return Effort(
        restarts=ROUND * max(1, round(2 * math.sqrt(effort))),
        agree=2,
        plan=Plan(
            moves=moves,
            cycles=2,
            rounds=max(1, int(effort * 2 * n)),
            grow=1,
            draws=4,
            noise=0.0,
            hot=2.0,
            cold=0.7,
            rehot=1.2,
            lns=0.2,
        ),
    )


def solve_map(
    scores: SideScores,
    grid: Grid,
    *,
    unary_turns: NDArray[np.floating[Any]] | None = None,
    unary_cells: NDArray[np.floating[Any]] | None = None,
    pins: Mapping[int, tuple[int, int]] | None = None,
    excluded: Iterable[int] = (),
    upright: bool = False,
    start: tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]] | None = None,
    full: tuple[NDArray[np.floating[Any]], NDArray[np.integer[Any]]] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    effort: float = 1.0,
    threads: int = 2,
    progress: Progress | None = None,
) -> MapResult:
    """Searches for the placement of highest energy; anytime, deterministic for a seed without a time limit.

    Without unary terms and pins the answer is defined only up to the gauge: which of the global turns that map the
    grid to itself is returned depends on the seed.

    Args:
        scores: side scores, dense or sparse.
        grid: more slots than fragments leave holes, more fragments than slots stay unplaced; as many as possible
            are placed.
        unary_turns: (N, 4); unary_cells: (N, slots).
        pins: fragment -> (slot, turns).
        excluded: fragments that stay unplaced.
        upright: every turn is 0.
        start: (slots, turns) of a placement to begin one of the restarts with; -1 slots are filled in.
        full: extra pair terms for small N, see CompiledProblem.
        time_limit: seconds for everything.
        effort: scales the work.
    """
    if effort <= 0:
        raise bad_value("effort", "the decoder", "above 0", effort)
    if threads < 1:
        raise bad_value("threads", "the decoder", "at least 1", threads)
    if time_limit is not None and time_limit <= 0:
        raise bad_value("time_limit", "the decoder", "above 0 seconds", time_limit)
    begun = time.perf_counter()
    problem = CompiledProblem(
        scores,
        grid,
        unary_turns=unary_turns,
        unary_cells=unary_cells,
        pins=pins,
        excluded=excluded,
        upright=upright,
        full=full,
    )
    search = _Search(problem, effort_for(problem.n, effort), seed, begun, time_limit, progress)
    first = None if start is None else _check_start(start, problem)
    search.go(first, threads)
    assert search.best is not None
    energy, poses = search.best
    return MapResult(
        slots=np.where(poses < 0, -1, poses >> 2).astype(np.int32),
        turns=np.where(poses < 0, 0, poses & 3).astype(np.int32),
        energy=energy,
        starts=search.starts,
        moves=search.moves,
        seconds=time.perf_counter() - begun,
        marginals=np.where(poses < 0, 0.0, 1.0),
        finished=search.finished,
    )


class _Search:
    """Rounds of restarts, watched by the calling thread."""

    def __init__(
        self,
        problem: CompiledProblem,
        effort: Effort,
        seed: int,
        begun: float,
        time_limit: float | None,
        progress: Progress | None,
    ) -> None:
        self.problem, self.effort, self.seed = problem, effort, seed
        self.begun, self.time_limit, self.progress = begun, time_limit, progress
        self.best: tuple[float, Poses] | None = None
        self.energies: list[float] = []
        self.starts = self.moves = 0
        self.finished = True
        self._cancel = ctypes.c_int32(0)
        self._energy = (ctypes.c_double * effort.restarts)(*[-math.inf] * effort.restarts)
        self._moves = (ctypes.c_int64 * effort.restarts)()

    def go(self, first: Poses | None, threads: int) -> None:
        with ThreadPoolExecutor(max_workers=min(threads, ROUND)) as pool:
            for begin in range(0, self.effort.restarts, ROUND):
                jobs = {
                    pool.submit(self._restart, index, first if index == 0 else None): index
                    for index in range(begin, begin + ROUND)
                }
                self._watch(set(jobs))
                for job in jobs:  # in order of their index, so that ties go to the earlier restart
                    self._take(*job.result())
                if self._enough():
                    return

    def _restart(self, index: int, first: Poses | None) -> tuple[Poses, Report]:
        plan = Plan()
        ctypes.pointer(plan)[0] = self.effort.plan
        plan.grow = int(first is None)
        plan.cancel = ctypes.addressof(self._cancel)
        plan.progress_energy = ctypes.addressof(self._energy) + 8 * index
        plan.progress_moves = ctypes.addressof(self._moves) + 8 * index
        if index >= ROUND:
            plan.noise = 0.3
        if self.time_limit is not None:
            plan.seconds = max(1e-3, self.begun + self.time_limit - time.perf_counter())
        return self.problem.run((self.seed << 20) + index, plan, first)

    def _watch(self, jobs: set[Any]) -> None:
        """Waits for a round, reporting progress; an exception here (Ctrl-C) cancels the round first."""
        total = self.effort.restarts * max(1, self.effort.plan.moves)
        try:
            while jobs:
                jobs = wait(jobs, timeout=0.1 if self.progress else None, return_when=FIRST_COMPLETED).not_done
                if self.progress is not None and math.isfinite(max(self._energy)):
                    share = min(1.0, sum(self._moves) / total)
                    if self.progress(max(self._energy), share) is False:
                        self._cancel.value = 1
        except BaseException:
            self._cancel.value = 1
            raise

    def _take(self, poses: Poses, report: Report) -> None:
        self.starts += 1
        self.moves += report.moves
        self.finished &= bool(report.finished)
        self.energies.append(report.energy)
        if self.best is None or report.energy > self.best[0] + 1e-6:
            self.best = (report.energy, poses)

    def _enough(self) -> bool:
        if not self.finished:
            return True
        top = max(self.energies)
        return sum(energy > top - 1e-3 for energy in self.energies) >= self.effort.agree


def _check_start(start: tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]], problem: CompiledProblem) -> Poses:
    slots, turns = (np.asarray(part) for part in start)
    if slots.shape != (problem.n,) or turns.shape != (problem.n,):
        raise bad_value("start", "the decoder", f"two arrays of length {problem.n}", (slots.shape, turns.shape))
    placed = slots[slots >= 0]
    if placed.size and (placed.max() >= problem.grid.size or len(np.unique(placed)) != len(placed)):
        raise bad_value("start", "the decoder", f"different slots below {problem.grid.size}", placed.tolist())
    return poses_of(slots, np.zeros_like(turns) if problem.upright else turns % 4)
