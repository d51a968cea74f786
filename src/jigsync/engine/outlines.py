"""The compiled routines of free poses (engine/src/outlines.c), with numpy in and out.

A pair is two fragments and where both lie: canvas_from_a and canvas_from_b, or the identity and a_from_b. Its block is
the sum of w v v^T over its rows v = (d/dx_a, d/dy_a, d/dangle_a, d/dx_b, d/dy_b, d/dangle_b, d/dgap, residual).
"""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int32, c_int64, c_void_p
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.library import library
from jigsync.values import angles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROW: Final = 8
_PAIR: Final = np.dtype(
    [("a", np.int64), ("b", np.int64)]
    + [(name, np.float64, (size,)) for name, size in zip("uvwxyz", (4, 4, 2, 4, 4, 2), strict=True)]
)
"""`Pair` of outlines.c."""


_BODY: Final = np.dtype(
    [("fragment", np.int64), ("place", np.int64), ("angle", np.float64)]
    + [(name, np.float64, (size,)) for name, size in (("r", 4), ("d", 4), ("t", 2))]
)
"""`Body` of outlines.c."""


class _FitPlan(ctypes.Structure):
    """`FitPlan` of outlines.c."""

    _fields_ = [
        ("rounds", c_int64),
        *[(name, c_double) for name in ("gap", "widest", "sharpest", "noise", "facing", "apart", "sigma")],
        *[(name, c_double) for name in ("hold_xy", "hold_angle", "longest")],
        ("quarter", c_double * 4),
    ]


class Rasters(ctypes.Structure):
    """`Rasters` of outlines.c; whoever makes one keeps its arrays."""

    _fields_ = [
        ("start", c_void_p),
        ("xy", c_void_p),
        ("normal", c_void_p),
        ("low", c_void_p),
        ("cell", c_void_p),
        ("shape", c_void_p),
        ("first", c_void_p),
        ("depth", c_void_p),
        ("nearest", c_void_p),
        ("inner_at", c_void_p),
        ("inner", c_void_p),
        ("inner_depth", c_void_p),
        ("step", c_double),
    ]


class Kept:
    """A `Rasters` and the arrays it points to."""

    def __init__(self, step: float, **arrays: NDArray[Any]) -> None:
        kinds = {"depth": np.float32, "inner_depth": np.float32, "nearest": np.int32}
        whole = {"start", "shape", "first", "inner_at"}
        self._arrays = {
            name: np.ascontiguousarray(part, dtype=kinds.get(name, np.int64 if name in whole else np.float64))
            for name, part in arrays.items()
        }
        self.struct = Rasters(step=step, **{name: part.ctypes.data for name, part in self._arrays.items()})


class Pairs:
    """Pairs of fragments and where they lie. Shapes: a, b (K,); pose_a, pose_b (K, 3) as (x, y, angle)."""

    def __init__(self, a: Ints, b: Ints, pose_a: Floats, pose_b: Floats) -> None:
        self.rows = np.zeros(len(a), dtype=_PAIR)
        self.rows["a"], self.rows["b"] = a, b
        for (matrix, slope, shift), pose in (("uvw", pose_a), ("xyz", pose_b)):
            self.rows[matrix] = angles.matrix(pose[:, 2]).reshape(-1, 4)
            self.rows[slope] = angles.matrix(pose[:, 2] + angles.QUARTER).reshape(-1, 4)
            self.rows[shift] = pose[:, :2]

    def __len__(self) -> int:
        return len(self.rows)


def contacts(
    rasters: Kept, pairs: Pairs, gap: float, scale: float, reach: float, facing: float, unit: float
) -> tuple[Floats, Ints]:
    """Blocks (K, 8, 8), upper triangles, and the contacts of each pair within 2 `scale` of the gap (K,)."""
    blocks, count = np.zeros((len(pairs), ROW, ROW)), np.zeros(len(pairs), dtype=np.int64)
    _functions().jig_contacts(
        ctypes.byref(rasters.struct), len(pairs), _pointer(pairs.rows), gap, scale, reach, facing, unit,
        _pointer(blocks), _pointer(count),
    )  # fmt: skip
    return blocks, count


