"""Pictures of studies: one style, readable in grey and by the colour-blind, matplotlib only when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jigsync.io.files import write_bytes
from jigsync.values.errors import MissingExtraError

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's: told apart under every common colour blindness; markers and dashes tell them apart in grey."""

MARKERS: Final = ("o", "s", "^", "D", "v", "P")
DASHES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)))

_STYLE: Final[Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "svg.hashsalt": "jigsync",
}


@contextmanager
def figure(path: Path, rows: int, cols: int, size: tuple[float, float], **options: Any) -> Iterator[tuple[Any, Any]]:
    """Yields (figure, axes) and writes the picture, whole or not at all, when the block ends well.

    Args:
        path: an ending of .svg draws lines, any other writes a PNG; the same figure gives the same bytes.
        size: width and height in inches.
        options: for matplotlib's `Figure.subplots`.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("The picture of a study", "matplotlib", "study") from None
    with matplotlib.rc_context(_STYLE):
        drawn = Figure(figsize=size, layout="constrained")
        axes = drawn.subplots(rows, cols, **options)
        yield drawn, axes
        buffer = io.BytesIO()
        if path.suffix == ".svg":
            drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        else:
            drawn.savefig(buffer, format="png", metadata={"Software": None})
    write_bytes(path, buffer.getvalue())


def line_style(k: int) -> dict[str, Any]:
    """Colour, marker and dashes of the k-th line."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "linestyle": DASHES[k % len(DASHES)],
    }
