"""What a model file may hold, read from its bytes before onnxruntime sees it.

An ONNX file is a program, and one that may name other files for its numbers: onnxruntime would open them, outside its
folder too. Ours are plain arithmetic, so nothing else is let through: operators of OPERATORS, all numbers in the file,
no functions, loops or branches, and no field that this page does not know. Protocol Buffers are simple enough to be
walked here, and the package that reads them is not needed to run a model.

    message = (key, value)*,  key = 8 field + kind,  kind 0: varint, 1: 8 bytes, 2: length and bytes, 5: 4 bytes
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jigsync.values.errors import FormatError

OPERATORS: Final = frozenset(
    re.findall(
        r"\w+",
        "Abs Add And BatchNormalization Cast Clip Concat Constant Conv Cos Div Einsum Equal Erf Exp Expand "
        "Flatten Gather GatherND Gelu Gemm GlobalAveragePool Greater HardSigmoid HardSwish Identity "
        "LayerNormalization Less Log LogSoftmax MatMul Max MaxPool Min Mul Neg Not Or Pad Pow Range Reciprocal "
        "ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceSum Relu Reshape Shape Sigmoid Sin Slice Softmax "
        "Softplus Split Sqrt Squeeze Sub "
        "Tanh Transpose Unsqueeze Where",
    )
)
"""What torch makes of networks like ours."""

MAX_NODES: Final = 10_000
MAX_FIELDS: Final = 500_000

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""How a field's value is written. Numbers in a row may stand in one field of BYTES."""
Field = int | str
"""What a field holds: one of these, or the name of the message in it."""

MESSAGES: Final[dict[str, dict[int, Field]]] = {
    "ModelProto": {
        **dict.fromkeys((1, 5), VARINT),
        **dict.fromkeys((2, 3, 4, 6), BYTES),
        7: "GraphProto",
        8: "OperatorSetIdProto",
        14: "StringStringEntryProto",
    },
    "OperatorSetIdProto": {1: BYTES, 2: VARINT},
    "StringStringEntryProto": {1: BYTES, 2: BYTES},
    "GraphProto": {
        1: "NodeProto",
        **dict.fromkeys((2, 10), BYTES),
        5: "TensorProto",
        **dict.fromkeys((11, 12, 13), "ValueInfoProto"),
        16: "StringStringEntryProto",
    },
    "NodeProto": {
        **dict.fromkeys((1, 2, 3, 4, 6, 7), BYTES),
        5: "AttributeProto",
        9: "StringStringEntryProto",
    },
    "AttributeProto": {
        **dict.fromkeys((1, 4, 9, 13), BYTES),
        **dict.fromkeys((3, 8, 20), VARINT),
        **dict.fromkeys((2, 7), FOUR),
        **dict.fromkeys((5, 10), "TensorProto"),
    },
    "TensorProto": {
        **dict.fromkeys((1, 2, 5, 7, 11, 14), VARINT),
        **dict.fromkeys((6, 8, 9, 12), BYTES),
        4: FOUR,
        10: EIGHT,
        16: "StringStringEntryProto",
    },
    "ValueInfoProto": {1: BYTES, 2: "TypeProto", 3: BYTES, 4: "StringStringEntryProto"},
    "TypeProto": {1: "Tensor", 6: BYTES},
    "Tensor": {1: VARINT, 2: "TensorShapeProto"},
    "TensorShapeProto": {1: "Dimension"},
    "Dimension": {1: VARINT, 2: BYTES, 3: BYTES},
}
"""Message of onnx.proto -> number of a field -> what it holds. Everything else that onnx.proto has, and whatever it may
have one day, is refused: another reader could see a loop where this one sees nothing."""

ROWS: Final[dict[str, tuple[int, ...]]] = {"AttributeProto": (7, 8), "TensorProto": (1, 4, 5, 7, 10, 11)}
"""Fields of numbers in a row."""

