"""A run's curve: curve.csv (training), validation.csv, and both as curve.png.

They are for people: a run that goes on has its rows from its checkpoint, and writes the files anew.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jigsync.io.files import write_bytes
from jigsync.learn.checkpoint import Rows

TRAINING = "curve.csv"
VALIDATION = "validation.csv"
PICTURE = "curve.png"


class Curve:
    """Rows of both files in memory; written whole by `flush`."""

    def __init__(self, folder: Path, rows: Mapping[str, Rows]) -> None:
        """Goes on with the rows of a checkpoint."""
        self._folder = folder
        self.rows = {name: [dict(row) for row in rows.get(name, ())] for name in (TRAINING, VALIDATION)}

    def add(self, step: int, rate: float, speed: float, means: Mapping[str, float]) -> None:
        """A row of means since the last one."""
        row = {"step": str(step), "rate": f"{rate:.3g}", "samples_per_s": f"{speed:.2f}"}
        self.rows[TRAINING].append({**row, **{name: f"{value:.5f}" for name, value in means.items()}})

    def add_validation(self, step: int, values: Mapping[str, float]) -> None:
        """A row of validation; written at once."""
        self.rows[VALIDATION].append({"step": str(step), **{name: f"{value:.5f}" for name, value in values.items()}})
        self.flush()

    def flush(self) -> None:
        """Writes both files and the picture."""
        for name, rows in self.rows.items():
            if rows:
                write_bytes(self._folder / name, _csv(rows))
        self._draw()

    def _draw(self) -> None:
        try:
            import matplotlib

            matplotlib.use("Agg")
            from matplotlib import pyplot
        except ImportError:  # the extra 'study' draws; the CSV has it all
            return
        figure, axes = pyplot.subplots(1, 2, figsize=(13, 4), layout="constrained")
        for axis, name in zip(axes, (TRAINING, VALIDATION), strict=True):
            lines = drawn(name, self.rows[name])
            for i, line in enumerate(lines):  # ten colours, then the same dashed
                axis.plot(line.steps, line.values, "--" if i >= 10 else "-", color=f"C{i % 10}", label=line.label, lw=1)
            if lines:
                axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))  # beside, not over, the lines
            title = name.removesuffix(".csv")
            axis.set_title(f"{title}: change since its first row" if any(x.relative for x in lines) else title)
            axis.set_xlabel("step")
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        write_bytes(self._folder / PICTURE, buffer.getvalue())


@dataclass(frozen=True)
class Line:
    """A line of the picture; a relative one shows values less the first, which its label names."""

    label: str
    steps: list[int]
    values: list[float]
    relative: bool


def drawn(name: str, rows: Rows) -> list[Line]:
    """The lines that a picture of some rows shows: of training every mean, of validation the shares.

    Where validation has no shares, everything, as the change since the first row: -log p of 1.3 and of 3.6 beside each
    other are flat lines otherwise, however much each gains.
    """
    known = [key for key in (rows[0] if rows else {}) if key not in ("step", "rate", "samples_per_s")]
    shares = [key for key in known if key.endswith(("top1", "right", "vote"))]
    relative = name == VALIDATION and not shares
    steps = [int(row["step"]) for row in rows]
    lines = []
    for key in shares if name == VALIDATION and shares else known:
        values = [float(row[key]) for row in rows]
        label = f"{key} ({values[0]:.3f})" if relative else key
        lines.append(Line(label, steps, [v - values[0] for v in values] if relative else values, relative))
    return lines


def _csv(rows: list[dict[str, str]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8")
