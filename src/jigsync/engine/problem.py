"""One decoding problem in compiled form: checked scores, unary terms and constraints, kept alive for the C side."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.library import FUZZ_KINDS, TOP, Input, Plan, Report, library
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import JigsyncError, OptionError, bad_value
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

Codes = NDArray[np.int32]
"""(N,) 4 * slot + turns of every fragment, -1 for unplaced: how placements cross into C."""

LARGEST = 2**26
"""Most fragments, and most slots with the cells around them: the compiled search counts with ints, and has up to
sixteen of some things for each of these."""
LARGEST_SCORE = 1e6
"""Largest size of a score or term. Scores are sums of millions of them in float32, which overflow near 3e38, and what
overflows compares as neither better nor worse: a search would not end."""

_STEPS = np.array([z4.bearing_offset(b) for b in range(z4.ORDER)], dtype=np.int32)


def codes_of(slots: NDArray[np.integer[Any]], turns: NDArray[np.integer[Any]]) -> Codes:
    """(N,) slots (-1 unplaced) and (N,) turns as codes."""
    return np.where(np.asarray(slots) < 0, -1, 4 * np.asarray(slots) + np.asarray(turns)).astype(np.int32)


def arranged(codes: Codes, grid: Grid) -> Arrangement:
    """What codes stand for; turns 0 for unplaced fragments."""
    return Arrangement(grid, np.where(codes < 0, -1, codes >> 2), np.where(codes < 0, 0, codes & 3))


class CompiledProblem:
    """What the C side searches on. Read-only after construction, so threads may share it.

    Args:
        scores: side scores, dense or sparse.
        grid: slots; more slots than fragments leave holes, more fragments than slots leave a pool. As many
            fragments as possible are always placed.
        unary_turns: (N, 4), added for a placed fragment with turns k.
        unary_cells: (N, slots), added for a placed fragment at a slot.
        unary_poses: (N, slots, 4), added for a placed fragment at a slot with turns k.
        pins: fragment -> (slot, turns), never moved.
        excluded: fragments that stay unplaced.
        upright: all turns are 0.
        full: (N, N, R) and the table (2 rows - 1, 2 cols - 1, 4, 4) of relation numbers, -1 for none: adds
            full[i, j, table[d_row + rows - 1, d_col + cols - 1, k_i, k_j]] over all ordered pairs of placed
            fragments, (d_row, d_col) from i's cell to j's.
        seconds, cancel: when judging the links (links.c) is to end early, and the address of an int32 that says so.
    """

    def __init__(
        self,
        scores: SideScores,
        grid: Grid,
        *,
        unary_turns: NDArray[np.floating[Any]] | None = None,
        unary_cells: NDArray[np.floating[Any]] | None = None,
        unary_poses: NDArray[np.floating[Any]] | None = None,
        pins: Mapping[int, tuple[int, int]] | None = None,
        excluded: Iterable[int] = (),
        upright: bool = False,
        full: tuple[NDArray[np.floating[Any]], NDArray[np.integer[Any]]] | None = None,
        seconds: float = 0.0,
        cancel: int | None = None,
    ) -> None:
        self._lib = library()
        self.n, self.grid, self.upright = scores.n, grid, upright
        check_size(self.n, grid)
        self.pins = _check_pins(pins or {}, tuple(excluded), self.n, grid, upright)
        keep: list[NDArray[Any]] = []  # the C side copies, so these need to live for the call only

        def pointer(array: NDArray[Any]) -> int:
            keep.append(array)
            return int(array.ctypes.data)

        floor = float(_floats("floor", np.array([scores.floor]), (1,))[0])
        given = Input(n=self.n, rows=grid.rows, cols=grid.cols, upright=int(upright), floor=floor, n_rel=0)
        given.seconds, given.cancel = seconds, cancel
        given.steps = pointer(_STEPS)
        given.pins = pointer(self.pins)
        if scores.dense is not None:
            given.dense = pointer(_floats("dense", scores.dense, (4 * self.n, 4 * self.n)))
        else:
            assert scores.indptr is not None
            assert scores.indices is not None
            assert scores.values is not None
            indptr, indices = _check_rows(self.n, scores.indptr, scores.indices)
            given.indptr, given.indices = pointer(indptr), pointer(indices)
            given.values = pointer(_floats("values", scores.values, indices.shape))
        if scores.border is not None:
            given.border = pointer(_floats("border", scores.border, (4 * self.n,)))
        if unary_turns is not None:
            given.unary_turns = pointer(_floats("unary_turns", unary_turns, (self.n, 4)))
        if unary_cells is not None:
            given.unary_cells = pointer(_floats("unary_cells", unary_cells, (self.n, grid.size)))
        if unary_poses is not None:
            given.unary_poses = pointer(_floats("unary_poses", unary_poses, (self.n, grid.size, 4)))
        if full is not None:
            table, relation_of = full
            given.n_rel = table.shape[-1]
            given.full = pointer(_floats("full", table, (self.n, self.n, given.n_rel)))
            shape = (2 * grid.rows - 1, 2 * grid.cols - 1, 4, 4)
            relation_of = np.ascontiguousarray(relation_of, dtype=np.int32)
            if relation_of.shape != shape or relation_of.size > LARGEST or relation_of.max() >= given.n_rel:
                raise bad_value("full", "the decoder", f"(N, N, R) and a {shape} table below R", relation_of.shape)
            given.relation_of = pointer(relation_of)
        self.handle = self._lib.jig_problem_new(ctypes.byref(given))
        if not self.handle:
            raise JigsyncError(f"Not enough memory to decode {self.n} fragments.")
        weakref.finalize(self, self._lib.jig_problem_free, self.handle)

    def score(self, codes: Codes) -> float:
        """The score of a placement, from scratch; pins override it."""
        codes = np.array(codes, dtype=np.int32)
        return float(self._lib.jig_score(self.handle, codes.ctypes.data))

    def run(self, seed: int, plan: Plan, start: Codes | None = None) -> tuple[Codes, Report]:
        """One restart: the best placement it saw and how it ended. Releases the GIL."""
        codes = np.full(self.n, -1, dtype=np.int32) if start is None else np.array(start, dtype=np.int32)
        report = Report()
        if not self._lib.jig_run(
            self.handle, seed % 2**64, ctypes.byref(plan), codes.ctypes.data, ctypes.byref(report)
        ):
            raise JigsyncError(f"Not enough memory to decode {self.n} fragments.")
        return codes, report

    def ladder(self, seed: int, plan: Plan, start: Codes) -> Ladder:
        """A ladder of replicas that exchange temperatures, the coldest beginning with `start`."""
        return Ladder(self, seed, plan, start)

    def marginals(
        self, seed: int, start: Codes, best: Codes, samples: int, moves: int, seconds: float, cancel: int | None
    ) -> NDArray[np.float64]:
        """(N,) share of draws at temperature 1 around `start` in which a fragment stands as in `best`, after one
        global motion that lays the draw over it. Releases the GIL."""
        start, best = np.array(start, dtype=np.int32), np.array(best, dtype=np.int32)
        kept = np.zeros(self.n, dtype=np.int64)
        made = self._lib.jig_marginals(
            self.handle,
            seed % 2**64,
            start.ctypes.data,
            best.ctypes.data,
            1.0,
            samples,
            moves,
            seconds,
            cancel,
            kept.ctypes.data,
        )
        if made < 0:
            raise JigsyncError(f"Not enough memory to decode {self.n} fragments.")
        return np.asarray(kept / made, dtype=np.float64)

    def links(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Likely partners of every side, judged by matching and closed loops (links.c) before any search.

        Shapes: (4N, 32) side numbers by falling probability, -1 past the end; (4N, 32) log-probability of touching.
        """
        side, link = np.zeros((4 * self.n, TOP), dtype=np.int32), np.zeros((4 * self.n, TOP), dtype=np.float32)
        self._lib.jig_links(self.handle, side.ctypes.data, link.ctypes.data)
        return side, link

    def fuzz(
        self, seed: int, kind: str, count: int, temperature: float, start: Codes
    ) -> tuple[Codes, int, tuple[float, float, float]]:
        """For tests: proposals of one kind; where they end, how many were accepted, and the scores that must
        agree: incremental and from scratch, then the best one seen."""
        codes, scores = np.array(start, dtype=np.int32), np.zeros(3)
        accepted = self._lib.jig_fuzz(
            self.handle, seed, FUZZ_KINDS.index(kind), count, temperature, codes.ctypes.data, scores.ctypes.data
        )
        return codes, int(accepted), (float(scores[0]), float(scores[1]), float(scores[2]))


