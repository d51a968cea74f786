"""The check of model files against the onnx package: what passes the one is, to the other, plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from jigsync.measure.onnx_check import (
    BYTES,
    EIGHT,
    FOUR,
    MAX_FIELDS,
    MAX_NODES,
    MESSAGES,
    OPERATORS,
    REFUSED,
    ROWS,
    VARINT,
    check_model,
)
from jigsync.measure.weights import open_session
from jigsync.values.errors import FormatError

onnx = pytest.importorskip("onnx")

from google.protobuf.descriptor import FieldDescriptor as F  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FIXED = {F.TYPE_FLOAT: FOUR, F.TYPE_DOUBLE: EIGHT, F.TYPE_STRING: BYTES, F.TYPE_BYTES: BYTES}


def accepted(data: bytes) -> bool:
    try:
        check_model(data, "x")
    except FormatError:
        return False
    return True


def small(change: Callable[[Any], None] = lambda made: None) -> Any:
    """A model of two nodes, changed."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Concat", ["r", "w"], ["y"], axis=0)]
    weights = numpy_helper.from_array(np.ones(2, dtype=np.float32), "w")
    made = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], [weights]))
    made.metadata_props.add(key="format", value="x")
    change(made)
    return made


def loop() -> Any:
    """A node that goes round for ever."""
    keep = helper.make_node("Identity", ["go"], ["on"])
    infos = [helper.make_tensor_value_info(n, t, []) for n, t in (("k", TensorProto.INT64), ("go", TensorProto.BOOL))]
    body = helper.make_graph([keep], "body", infos, [helper.make_tensor_value_info("on", TensorProto.BOOL, [])])
    return helper.make_node("Loop", ["rounds", "yes"], [], body=body)


def elsewhere(made: Any) -> None:
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def only_location(made: Any) -> None:
    made.graph.initializer[0].data_location = TensorProto.EXTERNAL


def sparse(made: Any) -> None:
    made.graph.sparse_initializer.add().values.name = "s"


def quantised(made: Any) -> None:
    made.graph.quantization_annotation.add(tensor_name="w")


def branch(made: Any) -> None:
    made.graph.node[0].attribute.add(name="then_branch").g.node.add(op_type="Relu")


FORBIDDEN: dict[str, Callable[[Any], None]] = {
    "an operator": lambda made: made.graph.node.append(helper.make_node("NonZero", ["x"], ["z"])),
    "a domain": lambda made: setattr(made.graph.node[0], "domain", "com.microsoft"),
    "an overload": lambda made: setattr(made.graph.node[0], "overload", "o"),
    "a loop": lambda made: made.graph.node.append(loop()),
    "a branch": branch,
    "a function": lambda made: made.functions.add(name="f", domain="d"),
    "training": lambda made: made.training_info.add(),
    "sparse numbers": sparse,
    "quantisation": quantised,
    "numbers elsewhere": elsewhere,
    "a location": only_location,
    "a type of sequences": lambda made: made.graph.value_info.add(name="v").type.sequence_type.SetInParent(),
    "devices": lambda made: made.configuration.add(name="c"),
    "a node without an operator": lambda made: made.graph.node.add(),
}


def arithmetic(made: Any) -> bool:
    """Does the package see nothing but plain arithmetic with all numbers inside?"""
    for message in below(made):
        for field, _ in message.ListFields():
            if field.number not in MESSAGES.get(message.DESCRIPTOR.name, {}):
                return False
        kind = message.DESCRIPTOR.name
        if kind == "NodeProto" and (message.op_type not in OPERATORS or message.domain):
            return False
        if kind == "TensorProto" and message.data_location != TensorProto.DEFAULT:
            return False
    return made.HasField("graph")


def below(message: Any) -> Iterator[Any]:
    """A message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                yield from below(part)


# ---------------------------------------------------------------------------------------------- the table


def described(name: str = "ModelProto") -> dict[str, Any]:
    """Every message that a model may hold, from the package's own description."""
    found: dict[str, Any] = {}
    todo = [getattr(onnx, name).DESCRIPTOR]
    while todo:
        message = todo.pop()
        if message.name not in found:
            found[message.name] = message
            todo += [field.message_type for field in message.fields if field.message_type]
    return found


def test_the_table_is_onnx_own() -> None:
    known = described()
    for name, fields in MESSAGES.items():
        for number, held in fields.items():
            field = known[name].fields_by_number[number]
            if field.message_type:
                assert held == field.message_type.name
            else:
                assert held == FIXED.get(field.type, VARINT), (name, field.name)
            in_a_row = field.is_repeated and held in (VARINT, FOUR, EIGHT)
            assert (number in ROWS.get(name, ())) == in_a_row, (name, field.name)
    assert {name for name, _ in REFUSED} <= set(known)
    for name, number in REFUSED:
        assert number in known[name].fields_by_number
        assert number not in MESSAGES[name]


def test_what_it_knows_nothing_of_is_refused() -> None:
    for name, message in described().items():
        if name not in MESSAGES:
            continue
        assert 0 not in MESSAGES[name]
        for number in set(message.fields_by_number) - set(MESSAGES[name]):
            assert not accepted(inside(name, key(number, BYTES) + b"\0")), f"{name} {number}"
        assert not accepted(inside(name, key(999, VARINT) + b"\0"))


def inside(name: str, field: bytes) -> bytes:
    """A model with these bytes at the end of a message of this name."""
    path = {"ModelProto": ()}
    while name not in path:
        path |= {
            held: (*path[outer], number)
            for outer in list(path)
            for number, held in MESSAGES[outer].items()
            if isinstance(held, str) and held not in path
        }
    for number in reversed(path[name]):
        field = key(number, BYTES) + varint(len(field)) + field
    return small().SerializeToString() + field


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_no_arithmetic_is_refused(name: str) -> None:
    data = small(FORBIDDEN[name]).SerializeToString()
    assert accepted(small().SerializeToString())
    assert not accepted(data)
    assert not arithmetic(small(FORBIDDEN[name]))


