"""Joint MAP refinement: the placement of highest score under side scores and unary terms.

    score = sum over touching slot pairs of sides[side_at(i, k_i, b), side_at(j, k_j, b + 2)]
             + sum over placed fragments of unary_turns[i, k_i] + unary_cells[i, slot_i]
                                           + unary_poses[i, slot_i, k_i]

maximised over slots and turns of all fragments. Independent restarts (growth, annealing, large-neighbourhood
search; docs/design/engine.md) run in threads; the best score wins, ties go to the earlier restart, so the answer
depends on the seed and not on the number of threads. With a time limit it depends on the machine's speed too.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.library import Plan, Report
from jigsync.engine.problem import Codes, CompiledProblem, arranged, check_size, codes_of
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import bad_value
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

Progress = Callable[[float, float], bool | None]
"""Called about ten times a second with the best score so far (-inf before there is any) and the share of planned work
that is done; returning False cancels the search, which then returns the best placement it has."""
Better = Callable[[float, Arrangement], None]
"""Called with score and placement of every restart that ended better than those before."""

MOST_EFFORT = 1e4
"""A hundred times the restarts, each a hundred times as long."""

ROUND = 2
"""Restarts that are compared before the search asks whether to go on; fixed, so that threads cannot change the answer.
Where there are more threads, they run restarts of later rounds ahead, which are dropped when nobody asks for them."""
SAMPLES, SAMPLE_MOVES, BASINS, BASIN = 128, 1_000_000, 4, 6.0
"""Of the marginals: draws and proposals of a chain, most optima to draw around, and how far in nats they may lie
below the best."""
SURE = 0.8
"""Share of settled fragments from which a placement counts as sure."""
GROWTHS = 8
"""Growths that a restart chooses its start from."""
SMALL = 50
"""Up to so many fragments, annealing from anywhere is as good as from an unsure growth: every other restart does."""
HOT, HOT_LARGE, COLD, LNS = 1.0, 1.5, 0.5, 1.0
"""Temperatures in melting points of the problem (links.c). In large puzzles proposals keep to what is not settled,
so that annealing may start hotter."""
LARGE = 150
"""Fragments from which a puzzle is large."""
REPLICAS, TOP, LOW = 6, 1.6, 0.7
"""Of replica exchange: how many, and the temperatures of the hottest and the coldest, in melting points."""
TEMPERING, LENGTHEN = 2.6e5, 1.4
"""Proposals a fragment at effort 1, and the power of the effort that they grow with: searches that only compare grids
stay short. Where growth settles few of SMALL to LARGE fragments this finds more than annealing in the same time
(docs/design/engine.md)."""
FINISH = 1e5
"""Proposals of a ladder for each large-neighbourhood step that follows it."""
BELIEFS, PART, VAIN = 100, 5, 4
"""Of what follows a ladder (beliefs.c): steps at effort 1, steps of a thread before what all found is compared, and
parts without a better placement that end it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MapResult(Arrangement):
    """The best placement found; turns 0 for unplaced fragments.

    Attributes:
        score: of this placement, higher is better.
        starts: restarts run.
        moves: proposals made by all of them.
        seconds: wall time of the search.
        draw: makes the marginals.
        finished: False when a time limit or a cancel ended it.
    """

    score: float
    starts: int
    moves: int
    seconds: float
    draw: Callable[[], NDArray[np.float64]] = field(repr=False)
    finished: bool = True

    @cached_property
    def marginals(self) -> NDArray[np.float64]:
        """(N,) share of placements drawn around the best optima in which a fragment keeps slot and turns, up to a
        global motion; 0 for unplaced. Comparable between fragments; calibrate before calling it a probability.

        Drawn when first asked for: of the many grids that are tried only one is answered.
        """
        return self.draw()


@dataclass(frozen=True)
class Effort:
    """How much one solve does.

    Attributes:
        restarts: at most so many, in rounds of ROUND.
        agree: restarts that must reach the best score for the search to end before that.
        moves: annealing proposals of a restart.
        neighbourhoods: large-neighbourhood steps of a restart.
        tempering: proposals of a ladder of replicas, if that is what growths that settle little are left to; then one
            round of restarts is all.
    """

    restarts: int
    agree: int
    moves: int
    neighbourhoods: int
    tempering: int