class Ladder:
    """Replicas of one problem that exchange temperatures (ladder.c)."""

    def __init__(self, problem: CompiledProblem, seed: int, plan: Plan, start: Codes) -> None:
        self._problem, self._lib = problem, library()  # the problem must outlive the ladder
        codes = np.array(start, dtype=np.int32)
        self.handle = self._lib.jig_ladder_new(problem.handle, seed % 2**64, ctypes.byref(plan), codes.ctypes.data)
        if not self.handle:
            raise JigsyncError(f"Not enough memory to decode {problem.n} fragments.")
        weakref.finalize(self, self._lib.jig_ladder_free, self.handle)

    def climb(self, worker: int, workers: int) -> None:
        """Climbs as one of several threads, each with its own number below `workers`; all of them must be running, for
        they wait for each other. Releases the GIL."""
        self._lib.jig_ladder_climb(self.handle, worker, workers)

    def best(self) -> tuple[Codes, Report]:
        """The best placement that any replica saw, and how it ended."""
        codes, report = np.empty(self._problem.n, dtype=np.int32), Report()
        self._lib.jig_ladder_best(self.handle, codes.ctypes.data, ctypes.byref(report))
        return codes, report


def _floats(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    if array.shape != shape:
        raise bad_value(name, "the decoder", f"an array of shape {shape}", array.shape)
    check_numbers(name, "the decoder", array)
    return np.ascontiguousarray(array, dtype=np.float32)


def check_numbers(name: str, owner: str, array: NDArray[Any]) -> None:
    """Refuses numbers whose sums no score can hold: NaN, infinities, and what is larger than LARGEST_SCORE."""
    most, least = float(array.max(initial=0)), float(array.min(initial=0))
    if not (most <= LARGEST_SCORE and least >= -LARGEST_SCORE):  # NaN is neither
        worst = most if not most <= LARGEST_SCORE else least
        raise bad_value(name, owner, f"finite numbers of at most {LARGEST_SCORE:g} in size", worst)


def check_size(n: int, grid: Grid) -> None:
    """Refuses what the compiled search cannot count."""
    if n < 1:
        raise OptionError("The decoder needs at least one fragment.")
    if n > LARGEST:
        raise OptionError(f"The decoder takes at most {LARGEST} fragments. Got {n}.")
    if (grid.rows + 2) * (grid.cols + 2) > LARGEST:
        raise OptionError(f"The grid {grid} is too large for the decoder, which takes about {LARGEST} slots.")


def _check_rows(
    n: int, indptr: NDArray[np.integer[Any]], indices: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sparse rows that stay within their arrays."""
    starts = np.ascontiguousarray(indptr, dtype=np.int64)
    if starts.shape != (4 * n + 1,) or starts[0] != 0 or starts[-1] != len(indices) or np.any(np.diff(starts) < 0):
        raise bad_value("indptr", "the decoder", f"{4 * n + 1} ascending starts of rows", starts.shape)
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < 4 * n:
        raise bad_value("indices", "the decoder", f"sides 0 to {4 * n - 1}", (int(indices.min()), int(indices.max())))
    return starts, np.ascontiguousarray(indices, dtype=np.int32)


def _check_pins(
    pins: Mapping[int, tuple[int, int]], excluded: tuple[int, ...], n: int, grid: Grid, upright: bool
) -> NDArray[np.int32]:
    """(N,) 4 * slot + turns for pinned fragments, -2 for excluded ones, -1 for free ones."""
    out = np.full(n, -1, dtype=np.int32)
    taken: dict[int, int] = {}
    for fragment in excluded:
        if not 0 <= fragment < n:
            raise bad_value("excluded", "the decoder", f"fragments 0 to {n - 1}", fragment)
        out[fragment] = -2
    for fragment, (slot, turns) in pins.items():
        if not 0 <= fragment < n or out[fragment] == -2:
            raise bad_value("pins", "the decoder", f"fragments 0 to {n - 1} that are not excluded", fragment)
        if not 0 <= slot < grid.size:
            raise bad_value("pins", "the decoder", f"slots 0 to {grid.size - 1} of the {grid} grid", slot)
        if not 0 <= turns < z4.ORDER or (upright and turns):
            raise bad_value("pins", "the decoder", "0 turns when upright" if upright else "0, 1, 2 or 3 turns", turns)
        if slot in taken:
            raise OptionError(f"The fragments {taken[slot]} and {fragment} are both pinned to slot {slot}.")
        taken[slot] = fragment
        out[fragment] = 4 * slot + turns
    return out
