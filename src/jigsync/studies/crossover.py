"""Study `crossover`: seam against content over shape A and erosion eps_geo, 3 x 3 upright, exact search.

The paper reads both cues at the cell's straight side and sums their costs; so do we, and then along the fragment's
own contour, and then calibrated. Which of its conclusions belong to the cues, and which to the reading?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync.cutting.options import CutOptions, Damage
from jigsync.evaluate.progress import Progress
from jigsync.measure.backbone import DINO, LITE0
from jigsync.score.intervals import Interval, bootstrap_mean, paired_difference
from jigsync.studies import cues
from jigsync.studies.cues import CHANCE_AA, Energy, Judged
from jigsync.studies.figure import COLOURS, figure, line_style
from jigsync.studies.result import Compared, StudyResult
from jigsync.values.layout import Grid

SHAPES: Final = (0.0, 8.0, 16.0, 24.0, 32.0)
EROSIONS: Final = (0.0, 0.05, 0.10, 0.20)
PUZZLES: Final = 12
FULL_PUZZLES: Final = 30
"""Puzzles a cell of the sweep; the paper had 30."""
CUES: Final = ("seam", "content", "content-band")
READINGS: Final[Mapping[str, tuple[bool, bool]]] = {
    "straight, summed": (True, True),
    "contour, summed": (False, True),
    "contour, calibrated": (False, False),
}
"""Reading -> (straight, summed); the first is the paper's."""
OURS: Final = "boundary"

PAPER_AT_0: Final = {0.0: (11.1, 6.3), 0.05: (11.5, 8.1), 0.10: (13.3, 7.8), 0.20: (9.6, 11.1)}
"""eps_geo -> AA of seam and content at A = 0, per cent."""
PAPER_SEAM: Final = {0.0: 11.4, 32.0: 5.0}
"""A -> AA of the seam, mean over the four erosions, per cent."""

Found = Mapping[tuple[float, float], Sequence[Mapping[Energy, Judged]]]
"""(A, eps_geo) -> one entry a puzzle."""


def energy(cue: str, reading: str) -> Energy:
    """A cue in a reading."""
    straight, summed = READINGS[reading]
    return Energy(cue, straight, summed)


def run(
    full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None, dino: Path | None = None
) -> StudyResult:
    """The whole sweep."""
    puzzles = FULL_PUZZLES if full else PUZZLES
    return run_sweep(SHAPES, EROSIONS, puzzles, 128, workers, seed, progress, images, dino)


def run_sweep(
    shapes: Sequence[float],
    erosions: Sequence[float],
    puzzles: int,
    cell: int,
    workers: int,
    seed: int,
    progress: Progress,
    images: Path | None = None,
    dino: Path | None = None,
) -> StudyResult:
    """The sweep over chosen severities, with the same `puzzles` pictures and windows everywhere."""
    pictures = cues.pictures_of(images)
    missing = cues.without_network(dino)
    energies = tuple(
        dict.fromkeys(
            e
            for e in (*(energy(cue, reading) for reading in READINGS for cue in CUES), Energy(OURS))
            if not (missing and e.needs_network)
        )
    )
    where = [(shape, erosion) for shape in shapes for erosion in erosions]
    tasks = [
        task
        for shape, erosion in where
        for task in cues.tasks_of(
            pictures,
            puzzles,
            CutOptions(Grid(3, 3), cell, Damage(shape, erosion), turns=False),
            (seed, "crossover"),
            energies,
            dino,
        )
    ]
    judged = cues.judge_all("crossover", tasks, workers, progress)
    found: Found = {at: judged[k * puzzles : (k + 1) * puzzles] for k, at in enumerate(where)}
    rng = np.random.default_rng(seed)
    network = LITE0 if dino is None else DINO
    rows = [
        {
            "A": shape,
            "eps_geo": erosion,
            "cue": e.cue,
            "reading": e.reading,
            "network": network if e.needs_network else "",
            "puzzles": puzzles,
            **cues.columns(cues.summary([one[e] for one in found[shape, erosion]], rng)),
            "paper_AA": _paper(e, shape, erosion),
        }
        for shape, erosion in where
        for e in energies
    ]
    return StudyResult(
        name="crossover",
        title="seam against content over shape and erosion, 3 x 3 upright",
        rows=rows,
        compared=_compare(found, missing, rng),
        verdict=_verdict(found, missing, network, rng),
        settings={
            "puzzles": puzzles,
            "pictures": min(len(pictures), puzzles),
            "images": "bundled" if images is None else "a folder",
            "cell": cell,
            "seed": seed,
            "network": "" if missing else network,
        },
        plot=partial(_plot, found, missing, network),
    )


