"""What is laid on a table: fragments, trimmed to what they show, and a card; their rims, and how they are drawn.

A piece is resampled once, by the one map from its pixels to the photograph. Where that enlarges it, its alpha is made
as steep as it was, so that a torn rim stays as sharp as the photograph around it; the steps of a rim without
antialiasing are smoothed first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.erosion import largest_part
from jigsync.cutting.lay_options import CARDS, LayOptions
from jigsync.cutting.packing import no_room
from jigsync.cutting.turned import trimmed
from jigsync.values.errors import ImageError, InputError, OptionError
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

Floats = NDArray[np.float64]

MAX_FRAGMENTS: Final = 5000
OPAQUE: Final = 128
"""Alpha from which a pixel is a fragment's."""
FINE: Final = 1600
"""Outlines are traced in pictures of about so many pixels a side."""
FINEST: Final = 4
DETAIL: Final = 0.5
"""How far an outline's corners may be from where they were traced, px of the photograph."""
ENLARGED: Final = 1.2
"""From this scale on rims are made steep again."""
STEPS: Final = 0.8
"""Standard deviation that smooths a rim's steps, px of the fragment; it rounds a corner by less."""
RIM: Final = 3
"""Pixels that this reaches."""
KEPT: Final = 0.9
"""Share of a fragment that this must leave."""
STEEPEST: Final = 12.0
WHITE: Final = (244, 243, 239)
"""Colour of a card."""
LEAST_SEEN: Final = 4.0
"""Smallest side of a fragment on the photograph, px."""


@dataclass(frozen=True, eq=False)
class Piece:
    """What is laid: a fragment, trimmed, or the card.

    Attributes:
        name: of the fragment; "" for the card.
        pixels: premultiplied RGBA.
        origin: (x, y) of the fragment's own origin in `pixels`.
        outline: (L, 2) about the origin, clockwise as displayed.
        scale: table pixels for one of its own.
    """

    name: str
    pixels: Pixels
    origin: Floats
    outline: Floats
    scale: float

    def on_table(self, pose: Pose) -> Floats:
        """The outline at a pose."""
        return pose.act(self.scale * self.outline)

    def table_from_pixels(self, pose: Pose) -> Floats:
        """(3, 3): from continuous coordinates of `pixels` to the table."""
        matrix = np.eye(3)
        matrix[:2] = pose.matrix
        return np.asarray(matrix @ np.diag([self.scale, self.scale, 1.0]) @ _shift(-self.origin))


def pieces_of(puzzle: Puzzle, options: LayOptions) -> list[Piece]:
    """The fragments, trimmed and scaled, and the card after them."""
    if not 1 <= len(puzzle) <= MAX_FRAGMENTS:
        raise InputError(
            f"The puzzle '{puzzle.name}' must have from 1 to {MAX_FRAGMENTS} fragments to be laid."
            f" It has {len(puzzle)}."
        )
    traced = [_trim(name, pixels) for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True)]
    scale = options.scale
    if scale is None:
        area = sum(float(np.count_nonzero(pixels[..., 3] >= OPAQUE)) for _, pixels, _ in traced)
        scale = math.sqrt(options.share * options.width * options.height / area)
    pieces = []
    for name, pixels, origin in traced:
        if max(pixels.shape[:2]) * scale < LEAST_SEEN:
            raise OptionError(
                f"The fragment '{name}' would be less than {LEAST_SEEN:g} pixels large on a photograph of"
                f" {options.width} x {options.height}: ask for a larger photograph, share or scale."
            )
        if scale > ENLARGED:
            pixels, origin = _smooth_rim(pixels), origin + RIM
        pieces.append(Piece(name, pixels, origin, _outline(pixels, scale) - origin, scale))
    card = CARDS[options.card]
    if card is not None:
        # Of whole pixels, so that its rim is as sharp as the lens; its scale makes up the rest.
        across, down = (side / options.mm_per_pixel for side in card)
        width, height = max(1, round(across)), max(1, round(down))
        if width * height > 4 * options.width * options.height:
            raise no_room(f"The {len(puzzle)} fragments and the {options.card} card")
        opaque = np.full((height, width, 4), (*WHITE, 255), dtype=np.uint8)
        middle = np.array([width, height]) / 2
        outline = np.array([[0, 0], [width, 0], [width, height], [0, height]]) - middle
        pieces.append(Piece("", opaque, middle, outline, across / width))
    return pieces


def _trim(name: str, pixels: Pixels) -> tuple[str, Pixels, Floats]:
    """(name, box of its largest part, (x, y) of the centre of the whole PNG in it): a fragment is one thing."""
    alpha = largest_part(pixels[..., 3])
    if not (alpha >= OPAQUE).any():
        raise ImageError(
            f"The fragment '{name}' must have opaque pixels (alpha from {OPAQUE}) to be laid. It has none."
        )
    shown, moved = trimmed(np.where(alpha[..., None] > 0, pixels, np.uint8(0)))
    return name, shown, np.array(shown.shape[1::-1]) / 2 - moved


