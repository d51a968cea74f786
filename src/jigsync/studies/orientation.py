"""Study `orientation`: what tells which side of a single fragment is up?

Two of the paper's eliminated mechanisms: local gradient coherence (does it predict which fragments are read rightly?)
and a generic prior of pretraining (how far does a linear probe on a frozen network get?). The probe is a softmax
regression of four turns on the whole-picture features of Lite0, fitted on one half of the pictures and read on the
other, both ways; beside it whatever the default measurer tells about single fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from jigsync.corpus.pool import run_units
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, severity
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.progress import Progress
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.measure import backbone as backbones
from jigsync.measure import registry
from jigsync.measure.content import show
from jigsync.score.intervals import Interval, bootstrap_mean, wilson
from jigsync.studies import cues, decoding
from jigsync.studies.coherence import coherence
from jigsync.studies.figure import figure, line_style
from jigsync.studies.result import Compared, StudyResult
from jigsync.values import z4
from jigsync.values.layout import Grid

Floats = NDArray[np.float64]
GRID: Final = Grid(3, 3)
SEVERITY: Final = "medium"
PICTURES: Final = 48
FULL_PICTURES: Final = 200
"""Taken from the folder, evenly spaced; the paper's correlation is of 1800 fragments, which are 200 pictures."""
QUINTILES: Final = 5
RIDGE: Final = 0.03
"""Penalty on the probe's weights, of standardised features; not tuned."""
PROBE: Final = "frozen probe"
PAPER_R: Final = 0.0017
PAPER_QUINTILES: Final = (0.894, 0.900, 0.905, 0.900, 0.892)
PAPER_PROBE: Final = (0.379, 0.451)
"""Range over its 15 epochs."""
PAPER_TUNED: Final = 0.936
RESAMPLES: Final = 1000


@dataclass(frozen=True)
class Task:
    """One picture."""

    picture: Path
    cell: int
    seed: int
    probed: bool


@dataclass(frozen=True, eq=False)
class Read:
    """The fragments of one picture.

    Shapes: turns (N,) canvas turns; coherence (N,); features (N, 4, C) of the fragment turned by k = 0..3, or None;
    told (N, 4) log-probabilities of canvas turns, or None.
    """

    turns: NDArray[np.int64]
    coherence: Floats
    features: NDArray[np.float32] | None
    told: Floats | None


def run_task(task: Task) -> Read:
    """Cuts a picture and reads its fragments."""
    options = CutOptions(GRID, task.cell, severity(SEVERITY))
    puzzle, truth = cut_picture(read_rgb(task.picture), options, task.seed, name=f"The picture '{task.picture}'")
    turns = decoding.solved_of(puzzle, truth).turns
    features = None
    if task.probed:
        with cues.one_thread():
            whole = show(puzzle, backbones.get()).whole.reshape(len(puzzle), z4.ORDER, -1)
        # View b of `show` is turned by -b; here index k is the fragment turned by k.
        features = whole[:, [z4.inverse(k) for k in range(z4.ORDER)]]
    told = decoding.measure(puzzle, registry.DEFAULT).unary_turns
    return Read(turns, np.array([coherence(p, task.cell) for p in puzzle.fragments.pixels]), features, told)


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """On 3 x 3 puzzles."""
    pictures = evenly_spaced(cues.pictures_of(images), FULL_PICTURES if full else PICTURES)
    return run_pictures(pictures, 128, workers, seed, progress)


