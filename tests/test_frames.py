"""Where a fragment's cell lies, told from its outline: what ships, what it takes for cells, what becomes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from reframe import reframed as in_other_frames

import jigsync
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.data import picture
from jigsync.io.files import read_bytes
from jigsync.io.images import read_rgb
from jigsync.measure.framed import Framed, reframed, settled
from jigsync.measure.frames import FORMAT, OUTLINES, SHIPPED, Frames, celled, load_frames, perhaps_celled, size_of
from jigsync.measure.seen import Seen
from jigsync.measure.weights import LIMIT, open_session, weights_path
from jigsync.score.poses import score_poses
from jigsync.values import angles
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth


@cache
def cut(presentation: str, severity: str = "medium") -> tuple[Puzzle, Truth]:
    options = CutOptions(Grid(3, 4), 80, SEVERITIES[severity], presentation=presentation)  # type: ignore[arg-type]
    return cut_picture(read_rgb(picture("coffee")), options, seed=3)


@cache
def torn() -> Puzzle:
    return tear_picture(read_rgb(picture("coffee")), TearOptions(9, 90), seed=5)[0]


def errors(puzzle: Puzzle, truth: Truth, frames: Frames) -> tuple[np.ndarray, np.ndarray]:
    """How far off centres (pitches) and angles (degrees, modulo a quarter turn) are."""
    assert truth.pitch is not None
    off, turned = [], []
    for k, name in enumerate(puzzle.ids):
        placed = truth.placement[name]
        assert placed.pose is not None
        assert placed.cell is not None
        row, col = placed.cell
        middle = placed.pose.inverse().act(np.array([[(col + 0.5) * truth.pitch[1], (row + 0.5) * truth.pitch[0]]]))[0]
        off.append(np.hypot(*(frames.centre[k] - middle)) / truth.pitch[0])
        turned.append(np.degrees(abs(angles.wrap(4 * (frames.angle[k] + placed.pose.angle)) / 4)))
    return np.array(off), np.array(turned)


@pytest.mark.parametrize("presentation", ["cropped", "any"])
def test_the_cells_of_worn_fragments_are_found(presentation: str) -> None:
    puzzle, truth = cut(presentation)
    frames = load_frames().frames(Seen.of(puzzle))
    off, turned = errors(puzzle, truth, frames)
    assert truth.pitch is not None
    assert np.median(off) < 0.05
    assert np.median(turned) < 3
    assert frames.pitch == pytest.approx(truth.pitch[0], rel=0.06)
    assert celled(frames)


def test_torn_pieces_have_no_cells() -> None:
    frames = load_frames().frames(Seen.of(torn()))
    assert not celled(frames)
    assert not perhaps_celled(frames)


def test_one_sure_fragment_does_not_outweigh_the_others() -> None:
    frames = load_frames().frames(Seen.of(torn()))
    assert celled(replace(frames, celled=np.array([2.0, 2.0, 2.0, -40.0])))
    assert not celled(replace(frames, celled=np.array([1.0, -40.0, -40.0])))


def test_quarter_turns_are_shifts_by_whole_pixels() -> None:
    puzzle, _ = cut("cropped")
    seen = Seen.of(puzzle)
    frames = settled(seen, load_frames().frames(seen))
    assert frames.quarter
    shown = reframed(puzzle, frames)
    assert shown.cell == round(frames.pitch)
    for old, new in zip(puzzle.fragments.pixels, shown.fragments.pixels, strict=True):
        assert new.shape[0] == new.shape[1] == shown.container
        assert np.array_equal(np.sort(old[old[..., 3] > 0], axis=0), np.sort(new[new[..., 3] > 0], axis=0))


def test_votes_are_about_the_puzzle_whatever_its_scale() -> None:
    puzzle, _ = cut("any")
    seen = Seen.of(puzzle)
    frames = load_frames().frames(seen)
    assert frames.centre.shape == (len(puzzle), 2)
    assert frames.off.min() > 0
    assert 0.7 < size_of(seen.outlines) / frames.pitch < 1.1


def test_frames_turn_with_the_fragments() -> None:
    puzzle, truth = cut("any")
    other, poses = in_other_frames(puzzle, 4, angles=True)
    here, there = (load_frames().frames(Seen.of(one)) for one in (puzzle, other))
    _, turned = errors(puzzle, truth, here)
    for k, name in enumerate(puzzle.ids):
        assert np.hypot(*(poses[name].act(here.centre[k : k + 1])[0] - there.centre[k])) < 0.04 * here.pitch
        apart = angles.wrap(4 * (there.angle[k] - here.angle[k] - poses[name].angle)) / 4
        assert np.degrees(abs(apart)) < 4 + turned[k]


def test_cells_become_poses_and_rows_and_columns() -> None:
    puzzle, truth = cut("any", "light")
    solution = jigsync.solve(puzzle, measurer="framed")
    assert sorted(solution.grid.shape) == [3, 4]
    assert score_poses(solution, truth, puzzle).right == 1.0


def test_what_ships_is_sealed_and_golden() -> None:
    path = weights_path(SHIPPED, None)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert path.stat().st_size == card["bytes"]
    for key in ("data", "licence", "command", "minutes", "config", "validation_score"):
        assert card[key] not in ("", "not stated"), key
    open_session(read_bytes(path, LIMIT), SHIPPED, {"format": FORMAT, "outlines": OUTLINES})
    with np.load(path.with_suffix(".golden.npz"), allow_pickle=False) as golden:
        votes = load_frames().votes(golden["features"], golden["start"])
        np.testing.assert_allclose(votes, golden["votes"], atol=1e-3)


def test_another_file_of_weights_is_taken() -> None:
    puzzle, _ = cut("cropped")
    measured = Framed(weights=weights_path(SHIPPED, None)).measure(puzzle)
    assert measured.frames is not None
    assert measured.n == len(puzzle)
