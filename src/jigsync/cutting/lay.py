"""Fragments on a table, photographed: (puzzle, options, seed) -> photograph and its truth.

    trim -> lay apart -> table -> shadows -> fragments -> camera

Every fragment is resampled once: its place on the table and the camera's view of the table are one map. Where pixels are
enlarged, its alpha is made as steep as it was, so that a torn rim stays as sharp as the photograph around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.backgrounds import choose_table, draw_table
from jigsync.cutting.camera import develop, photo_from_table
from jigsync.cutting.lay_options import CARDS, LayOptions
from jigsync.cutting.light import cast_shadow, choose_lamp, fall_off
from jigsync.cutting.packing import check_room, lay_apart, touch
from jigsync.cutting.streams import Stage, stream
from jigsync.values import angles
from jigsync.values.errors import ImageError, InputError, OptionError, bad_value
from jigsync.values.lay import Card, Laid, Lay, project
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Pixels, Puzzle

Floats = NDArray[np.float64]

MAX_FRAGMENTS: Final = 5000
OPAQUE: Final = 128
"""Alpha from which a pixel is a fragment's."""
FINE: Final = 1600
"""Outlines are traced in pictures of about so many pixels a side."""
FINEST: Final = 4
DETAIL: Final = 0.3
"""How far an outline's corners may be from where they were traced, px of the photograph."""
ENLARGED: Final = 1.2
"""From this scale on rims are made steep again."""
STEEPEST: Final = 12.0
WHITE: Final = (244, 243, 239)
"""Colour of a card."""
LEAST_SEEN: Final = 4.0
"""Smallest side of a fragment on the photograph, px."""


@dataclass(frozen=True, eq=False)
class _Piece:
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


