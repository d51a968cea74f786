"""Loop support: in how many triangles the measured relative poses of an edge close.

    i_from_j o j_from_k = i_from_k :   r_ij + r_jk = r_ik   and   d_ij + R(r_ij) d_jk = d_ik

Exact (near) displacements must close exactly; each mid edge loosens the loop by 1 cell and each far edge by 2, which
is about half the width of their bands.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from jigsync.sync.graph import Floats, Graph, Ints
from jigsync.values import vocabulary as v
from jigsync.values import z4

_SLACK: Final = np.array([0.0, 1.0, 2.0])
_ROUNDOFF: Final = 1e-6


def loop_support(graph: Graph, relative: Ints, bucket: Ints, nominal: Floats) -> tuple[Ints, Ints]:
    """Closing triangles and all triangles of every edge.

    Args: relative, bucket (E,) in i's frame; nominal (48, 2) displacement of each bucket. Shapes: -> two (E,).
    """
    d, slack = nominal[bucket], _SLACK[v.TIER[bucket]]
    turned = np.stack([z4.act(k, d) for k in range(z4.ORDER)])
    closing, total = np.zeros(len(graph), np.int64), np.zeros(len(graph), np.int64)
    for ab, bc, ac in graph.triangles():
        gap = np.abs(d[ab] + turned[relative[ab], bc] - d[ac]).max(axis=1)
        closes = (gap <= slack[ab] + slack[bc] + slack[ac] + _ROUNDOFF) & (
            (relative[ab] + relative[bc] - relative[ac]) % z4.ORDER == 0
        )
        for edge in (ab, bc, ac):
            closing += np.bincount(edge[closes], minlength=len(graph))
            total += np.bincount(edge, minlength=len(graph))
    return closing, total
