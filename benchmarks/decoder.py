"""What the decoder reaches, against the true placement's score and against time, at n = 3, 5, 10 and 20.

    python benchmarks/decoder.py [--puzzles 4] [--severity medium] [--images DIR] [--json]

Every row is one way to decode the same measurements:

    growth     best-first growth alone, the best of eight
    anneal     annealing alone, from anywhere
    one run    growth, annealing, large-neighbourhood search, once
    effort e   the whole search with a share e of its work

`gap` is (score - true score) / |true score|: negative when the search stayed below the truth, positive when the
measurements prefer something else. Times are ratios to the whole search of the same puzzle in this run, and the whole
search's own time is printed in seconds for orientation only.

The last lines judge the links of engine/src/links.c: how often a side's true partner comes first by score and
by matching and loops, on planted 10 x 10 puzzles.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jigsync import data
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, severity
from jigsync.engine.library import Plan
from jigsync.engine.problem import Codes, CompiledProblem, codes_of
from jigsync.engine.search import COLD, GROWTHS, HOT, LNS, effort_for, solve_map
from jigsync.io.images import list_images, read_rgb
from jigsync.learn.fit.confidence import right_fragments
from jigsync.measure import registry
from jigsync.studies.planted import plant, true_pairs
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed

SIDES = {3: 128, 5: 128, 10: 64, 20: 64}
"""n -> pixels of a cell."""
WHOLE = "effort 1"


def ways(problem: CompiledProblem, scores: Any, grid: Grid) -> dict[str, Callable[[], Codes]]:
    """name -> one way to decode."""
    work = effort_for(problem.n, 1.0)
    heat = {"hot": HOT, "cold": COLD, "lns": LNS}
    everything = work.restarts * work.moves
    rng = np.random.default_rng(0)
    anywhere = codes_of(rng.permutation(problem.n), rng.integers(0, 4, problem.n))

    def whole(effort: float) -> Codes:
        found = solve_map(scores, grid, effort=effort)
        return codes_of(found.slots, found.turns)

    return {
        "growth": lambda: problem.run(1, Plan(grow=GROWTHS))[0],
        "anneal": lambda: problem.run(1, Plan(moves=everything, **heat), anywhere)[0],
        "one run": lambda: problem.run(1, Plan(moves=work.moves, rounds=work.neighbourhoods, grow=GROWTHS, **heat))[0],
        "effort 0.03": lambda: whole(0.03),
        "effort 0.2": lambda: whole(0.2),
        WHOLE: lambda: whole(1.0),
    }


def decode(picture: Path, n: int, damage: str, seed: int) -> list[dict[str, Any]]:
    """One puzzle, all ways."""
    options = CutOptions(Grid(n, n), SIDES[n], severity(damage))
    puzzle, truth = cut_picture(read_rgb(picture), options, seed)
    scores, grid = registry.get("boundary").measure(puzzle).sides(), truth.grid
    problem = CompiledProblem(scores, grid)
    placed = [truth.placement[name] for name in puzzle.ids]
    true = problem.score(
        codes_of(np.array([grid.slot(p.row, p.col) for p in placed]), np.array([p.turns for p in placed]))
    )
    rows = []
    for way, run in ways(problem, scores, grid).items():
        start = time.perf_counter()
        poses = run()
        seconds = time.perf_counter() - start
        answer = {
            name: Placed.at(*grid.cell(pose >> 2), pose & 3)
            for name, pose in zip(puzzle.ids, poses.tolist(), strict=True)
        }
        right = right_fragments(answer, grid, truth.placement, grid, puzzle.ids)
        gap = (problem.score(poses) - true) / abs(true)
        rows.append({"n": n, "way": way, "gap": gap, "right": float(right.mean()), "seconds": seconds})
    whole = next(row["seconds"] for row in rows if row["way"] == WHOLE)
    return [row | {"time_ratio": row["seconds"] / whole} for row in rows]


def links(puzzles: int) -> dict[str, float]:
    """Share of sides whose true partner comes first, by score and by link."""
    by_score, by_link = [], []
    for seed in range(puzzles):
        planted = plant(Grid(10, 10), 0.6, np.random.default_rng(seed))
        dense = planted.scores.to_dense().copy()
        own = np.arange(len(dense)) // 4
        dense[own[:, None] == own] = -np.inf
        first = CompiledProblem(planted.scores, planted.grid).links()[0][:, 0]
        pairs = true_pairs(planted)
        s, t = np.concatenate([pairs, pairs[:, ::-1]]).T
        by_score.append(np.mean(dense.argmax(axis=1)[s] == t))
        by_link.append(np.mean(first[s] == t))
    return {"first_by_score": float(np.mean(by_score)), "first_by_link": float(np.mean(by_link))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzles", type=int, default=4, help="puzzles a size")
    parser.add_argument("--severity", default="medium")
    parser.add_argument("--images", type=Path, help="folder of pictures; the bundled ones otherwise")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    pictures = list_images(args.images) if args.images else [data.picture(name) for name in data.names()]
    table = []
    for n in SIDES:
        runs = [decode(pictures[k % len(pictures)], n, args.severity, k) for k in range(args.puzzles)]
        for column in zip(*runs, strict=True):
            mean = {
                key: float(np.mean([row[key] for row in column])) for key in ("gap", "right", "seconds", "time_ratio")
            }
            reached = float(np.mean([row["gap"] > -1e-6 for row in column]))
            table.append({"n": n, "way": column[0]["way"], "reached": reached, **mean})
    judged = links(args.puzzles)
    if args.json:
        print(json.dumps({"severity": args.severity, "puzzles": args.puzzles, "table": table, "links": judged}))
        return
    print(f"{args.severity}, {args.puzzles} puzzles a size, grid known, turned")
    print(f"{'n':>3} {'way':12} {'reached the truth':>18} {'gap':>9} {'right':>7} {'time ratio':>11} {'seconds':>8}")
    for row in table:
        seconds = f"{row['seconds']:8.2f}" if row["way"] == WHOLE else ""
        print(
            f"{row['n']:3} {row['way']:12} {row['reached']:18.0%} {row['gap']:+9.2%} {row['right']:7.1%}"
            f" {row['time_ratio']:11.2f} {seconds}"
        )
    print(f"true partner first by score {judged['first_by_score']:.1%}, by link {judged['first_by_link']:.1%}")


if __name__ == "__main__":
    main()
