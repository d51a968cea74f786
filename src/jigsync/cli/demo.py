"""`jigsync demo`: from a bundled picture to a damaged puzzle and back, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from jigsync.score.cells import Scores
    from jigsync.solution import Solution

BEFORE: Final = "before.png"
AFTER: Final = "after.png"
COMPARE: Final = "compare.png"
SOLUTION: Final = "solution.json"
TITLES: Final = (("As presented", "Assembled"), ("As presented", "Assembled, shown upright"))


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; an older demo in it is replaced.")] = Path(
        "demo-out"
    ),
    picture: Annotated[str, typer.Option(help="astronaut, chelsea, coffee or rocket.")] = "coffee",
    grid: Annotated[str, typer.Option(help="5 is 5 x 5; 4x6 is 4 rows of 6.")] = "4x6",
    severity: Annotated[str, typer.Option(help="clean, light, medium, heavy, severe or eroded.")] = "medium",
    seed: Annotated[int, typer.Option(help="Another seed cuts another puzzle.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Cut a bundled picture into a damaged, turned, shuffled puzzle, solve it, and score the answer."""

    import numpy as np

    import jigsync
    from jigsync import data
    from jigsync.io.cut_folder import OURS, PUZZLE_FOLDER
    from jigsync.io.files import atomic_folder, check_output_folder
    from jigsync.io.images import write_png
    from jigsync.io.puzzle_folder import save_puzzle
    from jigsync.io.solution_file import save_solution
    from jigsync.io.truth_file import TRUTH_FILE, save_truth
    from jigsync.render.compare import compare
    from jigsync.render.sheet import contact_sheet
    from jigsync.score.cells import score

    ours = (*OURS, BEFORE, AFTER, COMPARE, SOLUTION)
    check_output_folder(out, overwrite=True, ours=ours)
    puzzle, truth = jigsync.cut_with_truth(data.picture(picture), grid, severity, seed=seed)
    say(
        f"Cut '{picture}' into {len(puzzle)} fragments, turned and shuffled: {truth.grid}, {severity}, seed {seed}.",
        err=True,
    )
    solution = jigsync.solve(puzzle)
    scores = score(solution, truth)
    with atomic_folder(out, overwrite=True, ours=ours) as folder:
        save_puzzle(folder / PUZZLE_FOLDER, puzzle)
        save_truth(folder / TRUTH_FILE, truth)
        save_solution(folder / SOLUTION, solution)
        write_png(folder / BEFORE, np.asarray(contact_sheet(puzzle)))
        if solution:
            write_png(folder / AFTER, np.asarray(solution.assemble(puzzle)))
            # Outlined should be what does not fit together: a wrong global turn would mark every fragment.
            turned = solution.turned(scores.best_turns)
            title = TITLES[scores.best_turns != 0]
            write_png(folder / COMPARE, np.asarray(compare(puzzle, turned, truth, title)))
    if as_json:
        result: dict[str, Any] = {"out": str(out), "status": solution.status, "reason": solution.reason}
        say_json({**result, "seconds": solution.seconds, "scores": scores.to_json()})
    else:
        say(_report(out, solution, scores))
    if not solution:
        raise typer.Exit(1)


def _report(out: Path, solution: Solution, scores: Scores) -> str:
    """The score and where the pictures are, for a person."""
    if not solution:
        return f"Not solved: {solution.reason}\nThe fragments: {out / BEFORE}"

    def count(share: float) -> str:
        return f"{round(share * scores.fragments)} of {scores.fragments}"

    rows = [
        ("put together right, whichever side is up", count(scores.best4.aa_rot)),
        ("neighbours side by side", f"{scores.best4.sra:.0%}"),
        ("right as it stands", count(scores.model.aa_rot)),
        ("sure of which side is up", f"{solution.gauge.confidence:.0%}"),
    ]
    if scores.best_turns:
        times = {1: "a quarter turn", 2: "half a turn", 3: "three quarter turns"}[scores.best_turns]
        rows.append(("the whole picture lacks", times))
    how = f"Solved in {solution.seconds:.1f} s by '{solution.solver}': {solution.status}."
    lines = [f"{how} {solution.reason}".rstrip()]
    lines += [f"  {what:<47}{value}" for what, value in rows]
    lines += [
        f"The fragments:         {out / BEFORE}",
        f"The picture:           {out / AFTER}",
        f"Both, errors outlined: {out / COMPARE}",
    ]
    return "\n".join(lines)
