"""What a study gives back: rows for a CSV, values beside the paper's, a verdict, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jigsync.evaluate.progress import Progress


@dataclass(frozen=True)
class Compared:
    """One value of ours beside the paper's."""

    what: str
    ours: float | str
    paper: float | str
    verdict: str


@dataclass(frozen=True)
class StudyResult:
    """A finished study.

    Attributes:
        name: what `jigsync reproduce` calls it.
        title: one line.
        rows: the CSV, one dict a line; the columns are the keys in the order of their first appearance.
        compared: ours beside the paper's.
        verdict: a few sentences: what holds, what differs, and why.
        settings: what the numbers depend on (seed, counts), for the JSON.
        plot: writes the picture to a path; raises MissingExtraError without matplotlib.
    """

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]
    compared: Sequence[Compared]
    verdict: str
    settings: Mapping[str, Any]
    plot: Callable[[Path], None] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without the rows (they are in the CSV)."""
        return {
            "name": self.name,
            "title": self.title,
            "settings": dict(self.settings),
            "compared": [vars(value) for value in self.compared],
            "verdict": self.verdict,
            "rows": len(self.rows),
        }


class Study(Protocol):
    """The one function a study module has."""

    def __call__(self, full: bool, workers: int, seed: int, progress: Progress) -> StudyResult:
        """Runs the study: `full` takes more samples, `workers` processes share the work."""
