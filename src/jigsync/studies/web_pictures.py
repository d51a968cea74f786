"""Study `web-pictures`: squares of pictures as the web has them, small and compressed, in the form of ImageNet-LSEJ.

10 x 10 squares of 50 pixels with 2 pixels off every side, upright, rows and cols told. The same pictures are cut as
they are, made small, compressed, with blank borders, and with all of these, to see what costs how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.corpus.pool import run_units
from jigsync.cutting.squares import SquareOptions
from jigsync.cutting.web import WebOptions
from jigsync.evaluate.progress import Progress
from jigsync.io.images import evenly_spaced
from jigsync.measure import registry
from jigsync.score.intervals import Interval, bootstrap_mean, paired_difference, wilson
from jigsync.studies.cues import pictures_of
from jigsync.studies.figure import COLOURS, figure
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.rows import points
from jigsync.studies.squares import run_squares
from jigsync.values.layout import Grid

OPTIONS: Final = SquareOptions(50, Grid(10, 10), 2, turns=False)
LONGEST: Final = 500
QUALITY: Final = (75, 95)
BORDER: Final = 0.08
FORMS: Final[Mapping[str, WebOptions]] = {
    "as they are": WebOptions(),
    "small": WebOptions(LONGEST),
    "compressed": WebOptions(None, QUALITY),
    "blank borders": WebOptions(border=BORDER),
    "small, compressed": WebOptions(LONGEST, QUALITY),
    "all": WebOptions(LONGEST, QUALITY, BORDER),
}
PICTURES: Final = 20
FULL_PICTURES: Final = 80
PAPER: Final = (55.9, 86.7, 92.1)
"""PA, AA, SRA in per cent of the best published network and solver on ImageNet-LSEJ at 2 px, by its authors."""


@dataclass(frozen=True)
class Task:
    """One picture in one form."""

    picture: Path
    form: str
    options: SquareOptions
    seed: int
    threads: int


def run_task(task: Task) -> dict[str, Any]:
    """A row."""
    (found,) = run_squares(
        [task.picture], task.options, "jigsync", registry.DEFAULT, task.seed, None, FORMS[task.form], task.threads
    )
    return {"form": task.form, **asdict(found)}


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """All forms."""
    pictures = evenly_spaced(pictures_of(images), FULL_PICTURES if full else PICTURES)
    return run_pictures(pictures, OPTIONS, workers, seed, progress)


def run_pictures(
    pictures: Sequence[Path], options: SquareOptions, workers: int, seed: int, progress: Progress
) -> StudyResult:
    """The study on chosen pictures and squares."""
    threads = 1 if workers > 1 else 2
    tasks = [Task(picture, form, options, seed + k, threads) for form in FORMS for k, picture in enumerate(pictures)]
    found: dict[Task, dict[str, Any]] = {}
    progress("web-pictures", 0, len(tasks))
    for task, row in run_units(run_task, tasks, workers):
        found[task] = row
        progress("web-pictures", len(found), len(tasks))
    rows = [found[task] for task in tasks]
    rng = np.random.default_rng(seed)
    costs = {form: _cost(rows, form, rng) for form in list(FORMS)[1:]}
    return StudyResult(
        name="web-pictures",
        title="squares of small, compressed pictures, in the form of ImageNet-LSEJ: direct",
        rows=rows,
        compared=[_compared(rows, form, costs.get(form), rng) for form in FORMS],
        verdict=_verdict(rows, costs),
        settings={
            "pictures": len(pictures),
            "grid": str(options.grid),
            "side": options.side,
            "erode": options.erode,
            "seed": seed,
        },
        plot=partial(_plot, rows),
    )


def _values(rows: Sequence[Mapping[str, Any]], form: str, measure: str) -> list[float]:
    return [float(row[measure]) for row in rows if row["form"] == form]


def _cost(rows: Sequence[Mapping[str, Any]], form: str, rng: np.random.Generator) -> Interval:
    """Points of direct that a form costs on the same pictures."""
    return paired_difference(_values(rows, form, "direct"), _values(rows, next(iter(FORMS)), "direct"), rng)


def _compared(
    rows: Sequence[Mapping[str, Any]], form: str, cost: Interval | None, rng: np.random.Generator
) -> Compared:
    direct = bootstrap_mean(_values(rows, form, "direct"), rng)
    perfect = _values(rows, form, "perfect")
    pa = wilson(int(sum(perfect)), len(perfect))
    sra = 100 * float(np.mean(_values(rows, form, "sra")))
    paper = f"{PAPER[1]} %" if form == "small, compressed" else "-"
    same = 100 * float(np.mean(_values(rows, form, "same_pixels")))
    said = f"PA {pa.percent()}, SRA {sra:.1f} %; with identical squares interchangeable AA {same:.1f} %"
    if cost is not None:
        said += f"; {points(cost)} points of AA on the same pictures"
    if paper != "-":
        said += f"; published on ImageNet itself: PA {PAPER[0]}, SRA {PAPER[2]}"
    return Compared(f"{form}: AA of {direct.n} pictures", direct.percent(), paper, said)


def _verdict(rows: Sequence[Mapping[str, Any]], costs: Mapping[str, Interval]) -> str:
    plain = 100 * float(np.mean(_values(rows, next(iter(FORMS)), "direct")))
    told = "; ".join(f"{form} {points(cost)}" for form, cost in costs.items())
    single = {form: costs[form] for form in ("small", "compressed", "blank borders")}
    most = min(single, key=lambda form: single[form].estimate)
    return (
        f"AA is {plain:.1f} % as they are; what is done to the same pictures changes it, in points, by {told}. Of the"
        f" three alone, '{most}' costs most. Blank squares are identical, and AA counts them as wrong wherever they go;"
        " with identical squares interchangeable it does not. The published figures are of ImageNet's own pictures,"
        " which these imitate."
    )


def _plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    rng = np.random.default_rng(0)
    with figure(path, 1, 1, (7.5, 3.6)) as (_, axis):
        for k, form in enumerate(FORMS):
            direct = bootstrap_mean(_values(rows, form, "direct"), rng)
            low, high = 100 * (direct.estimate - direct.low), 100 * (direct.high - direct.estimate)
            axis.bar(
                k,
                100 * direct.estimate,
                0.7,
                color=COLOURS[0] if k == 0 else "#c9d7e3",
                edgecolor="#333333",
                linewidth=0.6,
                yerr=[[low], [high]],
                error_kw={"lw": 1, "capsize": 3},
            )
        axis.axhline(PAPER[1], color="#555555", linestyle=":", lw=1.2)
        axis.text(len(FORMS) - 0.55, PAPER[1] + 1, "best published", ha="right", fontsize=8, color="#555555")
        axis.set_xticks(range(len(FORMS)), [form.replace(", ", ",\n") for form in FORMS], fontsize=9)
        axis.set(title="10 x 10 squares, 2 px eroded, upright", ylabel="AA, per cent", ylim=(0, 105))
