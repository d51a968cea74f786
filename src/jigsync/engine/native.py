"""The two compiled routines of the classical solvers (engine/src/exact.c and breed.c), with numpy in and out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_double, c_int, c_int64, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.library import library
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.layout import Grid

_GO_ON = ctypes.CFUNCTYPE(c_int, c_int64, c_double)


class Branched(NamedTuple):
    """The end of a branch and bound; `best` is None when nothing was above the floor."""

    best: Arrangement | None
    nodes: int
    finished: bool


def branch_and_bound(
    dense: NDArray[np.float32],
    grid: Grid,
    allowed: NDArray[np.uint8],
    floor: float,
    go_on: Callable[[int, float], bool],
    border: NDArray[np.float32] | None = None,
) -> Branched:
    """The placement with the largest sum of scores above `floor`.

    Args:
        dense: (4N, 4N) finite.
        allowed: (N, slots), bit k set when turns k are allowed there.
        go_on: (nodes, best score so far) -> whether to go on.
        border: (4N,) finite, score of facing out of the grid; None for 0.
    """
    n = dense.shape[0] // 4
    dense = np.ascontiguousarray(dense, dtype=np.float32)
    border = np.zeros(4 * n, dtype=np.float32) if border is None else np.ascontiguousarray(border, dtype=np.float32)
    allowed = np.ascontiguousarray(allowed, dtype=np.uint8)
    neighbours = np.ascontiguousarray(grid.neighbour_slots())
    fragments, turns = np.empty(grid.size, dtype=np.int32), np.empty(grid.size, dtype=np.int32)
    score, nodes = c_double(), c_int64()
    raised: list[BaseException] = []

    def callback(count: int, best: float) -> int:
        try:
            return int(go_on(count, best))
        except BaseException as error:  # ctypes would print and forget it: stop, and raise it below
            raised.append(error)
            return 0

    code = _functions().jig_exact(
        n,
        grid.size,
        *(_pointer(a) for a in (dense, border, neighbours, allowed)),
        max(floor, -1e300),
        _GO_ON(callback),
        _pointer(fragments),
        _pointer(turns),
        ctypes.byref(score),
        ctypes.byref(nodes),
    )
    if raised:
        raise raised[0]
    if code < 0:
        raise MemoryError("the branch and bound got no memory")
    return Branched(_arranged(n, grid, fragments, turns) if code & 1 else None, nodes.value, not code & 2)


def _arranged(n: int, grid: Grid, fragments: NDArray[np.int32], turns: NDArray[np.int32]) -> Arrangement:
    """Of what stands in every slot. Shapes: fragments, turns (slots,); fragment -1 is a hole."""
    slots, turned = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    filled = np.flatnonzero(fragments >= 0)
    slots[fragments[filled]], turned[fragments[filled]] = filled, turns[filled]
    return Arrangement(grid, slots, turned)


class Breeding(NamedTuple):
    """What all crossovers of one grid share.

    Shapes: rank (4N, K) int32, buddies (4N,) int32, pins (P, 3) int32 as (fragment, slot, turns).
    """

    grid: Grid
    upright: bool
    rank: NDArray[np.int32]
    buddies: NDArray[np.int32]
    pins: NDArray[np.int32]
    skip_agreed: float
    skip_best: float


def breed(
    rules: Breeding,
    touch: NDArray[np.int32],
    parent_turns: NDArray[np.int32],
    parents: NDArray[np.int32],
    seeds: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Children by kernel growth; a child depends on its parents and its seed alone.

    Shapes: touch (P, 4N), parent_turns (P, N), parents (C, 2), seeds (C,) -> slots (C, N), turns (C, N).
    """
    n = parent_turns.shape[1]
    touch, parent_turns, parents = (np.ascontiguousarray(a, np.int32) for a in (touch, parent_turns, parents))
    seeds = np.ascontiguousarray(seeds, dtype=np.uint64)
    rank, buddies = np.ascontiguousarray(rules.rank), np.ascontiguousarray(rules.buddies, dtype=np.int32)
    steps = np.array([z4.bearing_offset(bearing) for bearing in range(z4.ORDER)], dtype=np.int32)
    pins = [np.ascontiguousarray(column) for column in rules.pins.T]
    slots, turns = np.empty((len(seeds), n), dtype=np.int32), np.empty((len(seeds), n), dtype=np.int32)
    code = _functions().jig_breed(
        n,
        *rules.grid.shape,
        int(rules.upright),
        _pointer(steps),
        _pointer(rank),
        rank.shape[1],
        _pointer(buddies),
        rules.skip_agreed,
        rules.skip_best,
        len(seeds),
        *(_pointer(a) for a in (touch, parent_turns, parents, seeds)),
        len(rules.pins),
        *(_pointer(a) for a in pins),
        _pointer(slots),
        _pointer(turns),
    )
    if code < 0:
        raise MemoryError("the crossover got no memory")
    return slots, turns


@cache
def _functions() -> Any:
    lib = library()
    lib.jig_exact.restype = c_int
    lib.jig_exact.argtypes = [c_int, c_int, *[c_void_p] * 4, c_double, _GO_ON, *[c_void_p] * 4]
    lib.jig_breed.restype = c_int
    lib.jig_breed.argtypes = [
        *[c_int] * 4,
        *[c_void_p] * 2,
        c_int,
        c_void_p,
        *[c_double] * 2,
        c_int,
        *[c_void_p] * 4,
        c_int,
        *[c_void_p] * 5,
    ]
    return lib


def _pointer(array: NDArray[Any]) -> c_void_p:
    return array.ctypes.data_as(c_void_p)
