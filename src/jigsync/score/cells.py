"""Scores of a solution against the truth, in two gauges.

For a puzzle of N fragments, N_pairs of them direct neighbours (right and down) in the truth:

    AA        = |{i : cell_i right}| / N
    rotation  = |{i : turns_i right}| / N
    AA+rot    = |{i : cell_i and turns_i right}| / N
    SRA       = |{(i, j) neighbours : cell_j - cell_i as in the truth}| / N_pairs; AA when there is no such pair
    PA        = 1 if AA = 1 else 0;  PA+rot likewise from AA+rot

A fragment that is unplaced or missing in the solution is wrong in every one of them, and so is every pair it is in.

The turns of a fragment are right when it stands at its true angle, within 5 degrees: exactly at the same quarter turn
where both sides have quarter turns.

Gauges: `model` scores the solution as given, which is what a user gets. `best4` is a diagnostic: the solution is
turned as a whole within its own grid (cells by z4.turn_cells, turns + g, g = 0..3) and each measure takes its
best g, puzzle by puzzle. Cells are compared as they are: a solution in a grid of another shape is not shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jigsync.score.motion import TURN
from jigsync.solution import Solution
from jigsync.values import angles, z4
from jigsync.values.errors import InputError, OptionError, bad_value
from jigsync.values.hypotheses import NO_TURNS
from jigsync.values.pose import Pose
from jigsync.values.truth import Truth

MEASURES: Final = ("PA", "AA", "SRA", "rotation", "AA+rot", "PA+rot")
"""The measures, in the order of every array of scores."""

GaugeName = Literal["model", "best4"]
GAUGES: Final[tuple[GaugeName, ...]] = ("model", "best4")

_FRAGMENTS_AT_ONCE: Final = 1 << 16  # a block's working arrays stay in the processor's cache


@dataclass(frozen=True, eq=False)
class BatchScores:
    """Scores of M puzzles.

    Attributes:
        by_gauge: (4, M, 6) float64 in 0..1: global turn g, puzzle, measure as in MEASURES.
    """

    by_gauge: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.by_gauge.shape[1])

    def of(self, measure: str, gauge: GaugeName = "model") -> NDArray[np.float64]:
        """One measure of every puzzle, (M,): what intervals are computed from."""
        if measure not in MEASURES:
            raise bad_value("measure", "a score", f"one of {', '.join(MEASURES)}", measure)
        return self.table(gauge)[:, MEASURES.index(measure)]

    def table(self, gauge: GaugeName = "model") -> NDArray[np.float64]:
        """(M, 6): every measure of every puzzle in one gauge."""
        if gauge not in GAUGES:
            raise bad_value("gauge", "a score", "'model' or 'best4'", gauge)
        return np.asarray(self.by_gauge[0] if gauge == "model" else self.by_gauge.max(axis=0))


@dataclass(frozen=True)
class Measures:
    """The six measures of one puzzle in one gauge, each in 0..1."""

    pa: float
    aa: float
    sra: float
    rotation: float
    aa_rot: float
    pa_rot: float

    def to_json(self) -> dict[str, float]:
        """Measure name -> value, named as in MEASURES."""
        values = (self.pa, self.aa, self.sra, self.rotation, self.aa_rot, self.pa_rot)
        return dict(zip(MEASURES, values, strict=True))


@dataclass(frozen=True)
class Scores:
    """The scores of one solution.

    Attributes:
        fragments: number of fragments in the truth, the denominator of AA, rotation and AA+rot.
        placed: how many of them the solution places.
        best_turns: the global turn g at which AA+rot (then AA, SRA, rotation) is best: how the picture should be
            shown in the best4 gauge.
    """

    fragments: int
    placed: int
    model: Measures
    best4: Measures
    best_turns: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "fragments": self.fragments,
            "placed": self.placed,
            "model": self.model.to_json(),
            "best4": self.best4.to_json(),
            "best_turns": self.best_turns,
        }


def score(solution: Solution, truth: Truth) -> Scores:
    """Scores one solution.

    Raises:
        InputError: the solution places a fragment that the truth does not know (two files of different puzzles),
            or the truth is empty.
    """
    strangers = [name for name, p in solution.placement.items() if p.cell is not None and name not in truth.placement]
    if strangers:
        raise InputError(
            f"The solution places the fragment '{strangers[0]}', which the truth does not name:"
            " the solution and the truth must be of the same puzzle."
        )
    n = len(truth.placement)
    if n == 0:
        raise InputError("The truth names no fragment: there is nothing to score.")
    cells, true_cells = np.full((1, n, 2), -1), np.empty((1, n, 2), dtype=np.int64)
    lacking = np.full((1, n), NO_TURNS)
    for k, (name, home) in enumerate(truth.placement.items()):
        assert home.cell is not None and home.pose is not None  # Truth sees to it
        true_cells[0, k] = home.cell
        placed = solution.placement.get(name)
        if placed is not None and placed.cell is not None and placed.pose is not None:
            cells[0, k], lacking[0, k] = placed.cell, lacking_turns(placed.pose, home.pose)
    shape = np.array([solution.grid.shape if solution.grid is not None else (1, 1)])
    by_gauge = np.empty((z4.ORDER, 1, len(MEASURES)))
    _score_block(cells, lacking, shape, true_cells, out=by_gauge)
    by_gauge = by_gauge[:, 0]
    return Scores(
        fragments=n,
        placed=int(np.count_nonzero(cells[0, :, 0] >= 0)),
        model=Measures(*by_gauge[0].tolist()),
        best4=Measures(*by_gauge.max(axis=0).tolist()),
        best_turns=_best_turns(by_gauge),
    )


def lacking_turns(at: Pose, home: Pose) -> int:
    """The global turn that brings a fragment to its true angle, within 5 degrees; NO_TURNS where none does."""
    if at.turns is not None and home.turns is not None:
        return z4.between(at.turns, home.turns)
    lacking = angles.wrap(home.angle - at.angle)
    turns = angles.nearest_turns(lacking)
    return turns if abs(angles.wrap(lacking - angles.of_turns(turns))) <= TURN else NO_TURNS


def _best_turns(by_gauge: NDArray[np.float64]) -> int:
    """The g in 0..3 with the best (AA+rot, AA, SRA, rotation); the smallest of equals, so "as given" wins ties."""
    rank = by_gauge[:, [MEASURES.index(name) for name in ("AA+rot", "AA", "SRA", "rotation")]]
    return max(range(z4.ORDER), key=lambda g: (tuple(rank[g]), -g))


def score_batch(
    cells: ArrayLike, turns: ArrayLike, shapes: ArrayLike, true_cells: ArrayLike, true_turns: ArrayLike
) -> BatchScores:
    """Scores M solutions of N fragments each at once.

    Args:
        cells: (M, N, 2) integers (row, col) in the solution's grid, -1 in both when unplaced.
        turns: (M, N) integers mod 4.
        shapes: (M, 2) rows and cols of the solution's grid, or (2,) when all have the same.
        true_cells, true_turns: (M, N, 2) and (M, N), or (N, 2) and (N,) when all puzzles have the same truth.

    The slot of no two fragments may coincide (`Solution` and `Truth` see to that; here it is not checked).
    """
    at, k = _integers("cells", cells), _integers("turns", turns)
    if at.ndim != 3 or at.shape[1] < 1 or at.shape[2] != 2:
        raise bad_value("cells", "a batch of solutions", "an (M, N, 2) array with N of at least 1", at.shape)
    m, n, _ = at.shape
    grids = _spread("shapes", _integers("shapes", shapes), (m, 2))
    k = _spread("turns", k, (m, n))
    home = _spread("true_cells", _integers("true_cells", true_cells), (m, n, 2))
    lacking = (_spread("true_turns", _integers("true_turns", true_turns), (m, n)) - k) % z4.ORDER
    if home.size and home.min() < 0:
        raise bad_value("true_cells", "a batch of solutions", "0 or more: the truth places every fragment", home.min())
    if not ((at[..., 0] < 0) == (at[..., 1] < 0)).all():
        raise OptionError("The 'cells' of a batch of solutions must have row and col both -1 or neither.")
    by_gauge = np.empty((z4.ORDER, m, len(MEASURES)))
    step = max(1, _FRAGMENTS_AT_ONCE // n)
    for first in range(0, m, step):
        part = slice(first, first + step)
        _score_block(at[part], lacking[part], grids[part], home[part], out=by_gauge[:, part])
    return BatchScores(by_gauge)


def _score_block(
    cells: NDArray[np.int64],
    lacking: NDArray[np.int64],
    shapes: NDArray[np.int64],
    true_cells: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Fills `out` (4, M, 6) for one block of puzzles; shapes as in score_batch, nothing to broadcast any more.

    `lacking` (M, N): the global turn 0..3 that would bring each fragment to its true angle, NO_TURNS where none does.
    """
    n = cells.shape[1]
    placed = cells[..., 0] >= 0
    rows: Any = shapes[:, :1]  # (M, 1) against (M, N): every puzzle is turned within its own grid
    cols: Any = shapes[:, 1:]
    # A whole assembly turned by g turns every step between two of its cells by g. So instead of turning the
    # solution four times, its steps between true neighbours are read once and compared with E and S turned by -g.
    bearings = (z4.E, z4.S)
    steps = [_steps_between_neighbours(cells, placed, true_cells, bearing) for bearing in bearings]
    pairs = sum(exists.sum(axis=1) for exists, _ in steps)
    for g in range(z4.ORDER):
        at_home = _same(z4.turn_cells(cells, (rows, cols), g), true_cells) & placed
        upright = (lacking == g) & placed
        kept = np.zeros(len(cells), dtype=np.int64)
        for bearing, (_, step) in zip(bearings, steps, strict=True):
            kept += _same(step, np.array(z4.bearing_offset(z4.turn_bearing(bearing, -g)))).sum(axis=1)
        cell_share = at_home.sum(axis=1) / n
        both = (at_home & upright).sum(axis=1)
        sra = np.where(pairs > 0, kept / np.maximum(pairs, 1), cell_share)
        measures = (cell_share == 1.0, cell_share, sra, upright.sum(axis=1) / n, both / n, both == n)
        out[g] = np.stack(measures, axis=1)