def _smooth_rim(pixels: Pixels) -> Pixels:
    """RIM pixels larger on every side; the rim is blurred, unless the fragment is so thin that little would be left."""
    wide = cv2.copyMakeBorder(pixels, RIM, RIM, RIM, RIM, cv2.BORDER_CONSTANT, value=(0, 0, 0, 0))
    side = 2 * RIM + 1
    blurred = cv2.GaussianBlur(wide, (side, side), STEPS, borderType=cv2.BORDER_CONSTANT)
    deep = cv2.erode(wide[..., 3], np.ones((side, side), np.uint8), borderValue=0) == 255
    smooth = np.where(deep[..., None], wide, blurred).astype(np.uint8)
    kept, had = (int(np.count_nonzero(some[..., 3] >= OPAQUE)) for some in (smooth, wide))
    return np.asarray(smooth if kept >= KEPT * had else wide, dtype=np.uint8)


def _outline(pixels: Pixels, scale: float) -> Floats:
    """The rim, where alpha is one half. Shapes: -> (L, 2) as (x, y), clockwise as displayed."""
    alpha = cv2.copyMakeBorder(pixels[..., 3], 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    finer = int(np.clip(FINE // max(alpha.shape), 1, FINEST))
    if finer > 1:
        height, width = alpha.shape
        alpha = cv2.resize(alpha, (width * finer, height * finer), interpolation=cv2.INTER_LINEAR)
    inside = (alpha >= OPAQUE).astype(np.uint8)
    traced = max(cv2.findContours(inside, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=cv2.contourArea)
    simple = cv2.approxPolyDP(traced, DETAIL * finer / scale, True) if len(traced) > 4 else traced
    outline = (simple[:, 0].astype(np.float64) + 0.5) / finer - 1
    if len(outline) < 3:  # a speck of one or two pixels
        left, top, width, height = (side / finer for side in cv2.boundingRect(traced))
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]])
        return np.asarray(corners + np.array([left, top]) - 1)
    return outline if cv2.contourArea(outline.astype(np.float32), oriented=True) > 0 else outline[::-1]


def draw(sheet: NDArray[np.uint8], piece: Piece, photo_from_pixels: Floats, corners: Floats) -> None:
    """Puts one piece on the sheet of all, over what is there. Shapes: sheet (H, W, 4), premultiplied."""
    low = np.clip(np.floor(corners.min(axis=0)) - 2, 0, None).astype(np.int64)
    high = np.ceil(corners.max(axis=0)).astype(np.int64) + 2
    there = sheet[low[1] : high[1], low[0] : high[0]]
    pixels = piece.pixels
    if piece.scale < 1:
        pixels, room = _blurred(pixels, 0.45 * math.sqrt(1 / piece.scale**2 - 1))
        photo_from_pixels = photo_from_pixels @ _shift(np.array([-room, -room]))
    move = for_opencv(_shift(-low) @ photo_from_pixels)
    # Floats: where alpha overshoots 255 at a rim, colour does as much, and only their quotient is right.
    laid = cv2.warpPerspective(pixels.astype(np.float32), move, there.shape[1::-1], flags=cv2.INTER_CUBIC)
    slope = min(piece.scale, STEEPEST) if piece.scale > ENLARGED and piece.name else 1.0
    whole = _settled(np.asarray(laid, dtype=np.float32), slope)
    both = (there[..., 3] > 0) & (whole[..., 3] > 0)
    if both.any():  # rims that touch
        under = there[both] * (1 - whole[both, 3:] / 255)
        whole[both] = np.rint(np.minimum(under + whole[both], 255))
    np.maximum(there, whole, out=there)


def _blurred(pixels: Pixels, sigma: float) -> tuple[Pixels, int]:
    """(smoothed for being made smaller, so many pixels larger on every side)."""
    room = math.ceil(3 * sigma)
    wide = cv2.copyMakeBorder(pixels, room, room, room, room, cv2.BORDER_CONSTANT, value=(0, 0, 0, 0))
    return np.asarray(cv2.GaussianBlur(wide, (0, 0), sigma), dtype=np.uint8), room


def _settled(laid: NDArray[np.float32], slope: float) -> NDArray[np.uint8]:
    """Rounded pixels; alpha within 0 .. 255 and `slope` times as steep where it is one half; the colour stays.

    Shapes: (h, w, 4) premultiplied -> the same.
    """
    alpha = laid[..., 3]
    rim = (alpha > 0.5) & (np.abs(alpha - 255) > 0.01)
    soft = laid[rim]
    steep = np.clip((soft[:, 3:] - np.float32(127.5)) * np.float32(slope) + np.float32(127.5), 0, 255)
    laid[rim] = soft * (steep / soft[:, 3:])
    laid += np.float32(0.5)
    whole = np.clip(laid, 0, 255, out=laid).astype(np.uint8)
    np.minimum(whole[..., :3], whole[..., 3:], out=whole[..., :3])
    return whole


def _shift(by: NDArray[np.generic]) -> Floats:
    return np.array([[1, 0, by[0]], [0, 1, by[1]], [0, 0, 1]], dtype=np.float64)


def for_opencv(dst_from_src: Floats) -> Floats:
    """The same map where pixel centres are whole numbers. Shapes: (3, 3) -> (3, 3)."""
    half = np.array([0.5, 0.5])
    return np.asarray(_shift(-half) @ dst_from_src @ _shift(half))