def matches(
    rasters: Kept,
    pairs: Pairs,
    row: Ints,
    s: Ints,
    t: Ints,
    strength: Floats,
    reach: float,
    sigma: float,
    unit: float,
    blocks: Floats,
) -> Floats:
    """Adds matches to the blocks; the sum of strengths of each pair's matches that lie within `reach` (K,)."""
    support = np.zeros(len(pairs))
    row, s, t = (np.ascontiguousarray(part, dtype=np.int64) for part in (row, s, t))
    strength = np.ascontiguousarray(strength, dtype=np.float64)
    _functions().jig_matches(
        ctypes.byref(rasters.struct), _pointer(pairs.rows), len(row), _pointer(row), _pointer(s), _pointer(t),
        _pointer(strength), reach, sigma, unit, _pointer(blocks), _pointer(support),
    )  # fmt: skip
    return support


def overlap(rasters: Kept, pairs: Pairs, slack: float) -> Floats:
    """Of each pair's a the share of inner points that lie deeper than `slack` in both (K,)."""
    share = np.zeros(len(pairs))
    _functions().jig_overlap(ctypes.byref(rasters.struct), len(pairs), _pointer(pairs.rows), slack, _pointer(share))
    return share


class Joints(NamedTuple):
    """What holds bodies together: pairs of bodies, and the matches of these pairs.

    Shapes: link (K, 2) numbers of bodies; row, s, t, strength (M,), row a number of a pair.
    """

    link: Ints
    row: Ints
    s: Ints
    t: Ints
    strength: Floats


class Scales(NamedTuple):
    """Of a fit, px: the gap, the robust scale in the first and in the last round, the least noise of a contact, a match
    along its seam, the longest step; `apart` contacts count as one; holds are weights on every step."""

    gap: float
    widest: float
    sharpest: float
    noise: float
    facing: float
    apart: float
    sigma: float
    hold_xy: float
    hold_angle: float
    longest: float


def fit(rasters: Kept, fragment: Ints, pose: Floats, moves: NDArray[np.bool_], joints: Joints, scales: Scales,
        rounds: int) -> Floats:  # fmt: skip
    """The poses of some fragments after `rounds` of Gauss-Newton at a fixed gap. Shapes: (B,), (B, 3) -> (B, 3)."""
    bodies = np.zeros(len(fragment), dtype=_BODY)
    bodies["fragment"], bodies["place"] = fragment, np.where(moves, np.cumsum(moves) - 1, -1)
    bodies["angle"], bodies["t"] = pose[:, 2], pose[:, :2]
    bodies["r"] = angles.matrix(pose[:, 2]).reshape(-1, 4)
    bodies["d"] = angles.matrix(pose[:, 2] + angles.QUARTER).reshape(-1, 4)
    plan = _FitPlan(rounds, *scales, (c_double * 4)(*angles.matrix(angles.QUARTER).ravel()))
    link, row, s, t = (np.ascontiguousarray(part, dtype=np.int64) for part in joints[:4])
    strength = np.ascontiguousarray(joints.strength, dtype=np.float64)
    code = _functions().jig_fit(
        ctypes.byref(rasters.struct), len(bodies), _pointer(bodies), len(link), _pointer(link), len(row),
        _pointer(row), _pointer(s), _pointer(t), _pointer(strength), ctypes.byref(plan),
    )  # fmt: skip
    if code < 0:
        raise MemoryError("the fit got no memory")
    fitted = np.concatenate([bodies["t"], angles.wrap(bodies["angle"])[:, None]], axis=1)
    return np.where(moves[:, None], fitted, pose)


@cache
def _functions() -> Any:
    lib = library()
    for name, kinds in (
        ("jig_contacts", [c_void_p, c_int64, c_void_p, *[c_double] * 5, *[c_void_p] * 2]),
        ("jig_matches", [c_void_p, c_void_p, c_int64, *[c_void_p] * 4, *[c_double] * 3, *[c_void_p] * 2]),
        ("jig_overlap", [c_void_p, c_int64, c_void_p, c_double, c_void_p]),
        ("jig_fit", [c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_int64, *[c_void_p] * 5]),
    ):
        getattr(lib, name).argtypes = kinds
        getattr(lib, name).restype = None
    lib.jig_fit.restype = c_int32
    return lib


def _pointer(array: NDArray[Any]) -> c_void_p:
    return array.ctypes.data_as(c_void_p)