_EFFORT = (
    (4, 4, 2, 1e4),
    (9, 8, 2, 3e4),
    (25, 8, 3, 1.3e5),
    (100, 6, 2, 6e5),
    (432, 4, 2, 2e6),
    (3300, 2, 2, 2.5e7),
)
"""(fragments, restarts, agree, moves of a restart). Short restarts reach the optimum of a small puzzle sooner than a
long one, and a few of them that agree tell that it is the optimum; benchmarks/decoder.py prints both."""


def effort_for(n: int, effort: float) -> Effort:
    """The work for n fragments, between the points of _EFFORT by a power law; `effort` scales moves and restarts."""
    known, restarts, agree, moves = np.log(np.array(_EFFORT)).T
    at = math.log(max(n, 1))
    scale = math.sqrt(effort)
    each = scale * math.exp(float(np.interp(at, known, moves)))
    count = scale * math.exp(float(np.interp(at, known, restarts)))
    return Effort(
        restarts=ROUND * max(1, round(count / ROUND)),
        agree=round(math.exp(float(np.interp(at, known, agree)))),
        moves=max(1000, int(each)),
        neighbourhoods=10 + int(each / (25 * max(n, 40))),
        tempering=int(effort**LENGTHEN * TEMPERING * n) if SMALL < n <= LARGE else 0,
    )


def solve_map(
    scores: SideScores,
    grid: Grid,
    *,
    unary_turns: NDArray[np.floating[Any]] | None = None,
    unary_cells: NDArray[np.floating[Any]] | None = None,
    unary_poses: NDArray[np.floating[Any]] | None = None,
    pins: Mapping[int, tuple[int, int]] | None = None,
    excluded: Iterable[int] = (),
    upright: bool = False,
    start: Arrangement | None = None,
    full: tuple[NDArray[np.floating[Any]], NDArray[np.integer[Any]]] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    effort: float = 1.0,
    threads: int = 2,
    progress: Progress | None = None,
    better: Better | None = None,
) -> MapResult:
    """Searches for the placement of highest score; anytime, deterministic for a seed without a time limit.

    Without unary terms and pins the answer is defined only up to the gauge: which of the global turns that map the
    grid to itself is returned depends on the seed.

    Args:
        scores: side scores, dense or sparse.
        grid: more slots than fragments leave holes, more fragments than slots stay unplaced; as many as possible
            are placed.
        unary_turns: (N, 4); unary_cells: (N, slots); unary_poses: (N, slots, 4).
        pins: fragment -> (slot, turns).
        excluded: fragments that stay unplaced.
        upright: every turn is 0.
        start: a placement to begin one of the restarts with; what is unplaced is filled in.
        full: extra pair terms for small N, see CompiledProblem.
        time_limit: seconds for everything.
        effort: scales the work.
    """
    if not 0 < effort <= MOST_EFFORT:
        raise bad_value("effort", "the decoder", f"above 0 and at most {MOST_EFFORT:g}", effort)
    if threads < 1:
        raise bad_value("threads", "the decoder", "at least 1", threads)
    if time_limit is not None and not time_limit > 0:
        raise bad_value("time_limit", "the decoder", "above 0 seconds", time_limit)
    check_size(scores.n, grid)
    begun = time.perf_counter()
    make = partial(
        CompiledProblem,
        scores,
        grid,
        unary_turns=unary_turns,
        unary_cells=unary_cells,
        unary_poses=unary_poses,
        pins=pins,
        excluded=excluded,
        upright=upright,
        full=full,
    )
    search = _Search(scores.n, effort_for(scores.n, effort), seed, begun, time_limit, progress, better)
    search.go(make, start, threads)
    score, codes = search.best
    found = arranged(codes, grid)
    return MapResult(
        found.layout,
        found.slots,
        found.turns,
        score=score,
        starts=search.starts,
        moves=search.moves,
        seconds=time.perf_counter() - begun,
        draw=partial(search.marginals, threads),
        finished=search.finished,
    )


