"""Synchronization on sampled edges: for studies that corrupt relations directly instead of measuring pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.score.cells import MEASURES, score_batch
from jigsync.studies.synthetic import Floats, Ints, Solved
from jigsync.sync.assignment import assign
from jigsync.sync.graph import Graph
from jigsync.sync.rotation import synchronize_turns
from jigsync.sync.translation import Displacements, edge_weights, fit
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement


@dataclass(frozen=True, eq=False)
class SampledEdges:
    """What pairs i < j are said to report, in i's frame.

    Shapes: i, j, relative (E,); xy (E, 2) in cells; exact (E,) False where only the bearing of xy is meant.
    """

    i: Ints
    j: Ints
    relative: Ints
    xy: Floats
    exact: NDArray[np.bool_]


@dataclass(frozen=True)
class SampledScore:
    """AA and rotation accuracy in the gauge under which most turns are right, and AA at the best of four."""

    aa: float
    aa_best4: float
    rotation: float


def frame_xy(solved: Solved, i: Ints, j: Ints) -> Floats:
    """(E, 2) true displacements of pairs, in i's frame: R(-k_i)(t_j - t_i)."""
    canvas = (solved.cells[j] - solved.cells[i])[:, ::-1].astype(np.float64)
    return _turned(canvas, -solved.turns[i])


def solve_and_score(solved: Solved, edges: SampledEdges) -> SampledScore:
    """Turns, then positions, then slots, all edges of weight 1; scored against the truth."""
    graph = Graph(solved.n, edges.i, edges.j, np.ones(len(edges.i)))
    components = graph.components()
    turns = synchronize_turns(graph, edges.relative, components)
    # Aligned by truth, for scoring only: the global turn under which most turns are right.
    turns = (turns + np.bincount((solved.turns - turns) % z4.ORDER, minlength=z4.ORDER).argmax()) % z4.ORDER
    xy = _turned(edges.xy, turns[edges.i])
    found = fit(graph, Displacements(xy, edge_weights(xy, edges.exact, graph.weight)), components)
    slots = assign(found.xy, components, solved.grid)
    cells = Arrangement(solved.grid, slots, turns).cells
    scores = score_batch(cells[None], turns[None], solved.grid.shape, solved.cells, solved.turns).by_gauge[:, 0]
    aa, rotation = scores[:, MEASURES.index("AA")], scores[:, MEASURES.index("rotation")]
    return SampledScore(float(aa[0]), float(aa.max()), float(rotation[0]))


def _turned(xy: Floats, turns: Ints) -> Floats:
    """R(turns_e) xy_e. Shapes: (E, 2), (E,) -> (E, 2)."""
    return np.asarray(np.stack([z4.act(k, xy) for k in range(z4.ORDER)])[turns % z4.ORDER, np.arange(len(xy))])
