"""One picture or several: a cluster that may be a picture of its own is peeled off, and what is left is a pile again.

A cluster may be a picture when it has FEWEST fragments and covers SOLID of the box around it, and so many others hang
together, too. Pins say how fragments lie towards each other, so clusters with pins are one picture, and a grid that has
room for all fragments is meant for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from jigsync.solvers.base import SolveRequest
from jigsync.solvers.cluster import Cluster

FEWEST: Final = 6
SOLID: Final = 0.6
LONERS: Final = 3
"""Fragments of a cluster up to which it may belong to the picture that is peeled off."""


def peeled(request: SolveRequest, clusters: list[Cluster]) -> Cluster | None:
    """The cluster to peel off: the one with pins, else the largest; None where the pile is one picture."""
    if request.grid is not None and len(request.belonging) <= request.grid.size:
        return None
    pinned = {i for i, name in enumerate(request.ids) if name in request.pins}
    with_pins = [cluster for cluster in clusters if pinned.intersection(cluster.fragments)]
    core = (with_pins or clusters)[0]
    others = [cluster for cluster in clusters if cluster is not core]
    large = len(core.fragments) >= FEWEST and any(len(cluster.fragments) >= FEWEST for cluster in others)
    if len(with_pins) > 1 or not large or len(core.fragments) < SOLID * core.covered.size:
        return None
    return core


def without(request: SolveRequest, others: Iterable[int]) -> SolveRequest:
    """The request about fewer fragments."""
    return replace(request, excluded=request.excluded | {request.ids[i] for i in others})


def about_the_rest(request: SolveRequest, taken: Iterable[int]) -> SolveRequest:
    """The request about what a picture leaves over: its grid and its pins were of that picture."""
    gone = {request.ids[i] for i in taken}
    pins = {name: pin for name, pin in request.pins.items() if name not in gone}
    return replace(request, excluded=request.excluded | gone, layout=None, pins=pins)
