"""Random streams: one for each (seed, stage, slot), so that no axis or fragment disturbs another.

Turning the erosion up leaves the fracture, the turns and the shuffle as they were; a fragment's damage does not
depend on how many fragments come before it.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stage(IntEnum):
    """Stages that draw; the numbers are part of every puzzle's identity and never change."""

    FRACTURE = 0
    EROSION = 1
    FADE = 2
    DIGITISE = 3
    TURNS = 4
    SHUFFLE = 5
    BLOB = 6
    ANGLE = 7
    TEAR = 8
    RIM = 9
    WEB = 10
    LAY_TURN = 20
    LAY_PAIRS = 21
    LAY_PLACE = 22
    LAY_TABLE = 23
    LAY_LIGHT = 24
    LAY_LIFT = 25
    LAY_CAMERA = 26
    LAY_NOISE = 27


def stream(seed: int, stage: Stage, slot: int = 0) -> np.random.Generator:
    """The generator of one stage (and fragment)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(int(stage), slot))))
