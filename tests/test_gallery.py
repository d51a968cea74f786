"""Galleries: source, as presented, answers with their mistakes outlined."""

from __future__ import annotations

import numpy as np
import sample

from jigsync.render.gallery import gallery, panels
from jigsync.render.style import AMBER, RED
from jigsync.solution import Solution
from jigsync.values.placement import Placed

RIGHT = Solution("ok", "", sample.GRID, sample.PLACEMENT)


def near(picture: object, colour: tuple[int, int, int]) -> int:
    return int((np.abs(np.asarray(picture).astype(int)[..., :3] - colour).max(axis=2) < 40).sum())


def plain_puzzle() -> sample.Puzzle:
    """The sample's shapes in one blue: whatever is red or amber is a mark."""
    puzzle = sample.puzzle()
    blue = tuple(np.full((60, 60, 4), (40, 60, 200, 255), dtype=np.uint8) for _ in puzzle.ids)
    return sample.Puzzle(sample.Fragments(puzzle.ids, blue), 60, 60)


def test_panels_and_their_marks() -> None:
    swapped = dict(sample.PLACEMENT)
    swapped["f02"], swapped["f03"] = (Placed.at(*place[:2], turns) for place, turns in (((0, 1), 2), ((0, 0), 1)))
    turned = {**sample.PLACEMENT, "f19": Placed.at(0, 2, 3)}
    answers = [
        ("right", RIGHT),
        ("slot", Solution("ok", "", sample.GRID, swapped)),
        ("turn", Solution("ok", "", sample.GRID, turned)),
        ("whole", RIGHT.turned(1)),
        ("none", Solution.failure(sample.puzzle(), "none", "It gave up. " * 30)),
    ]
    original = np.full((120, 180, 3), 90, dtype=np.uint8)
    shown = panels(plain_puzzle(), sample.truth(), original, answers)
    assert [panel.title for panel in shown] == ["Source", "As presented", "right", "slot", "turn", "whole", "none"]
    captions = [panel.caption for panel in shown[2:]]
    assert captions == [
        "6 of 6 right",
        "4 of 6 right",
        "5 of 6 right",
        "0 of 6 right, 6 when turned as a whole",
        "no answer",
    ]
    red = [near(panel.picture, RED) for panel in shown]
    amber = [near(panel.picture, AMBER) for panel in shown]
    assert [count > 100 for count in red] == [False, False, False, True, False, True, False]
    # Turned as a whole, the fragment of cell (1, 1) stays in it.
    assert [count > 100 for count in amber] == [False, False, False, False, True, True, False]
    assert all(max(panel.picture.size) == 320 for panel in shown)
    page = gallery([("one", shown), ("two", shown[:4])])
    assert page.width > 7 * 320
    assert near(page, RED) > red[3]


def test_without_the_original_the_true_assembly_is_the_source() -> None:
    puzzle = sample.puzzle()
    source = panels(puzzle, sample.truth(), None, [])[0]
    expected = sample.picture()[..., :3]
    step = source.picture.width / expected.shape[1]
    places = ((np.arange(5) + 0.5) * step).astype(int)
    found = np.asarray(source.picture)[np.ix_(places, places)]
    assert np.abs(found.astype(int) - expected[:5, :5]).mean() < 12


def test_confidence_tints_what_is_unsure() -> None:
    unsure = {
        name: Placed.at(p.row, p.col, p.turns, 0.0 if name == "f02" else 1.0) for name, p in sample.PLACEMENT.items()
    }
    answer = [("unsure", Solution("ok", "", sample.GRID, unsure))]
    grey = sample.puzzle()
    plain, tinted = (panels(grey, sample.truth(), None, answer, confidence)[2].picture for confidence in (False, True))
    differs = (np.asarray(plain) != np.asarray(tinted)).any(axis=2)
    height, width = differs.shape
    assert differs[: height // 2, : width // 3].mean() > 0.9, "f02 belongs to the first cell"
    assert not differs[height // 2 + 4 :].any()
