"""How measuring and solving grow from 100 to 22 755 squares of 28 pixels with unknown turns: seconds, memory, accuracy.

    python benchmarks/large.py [--pictures FOLDER] [--sizes 100,400,1600,5015,22755] [--out FILE]

The picture is a mosaic of 5180 x 3444 pixels, made of the folder's pictures at their own resolution, each fading into
the next over three squares so that seams never show, and mirrored when they come again. A size is a window of it, and
runs in a process of its own, grid told. `exponent` is the slope of log seconds over log N, from 100 on; CPU seconds are
those of all cores, which another program on the machine changes least.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jigsync import solve
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.data import names, picture
from jigsync.io.files import write_json
from jigsync.io.images import list_images, read_rgb
from jigsync.measure import registry
from jigsync.measure.parts import using_threads
from jigsync.score.cells import score
from jigsync.score.touching import neighbour_accuracy
from jigsync.values.layout import Grid

SIDE = 28
WHOLE = Grid(123, 185)
"""22 755 squares."""
FADE = 3 * SIDE
LEAST = 300
"""Pixels a side from which a picture is taken."""


def mosaic(files: Sequence[Path], height: int, width: int) -> NDArray[np.uint8]:
    """Pictures side by side, fading into each other. Shapes: -> (height, width, 3)."""
    pictures = [rgb for rgb in map(read_rgb, files) if min(rgb.shape[:2]) >= LEAST]
    tile = min(min(rgb.shape[:2]) for rgb in pictures)
    step = tile - FADE
    ramp = np.minimum(1, (np.minimum(np.arange(tile), np.arange(tile)[::-1]) + 0.5) / FADE)
    ramp = np.square(np.sin(np.pi / 2 * ramp))
    weight = (ramp[:, None] * ramp)[..., None].astype(np.float32)
    rows, cols = -(-height // step) + 1, -(-width // step) + 1
    total, weights = (np.zeros((rows * step + tile, cols * step + tile, depth), dtype=np.float32) for depth in (3, 1))
    for k in range(rows * cols):
        turn, which = divmod(k, len(pictures))
        rgb = pictures[which]
        top, left = ((size - tile) * (turn + 1) // (turn + 2) for size in rgb.shape[:2])
        part = rgb[top : top + tile, left : left + tile][:: -1 if turn & 2 else 1, :: -1 if turn & 1 else 1]
        at = np.s_[k // cols * step :, k % cols * step :]
        total[at][:tile, :tile] += part * weight
        weights[at][:tile, :tile] += weight
    whole = np.rint(total / np.maximum(weights, 1e-6)).astype(np.uint8)
    return whole[FADE : FADE + height, FADE : FADE + width]


def shape(n: int) -> Grid:
    """A window of about n squares, as wide for its height as the whole."""
    rows = max(1, round((n * WHOLE.rows / WHOLE.cols) ** 0.5))
    return Grid(min(rows, WHOLE.rows), min(round(n / rows), WHOLE.cols))


def one_size(whole: Path, grid: Grid, threads: int) -> dict[str, Any]:
    """Measures and solves one window of a picture in this process."""
    rgb = read_rgb(whole)
    top, left = (WHOLE.rows - grid.rows) // 2 * SIDE, (WHOLE.cols - grid.cols) // 2 * SIDE
    window = np.ascontiguousarray(rgb[top : top + grid.rows * SIDE, left : left + grid.cols * SIDE])
    del rgb
    puzzle, truth = cut_squares(window, SquareOptions(SIDE), 11)
    before, start, cpu = _peak(), time.perf_counter(), time.process_time()
    with using_threads(threads):
        measured = registry.get(registry.DEFAULT).measure(puzzle)
    measuring, measuring_cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{grid} measured in {measuring:.1f} s ({measuring_cpu:.1f} s of CPU)", file=sys.stderr)
    solution = solve(puzzle, measurements=measured, grid=grid, threads=threads)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {
        "grid": str(grid),
        "n": grid.size,
        "seconds": seconds,
        "cpu": cpu,
        "measuring": measuring,
        "measuring_cpu": measuring_cpu,
        "peak_mb": _peak(),
        "before_mb": before,
        "direct": score(solution, truth).best4.aa_rot,
        "neighbour": neighbour_accuracy(solution.placement, truth.placement, puzzle.ids),
    }


def _peak() -> float:
    """The most memory this process has held, in MB; getrusage counts what its parent held before it, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def exponent(rows: Sequence[dict[str, Any]], field: str) -> float:
    """Slope of log seconds over log N."""
    large = [row for row in rows if row["n"] >= 96]
    return float(np.polyfit(np.log([row["n"] for row in large]), np.log([row[field] for row in large]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pictures", type=Path, help="folder of pictures; else the bundled ones, again and again")
    parser.add_argument("--sizes", default="100,400,1600,5015,22755", help="fragments")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="keep the rows in this JSON file, after every size")
    parser.add_argument("--one", type=Grid.parse, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_size(options.pictures, options.one, options.threads)))
        return
    files = list_images(options.pictures) if options.pictures else [picture(name) for name in names()]
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "mosaic.png"
        Image.fromarray(mosaic(files, WHOLE.rows * SIDE, WHOLE.cols * SIDE)).save(whole, compress_level=1)
        grow(whole, [int(text) for text in options.sizes.split(",")], options.threads, options.out)


def grow(whole: Path, sizes: Sequence[int], threads: int, out: Path | None) -> None:
    """All sizes, a process each, and the exponent."""
    rows: list[dict[str, Any]] = []
    print("    grid       N        s    CPU s  measuring s  CPU s  peak MB  direct  neighbour")
    for n in sizes:
        told = [sys.executable, __file__, "--one", str(shape(n)), "--threads", str(threads), "--pictures", str(whole)]
        done = subprocess.run(told, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        print(
            f"{row['grid']:>8} {row['n']:7d} {row['seconds']:8.1f} {row['cpu']:8.1f} {row['measuring']:12.1f}"
            f" {row['measuring_cpu']:6.1f} {row['peak_mb']:8.0f} {row['direct']:7.2%} {row['neighbour']:9.2%}",
            flush=True,
        )
        if out is not None:
            write_json(out, {"side": SIDE, "rows": rows})
    if len(rows) > 1:
        print(f"exponent: {exponent(rows, 'seconds'):.2f} of seconds, {exponent(rows, 'cpu'):.2f} of CPU seconds")


if __name__ == "__main__":
    main()
