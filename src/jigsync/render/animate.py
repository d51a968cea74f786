"""A puzzle coming together, as a short moving picture.

Three movements, as the method has them: every fragment finds its angle where it lies, then its place among the others,
then the gaps close. It turns the short way round:

    R(s angle), s from 0 to 1, the angle at most half a turn
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync.render.layout import GAP, layout_of
from jigsync.render.style import over_paper
from jigsync.values import angles, z4
from jigsync.values.errors import OptionError
from jigsync.values.placement import Assembly
from jigsync.values.puzzle import Pixels, Puzzle

WIDTH: Final = 720
"""Of the moving picture, px."""
FORMATS: Final = (".webp", ".gif")
FRAME_MS: Final = 50
MOVES: Final = {"turn": 16, "glide": 26, "close": 10}
"""Frames of each movement."""
HOLDS: Final = {"start": 1200, "turn": 350, "glide": 350, "end": 2800}
"""Milliseconds that the picture stands still."""
STAGGER: Final = 0.45
"""Share of a movement by which the last fragment starts after the first."""
SPREAD: Final = 1.45
"""Distance between fragments at the start, in cells; more where they are larger."""
MARGIN: Final = 0.12
"""Space around everything, in cells."""
QUALITY: Final = 72


class Frame(NamedTuple):
    """A picture and how long it stands."""

    picture: Image.Image
    milliseconds: int


@dataclass(frozen=True, eq=False)
class _Actor:
    """A fragment on its way.

    Attributes:
        pixels: as received, in the size that it has at the end, premultiplied.
        turns: signed quarter turns, the short way round: in [-2, 2].
        start, apart, home: (x, y) of its centre from the middle of the stage, in fragment pixels: as presented, with
            gaps, in its place.
        delay: 0..1, when it starts to move.
    """

    pixels: Pixels
    turns: float
    start: NDArray[np.float64]
    apart: NDArray[np.float64]
    home: NDArray[np.float64]
    delay: float


def frames(puzzle: Puzzle, solution: Assembly, width: int = WIDTH) -> Iterator[Frame]:
    """The moving picture, from the fragments as presented to the assembled picture.

    Args:
        puzzle: the fragments.
        solution: where they go; an unplaced one stays where it is.
        width: of the frames, px.
    """
    stage, actors = _stage(puzzle, solution, width)
    yield Frame(_draw(stage, actors, "turn", 0.0), HOLDS["start"])
    for move, count in MOVES.items():
        for k in range(1, count + 1):
            last = k == count
            hold = HOLDS["end"] if last and move == "close" else HOLDS.get(move, FRAME_MS) if last else FRAME_MS
            yield Frame(_draw(stage, actors, move, k / count), hold)


def animation_bytes(shown: Sequence[Frame], suffix: str) -> bytes:
    """An endless WebP or GIF file."""
    if suffix not in FORMATS:
        raise OptionError(f"A moving picture must be a .webp or .gif file. Got '{suffix}' instead.")
    buffer = io.BytesIO()
    pictures = [frame.picture for frame in shown]
    common = {"save_all": True, "append_images": pictures[1:], "duration": [f.milliseconds for f in shown], "loop": 0}
    if suffix == ".webp":
        pictures[0].save(buffer, "WEBP", quality=QUALITY, method=4, minimize_size=True, **common)
    else:
        pictures[0].save(buffer, "GIF", optimize=True, **common)
    return buffer.getvalue()


def suffix_of(path: Path) -> str:
    """The file's ending in lower case; OptionError unless it is one of FORMATS."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"The moving picture '{path}' must end in {' or '.join(FORMATS)}.")
    return suffix


@dataclass(frozen=True)
class _Stage:
    """Size of the frames in pixels; pixels along one fragment pixel at the start and at the end, as many as fit."""

    height: int
    width: int
    wide: float
    close: float


