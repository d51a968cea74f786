"""An answer and the truth as poses in one unit, with what tells how large fragments are and who touches whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jigsync.score.contacts import Contacts, contacts_of_cells, contacts_of_poses
from jigsync.score.sizes import sizes_of, sizes_of_cells
from jigsync.values.errors import InputError
from jigsync.values.layout import Grid, Layout
from jigsync.values.placement import Assembly, Pitch, Placed, Placement, cell_pitch
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


@dataclass(frozen=True)
class Posed:
    """Both sides, in pixels, or in cells where nobody knows how many pixels a cell has.

    Attributes:
        answer, home: where fragments were placed, and where they belong.
        sizes: sqrt(area) of every fragment of the truth.
        contacts, claimed: pairs that touch in truth, and in the answer; None: not known.
    """

    answer: Placement
    home: Placement
    sizes: Mapping[str, float]
    contacts: Contacts | None
    claimed: Contacts | None


def posed(solution: Assembly, truth: Truth, puzzle: Puzzle | None = None) -> Posed:
    """Both sides.

    True contacts are the truth's own, or the neighbours in its grid, or found in the fragments' outlines where they
    belong. Claimed ones are the neighbours in the solution's grid, or found in the outlines where they were placed.

    Raises:
        InputError: nothing tells the sizes, or these are not of the same puzzle.
    """
    answer, home, pitch = _in_one_unit(solution, truth, puzzle)
    if puzzle is not None:
        sizes: Mapping[str, float] = sizes_of(puzzle)
        unknown = next((name for name in answer if name in home and answer[name].pose and name not in sizes), None)
        if unknown is not None:
            raise InputError(
                f"The fragment '{unknown}' is placed but is not in the puzzle '{puzzle.name}':"
                " the two must be of the same puzzle."
            )
    elif pitch is not None:
        sizes = sizes_of_cells(home, pitch)
    elif any(placed.pose is not None for placed in answer.values()):
        raise InputError(
            "A fragment's place is right within a share of its size, and nothing tells the sizes: pass the puzzle,"
            " whose pixels do (jigsync score --puzzle DIR)."
        )
    else:
        sizes = {}
    contacts = truth.contacts
    if contacts is None:
        contacts = _contacts(home, truth.layout, puzzle, sizes)
    return Posed(answer, home, sizes, contacts, _contacts(answer, solution.layout, puzzle, sizes))


def _in_one_unit(solution: Assembly, truth: Truth, puzzle: Puzzle | None) -> tuple[Placement, Placement, Pitch | None]:
    """The poses of the answer and of the truth in pixels, and a cell's size where there is a grid.

    Old files know cells only: they take the pitch of the other side, or the puzzle's. Where nobody has one, the unit is
    one cell.
    """
    pitch = truth.pitch or solution.pitch
    answer = _in_pixels(solution.placement, solution.layout, solution.pitch, pitch, puzzle)
    home = _in_pixels(truth.placement, truth.layout, truth.pitch, pitch, puzzle)
    if pitch is None and isinstance(solution.layout, Grid) and isinstance(truth.layout, Grid):
        pitch = (1.0, 1.0)
    return answer, home, pitch


def _in_pixels(
    placement: Placement, layout: Layout, own: Pitch | None, other: Pitch | None, puzzle: Puzzle | None
) -> Placement:
    """The placement with poses in pixels, as far as anything tells how many a cell has."""
    if own is not None or not isinstance(layout, Grid):
        return placement
    pitch = other or (None if puzzle is None else cell_pitch(puzzle, placement))
    if pitch is None:
        return placement
    return {
        name: placed
        if placed.cell is None
        else replace(placed, pose=Placed.at(*placed.cell, placed.turns, pitch=pitch).pose)
        for name, placed in placement.items()
    }


def _contacts(
    placement: Placement, layout: Layout, puzzle: Puzzle | None, sizes: Mapping[str, float]
) -> Contacts | None:
    if isinstance(layout, Grid):
        return contacts_of_cells(placement)
    return None if puzzle is None else contacts_of_poses(puzzle, placement, sizes)
