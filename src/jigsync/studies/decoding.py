"""The paper's pipeline under many switches: a puzzle is cut and measured once, and decoded under every row of a table.

Turned Met-Sweep puzzles of one severity, bad enough that rows can differ; the grid is told, as in the paper's tables.
Any registered measurer will do; what single fragments tell (turns, cells) comes from the measurer itself or, where it
says nothing about them, from the unary head. Scores stand in two gauges:

    model   as answered
    true    the answer turned as a whole so that most turns are right: only the truth can choose it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jigsync import data
from jigsync.corpus.pool import run_units
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, severity
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.progress import Progress, silent
from jigsync.io.images import read_rgb
from jigsync.measure import registry
from jigsync.measure.contour import read_contours
from jigsync.measure.unary import load_unary, measure_fragments
from jigsync.score.cells import MEASURES, score_batch
from jigsync.score.intervals import Interval, bootstrap_mean, paired_difference, wilson
from jigsync.studies.cues import pictures_of, random_window
from jigsync.studies.kept import folder, kept
from jigsync.studies.synthetic import Solved
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.pipeline import SyncResult, synchronize
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import JigsyncError
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements, Measurer, UnaryCells
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

RELATIONS: Final = ("pairwise", "learned")
"""Measurers of the paper's tables, of which those that are registered are run: all relations, direct neighbours."""
SEVERITY: Final = "severe"
PUZZLES: Final = 40
FULL_PUZZLES: Final = 2000
"""Puzzles a grid; the paper's development subset has 2000."""
KEPT: Final = 200
"""Puzzles a size up to which measurements are kept for the other studies: half a megabyte each at 5 x 5."""
SIZES: Final = (3, 5)
NAMES: Final = {3: "GAP-3", 5: "GAP-5"}
"""What the paper's tables stand beside each size; its figures are of GAP, ours are not."""

BASE: Final = DecodeOptions(rho="joint", bearing_weights=False)
"""The paper's anchored baseline: the likeliest of all relations a pair, every edge alike."""
UNIT_THRESHOLD: Final = 0.1
"""Measurements of direct neighbours only: a pair is an edge when its likeliest relation has at least this."""

GaugeChoice = Literal["model", "true"]
SHOWN: Final = ("PA", "AA", "SRA", "AA+rot")


@dataclass(frozen=True)
class Setup:
    """A row of a table.

    Attributes:
        name: unique in its table.
        options: its switches; edges "given" is variant A, the true neighbours.
        every_pair: is the graph complete even where only direct neighbours are measured?
    """

    name: str
    options: DecodeOptions
    every_pair: bool = False

    @property
    def given(self) -> bool:
        """Are the edges given?"""
        return self.options.edges == "given"


@dataclass(frozen=True, eq=False)
class Decoded:
    """One puzzle under one setup.

    Attributes:
        by_gauge: (4, 6) scores after a further global turn g, measures as in MEASURES.
        edges: number of edges that entered the translation fit, both directions counted.
        right: share of them whose relation is the true one; NaN without edges.
        adjacent: share of them between direct neighbours; NaN without edges.
        connected: do all fragments hang together?
    """

    by_gauge: NDArray[np.float64]
    edges: int
    right: float
    adjacent: float
    connected: bool

    @property
    def true_gauge(self) -> int:
        """The further global turn under which most turns are right; "as answered" wins ties."""
        return int(np.argmax(self.by_gauge[:, MEASURES.index("rotation")]))

    def of(self, measure: str, gauge: GaugeChoice) -> float:
        """One measure in one gauge."""
        return float(self.by_gauge[self.true_gauge if gauge == "true" else 0, MEASURES.index(measure)])


@dataclass(frozen=True, eq=False)
class Answer:
    """One puzzle under all setups.

    Attributes:
        told: does anything tell which side of a fragment is up?
        unit_only: was nothing measured beyond direct neighbours?
        agreement: share of unordered pairs whose likeliest relations, read in both directions, are the same.
    """

    decoded: Mapping[str, Decoded]
    told: bool
    unit_only: bool
    agreement: float


