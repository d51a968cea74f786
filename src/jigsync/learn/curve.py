"""A run's curve: curve.csv (training), validation.csv, and both as curve.png."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from jigsync.errors import FormatError
from jigsync.io.files import cannot, reason_of, write_bytes

TRAINING = "curve.csv"
VALIDATION = "validation.csv"
PICTURE = "curve.png"


class Curve:
    """Rows of both files in memory; written whole by `flush`, before their checkpoint.

    A kill in between leaves rows of steps that the checkpoint does not know: a run that goes on leaves them out.
    """

    def __init__(self, folder: Path, step: int) -> None:
        """Goes on with the rows that are there up to a step."""
        self._folder = folder
        self._rows = {name: _read(folder / name, step) for name in (TRAINING, VALIDATION)}

    def add(self, step: int, rate: float, speed: float, means: Mapping[str, float]) -> None:
        """A row of means since the last one."""
        row = {"step": str(step), "rate": f"{rate:.3g}", "samples_per_s": f"{speed:.2f}"}
        self._rows[TRAINING].append({**row, **{name: f"{value:.5f}" for name, value in means.items()}})

    def add_validation(self, step: int, values: Mapping[str, float]) -> None:
        """A row of validation; written at once."""
        self._rows[VALIDATION].append({"step": str(step), **{name: f"{value:.5f}" for name, value in values.items()}})
        self.flush()

    def flush(self) -> None:
        """Writes both files and the picture."""
        for name, rows in self._rows.items():
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
        figure, axes = pyplot.subplots(1, 2, figsize=(11, 4))
        for axis, name in zip(axes, (TRAINING, VALIDATION), strict=True):
            rows = self._rows[name]
            shown = [key for key in (rows[0] if rows else {}) if key not in ("step", "rate", "samples_per_s")]
            for key in shown:
                if name == TRAINING or key.endswith(("top1", "right", "vote")):
                    axis.plot([int(r["step"]) for r in rows], [float(r[key]) for r in rows], label=key, linewidth=1)
            if axis.lines:
                axis.legend(fontsize=7)
            axis.set_title(name.removesuffix(".csv"))
            axis.set_xlabel("step")
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        write_bytes(self._folder / PICTURE, buffer.getvalue())


def _read(path: Path, step: int) -> list[dict[str, str]]:
    if not path.exists():
        return []
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
        for row in rows:
            for value in row.values():
                float(value)  # a column too many or too few is no number either
        return [row for row in rows if int(row["step"]) <= step]
    except OSError as error:
        raise cannot("read", path, error) from None
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise FormatError(f"The file '{path}' is not a curve of `jigsync train`: {reason_of(error)}.") from None


def _csv(rows: list[dict[str, str]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8")