def run_pictures(pictures: Sequence[Path], cell: int, workers: int, seed: int, progress: Progress) -> StudyResult:
    """The study on chosen pictures."""
    missing = cues.without_network()
    tasks = [Task(p, cell, derive_seed(seed, "orientation", k), not missing) for k, p in enumerate(pictures)]
    found: dict[Task, Read] = {}
    progress("orientation", 0, len(tasks))
    for task, read in run_units(run_task, tasks, workers):
        found[task] = read
        progress("orientation", len(found), len(tasks))
    reads = [found[task] for task in tasks]
    right: dict[str, list[NDArray[np.bool_]]] = {}
    told = [read.told for read in reads]
    if all(one is not None for one in told):
        right[registry.DEFAULT] = [
            one.argmax(axis=1) == read.turns for one, read in zip(told, reads, strict=True) if one is not None
        ]
    if not missing and len(reads) > 1:
        right[PROBE] = probe(reads)
    rng = np.random.default_rng(seed)
    rows = [row for reader, values in right.items() for row in _rows(reader, reads, values, rng)]
    return StudyResult(
        name="orientation",
        title="which side of a single fragment is up: coherence and a frozen probe",
        rows=rows,
        compared=[_compare(row) for row in rows],
        verdict=_verdict(rows, missing),
        settings={"seed": seed, "pictures": len(pictures), "cell": cell, "severity": SEVERITY, "ridge": RIDGE},
        plot=partial(_plot, rows),
    )


def probe(reads: Sequence[Read]) -> list[NDArray[np.bool_]]:
    """Which fragments the probe reads rightly, as stored; each half of the pictures is read by the other's probe."""
    right: list[NDArray[np.bool_]] = [np.zeros(0, bool)] * len(reads)
    for fold in (0, 1):
        x, y = (np.concatenate(parts) for parts in zip(*map(_views, reads[1 - fold :: 2]), strict=True))
        classify = fit_softmax(x, y)
        for k in range(fold, len(reads), 2):
            features = reads[k].features
            assert features is not None
            right[k] = classify(features[:, 0]) == reads[k].turns
    return right


def _views(read: Read) -> tuple[Floats, NDArray[np.int64]]:
    """All four turned views, each with the turns that are left to be upright. Shapes: (4N, C), (4N,)."""
    assert read.features is not None
    left = (read.turns[:, None] - np.arange(z4.ORDER)) % z4.ORDER
    return read.features.reshape(-1, read.features.shape[-1]).astype(np.float64), left.ravel()


def fit_softmax(x: Floats, classes: NDArray[np.int64]) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """Softmax regression on standardised features, RIDGE on the weights; gives the classifier.

    Shapes: x (M, F), classes (M,) in 0..3.
    """
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    data = np.hstack([(x - mean) / scale, np.ones((len(x), 1))])
    hot = np.eye(z4.ORDER)[classes]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(data.shape[1], z4.ORDER)
        log_p = data @ weights
        log_p = log_p - logsumexp(log_p, axis=1, keepdims=True)
        slope = data.T @ (np.exp(log_p) - hot) / len(data) + RIDGE * weights
        return float(-(hot * log_p).sum() / len(data) + RIDGE / 2 * np.square(weights).sum()), slope.ravel()

    best = minimize(loss, np.zeros(data.shape[1] * z4.ORDER), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights = best.x.reshape(data.shape[1], z4.ORDER)
    return lambda new: np.asarray(((new - mean) / scale @ weights[:-1] + weights[-1]).argmax(axis=1))


def correlation(x: Sequence[Floats], y: Sequence[NDArray[np.bool_]], rng: np.random.Generator) -> Interval:
    """Pearson's r over all fragments, its interval by resampling whole pictures; 0 where either is constant."""
    values = [_pearson(np.concatenate(x), np.concatenate(y))]
    for _ in range(RESAMPLES):
        chosen = rng.integers(0, len(x), len(x))
        values.append(_pearson(np.concatenate([x[k] for k in chosen]), np.concatenate([y[k] for k in chosen])))
    low, high = np.quantile(values[1:], (0.025, 0.975))
    return Interval(values[0], float(low), float(high), sum(len(one) for one in x))


def _pearson(x: Floats, y: NDArray[Any]) -> float:
    if x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y.astype(np.float64))[0, 1])


