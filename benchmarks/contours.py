"""What the contour measurer reaches, before anything is put together: hypotheses of pairs against the truth.

    python benchmarks/contours.py PICTURES [--puzzles 4] [--kinds KIND ...] [--measurer contours-plain] [--weights FILE]
    python benchmarks/contours.py --folders SET/PUZZLE ... [--measurer contours-plain] [--weights FILE]

Every row is a kind of puzzle, cut from the pictures, or a folder with puzzle/ and truth.json:

    best N     share of true hypotheses (10 degrees, 11 % of the size) among the N likeliest of N fragments
    recall     share of true contacts, as the generator knows them, that have a true hypothesis
    nll        mean -log p of hypotheses, true or false, by their log-odds
    angle, xy  median errors of the true ones, degrees and % of the size
    seconds    of one thread's CPU time, per puzzle: outlines and features, codes, the rest

Folders are for measuring, never for choosing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import list_images
from jigsync.io.puzzle_folder import load_puzzle
from jigsync.io.truth_file import load_truth
from jigsync.learn.contours_mixture import Kind, Swept, Torn, draw_puzzle
from jigsync.measure.contour_reading import read
from jigsync.measure.contours import load_contours
from jigsync.measure.contours_plain import ODDS, plain_codes
from jigsync.measure.outline import read_outlines
from jigsync.measure.outline_features import features
from jigsync.score.hypotheses import are_true, hypothesis_scores, poses_of
from jigsync.values import angles
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


def worn(pieces: int, erosion: float, size: int = 110) -> Torn:
    """Tears with a share of the size off every edge."""
    return Torn(1, erosion=(erosion, erosion), pieces=(pieces, pieces), size=(size, size))


def swept(shape: float, erosion: float, photo: float, rows: int) -> Swept:
    """Met-Sweep at one severity."""
    return Swept(1, (shape, shape), (erosion, erosion), (photo, photo), (rows, rows), (110, 110))


KINDS: Final[Mapping[str, Kind]] = {
    **{f"tear {n}, {100 * e:g} % off": worn(n, e) for e in (0.0, 0.02, 0.04) for n in (9, 25)},
    "tear 100": worn(100, 0.0, 64),
    "tear 100, 2 % off": worn(100, 0.02, 64),
    "clean squares 5 x 5": swept(0, 0, 0, 5),
    "light 3 x 3": swept(8, 0.05, 0.05, 3),
    "medium 3 x 3": swept(16, 0.10, 0.10, 3),
    "heavy 3 x 3": swept(24, 0.10, 0.20, 3),
    "severe 3 x 3": swept(32, 0.20, 0.20, 3),
    "eroded 3 x 3": swept(0, 0.20, 0.10, 3),
    "medium 5 x 5": swept(16, 0.10, 0.10, 5),
}


def puzzles(args: argparse.Namespace) -> Iterator[tuple[str, Puzzle, Truth]]:
    """(row, puzzle, truth)."""
    for folder in args.folders:
        yield folder.name, load_puzzle(folder / "puzzle"), load_truth(folder / "truth.json")
    if args.pictures is None:
        return
    pictures = [list_images(args.pictures)]
    for name in args.kinds or KINDS:
        for k in range(args.puzzles):
            puzzle, truth, _ = draw_puzzle(pictures, {name: KINDS[name]}, derive_seed("benchmark"), k)
            yield name, puzzle, truth


def row_of(puzzle: Puzzle, truth: Truth, plain: bool, weights: Path | None) -> list[float]:
    """The numbers of one puzzle."""
    clock = [time.process_time()]
    outlines, scans = read_outlines(puzzle)
    seen = features(puzzle, outlines, scans)
    clock.append(time.process_time())
    model = None if plain else load_contours(weights)
    codes = plain_codes(seen, outlines.start) if model is None else model.encode(seen, outlines.start)
    clock.append(time.process_time())
    made = read(outlines, scans, codes)
    found = made.judged(np.array(ODDS) if model is None else model.odds).found
    clock.append(time.process_time())
    poses = poses_of(truth.placement, puzzle.ids)
    true = are_true(found, poses, made.size)
    number = {name: k for k, name in enumerate(puzzle.ids)}
    pairs = [sorted((number[a], number[b])) for a, b in truth.contacts or ()]
    scores = hypothesis_scores(found, true, [(a, b) for a, b in pairs])
    odds = np.where(true, found.log_odds, -found.log_odds)
    offs = [
        (
            np.degrees(abs(angles.wrap(float(found.angle[k]) - pose.angle))),
            100 * np.hypot(*(found.xy[k] - pose.xy)) / made.size,
        )
        for k in np.flatnonzero(true)
        for pose in [poses[found.i[k]].between(poses[found.j[k]])]
    ]
    turn, away = np.median(offs, axis=0) if offs else (np.nan, np.nan)
    recall = scores.recall if truth.contacts else np.nan
    nll = float(np.logaddexp(0, -odds).mean()) if len(odds) else np.nan
    return [scores.best, recall, nll, turn, away, made.gap / made.size, *np.diff(clock)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", type=Path, nargs="?")
    parser.add_argument("--folders", type=Path, nargs="*", default=[])
    parser.add_argument("--puzzles", type=int, default=4)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS))
    parser.add_argument("--measurer", choices=("contours", "contours-plain"), default="contours")
    parser.add_argument("--weights", type=Path)
    args = parser.parse_args()
    rows: dict[str, list[list[float]]] = {}
    for name, puzzle, truth in puzzles(args):
        rows.setdefault(name, []).append(row_of(puzzle, truth, args.measurer == "contours-plain", args.weights))
    print(f"{'':22s} {'n':>3s} {'best N':>7s} {'recall':>7s} {'nll':>6s} {'angle':>6s} {'xy':>5s} {'gap':>6s}  seconds")
    for name, found in rows.items():
        best, recall, nll, turn, away, gap, *seconds = np.nanmean(np.array(found), axis=0)
        spent = " ".join(f"{second:.2f}" for second in seconds)
        scores = f"{best:7.3f} {recall:7.3f} {nll:6.3f} {turn:6.2f} {away:5.1f} {gap:6.3f}"
        print(f"{name:22s} {len(found):3d} {scores}  {spent}")


if __name__ == "__main__":
    main()
