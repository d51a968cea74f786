"""Pictures in and out, and their limits.

Whatever the file holds (grey, palette, CMYK, 16 bits, EXIF-turned, ...), readers give (H, W, 3) or (H, W, 4) uint8
upright pixels; what cannot be used gives one sentence (`ImageError`) that names the file, what is allowed and what
was found. The number of pixels is read from the header and checked before anything is decoded.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import warnings
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from jigsync.io.blocks import too_many_parts
from jigsync.io.files import StrPath, cannot, leads_outside, read_bytes, write_bytes
from jigsync.values.errors import ImageError, InputError

MAX_PIXELS: Final = 100_000_000
"""Largest picture that is decoded, in pixels."""

MAX_BYTES: Final = 1 << 30
"""Largest picture file that is read, in bytes."""

FORMATS: Final = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM", "JPEG2000")
"""Pillow's names of the formats that are tried; MPO comes as JPEG. None of them starts another program."""

SUFFIXES: Final = frozenset(
    (".png", ".jpg", ".jpeg", ".jpe", ".mpo", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".pbm", ".jp2")
)

Source = StrPath | bytes
_BAND: Final = 256
"""Rows that are copied at once."""


def read_rgb(source: Source, *, name: str | None = None, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """A picture's upright colours; transparency is composited over white: c a + 255 (1 - a).

    Args:
        source: a path, or the file's bytes.
        name: what to call the bytes in an error.
        max_pixels: largest width x height.

    Shapes: -> (H, W, 3) uint8.
    """
    pixels = _decode(source, name, max_pixels)
    if pixels.shape[2] == 3:
        return pixels
    colour, alpha = pixels[..., :3].astype(np.uint16), pixels[..., 3:].astype(np.uint16)
    return np.asarray((colour * alpha + 255 * (255 - alpha) + 127) // 255, dtype=np.uint8)


def read_rgba(source: Source, *, name: str | None = None, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """A picture's upright colours and alpha, as stored (not premultiplied); alpha is 255 when the file has none.

    Shapes: -> (H, W, 4) uint8.
    """
    pixels = _decode(source, name, max_pixels)
    if pixels.shape[2] == 4:
        return pixels
    return np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, dtype=np.uint8)], axis=-1)


