"""`jigsync score`: how right a solution is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from jigsync.io.terminal import console, say_json

if TYPE_CHECKING:
    from rich.table import Table

    from jigsync.score.cells import Scores
    from jigsync.score.poses import PoseScores
    from jigsync.solution import Solution
    from jigsync.values.puzzle import Puzzle
    from jigsync.values.truth import Truth

MEANING: Final = {
    "PA": "every fragment in its slot",
    "AA": "fragments in their slot",
    "SRA": "true neighbours still side by side, as they were",
    "rotation": "fragments turned right",
    "AA+rot": "fragments in their slot and turned right",
    "PA+rot": "every fragment in its slot and turned right",
}
PUZZLE_FOLDER: Final = "puzzle"
"""Beside truth.json, as `jigsync cut` writes it."""


def score(
    solution: Annotated[Path, typer.Argument(help="solution.json, a solver's answer.", show_default=False)],
    truth: Annotated[Path, typer.Argument(help="truth.json, as jigsync cut wrote it.", show_default=False)],
    puzzle: Annotated[
        Path | None,
        typer.Option(
            help="The puzzle, whose pixels tell how large fragments are and who touches whom.",
            metavar="DIR",
            show_default="the folder 'puzzle' beside the truth",
        ),
    ] = None,
    others: Annotated[
        bool, typer.Option("--others", help="Also the metrics of RePAIR, Derech, ShreddingNet and PairingNet.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON, in 0..1.")] = False,
) -> None:
    """Score a solution against the truth.

    Poses are scored after the one rigid motion that makes most fragments right: within 5 degrees, and within 10 % of
    their size. Where solution and truth have a grid, slots are scored as well: the model column as the solution is;
    best4 is a diagnostic, each measure at its best over the four turns of the whole assembly, which only someone who
    knows the truth can choose.
    """

    from jigsync.io.puzzle_folder import load_puzzle
    from jigsync.io.solution_file import load_solution
    from jigsync.io.truth_file import load_truth
    from jigsync.score.poses import score_poses

    answer, home = load_solution(solution), load_truth(truth)
    beside = truth.parent / PUZZLE_FOLDER
    folder = puzzle or (beside if beside.is_dir() else None)
    pixels = None if folder is None else load_puzzle(folder)
    poses = score_poses(answer, home, pixels)
    theirs = _theirs(answer, home, pixels) if others else {}
    cells = _cells(answer, home, poses)
    if as_json:
        head = {"solution": str(solution), "truth": str(truth), "status": answer.status, "solver": answer.solver}
        counts = {"fragments": poses.fragments, "placed": poses.placed}
        by_cells = {} if cells is None else cells.to_json()
        more = {"others": {name: value for name, (value, _) in theirs.items()}} if others else {}
        say_json({**head, **counts, **by_cells, "poses": poses.to_json(), **more})
        return
    screen = console()
    if cells is not None:
        screen.print(_cell_table(cells))
    screen.print(_pose_table(poses))
    if theirs:
        screen.print(_their_table(theirs))
    screen.print(f"Upright: {_upright(poses)}.", soft_wrap=True)
    if answer:
        words = _pose_words(poses) if cells is None else _words(cells)
        if poses.foreign:
            words += f" Placed though foreign: {', '.join(poses.foreign)}."
    else:
        words = f"The solver failed: {answer.reason or 'it gave no reason.'}"
    screen.print(words, soft_wrap=True, markup=False)


def _cells(answer: Solution, home: Truth, poses: PoseScores) -> Scores | None:
    """The scores of slots, where both have a grid; a solution that failed has none of its own and scores 0."""
    from dataclasses import replace

    from jigsync.score.cells import score as score_cells
    from jigsync.values.layout import Grid

    if not isinstance(home.layout, Grid) or (answer and answer.grid is None):
        return None
    known = {name: placed for name, placed in answer.placement.items() if name not in poses.foreign}
    return score_cells(replace(answer, placement=known), home)


def _theirs(answer: Solution, home: Truth, puzzle: Puzzle | None) -> dict[str, tuple[float | None, float | None]]:
    """metric of others -> its value, and the mean of what guesses reach."""
    from jigsync.score.posed import posed
    from jigsync.score.theirs import their_chance, their_scores
    from jigsync.values.errors import OptionError

    if puzzle is None:
        raise OptionError("--others measures overlaps of fragments, and needs their pixels: name --puzzle.")
    both = posed(answer, home, puzzle)
    chance = their_chance(both, puzzle, 0)
    return {name: (value, chance.get(name)) for name, value in their_scores(both, puzzle).items()}


def _their_table(theirs: dict[str, tuple[float | None, float | None]]) -> Table:
    from jigsync.score.theirs import THEIR_ERRORS, THEIRS

    table = _table("others", "", "chance")
    for name, values in theirs.items():
        told = [("-" if v is None else f"{v:.1f}") if name in THEIR_ERRORS else _percent(v) for v in values]
        table.add_row(name, *told, THEIRS[name])
    return table


def _cell_table(scores: Scores) -> Table:
    from jigsync.score.cells import MEASURES

    table = _table("measure", "model", "best4")
    model, best4 = scores.model.to_json(), scores.best4.to_json()
    for name in MEASURES:
        shown = [
            _yes(value == 1.0) if name.startswith("PA") else _percent(value) for value in (model[name], best4[name])
        ]
        table.add_row(name, *shown, MEANING[name])
    return table


def _pose_table(scores: PoseScores) -> Table:
    joined = "-" if scores.joined is None else f"{scores.joined} of {scores.fragments}"
    angle = "-" if scores.angle_error is None else f"{scores.angle_error:.1f} deg"
    centre = "-" if scores.xy_error is None else f"{scores.xy_error:.1f} px"
    table = _table("poses", "")
    for row in (
        ("right", _percent(scores.right), "fragments at their place and angle, the whole moved as one"),
        ("perfect", _yes(scores.perfect), "every fragment right"),
        ("contacts", _percent(scores.contacts), "true neighbours that lie to each other as they should"),
        ("claims", _percent(scores.claimed), "neighbours in the answer that lie to each other as they should"),
        ("largest", joined, "fragments of the largest part that right contacts join"),
        ("angle", angle, "median error"),
        ("centre", centre, "median error"),
    ):
        table.add_row(*row)
    return table


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    table.add_column("what it counts")
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _upright(scores: PoseScores) -> str:
    """The answer to "does it stand the right way up?"."""
    if scores.upright:
        return "yes"
    if scores.motion is None or not scores.told:
        return "cannot be told, as fewer than two fragments are right"
    return f"no, the global turn is wrong by {abs(scores.motion.degrees):.0f} degrees"


def _pose_words(scores: PoseScores) -> str:
    """The sentence or two a person wants, where there is no grid."""
    if scores.perfect:
        said = f"Solved: all {scores.fragments} fragments are right."
    else:
        said = f"{scores.count('right')} of {scores.fragments} fragments are right."
        turned, gone = scores.count("turn"), scores.count("unplaced")
        said += f" In their place but turned wrong: {turned}." if turned else ""
        said += f" Not placed: {gone}." if gone else ""
    if scores.told and not scores.upright:
        said += f" But {_upright(scores).removeprefix('no, ')}."
    return said


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
