"""Fits how far answers can be believed, on piles of every kind made of a folder of pictures.

Every pile is solved as a user would solve it. What the solver said and what was right is kept beside the output, a line
for each pile, so that a run that was stopped goes on where it was. Half of the pictures fit, the other half measures;
what ships is fitted on all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from jigsync.api import drafted
from jigsync.belief import FORMAT, READINGS, RIGHT, Belief, Said, fit
from jigsync.corpus.pool import run_units
from jigsync.corpus.recipes import NEEDED, ROWS, draw, make
from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import read_rgb
from jigsync.learn.fit.confidence import calibration_error
from jigsync.score.piles import PileScores, score_pile
from jigsync.score.sizes import sizes_of
from jigsync.values.puzzle import Puzzle

Floats = NDArray[np.float64]
START: Final = {"fragments": [0.7, 0.3, 0.0, 0.0, 0.0], "whole": [1.0, 0.0, 0.0], "right": [1.0, 0.5, 0.0, 0.0]}
RISING: Final = {"fragments": 2, "whole": 2, "right": 2}
TRUE_OK, CAUGHT = 0.96, 0.92
"""Of answers called right, this share is, and of the others this share is not called so: what `ok` is chosen for."""


@dataclass(frozen=True)
class Task:
    """One pile: its row, its number in it, and the pictures."""

    row: str
    number: int
    pictures: tuple[Path, ...]
    seed: int

    @property
    def key(self) -> str:
        """What names it in the kept lines."""
        return f"{self.row}/{self.number}/{self.seed}/{','.join(path.name for path in self.pictures)}"


@dataclass(frozen=True, eq=False)
class Seen:
    """One solved pile: what was said and what is right.

    Attributes:
        row: its kind.
        half: is it of the pictures that fit?
        said: by the solver.
        right: (N,) is the fragment right towards its component?
        whole: component -> is the picture whole?
        good: are four fifths of the fragments that belong right?
    """

    row: str
    half: bool
    said: Said
    right: NDArray[np.bool_]
    whole: dict[int, bool]
    good: bool


def tasks_of(pictures: Sequence[Path], piles: int, seed: int) -> list[Task]:
    """`piles` of every row, each of pictures of one half."""
    halves = pictures[::2], pictures[1::2]
    out = []
    for number in range(piles):
        for row in ROWS:
            own = derive_seed(seed, "belief", row, number)
            half = halves[number % 2] or halves[0]
            order = np.random.default_rng(own).permutation(len(half)).tolist()
            chosen = [half[order[k % len(order)]] for k in range(NEEDED)]
            out.append(Task(row, number, tuple(chosen), own))
    return out


def run_task(task: Task, threads: int) -> dict[str, Any]:
    """Solves one pile: plain values, to be kept."""
    made = make(draw(task.row, task.number, task.seed), [read_rgb(path) for path in task.pictures], task.seed)
    return {"task": task.key, "row": task.row, "half": task.number % 2 == 0, **judged(made.puzzle, made.homes, threads)}


def judged(puzzle: Puzzle, homes: Sequence[Any], threads: int) -> dict[str, Any]:
    """What the solver says of a pile, and what of it is right: plain values."""
    draft = drafted(puzzle, threads=threads)
    found = score_pile(draft.solution.placement, homes, puzzle.ids, sizes_of(puzzle))
    said = Said.of(draft.solution, draft.reading or "free", frozenset())
    return {
        "reading": said.reading,
        "sure": [round(float(p), 5) for p in said.sure],
        "component": said.component.tolist(),
        "right": found.right.astype(int).tolist(),
        "whole": {str(label): whole_picture(found, label) for label in set(said.component.tolist()) - {-1}},
        "good": found.share_right >= RIGHT,
    }


def whole_picture(found: PileScores, label: int) -> bool:
    """Are all fragments of a component right, and does none of its picture lie elsewhere?"""
    mine = found.component == label
    number = int(found.picture[mine][0])
    return bool(found.right[mine].all() and (found.component[found.home == number] == label).all())


def parsed(line: dict[str, Any]) -> Seen:
    """The inverse of `run_task`."""
    sure = np.array(line["sure"])
    said = Said(
        line["reading"],
        sure,
        np.array(line["component"], dtype=np.int64),
        np.zeros(len(sure), dtype=bool),
        np.zeros(len(sure), dtype=bool),
    )
    whole = {int(label): bool(value) for label, value in line["whole"].items()}
    return Seen(line["row"], bool(line["half"]), said, np.array(line["right"], dtype=bool), whole, bool(line["good"]))


def calibrate(
    pictures: Sequence[Path],
    piles: int,
    seed: int,
    command: str,
    kept: Path,
    workers: int,
    tick: Callable[[int, int], None],
) -> dict[str, Any]:
    """Everything that belief.json holds."""
    tasks = tasks_of(pictures, piles, seed)
    lines = {line["task"]: line for line in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    todo = [task for task in tasks if task.key not in lines]
    tick(len(tasks) - len(todo), len(tasks))
    with kept.open("a", encoding="utf-8") as file:
        for task, line in run_units(partial(run_task, threads=1), todo, workers):
            lines[task.key] = line
            file.write(json.dumps(line) + "\n")
            file.flush()
            tick(len(lines), len(tasks))
    seen = [parsed(lines[task.key]) for task in tasks]
    held_out = fitted([one for one in seen if one.half])
    return {
        "format": FORMAT,
        **fitted(seen).to_json(),
        "data": f"{len(pictures)} pictures, {len(tasks)} piles; held out: fitted on half of the pictures alone",
        "command": command,
        "seed": seed,
        "held_out": {row: measured(held_out, [o for o in seen if not o.half and o.row == row]) for row in ROWS},
    }


def fitted(seen: Sequence[Seen]) -> Belief:
    """The numbers of every reading; a pile weighs the same whatever its size, as its fragments go wrong together."""
    tables: dict[str, dict[str, Floats]] = {name: {} for name in START}
    start = {name: np.array(value) for name, value in START.items()}
    p: dict[int, Floats] = {}
    for reading in READINGS:
        mine = [one for one in seen if one.said.reading == reading and (one.said.component >= 0).any()]
        rows = [(one.said.fragments()[one.said.component >= 0], one) for one in mine]
        theta = _logistic("fragments", start, [(x, one.right[one.said.component >= 0], 1 / len(x)) for x, one in rows])
        tables["fragments"][reading] = theta
        for one in mine:
            p[id(one)] = np.where(one.said.component >= 0, expit(one.said.fragments() @ theta), 0.0)
        pictures = [
            (one.said.picture(p[id(one)], label)[None], np.array([good]), 1.0)
            for one in mine
            for label, good in one.whole.items()
        ]
        tables["whole"][reading] = _logistic("whole", start, pictures)
        answers = [(one.said.answer(p[id(one)])[None], np.array([one.good]), 1.0) for one in mine]
        tables["right"][reading] = _logistic("right", start, answers)
    right = np.array([_right(tables["right"], one, p[id(one)]) for one in seen if id(one) in p])
    good = np.array([one.good for one in seen if id(one) in p])
    return Belief(tables["fragments"], tables["whole"], tables["right"], threshold(right, good))


def _right(tables: dict[str, Floats], one: Seen, p: Floats) -> float:
    return float(expit(one.said.answer(p) @ tables[one.said.reading]))


def _logistic(name: str, start: dict[str, Floats], groups: Sequence[tuple[Floats, NDArray[np.bool_], float]]) -> Floats:
    if not groups:
        return start[name]
    x, right = np.concatenate([g[0] for g in groups]), np.concatenate([g[1] for g in groups])
    weight = np.concatenate([np.full(len(g[0]), g[2]) for g in groups])
    return fit(x, right, weight, RISING[name], start[name])


def threshold(right: Floats, good: NDArray[np.bool_]) -> float:
    """The least probability from which answers are called right, so that nearly all of them are."""
    for least in np.arange(0.5, 0.99, 0.01):
        called = right >= least
        true = good[called].mean() if called.any() else 1.0
        caught = (~called[~good]).mean() if (~good).any() else 1.0
        if true >= TRUE_OK and caught >= CAUGHT:
            return round(float(least), 2)
    return 0.95


def measured(belief: Belief, seen: Sequence[Seen]) -> dict[str, float]:
    """How well a row is believed: mean confidence beside the share right, and the calibration error."""
    with_place = [one for one in seen if (one.said.component >= 0).any()]
    if not with_place:
        return {"piles": len(seen)}
    p = [belief.p(one.said)[one.said.component >= 0] for one in with_place]
    right = [one.right[one.said.component >= 0] for one in with_place]
    flat, truth = np.concatenate(p), np.concatenate(right)
    return {
        "piles": len(seen),
        "fragments": len(flat),
        "sure": round(float(flat.mean()), 4),
        "right": round(float(truth.mean()), 4),
        "calibration_error": round(calibration_error(flat, truth), 4),
        "brier": round(float(np.mean((flat - truth) ** 2)), 4),
    }