def _paper(e: Energy, shape: float, erosion: float) -> float | None:
    at = ("seam", "content").index(e.cue) if e.cue in ("seam", "content") else None
    if shape or at is None or not (e.straight and e.summed) or erosion not in PAPER_AT_0:
        return None
    return PAPER_AT_0[erosion][at] / 100


def _aa(found: Found, e: Energy, shape: float | None = None, erosion: float | None = None) -> list[float]:
    """AA of the puzzles of one shape, of one erosion, or of both."""
    return [
        one[e].aa
        for (at_shape, at_erosion), puzzles in found.items()
        if shape in (None, at_shape) and erosion in (None, at_erosion)
        for one in puzzles
    ]


def _severities(found: Found) -> tuple[list[float], list[float]]:
    return sorted({shape for shape, _ in found}), sorted({erosion for _, erosion in found})


def _compare(found: Found, missing: str, rng: np.random.Generator) -> list[Compared]:
    shapes, erosions = _severities(found)
    compared = []
    for shape in (shapes[0], shapes[-1]):
        for reading in READINGS:
            ours = bootstrap_mean(_aa(found, energy("seam", reading), shape), rng)
            paper = f"{PAPER_SEAM[shape]:.1f} %" if shape in PAPER_SEAM else "-"
            compared.append(Compared(f"seam, A = {shape:g}, {reading}: AA", ours.percent(), paper, _chance(ours)))
        ours = bootstrap_mean(_aa(found, Energy(OURS), shape), rng)
        compared.append(Compared(f"all boundary cues, A = {shape:g}: AA", ours.percent(), "-", _chance(ours)))
    for erosion in erosions:
        for k, cue in enumerate(("seam", "content")):
            if missing and cue != "seam":
                continue
            paper = f"{PAPER_AT_0[erosion][k]:.1f} %" if erosion in PAPER_AT_0 else "-"
            for reading in ("straight, summed", "contour, calibrated"):
                ours = bootstrap_mean(_aa(found, energy(cue, reading), shapes[0], erosion), rng)
                what = f"{cue}, A = {shapes[0]:g}, eps_geo = {erosion:g}, {reading}: AA"
                compared.append(Compared(what, ours.percent(), paper, _chance(ours)))
    return compared


def _chance(ours: Interval) -> str:
    if ours.low <= CHANCE_AA <= ours.high:
        return "at chance"
    return "above chance" if ours.low > CHANCE_AA else "below chance"


def _survives(holds: bool) -> str:
    return "survives" if holds else "does not survive"


def _verdict(found: Found, missing: str, network: str, rng: np.random.Generator) -> str:
    shapes, erosions = _severities(found)
    first, last = shapes[0], shapes[-1]
    paper, ours = "straight, summed", "contour, calibrated"
    clean = {r: bootstrap_mean(_aa(found, energy("seam", r), first, erosions[0]), rng) for r in READINGS}
    fall = {r: [float(np.mean(_aa(found, energy("seam", r), shape))) for shape in shapes] for r in READINGS}
    lowest = bootstrap_mean(_aa(found, energy("seam", ours), last), rng)
    parts = [
        f"(1) Seam at chance on clean squares {_survives(clean[ours].low <= CHANCE_AA)}: {clean[ours].percent()} AA"
        f" calibrated, and {clean[paper].percent()} even when its costs are summed over the whole band (paper: 11.1;"
        " erratum 6). On squares the contour is the straight side, so it is the sum that loses there.",
        f"(2) Irregular shape destroying the seam: read straight and summed it goes from {100 * fall[paper][0]:.1f} to"
        f" {100 * fall[paper][-1]:.1f} % AA between A = {first:g} and {last:g} (paper: 11.4 to 5.0), along the contour"
        f" and calibrated from {100 * fall[ours][0]:.1f} to {100 * fall[ours][-1]:.1f} %, {_chance(lowest)} at the end;"
        f" 'below chance' {_survives(lowest.high < CHANCE_AA)}. All boundary cues together:"
        f" {100 * float(np.mean(_aa(found, Energy(OURS), first))):.1f} to"
        f" {100 * float(np.mean(_aa(found, Energy(OURS), last))):.1f} %.",
    ]
    if missing:
        return " ".join([*parts, f"Content was left out: {missing}"])
    flat = [float(np.mean(_aa(found, energy("content", paper), shape))) for shape in shapes]
    content = energy("content", paper)
    change = paired_difference(_aa(found, content, first), _aa(found, content, last), rng)
    parts.append(
        f"(3) Content flat over A {_survives(change.low <= 0 <= change.high)}: {100 * min(flat):.1f} to"
        f" {100 * max(flat):.1f} % AA with {network} (paper, with DINOv2: 8 to 11). Without direction eight"
        " assemblies tie, so that it can't pass 33 % on average, whatever it sees."
    )
    leads = {r: {e: _lead(found, r, first, e, rng) for e in erosions} for r in (paper, ours)}
    told = "; ".join(f"{r}: " + ", ".join(f"{e:g}: {_sign(leads[r][e])}" for e in erosions) for r in leads)
    crossed = leads[ours][erosions[-1]].high < 0
    parts.append(
        f"(4) Who leads at A = {first:g}, by paired difference, over eps_geo: {told}. The paper's crossover between"
        f" 0.10 and 0.20 {_survives(crossed)} along the contour."
    )
    return " ".join(parts)


