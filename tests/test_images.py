"""Pictures of every kind come out upright, 8 bits, RGB; hostile ones give one sentence. Each is made here."""

from __future__ import annotations

import io
import os
import random
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from jigsync.io.images import (
    evenly_spaced,
    image_bytes_sha256,
    list_images,
    natural_key,
    png_bytes,
    read_rgb,
    read_rgba,
    write_png,
)
from jigsync.values import z4
from jigsync.values.errors import ImageError, InputError

HEIGHT, WIDTH = 6, 9


def colours() -> NDArray[np.uint8]:
    """No symmetry: every pixel is its own colour."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return np.stack([20 * y + x, 255 - 25 * x, 10 * x + 30 * y], axis=-1).astype(np.uint8)


def encode(picture: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Reads as a user who may not: root drops its rights for a moment, anybody else closes the folder."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        folder.chmod(0)
        try:
            yield
        finally:
            folder.chmod(0o700)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "PPM", "WEBP", "JPEG2000"])
def test_lossless_kinds_keep_every_pixel(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encode(Image.fromarray(colours()), kind, **options)
    assert np.array_equal(read_rgb(data), colours())
    assert np.array_equal(read_rgba(data)[..., :3], colours())
    assert read_rgba(data)[..., 3].min() == 255


def test_grey_bits_and_palette() -> None:
    grey = colours()[..., 2]
    assert np.array_equal(read_rgb(encode(Image.fromarray(grey), "PNG")), np.stack([grey] * 3, axis=-1))
    bits = grey > 100
    read = read_rgb(encode(Image.fromarray(bits), "PNG"))
    assert np.array_equal(read[..., 0], np.where(bits, 255, 0))
    palette = Image.fromarray(colours()).quantize(60)
    assert np.array_equal(read_rgb(encode(palette, "PNG")), np.asarray(palette.convert("RGB")))
    assert np.array_equal(read_rgb(encode(palette, "GIF")), np.asarray(palette.convert("RGB")))


def test_palette_with_transparency_is_composited_over_white() -> None:
    palette = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8), "P")
    palette.putpalette([10, 20, 30, 40, 50, 60, 200, 100, 0])
    data = encode(palette, "PNG", transparency=bytes([255, 0, 51]))
    assert read_rgba(data).tolist() == [[[10, 20, 30, 255], [40, 50, 60, 0], [200, 100, 0, 51]]]
    # 51 / 255 is a fifth: 200 / 5 + 255 * 4 / 5 = 244.
    assert read_rgb(data).tolist() == [[[10, 20, 30], [255, 255, 255], [244, 224, 204]]]


def test_alpha_is_composited_over_white() -> None:
    rgba = np.dstack([colours(), np.full((HEIGHT, WIDTH), 255, dtype=np.uint8)])
    rgba[0, 0] = (100, 0, 200, 0)
    rgba[1, 2] = (100, 0, 200, 51)
    data = png_bytes(rgba)
    assert np.array_equal(read_rgba(data), rgba)
    read = read_rgb(data)
    assert read[0, 0].tolist() == [255, 255, 255]
    assert read[1, 2].tolist() == [224, 204, 244]
    assert np.array_equal(read[2:], colours()[2:])
    grey_alpha = Image.fromarray(np.array([[[200, 255], [200, 0]]], dtype=np.uint8), "LA")
    assert read_rgb(encode(grey_alpha, "PNG")).tolist() == [[[200] * 3, [255] * 3]]
    assert np.array_equal(read_rgba(encode(grey_alpha, "PNG"))[..., 3], [[255, 0]])
    deep_grey = encode(Image.fromarray(deep()), "PNG", transparency=129)
    assert read_rgba(deep_grey)[..., 3].tolist() == [[255, 255, 0, 255], [255] * 4]
    # A colour named transparent (PNG's tRNS) counts as alpha too.
    named = encode(Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8)), "PNG", transparency=(1, 2, 3))
    assert read_rgb(named).tolist() == [[[255] * 3, [4, 5, 6]]]


def test_cmyk_is_converted() -> None:
    cmyk = np.zeros((1, 3, 4), dtype=np.uint8)
    cmyk[0, 0] = (0, 255, 255, 0)
    cmyk[0, 1] = (0, 0, 0, 255)
    data = encode(Image.fromarray(cmyk, "CMYK"), "TIFF")
    assert read_rgb(data).tolist() == [[[255, 0, 0], [0, 0, 0], [255, 255, 255]]]
    jpeg = encode(Image.fromarray(np.broadcast_to(cmyk[:, :1], (16, 16, 4)), "CMYK"), "JPEG", quality=95)
    assert np.abs(read_rgb(jpeg).astype(int) - [255, 0, 0]).max() < 12


def deep() -> NDArray[np.uint16]:
    return np.array([[0, 127, 129, 257], [32768, 65407, 65408, 65535]], dtype=np.uint16)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "big-endian TIFF", "PGM", "RGB PNG"])
def test_sixteen_bits_are_scaled_not_cut(kind: str) -> None:
    values = deep()
    if kind == "PGM":
        data = b"P5 4 2 65535\n" + values.astype(">u2").tobytes()
    elif kind == "big-endian TIFF":
        data = encode(Image.frombytes("I;16B", (4, 2), values.astype(">u2").tobytes()), "TIFF")
    elif kind == "RGB PNG":
        data = rgb16_png(np.stack([values] * 3, axis=-1))
    else:
        data = encode(Image.fromarray(values), kind)
    read = read_rgb(data)
    exact = values / 257
    assert np.abs(read - exact[..., None]).max() <= (1.0 if kind == "RGB PNG" else 0.5)
    assert read[0, 0].tolist() == [0, 0, 0]
    assert read[1, 3].tolist() == [255, 255, 255]


def rgb16_png(values: NDArray[np.uint16]) -> bytes:
    """A 16-bit RGB PNG by hand; Pillow cannot write one."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width = values.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_float_tiff() -> None:
    for white in (1.0, 255.0, 65535.0):
        values = (np.array([[0, 0.25, 1.0]]) * white).astype(np.float32)
        assert read_rgb(encode(Image.fromarray(values), "TIFF"))[..., 1].tolist() == [[0, 64, 255]]
    for bad in (-1.0, np.nan, 1e9):
        values = np.array([[0, bad]], dtype=np.float32)
        with pytest.raises(ImageError, match=r"must have samples in 0\.\.65535"):
            read_rgb(encode(Image.fromarray(values), "TIFF"))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(kind: str, orientation: int) -> None:
    # How a camera stores an upright picture for each EXIF orientation, by the standard's definition of row and column.
    turns = {1: 0, 2: 0, 3: 2, 4: 2, 5: 1, 6: 1, 7: 3, 8: 3}[orientation]
    upright = np.kron(colours(), np.ones((8, 8, 1), dtype=np.uint8))
    stored = z4.turn_pixels(upright, turns)
    stored = stored[:, ::-1] if orientation in (2, 4) else stored
    stored = stored[::-1] if orientation in (5, 7) else stored
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 98, "subsampling": 0} if kind == "JPEG" else {}
    read = read_rgb(encode(Image.fromarray(np.ascontiguousarray(stored)), kind, exif=exif, **options))
    assert read.shape == upright.shape
    assert np.abs(read.astype(int) - upright).max() <= (40 if kind == "JPEG" else 0)


