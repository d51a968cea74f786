"""Our solvers beside public and training-free ones on the same puzzles, and how our time and memory grow.

python benchmarks/peers.py [--gaps COMMAND] [--grid 8x10] [--erode 0,2] [--loose 4] [--pieces 9,25] [--sizes 9,25,...]

Puzzles are of the bundled pictures, so that anyone can run it. The first part is flush squares, upright with the grid
told, which is what the public solvers take. The second is squares and torn pieces at any angle with nothing told: the
default solver beside what reads outlines without any training. The third is turned squares, each size in a process of
its own for its memory.

`gaps` is nemanja-m's genetic solver, installed from its repository into an environment of its own
(git clone https://github.com/nemanja-m/gaps, pip install ./gaps): --gaps names that environment's `gaps`. The package
that PyPI calls gaps is something else, a solver of the generalised assignment problem.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from jigsync.api import solve
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.data import names, picture
from jigsync.evaluate.fingerprint import AUTO, networks, roots_of
from jigsync.io.files import write_json
from jigsync.io.images import read_rgb
from jigsync.score.cells import score
from jigsync.score.intervals import bootstrap_mean
from jigsync.score.poses import score_poses
from jigsync.score.touching import neighbour_accuracy
from jigsync.solution import Solution
from jigsync.studies.squares import same_pixels
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed, Placement
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

FREE = ("jigsync", "free:contours-plain", "jigsync-paper:contours-plain")
"""Solvers of the second part, without a measurer: what fits the fragments."""
OURS = ("jigsync:learned", "jigsync:boundary", "tree:mgc", "greedy:mgc", "genetic:mgc")
GAPS = "gaps"
PATIENCE = 600
"""Seconds after which a peer is given up on."""


@dataclass(frozen=True)
class Result:
    """One solver on one puzzle; direct counts identical fragments as one, cpu is of all cores together.

    Of fragments at any angle direct is the share of fragments right, and neighbour that of contacts right.
    """

    direct: float
    neighbour: float
    seconds: float
    cpu: float


@dataclass(frozen=True)
class Table:
    """What is printed, and kept by --out for docs/results.md; the first column is text, the others are figures."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def show(self) -> None:
        """Prints it."""
        widths = [max(len(row[k]) for row in (self.heads, *self.rows)) for k in range(len(self.heads))]
        print(self.title)
        for row in (self.heads, *self.rows):
            cells = (f"{row[k]:>{widths[k]}s}" if k else f"{row[k]:<{widths[k]}s}" for k in range(len(row)))
            print("  ".join(cells))
        print(f"{self.note}\n", flush=True)


class PeerError(Exception):
    """A peer could not be run; the sentence says why."""


# ------------------------------------------------------------------------------------------------ peers


def run_ours(name: str, puzzle: Puzzle, truth: Truth) -> Result:
    """One of our solvers, "solver:measurer"."""
    solver, _, measurer = name.partition(":")
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve(puzzle, solver, measurer=measurer or None, grid=truth.grid, upright=True)
    return judged(puzzle, truth, solution, time.perf_counter() - start, time.process_time() - cpu)


