"""Fragments on a table, photographed: (puzzle, options, seed) -> photograph and its truth.

    trim -> lay apart -> table -> shadows -> fragments -> camera

Every fragment is resampled once: its place on the table and the camera's view of the table are one map.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.backgrounds import choose_table, draw_table
from jigsync.cutting.camera import develop, photo_from_table
from jigsync.cutting.lay_options import CARDS, LayOptions
from jigsync.cutting.lay_pieces import Piece, draw, for_opencv, pieces_of
from jigsync.cutting.light import cast_shadow, choose_lamp, fall_off
from jigsync.cutting.packing import lay_apart, no_room, touch
from jigsync.cutting.streams import Stage, stream
from jigsync.values.errors import bad_value
from jigsync.values.lay import JPEG_FILE, PNG_FILE, Card, Laid, Lay, project
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float64]

DECIMALS: Final = 2
"""Of the outlines' coordinates."""


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
    pieces = pieces_of(puzzle, options)
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
            centred = for_opencv(photo_from_pixels)
            own = stream(seed, Stage.LAY_LIFT, k)
            cast_shadow(shade, piece.pixels[..., 3], centred, corners, options, lamp, own)
        draw(sheet, piece, photo_from_pixels, corners)
    grain = stream(seed, Stage.LAY_NOISE)
    photo = develop(ground, sheet, shade, light, options, stream(seed, Stage.LAY_CAMERA, 1), grain)
    return photo, _truth(pieces, poses, touching, homography, options, seed)


def _poses(
    pieces: list[Piece], homography: Floats, options: LayOptions, seed: int
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
    places = lay_apart(
        [[rims[k] + at for k, at in group] for group in groups],
        project(np.asarray(np.linalg.inv(homography)), frame),
        size,
        options.gap / options.mm_per_pixel,
        stream(seed, Stage.LAY_PLACE),
    )
    if places is None:
        card = f" and the {options.card} card" if len(names) < len(pieces) else ""
        raise no_room(f"The {len(names)} fragments{card}")
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


def _truth(
    pieces: list[Piece],
    poses: list[Pose],
    touching: frozenset[tuple[str, str]],
    homography: Floats,
    options: LayOptions,
    seed: int,
) -> Lay:
    laid, card = {}, None
    for piece, pose in zip(pieces, poses, strict=True):
        rim = np.round(project(homography, piece.on_table(pose)), DECIMALS)
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
        photo=JPEG_FILE if options.jpeg else PNG_FILE,
        options=options.to_json(),
        seed=seed,
    )


def _box(rim: Floats, options: LayOptions) -> tuple[int, int, int, int]:
    left, top = (int(value) for value in np.clip(np.floor(rim.min(axis=0)), 0, None))
    right, bottom = (int(value) for value in np.minimum(np.ceil(rim.max(axis=0)), (options.width, options.height)))
    return top, left, bottom - top, right - left
