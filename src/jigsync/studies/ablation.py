"""Study `ablation`: the supplement's grid, one switch at a time on the anchored baseline, both sizes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from jigsync.evaluate.progress import Progress
from jigsync.studies import decoding
from jigsync.studies.decoding import BASE, Answer, Sample, Setup
from jigsync.studies.result import StudyResult
from jigsync.studies.rows import OTHER_DATA, TRUE_GAUGE, UNTOLD, Paper, beside, gained, named, plot_rows, table

BASELINE: Final = "baseline"
CELLS: Final = "unary position term"
LOOPS: Final = "loop weighting"
SETUPS: Final = (
    Setup(BASELINE, BASE),
    Setup("mask impossible classes", replace(BASE, mask_impossible=True)),
    Setup(CELLS, replace(BASE, cell_prior=True)),
    Setup("bearing weights", replace(BASE, bearing_weights=True)),
    Setup(LOOPS, replace(BASE, loop_weights=True)),
    Setup("iterated assignment", replace(BASE, iterated=True)),
    Setup("mask + bearing", replace(BASE, mask_impossible=True, bearing_weights=True)),
    Setup("turns marginalised", replace(BASE, rho="marginal")),
    Setup("truncated least squares", replace(BASE, truncated=True)),
)
PAPER: Final[Paper] = {
    3: {
        BASELINE: (33.33,),
        "mask impossible classes": (33.44,),
        CELLS: (32.22,),
        "bearing weights": (33.33,),
        LOOPS: (32.94,),
        "iterated assignment": (32.67,),
    },
    5: {BASELINE: (8.76,), "bearing weights": (8.72,), "mask impossible classes": (8.76,), "mask + bearing": (8.72,)},
}
"""AA in per cent."""


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Both sizes, every measurer of relations."""
    return run_sample(Sample.of(full, workers, seed, progress, images))


def run_sample(sample: Sample) -> StudyResult:
    """The study on chosen puzzles."""
    measurers = decoding.available()
    found = sample.run("ablation", SETUPS, measurers)
    told = all(decoding.told(group) for group in found.values())
    setups = [setup for setup in SETUPS if told or setup.name != CELLS]
    rng = sample.rng()
    rows = table(found, setups, PAPER, rng)
    effects = [
        one for setup in setups[1:] for one in gained(found, setup.name, BASELINE, PAPER, rng, f"+ {setup.name}")
    ]
    helps = [named(compared) for *_, ours, compared in effects if ours.low > 0]
    costs = [named(compared) for *_, ours, compared in effects if ours.high < 0]
    return StudyResult(
        name="ablation",
        title="one switch at a time on the anchored baseline",
        rows=rows,
        compared=[
            *(beside(row) for row in rows if row["row"] == BASELINE),
            *(compared for *_, compared in effects),
        ],
        verdict=(
            f"{OTHER_DATA}{TRUE_GAUGE}"
            f"{'' if told else UNTOLD + ' The unary position term is left out: nothing tells it.'}"
            " In the paper none of the five terms helps at either size."
            f" Here these help: {'; '.join(helps) or 'none'}. These cost: {'; '.join(costs) or 'none'}."
            f" The other {len(effects) - len(helps) - len(costs)} of {len(effects)} show no effect on"
            f" {sample.puzzles} puzzles.{_units(found)}"
        ),
        settings=sample.settings(measurers),
        plot=partial(plot_rows, rows, "Ablation"),
    )


def _units(found: dict[tuple[str, int], list[Answer]]) -> str:
    if not any(answer.unit_only for group in found.values() for answer in group):
        return ""
    return (
        " Measurements of direct neighbours know no impossible, mid or far relation to mask or to weigh, and three"
        " cells are never all neighbours, so for them masks, bearings and loops can change little by construction."
    )
