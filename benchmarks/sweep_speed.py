"""Puzzles per second on one core, in memory: severities, presentations, growth with n, memory, and torn pictures.

python benchmarks/sweep_speed.py [--seconds 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.handed import PRESENTATIONS
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.values.layout import Grid

TORN = {
    "tear": {},
    "tear, erosion 0.03": {"erosion": 0.03},
    "tear, erosion, rims, photometry": {"erosion": 0.03, "rim": 4.0, "photo": 0.1},
    "cuts": {"style": "cuts"},
    "knobs": {"style": "knobs"},
}


def rate(rgb: np.ndarray, options: CutOptions, seconds: float) -> float:
    """Puzzles a second, over at least three."""
    cut_picture(rgb, options, 0)
    start, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - start < seconds:
        count += 1
        cut_picture(rgb, options, count)
    return count / (time.perf_counter() - start)


def cost(once: Callable[[int], object], seconds: float) -> float:
    """Seconds of processor time of the fastest of at least three calls."""
    once(0)
    start, found = time.perf_counter(), list[float]()
    while len(found) < 3 or time.perf_counter() - start < seconds:
        before = time.process_time()
        once(len(found))
        found.append(time.process_time() - before)
    return min(found)


def _cut(rgb: np.ndarray, options: CutOptions, k: int) -> None:
    cut_picture(rgb, options, k % 8, redraw=False)


def _tear(rgb: np.ndarray, options: TearOptions, k: int) -> None:
    tear_picture(rgb, options, k)


def presentations(rgb: np.ndarray, seconds: float) -> None:
    """What a presentation costs beside "cell"; the same puzzles, fracture included."""
    print("severity   cell ms   cropped / cell   any / cell   (3 x 3, fastest)")
    for name, damage in SEVERITIES.items():
        ms = []
        for presentation in PRESENTATIONS:
            options = CutOptions(Grid(3, 3), damage=damage, presentation=presentation)
            ms.append(1000 * cost(partial(_cut, rgb, options), seconds))
        print(f"{name:8s}   {ms[0]:7.1f}   {ms[1] / ms[0]:14.2f}   {ms[2] / ms[0]:10.2f}")


def tears(rgb: np.ndarray, seconds: float) -> None:
    """12 pieces of a picture of one megapixel: scaled to pieces of 128 pixels, and at its own size."""
    large = cv2.resize(rgb, (1001, 1001), interpolation=cv2.INTER_CUBIC)
    print("12 pieces of 1001 x 1001 pixels    s, pieces of 128 px   s, of 289 px (not scaled)")
    for name, more in TORN.items():
        found = []
        for size in (128, 289):
            options = TearOptions.from_json({"pieces": 12, "size": size, **more})
            found.append(cost(partial(_tear, large, options), seconds))
        print(f"{name:32s}   {found[0]:19.3f}   {found[1]:12.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds a figure")
    seconds = parser.parse_args().seconds
    cv2.setNumThreads(1)
    rgb = read_rgb(picture("astronaut"))
    print(f"one core, in memory, P = 128, picture {rgb.shape[1]} x {rgb.shape[0]}")
    print("severity   puzzles/s at n = 3")
    for name, damage in SEVERITIES.items():
        print(f"{name:8s}   {rate(rgb, CutOptions(Grid(3, 3), damage=damage), seconds):8.1f}")
    presentations(rgb, seconds)
    tears(rgb, seconds)
    print("n    fragments/s at medium   peak memory")
    for n in (3, 5, 8, 10, 16):
        per_second = rate(rgb, CutOptions(Grid(n, n), damage=SEVERITIES["medium"]), seconds) * n * n
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{n:<4d} {per_second:21.0f}   {peak:8.0f} MB")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(100):
        cut_picture(rgb, CutOptions(Grid(3, 3), damage=SEVERITIES["medium"]), seed)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory grown over 100 further puzzles: {grown:.1f} MB")


if __name__ == "__main__":
    main()
