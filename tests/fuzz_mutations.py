"""Hostile versions of valid files: cut off, flipped, spliced, repeated, with other JSON values, with other numbers.

A file is bytes under a relative name; a case is all files that one reader is given. Every mutation is a function of a
case and a `random.Random`, so a seed gives the same case again. The long fuzzer (benchmarks/fuzz.py) and the tests
(test_fuzz_readers.py) draw from the same list.
"""

from __future__ import annotations

import copy
import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, bytes]
"""Relative name -> bytes."""

NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1)
"""Sizes, counts and offsets that parsers trip over."""

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**400,
    -(10**400),
    0.5,
    -0.0,
    1e308,
    "",
    "\0",
    "../../etc/passwd",
    "/etc/passwd",
    "a\nb",
    "é\u202e",
    "x" * 5000,
    "9" * 5000,
    [],
    [[]],
    {},
    {"": None},
    [0] * 50,
)
TOKENS = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"9" * 5000,
    b'"\\ud800"',
    b"[" * 3000,
    b'{"a":' * 3000,
)
"""What JSON must not hold, and what no reader may follow to its end."""


def mutated(case: Case, random: random.Random) -> Case:
    """One to three mutations of one file of the case."""
    case = dict(case)
    name = random.choice(sorted(case))
    is_json = name.endswith((".json", ".jsonl"))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        choices = JSON if is_json and random.random() < 0.7 else BYTES
        case[name] = random.choice(choices)(case[name], random)
    return case


# ---------------------------------------------------------------------------------------------- bytes


def cut_off(data: bytes, random: random.Random) -> bytes:
    """Ends too early."""
    return data[: random.randrange(len(data) + 1)]


def flip(data: bytes, random: random.Random) -> bytes:
    """Some bits turned over; mostly near the start, where headers are."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            reach = random.choice((64, 1024, len(changed)))
            changed[random.randrange(min(reach, len(changed)))] ^= 1 << random.randrange(8)
    return bytes(changed)


def number(data: bytes, random: random.Random) -> bytes:
    """Another number over 1, 2, 4 or 8 bytes, either end first."""
    width, order = random.choice((1, 2, 4, 8)), random.choice("<>")
    value = random.choice(NUMBERS) % (1 << 8 * width)
    reach = random.choice((128, 2048, len(data)))
    at = random.randrange(max(1, min(reach, len(data)) - width + 1))
    packed = struct.pack(order + {1: "B", 2: "H", 4: "I", 8: "Q"}[width], value)
    return data[:at] + packed + data[at + width :]


def splice(data: bytes, random: random.Random) -> bytes:
    """A stretch of the file once more, somewhere else, or left out."""
    a, b = sorted(random.randrange(len(data) + 1) for _ in range(2))
    at = random.randrange(len(data) + 1)
    if random.random() < 0.3:
        return data[:a] + data[b:]
    return data[:at] + data[a : min(b, a + 4096)] + data[at + random.choice((0, b - a)) :]


def strange(data: bytes, random: random.Random) -> bytes:
    """Other bytes put in."""
    at = random.randrange(len(data) + 1)
    what = random.choice((b"\0" * 512, b"\xff" * 16, b"\xf0\x9f\x92\xa9", random.randbytes(20), *TOKENS))
    return data[:at] + what + data[at:]


def digits(data: bytes, random: random.Random) -> bytes:
    """Another digit for one of the text's digits: sizes in tar and PPM headers, versions, JSON."""
    places = [k for k, byte in enumerate(data[:4096]) if 48 <= byte <= 57]
    if not places:
        return data
    at = random.choice(places)
    return data[:at] + random.choice((b"0", b"7", b"9", b"-", b"8888")) + data[at + 1 :]


def nothing(data: bytes, random: random.Random) -> bytes:
    """An empty file."""
    return b""


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    cut_off,
    flip,
    flip,
    flip,
    number,
    number,
    number,
    splice,
    strange,
    digits,
    digits,
    nothing,
)


# ---------------------------------------------------------------------------------------------- JSON


def other_value(data: bytes, random: random.Random) -> bytes:
    """Another value at one place of a JSON file (or of one line)."""
    return _changed(data, random, lambda holder, key: holder.__setitem__(key, copy.deepcopy(random.choice(VALUES))))


def left_out(data: bytes, random: random.Random) -> bytes:
    """A key or an entry left out."""
    return _changed(data, random, lambda holder, key: holder.__delitem__(key))


def moved(data: bytes, random: random.Random) -> bytes:
    """A value of another place of the same file, under this key."""

    def change(holder: Any, key: Any) -> None:
        holder[key] = copy.deepcopy(random.choice([h[k] for h, k in _places(found)] or [None]))

    found: Any = _parsed(data, random)[0]
    return _changed(data, random, change) if found is not None else data


def added(data: bytes, random: random.Random) -> bytes:
    """Keys that nobody knows, names that lead elsewhere, an entry once more."""

    def change(holder: Any, key: Any) -> None:
        if isinstance(holder, dict):
            holder[random.choice(("", "__class__", "../x", "x" * 300, "a\nb", "\0"))] = holder[key]
        else:
            holder.append(copy.deepcopy(holder[key]))

    return _changed(data, random, change)


def token(data: bytes, random: random.Random) -> bytes:
    """A number or string of the text replaced by what JSON must not hold."""
    places = [k for k in range(len(data)) if data[k : k + 1] in b":,["]
    if not places:
        return data
    at = random.choice(places) + 1
    end = min((k for k in range(at, min(len(data), at + 200)) if data[k : k + 1] in b",]}"), default=at)
    return data[:at] + random.choice(TOKENS) + data[end:]


JSON: tuple[Callable[[bytes, random.Random], bytes], ...] = (other_value, other_value, left_out, moved, added, token)


def _parsed(data: bytes, random: random.Random) -> tuple[Any, int, list[bytes]]:
    """(value, number of its line, all lines); a whole file is one line. None when it is no JSON any more."""
    try:
        return json.loads(data), 0, [data]
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        at = random.randrange(len(lines))
        try:
            return json.loads(lines[at]), at, lines
        except (ValueError, RecursionError):
            return None, at, lines


def _changed(data: bytes, random: random.Random, change: Callable[[Any, Any], None]) -> bytes:
    value, at, lines = _parsed(data, random)
    places = list(_places(value))
    if not places:
        return data
    change(*random.choice(places))
    lines[at] = json.dumps(value).encode()
    return b"\n".join(lines)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
