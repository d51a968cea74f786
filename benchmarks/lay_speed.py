"""Photographs of 20 fragments on one core, in memory: seconds for every kind of table, and peak memory.

python benchmarks/lay_speed.py [--width 4000] [--times 2]
"""

from __future__ import annotations

import argparse
import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.lay import lay_puzzle
from jigsync.cutting.lay_options import LayOptions
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.palettes import KINDS
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.values.layout import Grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4000, help="of the photograph; its height is 3/4 of it")
    parser.add_argument("--times", type=int, default=2, help="photographs for a figure")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    options = CutOptions(Grid(4, 5), cell=256, damage=SEVERITIES["medium"])
    puzzle, _ = cut_picture(read_rgb(picture("coffee")), options)
    print("table        seconds of one core")
    for kind in KINDS:
        lay = LayOptions(width=args.width, height=args.width * 3 // 4, background=kind)
        start = time.process_time()
        for seed in range(args.times):
            lay_puzzle(puzzle, lay, seed)
        print(f"{kind:<12} {(time.process_time() - start) / args.times:19.2f}")
    print(f"peak memory  {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:16.0f} MB")


if __name__ == "__main__":
    main()
