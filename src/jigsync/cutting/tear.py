"""Tearing as one pure function: (pixels, options, seed) -> puzzle and truth.

canvas -> pieces -> worn edges and rims -> photometry -> turn -> camera

No grid and no frame: a fragment is its own pixels, and its pose says where the centre of its picture belongs.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.cutting.canvas import MAX_ASPECT
from jigsync.cutting.edges import across, wear
from jigsync.cutting.masks import Mask
from jigsync.cutting.photometry import fade
from jigsync.cutting.pieces import Pair, Pieces, contacts
from jigsync.cutting.streams import Stage, stream
from jigsync.cutting.tear_options import TearOptions
from jigsync.cutting.torn import tear
from jigsync.cutting.turned import Offset, applied_pose, digitised, premultiplied, turn_fragment, turn_quarters
from jigsync.values import z4
from jigsync.values.angles import FULL
from jigsync.values.errors import ImageError, bad_value
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth

LEAST_PIECE: Final = 8
"""Pixels of the picture along a piece's side."""
AREA_FLOOR: Final = 0.15
"""A puzzle with a piece below this share of the mean area is drawn again."""
REDRAWS: Final = 20
PAPER: Final = 0.88, 0.99
"""Brightness of bare paper."""


def tear_picture(
    rgb: NDArray[np.uint8],
    options: TearOptions,
    seed: int = 0,
    source_sha256: str = "",
    name: str = "the picture",
) -> tuple[Puzzle, Truth]:
    """Tears a picture.

    Args:
        rgb: (H, W, 3) uint8, upright.
        options: how it parts, and what is damaged.
        seed: 0 .. 2^63 - 1; the puzzle is a pure function of the three.
        source_sha256: recorded in the truth.
        name: how messages call the picture.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise bad_value("seed", "the puzzle", "an integer from 0 to 2^63 - 1", seed)
    canvas = scaled_picture(rgb, options, name)
    pieces, redraws, good = _divided((canvas.shape[0], canvas.shape[1]), options, int(seed))
    seams = contacts(pieces.owner, options.size)
    count = len(pieces.masks)
    drawn = int(seed) + redraws
    order = stream(drawn, Stage.SHUFFLE).permutation(count) if options.shuffle else np.arange(count)
    applied = _applied(options, drawn, count)
    rims = _rims(seams, drawn) if options.rim > 0 else frozenset()
    digits = max(3, len(str(count - 1)))
    ids = tuple(f"f{k:0{digits}d}" for k in range(count))
    pixels, placement = [], {}
    for fragment, piece in zip(ids, order, strict=True):
        stored, pose = _fragment(canvas, pieces, int(piece), rims, options, drawn, applied[piece])
        pixels.append(stored)
        placement[fragment] = Placed(pose)
    called = dict(zip(order.tolist(), ids, strict=True))
    touching = frozenset((min(pair), max(pair)) for pair in ((called[a], called[b]) for a, b in seams))
    flags = {"redraws": redraws, "below_area_floor": not good}
    truth = Truth(pieces.layout, placement, options.to_json(), int(seed), source_sha256, flags, pieces.pitch, touching)
    return Puzzle(Fragments(ids, tuple(pixels))), truth


def scaled_picture(rgb: NDArray[np.uint8], options: TearOptions, name: str = "the picture") -> NDArray[np.uint8]:
    """The whole picture at the scale at which a piece has size^2 pixels; nothing is cropped.

    Shapes: (H, W, 3) uint8 -> (H', W', 3).
    """
    height, width = rgb.shape[:2]
    if min(height, width) < 2 or max(height, width) > MAX_ASPECT * min(height, width):
        raise ImageError(
            f"{name} is {width} x {height} pixels: at least 2 x 2 and no longer than {MAX_ASPECT:g} times its width"
            " can be torn."
        )
    if height * width < options.pieces * LEAST_PIECE**2:
        raise ImageError(
            f"{name} is {width} x {height} pixels: too small for {options.pieces} pieces of at least {LEAST_PIECE} x"
            f" {LEAST_PIECE} pixels."
        )
    scale = options.size * math.sqrt(options.pieces / (height * width))
    new = max(1, round(height * scale)), max(1, round(width * scale))
    if new == (height, width):
        return rgb
    return np.asarray(Image.fromarray(rgb).resize(new[::-1], Image.Resampling.LANCZOS))


def _divided(shape: tuple[int, int], options: TearOptions, seed: int) -> tuple[Pieces, int, bool]:
    """(pieces, redraws, all of them are above the floor): the last draw is kept."""
    floor = AREA_FLOOR * shape[0] * shape[1] / options.pieces
    for attempt in range(REDRAWS + 1):
        pieces = _divide(shape, options, stream(seed + attempt, Stage.TEAR))
        least = min(mask.area for mask in pieces.masks)
        if least >= floor or (attempt == REDRAWS and least > 0):
            return pieces, attempt, least >= floor
    raise ImageError(f"A picture of {shape[1]} x {shape[0]} pixels cannot be torn into {options.pieces} pieces.")


def _divide(shape: tuple[int, int], options: TearOptions, rng: np.random.Generator) -> Pieces:
    return tear(shape, options.pieces, options.size, rng)


def _applied(options: TearOptions, seed: int, count: int) -> list[Pose]:
    """How every fragment is stored, in the order of the pieces."""
    if not options.turns:
        return [Pose.identity()] * count
    if options.presentation == "cropped":
        return [Pose.of_turns(int(k), (0.0, 0.0)) for k in stream(seed, Stage.TURNS).integers(0, z4.ORDER, count)]
    return [Pose(float(angle), (0.0, 0.0)) for angle in stream(seed, Stage.ANGLE).uniform(0.0, FULL, count)]


def _rims(seams: list[Pair], seed: int) -> frozenset[Pair]:
    """(piece that shows its paper, its neighbour): one side of each seam."""
    sides = stream(seed, Stage.RIM).integers(0, 2, len(seams))
    return frozenset(pair if side else pair[::-1] for pair, side in zip(seams, sides, strict=True))


def _fragment(
    canvas: NDArray[np.uint8],
    pieces: Pieces,
    piece: int,
    rims: frozenset[Pair],
    options: TearOptions,
    seed: int,
    applied: Pose,
) -> tuple[Pixels, Pose]:
    """One fragment as it is stored, and its true pose. Only its box of the picture is touched."""
    mask = pieces.masks[piece]
    height, width = mask.alpha.shape
    box = slice(mask.top, mask.top + height), slice(mask.left, mask.left + width)
    alpha, rgb = mask.alpha, canvas[box]
    if options.erosion > 0 or rims:
        alpha, rgb = _worn(rgb, mask, pieces.owner[box], piece, rims, options, seed)
    colour = rgb * np.float32(1 / 255)
    if options.photo > 0:
        colour = fade(rgb, alpha, options.photo, options.size, stream(seed, Stage.FADE, piece))
    rgba = premultiplied(colour, alpha)
    turned: tuple[NDArray[np.float32], Offset]
    turned = turn_fragment(rgba, applied.angle) if applied.turns is None else turn_quarters(rgba, applied.turns)
    middle = mask.left + width / 2, mask.top + height / 2
    stored = digitised(turned[0], options.photo, stream(seed, Stage.DIGITISE, piece))
    return stored, applied_pose(applied, middle, turned[1])


def _worn(
    rgb: NDArray[np.uint8],
    mask: Mask,
    owner: NDArray[np.int32],
    piece: int,
    rims: frozenset[Pair],
    options: TearOptions,
    seed: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """(alpha, colours) after erosion and with bare paper where the picture's layer is gone."""
    rim = None
    if rims:
        shown = np.zeros(1 + int(owner.max()) + 1, dtype=np.float32)  # the last one is nobody, across the border
        shown[[other for one, other in rims if one == piece and other <= owner.max()]] = options.rim
        rim = shown[across(owner, piece)]
    paper = stream(seed, Stage.RIM, 1 + piece)
    depth = options.erosion * options.size
    alpha, layer = wear(mask.alpha, depth, options.size, stream(seed, Stage.EROSION, piece), rim, paper)
    if rim is None:
        return alpha, rgb
    # One paper for the whole picture; its fibres scatter a little.
    tone = 255 * stream(seed, Stage.RIM).uniform(*PAPER)
    bare = np.float32(tone) + 4 * paper.standard_normal(layer.shape, dtype=np.float32)
    left = layer[..., None]
    mixed = rgb * left + bare[..., None] * (1 - left)
    return alpha, np.clip(np.rint(mixed), 0, 255).astype(np.uint8)