def run_gaps(command: Sequence[str], generations: int, population: int, puzzle: Puzzle, truth: Truth) -> Result:
    """The genetic solver: it takes a picture of shuffled squares and gives a picture of ordered ones."""
    inner = [trimmed(pixels) for pixels in puzzle.fragments.pixels]
    side = inner[0].shape[0]
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "puzzle.png", Path(folder) / "solution.png"
        Image.fromarray(joined(inner, truth.grid)).save(given)
        options = [f"--size={side}", f"--generations={generations}", f"--population={population}"]
        start, cpu = time.perf_counter(), children()
        try:
            done = subprocess.run(
                [*command, "run", str(given), str(made), *options], capture_output=True, text=True, timeout=PATIENCE
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerError(f"gaps was given up on: {error}") from None
        seconds, cpu = time.perf_counter() - start, children() - cpu
        if not made.is_file():
            told = (done.stderr or done.stdout).strip().splitlines()
            raise PeerError(f"gaps made no solution: {told[-1] if told else 'it said nothing'}")
        placement = read_back(np.asarray(Image.open(made).convert("RGB")), inner, puzzle.ids, truth.grid)
    solution = Solution("ok", "", truth.grid, placement, solver=GAPS, puzzle=puzzle)
    return judged(puzzle, truth, solution, seconds, cpu)


def children() -> float:
    """CPU seconds of all programs that were run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def trimmed(pixels: np.ndarray) -> np.ndarray:
    """The opaque square of a fragment: a peer that knows no transparency must not read the rim. -> (S, S, 3)."""
    rows = np.flatnonzero((pixels[..., 3] > 0).any(axis=1))
    cols = np.flatnonzero((pixels[..., 3] > 0).any(axis=0))
    return np.ascontiguousarray(pixels[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1, :3])


def joined(squares: Sequence[np.ndarray], grid: Grid) -> np.ndarray:
    """One picture of the squares as presented, row by row."""
    lines = [np.concatenate(squares[row * grid.cols : (row + 1) * grid.cols], axis=1) for row in range(grid.rows)]
    return np.concatenate(lines, axis=0)


def read_back(shown: np.ndarray, squares: Sequence[np.ndarray], ids: Sequence[str], grid: Grid) -> Placement:
    """Which fragment stands where in a peer's picture: the free one whose pixels are nearest, exact ones first."""
    side = squares[0].shape[0]
    if shown.shape[:2] != (grid.rows * side, grid.cols * side):
        raise PeerError(f"gaps made a picture of {shown.shape[1]} x {shown.shape[0]} pixels: the puzzle was another.")
    flat = np.stack(squares).reshape(len(squares), -1).astype(np.float32)
    cells = shown.reshape(grid.rows, side, grid.cols, side, 3).transpose(0, 2, 1, 3, 4).reshape(grid.size, -1)
    off = np.stack([np.abs(flat - cell).mean(axis=1) for cell in cells.astype(np.float32)])
    placement = {name: Placed.nowhere() for name in ids}
    for slot, k in zip(*np.unravel_index(np.argsort(off, axis=None, kind="stable"), off.shape), strict=True):
        if np.isfinite(off[slot, k]):
            row, col = grid.cell(int(slot))
            placement[ids[k]] = Placed.at(row, col, 0)
            off[slot], off[:, k] = np.inf, np.inf
    return placement


def judged(puzzle: Puzzle, truth: Truth, solution: Solution, seconds: float, cpu: float) -> Result:
    """Scores an upright solution."""
    near = neighbour_accuracy(solution.placement, truth.placement, puzzle.ids)
    return Result(same_pixels(puzzle, solution, truth), near, seconds, cpu)


def run_free(name: str, puzzle: Puzzle, truth: Truth) -> Result:
    """One of our solvers, "solver" or "solver:measurer", on fragments at any angle, told nothing."""
    solver, _, measurer = name.partition(":")
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve(puzzle, solver, measurer=measurer or None)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    found = score_poses(solution, truth, puzzle)
    return Result(found.right, found.contacts or 0.0, seconds, cpu)


def compare_free(options: argparse.Namespace) -> list[Table]:
    """The second part: clean squares at any angle, then torn pieces."""
    side = options.loose_side
    cuts: dict[str, Callable[[np.ndarray, int], tuple[Puzzle, Truth]]] = {}
    for n in (int(text) for text in options.loose.split(",") if text):
        cut = CutOptions(Grid(n, n), side, presentation="any")
        cuts[f"{n}x{n} clean squares"] = lambda rgb, seed, cut=cut: cut_picture(rgb, cut, seed)
    for pieces in (int(text) for text in options.pieces.split(",") if text):
        torn = TearOptions(pieces, side)
        cuts[f"{pieces} torn pieces"] = lambda rgb, seed, torn=torn: tear_picture(rgb, torn, seed)
    tables = []
    for what, make in cuts.items():
        puzzles = [make(read_rgb(picture(shown)), 7 + k) for k, shown in enumerate(names())]
        results = {name: [run_free(name, *puzzle) for puzzle in puzzles] for name in FREE}
        title = f"{what} of {side} pixels at any angle, nothing told, {len(puzzles)} pictures"
        note = (
            "Right within 5 degrees and 10 % of the size after one motion. No public program takes such puzzles here."
        )
        tables.append(compared(title, results, note, ("right", "contacts")))
        tables[-1].show()
    return tables


def compare(gaps: Sequence[str], options: argparse.Namespace) -> list[Table]:
    """The first part: one table an erosion."""
    peers: dict[str, Callable[[Puzzle, Truth], Result]] = {
        name: lambda puzzle, truth, name=name: run_ours(name, puzzle, truth) for name in options.solvers.split(",")
    }
    if gaps:
        peers[GAPS] = lambda puzzle, truth: run_gaps(gaps, options.generations, options.population, puzzle, truth)
    tables = []
    for erode in (int(text) for text in options.erode.split(",") if text):
        results: dict[str, list[Result]] = {}
        note = "" if gaps else "gaps is not here: name its command by --gaps (PyPI's gaps is another program)."
        cut = SquareOptions(options.side, options.grid, erode, turns=False)
        for name, run in peers.items():
            try:
                results[name] = [
                    run(*cut_squares(read_rgb(picture(shown)), cut, 7 + k)) for k, shown in enumerate(names())
                ]
            except PeerError as error:
                note = str(error)
        title = f"{options.grid} upright squares of {options.side} pixels, {erode} eroded, {len(names())} pictures"
        tables.append(compared(title, results, note))
        tables[-1].show()
    return tables


def compared(
    title: str,
    results: dict[str, list[Result]],
    note: str = "",
    shares_named: tuple[str, str] = ("direct", "neighbour"),
) -> Table:
    """Accuracy with intervals, seconds, and both as ratios of the first solver's; time ratios are of CPU time."""
    rng = np.random.default_rng(0)
    first = next(iter(results.values()))
    base, base_cpu = (np.mean([getattr(one, field) for one in first]) for field in ("direct", "cpu"))
    rows = []
    for name, found in results.items():
        shares = [bootstrap_mean([getattr(one, field) for one in found], rng) for field in ("direct", "neighbour")]
        seconds, cpu = (float(np.mean([getattr(one, field) for one in found])) for field in ("seconds", "cpu"))
        ratios = (shares[0].estimate / max(base, 1e-9), cpu / max(base_cpu, 1e-9))
        figures = (f"{value:.2f}" for value in (seconds, cpu, *ratios))
        rows.append((name, *(share.percent() for share in shares), *figures))
    return Table(title, ("solver", *shares_named, "s", "CPU s", "accuracy ratio", "time ratio"), rows, note)


# ------------------------------------------------------------------------------------------------ growth


def shape(n: int) -> Grid:
    """The most square grid of about n cells that is not wider than 2 : 1."""
    return min(
        (Grid(rows, cols) for rows in range(1, int(n**0.5) + 1) for cols in (round(n / rows),) if cols <= 2 * rows),
        key=lambda grid: (abs(grid.size - n), grid.cols - grid.rows),
    )


def one_size(grid: Grid, side: int, solver: str) -> dict[str, float | str | int]:
    """Measures and solves one turned puzzle in this process."""
    name, _, measurer = solver.partition(":")
    puzzle, truth = cut_squares(read_rgb(picture("coffee")), SquareOptions(side, grid), 11)
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve(puzzle, name, measurer=measurer or None, grid=truth.grid)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    near = neighbour_accuracy(solution.placement, truth.placement, puzzle.ids)
    direct = score(solution, truth).best4.aa_rot
    return {
        "grid": str(grid),
        "n": grid.size,
        "seconds": seconds,
        "cpu": cpu,
        "peak_mb": peak / 1024,
        "direct": direct,
        "neighbour": near,
    }


def growth(sizes: Sequence[int], side: int, solver: str) -> Table:
    """The second part; more MB is what a size takes above the first one, which holds the program and the picture."""
    rows: list[tuple[str, ...]] = []
    found = []
    failed = ""
    for n in sizes:
        told = [sys.executable, __file__, "--one", str(shape(n)), "--side", str(side), "--growth", solver]
        done = subprocess.run(told, capture_output=True, text=True)
        if done.returncode:
            failed = f"{shape(n)} failed: {' '.join(done.stderr.strip().splitlines()[-1:])} "
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        found.append(row)
        memory = (f"{row['peak_mb']:.0f}", f"{row['peak_mb'] - found[0]['peak_mb']:.0f}")
        shares = (f"{100 * row[name]:.1f} %" for name in ("direct", "neighbour"))
        rows.append((row["grid"], str(row["n"]), f"{row['seconds']:.2f}", f"{row['cpu']:.2f}", *memory, *shares))
        print(f"{row['grid']} done in {row['seconds']:.1f} s", file=sys.stderr)
    large = [row for row in found if row["n"] >= 100]
    note = failed
    if len(large) > 1:
        slope = np.polyfit(np.log([row["n"] for row in large]), np.log([row["cpu"] for row in large]), 1)[0]
        note += f"CPU time grows like N^{slope:.2f} from {large[0]['n']} fragments on."
    title = f"growth of {solver}: turned squares of {side} pixels, grid told, each size in a fresh process"
    return Table(title, ("grid", "N", "s", "CPU s", "peak MB", "more MB", "direct", "neighbour"), rows, note)


def _weights() -> str:
    """Every network that some solver may have run, by the first digits of its sha256."""
    found: dict[str, str] = {}
    for name in (*OURS, *FREE):
        solver, _, measurer = name.partition(":")
        found |= networks(roots_of(solver, measurer or AUTO), measurer)
    return " ".join(f"{name} {sha}" for name, sha in sorted(found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--gaps", default="", help="the command of nemanja-m's gaps, from its own environment")
    parser.add_argument("--generations", type=int, default=20, help="of gaps")
    parser.add_argument("--population", type=int, default=200, help="of gaps")
    parser.add_argument("--solvers", default=",".join(OURS), help="ours, as solver:measurer")
    parser.add_argument("--grid", type=Grid.parse, default=Grid(8, 10), help="rows x cols of the first part")
    parser.add_argument("--side", type=int, default=28, help="pixels of a square")
    parser.add_argument("--erode", default="0,2", help="pixels cut from every side, one table each")
    parser.add_argument("--loose", default="4", help="rows of the squares at any angle of the second part; empty: none")
    parser.add_argument("--pieces", default="9,25", help="torn pieces of the second part; empty: none")
    parser.add_argument("--loose-side", type=int, default=96, help="pixels of a square or piece of the second part")
    parser.add_argument("--sizes", default="9,25,100,400,1600,5000", help="fragments of the third part; empty: none")
    parser.add_argument("--growth", default=OURS[0], help="solver:measurer of the third part")
    parser.add_argument("--out", type=Path, help="keep the tables in this JSON file")
    parser.add_argument("--one", type=Grid.parse, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_size(options.one, options.side, options.growth)))
        return
    gaps = shlex.split(options.gaps)
    if gaps and shutil.which(gaps[0]) is None:
        parser.error(f"there is no command '{gaps[0]}'")
    tables = [*compare(gaps, options), *compare_free(options)]
    sizes = [int(text) for text in options.sizes.split(",") if text]
    if sizes:
        tables.append(growth(sizes, options.side, options.growth))
        tables[-1].show()
    if options.out is not None:
        given = f"--grid {options.grid} --erode {options.erode} --loose {options.loose} --pieces {options.pieces}"
        given += f" --sizes {options.sizes}"
        told = f"{'--gaps GAPS ' if gaps else ''}{given}"
        command = f"python benchmarks/peers.py {told}"
        write_json(options.out, {"command": command, "weights": _weights(), "tables": [vars(t) for t in tables]})


if __name__ == "__main__":
    main()
