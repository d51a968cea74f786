"""Pictures of very many parts are refused before a decoder walks them one by one."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from jigsync.io.blocks import BLOCK, MOST_BLOCKS, MOST_SCANS, MOST_VALUES, too_many_parts
from jigsync.io.images import FORMATS, picture_size, read_rgb, read_rgba
from jigsync.values.errors import ImageError

NOISE = np.random.default_rng(5).integers(0, 256, (90, 120, 3), dtype=np.uint8)


def saved(kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(NOISE).save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_empty_chunks(count: int) -> bytes:
    made = saved("PNG")
    return made[:33] + chunk(b"abCd") * count + made[33:]


def jpeg_of_segments(count: int) -> bytes:
    made = saved("JPEG")
    return made[:2] + b"\xff\xe5\0\x02" * count + made[2:]


def jpeg_of_padding(count: int) -> bytes:
    made = saved("JPEG")
    return made[:2] + b"\xff" * count + made[2:]


def jpeg_of_junk(count: int) -> bytes:
    made = saved("JPEG")
    return made[:20] + b"\0" * count + made[20:]


def jpeg_of_scans(count: int) -> bytes:
    made = saved("JPEG", progressive=True)
    last = made.rindex(b"\xff\xda")
    return made[:-2] + made[last:-2] * count + made[-2:]


def gif_of_blocks(count: int) -> bytes:
    made = saved("GIF")
    colours = 13 + (3 << ((made[10] & 7) + 1))
    return made[:colours] + b"\x21\xfe" + b"\x01x" * count + b"\0" + made[colours:]


def tiff(*tags: tuple[int, int, int, int], following: int = 0) -> bytes:
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + body + struct.pack("<I", following)


def tiff_of_strips(count: int) -> bytes:
    tags = ((256, 4, 1, 8), (257, 4, 1, count), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (277, 3, 1, 1))
    head = tiff(*tags, (273, 4, count, 200), (278, 4, 1, 1), (279, 4, count, 200))
    return head + bytes(500 - len(head) + 4 * count)


def tiff_of_pages(count: int) -> bytes:
    tags = ((256, 4, 1, 8), (257, 4, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8))
    size = len(tiff(*tags)) - 8
    pages = [tiff(*tags, following=8 + (k + 1) * size if k < count - 1 else 0)[8:] for k in range(count)]
    return tiff()[:8] + b"".join(pages) + bytes(99)


@pytest.mark.parametrize(
    ("make", "count", "words"),
    [
        (png_of_empty_chunks, MOST_BLOCKS + 100, "chunks. It has more."),
        (jpeg_of_segments, MOST_BLOCKS + 100, "segments. It has more."),
        (jpeg_of_padding, MOST_BLOCKS + 100, "segments. It has more."),
        (jpeg_of_junk, MOST_BLOCKS + 100, "segments. It has more."),
        (jpeg_of_scans, MOST_SCANS, f"must have at most {MOST_SCANS} scans. It has {MOST_SCANS + 10}."),
        (gif_of_blocks, MOST_BLOCKS + 100, "blocks. It has more."),
        (tiff_of_strips, MOST_VALUES + 1, f"at most {MOST_VALUES} values in a tag. It has {MOST_VALUES + 1}."),
        (tiff_of_pages, 2, "must have one frame or page. It has more."),
    ],
)
def test_very_many_parts_are_refused(make: Callable[[int], bytes], count: int, words: str) -> None:
    data = make(count)
    for read in (lambda: picture_size(data, "x"), lambda: read_rgb(data, name="x")):
        with pytest.raises(ImageError) as caught:
            read()
        assert words in str(caught.value)
    few = make(1)
    assert read_rgb(few).shape[2] == 3, "few of them are fine"


def test_pages_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them costs a look at all before it, and every one is read."""

    def count(self: Any) -> int:
        raise AssertionError("counted")

    monkeypatch.setattr(TiffImagePlugin.TiffImageFile, "n_frames", property(count))
    loaded: list[int] = []
    usual = TiffImagePlugin.ImageFileDirectory_v2.load
    monkeypatch.setattr(
        TiffImagePlugin.ImageFileDirectory_v2, "load", lambda self, fp: loaded.append(1) or usual(self, fp)
    )
    with pytest.raises(ImageError, match="one frame or page"):
        picture_size(tiff_of_pages(3000), "x")
    assert len(loaded) < 10
    assert picture_size(saved("TIFF"), "x") == (90, 120)


@pytest.mark.parametrize("kind", FORMATS)
def test_pictures_as_they_are_have_few(kind: str) -> None:
    for options in ({}, {"progressive": True, "optimize": True}):
        made = saved(kind, **(options if kind == "JPEG" else {}))
        assert too_many_parts(made) == ""
        assert too_many_parts(made[: len(made) // 2]) == ""
        assert read_rgba(made).shape == (90, 120, 4)
    assert too_many_parts(b"") == ""


def test_large_files_may_have_more_parts() -> None:
    """Encoders write a chunk for every few kilobytes."""
    body = chunk(b"IDAT", bytes(8192))
    assert too_many_parts(b"\x89PNG\r\n\x1a\n" + body * (2 * MOST_BLOCKS)) == ""
    assert BLOCK < 8192


def test_all_bytes_of_a_picture_are_copied_band_by_band() -> None:
    tall = np.random.default_rng(6).integers(0, 256, (700, 3, 4), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(tall).save(buffer, "PNG")
    assert (read_rgba(buffer.getvalue()) == tall).all()
    deep = np.arange(700 * 3, dtype=np.uint16).reshape(700, 3) * 31
    buffer = io.BytesIO()
    Image.fromarray(deep).save(buffer, "PNG")
    assert (read_rgb(buffer.getvalue())[..., 1] == np.rint(deep / 257)).all()


def test_a_lack_of_memory_is_not_a_broken_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("jigsync.io.images._to_array", none)
    with pytest.raises(MemoryError):
        read_rgb(saved("PNG"))