@dataclass(frozen=True)
class Task:
    """One puzzle to cut, measure and decode.

    Attributes:
        part: cut it from a random window of the picture.
        store: where measurements are kept for other studies of this process; None keeps none.
    """

    picture: Path
    options: CutOptions
    seed: int
    measurer: str
    setups: tuple[Setup, ...]
    part: bool
    store: Path | None = None

    @property
    def about(self) -> str:
        """All that the measurements depend on within one process."""
        return repr((str(self.picture), self.options, self.seed, self.measurer, self.part))


def available(names: Sequence[str] = RELATIONS) -> list[str]:
    """Those of the measurers that are registered and do the work themselves."""
    known = registry.names()
    return [name for name in names if name in known and not stand_in(name)]


def stand_in(name: str) -> str:
    """Why another measurer stands in for this one (its weights may be missing), "" when none does: it says so."""
    puzzle, _ = cut_picture(read_rgb(data.picture("coffee")), CutOptions(Grid(2, 2), 32), 0)
    return _measurer(name).measure(puzzle).note


@cache
def _measurer(name: str) -> Measurer:
    return registry.get(name)


def measure(puzzle: Puzzle, name: str) -> Measurements:
    """The measurements of a puzzle, with what the unary head tells about single fragments where they are silent."""
    found = _measurer(name).measure(puzzle)
    head = single(puzzle) if found.unary_turns is None else None
    if head is None:
        return found
    return replace(found, unary_turns=head[0], unary_cells=head[1] if found.unary_cells is None else found.unary_cells)


def single(puzzle: Puzzle) -> tuple[NDArray[np.float64], UnaryCells] | None:
    """Turns and cells by the shipped unary head, or None where it cannot be run."""
    try:
        model = load_unary()
    except JigsyncError:
        return None
    return measure_fragments(puzzle, read_contours(puzzle).cell, model)


def solved_of(puzzle: Puzzle, truth: Truth) -> Solved:
    """Where the fragments belong, in the puzzle's order."""
    return Solved.from_placement(truth.placement, puzzle.ids, truth.grid)


def run_task(task: Task) -> Answer:
    """Cuts, measures and decodes one puzzle."""
    rgb = read_rgb(task.picture)
    rgb = random_window(rgb, np.random.default_rng(task.seed)) if task.part else rgb
    puzzle, truth = cut_picture(rgb, task.options, task.seed, name=f"The picture '{task.picture}'")
    found = (
        kept(task.store, task.about, lambda: measure(puzzle, task.measurer))
        if task.store is not None
        else measure(puzzle, task.measurer)
    )
    return decode(found, solved_of(puzzle, truth), task.setups)


def decode(measurements: Measurements, solved: Solved, setups: Sequence[Setup]) -> Answer:
    """Measurements under every setup, scored."""
    decoded = {}
    for setup in setups:
        pick = measurements.unit_only and not setup.given and not setup.every_pair
        options = for_units(setup.options) if pick else setup.options
        edges = solved.adjacency() if setup.given else None
        decoded[setup.name] = judge(synchronize(measurements, solved.grid, options, edges), solved)
    i, j = np.triu_indices(measurements.n, 1)
    forth, back = measurements.pair_log_p(i, j).argmax(axis=1), measurements.pair_log_p(j, i).argmax(axis=1)
    agreement = float(np.mean(v.REVERSE[back] == forth))
    return Answer(decoded, measurements.unary_turns is not None, measurements.unit_only, agreement)


def for_units(options: DecodeOptions) -> DecodeOptions:
    """The same row for measurements of direct neighbours only: not every pair is an edge, and no three close a loop."""
    return replace(options, confidence_threshold=UNIT_THRESHOLD, confidence_weights=True, cycle_filter=False)


def judge(found: SyncResult, solved: Solved) -> Decoded:
    """Scores of a synchronized puzzle, and how many of its edges are right."""
    scores = score_batch(found.cells[None], found.turns[None], solved.grid.shape, solved.cells, solved.turns)
    edges = found.edges
    told = z4.ORDER * edges.bucket + edges.relative
    right = told == solved.relation(edges.i, edges.j)
    apart = np.abs(solved.cells[edges.j] - solved.cells[edges.i]).sum(axis=1)
    return Decoded(
        scores.by_gauge[:, 0],
        len(edges),
        float(np.mean(right)) if len(edges) else float("nan"),
        float(np.mean(apart == 1)) if len(edges) else float("nan"),
        found.connected,
    )


Answers = Mapping[tuple[str, int], Sequence[Answer]]
"""(measurer, n) -> one answer a puzzle."""


