"""Puzzles a second on one core, in memory: for each severity at n = 3, its growth with n, and memory.

python benchmarks/sweep_speed.py [--seconds 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.values.layout import Grid


def rate(rgb: np.ndarray, options: CutOptions, seconds: float) -> float:
    """Puzzles a second, over at least three."""
    cut_picture(rgb, options, 0)
    start, count = time.perf_counter(), 0
    while count < 3 or time.perf_counter() - start < seconds:
        count += 1
        cut_picture(rgb, options, count)
    return count / (time.perf_counter() - start)


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