def _rows(
    reader: str, reads: Sequence[Read], right: Sequence[NDArray[np.bool_]], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Accuracy, correlation with coherence, and the five quintiles."""
    values, flat = np.concatenate([read.coherence for read in reads]), np.concatenate(right)
    accuracy = bootstrap_mean([one.mean() for one in right], rng)
    r = correlation([read.coherence for read in reads], right, rng)
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    rows = [_row(reader, "accuracy", accuracy, len(flat)), _row(reader, "correlation", r, len(flat))]
    for k in range(QUINTILES):
        inside = rank * QUINTILES // len(values) == k
        row = _row(reader, f"quintile {k + 1}", wilson(int(flat[inside].sum()), int(inside.sum())), int(inside.sum()))
        rows.append({**row, "coherence": float(values[inside].mean())})
    return rows


def _row(reader: str, what: str, found: Interval, fragments: int) -> dict[str, Any]:
    return {
        "reader": reader,
        "what": what,
        "value": found.estimate,
        "low": found.low,
        "high": found.high,
        "fragments": fragments,
    }


def _compare(row: dict[str, Any]) -> Compared:
    found = Interval(row["value"], row["low"], row["high"], row["fragments"])
    what = f"{row['reader']}: {row['what']}"
    if row["what"] == "correlation":
        none = found.low <= 0 <= found.high
        ours = f"{found.estimate:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
        said = (
            "agrees: none"
            if none
            else "differs: coherent fragments are read " + ("better" if found.estimate > 0 else "worse")
        )
        return Compared(f"{what} with coherence", ours, PAPER_R, said)
    if row["what"] == "accuracy":
        if row["reader"] == PROBE:
            low, high = (100 * value for value in PAPER_PROBE)
            near = found.low <= PAPER_PROBE[1] and found.high >= PAPER_PROBE[0]
            said = (
                "agrees: above chance (25 %), far from a trained head" if near else "differs: other network, pictures"
            )
            return Compared(what, found.percent(), f"{low:.1f}-{high:.1f} %", said)
        return Compared(what, found.percent(), f"{100 * PAPER_TUNED:.1f} %", "other pictures; no leak by compression")
    theirs = f"{100 * PAPER_QUINTILES[int(row['what'][-1]) - 1]:.1f} %" if row["reader"] != PROBE else "-"
    return Compared(what, found.percent(), theirs, f"mean coherence {row['coherence']:.2f}")


def _verdict(rows: Sequence[dict[str, Any]], missing: str) -> str:
    text = (
        "Coherence is ours (structure tensor; the paper gives no formula), the probe's network is Lite0 where the"
        " paper's is its own backbone, and noise and compression come after the turn, where the paper has them before."
    )
    of = {(row["reader"], row["what"]): row for row in rows}
    for reader in dict.fromkeys(row["reader"] for row in rows):
        r, accuracy = of[reader, "correlation"], of[reader, "accuracy"]
        quintiles = [of[reader, f"quintile {k + 1}"]["value"] for k in range(QUINTILES)]
        text += (
            f" {reader[0].upper()}{reader[1:]}: {100 * accuracy['value']:.1f} % of the turns right,"
            f" correlation with coherence {r['value']:+.3f},"
            f" quintiles {', '.join(f'{100 * value:.0f}' for value in quintiles)} %."
        )
    if missing:
        text += f" The probe was left out: {missing}"
    if not any(row["reader"] != PROBE for row in rows):
        text += " The default measurer tells nothing about single fragments, so the trained row is left out."
    return text


def _plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    with figure(path, 1, 1, (6.0, 3.7)) as (drawn, axis):
        at = np.arange(1, QUINTILES + 1)
        for k, reader in enumerate(dict.fromkeys(row["reader"] for row in rows)):
            own = [row for row in rows if row["reader"] == reader and row["what"].startswith("quintile")]
            ends = [[100 * abs(row["value"] - row[end]) for row in own] for end in ("low", "high")]
            axis.errorbar(at, [100 * row["value"] for row in own], ends, capsize=3, label=reader, **line_style(k))
        axis.plot(at, [100 * value for value in PAPER_QUINTILES], "kx", markersize=7, label="paper, trained")
        axis.axhspan(*(100 * value for value in PAPER_PROBE), color="#dddddd", zorder=0, label="paper, frozen probe")
        axis.axhline(25, color="#777777", linestyle=":", lw=1.2, label="chance")
        axis.set(title="Turns of single fragments read rightly", xlabel="quintile of gradient coherence", xticks=at)
        axis.set(ylabel="per cent", ylim=(0, 100))
        drawn.legend(loc="outside lower center", ncols=3)
