"""`jigsync score`: how right a solution is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jigsync.io.terminal import console, say_json

if TYPE_CHECKING:
    from jigsync.score.cells import Scores

MEANING = {
    "PA": "every fragment in its slot",
    "AA": "fragments in their slot",
    "SRA": "true neighbours still side by side, as they were",
    "rotation": "fragments turned right",
    "AA+rot": "fragments in their slot and turned right",
    "PA+rot": "every fragment in its slot and turned right",
}


def score(
    solution: Annotated[Path, typer.Argument(help="solution.json, a solver's answer.", show_default=False)],
    truth: Annotated[Path, typer.Argument(help="truth.json, as jigsync cut wrote it.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON, in 0..1.")] = False,
) -> None:
    """Score a solution against the truth.

    The model column scores the solution as it is. best4 is a diagnostic: each measure at its best over the four turns
    of the whole assembly, which only someone who knows the truth can choose.
    """

    from rich import box
    from rich.table import Table

    from jigsync.io.solution_file import load_solution
    from jigsync.io.truth_file import load_truth
    from jigsync.score.cells import MEASURES
    from jigsync.score.cells import score as score_solution

    answer, home = load_solution(solution), load_truth(truth)
    scores = score_solution(answer, home)
    if as_json:
        head = {"solution": str(solution), "truth": str(truth), "status": answer.status, "solver": answer.solver}
        say_json({**head, **scores.to_json()})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("model", justify="right", no_wrap=True)
    table.add_column("best4", justify="right", no_wrap=True)
    table.add_column("what it counts")
    model, best4 = scores.model.to_json(), scores.best4.to_json()
    for name in MEASURES:
        if name.startswith("PA"):
            shown = ["yes" if value else "no" for value in (model[name], best4[name])]
        else:
            shown = [f"{100 * value:.1f} %" for value in (model[name], best4[name])]
        table.add_row(name, *shown, MEANING[name])
    screen = console()
    screen.print(table)
    words = _words(scores) if answer else f"The solver failed: {answer.reason or 'it gave no reason.'}"
    screen.print(words, soft_wrap=True, markup=False)


def _words(scores: Scores) -> str:
    """The two or three sentences a person wants."""
    n = scores.fragments
    if scores.model.pa_rot == 1.0:
        return f"Solved: all {n} fragments are in their slot and turned right."
    in_slot, upright = round(scores.model.aa * n), round(scores.model.aa_rot * n)
    said = f"{in_slot} of {n} fragments are in their slot, {upright} of them turned right."
    if scores.placed < n:
        said += f" Not placed: {n - scores.placed}."
    if scores.best4.aa_rot > scores.model.aa_rot:
        better = round(scores.best4.aa_rot * n)
        said += (
            f" Turned as a whole by {90 * scores.best_turns} degrees counter-clockwise it would be {better} of {n}:"
            " the global turn is wrong."
        )
    return said
