"""What each step of `jigsync-paper` without a grid is worth: planted pose graphs, and torn pictures.

python benchmarks/poses.py [--seeds 10] [--pictures DIR]

Prints the share of fragments right after the best motion, with every switch of `PoseOptions` in turn, and the time of
the joint fit of 400 poses to 20 000 hypotheses.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from jigsync import data
from jigsync.api import tear_with_truth
from jigsync.measure import registry
from jigsync.score.motion import Pairs, best_motion
from jigsync.score.poses import SHARE
from jigsync.studies.planted_poses import Damage, Exists, plant_poses
from jigsync.sync.hypotheses import ordered
from jigsync.sync.pose_graph import covariances, refine
from jigsync.sync.poses import PLAIN, PoseOptions, PoseResult, synchronize_poses
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses

DEFAULT = PoseOptions()
OPTIONS = {
    "default": DEFAULT,
    "no loops": replace(DEFAULT, loops=False),
    "cycle filter, no loops": replace(DEFAULT, loops=False, cycle_filter=True),
    "not iterated": replace(DEFAULT, iterated=False),
    "not truncated": replace(DEFAULT, truncated=False),
    "no joint fit": replace(DEFAULT, joint=False),
    "the paper's steps alone": PLAIN,
}
LADDER = {
    "honest noise": Damage(noise=1.0),
    "a few outliers": Damage(noise=1.0, replaced=0.1, rivals=0.3, strays=0.3),
    "2.7 wrong per true": Damage(noise=1.0, replaced=0.2, rivals=1.0, strays=1.0),
    "three times too sure": Damage(noise=3.0, replaced=0.1, rivals=0.3, strays=0.3),
}
SIZES = (9, 36, 100)
TORN = ((16, 0.02), (36, 0.0), (36, 0.02), (36, 0.04), (64, 0.0))


def right(found: PoseResult, angle: np.ndarray, xy: np.ndarray, size: np.ndarray) -> float:
    """Share right, by the component of which most are."""
    best = 0
    for part in range(int(found.component.max()) + 1):
        own = found.component == part
        answer = Pairs(angles.wrap(angle - found.angle), found.xy, xy, SHARE * size).keep(own)
        motion = best_motion(answer)
        best = max(best, 0 if motion is None else int(answer.right(motion).sum()))
    return best / len(angle)


def planted(seeds: int) -> None:
    print("planted pose graphs: fragments right\n")
    print("| damage | fragments | " + " | ".join(OPTIONS) + " |")
    print("|---|---:|" + "---:|" * len(OPTIONS))
    for name, damage in LADDER.items():
        for n in SIZES:
            made = [plant_poses(Exists(n), damage, np.random.default_rng([n, s, 7])) for s in range(seeds)]
            row = [
                np.mean([right(synchronize_poses(p.hypotheses, o), p.angle, p.xy, p.size) for p in made])
                for o in OPTIONS.values()
            ]
            print(f"| {name} | {n} | " + " | ".join(f"{share:.2f}" for share in row) + " |", flush=True)


def torn(pictures: list[Path]) -> None:
    print(f"\n{len(pictures)} torn pictures, measured by 'contours': fragments right\n")
    print("| pieces | erosion | " + " | ".join(OPTIONS) + " |")
    print("|---:|---:|" + "---:|" * len(OPTIONS))
    measurer = registry.get("contours")
    for pieces, erosion in TORN:
        shares: dict[str, list[float]] = {name: [] for name in OPTIONS}
        for seed, picture in enumerate(pictures):
            puzzle, truth = tear_with_truth(picture, pieces, seed, size=110, erosion=erosion)
            measured = measurer.measure(puzzle)
            poses = [truth.placement[name].pose for name in puzzle.ids]
            angle = np.array([pose.angle for pose in poses if pose is not None])
            xy = np.array([pose.xy for pose in poses if pose is not None])
            size = np.array([np.sqrt((pixels[..., 3] / 255.0).sum()) for pixels in puzzle.fragments.pixels])
            for name, options in OPTIONS.items():
                shares[name].append(right(synchronize_poses(measured.hypotheses(), options), angle, xy, size))
        row = " | ".join(f"{np.mean(share):.2f}" for share in shares.values())
        print(f"| {pieces} | {erosion} | {row} |", flush=True)


def speed(n: int = 400, count: int = 20_000) -> None:
    rng = np.random.default_rng(0)
    made = plant_poses(Exists(n), Damage(noise=1.0), rng)
    found = ordered(made.hypotheses)
    wrong = count - len(found)
    i = rng.integers(0, n, wrong)
    pose = rng.uniform(-3, 3, wrong), rng.normal(0, 100, (wrong, 2))
    information = found.information[rng.integers(0, len(found), wrong)]
    noise = PairHypotheses(n, i, (i + rng.integers(1, n, wrong)) % n, *pose, np.zeros(wrong), information)
    every = found.joined(noise)
    start = made.angle + rng.normal(0, 0.05, n), made.xy + rng.normal(0, 10, (n, 2))
    cpu = time.process_time()
    fitted = refine(every, np.ones(count), *start, width=4.0, start_width=30.0)
    fit_cpu = time.process_time() - cpu
    covariances(every, fitted.weight, fitted.angle, fitted.xy)
    both = time.process_time() - cpu
    off = float(np.sort(fitted.chi2[: len(found)])[len(found) // 2])
    print(
        f"\n{n} poses, {count} hypotheses, {len(found)} of them true: {fit_cpu:.2f} s of CPU for {fitted.rounds} steps,"
        f" {both - fit_cpu:.2f} s for the covariances; median chi-squared of the true ones {off:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--pictures", type=Path, help="folder of pictures to tear; the bundled ones without it")
    args = parser.parse_args()
    pictures = [Path(data.picture(name)) for name in data.names()]
    if args.pictures is not None:
        pictures = sorted(path for path in args.pictures.iterdir() if path.is_file())
    planted(args.seeds)
    torn(pictures)
    speed()


if __name__ == "__main__":
    main()
