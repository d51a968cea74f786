"""Study `real`: sets of fragments that nobody here made, by the measures of ours and by those of others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from jigsync.evaluate.found import from_fragments
from jigsync.evaluate.progress import Progress
from jigsync.evaluate.scores import Scored
from jigsync.evaluate.table import Line
from jigsync.score.theirs import Q_POS
from jigsync.studies.evaluated import by_method, line_row, plot_lines, run_specs, told, whole
from jigsync.studies.result import Compared, StudyResult

PUZZLES: Final = 3
"""Of every set unless --full."""
SOLVERS: Final = ("jigsync", "free:contours-plain")


def run(full: bool, workers: int, seed: int, progress: Progress, fragments: Path) -> StudyResult:
    """A few puzzles of every set; all of them when `full`."""
    return run_sets(fragments, None if full else PUZZLES, SOLVERS, workers, seed, progress)


def run_sets(
    fragments: Path, puzzles: int | None, solvers: tuple[str, ...], workers: int, seed: int, progress: Progress
) -> StudyResult:
    """The study with chosen solvers."""
    specs, skipped = from_fragments(fragments, puzzles, seed)
    found = run_specs("real", specs, solvers, (), seed, workers, progress, theirs=True)
    lines = whole(found)
    return StudyResult(
        name="real",
        title="fragments that nobody here made: fragments right",
        rows=[_puzzle_row(one) for one in found.scored] + [{"puzzle": "all", **line_row(line)} for line in lines],
        compared=[_compared(line) for line in lines],
        verdict=_verdict(lines, [entry.reason for entry in skipped]),
        settings={
            "puzzles": len(specs),
            "sets": sorted({spec.setting.form for spec in specs}),
            "seed": seed,
        },
        plot=partial(_plot, lines),
    )


def _puzzle_row(one: Scored) -> dict[str, Any]:
    head = {"puzzle": one.spec.picture, "form": one.spec.setting.form, "method": one.method.label, "puzzles": 1}
    return {**head, "fragments": one.fragments, **one.poses, **one.theirs, "seconds": one.seconds}


def _compared(line: Line) -> Compared:
    what = f"{line.method.label}, {line.setting.form}: right, {line.puzzles} puzzles"
    q_pos = f"; Q_pos {100 * line.poses[Q_POS].estimate:.0f} %" if Q_POS in line.poses else ""
    return Compared(what, line.poses["right"].percent(), "-", f"{told(line)}{q_pos}")


def _verdict(lines: list[Line], skipped: list[str]) -> str:
    ours = [line for line in lines if line.method.label == lines[0].method.label]
    shown = "; ".join(f"{line.setting.form} {100 * line.poses['right'].estimate:.1f} %" for line in ours)
    left = f" {len(skipped)} left out: {' '.join(skipped)}" if skipped else ""
    return (
        f"Fragments right of sets that nobody here made: {shown}, the mean over the puzzles of each set; no network was"
        f" trained on any of them. The CSV has every puzzle, and the metrics of others.{left}"
    )


def _plot(lines: list[Line], path: Path) -> None:
    plot_lines({"sets of fragments": by_method(lines)}, "form", path)
