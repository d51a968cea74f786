"""Study `progression`: the paper's Table 2, from given edges to the deployable pipeline, nothing retrained."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from jigsync.evaluate.progress import Progress
from jigsync.studies import decoding
from jigsync.studies.decoding import BASE, Sample, Setup
from jigsync.studies.result import StudyResult
from jigsync.studies.rows import OTHER_DATA, TRUE_GAUGE, UNTOLD, Paper, beside, gained, named, plot_rows, table

TIERS: Final = (1.0, 0.5, 0.25)
"""Weights of near, mid and far edges; the paper does not say its own."""
ORACLE: Final = "A: true edges, anchored"
DENSE: Final = "C: dense edges"
TIERED: Final = "C + tier weights"
CONDITIONED: Final = "C + conditioned decoding"
MATCHED: Final = "A: the same with true edges"
SETUPS: Final = (
    Setup(ORACLE, replace(BASE, edges="given")),
    Setup(DENSE, BASE),
    Setup(TIERED, replace(BASE, tier_weights=TIERS)),
    Setup(CONDITIONED, replace(BASE, tier_weights=TIERS, rho="conditioned")),
    Setup(MATCHED, replace(BASE, tier_weights=TIERS, rho="conditioned", edges="given")),
)
PAPER: Final[Paper] = {
    3: {
        ORACLE: (11.00, 36.72, 31.54),
        DENSE: (4.00, 33.28, 24.71),
        TIERED: (4.00, 33.22, 24.83),
        CONDITIONED: (8.50, 41.33, 33.21),
        MATCHED: (17.00, 43.39, 40.00),
    },
    5: {
        ORACLE: (0.00, 10.66, 8.88),
        DENSE: (0.00, 8.90, 5.90),
        TIERED: (0.00, 8.92, 5.88),
        CONDITIONED: (0.00, 12.26, 8.80),
        MATCHED: (0.00, 13.80, 15.90),
    },
}
STEPS: Final = (
    (DENSE, ORACLE, "dense instead of true edges"),
    (TIERED, DENSE, "tier weights"),
    (CONDITIONED, TIERED, "conditioned decoding"),
    (MATCHED, CONDITIONED, "true edges at the end"),
)


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Both sizes, every measurer of relations."""
    return run_sample(Sample.of(full, workers, seed, progress, images))


def run_sample(sample: Sample) -> StudyResult:
    """The study on chosen puzzles."""
    measurers = decoding.available()
    found = sample.run("progression", SETUPS, measurers)
    rng = sample.rng()
    rows = table(found, SETUPS, PAPER, rng)
    effects = [one for first, second, what in STEPS for one in gained(found, first, second, PAPER, rng, what)]
    told = all(decoding.told(group) for group in found.values())
    agree = sum(compared.verdict.startswith("agrees") for _, _, _, compared in effects)
    differ = [named(compared) for *_, compared in effects if compared.verdict.startswith("differs")]
    return StudyResult(
        name="progression",
        title="from given edges to the deployable pipeline",
        rows=rows,
        compared=[*(beside(row) for row in rows), *(compared for *_, compared in effects)],
        verdict=(
            f"{OTHER_DATA}{TRUE_GAUGE}{'' if told else UNTOLD} Of {len(effects)} steps {agree} go as in the paper"
            f"{f', {len(differ)} do not: ' + '; '.join(differ) if differ else ''}."
            + (
                " Measurements of direct neighbours have no far edges: dense means every pair whose likeliest relation"
                f" has at least {decoding.UNIT_THRESHOLD:g}, and tier weights change nothing."
                if any(answer.unit_only for group in found.values() for answer in group)
                else ""
            )
        ),
        settings={**sample.settings(measurers), "tier_weights": list(TIERS)},
        plot=partial(plot_rows, rows, "Progression"),
    )
