"""The compiled decoder seen from Python: its structs, its functions, and how it is found.

Nothing here searches; see search.py. Calls release the GIL (ctypes), so restarts run in threads.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_uint64, c_void_p
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from jigsync.engine import build
from jigsync.values.errors import JigsyncError

MOVE_KINDS = ("turn", "swap", "guided", "cycle", "segment", "block", "component", "whole")
"""Order of MOVES in anneal.c; the fuzz entry takes these and then what is not proposed but done."""
FUZZ_KINDS = (*MOVE_KINDS, "assignment", "refill", "regrow", "sample", "grain", "beliefs")


TOP = 32
"""Partners kept a side: TOP of problem.h."""


class Input(ctypes.Structure):
    """`Input` of api.c."""

    _fields_ = [
        ("n", c_int32),
        ("rows", c_int32),
        ("cols", c_int32),
        ("upright", c_int32),
        ("steps", c_void_p),
        ("dense", c_void_p),
        ("indptr", c_void_p),
        ("indices", c_void_p),
        ("values", c_void_p),
        ("unary_turns", c_void_p),
        ("unary_cells", c_void_p),
        ("unary_poses", c_void_p),
        ("border", c_void_p),
        ("full", c_void_p),
        ("relation_of", c_void_p),
        ("pins", c_void_p),
        ("floor", c_float),
        ("n_rel", c_int32),
        ("seconds", c_double),
        ("cancel", c_void_p),
    ]


class Plan(ctypes.Structure):
    """`Plan` of api.c: what one restart does."""

    _fields_ = [
        ("moves", c_int64),
        ("tempering", c_int64),
        ("rounds", c_int32),
        ("grow", c_int32),
        ("melt", c_int32),
        ("beliefs", c_int32),
        ("replicas", c_int32),
        ("noise", c_float),
        ("hot", c_float),
        ("cold", c_float),
        ("top", c_float),
        ("low", c_float),
        ("lns", c_float),
        ("seconds", c_double),
        ("cancel", c_void_p),
        ("progress_score", c_void_p),
        ("progress_moves", c_void_p),
    ]


class Report(ctypes.Structure):
    """`Report` of api.c: how a restart ended."""

    _fields_ = [
        ("score", c_double),
        ("moves", c_int64),
        ("accepted", c_int64),
        ("settled", c_float),
        ("finished", c_int32),
        ("unsettled", c_int32),
    ]


def layout() -> str:
    """Sizes and offsets of the structs as they are here, in the words of `jig_layout` in api.c."""
    words = []
    for struct in (Input, Plan, Report):
        words += [(struct.__name__, 0), ("size", ctypes.sizeof(struct))]
        words += [(field[0], getattr(struct, field[0]).offset) for field in struct._fields_]
    return "".join(f"{name}@{value} " for name, value in words)


def _check_layout(lib: Any, path: Path) -> None:
    lib.jig_layout.argtypes = [c_char_p, c_int64]
    lib.jig_layout.restype = None
    said = ctypes.create_string_buffer(4096)
    lib.jig_layout(said, len(said))
    pairs = zip_longest(said.value.decode().split(), layout().split(), fillvalue="nothing")
    for there, here in pairs:
        if there != here:
            raise JigsyncError(f"The compiled decoder {path} lays out its structs in another way: {there}, not {here}.")


@cache
def library() -> Any:
    """The shared library, its functions typed; raises JigsyncError when it is missing or made from other sources."""
    path = build.library_path()
    remedy = "run 'python -m jigsync.engine.build' in a source checkout, or reinstall jigsync"
    if not path.is_file():
        raise JigsyncError(f"The compiled decoder {path} is missing: {remedy}.")
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise JigsyncError(f"The compiled decoder {path} cannot be loaded ({error}): {remedy}.") from None
    lib.jig_source.restype = c_char_p
    expected = build.source_hash()
    if expected and lib.jig_source().decode() != expected:
        raise JigsyncError(f"The compiled decoder {path} is older than its sources: {remedy}.")
    _check_layout(lib, path)
    lib.jig_problem_new.argtypes = [POINTER(Input)]
    lib.jig_problem_new.restype = c_void_p
    lib.jig_problem_free.argtypes = [c_void_p]
    lib.jig_problem_free.restype = None
    lib.jig_score.argtypes = [c_void_p, c_void_p]
    lib.jig_score.restype = c_double
    lib.jig_run.argtypes = [c_void_p, c_uint64, POINTER(Plan), c_void_p, POINTER(Report)]
    lib.jig_run.restype = c_int32
    lib.jig_ladder_new.argtypes = [c_void_p, c_uint64, POINTER(Plan), c_void_p]
    lib.jig_ladder_new.restype = c_void_p
    lib.jig_ladder_free.argtypes = [c_void_p]
    lib.jig_ladder_free.restype = None
    lib.jig_ladder_climb.argtypes = [c_void_p, c_int32, c_int32]
    lib.jig_ladder_climb.restype = None
    lib.jig_ladder_best.argtypes = [c_void_p, c_void_p, POINTER(Report)]
    lib.jig_ladder_best.restype = None
    lib.jig_links.argtypes = [c_void_p, c_void_p, c_void_p]
    lib.jig_links.restype = None
    lib.jig_marginals.argtypes = [
        c_void_p,
        c_uint64,
        c_void_p,
        c_void_p,
        c_float,
        c_int64,
        c_int64,
        c_double,
        c_void_p,
        c_void_p,
    ]
    lib.jig_marginals.restype = c_int64
    lib.jig_assign.argtypes = [c_void_p, c_int32, c_int32, c_void_p]
    lib.jig_assign.restype = c_int32
    lib.jig_fuzz.argtypes = [c_void_p, c_uint64, c_int32, c_int64, c_float, c_void_p, c_void_p]
    lib.jig_fuzz.restype = c_int64
    return lib
