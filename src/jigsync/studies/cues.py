"""What single cues can do: one energy a cue, exact search over upright placements, so that no search error hides it.

An energy is the sum over touching sides of a cost, in one of two forms:

    summed       the costs as they are, each in units of its mean over the puzzle, as the paper's baselines
    calibrated   minus the log-ratio "touch" against "are no neighbours" that the solvers use (values/sides.py)

and read at the cell's straight side, as the paper did, or along the fragment's own contour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync import data
from jigsync.corpus.pool import run_units
from jigsync.corpus.procedural import procedural_picture
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.engine.native import branch_and_bound
from jigsync.evaluate.progress import Progress
from jigsync.io.images import list_images, read_rgb
from jigsync.measure import backbone as backbones
from jigsync.measure import boundary, content
from jigsync.measure.calibration import shipped
from jigsync.measure.content import Shown, content_costs, show
from jigsync.measure.contour import Contours, facing, read_contours
from jigsync.measure.costs import Cost, Matrix, to_lab
from jigsync.measure.probabilities import calibrated
from jigsync.score.cells import MEASURES, score_batch
from jigsync.score.intervals import Interval, bootstrap_mean, wilson
from jigsync.score.touching import touching
from jigsync.solvers.energy import placement_energy
from jigsync.solvers.exact import allowed_turns
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import MissingExtraError
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.sides import SideScores
from jigsync.values.truth import Truth

CHANCE_AA: Final = 1 / 9
"""Mean AA of a random placement of 9 fragments."""
SMALLEST_WINDOW: Final = 0.55
LITERAL: Final = "seam-literal"
_SUMMED: Final[Mapping[str, tuple[str, ...]]] = {
    "silhouette": ("fit",),
    "seam": ("seam",),
    LITERAL: (LITERAL,),
    "rim": ("rim",),
    "mgc": ("mgc",),
    "content": ("content",),
    "content-band": ("content-band",),
    "seam+content": ("seam", "content-band"),
}
"""Cue -> its costs, where it can be summed."""


@dataclass(frozen=True)
class Energy:
    """A cue, where it is read, and in which form."""

    cue: str
    straight: bool = False
    summed: bool = False

    @property
    def needs_network(self) -> bool:
        """Is there content among its costs?"""
        return self.cue in content.MEASURERS

    @property
    def reading(self) -> str:
        """ "straight, summed" and so on."""
        return f"{'straight' if self.straight else 'contour'}, {'summed' if self.summed else 'calibrated'}"


@dataclass(frozen=True)
class Judged:
    """What exact search made of one puzzle under one energy.

    Attributes:
        pa, aa, sra: of the placement of least energy, as it stands (the puzzle is upright).
        true_is_best: no placement has a lower energy than the true one.
        gap: energy of the true placement minus the least energy.
        rim: how costly the sides at the picture's rim are on average, found placement over true one; of summed
            energies, whose costs are all positive.
        wins: share of the false partners of a side that cost more than its true one (ties half); 0.5 is chance.
    """

    pa: float
    aa: float
    sra: float
    true_is_best: bool
    gap: float
    rim: float
    wins: float


class LiteralSeam:
    """The paper's band cost as its formula stands: || band_right(i) - band_left(j) ||, pixel by pixel of two bands.

    Unmirrored: a pixel d columns inside s meets the one D - 1 - d columns inside t, so all compared pixels are one
    band's depth D apart, and none of them across the seam.
    """

    noise = 0.1

    def __init__(self, contours: Contours) -> None:
        lab = to_lab(contours.colour)
        lab = lab - lab.mean(axis=(0, 1, 2))
        self._east = lab.reshape(len(lab), -1)
        self._west = np.ascontiguousarray(facing(lab)[:, :, ::-1]).reshape(len(lab), -1)
        self._square = np.square(self._east).mean(axis=1)

    def rows(self, block: slice) -> Matrix:
        """Shapes: B sides -> (B, 4N), in Lab units."""
        cross = self._east[block] @ self._west.T / self._east.shape[1]
        return np.asarray(np.sqrt(np.maximum(self._square[block, None] + self._square - 2 * cross, 0)))


def pictures_of(images: Path | None) -> list[Path]:
    """The pictures of a folder, or the bundled ones."""
    return list_images(images) if images is not None else [data.picture(name) for name in data.names()]


def without_network(weights: Path | None = None) -> str:
    """Why content cannot be measured, or "" when it can."""
    try:
        backbones.get(weights)
    except MissingExtraError as missing:
        return str(missing)
    return ""


def side_scores(
    puzzle: Puzzle, energies: Sequence[Energy], weights: Path | None = None
) -> Iterator[tuple[Energy, NDArray[np.float32]]]:
    """The score (minus the cost) of every pair of sides under each energy.

    Shapes: -> (4N, 4N), finite.
    """
    with one_thread() if any(e.needs_network for e in energies) else nullcontext():
        shown = show(puzzle, backbones.get(weights)) if any(e.needs_network for e in energies) else None
        contours = {straight: read_contours(puzzle, straight) for straight in {e.straight for e in energies}}
        for energy in energies:
            yield energy, _scores(puzzle, energy, contours[energy.straight], shown)


def _scores(puzzle: Puzzle, energy: Energy, contours: Contours, shown: Shown | None) -> NDArray[np.float32]:
    if not energy.summed:
        regime = boundary.regime_of(contours)
        names = (content.MEASURERS if energy.needs_network else boundary.MEASURERS)[energy.cue][regime]
        costs = _costs(names, contours, shown, energy.straight)
        return calibrated(puzzle, costs, shipped(energy.cue, regime, names), contours.own_features).sides().to_dense()
    every = slice(0, z4.ORDER * len(puzzle))
    own = np.repeat(np.arange(len(puzzle)), z4.ORDER)
    apart = own[:, None] != own
    total = np.zeros((len(own), len(own)), dtype=np.float32)
    for cost in _costs(_SUMMED[energy.cue], contours, shown, energy.straight):
        value = cost.rows(every)
        total -= value / max(float(value[apart].mean()), 1e-6)
    total[~apart] = 0
    return total


def _costs(names: Sequence[str], contours: Contours, shown: Shown | None, straight: bool) -> list[Cost]:
    if LITERAL in names:
        return [LiteralSeam(contours)]
    return boundary.make_costs(contours, names) if shown is None else content_costs(names, contours, shown, straight)


def judge(
    puzzle: Puzzle, truth: Truth, energies: Sequence[Energy], weights: Path | None = None
) -> dict[Energy, Judged]:
    """Exact search under each energy, scored. The puzzle must be upright."""
    home = Arrangement.from_placement(truth.placement, puzzle.ids, truth.grid)
    partner = touching(truth.placement, puzzle.ids)
    found = {}
    for energy, dense in side_scores(puzzle, energies, weights):
        scores = SideScores(len(puzzle), dense=dense)
        best = least_energy(dense, truth.grid)
        true_energy, least = placement_energy(scores, home), placement_energy(scores, best)
        values = score_batch(best.cells[None], best.turns[None], truth.grid.shape, home.cells, home.turns).table()[0]
        pa, aa, sra = (float(values[MEASURES.index(name)]) for name in ("PA", "AA", "SRA"))
        gap = max(0.0, true_energy - least)
        rim = _rim_cost(dense, best) / min(_rim_cost(dense, home), -1e-6)
        found[energy] = Judged(pa, aa, sra, gap <= 1e-5 * max(1.0, abs(least)), gap, rim, _wins(dense, partner))
    return found


def _wins(dense: NDArray[np.float32], partner: NDArray[np.int64]) -> float:
    """Shapes: dense (4N, 4N), partner (4N,), -1 at the rim. Partners face each other in an upright puzzle."""
    side = np.arange(len(dense))
    inner = partner >= 0
    bearing, own = side % z4.ORDER, side // z4.ORDER
    false = (own[:, None] != own) & ((bearing[:, None] + 2) % z4.ORDER == bearing)
    false[side[inner], partner[inner]] = False
    true = dense[side[inner], partner[inner]][:, None]
    won = (dense[inner] < true) + 0.5 * (dense[inner] == true)
    return float((won * false[inner]).sum() / max(false[inner].sum(), 1))


def _rim_cost(dense: NDArray[np.float32], found: Arrangement) -> float:
    """Mean score, over all partners, of the sides that lie at the rim of an upright placement."""
    outside = found.grid.neighbour_slots()[found.slots] < 0
    return float(dense.mean(axis=1)[outside.ravel()].mean())


def least_energy(dense: NDArray[np.float32], grid: Grid) -> Arrangement:
    """The upright placement of least energy, by branch and bound to the end. Shapes: dense (4N, 4N)."""
    n = len(dense) // z4.ORDER
    found = branch_and_bound(dense, grid, allowed_turns(n, grid, {}, upright=True), -np.inf, lambda nodes, best: True)
    assert found.best is not None
    return found.best


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one core: the studies share out puzzles, not layers."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Task:
    """One upright puzzle to cut and judge: of a picture, or of procedural noise with a beta instead of a path.

    `part` cuts it from a random window of the picture, drawn from the seed.
    """

    picture: Path | float
    options: CutOptions
    seed: int
    energies: tuple[Energy, ...]
    weights: Path | None = None
    part: bool = False


def tasks_of(
    pictures: Sequence[Path],
    count: int,
    options: CutOptions,
    seed: tuple[str | int, ...],
    energies: tuple[Energy, ...],
    weights: Path | None,
) -> list[Task]:
    """Puzzle k is cut from picture k; when pictures begin again, from a window of it, so that no two are the same."""
    return [
        Task(pictures[k % len(pictures)], options, derive_seed(*seed, k), energies, weights, k >= len(pictures))
        for k in range(count)
    ]


def random_window(rgb: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A square part of a picture, its side 55 to 100 % of the shorter one. Shapes: (H, W, 3) -> (S, S, 3)."""
    side = round(rng.uniform(SMALLEST_WINDOW, 1) * min(rgb.shape[:2]))
    top, left = (int(rng.integers(0, extent - side + 1)) for extent in rgb.shape[:2])
    return rgb[top : top + side, left : left + side]


