"""Which clusters are pictures of their own, and what is asked about each.

A cluster is taken for a picture when it has FEWEST fragments and covers SOLID of the box around it: what is left of one
picture that could not be measured well is ragged. Pins say how fragments lie towards each other, so clusters with pins
are one picture, and a grid that has room for all fragments is meant for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from jigsync.solvers.base import SolveRequest
from jigsync.solvers.cluster import Cluster

FEWEST: Final = 6
SOLID: Final = 0.75


def pictures_of(request: SolveRequest, clusters: list[Cluster]) -> list[Cluster]:
    """The clusters that may be pictures, the one with pins first, then the largest first."""
    if request.grid is not None and len(request.belonging) <= request.grid.size:
        return []
    pinned = {i for i, name in enumerate(request.ids) if name in request.pins}
    with_pins = [cluster for cluster in clusters if pinned.intersection(cluster.fragments)]
    if len(with_pins) > 1:
        return []
    solid = [c for c in clusters if len(c.fragments) >= FEWEST and len(c.fragments) >= SOLID * c.covered.size]
    if with_pins and not any(cluster is with_pins[0] for cluster in solid):
        return []
    return with_pins + [cluster for cluster in solid if not with_pins or cluster is not with_pins[0]]


def request_of(request: SolveRequest, others: Iterable[int], first: bool) -> SolveRequest:
    """The request about one picture: without the fragments of others; grid and pins are of the first one."""
    excluded = request.excluded | {request.ids[i] for i in others}
    if first:
        return replace(request, excluded=excluded)
    return replace(request, excluded=excluded, layout=None, pins={})
