"""`jigsync show`: a puzzle, its assembly, and what is wrong with it, as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from PIL import Image

    from jigsync.render.marks import Verdict
    from jigsync.solution import Solution
    from jigsync.values.puzzle import Puzzle
    from jigsync.values.truth import Truth

MARKED_SIDE = 640
"""Small pictures are zoomed to about this many pixels before marks are drawn on them."""


def show(
    puzzle: Annotated[Path, typer.Argument(help="A puzzle folder, or a folder of pictures.", show_default=False)],
    solution: Annotated[
        Path | None, typer.Option("--solution", "-s", help="solution.json: show the assembled picture.")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", "-t", help="truth.json: outline what is wrong; alone: show the true assembly."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="PNG file to write.", metavar="PNG", show_default="named after the puzzle"),
    ] = None,
    gauge: Annotated[
        Literal["model", "best4"],
        typer.Option(help="model: as solved; best4: turned as a whole to where it is best, which needs --truth."),
    ] = "model",
    gaps: Annotated[bool, typer.Option("--gaps", help="Pull the fragments apart.")] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Tint fragments in blue, the more the less sure the solver was.")
    ] = False,
    animate: Annotated[
        Path | None,
        typer.Option(help="Write a moving picture of the fragments coming together instead.", metavar="WEBP|GIF"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Draw a puzzle: a contact sheet, or with a solution the assembled picture.

    With the truth as well, fragments in the wrong slot are outlined in red, fragments in their slot but turned wrong
    in amber and black stripes.
    """

    import numpy as np

    from jigsync.io.images import write_png
    from jigsync.io.puzzle_folder import load_puzzle
    from jigsync.io.solution_file import load_solution
    from jigsync.io.truth_file import load_truth
    from jigsync.render.sheet import contact_sheet
    from jigsync.solution import Solution
    from jigsync.values.errors import OptionError, bad_value

    if out is not None and out.suffix.lower() != ".png":
        raise bad_value("--out", "show", "a file whose name ends in .png", str(out))
    if gauge == "best4" and (truth is None or solution is None):
        raise OptionError("--gauge best4 needs both --solution and --truth: it turns the one to fit the other.")
    if confidence and solution is None:
        raise OptionError("--confidence needs --solution: only a solver's answer has confidences.")
    if gaps and solution is None and truth is None:
        raise OptionError("--gaps needs --solution or --truth: a contact sheet has gaps already.")

    if animate is not None and (solution is None or out is not None or gaps or confidence):
        raise OptionError("--animate needs --solution, and goes with neither --out nor --gaps nor --confidence.")

    source = load_puzzle(puzzle)
    home = load_truth(truth) if truth is not None else None
    if animate is not None and solution is not None:
        _animate(source, load_solution(solution), home if gauge == "best4" else None, animate, as_json)
        return
    if solution is not None:
        kind = "assembled" if home is None else "marked"
        picture, facts = _draw(source, load_solution(solution), home, gauge == "best4", gaps, confidence)
    elif home is not None:
        kind = "truth"
        picture, facts = _draw(source, Solution("ok", "", home.grid, home.placement), None, False, gaps, False)
    else:
        kind = "sheet"
        picture, facts = contact_sheet(source), {"fragments": len(source)}
    target = out or Path(f"{source.name}-{kind}.png")
    write_png(target, np.asarray(picture))
    if as_json:
        say_json({"picture": str(target), "kind": kind, "size": list(picture.size), **facts})
    else:
        say(f"Wrote {target} ({picture.width} x {picture.height}): {_words(kind, facts)}.")


def _animate(puzzle: Puzzle, solution: Solution, truth: Truth | None, target: Path, as_json: bool) -> None:
    """Writes the moving picture; with the truth, of the assembly turned as a whole to where it is best."""

    from jigsync.io.files import write_bytes
    from jigsync.render.animate import animation_bytes, frames, suffix_of
    from jigsync.score.cells import score

    suffix = suffix_of(target)
    turned = 0 if truth is None else score(solution, truth).best_turns
    shown = list(frames(puzzle, solution.turned(turned)))
    content = animation_bytes(shown, suffix)
    write_bytes(target, content)
    width, height = shown[0].picture.size
    facts = {"size": [width, height], "frames": len(shown), "bytes": len(content), "turned_by": turned}
    if as_json:
        say_json({"picture": str(target), "kind": "animation", "fragments": len(puzzle), **facts})
    else:
        say(f"Wrote {target} ({width} x {height}, {len(shown)} frames, {len(content) / 1e6:.1f} MB).")


def _draw(
    puzzle: Puzzle, solution: Solution, truth: Truth | None, best4: bool, gaps: bool, confidence: bool
) -> tuple[Image.Image, dict[str, int]]:
    """The assembled picture, marked when there is something to mark with, and what can be counted in it."""
    from jigsync.render.assemble import assemble_in
    from jigsync.render.layout import layout_of
    from jigsync.render.marks import legend, mark, verdicts
    from jigsync.score.cells import score

    facts = {"fragments": len(puzzle)}
    found: dict[str, Verdict] = {}
    if truth is not None:
        scores = score(solution, truth)
        if best4:
            solution = solution.turned(scores.best_turns)
            facts["turned_by"] = scores.best_turns
        found = verdicts(solution, truth)
        facts |= {kind: sum(v == kind for v in found.values()) for kind in ("right", "slot", "turn", "unplaced")}
    marked = truth is not None or confidence
    layout = layout_of(puzzle, solution, gaps=gaps, at_least=MARKED_SIDE if marked else 1)
    picture = assemble_in(puzzle, solution, layout)
    if marked:
        picture = legend(mark(picture, puzzle, solution, layout, found, confidence), found, confidence)
    # layout_of has made sure that the puzzle has every fragment that is placed.
    facts["placed"] = sum(placed.cell is not None for placed in solution.placement.values())
    return picture, facts | {"rows": layout.grid.rows, "cols": layout.grid.cols, "shrunk_by": layout.shrink}


def _words(kind: str, facts: dict[str, int]) -> str:
    """What the picture shows, in one line."""
    if kind == "sheet":
        return f"{facts['fragments']} fragments as presented"
    said = f"{facts['placed']} of {facts['fragments']} fragments placed"
    if kind == "truth":
        said = f"the true assembly, {said}"
    if kind == "marked":
        said += f", {facts['right']} right"
        said += f", {facts['slot']} in the wrong slot (red)" if facts["slot"] else ""
        said += f", {facts['turn']} turned wrong (amber stripes)" if facts["turn"] else ""
    if facts.get("turned_by"):
        said += f"; shown turned by {90 * facts['turned_by']} degrees counter-clockwise"
    if facts["shrunk_by"] > 1:
        said += f"; drawn at 1/{facts['shrunk_by']} of its size"
    return said
