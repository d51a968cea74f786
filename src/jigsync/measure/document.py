"""A second opinion on which side is up: a published network that reads documents (weights/document.json: its origin).

Views (M, 3, 224, 224) -> p (M, 4), of how the view is turned; p_0: it is upright. Of an assembled picture in its four
turns log p_0 of each is what it says. It has seen pages, not works of art, and is right about lines of writing, of
which the unary head has seen few. Writing in a mirror tells nothing: only the picture itself is shown.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.measure.views import Views
from jigsync.measure.weights import open_session, read_weights
from jigsync.measure.weights import weights_sha256 as shipped_sha256
from jigsync.values import z4

Floats = NDArray[np.float64]
FORMAT: Final = "jigsync-document/1"
SHIPPED: Final = "document.onnx"
SIZE: Final = 224
"""Side of a view."""
MEAN: Final = np.array([0.406, 0.456, 0.485], dtype=np.float32)
SPREAD: Final = np.array([0.225, 0.224, 0.229], dtype=np.float32)
"""Of the colours of ImageNet, blue first."""
LEAST_P: Final = 1e-4
"""No view is less likely upright than this."""


class DocumentModel:
    """The loaded network."""

    def __init__(self, data: bytes, name: str) -> None:
        """Args: the file's bytes, and how messages call it."""
        self._session = open_session(data, name, {"format": FORMAT})

    def upright(self, views: Views) -> Floats:
        """log p of each view being upright. Shapes: (M, SIZE, SIZE, 3) uint8 -> (M,)."""
        x = (views[..., ::-1].astype(np.float32) / 255 - MEAN) / SPREAD
        feed = {"views": np.ascontiguousarray(x.transpose(0, 3, 1, 2))}
        (p,) = self._session.run({"p": (len(views), z4.ORDER)}, feed)
        return np.log(np.maximum(p[:, 0].astype(np.float64), LEAST_P))


@cache
def load_document() -> DocumentModel:
    """The shipped network, kept in memory; JigsyncError without onnxruntime or where the file is missing."""
    return DocumentModel(*read_weights(SHIPPED, None))


def document_sha256() -> str:
    """sha256 of the shipped file; "" when it is not there."""
    return shipped_sha256(SHIPPED, None)
