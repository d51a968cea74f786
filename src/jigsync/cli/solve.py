"""`jigsync solve`: fragments in, picture out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from jigsync.solution import Solution
    from jigsync.values.gauge import Gauge
    from jigsync.values.measurements import Measurer
    from jigsync.values.picture import Picture
    from jigsync.values.pose import Pose


def solve(
    puzzle: Annotated[Path, typer.Argument(help="A puzzle folder, or a plain folder of images.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for solution.json and assembled.png.",
            metavar="DIR",
            show_default="PUZZLE-solved",
        ),
    ] = None,
    solver: Annotated[str, typer.Option(help="See `jigsync solvers`.")] = "jigsync",
    measurer: Annotated[
        str | None,
        typer.Option(help="contours, learned, boundary, ...", show_default="what fits the fragments"),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="ONNX file of another trained matcher.", metavar="FILE", show_default="shipped")
    ] = None,
    likeness: Annotated[
        Path | None,
        typer.Option(help="ONNX file of another likeness head.", metavar="FILE", show_default="shipped"),
    ] = None,
    reach: Annotated[
        Path | None, typer.Option(help="ONNX file of another reach head.", metavar="FILE", show_default="shipped")
    ] = None,
    grid: Annotated[
        str | None, typer.Option(help="5 is 5 x 5; 4x6 is 4 rows of 6.", show_default="all that fit are tried")
    ] = None,
    layout: Annotated[
        Literal["auto", "grid", "free"],
        typer.Option(help="grid: rows and columns; free: any place, any angle; auto: what the fragments say."),
    ] = "auto",
    pin: Annotated[
        list[str] | None,
        typer.Option(
            help="ID=ROW,COL,TURNS: this fragment is here; ID=X,Y,DEGREES with --layout free. Repeat for more.",
            metavar="PIN",
        ),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="ID of a fragment that does not belong.")] = None,
    upright: Annotated[bool, typer.Option("--upright", help="No fragment is turned.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Seconds; the best answer by then counts.")] = None,
    seed: Annotated[int, typer.Option(help="The same puzzle, options and seed give the same answer.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of the search; the answer does not depend on it.")] = 2,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier solution in DIR.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print solution.json.")] = False,
) -> None:
    """Reassemble a puzzle: where every fragment lies and how it is turned, and the assembled picture."""

    import numpy as np

    import jigsync
    from jigsync.cli.progress import progress_bar
    from jigsync.io.files import atomic_folder, check_output_folder
    from jigsync.io.images import write_png
    from jigsync.io.solution_file import save_solution, solution_json
    from jigsync.solvers.base import Progress

    folder = out or _beside(puzzle)
    ours = ("solution.json", "assembled.png")
    check_output_folder(folder, overwrite=overwrite or out is None, ours=ours)
    pins = _pins(pin or [], free=layout == "free")
    fragments = jigsync.load(puzzle)
    with progress_bar() as bar:

        def report(step: Progress) -> bool:
            measured = step.stage != "measuring"
            bar("measuring", 100 * measured, 100)
            if measured:
                bar("solving", round(100 * step.fraction), 100)
            return True

        solution = jigsync.solve(
            fragments,
            solver,
            measurer=_trained(weights, likeness, reach, measurer) if weights or likeness or reach else measurer,
            grid=grid,
            layout=layout,
            pins=pins,
            exclude=exclude or (),
            upright=upright,
            time_limit=time_limit,
            seed=seed,
            threads=threads,
            progress=report,
        )
    with atomic_folder(folder, overwrite=True, ours=ours) as made:
        save_solution(made / "solution.json", solution)
        if solution:
            write_png(made / "assembled.png", np.asarray(solution.assemble()))
    if as_json:
        say_json(solution_json(solution))
    else:
        say(_summary(solution, folder))
    if not solution:
        raise typer.Exit(1)


UP = "which side up"


def _trained(weights: Path | None, likeness: Path | None, reach: Path | None, measurer: str | None) -> Measurer:
    """The learned measurer with weights of one's own, loaded now: a bad file is refused before anything else."""
    from jigsync.measure.learned import Learned, Models
    from jigsync.measure.reach import load_reach
    from jigsync.values.errors import OptionError

    if measurer not in (None, "learned"):
        raise OptionError(f"The 'weights' of a solve are for the measurer 'learned'. Got '{measurer}'.")
    Models.load(weights, likeness)
    load_reach(reach)
    return Learned(weights=weights, likeness=likeness, reach=reach)


