"""Study `reliability`: can the answers of the default solver be believed, on what people have?

One row for each kind of pile that the beliefs were fitted on (`corpus.recipes`), and for kinds that they were not:
maps, printed text and cartoons drawn by code, jigsaws with knobs, and published sets of fragments where their folder is
given. A fragment is right when it lies right towards its component (`score.piles`). A row has a curve: of the fragments
of which the answer is about 80 % sure, how many are right? An answer is good when four fifths of them are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.api import load, solve
from jigsync.belief import RIGHT
from jigsync.corpus.piles import Pile
from jigsync.corpus.pool import run_units
from jigsync.corpus.recipes import NEEDED, ROWS, Rgb, draw, make
from jigsync.corpus.sketches import KINDS, sketch
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.progress import Progress
from jigsync.io.images import read_rgb
from jigsync.io.truth_file import load_truth
from jigsync.learn.fit.belief import whole_picture
from jigsync.learn.fit.confidence import BINS, calibration_error
from jigsync.score.intervals import bootstrap_mean, wilson
from jigsync.score.piles import score_pile
from jigsync.score.sizes import sizes_of
from jigsync.studies.cues import pictures_of
from jigsync.studies.figure import COLOURS, figure
from jigsync.studies.result import Compared, StudyResult
from jigsync.values.errors import InputError

PILES, MANY = 20, 60
"""Piles of a row, and with --full."""
UNSEEN, KNOBS, SETS = "unseen kinds", "knobs", "published: "
PLAIN: Final = ("cell", "any", "tears")
"""How pictures of unseen kinds are parted, in turn."""
LARGEST: Final = 110
"""Fragments of a published puzzle, at most."""
COLS: Final = 4


@dataclass(frozen=True)
class Task:
    """One pile of a row; `folder` of a published one."""

    row: str
    number: int
    pictures: tuple[Path, ...]
    seed: int
    floors: bool = False
    folder: Path | None = None


@dataclass(frozen=True, eq=False)
class Judged:
    """One answer and what of it is right.

    Attributes:
        sure, right: of the fragments that have a place; (M,) each.
        status: of the answer.
        good: are four fifths of the fragments that belong right?
        whole: for every picture of the answer: how sure that it is whole, and is it.
        share: of the fragments that belong, the share right.
        out: share of strangers that were left out; None without strangers.
        lost: share of the fragments that belong and were left out.
        parted: share of the fragments that belong and are in a component of their picture.
        seconds: of the solve.
    """

    sure: NDArray[np.float64]
    right: NDArray[np.bool_]
    status: str
    good: bool
    whole: tuple[tuple[float, bool], ...]
    share: float
    out: float | None
    lost: float
    parted: float
    seconds: float


def run_task(task: Task, threads: int) -> Judged:
    """Makes and solves one pile."""
    return answered(_published(task.folder) if task.folder is not None else _made(task), task.seed, threads)


def answered(made: Pile, seed: int, threads: int) -> Judged:
    """Solves a pile and looks at what is right."""
    found = solve(made.puzzle, seed=seed % 2**31, threads=threads)
    ids = made.puzzle.ids
    scores = score_pile(found.placement, made.homes, ids, sizes_of(made.puzzle))
    sure = np.array([found.placement[name].confidence or 0.0 for name in ids])
    whole = tuple((p.whole, whole_picture(scores, p.component)) for p in found.pictures if p.whole is not None)
    return Judged(
        sure[scores.placed],
        scores.right[scores.placed],
        found.status,
        scores.share_right >= RIGHT,
        whole,
        scores.share_right,
        scores.strangers_out,
        scores.called_strangers,
        scores.parted,
        found.seconds,
    )


def _made(task: Task) -> Pile:
    if task.row == UNSEEN:
        pictures: list[Rgb] = [sketch(KINDS[task.number % len(KINDS)], task.seed % 2**31)] * NEEDED
        return make(
            draw(PLAIN[task.number // len(KINDS) % len(PLAIN)], task.number, task.seed, True), pictures, task.seed
        )
    pictures = [read_rgb(path) for path in task.pictures]
    return make(draw(task.row, task.number, task.seed, task.floors), pictures, task.seed)


def _published(folder: Path) -> Pile:
    truth = load_truth(folder / "truth.json")
    return Pile(load(folder / "puzzle"), (dict(truth.placement),))


def tasks_of(pictures: Sequence[Path], rows: Sequence[str], piles: int, seed: int, floors: bool = False) -> list[Task]:
    """So many piles of each row."""
    out = []
    for row in rows:
        for number in range(piles):
            own = derive_seed(seed, "reliability", row, number)
            order = np.random.default_rng(own).permutation(len(pictures)).tolist()
            chosen = tuple(pictures[order[k % len(order)]] for k in range(NEEDED))
            out.append(Task(row, number, chosen, own, floors))
    return out


def published(folder: Path) -> list[Task]:
    """A task for every puzzle of the sets in a folder that has a truth and is not too large."""
    if not folder.is_dir():
        raise InputError(f"There is no folder '{folder}' with sets of fragments.")
    truths = sorted(folder.glob("*/*/truth.json"))
    if not truths:
        raise InputError(
            f"The folder '{folder}' must hold sets of puzzles: SET/PUZZLE/truth.json and SET/PUZZLE/puzzle."
        )
    out = []
    for k, truth in enumerate(truths):
        home = truth.parent
        if (home / "puzzle").is_dir() and len(list((home / "puzzle" / "fragments").glob("*.png"))) <= LARGEST:
            out.append(Task(SETS + home.parent.name, k, (), 0, folder=home))
    return out


def run(
    full: bool,
    workers: int,
    seed: int,
    progress: Progress,
    images: Path | None = None,
    fragments: Path | None = None,
) -> StudyResult:
    """All rows."""
    tasks = tasks_of(pictures_of(images), (*ROWS, UNSEEN, KNOBS), MANY if full else PILES, seed)
    remark = "" if fragments else " The published sets were left out: name their folder with --fragments."
    tasks += [] if fragments is None else published(fragments)
    return run_tasks(tasks, workers, seed, progress, remark)


def judge(tasks: Sequence[Task], workers: int, progress: Progress) -> dict[str, list[Judged]]:
    """row -> its answers, in order."""
    done: dict[Task, Judged] = {}
    progress("reliability", 0, len(tasks))
    for task, judged in run_units(partial(run_task, threads=1 if workers > 1 else 2), tasks, workers):
        done[task] = judged
        progress("reliability", len(done), len(tasks))
    rows = dict.fromkeys(task.row for task in tasks)
    return {row: [done[task] for task in tasks if task.row == row] for row in rows}


def run_tasks(tasks: Sequence[Task], workers: int, seed: int, progress: Progress, remark: str) -> StudyResult:
    """The study on chosen piles."""
    groups = judge(tasks, workers, progress)
    rng = np.random.default_rng(seed)
    rows = [row for name, group in groups.items() for row in table(name, group)]
    return StudyResult(
        name="reliability",
        title="how sure answers are, and how often they are right",
        rows=rows,
        compared=[compare(name, group, rng) for name, group in groups.items()],
        verdict=verdict([one for group in groups.values() for one in group]) + remark,
        settings={"seed": seed, "piles": {name: len(group) for name, group in groups.items()}},
        plot=partial(_plot, rows),
    )


def table(name: str, group: Sequence[Judged]) -> list[dict[str, Any]]:
    """The curve of a row: one line for every bin of confidence that holds fragments."""
    confidence, right = flat(group)
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    rows = []
    for k in range(BINS):
        inside = bins == k
        if not inside.any():
            continue
        share = wilson(int(right[inside].sum()), int(inside.sum()))
        rows.append(
            {
                "row": name,
                "from": k / BINS,
                "to": (k + 1) / BINS,
                "fragments": share.n,
                "confidence": float(confidence[inside].mean()),
                "right": share.estimate,
                "right_low": share.low,
                "right_high": share.high,
            }
        )
    return rows


def flat(group: Sequence[Judged]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Confidences of all fragments with a place, and which are right."""
    return np.concatenate([g.sure for g in group]), np.concatenate([g.right for g in group])