def _steps_between_neighbours(
    cells: NDArray[np.int64], placed: NDArray[np.bool_], true_cells: NDArray[np.int64], bearing: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which fragments are followed by a neighbour along `bearing` (E or S) in the truth, and the solution's steps.

    Fragments are sorted along the bearing, line by line; two neighbours then follow each other, whatever the size
    of the grid and wherever it has holes.

    Shapes: cells (M, N, 2) -> exists (M, N - 1), steps (M, N - 1, 2) as (d_row, d_col), (0, 0) for a pair that
    does not exist or is not wholly placed.
    """
    line, along = (
        (true_cells[..., 0], true_cells[..., 1]) if bearing == z4.E else (true_cells[..., 1], true_cells[..., 0])
    )
    # + 2: the last fragment of a line and the first of the next one never get keys that differ by 1.
    key = line * (along.max(axis=1, keepdims=True) + 2) + along
    order = np.argsort(key, axis=1)
    exists = np.diff(np.take_along_axis(key, order, axis=1), axis=1) == 1
    there = np.take_along_axis(placed, order, axis=1)
    steps = np.diff(np.take_along_axis(cells, order[..., None], axis=1), axis=1)
    steps[~(exists & there[:, :-1] & there[:, 1:])] = 0
    return exists, steps


def _same(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(a == b).all(axis=-1) for cells and steps, several times as quick as numpy's reduction over an axis of two."""
    return np.asarray((a[..., 0] == b[..., 0]) & (a[..., 1] == b[..., 1]))


def _integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise bad_value(name, "a batch of solutions", "an array of integers", str(array.dtype))
    return array.astype(np.int64, copy=False)


def _spread(name: str, array: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise bad_value(name, "a batch of solutions", f"an array of shape {shape}", array.shape) from None