def _stage(puzzle: Puzzle, solution: Assembly, width: int) -> tuple[_Stage, list[_Actor]]:
    """The stage, and every fragment with its way.

    The fragments as presented fill the stage in rows, as on a contact sheet; at the end the assembled picture does.
    """
    layout = layout_of(puzzle, solution)
    pitch = np.array(layout.pitch[::-1], dtype=np.float64)  # (x, y)
    full = np.array(layout.full_size[::-1], dtype=np.float64)
    extent = max(max(_used(pixels)) for pixels in puzzle.fragments.pixels)
    step = max(SPREAD * float(pitch.max()), 1.06 * extent)
    cols = _columns(len(puzzle), float(full[0] / full[1]))
    sheet = np.array([cols, math.ceil(len(puzzle) / cols)])
    room = step * sheet + 2 * MARGIN * pitch
    wide = width / float(room[0])
    # Apart, centres are farther from the middle by GAP; in a grid the outer ones are half a cell from the border.
    final = full + GAP * (full - pitch if layout.whole else full) + 2 * MARGIN * pitch
    if len(layout.poses) < len(puzzle):
        final = np.maximum(final, room)  # an unplaced fragment stays where it is
    close = wide * float((room / final).min())
    actors = []
    for k, (name, pixels) in enumerate(zip(puzzle.ids, puzzle.fragments.pixels, strict=True)):
        start = step * (np.array([k % cols, k // cols]) - (sheet - 1) / 2)
        pose = layout.poses.get(name)
        apart, home, turns = start, start, 0.0
        if pose is not None:
            home = np.array(pose.xy) - full / 2
            apart = home * (1 + GAP)
            turns = pose.angle / angles.QUARTER if pose.turns is None else _short(pose.turns)
        # Those that belong into the middle come first, and the picture grows outwards.
        delay = float(np.hypot(*home) / np.hypot(*(room / 2)))
        actors.append(_Actor(_scaled(pixels, close), turns, start, apart, home, min(1.0, delay)))
    # Even sizes, which every viewer and encoder likes.
    return _Stage(2 * round(room[1] * wide / 2), 2 * round(width / 2), wide, close), actors


def _columns(count: int, aspect: float) -> int:
    """Columns of the fragments as presented: about as many as make the aspect of the picture, no row almost empty."""
    cols = max(1, min(count, round(math.sqrt(count * aspect))))
    return math.ceil(count / math.ceil(count / cols))


def _short(turns: int) -> int:
    """-1, 0, 1 or 2: three quarter turns one way are one the other."""
    return (turns + 1) % z4.ORDER - 1


def _used(pixels: Pixels) -> tuple[int, int]:
    """Height and width of what is not transparent."""
    rows, cols = (np.flatnonzero(pixels[..., 3].any(axis=axis)) for axis in (1, 0))
    return (int(np.ptp(rows)) + 1, int(np.ptp(cols)) + 1) if rows.size else (1, 1)


def _scaled(pixels: Pixels, scale: float) -> Pixels:
    size = [max(1, round(side * scale)) for side in pixels.shape[:2]]
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, (size[1], size[0]), interpolation=way), dtype=np.uint8)


def _draw(stage: _Stage, actors: Sequence[_Actor], move: str, time: float) -> Image.Image:
    """One frame; `time` in 0..1 within the movement."""
    canvas = np.zeros((stage.height, stage.width, 4), dtype=np.uint8)
    nearer = {"turn": 0.0, "glide": _ease(time), "close": 1.0}[move]
    scale = stage.wide * (stage.close / stage.wide) ** nearer
    for actor in actors:
        done = _ease(float(np.clip((time - STAGGER * actor.delay) / (1 - STAGGER), 0.0, 1.0)))
        if move == "turn":
            at, share = actor.start, done
        elif move == "glide":
            at, share = actor.start + done * (actor.apart - actor.start), 1.0
        else:
            at, share = actor.apart + done * (actor.home - actor.apart), 1.0
        centre = np.array([stage.width, stage.height]) / 2 + scale * at
        _put(canvas, actor.pixels, share * actor.turns, scale / stage.close, centre)
    return Image.fromarray(over_paper(canvas))


def _ease(share: float) -> float:
    """0 -> 0, 1 -> 1, slow at both ends."""
    return share * share * (3 - 2 * share)


def _put(canvas: NDArray[np.uint8], pixels: Pixels, turns: float, scale: float, centre: NDArray[np.float64]) -> None:
    """Draws premultiplied pixels, turned about their middle, *over* the canvas.

    x_canvas = scale R(turns) (x_pixels - middle) + centre
    """
    r = scale * angles.matrix(turns * angles.QUARTER)
    height, width = pixels.shape[:2]
    reach = math.ceil(scale * math.hypot(height, width) / 2) + 1
    left, top = (math.floor(value) - reach for value in centre)
    # Only the box that the fragment can touch is drawn, as far as it is on the canvas.
    low = max(0, left), max(0, top)
    high = min(canvas.shape[1], left + 2 * reach + 2), min(canvas.shape[0], top + 2 * reach + 2)
    if low[0] >= high[0] or low[1] >= high[1]:
        return
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    shift = centre - 0.5 - np.array(low) - r @ middle
    box = (high[0] - low[0], high[1] - low[1])
    drawn = cv2.warpAffine(pixels, np.column_stack([r, shift]), box, flags=cv2.INTER_LINEAR)
    region = canvas[low[1] : high[1], low[0] : high[0]]
    rest = 255 - drawn[..., 3:].astype(np.uint16)
    region[:] = cv2.add(drawn, ((region * rest + 127) // 255).astype(np.uint8))