def test_broken_exif_does_not_cost_the_picture() -> None:
    data = encode(Image.fromarray(colours()), "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert np.array_equal(read_rgb(data), colours())


def frames() -> list[Image.Image]:
    return [Image.fromarray(np.roll(colours(), k, axis=1)) for k in range(3)]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_animated_is_refused(kind: str) -> None:
    first, *rest = frames()
    with pytest.raises(ImageError, match=r"'the\.file' must have one frame or page\. It has more\."):
        read_rgb(encode(first, kind, save_all=True, append_images=rest), name="the.file")


def test_mpo_gives_its_first_picture() -> None:
    big = [frame.resize((90, 60), Image.Resampling.NEAREST) for frame in frames()]
    data = encode(big[0], "MPO", save_all=True, append_images=big[1:], quality=98, subsampling=0)
    assert np.abs(read_rgb(data).astype(int) - np.asarray(big[0])).max() < 40


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF"])
def test_truncated_is_refused(kind: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(3).integers(0, 256, (64, 48, 3), dtype=np.uint8)
    data = encode(Image.fromarray(noise), kind)
    path = tmp_path / f"half of it é.{kind.lower()}"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ImageError) as caught:
        read_rgb(path)
    assert path.name in str(caught.value)
    assert "truncated" in str(caught.value) or "not a picture" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty: it has 0 bytes"),
        (b"hello", "is not a picture that can be read: PNG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not a picture"),
        (b"P6 0 5 255\n", "is not a picture"),
    ],
)
def test_non_pictures_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        read_rgb(data, name="x.png")


