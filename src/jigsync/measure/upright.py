"""How upright an assembled picture looks after each further quarter turn, to two networks.

    head      (z_k + z'_-k) / 2    z of the unary head, of the picture and of its mirror image
    document  log p_0 of view_k    of the document network

A picture in the mirror is upright when the picture is, and its view_k is the mirrored view_-k of the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from jigsync.measure.document import SIZE, DocumentModel, load_document
from jigsync.measure.unary import UnaryModel, load_unary
from jigsync.measure.views import WHOLE, four_turns, picture_view
from jigsync.values import angles, z4
from jigsync.values.puzzle import Pixels

Floats = NDArray[np.float64]
OTHER_WAY = [z4.inverse(turns) for turns in range(z4.ORDER)]


@dataclass(frozen=True, eq=False)
class Looker:
    """Who looks: the two networks."""

    head: UnaryModel
    document: DocumentModel

    @classmethod
    def shipped(cls) -> Self:
        """The shipped networks; JigsyncError when they cannot be run."""
        return cls(load_unary(), load_document())

    def look(self, picture: Pixels) -> Floats:
        """Log-odds of the four turns up to constants. Shapes: (H, W, 4), colour times alpha -> (2, 4)."""
        view = picture_view(picture, WHOLE)
        mirrored = np.ascontiguousarray(view[:, ::-1])
        z, _ = self.head.score(np.stack([four_turns(view), four_turns(mirrored)]))
        both = z.reshape(2, z4.ORDER).astype(np.float64)
        read = self.document.upright(four_turns(picture_view(picture, SIZE)))
        return np.stack([(both[0] + both[1, OTHER_WAY]) / 2, read])

    def look_at(self, picture: Pixels, further: NDArray[np.float64]) -> Floats:
        """The same after further turns by any angles. Shapes: (H, W, 4), (K,) -> (K, 2, 4)."""
        return np.stack([self.look(turned_picture(picture, float(angle))) for angle in further])


def turned_picture(picture: Pixels, angle: float) -> Pixels:
    """A premultiplied picture after a further turn, whole. Shapes: (H, W, 4) -> (H', W', 4)."""
    if angle == 0:
        return picture
    height, width = picture.shape[:2]
    canvas_from_old = angles.matrix(angle)
    size = np.abs(canvas_from_old) @ np.array([width, height])
    out = math.ceil(size[0] - 1e-6), math.ceil(size[1] - 1e-6)
    shift = (np.array(out) - 1) / 2 - canvas_from_old @ ((np.array([width, height]) - 1) / 2)
    affine = np.column_stack([canvas_from_old, shift])
    return np.asarray(cv2.warpAffine(picture, affine, out, flags=cv2.INTER_AREA), dtype=np.uint8)
