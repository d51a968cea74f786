"""Measurers by name. Modules are imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import Final

from jigsync.values.errors import OptionError
from jigsync.values.measurements import Measurer

DEFAULT: Final = "learned"

_REGISTRY: Final[dict[str, tuple[str, str]]] = {
    "learned": ("jigsync.measure.learned:Learned", "the trained matcher beside all boundary cues; the default"),
    "boundary": ("jigsync.measure.boundary:Boundary", "all boundary cues along the contour, calibrated; training-free"),
    "matcher": ("jigsync.measure.learned:Learned", "the trained matcher alone, without the other boundary cues"),
    "pairwise": ("jigsync.measure.pairwise:PairwiseMeasurer", "all 192 relations: boundaries, and what is depicted"),
    "comparator": ("jigsync.measure.pairwise:PairwiseMeasurer", "the same, from two fragments without the others"),
    "mgc": ("jigsync.measure.boundary:Boundary", "Mahalanobis gradient compatibility (Gallagher 2012)"),
    "seam": ("jigsync.measure.boundary:Boundary", "Lab distance of a band of 20 % of the cell"),
    "silhouette": ("jigsync.measure.boundary:Boundary", "fit of the two contours, no colour"),
    "content": ("jigsync.measure.content:Content", "frozen features of whole fragments; needs the extra 'content'"),
    "content-band": ("jigsync.measure.content:Content", "frozen features of the band along the contour; likewise"),
    "framed": (
        "jigsync.measure.framed:Framed",
        "learned, of fragments of rows and columns at any angle, without frames",
    ),
    "contours": (
        "jigsync.measure.contours:Contours",
        "outlines of any shape at any angle, by a trained network: poses, no grid",
    ),
    "contours-plain": (
        "jigsync.measure.contours_plain:ContoursPlain",
        "the same untrained, by shape and colour",
    ),
    "seam+content": ("jigsync.measure.content:Content", "seam and content-band together; likewise"),
}
"""name -> ("module:attribute", one line); the attribute is called with the name."""


def names() -> tuple[str, ...]:
    """All names, the default first."""
    return tuple(_REGISTRY)


def summary(name: str) -> str:
    """One line about a measurer."""
    return _REGISTRY[name][1]


def frame_free(measurer: Measurer) -> bool:
    """Does it say the same however fragments lie in their pictures? Its attribute `frame_free` claims so; none: no."""
    return bool(getattr(measurer, "frame_free", False))


def get(name: str) -> Measurer:
    """The measurer of this name; OptionError listing the names when there is none."""
    if name not in _REGISTRY:
        raise OptionError(f"There is no measurer '{name}'; the measurers are {', '.join(names())}.")
    module, attribute = _REGISTRY[name][0].split(":")
    measurer: Measurer = getattr(importlib.import_module(module), attribute)(name)
    return measurer