def lay_puzzle(puzzle: Puzzle, options: LayOptions, seed: int = 0) -> tuple[NDArray[np.uint8], Lay]:
    """Photographs a puzzle's fragments; a pure function of its arguments.

    Args:
        puzzle: the fragments, cropped or in containers.
        options: what to show and how well.
        seed: 0 .. 2^63 - 1.

    Shapes: -> (height, width, 3) uint8, before JPEG.

    Raises:
        OptionError: the fragments do not fit apart.
        InputError: a fragment shows nothing.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise bad_value("seed", "the photograph", "an integer from 0 to 2^63 - 1", seed)
    seed, size = int(seed), (options.height, options.width)
    pieces = _pieces(puzzle, options)
    homography = photo_from_table(options, stream(seed, Stage.LAY_CAMERA))
    poses, touching = _poses(pieces, homography, options, seed)

    table_rng = stream(seed, Stage.LAY_TABLE)
    ground = draw_table(choose_table(options, table_rng), homography, size, table_rng)
    light_rng = stream(seed, Stage.LAY_LIGHT)
    lamp = choose_lamp(options, light_rng)
    light = fall_off(options, lamp, size, light_rng)
    shade = np.ones(size, dtype=np.float32) if options.shadow > 0 and options.lift > 0 else None
    sheet = np.zeros((*size, 4), dtype=np.uint8)
    for k, (piece, pose) in enumerate(zip(pieces, poses, strict=True)):
        photo_from_pixels = homography @ piece.table_from_pixels(pose)
        height, width = piece.pixels.shape[:2]
        corners = project(photo_from_pixels, np.array([[0, 0], [width, 0], [width, height], [0, height]]))
        if shade is not None:
            centred = _for_opencv(photo_from_pixels)
            own = stream(seed, Stage.LAY_LIFT, k)
            cast_shadow(shade, piece.pixels[..., 3], centred, corners, options, lamp, own)
        _draw(sheet, piece, photo_from_pixels, corners)
    grain = stream(seed, Stage.LAY_NOISE)
    photo = develop(ground, sheet, shade, light, options, stream(seed, Stage.LAY_CAMERA, 1), grain)
    return photo, _truth(pieces, poses, touching, homography, options, seed)


def _pieces(puzzle: Puzzle, options: LayOptions) -> list[_Piece]:
    """The fragments, trimmed and scaled, and the card after them."""
    if not 1 <= len(puzzle) <= MAX_FRAGMENTS:
        raise InputError(
            f"The puzzle '{puzzle.name}' must have from 1 to {MAX_FRAGMENTS} fragments to be laid. It has {len(puzzle)}."
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
        pieces.append(_Piece(name, pixels, origin, _outline(pixels, scale) - origin, scale))
    card = CARDS[options.card]
    if card is not None:
        # Of whole pixels, so that its rim is as sharp as the lens; its scale makes up the rest.
        across, down = (side / options.mm_per_pixel for side in card)
        width, height = max(1, round(across)), max(1, round(down))
        if width * height > 4 * options.width * options.height:
            check_room(None, f"The {len(puzzle)} fragments and the {options.card} card")
        opaque = np.full((height, width, 4), (*WHITE, 255), dtype=np.uint8)
        middle = np.array([width, height]) / 2
        outline = np.array([[0, 0], [width, 0], [width, height], [0, height]]) - middle
        pieces.append(_Piece("", opaque, middle, outline, across / width))
    return pieces


def _trim(name: str, pixels: Pixels) -> tuple[str, Pixels, Floats]:
    """(name, pixels that show anything, (x, y) of the centre of the whole PNG in them)."""
    left, top, width, height = cv2.boundingRect(pixels[..., 3])
    shown = pixels[top : top + height, left : left + width]
    if not width or not (shown[..., 3] >= OPAQUE).any():
        raise ImageError(f"The fragment '{name}' must have opaque pixels (alpha from {OPAQUE}) to be laid. It has none.")
    return name, shown, np.array([pixels.shape[1] / 2 - left, pixels.shape[0] / 2 - top])


def _outline(pixels: Pixels, scale: float) -> Floats:
    """The rim of the largest part, where alpha is one half. Shapes: -> (L, 2) as (x, y), clockwise as displayed."""
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
        return corners + np.array([left, top]) - 1
    return outline if cv2.contourArea(outline.astype(np.float32), oriented=True) > 0 else outline[::-1]


def _poses(
    pieces: list[_Piece], homography: Floats, options: LayOptions, seed: int
) -> tuple[list[Pose], frozenset[tuple[str, str]]]:
    """table_from_frag of every piece, and the pairs that touch."""
    turned = [
        Pose(math.radians(options.turn) * float(stream(seed, Stage.LAY_TURN, k).uniform(-1, 1)), (0.0, 0.0))
        if options.turn
        else Pose.identity()
        for k in range(len(pieces))
    ]
    names = [piece.name for piece in pieces if piece.name]
    if 2 * options.touching > len(names):
        raise bad_value(
            "touching", f"a photograph of {len(names)} fragments", f"at most {len(names) // 2}", options.touching
        )
    rng = stream(seed, Stage.LAY_PAIRS)
    drawn = rng.permutation(len(names))[: 2 * options.touching].reshape(-1, 2)
    rims = [piece.on_table(pose) for piece, pose in zip(pieces, turned, strict=True)]
    groups: list[list[tuple[int, Floats]]] = [
        [(int(a), np.zeros(2)), (int(b), touch(rims[a], rims[b], rng))] for a, b in drawn
    ]
    paired = {int(k) for k in drawn.ravel()}
    groups += [[(k, np.zeros(2))] for k in range(len(pieces)) if k not in paired]
    size = options.height, options.width
    frame = np.array([[0, 0], [size[1], 0], [size[1], size[0]], [0, size[0]]], dtype=np.float64)
    places = check_room(
        lay_apart(
            [[rims[k] + at for k, at in group] for group in groups],
            project(np.linalg.inv(homography), frame),
            size,
            options.gap / options.mm_per_pixel,
            stream(seed, Stage.LAY_PLACE),
        ),
        f"The {len(names)} fragments" + (f" and the {options.card} card" if len(names) < len(pieces) else ""),
    )
    poses = list(turned)
    for group, place in zip(groups, places, strict=True):
        # A fragment that is neither turned nor scaled comes to lie on whole pixels.
        first = group[0][0]
        whole = np.rint(place - pieces[first].origin) + pieces[first].origin
        for k, at in group:
            x, y = whole + at
            poses[k] = Pose(turned[k].angle, (float(x), float(y)), turned[k].turns)
    pairs = frozenset((min(names[a], names[b]), max(names[a], names[b])) for a, b in drawn)
    return poses, pairs


def _draw(sheet: NDArray[np.uint8], piece: _Piece, photo_from_pixels: Floats, corners: Floats) -> None:
    """Puts one piece on the sheet of all, over what is there. Shapes: sheet (H, W, 4), premultiplied."""
    low = np.clip(np.floor(corners.min(axis=0)) - 2, 0, None).astype(np.int64)
    high = np.ceil(corners.max(axis=0)).astype(np.int64) + 2
    there = sheet[low[1] : high[1], low[0] : high[0]]
    pixels = piece.pixels
    if piece.scale < 1:
        pixels = _blurred(pixels, 0.45 * math.sqrt(1 / piece.scale**2 - 1))
        low_in_pixels = np.array([(a - b) / 2 for a, b in zip(pixels.shape[1::-1], piece.pixels.shape[1::-1], strict=True)])
        photo_from_pixels = photo_from_pixels @ _shift(-low_in_pixels)
    move = _for_opencv(_shift(-low) @ photo_from_pixels)
    laid = cv2.warpPerspective(pixels, move, there.shape[1::-1], flags=cv2.INTER_CUBIC)
    if piece.scale > ENLARGED and piece.name:
        _steepen(laid, min(piece.scale, STEEPEST))
    np.minimum(laid[..., :3], laid[..., 3:], out=laid[..., :3])  # cubic overshoot
    both = (there[..., 3] > 0) & (laid[..., 3] > 0)
    if both.any():  # rims that touch
        under = there[both] * (1 - laid[both, 3:] / 255)
        laid[both] = np.rint(np.minimum(under + laid[both], 255))
    np.maximum(there, laid, out=there)


def _blurred(pixels: Pixels, sigma: float) -> Pixels:
    """Smoothed for being made smaller, with room for the blur around it."""
    room = math.ceil(3 * sigma)
    wide = cv2.copyMakeBorder(pixels, room, room, room, room, cv2.BORDER_CONSTANT, value=(0, 0, 0, 0))
    return np.asarray(cv2.GaussianBlur(wide, (0, 0), sigma), dtype=np.uint8)


def _steepen(laid: NDArray[np.uint8], slope: float) -> None:
    """Makes alpha `slope` times as steep where it is one half; the colour under it stays."""
    rim = (laid[..., 3] > 0) & (laid[..., 3] < 255)
    soft = laid[rim].astype(np.float32)
    steep = np.clip((soft[:, 3:] - np.float32(127.5)) * np.float32(slope) + np.float32(127.5), 0, 255)
    colour = np.minimum(soft[:, :3] * (steep / soft[:, 3:]), steep)
    laid[rim] = np.rint(np.concatenate([colour, steep], axis=1))


def _truth(
    pieces: list[_Piece],
    poses: list[Pose],
    touching: frozenset[tuple[str, str]],
    homography: Floats,
    options: LayOptions,
    seed: int,
) -> Lay:
    laid, card = {}, None
    for piece, pose in zip(pieces, poses, strict=True):
        rim = project(homography, piece.on_table(pose))
        if piece.name:
            laid[piece.name] = Laid(pose, rim, _box(rim, options))
        else:
            longer, shorter = CARDS[options.card] or (0.0, 0.0)
            card = Card((longer, shorter), rim)
    scale = next(piece.scale for piece in pieces)
    return Lay(
        height=options.height,
        width=options.width,
        background=options.background,
        mm_per_pixel=options.mm_per_pixel,
        scale=scale,
        photo_from_table=homography,
        fragments=laid,
        touching=touching,
        card=card,
        options=options.to_json(),
        seed=seed,
    )


def _box(rim: Floats, options: LayOptions) -> tuple[int, int, int, int]:
    left, top = (int(value) for value in np.clip(np.floor(rim.min(axis=0)), 0, None))
    right, bottom = (int(value) for value in np.minimum(np.ceil(rim.max(axis=0)), (options.width, options.height)))
    return top, left, bottom - top, right - left


def _shift(by: NDArray[np.generic]) -> Floats:
    return np.array([[1, 0, by[0]], [0, 1, by[1]], [0, 0, 1]], dtype=np.float64)


def _for_opencv(dst_from_src: Floats) -> Floats:
    """The same map where pixel centres are whole numbers. Shapes: (3, 3) -> (3, 3)."""
    half = np.array([0.5, 0.5])
    return np.asarray(_shift(-half) @ dst_from_src @ _shift(half))
