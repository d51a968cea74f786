"""`jigsync demo`: from a bundled picture to torn pieces and back, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from jigsync.score.poses import PoseScores
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
    picture: Annotated[str, typer.Option(help="astronaut, chelsea, coffee or rocket.")] = "astronaut",
    pieces: Annotated[int, typer.Option(help="Into how many pieces the picture is torn.")] = 20,
    seed: Annotated[int, typer.Option(help="Another seed tears another puzzle.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Tear a bundled picture into pieces that lie at any angle, put them together, and score the answer."""

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
    from jigsync.score.align import aligned
    from jigsync.score.poses import score_poses

    ours = (*OURS, BEFORE, AFTER, COMPARE, SOLUTION)
    check_output_folder(out, overwrite=True, ours=ours)
    puzzle, truth = jigsync.tear_with_truth(data.picture(picture), pieces, seed=seed)
    say(f"Tore '{picture}' into {len(puzzle)} pieces, turned by any angle and shuffled: seed {seed}.", err=True)
    solution = jigsync.solve(puzzle)
    scores = score_poses(solution, truth, puzzle)
    with atomic_folder(out, overwrite=True, ours=ours) as folder:
        save_puzzle(folder / PUZZLE_FOLDER, puzzle)
        save_truth(folder / TRUTH_FILE, truth)
        save_solution(folder / SOLUTION, solution)
        write_png(folder / BEFORE, np.asarray(contact_sheet(puzzle)))
        if solution:
            write_png(folder / AFTER, np.asarray(solution.assemble(puzzle)))
            # Outlined should be what does not fit together: a wrong global turn would mark every piece.
            shown = aligned(solution, truth, puzzle).solution
            title = TITLES[not scores.upright]
            write_png(folder / COMPARE, np.asarray(compare(puzzle, shown, truth, title)))
    if as_json:
        result: dict[str, Any] = {"out": str(out), "status": solution.status, "reason": solution.reason}
        say_json({**result, "seconds": solution.seconds, "scores": scores.to_json()})
    else:
        say(_report(out, solution, scores))
    if not solution:
        raise typer.Exit(1)


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.0%}"


def _report(out: Path, solution: Solution, scores: PoseScores) -> str:
    """The score and where the pictures are, for a person."""
    if not solution:
        return f"Not solved: {solution.reason}\nThe fragments: {out / BEFORE}"
    rows = [
        ("put together right, whichever side is up", f"{scores.count('right')} of {scores.fragments}"),
        ("neighbours that lie to each other as they should", _share(scores.contacts)),
        ("stands as the picture did", "yes" if scores.upright else "no"),
        ("sure of which side is up", f"{solution.gauge.confidence:.0%}{'' if solution.gauge.clear else ', not clear'}"),
    ]
    lines = [f"Solved in {solution.seconds:.1f} s: {solution.status}. {solution.reason}".rstrip()]
    lines += [f"  {what:<50}{value}" for what, value in rows]
    lines += [
        f"The fragments:         {out / BEFORE}",
        f"The picture:           {out / AFTER}",
        f"Both, errors outlined: {out / COMPARE}",
    ]
    return "\n".join(lines)
