"""Study `symmetrize`: does it help to average a pair's relations with those of the reversed pair?

p_sym(i, j) = (p(i, j) + p(j, i)[REVERSE]) / 2
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.evaluate.progress import Progress
from jigsync.score.intervals import Interval, bootstrap_mean
from jigsync.studies import decoding
from jigsync.studies.decoding import BASE, Answers, Sample, Setup
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.rows import OTHER_DATA, POINTS, TRUE_GAUGE, UNTOLD, Paper, beside, plot_rows, points, says, table

PLAIN: Final = "conditioned decoding"
SYMMETRIC: Final = "+ symmetrized"
SETUPS: Final = (
    Setup(PLAIN, replace(BASE, rho="conditioned")),
    Setup(SYMMETRIC, replace(BASE, rho="conditioned", symmetrized=True)),
)
PAPER: Final[Paper] = {
    3: {PLAIN: (8.50, 41.33, 33.21), SYMMETRIC: (8.00, 42.33, 33.79)},
    5: {PLAIN: (0.00, 12.26, 8.80), SYMMETRIC: (0.00, 12.68, 8.43)},
}
PAPER_AGREEMENT: Final = {3: 61.82, 5: 55.22}
"""Per cent of ordered pairs whose likeliest relation is the reverse of the reversed pair's."""


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Both sizes, every measurer of relations."""
    return run_sample(Sample.of(full, workers, seed, progress, images))


def run_sample(sample: Sample) -> StudyResult:
    """The study on chosen puzzles."""
    measurers = decoding.available()
    found = sample.run("symmetrize", SETUPS, measurers)
    rng = sample.rng()
    agreement = {key: bootstrap_mean([answer.agreement for answer in group], rng) for key, group in found.items()}
    rows = [
        {**row, "agreement": agreement[row["measurer"], row["n"]].estimate} for row in table(found, SETUPS, PAPER, rng)
    ]
    paired = {key: paired_test(found, *key, rng) for key in found}
    told = all(decoding.told(group) for group in found.values())
    return StudyResult(
        name="symmetrize",
        title="each pair averaged with its reverse",
        rows=[{**row, **paired[row["measurer"], row["n"]][1]} for row in rows],
        compared=[
            *(beside(row) for row in rows),
            *(_agreement(measurer, n, share) for (measurer, n), share in agreement.items()),
            *(_gain(measurer, n, *test) for (measurer, n), test in paired.items()),
        ],
        verdict=_verdict(agreement, paired, told),
        settings=sample.settings(measurers),
        plot=partial(plot_rows, rows, "Symmetrized"),
    )


def paired_test(found: Answers, measurer: str, n: int, rng: np.random.Generator) -> tuple[Interval, dict[str, Any]]:
    """Gain in AA on the same puzzles; its standard error, t, and numbers of puzzles better, worse, unchanged."""
    group = found[measurer, n]
    after, before = (np.array(decoding.values(group, name, "AA", "true")) for name in (SYMMETRIC, PLAIN))
    gain = after - before
    error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else 0.0
    return decoding.effect(group, SYMMETRIC, PLAIN, "true", rng), {
        "gain_SE": error,
        "gain_t": float(gain.mean() / error) if error else 0.0,
        "better": int(np.sum(gain > 0)),
        "worse": int(np.sum(gain < 0)),
        "unchanged": int(np.sum(gain == 0)),
    }


def _agreement(measurer: str, n: int, share: Interval) -> Compared:
    paper = PAPER_AGREEMENT.get(n)
    said = "symmetric by construction" if share.low == 1 else "the network is not symmetric by construction"
    shown = "-" if paper is None else f"{paper:.2f} %"
    return Compared(f"{measurer}, {n} x {n}: both directions say the same", share.percent(), shown, said)


def _gain(measurer: str, n: int, gain: Interval, test: dict[str, Any]) -> Compared:
    theirs = {3: 1.00, 5: 0.42}.get(n)
    said = (
        f"{says(gain, theirs)}; t = {test['gain_t']:+.2f}, {test['better']} better, {test['worse']} worse,"
        f" {test['unchanged']} unchanged"
    )
    shown = "-" if theirs is None else f"{theirs:+.2f}"
    return Compared(f"{measurer}, {n} x {n}, gain{POINTS}, true gauge", points(gain), shown, said)


def _verdict(
    agreement: dict[tuple[str, int], Interval],
    paired: dict[tuple[str, int], tuple[Interval, dict[str, Any]]],
    told: bool,
) -> str:
    sure = [f"{m} {n} x {n} ({points(gain)})" for (m, n), (gain, _) in paired.items() if not gain.low <= 0 <= gain.high]
    same = all(share.low == 1 for share in agreement.values())
    text = f"{OTHER_DATA}{TRUE_GAUGE}{'' if told else UNTOLD} The paper found no significant gain at either size."
    if same:
        return (
            f"{text} What is measured here gives the same answer in both directions by construction, so there is"
            " nothing to average: an architecture that respects the symmetry makes the question go away."
        )
    return f"{text} Here {'significant: ' + '; '.join(sure) if sure else 'neither'}."