# ---------------------------------------------------------------------------------------------- how it is written


def varint(value: int, longer: int = 0) -> bytes:
    """A number, written with so many bytes more than it needs."""
    out = bytearray()
    while value > 127 or (longer and len(out) < longer):
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def key(number: int, kind: int, above: int = 0, longer: int = 0) -> bytes:
    """A field's key; `above` are bits beyond the 32 that a key has."""
    return varint((above << 32) | number << 3 | kind, longer)


@pytest.mark.parametrize("above", [1, 2, 1 << 20, 1 << 31])
def test_bits_beyond_a_key_do_not_hide_a_field(above: int) -> None:
    """protobuf drops them and reads a node; a reader that keeps them sees a field that it has never heard of."""
    evil = loop().SerializeToString()
    graph = key(1, BYTES, above) + varint(len(evil)) + evil
    data = small().SerializeToString() + key(7, BYTES) + varint(len(graph)) + graph
    with pytest.raises(FormatError, match="not a usable ONNX model"):
        open_session(data, "x", {})


@pytest.mark.parametrize("longer", [1, 2, 4, 5, 9])
def test_numbers_are_written_as_short_as_they_are(longer: int) -> None:
    whole = small().SerializeToString()
    assert not accepted(whole + key(2, BYTES, longer=longer) + b"\1x")
    assert not accepted(whole + key(2, BYTES) + varint(1, longer) + b"x")
    assert accepted(whole + key(2, BYTES) + b"\1x")


def test_groups_and_other_kinds_are_refused() -> None:
    whole = small().SerializeToString()
    for kind in (3, 4, 6, 7):
        assert not accepted(whole + key(2, kind))
    for number, held in ((7, VARINT), (7, FOUR), (2, VARINT), (1, BYTES), (1, EIGHT)):
        assert not accepted(whole + key(number, held) + b"\0" * 8)


def test_there_must_not_be_too_much_of_it() -> None:
    def nodes(made: Any) -> None:
        made.graph.node.extend([helper.make_node("Relu", ["x"], ["y"])] * MAX_NODES)

    with pytest.raises(FormatError, match="more than 10000 nodes"):
        check_model(small(nodes).SerializeToString(), "x")
    with pytest.raises(FormatError, match=f"more than {MAX_FIELDS} fields"):
        check_model(small().SerializeToString() + (key(2, BYTES) + b"\0") * MAX_FIELDS, "x")


def written(message: Any, rng: np.random.Generator, oddly: float) -> bytes:
    """A message as bytes, by a writer that does odd things so often: keys of too many bits or bytes, fields in any
    order, messages in pieces, fields that nobody knows."""
    parts = []
    for field, value in message.ListFields():
        for part in value if field.is_repeated else [value]:
            kind, data = content(field, part, rng, oddly)
            above = int(rng.integers(1, 1 << 20)) if rng.random() < oddly / 4 else 0
            longer = int(rng.integers(1, 10)) if rng.random() < oddly / 4 else 0
            head = key(field.number, kind, above, longer)
            if kind == BYTES:
                head += varint(len(data), int(rng.integers(1, 6)) if rng.random() < oddly / 4 else 0)
            parts.append(head + data)
    if rng.random() < oddly:
        number = int(rng.choice([*range(1, 30), 2**28, 2**29 - 1, 2**29 + 1, 2**29 + 7, 2**32 + 1]))
        parts.append(varint(number << 3 | BYTES) + b"\0")
    if rng.random() < oddly:
        rng.shuffle(parts)
    return b"".join(parts)


def content(field: Any, value: Any, rng: np.random.Generator, oddly: float) -> tuple[int, bytes]:
    """(kind, bytes) of a value."""
    if field.message_type:
        return BYTES, written(value, rng, oddly)
    if field.type in (F.TYPE_STRING, F.TYPE_BYTES):
        return BYTES, value.encode() if isinstance(value, str) else value
    if field.type == F.TYPE_FLOAT:
        return FOUR, np.float32(value).tobytes()
    if field.type == F.TYPE_DOUBLE:
        return EIGHT, np.float64(value).tobytes()
    odd = (int(rng.integers(1, 8)) << 64 if rng.random() < oddly / 4 else 0) if value >= 0 else 0
    return VARINT, varint((value & (1 << 64) - 1) | odd)


def parsed(data: bytes) -> Any:
    made = onnx.ModelProto()
    try:
        made.ParseFromString(data)
    except DecodeError:
        return None
    return made


def test_what_passes_is_arithmetic_to_the_package_too() -> None:
    """Thousands of models, some with what is forbidden, written in ways that readers may take differently."""
    rng = np.random.default_rng(20)
    names = list(FORBIDDEN)
    passed = refused = 0
    for number in range(3000):
        made = small()
        for name in rng.choice(names, size=int(rng.integers(0, 3)), replace=False):
            FORBIDDEN[name](made)
        data = written(made, rng, 0.0 if number % 3 == 0 else 0.15)
        if number % 3 == 2:
            data = bytearray(data)
            for at in rng.integers(0, len(data), size=int(rng.integers(1, 4))):
                data[at] = rng.integers(0, 256)
            data = bytes(data)
        ours, theirs = accepted(data), parsed(data)
        passed, refused = passed + ours, refused + (not ours)
        if ours and theirs is not None:
            assert arithmetic(theirs), data.hex()
        if number % 3 == 0:
            assert ours == arithmetic(made), "nothing odd about how it is written"
    assert min(passed, refused) > 300
