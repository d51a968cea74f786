"""Scores computed the slow way, to hold the compiled decoder against."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.problem import CompiledProblem
from jigsync.studies.planted import Planted, plant
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.sides import side_at


@dataclass(frozen=True, eq=False)
class Case:
    """A planted puzzle with everything a decoder may be given beside its scores."""

    planted: Planted
    upright: bool = False
    unary_turns: NDArray[np.float32] | None = None
    unary_cells: NDArray[np.float32] | None = None
    unary_poses: NDArray[np.float32] | None = None
    pins: dict[int, tuple[int, int]] = field(default_factory=dict)
    excluded: tuple[int, ...] = ()
    full: tuple[NDArray[np.float32], NDArray[np.int64]] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of CompiledProblem and solve_map."""
        return {
            "upright": self.upright,
            "unary_turns": self.unary_turns,
            "unary_cells": self.unary_cells,
            "unary_poses": self.unary_poses,
            "pins": self.pins,
            "excluded": self.excluded,
            "full": self.full,
        }

    def compiled(self) -> CompiledProblem:
        """The problem the C side sees."""
        return CompiledProblem(self.planted.scores, self.planted.grid, **self.options)

    def score(self, poses: NDArray[np.int32]) -> float:
        """Term by term, from the definition."""
        grid, dense = self.planted.grid, self.planted.scores.to_dense()
        at = {int(pose) >> 2: (i, int(pose) & 3) for i, pose in enumerate(poses) if pose >= 0}
        border = self.planted.scores.border
        total = 0.0
        for slot, (i, turns) in at.items():
            row, col = grid.cell(slot)
            for bearing in range(z4.ORDER):
                d_row, d_col = z4.bearing_offset(bearing)
                if border is not None and not grid.contains(row + d_row, col + d_col):
                    total += float(border[side_at(i, turns, bearing)])
            for bearing in (z4.E, z4.S):
                d_row, d_col = z4.bearing_offset(bearing)
                if grid.contains(row + d_row, col + d_col) and grid.slot(row + d_row, col + d_col) in at:
                    j, other = at[grid.slot(row + d_row, col + d_col)]
                    total += float(dense[side_at(i, turns, bearing), side_at(j, other, bearing + 2)])
            if self.unary_turns is not None:
                total += float(self.unary_turns[i, turns])
            if self.unary_cells is not None:
                total += float(self.unary_cells[i, slot])
            if self.unary_poses is not None:
                total += float(self.unary_poses[i, slot, turns])
            if self.full is not None:
                for slot_j, (j, turns_j) in at.items():
                    if j != i:
                        row_j, col_j = grid.cell(slot_j)
                        table = self.full[1][row_j - row + grid.rows - 1, col_j - col + grid.cols - 1]
                        if table[turns, turns_j] >= 0:
                            total += float(self.full[0][i, j, table[turns, turns_j]])
        return total


def make_case(
    name: str,
    grid: Grid,
    seed: int,
    *,
    unary: bool = False,
    border: bool = False,
    pinned: bool = False,
    full: bool = False,
    **planted: Any,
) -> Case:
    """A random case; `name` is only for the test's id."""
    rng = np.random.default_rng(seed)
    puzzle = plant(grid, 0.7, rng, **planted)
    if border:
        known = rng.normal(0, 2, 4 * puzzle.scores.n).astype(np.float32)
        puzzle = replace(puzzle, scores=replace(puzzle.scores, border=known))
    n, upright = puzzle.scores.n, bool(planted.get("upright"))
    table = rng.integers(-1, 10, size=(2 * grid.rows - 1, 2 * grid.cols - 1, 4, 4))
    return Case(
        puzzle,
        upright,
        rng.normal(size=(n, 4)).astype(np.float32) if unary else None,
        rng.normal(size=(n, grid.size)).astype(np.float32) if unary else None,
        rng.normal(size=(n, grid.size, 4)).astype(np.float32) if unary else None,
        {2: (1, 0 if upright else 3), 4: (5, 0)} if pinned else {},
        (0,) if pinned and planted.get("extra") else (),
        (rng.normal(size=(n, n, 10)).astype(np.float32), table) if full else None,
    )