def _beside(puzzle: Path) -> Path:
    """PUZZLE-solved, next to the puzzle's folder."""
    from jigsync.values.errors import OptionError

    folder = puzzle.parent if puzzle.is_file() else puzzle
    if folder.name in ("", ".."):
        folder = folder.resolve()
    if not folder.name:
        raise OptionError("The solution needs a folder of its own: name one with --out.")
    return folder.with_name(f"{folder.name}-solved")


def _pins(texts: list[str], free: bool) -> dict[str, tuple[int, int, int] | Pose]:
    """['f003=2,1,0'] -> {'f003': (2, 1, 0)}, or the pose at (2, 1) and 0 degrees where the layout is free."""
    from jigsync.values.errors import OptionError, bad_value
    from jigsync.values.pose import Pose

    form = "ID=X,Y,DEGREES, for example f003=120,48.5,-30" if free else "ID=ROW,COL,TURNS, for example f003=2,1,0"
    pins: dict[str, tuple[int, int, int] | Pose] = {}
    for text in texts:
        name, _, place = text.rpartition("=")
        number: type[float] | type[int] = float if free else int
        try:
            first, second, third = (number(part) for part in place.split(","))
        except ValueError:
            name = ""
        if not name:
            raise bad_value("pin", "a solve", f"of the form {form}", text)
        if name in pins:
            raise OptionError(f"The fragment '{name}' is pinned twice.")
        pins[name] = Pose.of_degrees(third, (first, second)) if free else (int(first), int(second), int(third))
    return pins


def _where(solution: Solution) -> str:
    """What the fragments were placed in."""
    if solution.grid is not None:
        return f"in a {solution.grid} grid"
    if not solution.parts:
        return "freely"
    grids = [str(part.grid) for part in solution.parts if part.grid is not None]
    if len(grids) == len(solution.parts):
        return f"in {len(grids)} pictures, of {' and '.join(grids)}"
    return f"freely, in {len(solution.parts)} groups,"


def _summary(solution: Solution, folder: Path) -> str:
    """A few lines for a person."""
    if not solution:
        return f"Not solved: {solution.reason}"
    placed = [p for p in solution.placement.values() if p.pose is not None]
    sure = [p.confidence for p in placed if p.confidence is not None]
    lines = [
        f"{len(placed)} of {len(solution.placement)} fragments placed {_where(solution)}"
        f" by '{solution.solver}' in {solution.seconds:.1f} s: {solution.status}. {solution.reason}".rstrip(),
        *(f"  {word:14} {_turn(picture.gauge)}" for word, picture in _pictures(solution)),
    ]
    if sure:
        lines.append(f"  confidence     {sum(sure) / len(sure):.0%} on average, {min(sure):.0%} at least")
    lines += [
        f"  {word.replace(UP, 'whole'):14} {picture.whole:.0%} sure that nothing of it is wrong or lies elsewhere"
        for word, picture in _pictures(solution)
        if picture.whole is not None
    ]
    return "\n".join(
        [*lines, f"The picture:   {folder / 'assembled.png'}", f"The solution:  {folder / 'solution.json'}"]
    )


def _pictures(solution: Solution) -> list[tuple[str, Picture]]:
    """What lines about each picture begin with; those of a lone pair say nothing."""
    pictures = solution.pictures
    return [(UP if len(pictures) == 1 else f"{UP} {k}", picture) for k, picture in enumerate(pictures, start=1)]


def _turn(gauge: Gauge) -> str:
    """How sure it is which side is up."""
    if gauge.clear:
        return f"{gauge.confidence:.0%} sure"
    told = f"no clear up, {gauge.confidence:.0%} as it stands" if gauge.determined else "nothing tells"
    return f"{told}: turn the picture as you see fit ('jigsync show --gauge four' draws all four ways)"