@dataclass(frozen=True)
class Sample:
    """Which puzzles a study of this family takes; the same seed gives all of them the same puzzles.

    Attributes:
        puzzles: of every size.
        sizes: n of the n x n grids.
        cell: in pixels.
    """

    puzzles: int = PUZZLES
    sizes: tuple[int, ...] = SIZES
    cell: int = 128
    workers: int = 1
    seed: int = 0
    progress: Progress = silent
    images: Path | None = None

    @classmethod
    def of(cls, full: bool, workers: int, seed: int, progress: Progress, images: Path | None) -> Sample:
        """The default sizes, or the paper's."""
        puzzles = FULL_PUZZLES if full else PUZZLES
        return cls(puzzles, workers=workers, seed=seed, progress=progress, images=images)

    def rng(self) -> np.random.Generator:
        """For the intervals."""
        return np.random.default_rng(self.seed)

    def settings(self, measurers: Sequence[str]) -> dict[str, Any]:
        """What the figures depend on."""
        return {
            "puzzles": self.puzzles,
            "sizes": list(self.sizes),
            "cell": self.cell,
            "seed": self.seed,
            "severity": SEVERITY,
            "pictures": min(len(pictures_of(self.images)), self.puzzles),
            "measurers": list(measurers),
        }

    def run(self, what: str, setups: Sequence[Setup], measurers: Sequence[str]) -> dict[tuple[str, int], list[Answer]]:
        """All puzzles of all sizes under all measurers and setups."""
        pictures = pictures_of(self.images)
        tasks = {
            (measurer, n): [
                Task(
                    pictures[k % len(pictures)],
                    CutOptions(Grid(n, n), self.cell, severity(SEVERITY)),
                    derive_seed(self.seed, "decoding", n, k),
                    measurer,
                    tuple(setups),
                    k >= len(pictures),
                    folder() if self.puzzles <= KEPT else None,
                )
                for k in range(self.puzzles)
            ]
            for measurer in measurers
            for n in self.sizes
        }
        every = [task for group in tasks.values() for task in group]
        found: dict[Task, Answer] = {}
        self.progress(what, 0, len(every))
        for task, answer in run_units(run_task, every, self.workers):
            found[task] = answer
            self.progress(what, len(found), len(every))
        return {key: [found[task] for task in group] for key, group in tasks.items()}


def values(answers: Sequence[Answer], setup: str, measure: str, gauge: GaugeChoice) -> list[float]:
    """One measure of every puzzle."""
    return [answer.decoded[setup].of(measure, gauge) for answer in answers]


def interval(
    answers: Sequence[Answer], setup: str, measure: str, gauge: GaugeChoice, rng: np.random.Generator
) -> Interval:
    """Wilson's interval of PA, the bootstrap's of the others."""
    found = values(answers, setup, measure, gauge)
    if measure.startswith("PA"):
        return wilson(sum(value == 1.0 for value in found), len(found))
    return bootstrap_mean(found, rng)


def effect(
    answers: Sequence[Answer],
    first: str,
    second: str,
    gauge: GaugeChoice,
    rng: np.random.Generator,
    measure: str = "AA",
) -> Interval:
    """First minus second on the same puzzles."""
    return paired_difference(values(answers, first, measure, gauge), values(answers, second, measure, gauge), rng)


def columns(answers: Sequence[Answer], setup: str, rng: np.random.Generator) -> dict[str, Any]:
    """A setup's measures in both gauges with their intervals: PA, PA_low, PA_high, ..., AA_true, ..."""
    out: dict[str, Any] = {"puzzles": len(answers)}
    gauges: tuple[tuple[GaugeChoice, str], ...] = (("model", ""), ("true", "_true"))
    for gauge, ending in gauges:
        for name in SHOWN:
            found = interval(answers, setup, name, gauge, rng)
            out |= {f"{name}{ending}": found.estimate, f"{name}{ending}_low": found.low}
            out |= {f"{name}{ending}_high": found.high}
    right = [answer.decoded[setup].right for answer in answers]
    out["edges_right"] = float(np.nanmean(right)) if not np.isnan(right).all() else None
    return out


def told(answers: Sequence[Answer]) -> bool:
    """Does anything tell which side is up?"""
    return all(answer.told for answer in answers)
