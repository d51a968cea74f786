"""Tearing as one pure function: (pixels, options, seed) -> puzzle and truth.

canvas -> pieces -> worn edges and rims -> photometry -> turn -> camera

No grid and no frame: a fragment is its own pixels, and its pose says where the centre of its picture belongs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.cutting.canvas import MAX_ASPECT
from jigsync.cutting.chords import cut_straight
from jigsync.cutting.edges import across, wear
from jigsync.cutting.handed import draw_applied, draw_order, fragment_ids
from jigsync.cutting.knobs import cut_knobs, knob_grid
from jigsync.cutting.masks import Mask
from jigsync.cutting.photometry import fade
from jigsync.cutting.pieces import Pair, Pieces, contacts
from jigsync.cutting.streams import Stage, stream
from jigsync.cutting.tear_options import TearOptions
from jigsync.cutting.torn import tear
from jigsync.cutting.turned import hand_out, premultiplied
from jigsync.values.errors import ImageError, bad_value
from jigsync.values.layout import Grid
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
FIBRES: Final = np.float32(4)
"""Standard deviation of its grey values, of 255."""


@dataclass(frozen=True, eq=False)
class Division:
    """A picture divided, nothing damaged yet.

    Attributes:
        seed: the requested one; `redraws` more is the one that was kept.
        good: every piece is above the area floor.
    """

    pieces: Pieces
    seed: int
    redraws: int
    good: bool

    @property
    def drawn(self) -> int:
        """The seed that was kept."""
        return self.seed + self.redraws


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
    canvas = scaled_picture(rgb, options, name)
    return torn_puzzle(canvas, divide(canvas, options, seed), options, source_sha256)


def torn_puzzle(
    canvas: NDArray[np.uint8], division: Division, options: TearOptions, source_sha256: str = ""
) -> tuple[Puzzle, Truth]:
    """The puzzle of a scaled picture and its division. Shapes: canvas (H, W, 3) uint8."""
    pieces, drawn = division.pieces, division.drawn
    seams = contacts(pieces.owner, options.size)
    count = len(pieces.masks)
    order = draw_order(options.shuffle, drawn, count).tolist()
    applied = draw_applied(options.presentation, options.turns, drawn, count)
    rims = _rims(seams, drawn) if options.rim > 0 else frozenset()
    ids = fragment_ids(count)
    pixels, placement = [], {}
    for fragment, piece in zip(ids, order, strict=True):
        stored, pose = _fragment(canvas, pieces, piece, rims, options, drawn, applied[piece])
        pixels.append(stored)
        cell = pieces.layout.cell(piece) if isinstance(pieces.layout, Grid) else None
        placement[fragment] = Placed(pose, cell)
    called = dict(zip(order, ids, strict=True))
    touching = frozenset((min(pair), max(pair)) for pair in ((called[a], called[b]) for a, b in seams))
    flags = {"redraws": division.redraws, "below_area_floor": not division.good}
    truth = Truth(
        pieces.layout, placement, options.to_json(), division.seed, source_sha256, flags, pieces.pitch, touching
    )
    return Puzzle(Fragments(ids, tuple(pixels))), truth


def check_tear(height: int, width: int, options: TearOptions, name: str = "the picture") -> None:
    """ImageError or OptionError when a picture of this size cannot be torn so."""
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
    if options.style == "knobs":
        knob_grid((height, width), options.pieces)


def scaled_picture(rgb: NDArray[np.uint8], options: TearOptions, name: str = "the picture") -> NDArray[np.uint8]:
    """The whole picture at the scale at which a piece has size^2 pixels; nothing is cropped.

    Shapes: (H, W, 3) uint8 -> (H', W', 3).
    """
    height, width = rgb.shape[:2]
    check_tear(height, width, options, name)
    scale = options.size * math.sqrt(options.pieces / (height * width))
    new = max(1, round(height * scale)), max(1, round(width * scale))
    if new == (height, width):
        return rgb
    return np.asarray(Image.fromarray(rgb).resize(new[::-1], Image.Resampling.LANCZOS))


def divide(canvas: NDArray[np.uint8], options: TearOptions, seed: int) -> Division:
    """Divides a scaled picture: drawn again with seed + 1 while a piece is too small; the last draw is kept.

    Shapes: canvas (H, W, 3).
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise bad_value("seed", "the puzzle", "an integer from 0 to 2^63 - 1", seed)
    shape = canvas.shape[0], canvas.shape[1]
    floor = AREA_FLOOR * shape[0] * shape[1] / options.pieces
    for attempt in range(REDRAWS + 1):
        pieces = _divide(shape, options, stream(int(seed) + attempt, Stage.TEAR))
        least = min(mask.area for mask in pieces.masks)
        if least >= floor or (attempt == REDRAWS and least > 0):
            return Division(pieces, int(seed), attempt, least >= floor)
    raise ImageError(f"A picture of {shape[1]} x {shape[0]} pixels cannot be torn into {options.pieces} pieces.")


def _divide(shape: tuple[int, int], options: TearOptions, rng: np.random.Generator) -> Pieces:
    if options.style == "cuts":
        return cut_straight(shape, options.pieces, rng)
    if options.style == "knobs":
        return cut_knobs(shape, options.pieces, rng)
    return tear(shape, options.pieces, options.size, rng)


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
    middle = mask.left + width / 2, mask.top + height / 2
    return hand_out(rgba, applied, middle, options.photo, stream(seed, Stage.DIGITISE, piece))


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
    gone = layer < 1
    left = layer[gone][:, None]
    bare = np.float32(tone) + FIBRES * paper.standard_normal(left.shape, dtype=np.float32)
    mixed = rgb.copy()
    mixed[gone] = np.clip(np.rint(rgb[gone] * left + bare * (1 - left)), 0, 255)
    return alpha, mixed