@pytest.mark.parametrize("side", [10_001, 30_000])
def test_pixel_limit_is_checked_before_decoding(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    data = b"P5 %d %d 255\n" % (side, side)
    with pytest.raises(ImageError, match=rf"at most 100,000,000 pixels\. It has .*{side * side:,}\.$"):
        read_rgb(data)


def test_pixel_limit_is_ours_to_set() -> None:
    data = png_bytes(colours())
    assert read_rgb(data, max_pixels=54).shape == (6, 9, 3)
    with pytest.raises(ImageError, match=r"at most 53 pixels\. It has 9 x 6 = 54"):
        read_rgb(data, max_pixels=53)


def test_pillows_own_limit_neither_warns_nor_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = png_bytes(colours())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)  # 54 pixels: a warning, which our tests turn into errors
    assert np.array_equal(read_rgb(data), colours())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)  # 54 pixels: an error
    with pytest.raises(ImageError, match=r"at most 40 pixels\. It has 54"):
        read_rgb(data)


def test_one_pixel() -> None:
    assert read_rgb(png_bytes(colours()[:1, :1])).shape == (1, 1, 3)


@given(st.sampled_from(["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "PPM", "JPEG2000"]), st.data())
def test_any_damage_gives_pixels_or_an_image_error(kind: str, data: st.DataObject) -> None:
    good = bytearray(encode(Image.fromarray(colours()), kind))
    for _ in range(data.draw(st.integers(1, 6))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = read_rgb(bytes(good), max_pixels=100_000)
    except ImageError:
        return
    assert read.dtype == np.uint8
    assert read.shape[2] == 3


@given(st.binary(max_size=300))
def test_any_bytes_give_pixels_or_an_image_error(data: bytes) -> None:
    for head in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"BM", b"P5 "):
        try:
            read_rgba(head + data, max_pixels=100_000)
        except ImageError:
            continue


def test_png_bytes_are_deterministic_and_exact(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (33, 20, 4), dtype=np.uint8)
    assert png_bytes(pixels) == png_bytes(pixels.copy())
    write_png(tmp_path / "a b" / "é.png", pixels)
    data = (tmp_path / "a b" / "é.png").read_bytes()
    assert np.array_equal(read_rgba(tmp_path / "a b" / "é.png"), pixels)
    assert image_bytes_sha256(data) == image_bytes_sha256(png_bytes(pixels))


def test_list_images_sorts_naturally(tmp_path: Path) -> None:
    for name in ("10.png", "2.PNG", "a 3.jpg", "é.tif", ".hidden.png", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in list_images(tmp_path)] == ["2.PNG", "10.png", "a 3.jpg", "é.tif"]


@given(st.lists(st.text(alphabet="aB10².é-", max_size=6)), st.randoms(use_true_random=False))
def test_natural_order_is_total(stems: list[str], chance: random.Random) -> None:
    mixed = list(stems)
    chance.shuffle(mixed)
    assert sorted(stems, key=natural_key) == sorted(mixed, key=natural_key)


def test_folders_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold pictures .* It holds none"):
        list_images(tmp_path)
    with pytest.raises(InputError, match="cannot be read as a folder of pictures: No such file"):
        list_images(tmp_path / "none")
    (tmp_path / "x.png").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be read as a folder of pictures: Not a directory"):
        list_images(tmp_path / "x.png")


def test_unreadable_folder_and_picture(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    (folder / "x.png").write_bytes(png_bytes(colours()))
    with without_rights(folder):
        with pytest.raises(InputError, match="Permission denied"):
            list_images(folder)
        with pytest.raises(InputError, match=r"x\.png' cannot be read: Permission denied"):
            read_rgb(folder / "x.png")


@pytest.mark.parametrize(("count", "most"), [(90, 60), (90, 30), (5, 8), (7, 7), (1, 1), (0, 4)])
def test_some_of_many_pictures_span_all_of_them(count: int, most: int) -> None:
    places = [int(path.name) for path in evenly_spaced([Path(str(k)) for k in range(count)], most)]
    assert len(places) == min(count, most)
    steps = np.diff([*places, count])
    assert not count or (places[0] == 0 and steps.min() >= 1 and steps.max() - steps.min() <= 1)
