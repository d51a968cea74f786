"""How fragments are handed out, whoever cut them: their ids, their order, and how each of them lies."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.streams import Stage, stream
from jigsync.values import z4
from jigsync.values.angles import FULL
from jigsync.values.pose import Pose

Presentation = Literal["cell", "cropped", "any"]
PRESENTATIONS: Final = ("cell", "cropped", "any")
"""In the paper's container, quarter turns; trimmed to the content, quarter turns; trimmed, any angle."""


def fragment_ids(count: int) -> tuple[str, ...]:
    """f000, f001, ... in presented order."""
    digits = max(3, len(str(count - 1)))
    return tuple(f"f{k:0{digits}d}" for k in range(count))


def draw_order(shuffle: bool, seed: int, count: int) -> NDArray[np.int64]:
    """The slot of the k-th presented fragment: a uniform permutation, or slot order. Shapes: -> (count,)."""
    return stream(seed, Stage.SHUFFLE).permutation(count) if shuffle else np.arange(count)


def draw_turns(turns: bool, seed: int, count: int) -> NDArray[np.int64]:
    """applied_turns of every slot, uniform over the four, or all 0. Shapes: -> (count,)."""
    return stream(seed, Stage.TURNS).integers(0, z4.ORDER, count) if turns else np.zeros(count, dtype=np.int64)


def draw_applied(presentation: Presentation, turns: bool, seed: int, count: int) -> list[Pose]:
    """stored_from_upright of every slot, about its middle: any angle, quarter turns, or upright."""
    if presentation == "any" and turns:
        return [Pose(float(angle), (0.0, 0.0)) for angle in stream(seed, Stage.ANGLE).uniform(0.0, FULL, count)]
    return [Pose.of_turns(int(k), (0.0, 0.0)) for k in draw_turns(turns, seed, count)]
