"""The floors of answers that can be believed: piles of light and medium damage with fragments missing and foreign, and
of two pictures, in cells and torn, beside whole puzzles of the same size for the time.

    python benchmarks/piles.py PICTURES [--piles 60] [--seed 1] [--rows ROW ...]

Prints a line for each row: the share of the fragments that belong that is right, of the strangers left out, of true
fragments left out, of fragments in a component of their own picture, and the
seconds of processor time of a solve in the median.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from jigsync.corpus.recipes import NEEDED, Recipe, draw, make
from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import list_images, read_rgb
from jigsync.score.intervals import bootstrap_mean
from jigsync.studies.reliability import Judged, answered, flat, statuses

KINDS: Final = {
    "whole": "any",
    "missing and foreign": "missing",
    "two pictures": "two pictures",
}
LYING: Final = ("cell", "cropped", "any", "tears", "worn tears")
ROWS: Final = tuple(f"{kind}, {lying}" for lying in LYING for kind in KINDS)


def recipe_of(row: str, number: int, seed: int) -> Recipe:
    """1-3 missing and 0-3 foreign; 4 x 5 and 5 x 5; 12 to 25 pieces."""
    kind, lying = row.split(", ")
    return replace(draw(KINDS[kind], number, seed, floors=True), lying=lying)  # type: ignore[arg-type]


def line(row: str, group: list[Judged], rng: np.random.Generator) -> str:
    """What a row reached."""
    right = bootstrap_mean([one.share for one in group], rng).percent()
    out = [one.out for one in group if one.out is not None]
    left = f"{np.mean(out):6.1%}" if out else "     -"
    sure, true = flat(group)
    return (
        f"{row:32} {len(group):3} piles: right {right}, strangers out {left}, true ones left out"
        f" {np.mean([one.lost for one in group]):5.2%}, in their picture {np.mean([one.parted for one in group]):6.1%};"
        f" {sure.mean():.1%} sure, {true.mean():.1%} right; {statuses(group)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--piles", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS)
    asked = parser.parse_args()
    pictures, rng = list_images(asked.pictures), np.random.default_rng(asked.seed)
    for row in asked.rows:
        group, seconds = [], []
        for number in range(asked.piles):
            seed = derive_seed(asked.seed, "floors", row, number)
            order = np.random.default_rng(seed).permutation(len(pictures))[:NEEDED].tolist()
            made = make(recipe_of(row, number, seed), [read_rgb(pictures[k]) for k in order], seed)
            begun = time.process_time()
            group.append(answered(made, seed, threads=1))
            seconds.append(time.process_time() - begun)
        print(f"{line(row, group, rng)}; {np.median(seconds):.2f} s", flush=True)


if __name__ == "__main__":
    main()