def judge_task(task: Task) -> dict[Energy, Judged]:
    """Cuts a task's puzzle and judges it."""
    if isinstance(task.picture, Path):
        rgb = read_rgb(task.picture)
        rgb = random_window(rgb, np.random.default_rng(task.seed)) if task.part else rgb
    else:
        rgb = procedural_picture(task.options.grid.rows * task.options.cell, task.picture, task.seed)
    return judge(*cut_picture(rgb, task.options, task.seed), task.energies, task.weights)


def judge_all(what: str, tasks: Sequence[Task], workers: int, progress: Progress) -> list[dict[Energy, Judged]]:
    """All tasks over processes, in their own order."""
    found: dict[Task, dict[Energy, Judged]] = {}
    progress(what, 0, len(tasks))
    for task, judged in run_units(judge_task, tasks, workers):
        found[task] = judged
        progress(what, len(found), len(tasks))
    return [found[task] for task in tasks]


def summary(judged: Sequence[Judged], rng: np.random.Generator) -> dict[str, Interval]:
    """PA with Wilson's interval, AA and SRA with the bootstrap's, over puzzles."""
    return {
        "PA": wilson(sum(one.pa == 1 for one in judged), len(judged)),
        "AA": bootstrap_mean([one.aa for one in judged], rng),
        "SRA": bootstrap_mean([one.sra for one in judged], rng),
    }


def columns(values: Mapping[str, Interval]) -> dict[str, float]:
    """Intervals as columns of a CSV: AA, AA_low, AA_high and so on."""
    return {
        f"{name}{end}": value
        for name, interval in values.items()
        for end, value in (("", interval.estimate), ("_low", interval.low), ("_high", interval.high))
    }
