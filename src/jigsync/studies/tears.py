"""Study `tears`: pictures torn into pieces of any shape, at any angle, over their number and how worn they are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from jigsync.cutting.tear_options import Style
from jigsync.evaluate.progress import Progress
from jigsync.evaluate.table import Line
from jigsync.evaluate.wanted import Wanted
from jigsync.studies.evaluated import by_method, line_row, plot_lines, run_wanted, told, whole
from jigsync.studies.result import Compared, StudyResult

PIECES: Final = (9, 25)
STYLES: Final[tuple[Style, ...]] = ("tear",)
FULL_STYLES: Final[tuple[Style, ...]] = ("tear", "cuts", "knobs")
FULL_PIECES: Final = (9, 25, 100)
EROSIONS: Final = (0.0, 0.02, 0.04)
"""Off every edge, as shares of the size."""
SIZE: Final = 96
PUZZLES: Final = 4
FULL_PUZZLES: Final = 40
SOLVERS: Final = ("jigsync", "free:contours-plain")


def run(full: bool, workers: int, seed: int, progress: Progress, images: Path | None = None) -> StudyResult:
    """Torn paper; with `full` also straight cuts and jigsaw knobs, and 100 pieces."""
    pieces, styles, puzzles = (FULL_PIECES, FULL_STYLES, FULL_PUZZLES) if full else (PIECES, STYLES, PUZZLES)
    return run_tears(pieces, styles, EROSIONS, puzzles, SIZE, workers, seed, progress, images)


def run_tears(
    pieces: tuple[int, ...],
    styles: tuple[Style, ...],
    erosions: tuple[float, ...],
    puzzles: int,
    size: int,
    workers: int,
    seed: int,
    progress: Progress,
    images: Path | None = None,
) -> StudyResult:
    """The study on chosen tears."""
    wanted = Wanted((), (), puzzles, size, seed=seed, pieces=pieces, styles=styles, erosions=erosions)
    found = run_wanted("tears", wanted, SOLVERS, (), workers, progress, images)
    lines = whole(found)
    return StudyResult(
        name="tears",
        title="torn pictures, pieces at any angle: fragments right",
        rows=[line_row(line) for line in lines],
        compared=[_compared(line) for line in lines],
        verdict=_verdict(lines),
        settings={
            "puzzles": puzzles,
            "pieces": list(pieces),
            "styles": list(styles),
            "erosions": list(erosions),
            "size": size,
            "seed": seed,
            "pictures": len({spec.picture for spec in found.specs}),
        },
        plot=partial(_plot, lines),
    )


def _compared(line: Line) -> Compared:
    what = f"{line.method.label}, {line.setting.form} {line.setting.severity}: right, {line.puzzles} puzzles"
    return Compared(what, line.poses["right"].percent(), "-", told(line))


def _verdict(lines: list[Line]) -> str:
    ours = [line for line in lines if line.method.label == SOLVERS[0]]
    best, worst = (pick(ours, key=lambda line: line.poses["right"].estimate) for pick in (max, min))
    shown = "; ".join(
        f"{line.setting.form} {line.setting.severity} {100 * line.poses['right'].estimate:.1f} %" for line in ours
    )
    return (
        f"Fragments right of torn pictures: {shown}. It is best at {best.setting.form} {best.setting.severity} and"
        f" worst at {worst.setting.form} {worst.setting.severity}. Not a study of the paper's,"
        " whose fragments have a grid."
    )


def _plot(lines: list[Line], path: Path) -> None:
    forms = list(dict.fromkeys(line.setting.form for line in lines))
    groups = {form: by_method([line for line in lines if line.setting.form == form]) for form in forms}
    plot_lines(groups, "severity", path)