def _lead(found: Found, reading: str, shape: float, erosion: float, rng: np.random.Generator) -> Interval:
    """Seam minus content on the same puzzles."""
    seam, content = (_aa(found, energy(cue, reading), shape, erosion) for cue in ("seam", "content"))
    return paired_difference(seam, content, rng)


def _sign(lead: Interval) -> str:
    return "seam" if lead.low > 0 else "content" if lead.high < 0 else "neither"


def _plot(found: Found, missing: str, network: str, path: Path) -> None:
    shapes, erosions = _severities(found)
    rng = np.random.default_rng(0)
    with figure(path, 2, len(READINGS), (9.5, 6.2), sharey=True) as (drawn, axes):
        for column, reading in enumerate(READINGS):
            for row, (along, values) in enumerate((("A", shapes), ("eps_geo", erosions))):
                axis = axes[row, column]
                shown = [(k, cue, energy(cue, reading)) for k, cue in enumerate(CUES) if not missing or cue == "seam"]
                if reading == "contour, calibrated":
                    shown.append((len(CUES), "all boundary cues", Energy(OURS)))
                for k, cue, e in shown:
                    aa = [_aa(found, e, v) if along == "A" else _aa(found, e, shapes[0], v) for v in values]
                    intervals = [bootstrap_mean(one, rng) for one in aa]
                    label = cue.replace("content", f"{network} content")
                    axis.plot(values, [100 * i.estimate for i in intervals], label=label, **line_style(k))
                    low, high = ([100 * getattr(i, end) for i in intervals] for end in ("low", "high"))
                    axis.fill_between(values, low, high, color=COLOURS[k], alpha=0.12, lw=0)
                if column == 0:
                    _plot_paper(axis, along)
                axis.axhline(100 * CHANCE_AA, color="#555555", linestyle=":", lw=1.2)
                axis.set(ylim=(0, 105), xlabel="shape A (mean over erosion)" if along == "A" else "erosion at A = 0")
                if row == 0:
                    axis.set_title(f"{reading}{' (as the paper)' if column == 0 else ''}")
            axes[0, 0].set_ylabel("AA, per cent")
            axes[1, 0].set_ylabel("AA, per cent")
        handles = dict(zip(*reversed(axes[0, -1].get_legend_handles_labels()), strict=True))
        handles |= dict(zip(*reversed(axes[1, 0].get_legend_handles_labels()), strict=True))
        drawn.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)


def _plot_paper(axis: Any, along: str) -> None:
    if along == "A":
        axis.plot(*zip(*PAPER_SEAM.items(), strict=True), "kx", markersize=7, label="paper: seam")
        return
    for k, (name, mark) in enumerate((("seam", "x"), ("content", "+"))):
        axis.plot(
            list(PAPER_AT_0),
            [values[k] for values in PAPER_AT_0.values()],
            color="black",
            marker=mark,
            linestyle="none",
            markersize=7,
            label=f"paper: {name}",
        )
