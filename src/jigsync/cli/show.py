"""`jigsync show`: a puzzle, its assembly, and what is wrong with it, as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from jigsync.io.terminal import say, say_json

if TYPE_CHECKING:
    from PIL import Image

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
        Literal["model", "best4", "four"],
        typer.Option(
            help="model: as solved; best4: turned as a whole to where it is best, by any angle where there is no grid;"
            " needs --truth; four: all four ways up, and how likely each is."
        ),
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

    With the truth as well, fragments in the wrong place are outlined in red, fragments in their place but turned wrong
    in amber and black stripes. Parts that are not placed towards each other are drawn side by side.
    """

    import numpy as np

    from jigsync.io.images import write_png
    from jigsync.io.puzzle_folder import load_puzzle
    from jigsync.io.solution_file import load_solution
    from jigsync.io.truth_file import load_truth
    from jigsync.render.four import four_ways, ways
    from jigsync.render.sheet import contact_sheet
    from jigsync.solution import Solution
    from jigsync.values.errors import OptionError, bad_value

    if out is not None and out.suffix.lower() != ".png":
        raise bad_value("--out", "show", "a file whose name ends in .png", str(out))
    if gauge == "best4" and (truth is None or solution is None):
        raise OptionError("--gauge best4 needs both --solution and --truth: it turns the one to fit the other.")
    if gauge == "four" and (solution is None or truth is not None or gaps or confidence or animate is not None):
        raise OptionError("--gauge four needs --solution, and goes with nothing that marks, moves or pulls apart.")
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
    if gauge == "four" and solution is not None:
        found = load_solution(solution)
        kind, picture = "four", four_ways(source, found)
        facts = {
            "fragments": len(source),
            "probabilities": [p for _, p in ways(found.gauge)],
            "clear": found.gauge.clear,
        }
    elif solution is not None:
        kind = "assembled" if home is None else "marked"
        picture, facts = _draw(source, load_solution(solution), home, gauge == "best4", gaps, confidence)
    elif home is not None:
        kind = "truth"
        picture, facts = _draw(
            source, Solution("ok", "", home.layout, home.placement, pitch=home.pitch), None, False, gaps, False
        )
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
    from jigsync.score.align import Aligned, aligned

    suffix = suffix_of(target)
    shown_as = Aligned(solution, 0.0) if truth is None else aligned(solution, truth, puzzle)
    shown = list(frames(puzzle, shown_as.solution))
    content = animation_bytes(shown, suffix)
    write_bytes(target, content)
    width, height = shown[0].picture.size
    facts = {"size": [width, height], "frames": len(shown), "bytes": len(content), **shown_as.facts()}
    if as_json:
        say_json({"picture": str(target), "kind": "animation", "fragments": len(puzzle), **facts})
    else:
        say(f"Wrote {target} ({width} x {height}, {len(shown)} frames, {len(content) / 1e6:.1f} MB).")


def _draw(
    puzzle: Puzzle, solution: Solution, truth: Truth | None, best4: bool, gaps: bool, confidence: bool
) -> tuple[Image.Image, dict[str, Any]]:
    """The assembled picture, marked when there is something to mark with, and what can be counted in it."""
    from jigsync.render.assemble import assemble_in
    from jigsync.render.layout import layout_of
    from jigsync.render.marks import legend, mark
    from jigsync.score.align import aligned
    from jigsync.score.poses import Verdict
    from jigsync.score.verdicts import by_cells, verdicts

    facts: dict[str, Any] = {"fragments": len(puzzle)}
    found: dict[str, Verdict] = {}
    place = "slot"
    if truth is not None:
        place = "slot" if by_cells(solution, truth) else "place"
        if best4:
            turned = aligned(solution, truth, puzzle)
            solution, facts = turned.solution, facts | turned.facts()
        found = verdicts(solution, truth, puzzle)
        facts |= {kind: sum(v == kind for v in found.values()) for kind in get_args(Verdict)}
    marked = truth is not None or confidence
    layout = layout_of(puzzle, solution, gaps=gaps, at_least=MARKED_SIDE if marked else 1)
    picture = assemble_in(puzzle, solution, layout)
    if marked:
        picture = legend(mark(picture, puzzle, solution, layout, found, confidence), found, confidence, place)
    # layout_of has made sure that the puzzle has every fragment that is placed.
    facts["placed"] = len(layout.poses)
    rows, cols = (None, None) if solution.grid is None else solution.grid.shape
    return picture, facts | {"rows": rows, "cols": cols, "shrunk_by": layout.shrink}


def _words(kind: str, facts: dict[str, Any]) -> str:
    """What the picture shows, in one line."""
    if kind == "sheet":
        return f"{facts['fragments']} fragments as presented"
    if kind == "four":
        return "the four ways up" + ("" if facts["clear"] else "; the picture has no clear up")
    said = f"{facts['placed']} of {facts['fragments']} fragments placed"
    if kind == "truth":
        said = f"the true assembly, {said}"
    if kind == "marked":
        said += f", {facts['right']} right"
        place = "place" if facts["rows"] is None else "slot"
        said += f", {facts['slot']} in the wrong {place} (red)" if facts["slot"] else ""
        said += f", {facts['foreign']} foreign (red)" if facts["foreign"] else ""
        said += f", {facts['turn']} turned wrong (amber stripes)" if facts["turn"] else ""
    if facts.get("turned_degrees"):
        said += f"; shown turned by {facts['turned_degrees']:.0f} degrees counter-clockwise"
    if facts["shrunk_by"] > 1:
        said += f"; drawn at 1/{facts['shrunk_by']} of its size"
    return said
