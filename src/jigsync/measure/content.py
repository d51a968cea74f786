"""Content measurers: what frozen features of a network say about two fragments belonging together.

Every fragment is shown to the network in its four turned views, so that nothing depends on how it was stored:

    whole(i)     = mean of the four views' vectors
    cost         = 1 - cos(whole(i), whole(j))                        the same for all 16 ways to touch: no direction

    east_s(y)    = features of row y in the band inside side s, the view turned so that s faces east
    west_s(y)    = the same in the view in which s faces west
    cost(s, t)   = 1 - mean_y (cos(east_s(y), west_t(y)) + cos(west_s(y), east_t(y))) / 2      y over the cell's rows

Two touching sides are compared in one frame, one facing east and one facing west, so no rows are reversed. The band
follows the contour, as deep as the seam's (20 % of the cell); `straight` reads it at the cell's straight side,
background and all. A row without fragment agrees with nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure import backbone as backbones
from jigsync.measure.backbone import Backbone, Floats
from jigsync.measure.boundary import REGIMES, make_costs, regime_of
from jigsync.measure.calibration import Calibration, shipped
from jigsync.measure.contour import BAND, OPAQUE, Contours, read_contours
from jigsync.measure.costs import Cost, Matrix
from jigsync.measure.probabilities import calibrated
from jigsync.values import z4
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle

NOISE: Final = 1e-3
"""Cosines that differ by less are the same."""
MEASURERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "content": dict.fromkeys(REGIMES, ("content",)),
    "content-band": dict.fromkeys(REGIMES, ("content-band",)),
    "seam+content": dict.fromkeys(REGIMES, ("seam", "content-band")),
}
"""Measurer -> regime -> its costs."""


@dataclass(frozen=True)
class Content:
    """A measurer that reads content.

    Attributes:
        name: one of MEASURERS.
        straight: read the bands at the cell's straight side instead of the contour (for the studies).
        weights: a local file of DINOv2 ViT-S/14; None takes Lite0.
        calibration: fitted weights; None takes the shipped ones, which were fitted on Lite0.
    """

    name: str = "content-band"
    straight: bool = False
    weights: Path | None = None
    calibration: Calibration | None = None

    def measure(self, puzzle: Puzzle) -> Measurements:
        """Measures all pairs of sides, with the same machinery as the boundary measurers."""
        contours = read_contours(puzzle, self.straight)
        regime = regime_of(contours)
        names = MEASURERS[self.name][regime]
        calibration = self.calibration or shipped(self.name, regime, names)
        shown = show(puzzle, backbones.get(self.weights))
        costs = content_costs(names, contours, shown, self.straight)
        return calibrated(puzzle, costs, calibration, contours.own_features)


@dataclass(frozen=True, eq=False)
class Shown:
    """A puzzle's views and what the network says of each.

    Shapes: alpha (4N, S, S) 0..1; whole (4N, C); mapped (4N, T, T, D); `window` is the views' side in fragment pixels.
    """

    window: int
    alpha: Floats
    whole: Floats
    mapped: Floats


@dataclass(frozen=True, eq=False)
class Features:
    """What the costs compare. All vectors have length 1, or 0 where there is no fragment.

    Shapes: whole (N, C); east, west (4N, R, D), sides in the order 4 i + bearing, R rows of the map in the cell.
    """

    whole: Floats
    east: Floats
    west: Floats


def content_costs(names: Sequence[str], contours: Contours, shown: Shown, straight: bool = False) -> list[Cost]:
    """The named costs, those of the boundary among them."""
    features = read_features(shown, contours.cell, straight)
    own: dict[str, Cost] = {"content": Whole(features), "content-band": Band(features)}
    return [own[name] if name in own else make_costs(contours, (name,))[0] for name in names]


def show(puzzle: Puzzle, backbone: Backbone) -> Shown:
    """Shows all fragments to the network, in four turns each."""
    window = _window(puzzle)
    turned = [_views(pixels, window, backbone.size) for pixels in puzzle.fragments.pixels]
    views = np.concatenate(turned).astype(np.float32) / np.float32(255)
    alpha = np.ascontiguousarray(views[..., 3])
    return Shown(window, alpha, *backbone.describe(views[..., :3], alpha))


def read_features(shown: Shown, cell: float, straight: bool = False) -> Features:
    """Reads the vectors of fragments and sides off the views."""
    in_view = cell * shown.alpha.shape[1] / shown.window
    share = cell / shown.window
    east = _side_rows(shown.mapped, _band(shown.alpha, in_view, straight), share)
    west = _side_rows(shown.mapped, _band(shown.alpha[:, :, ::-1], in_view, straight)[:, :, ::-1], share)
    # The side in the west of view b is the one opposite to b.
    views = np.arange(len(east)).reshape(-1, z4.ORDER)
    opposite = [z4.turn_bearing(bearing, 2) for bearing in range(z4.ORDER)]
    west = west[views[:, opposite].ravel()]
    return Features(_unit(shown.whole.reshape(len(views), z4.ORDER, -1).mean(axis=1)), east, west)


def _window(puzzle: Puzzle) -> int:
    """Side in pixels of the smallest centred square that holds every fragment, even."""
    reach = 1.0
    for pixels in puzzle.fragments.pixels:
        for axis in (0, 1):
            used = np.flatnonzero((pixels[..., 3] >= OPAQUE).any(axis=1 - axis))
            if len(used):
                middle = pixels.shape[axis] / 2
                reach = max(reach, middle - used[0], used[-1] + 1 - middle)
    return 2 * int(np.ceil(reach))


def _views(pixels: NDArray[np.uint8], window: int, size: int) -> NDArray[np.uint8]:
    """The centred window, resized, in four turns: view b shows bearing b in the east.

    Shapes: (H, W, 4) -> (4, S, S, 4).
    """
    out = np.zeros((window, window, 4), dtype=np.uint8)
    (top, left), (y, x) = zip(*(_centred(extent, window) for extent in pixels.shape[:2]), strict=True)
    height, width = (min(extent, window) for extent in pixels.shape[:2])
    out[y : y + height, x : x + width] = pixels[top : top + height, left : left + width]
    way = cv2.INTER_AREA if window > size else cv2.INTER_LINEAR
    small = cv2.resize(out, (size, size), interpolation=way) if window != size else out
    return np.stack([np.rot90(small, z4.inverse(bearing)) for bearing in range(z4.ORDER)])


def _centred(extent: int, window: int) -> tuple[int, int]:
    """(first pixel that is taken, where it goes): cuts or pads around the middle."""
    return max(0, (extent - window) // 2), max(0, (window - extent) // 2)


def _band(alpha: Floats, cell: float, straight: bool) -> NDArray[np.bool_]:
    """The pixels of the eastern band of every view.

    Shapes: (V, S, S) -> (V, S, S).
    """
    size = alpha.shape[2]
    column = np.arange(size)
    opaque = alpha >= OPAQUE / 255
    if straight:
        border = (size + cell) / 2
        band = (column + 0.5 < border) & (column + 0.5 > border - BAND * cell)
        return np.broadcast_to(band, alpha.shape)
    last = size - 1 - np.argmax(opaque[:, :, ::-1], axis=2)[..., None]
    return np.asarray(opaque & (column <= last) & (column > last - BAND * cell))


def _side_rows(mapped: Floats, band: NDArray[np.bool_], cell: float) -> Floats:
    """Unit feature vectors of the band, row by row of the map, for the rows inside the cell.

    Shapes: mapped (V, T, T, D), band (V, S, S), cell as a share of the window -> (V, R, D).
    """
    views, rows = mapped.shape[:2]
    weight = np.stack([cv2.resize(one.astype(np.float32), (rows, rows), interpolation=cv2.INTER_AREA) for one in band])
    inside = np.abs((np.arange(rows) + 0.5) / rows - 0.5) < cell / 2
    return _unit(np.einsum("vyx,vyxd->vyd", weight[:, inside], mapped[:, inside], optimize=views > 1))


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, np.float32(1e-12)), dtype=np.float32)


class Whole:
    """1 - cos of the two fragments' vectors."""

    noise = NOISE

    noise = 1e-6

    def __init__(self, features: Features) -> None:
        self._whole = np.repeat(features.whole, z4.ORDER, axis=0)

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in 0 .. 2."""
        return np.asarray(np.maximum(1 - self._whole[block] @ self._whole.T, 0))


class Band:
    """1 - mean cos of the rows of the two bands, in both views."""

    noise = NOISE

    noise = 1e-6

    def __init__(self, features: Features) -> None:
        sides, rows = features.east.shape[:2]
        self._east = features.east.reshape(sides, -1) / max(rows, 1)
        self._west = features.west.reshape(sides, -1)

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in 0 .. 2."""
        agreement = self._east[block] @ self._west.T + (self._east @ self._west[block].T).T
        return np.asarray(np.maximum(1 - agreement / 2, 0))
