"""Where the cell of each fragment lies in the fragment's own picture: what turns slots of a grid into poses.

    x_cell = R(-angle) (x_frag - centre)        x_cell from the cell's centre, the cell upright up to quarter turns

so that a fragment with k turns at the cell centre p has the pose angle = k quarter turns - `angle` and
xy = p - R(that) centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jigsync.values import angles
from jigsync.values.outlines import Outlines

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellFrames:
    """The cells of N fragments.

    Attributes:
        centre: (N, 2) px, in the fragment's frame.
        angle: (N,) radians; all 0 where fragments lie at quarter turns exactly.
        pitch: px, of all of them.
        off: (N, 2) how far off centre (pitches) and angle (radians) are expected to be.
        pitch_off: the same of the pitch, as a share of it.
        outlines: of the fragments, which they were told from.
    """

    centre: Floats
    angle: Floats
    pitch: float
    off: Floats
    pitch_off: float
    outlines: Outlines

    @property
    def quarter(self) -> bool:
        """Do the fragments lie at quarter turns exactly?"""
        return not self.angle.any()

    def poses(self, row: NDArray[np.int64], col: NDArray[np.int64], turns: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Angles and places of fragments in cells. Shapes: (N,) each -> (N,), (N, 2)."""
        angle = angles.wrap(turns * angles.QUARTER - self.angle)
        middle = (np.stack([col, row], axis=1) + 0.5) * self.pitch
        return angle, middle - angles.act(angle, self.centre)

    def select(self, members: NDArray[np.int64]) -> CellFrames:
        """Those of some fragments."""
        outlines = self.outlines.select(members)
        return CellFrames(
            self.centre[members], self.angle[members], self.pitch, self.off[members], self.pitch_off, outlines
        )