def picture_size(data: bytes, name: str, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """(height, width) from the header alone; ImageError for what could not be decoded or has too many pixels."""
    if not data:
        raise ImageError(f"The picture '{name}' is empty: it has 0 bytes.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        width, height = _open(data, name, max_pixels).size
    return height, width


def _decode(source: Source, name: str | None, max_pixels: int) -> NDArray[np.uint8]:
    """Upright pixels: (H, W, 3), or (H, W, 4) when the file has transparency."""
    if isinstance(source, bytes):
        data, shown = source, name or "the picture"
    else:
        data, shown = read_bytes(source, MAX_BYTES), name or os.fspath(source)
    if not data:
        raise ImageError(f"The picture '{shown}' is empty: it has 0 bytes.")
    with warnings.catch_warnings():
        # Pillow warns about odd metadata and large pictures; the limit below is ours, the metadata is not used.
        warnings.simplefilter("ignore")
        picture = _open(data, shown, max_pixels)
        try:
            picture.load()
            picture = _upright(picture)
            return _to_array(picture, shown)
        except (ImageError, MemoryError):
            raise
        except Exception as error:  # decoders raise whatever their broken input leads them into
            raise ImageError(f"The picture '{shown}' is broken or truncated: {_words(error)}.") from None


def image_bytes_sha256(data: bytes) -> str:
    """Hash of a picture file's bytes: what a puzzle calls its source."""
    return hashlib.sha256(data).hexdigest()


def _open(data: bytes, shown: str, max_pixels: int) -> Image.Image:
    """Reads the header and checks format, size and number of frames."""
    pillow_limit = 2 * (Image.MAX_IMAGE_PIXELS or max_pixels)
    limit = f"must have at most {min(max_pixels, pillow_limit):,} pixels"
    if too_many := too_many_parts(data):
        raise ImageError(f"The picture '{shown}' must have {too_many}.")
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
        # Frames are not counted: a TIFF file may have a hundred thousand, and each costs a look at all before it.
        frames = picture.format != "MPO" and bool(getattr(picture, "is_animated", False))
    except MemoryError:
        raise
    except Image.DecompressionBombError as error:
        found = re.search(r"\d+", str(error))
        raise ImageError(
            f"The picture '{shown}' {limit}. It has {format(int(found[0]), ',') if found else 'more'}."
        ) from None
    except Exception:  # as above: a header parser may raise anything
        known = ", ".join(FORMATS)
        raise ImageError(f"The file '{shown}' is not a picture that can be read: {known} are.") from None
    width, height = picture.size
    if width * height > max_pixels:
        raise ImageError(f"The picture '{shown}' {limit}. It has {width} x {height} = {width * height:,}.")
    if width < 1 or height < 1:
        raise ImageError(f"The picture '{shown}' must have at least one pixel. It is {width} x {height}.")
    if frames:
        raise ImageError(f"The picture '{shown}' must have one frame or page. It has more.")
    return picture


def _upright(picture: Image.Image) -> Image.Image:
    """Applies the EXIF orientation; unreadable metadata counts as upright."""
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # metadata must not cost a picture whose pixels are fine
        return picture


def _to_array(picture: Image.Image, shown: str) -> NDArray[np.uint8]:
    if picture.mode.startswith("I") or picture.mode == "F":
        grey = _scale_deep(np.asarray(picture), shown)
        channels = [grey, grey, grey]
        if isinstance(transparent := picture.info.get("transparency"), int):
            channels.append(np.where(np.asarray(picture) == transparent, 0, 255).astype(np.uint8))
        return np.stack(channels, axis=-1)
    mode = "RGBA" if picture.has_transparency_data else "RGB"
    whole = picture if picture.mode == mode else picture.convert(mode)
    # In bands: all at once, Pillow makes a second copy on the way.
    pixels = np.empty((whole.height, whole.width, len(mode)), dtype=np.uint8)
    for top in range(0, whole.height, _BAND):
        pixels[top : top + _BAND] = np.asarray(whole.crop((0, top, whole.width, min(top + _BAND, whole.height))))
    return pixels


def _scale_deep(values: NDArray[Any], shown: str) -> NDArray[np.uint8]:
    """More than 8 bits a sample -> 0..255, rounded.

    Integers are 16-bit, v / 257. Floats are 0..1, or else 0..255, or else 0..65535, by their largest value.
    """
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 65535):
        raise ImageError(f"The picture '{shown}' must have samples in 0..65535. It has {low:g}..{high:g}.")
    if np.issubdtype(values.dtype, np.integer):
        white = 65535.0
    else:
        white = next(top for top in (1.0, 255.0, 65535.0) if high <= top)
    grey = np.empty(values.shape, dtype=np.uint8)
    for top in range(0, len(values), _BAND):
        grey[top : top + _BAND] = np.rint(values[top : top + _BAND].astype(np.float64) * (255.0 / white))
    return grey


def _words(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.rstrip(".")[:200]


# ---------------------------------------------------------------------------------------------- writing


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of (H, W), (H, W, 3) or (H, W, 4) uint8 pixels; the same pixels give the same bytes.

    Run-length matching suits fragments (mostly one flat border) and is the fastest that still compresses.
    """
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=3, compress_type=zlib.Z_RLE)
    return buffer.getvalue()


def jpeg_bytes(pixels: NDArray[np.uint8], quality: int) -> bytes:
    """A JPEG file of (H, W, 3) uint8 pixels, its colours at half the size as cameras write them."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    return buffer.getvalue()


def write_png(path: StrPath, pixels: NDArray[np.uint8]) -> None:
    """Writes a PNG file, atomically."""
    write_bytes(path, png_bytes(pixels))


# ---------------------------------------------------------------------------------------------- folders


def _is_listed(path: Path) -> bool:
    """A file, or a link to nothing: whoever reads it will say so."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def list_images(folder: StrPath) -> list[Path]:
    """The pictures of a folder (by suffix, hidden ones left out) in natural order: 2.png before 10.png.

    InputError when one is a link that leads out of the folder: it may be anybody's file.
    """
    root = Path(folder)
    try:
        names = os.listdir(root)
    except (OSError, ValueError) as error:
        raise cannot("read as a folder of pictures", folder, error) from None
    pictures = [
        root / name
        for name in sorted(names, key=natural_key)
        if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES and _is_listed(root / name)
    ]
    for picture in pictures:
        if picture.is_symlink() and leads_outside(picture, root):
            raise InputError(f"The file '{picture.name}' of '{root}' must lie inside the folder. It leads outside.")
    if not pictures:
        raise InputError(f"The folder '{root}' must hold pictures ({', '.join(sorted(SUFFIXES))}). It holds none.")
    return pictures


def evenly_spaced(pictures: list[Path], most: int) -> list[Path]:
    """At most so many of the pictures, evenly spaced, the first among them."""
    count = min(most, len(pictures))
    return [pictures[k * len(pictures) // count] for k in range(count)]


def natural_key(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sorts runs of digits by their value, the rest as text; a run of more than 18 digits counts as several."""
    runs = re.split(r"([0-9]{1,18})", name.lower())
    return [(int(run), "") if k % 2 else (-1, run) for k, run in enumerate(runs)], name