def compare(name: str, group: Sequence[Judged], rng: np.random.Generator) -> Compared:
    """Mean confidence beside the share right; fragments of a pile go wrong together, so piles are resampled."""
    confidence, right = flat(group)
    surplus = bootstrap_mean([float(np.mean(g.sure - g.right)) for g in group if len(g.sure)], rng)
    said = [
        f"{confidence.mean():.1%} sure, {right.mean():.1%} right; calibration error"
        f" {calibration_error(confidence, right):.3f}",
        f"{np.mean([g.share for g in group]):.1%} of what belongs right",
    ]
    out = [g.out for g in group if g.out is not None]
    if out:
        said.append(f"{np.mean(out):.1%} of strangers left out")
    said.append(f"{np.mean([g.lost for g in group]):.1%} of what belongs left out")
    said.append(f"{statuses(group)}")
    return Compared(
        f"{name}: confidence above share right, {len(group)} piles, {len(right)} fragments",
        surplus.percent(),
        "-",
        "; ".join(said),
    )


def statuses(group: Sequence[Judged]) -> str:
    """How often answers that are called right are, and how many of the others are called unsure."""
    called = [g.good for g in group if g.status != "unsure"]
    bad = [g.status == "unsure" for g in group if not g.good]
    said = [f"of {len(called)} answers not called unsure {sum(called)} are good"]
    if bad:
        said.append(f"of {len(bad)} that are not good {sum(bad)} are called unsure")
    return ", ".join(said)


def verdict(group: Sequence[Judged]) -> str:
    """What holds over all rows."""
    confidence, right = flat(group)
    whole = [pair for one in group for pair in one.whole]
    sure = np.array([p for p, _ in whole])
    true = np.array([is_whole for _, is_whole in whole])
    return (
        f"Over all rows the calibration error is {calibration_error(confidence, right):.3f} and the Brier score"
        f" {np.mean((confidence - right) ** 2):.3f}; {statuses(group)}. Pictures are whole with a mean probability of"
        f" {sure.mean():.1%}, and {true.mean():.1%} are. Errors come by the pile: a row is calibrated as far as its"
        " piles are like those of the fit. Not a study of the paper's: it has no confidences."
    )


def _plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    names = list(dict.fromkeys(str(row["row"]) for row in rows))
    lines = -(-len(names) // COLS)
    with figure(path, lines, COLS, (2.6 * COLS, 2.7 * lines), squeeze=False) as (_, axes):
        for axis in axes.ravel()[len(names) :]:
            axis.set_axis_off()
        for axis, name in zip(axes.ravel(), names, strict=False):
            mine = [row for row in rows if row["row"] == name]
            at, share = [row["confidence"] for row in mine], [row["right"] for row in mine]
            below = [row["right"] - row["right_low"] for row in mine]
            above = [row["right_high"] - row["right"] for row in mine]
            axis.plot([0, 1], [0, 1], color="#888888", linestyle=":", lw=1.2)
            axis.errorbar(at, share, yerr=[below, above], color=COLOURS[0], marker="o", lw=1.4, capsize=3)
            axis.set(xlabel="confidence", ylabel="share right", xlim=(0, 1.02), ylim=(0, 1.02), title=name)
            axis.set_aspect("equal")