class _Search:
    """Rounds of restarts, watched by the calling thread."""

    def __init__(
        self,
        n: int,
        effort: Effort,
        seed: int,
        begun: float,
        time_limit: float | None,
        progress: Progress | None,
        better: Better | None,
    ) -> None:
        self.effort, self.seed = effort, seed
        self.begun, self.time_limit, self.progress, self.better = begun, time_limit, progress, better
        self.shown = -math.inf
        self.best: tuple[float, Codes] = (-math.inf, np.full(n, -1, dtype=np.int32))
        self.ends: list[tuple[float, Codes]] = []
        self.starts = self.moves = 0
        self.settled = 0.0
        self.finished, self.unsettled = True, False
        self.problem: CompiledProblem  # made when the search begins
        # One number of each for every restart, which the compiled search reads and writes.
        self._cancel = (ctypes.c_int32 * effort.restarts)()
        self._score = (ctypes.c_double * effort.restarts)(*[-math.inf] * effort.restarts)
        self._moves = (ctypes.c_int64 * effort.restarts)()

    def go(self, make: Callable[..., CompiledProblem], start: Arrangement | None, threads: int) -> None:
        with ThreadPoolExecutor(max_workers=min(threads, max(self.effort.restarts, REPLICAS))) as pool:
            made = pool.submit(make, seconds=self._seconds_left(), cancel=ctypes.addressof(self._cancel))
            self._watch({made})
            self.problem = made.result()
            first = None if start is None else _check_start(start, self.problem)
            jobs: list[Future[tuple[Codes, Report]]] = []
            try:
                for begin in range(0, self.effort.restarts, ROUND):
                    until = min(self.effort.restarts, begin + max(ROUND, threads))
                    jobs += [pool.submit(self._restart, index, first) for index in range(len(jobs), until)]
                    self._finish(jobs[begin : begin + ROUND])
                    self.starts += ROUND
                    if self.unsettled or self._enough():
                        break
            finally:
                self._drop(jobs)
            if self.unsettled and self.finished:
                self._climb(pool, min(threads, REPLICAS))

    def _drop(self, jobs: list[Future[tuple[Codes, Report]]]) -> None:
        """Ends what ran ahead."""
        for index in range(self.starts, len(jobs)):
            if not jobs[index].cancel():
                self._cancel[index] = 1

    def _finish(self, jobs: list[Future[tuple[Codes, Report]]]) -> None:
        self._watch(set(jobs), show=True)
        for job in jobs:  # in order of their index, so that ties go to the earlier restart
            self._take(*job.result())

    def _climb(self, pool: ThreadPoolExecutor, workers: int) -> None:
        """Replicas exchange temperatures, one begun with the best growth; large neighbourhoods and beliefs follow."""
        ladder = self.problem.ladder((self.seed << 20) + 2**18, self._plan(0), self.best[1])
        self._watch({pool.submit(ladder.climb, worker, workers) for worker in range(workers)})
        self._take(*ladder.best())
        steps = BELIEFS / ROUND * self.effort.tempering / (TEMPERING * self.problem.n)  # of a thread
        last = {"moves": 0, "tempering": 0, "grow": 0, "progress_moves": 0, "beliefs": min(PART, round(steps))}
        last["rounds"] = 1 + int(self.effort.tempering / FINISH)
        vain = 0
        for part in range(max(1, round(steps / PART))):
            if not self.finished or vain == VAIN:
                return
            score, found = self.best
            finish = [self._plan(index, **last) for index in range(ROUND)]
            seeds = [(self.seed << 20) + 2**18 + 1 + ROUND * part + index for index in range(ROUND)]
            self._finish([pool.submit(self.problem.run, *each, found) for each in zip(seeds, finish, strict=True)])
            vain = 0 if self.best[0] > score + 1e-3 else vain + 1
            last["rounds"] = 0

    def _restart(self, index: int, first: Codes | None) -> tuple[Codes, Report]:
        if first is None or index > 0:
            return self.problem.run((self.seed << 20) + index, self._plan(index))
        return self.problem.run((self.seed << 20), self._plan(0, tempering=0, grow=0, melt=0), first)

    def _plan(self, index: int, **other: int) -> Plan:
        plan = {
            "moves": self.effort.moves,
            "tempering": self.effort.tempering,
            "replicas": REPLICAS,
            "top": TOP,
            "low": LOW,
            "rounds": self.effort.neighbourhoods,
            "grow": GROWTHS,
            "melt": int(index % ROUND == 1 and self.problem.n <= SMALL),
            "noise": 0.0 if index % ROUND == 0 else 0.5,
            "hot": HOT_LARGE if self.problem.n > LARGE else HOT,
            "cold": COLD,
            "lns": LNS,
            "seconds": self._seconds_left(),
            "cancel": ctypes.addressof(self._cancel) + 4 * index,
            "progress_score": ctypes.addressof(self._score) + 8 * index,
            "progress_moves": ctypes.addressof(self._moves) + 8 * index,
        }
        return Plan(**(plan | other))

    def marginals(self, threads: int) -> NDArray[np.float64]:
        """(N,) how sure each fragment's place is: draws at temperature 1 around the best placement and around the
        other optima that restarts ended in, weighted by exp(score)."""
        n, top = self.problem.n, self.best[0]
        optima = [self.best]
        for score, codes in sorted(self.ends, key=lambda end: -end[0]):
            if top - BASIN < score < optima[-1][0] - 1e-3 and len(optima) < BASINS:
                optima.append((score, codes))

        def chain(index: int) -> NDArray[np.float64]:
            seed, start = (self.seed << 20) + 2**19 + index, optima[index][1]
            moves, cancel = n * 30, ctypes.addressof(self._cancel)
            samples = min(SAMPLES, max(16, SAMPLE_MOVES // moves))
            return self.problem.marginals(seed, start, self.best[1], samples, moves, self._seconds_left(), cancel)

        with ThreadPoolExecutor(max_workers=threads) as pool:
            shares = list(pool.map(chain, range(len(optima))))
        weights = np.exp([score - top for score, _ in optima])
        return np.asarray(np.average(shares, axis=0, weights=weights), dtype=np.float64)

    def _seconds_left(self) -> float:
        """What is left of the time limit, a moment at least; 0 for no limit."""
        return 0.0 if self.time_limit is None else max(1e-3, self.begun + self.time_limit - time.perf_counter())

    def _watch(self, jobs: set[Any], show: bool = False) -> None:
        """Waits for a round, reporting progress; an exception here (Ctrl-C) cancels everything first."""
        total = max(self.effort.restarts * self.effort.moves, self.effort.tempering)
        asked = slice(0, self.starts + ROUND)
        try:
            while jobs:
                ended, jobs = wait(jobs, timeout=0.1 if self.progress else None, return_when=FIRST_COMPLETED)
                for job in ended if show else ():
                    self._show(*job.result())
                if self.progress is not None:
                    share = min(1.0, sum(self._moves[asked]) / total)
                    if self.progress(max(self._score[asked]), share) is False:
                        self._stop()
        except BaseException:
            self._stop()
            raise

    def _stop(self) -> None:
        for index in range(len(self._cancel)):
            self._cancel[index] = 1

    def _show(self, codes: Codes, report: Report) -> None:
        if self.better is not None and report.score > self.shown:
            self.shown = report.score
            self.better(report.score, arranged(codes, self.problem.grid))

    def _take(self, codes: Codes, report: Report) -> None:
        self.moves += report.moves
        self.finished &= bool(report.finished)
        self.unsettled |= bool(report.unsettled)
        self.ends.append((report.score, codes))
        if report.score > self.best[0] + 1e-6:
            self.best, self.settled = (report.score, codes), report.settled

    def _enough(self) -> bool:
        """Stopped from outside, or enough independent restarts found the same best score; twice as many for a
        small puzzle that the links leave in doubt, because there restarts often share a wrong optimum."""
        same = sum(score > self.best[0] - 1e-3 for score, _ in self.ends)
        doubt = self.problem.n <= SMALL and self.settled < SURE
        needed = self.effort.agree * (2 if doubt else 1)
        return not self.finished or same >= needed


def _check_start(start: Arrangement, problem: CompiledProblem) -> Codes:
    if start.n != problem.n:
        raise bad_value("start", "the decoder", f"a placement of {problem.n} fragments", start.n)
    placed = start.slots[start.slots >= 0]
    if placed.size and (placed.max() >= problem.grid.size or len(np.unique(placed)) != len(placed)):
        raise bad_value("start", "the decoder", f"different slots below {problem.grid.size}", placed.tolist())
    return codes_of(start.slots, np.zeros_like(start.turns) if problem.upright else start.turns % 4)