REFUSED: Final[dict[tuple[str, int], str]] = {
    **dict.fromkeys((("ModelProto", 20), ("ModelProto", 25)), "functions and training steps are not allowed in it"),
    ("GraphProto", 15): "sparse tensors are not allowed in it",
    **dict.fromkeys(
        (("AttributeProto", number) for number in (6, 11, 22, 23)),
        "loops, branches and sparse tensors are not allowed in it",
    ),
    ("TensorProto", 13): "its numbers must be in it, not in another file",
}
"""Why, for the fields that somebody may have meant."""

_GRAPH, _OPERATOR, _DOMAIN, _LOCATION = ("ModelProto", 7), ("NodeProto", 4), ("NodeProto", 7), ("TensorProto", 14)
_LONGEST_KEY: Final = 5


def check_model(data: bytes, name: str) -> None:
    """FormatError unless the file is an ONNX model of plain arithmetic with all its numbers inside."""
    try:
        _Check().model(memoryview(data))
    except ValueError as error:
        raise FormatError(f"The weights '{name}' are not a usable ONNX model: {error}.") from None


class _Check:
    """One walk through a model, counting what there must not be too much of."""

    def __init__(self) -> None:
        self._fields = self._nodes = self._graphs = 0

    def model(self, data: memoryview) -> None:
        """Checks all of it."""
        self._message("ModelProto", data)
        if not self._graphs:
            raise ValueError("it has no graph")

    def _message(self, kind: str, data: memoryview) -> None:
        fields, rows = MESSAGES[kind], ROWS.get(kind, ())
        operators = 0
        for number, written, value in _fields(data):
            self._fields += 1
            if self._fields > MAX_FIELDS:
                raise ValueError(f"it has more than {MAX_FIELDS} fields")
            place = kind, number
            held = fields.get(number)
            if held is None:
                raise ValueError(REFUSED.get(place, f"field {number} of a {kind} is not allowed in it"))
            if isinstance(held, str):
                if not isinstance(value, memoryview):
                    raise ValueError("a number stands where a message should")
                self._graphs += place == _GRAPH
                self._message(held, value)
            elif written != held and not (written == BYTES and number in rows):
                raise ValueError(f"field {number} of a {kind} is of another kind")
            operators += place == _OPERATOR
            _check_value(place, value)
        if kind == "NodeProto":
            self._nodes += 1
            if self._nodes > MAX_NODES:
                raise ValueError(f"it has more than {MAX_NODES} nodes")
            if not operators:
                raise ValueError("a node has no operator")


def _check_value(place: tuple[str, int], value: int | memoryview) -> None:
    if place == _OPERATOR and isinstance(value, memoryview):
        operator = bytes(value[:60]).decode("ascii", "replace")
        if operator not in OPERATORS:
            raise ValueError(f"the operator {operator!r} is not allowed in it")
    if place == _DOMAIN and isinstance(value, memoryview) and len(value):
        raise ValueError("operators that are not ONNX's own are not allowed in it")
    if place == _LOCATION and value != 0:
        raise ValueError("its numbers must be in it, not in another file")


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """(number, how it is written, value) of every field of a message.

    Readers differ in what they make of a key or a length of more than 32 bits, and of bytes that add nothing to a
    number: none of that is let through.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at, _LONGEST_KEY)
        written = key & 7
        if key >= 1 << 32:
            raise ValueError("it has a field whose number is too large")
        if written == VARINT:
            value, at = _varint(data, at, 10)
            yield key >> 3, written, value
            continue
        if written == BYTES:
            size, at = _varint(data, at, _LONGEST_KEY)
        elif written in (EIGHT, FOUR):
            size = 8 if written == EIGHT else 4
        else:
            raise ValueError(f"it has a field of the unknown kind {written}")
        if size > end - at:
            raise ValueError("it is cut off")
        yield key >> 3, written, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int, longest: int) -> tuple[int, int]:
    """(value, where it ends): 7 bits per byte, the lowest first, until a byte below 128."""
    value = 0
    for k in range(longest):
        if at + k >= len(data):
            raise ValueError("it is cut off")
        byte = data[at + k]
        value |= (byte & 127) << 7 * k
        if byte < 128:
            if k and not byte:
                raise ValueError("it has a number that is written longer than it is")
            return value, at + k + 1
    raise ValueError(f"it has a number of more than {longest} bytes")
