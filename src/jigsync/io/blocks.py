"""How many parts a picture file is made of, counted before a decoder walks them one by one.

A part of four bytes costs a decoder as much time as one of four thousand, so a file of twenty megabytes can keep it
busy for a minute. Pictures have few parts, or large ones; files of many small ones are refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Final

MOST_BLOCKS: Final = 4000
"""Parts of a file, beyond one in every BLOCK bytes."""
BLOCK: Final = 1000
MOST_SCANS: Final = 100
"""Passes over a JPEG picture. Encoders make ten, or some dozens when they look for the smallest file."""
MOST_VALUES: Final = 200_000
"""Numbers of one tag of a TIFF file: two for every strip of rows."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_GIF: Final = b"GIF8"
_TIFF: Final = {b"II*\0": ("<", False), b"MM\0*": (">", False), b"II+\0": ("<", True), b"MM\0+": (">", True)}
_WIDTHS: Final = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
"""Kind -> bytes of a number in TIFF; texts and bytes are not read number by number."""
_MARKER: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""In packed JPEG data what is not stuffing and no restart is the next part."""
_SCAN: Final = 0xDA


def too_many_parts(data: bytes) -> str:
    """What there is too much of in a picture file, with its number; "" when there is nothing."""
    most = MOST_BLOCKS + len(data) // BLOCK
    if data.startswith(_PNG):
        return _more_than(most, _chunks(data), "chunks")
    if data.startswith(_GIF):
        return _more_than(most, _gif_blocks(data), "blocks")
    if data.startswith(_JPEG):
        segments = list(islice(_segments(data), most + 1))
        scans = sum(kind == _SCAN for kind in segments)
        if scans > MOST_SCANS:
            return f"at most {MOST_SCANS} scans. It has {scans}"
        return _more_than(most, iter(segments), "segments")
    if data[:4] in _TIFF:
        values = _most_values(data)
        return f"at most {MOST_VALUES} values in a tag. It has {values}" if values > MOST_VALUES else ""
    return ""


def _more_than(most: int, parts: Iterator[int], what: str) -> str:
    return f"at most {most} {what}. It has more" if next(islice(parts, most, None), None) is not None else ""


def _chunks(data: bytes) -> Iterator[int]:
    at = len(_PNG)
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield size
        at += 12 + size


def _segments(data: bytes) -> Iterator[int]:
    """Kinds of a JPEG file's segments: one after another up to the first scan, then by looking for them."""
    at = 2
    while at + 4 <= len(data):
        kind = data[at + 1] if data[at] == 0xFF else -1
        yield kind
        if kind in (-1, 0xFF):  # whoever looks for the next segment does it byte by byte, and so do we
            at += 1
            continue
        if kind == _SCAN:
            break
        alone = kind in (0x00, 0x01) or 0xD0 <= kind <= 0xD9
        at += 2 if alone else 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    for found in _MARKER.finditer(data, at + 2):
        yield found[0][1]


def _gif_blocks(data: bytes) -> Iterator[int]:
    """Lengths of a GIF file's blocks that are not full: those of pictures have 255 bytes, but for the last."""
    if len(data) < 13:
        return
    at = 13 + _gif_colours(data[10])
    while at < len(data):
        kind = data[at]
        at += 1
        if kind == 0x21:
            at += 1
        elif kind == 0x2C and at + 9 < len(data):
            at += 9 + _gif_colours(data[at + 8]) + 1
        elif kind == 0x3B:
            return
        else:
            yield 0
            continue
        while at < len(data) and data[at]:
            if data[at] < 255:
                yield data[at]
            at += 1 + data[at]
        at += 1


def _gif_colours(flags: int) -> int:
    """Bytes of a colour table."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _most_values(data: bytes) -> int:
    """The largest number of values of a tag in a TIFF file's first directory."""
    order, big = _TIFF[data[:4]]
    entry = order + ("HHQ8x" if big else "HHI4x")  # tag, kind, number of values; then the values, or where they are
    try:
        (at,) = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)
        (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, at)
        at += 8 if big else 2
        size = struct.calcsize(entry)
        tags = (struct.unpack_from(entry, data, at + k * size) for k in range(min(count, 65535)))
        return max((values for _, kind, values in tags if kind in _WIDTHS), default=0)
    except struct.error:  # it ends early, which whoever decodes it will say
        return 0
