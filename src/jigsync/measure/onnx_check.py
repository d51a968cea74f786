"""What a model file may hold, read from its bytes before onnxruntime sees it.

An ONNX file is a program, and one that may name other files for its numbers: onnxruntime would open them, outside its
folder too. Ours are plain arithmetic, so nothing else is let through: operators of OPERATORS, all numbers in the file,
no functions, loops or branches. Protocol Buffers are simple enough to be walked here, and the package that reads them
is not needed to run a model.

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
        "Abs Add And BatchNormalization Cast Clip Concat Constant Conv Cos Div Einsum Equal Erf Exp Expand Flatten "
        "Gather GatherND Gelu Gemm GlobalAveragePool Greater HardSwish Identity LayerNormalization Less Log "
        "LogSoftmax MatMul Max MaxPool Min Mul Neg Not Or Pad Pow Range Reciprocal ReduceL2 ReduceLogSumExp "
        "ReduceMax ReduceMean ReduceSum Relu Reshape Shape Sigmoid Sin Slice Softmax Softplus Split Sqrt Squeeze Sub "
        "Tanh Transpose Unsqueeze Where",
    )
)
"""What torch makes of networks like ours."""

MAX_NODES: Final = 10_000

# Numbers of fields in onnx.proto.
_GRAPH, _TRAINING, _FUNCTIONS = 7, 20, 25  # of a model
_NODE, _INITIALIZER, _SPARSE_INITIALIZER = 1, 5, 15  # of a graph
_OPERATOR, _ATTRIBUTE, _DOMAIN = 4, 5, 7  # of a node
_TENSOR, _SUBGRAPH, _TENSORS, _SUBGRAPHS, _SPARSE, _SPARSES = 5, 6, 10, 11, 22, 23  # of an attribute
_EXTERNAL, _LOCATION = 13, 14  # of a tensor


def check_model(data: bytes, name: str) -> None:
    """FormatError unless the file is an ONNX model of plain arithmetic with all its numbers inside."""
    try:
        _model(memoryview(data))
    except ValueError as error:
        raise FormatError(f"The weights '{name}' are not a usable ONNX model: {error}.") from None


def _model(data: memoryview) -> None:
    nodes = graphs = 0
    for field, value in _fields(data):
        if field in (_FUNCTIONS, _TRAINING):
            raise ValueError("functions and training steps are not allowed in it")
        if field == _GRAPH:
            graphs += 1
            nodes += _graph(_bytes(value))
    if not graphs:
        raise ValueError("it has no graph")
    if nodes > MAX_NODES:
        raise ValueError(f"it has {nodes} nodes, and at most {MAX_NODES} are allowed")


def _graph(data: memoryview) -> int:
    """Checks a graph; the number of its nodes."""
    nodes = 0
    for field, value in _fields(data):
        if field == _NODE:
            nodes += 1
            _node(_bytes(value))
        elif field == _INITIALIZER:
            _tensor(_bytes(value))
        elif field == _SPARSE_INITIALIZER:
            raise ValueError("sparse tensors are not allowed in it")
    return nodes


def _node(data: memoryview) -> None:
    for field, value in _fields(data):
        if field == _OPERATOR and (operator := bytes(_bytes(value)[:60])).decode("ascii", "replace") not in OPERATORS:
            raise ValueError(f"the operator {operator.decode('ascii', 'replace')!r} is not allowed in it")
        if field == _DOMAIN and len(_bytes(value)):
            raise ValueError("operators that are not ONNX's own are not allowed in it")
        if field == _ATTRIBUTE:
            _attribute(_bytes(value))


def _attribute(data: memoryview) -> None:
    for field, value in _fields(data):
        if field in (_SUBGRAPH, _SUBGRAPHS, _SPARSE, _SPARSES):
            raise ValueError("loops, branches and sparse tensors are not allowed in it")
        if field in (_TENSOR, _TENSORS):
            _tensor(_bytes(value))


def _tensor(data: memoryview) -> None:
    for field, value in _fields(data):
        if field == _EXTERNAL or (field == _LOCATION and value != 0):
            raise ValueError("its numbers must be in it, not in another file")


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number stands where a message should")
    return value


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of every field of a message."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"it has a field of the unknown kind {kind}")
        if size > end - at:
            raise ValueError("it is cut off")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """(value, where it ends): 7 bits a byte, the lowest first, until a byte below 128."""
    value = 0
    for k in range(10):
        if at + k >= len(data):
            raise ValueError("it is cut off")
        value |= (data[at + k] & 127) << 7 * k
        if data[at + k] < 128:
            return value, at + k + 1
    raise ValueError("it has a number of more than 10 bytes")
