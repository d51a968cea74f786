"""solution.json in the words of JSON Schema, for the interface's document; `solution_file` reads and writes it.

A file that the schema refuses is refused by the parser. The parser sees more: that cells lie in the grid and hold one
fragment each, that angles agree with turns, that probabilities sum to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from jigsync.io.placement_json import MAX_COMPONENT, MAX_XY, POSE
from jigsync.io.schema import FRAGMENT_ID, MAX_SIDE
from jigsync.values import z4
from jigsync.values.placement import Status

FORMAT: Final = "jigsync-solution/2"
OLD_FORMAT: Final = "jigsync-solution/1"
MAX_SECONDS: Final = 1e12
MAX_ANGLES: Final = 3600
"""Most angles of a gauge: a tenth of a degree apart."""

Schema = dict[str, Any]


def _number(low: float, high: float) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high}


def _integer(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _or_null(one: Schema) -> Schema:
    return {"anyOf": [one, {"type": "null"}]}


def _list(one: Schema, least: int, most: int) -> Schema:
    return {"type": "array", "items": one, "minItems": least, "maxItems": most}


def _object(keys: Mapping[str, Schema], **may_be: Schema) -> Schema:
    """An object that has `keys` and may have the others."""
    return {"type": "object", "properties": {**keys, **may_be}, "required": list(keys)}


def _fragments(one: Schema) -> Schema:
    return {"type": "object", "propertyNames": {"pattern": f"^{FRAGMENT_ID.pattern}$"}, "additionalProperties": one}


_TEXT: Final[Schema] = {"type": "string"}
_SHARE: Final = _number(0, 1)
_TURNS: Final = _integer(0, z4.ORDER - 1)
_POSE: Final[dict[str, Schema]] = dict(
    zip(POSE, map(_or_null, (_number(-360, 360), *[_number(-MAX_XY, MAX_XY)] * 2)), strict=True)
)
_CELL: Final[dict[str, Schema]] = {key: _or_null(_integer(0, MAX_SIDE - 1)) for key in ("row", "col")}
_SURE: Final[dict[str, Schema]] = {"confidence": _or_null(_SHARE)}
_GRID: Final = _list(_integer(1, MAX_SIDE), 2, 2)
_PITCH: Final = _or_null(_list(_number(1e-3, MAX_XY), 2, 2))


def _solution(name: str, keys: Mapping[str, Schema], **may_be: Schema) -> Schema:
    said: dict[str, Schema] = {
        "format": {"const": name},
        "status": {"enum": list(get_args(Status))},
        "reason": _TEXT,
        "solver": _TEXT,
        "seconds": _number(0, MAX_SECONDS),
    }
    return _object({**said, **keys}, **may_be)


def _gauge(least: int, most: int, **turns: Schema) -> Schema:
    angles, probabilities = _list(_number(-360, 360), least, most), _list(_SHARE, least, most)
    keys = {"confidence": _SHARE, "angles": angles, "probabilities": probabilities}
    return _object(keys, clear={"type": "boolean"}, **turns)


def _picture(kind: str, gauge: Schema, **more: Schema) -> Schema:
    keys = {"layout": {"const": kind}, "component": _integer(0, MAX_COMPONENT), "gauge": gauge}
    return _object({**keys, **more}, whole=_or_null(_SHARE))


_COMPONENT: Final = _or_null(_integer(0, MAX_COMPONENT))
_PITCHED: Final = _or_null(_list(_number(0, MAX_XY), 2, 2))
_CELLS: Final = _fragments(_list(_integer(0, MAX_SIDE - 1), 2, 2))
_QUARTERS: Final = _gauge(z4.ORDER, z4.ORDER, turns=_or_null(_TURNS))
_PICTURES: Final = {
    "oneOf": [
        _picture("grid", _QUARTERS, grid=_GRID, pitch=_PITCHED, cells=_CELLS),
        _picture("free", _gauge(1, MAX_ANGLES)),
    ]
}
_TOLD: Final[dict[str, Schema]] = {"confidence": _or_null(_SHARE), "pictures": {"type": "array", "items": _PICTURES}}
_FREE: Final = _solution(
    FORMAT,
    {
        "layout": {"const": "free"},
        "gauge": _gauge(1, MAX_ANGLES),
        "fragments": _fragments(_object(_POSE | _SURE, component=_COMPONENT)),
    },
    **_TOLD,
)
_IN_GRID: Final = _solution(
    FORMAT,
    {
        "layout": {"const": "grid"},
        "grid": _GRID,
        "gauge": _QUARTERS,
        "fragments": _fragments(_object(_CELL | _POSE | _SURE, turns=_or_null(_TURNS), component=_COMPONENT)),
    },
    pitch=_PITCH,
    **_TOLD,
)
_OLD: Final = _solution(
    OLD_FORMAT,
    {
        "grid": _or_null(_GRID),
        "gauge": _object({"turns": _TURNS, "confidence": _SHARE}, probabilities=_list(_SHARE, z4.ORDER, z4.ORDER)),
        "fragments": _fragments(_object({**_CELL, "turns": _TURNS, **_SURE})),
    },
)
SCHEMA: Final[Schema] = {
    "description": "solution.json: of a grid, of free poses, or of format 1",
    "oneOf": [_IN_GRID, _FREE, _OLD],
}
