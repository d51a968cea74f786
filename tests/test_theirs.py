"""The metrics of others do what their authors' scripts do, and mislead as docs/metrics.md says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jigsync import data
from jigsync.cli import main
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.cut_folder import save_cut
from jigsync.io.solution_file import save_solution
from jigsync.score.contacts import contacts_of_poses
from jigsync.score.derech import neighbour_share, overlap
from jigsync.score.pairings import pair_shares, registration_recall
from jigsync.score.posed import Posed
from jigsync.score.repair import repair_pairs, repair_scores
from jigsync.score.sizes import sizes_of
from jigsync.score.theirs import THEIRS, their_chance, their_scores
from jigsync.solution import Solution
from jigsync.values.layout import FREE
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle

SIZES = {"a": (60, 90), "b": (50, 40), "c": (44, 70), "d": (38, 52)}
"""Rectangles, a the largest; "d" has a corner cut off."""


def puzzle() -> Puzzle:
    made = []
    for name, shape in SIZES.items():
        pixels = np.full((*shape, 4), 255, dtype=np.uint8)
        if name == "d":
            pixels[:15, :20] = 0
        made.append(pixels)
    return Puzzle(Fragments(tuple(SIZES), tuple(made)))


def at(degrees: float, x: float, y: float) -> Placed:
    return Placed(Pose.of_degrees(degrees, (x, y)))


TRUTH: Placement = {"a": at(17, 200, 210), "b": at(301, 270, 190), "c": at(64, 190, 290), "d": at(179, 260, 260)}
ANSWER: Placement = {"a": at(40, 150, 220), "b": at(329, 215, 232), "c": at(80, 104, 282), "d": at(190, 190, 283)}
"""Right but for a turn of some 20 degrees, and noise."""


def by_their_script(answer: Placement, truth: Placement, fragments: Puzzle) -> tuple[float, float, float]:
    """What the script does, picture by picture, in this test's own words: canvases, pastes and turns of PIL."""
    side = 140
    masks, areas = {}, {}
    for name, pixels in zip(fragments.ids, fragments.fragments.pixels, strict=True):
        height, width = pixels.shape[:2]
        whole = np.zeros((side, side), dtype=np.uint8)
        top, left = (side - height) // 2, (side - width) // 2
        whole[top : top + height, left : left + width] = pixels[..., 3]
        masks[name], areas[name] = Image.fromarray(whole), np.count_nonzero(whole)
    largest = max(areas, key=lambda name: areas[name])

    def row(placement: Placement, name: str) -> tuple[float, float, float]:
        pose = placement[name].pose
        assert pose is not None
        return pose.xy[0] - side / 2, pose.xy[1] - side / 2, pose.degrees % 360

    def canvas(name: str, rot: float, x: int, y: int) -> Image.Image:
        page = Image.new("L", (700, 700))
        page.paste(masks[name].rotate(rot), (x, y))
        return page

    (x, y, rot), (true_x, true_y, true_rot) = row(answer, largest), row(truth, largest)
    dx, dy, turn = int(true_x - x), int(true_y - y), (true_rot - rot + 360) % 360
    left, top, right, bottom = canvas(largest, rot, int(x) + dx, int(y) + dy).getbbox() or (0, 0, 0, 0)
    middle = (right + left) / 2, (bottom + top) / 2
    others = sum(area for name, area in areas.items() if name != largest)
    q_pos, rots, away = 0.0, [], []
    for name in areas:
        if name == largest:
            continue
        (x, y, rot), (true_x, true_y, true_rot) = row(answer, name), row(truth, name)
        result = np.asarray(canvas(name, rot, int(x) + dx, int(y) + dy).rotate(turn, center=middle)) > 0
        home = np.asarray(canvas(name, int(true_rot), int(true_x), int(true_y))) > 0
        q_pos += areas[name] / others * np.count_nonzero(result & home) / np.count_nonzero(result)
        rots.append(math.sqrt(((rot + turn) % 360 - true_rot % 360) ** 2))
        away.append(math.sqrt((x + dx - true_x) ** 2 + (y + dy - true_y) ** 2))
    return q_pos, float(np.mean(rots)) / math.sqrt(2) % 360, float(np.mean(away)) / math.sqrt(2)


def test_repair_agrees_with_its_script_picture_by_picture() -> None:
    for answer in (ANSWER, TRUTH, {**ANSWER, "c": at(81, 190, 300)}):
        found, want = repair_scores(answer, TRUTH, puzzle()), by_their_script(answer, TRUTH, puzzle())
        assert found.q_pos == pytest.approx(want[0], abs=0.02), "two resamplings there, one here"
        assert found.rmse_rotation == pytest.approx(want[1])
        assert found.rmse_translation == pytest.approx(want[2])
    assert repair_scores(TRUTH, TRUTH, puzzle()).q_pos == pytest.approx(1, abs=0.05), "true angles are cut off"


def test_repair_fails_where_its_script_does() -> None:
    nowhere = {**ANSWER, "a": Placed.nowhere()}
    assert repair_scores(nowhere, TRUTH, puzzle()).q_pos is None
    missing = repair_scores({**ANSWER, "b": Placed.nowhere(), "c": Placed.nowhere()}, TRUTH, puzzle())
    whole = repair_scores(ANSWER, TRUTH, puzzle())
    assert missing.q_pos is not None
    assert whole.q_pos is not None
    assert missing.q_pos < whole.q_pos, "what is not placed adds nothing"
    true, claimed = frozenset({("a", "b"), ("b", "c")}), frozenset({("a", "b")})
    assert repair_pairs(claimed, true, {"a": 3.0, "b": 1.0, "c": 1.0}) == (4 / 6, 1.0), "precision by what is true"
    assert repair_pairs(frozenset(), true, {"a": 1.0, "b": 1.0, "c": 1.0}) == (0.0, 0.0)


def test_a_perfect_answer_turned_as_a_whole() -> None:
    """The example of docs/metrics.md: Q_pos follows the turn, RMSE_translation does not."""
    turned = {name: placed.moved(Pose.of_degrees(180, (600, 600))) for name, placed in TRUTH.items()}
    found = repair_scores(turned, TRUTH, puzzle())
    assert found.q_pos is not None
    assert found.q_pos > 0.9
    assert found.rmse_translation is not None
    assert found.rmse_translation > 80


def test_angles_are_not_wrapped() -> None:
    home = {**TRUTH, "b": at(0.5, 270, 190)}
    found = repair_scores({**home, "b": at(-0.5, 270, 190)}, home, puzzle())
    assert found.rmse_rotation == pytest.approx(359 / 3 / math.sqrt(2)), "one degree off, of three fragments"


def test_masks_overlap_themselves() -> None:
    mask = np.ones((60, 60), dtype=np.uint8)
    assert overlap(mask, Pose.identity()) == 1
    assert overlap(mask, Pose.of_degrees(90, (0, 0))) == 1
    assert overlap(mask, Pose.of_degrees(0, (30, 0))) == pytest.approx(1 / 3, abs=0.01)
    # Two squares at 45 degrees share a regular octagon: 2 (sqrt 2 - 1) of either.
    octagon = 2 * (math.sqrt(2) - 1)
    assert overlap(mask, Pose.of_degrees(45, (0, 0))) == pytest.approx(octagon / (2 - octagon), abs=0.02)
    assert overlap(mask, Pose.of_degrees(0, (200, 0))) == 0


def squares(count: int) -> Puzzle:
    pixels = np.full((100, 100, 4), 255, dtype=np.uint8)
    names = tuple(f"f{k}" for k in range(count))
    return Puzzle(Fragments(names, tuple(pixels.copy() for _ in names)))


def row_of(order: list[int], degrees: list[float]) -> Placement:
    return {f"f{k}": at(degrees[place], 100 * place, 0) for place, k in enumerate(order)}


def test_a_square_may_be_turned_by_any_quarter_for_derech() -> None:
    truth = row_of([0, 1, 2, 3], [0, 0, 0, 0])
    contacts = frozenset({("f0", "f1"), ("f1", "f2"), ("f2", "f3")})
    last = {**truth, "f3": at(180, 300, 0)}
    share = neighbour_share(last, truth, contacts, squares(4))
    assert share == pytest.approx(5 / 6), "f3 is right as seen from f2, but not f2 as seen from f3"
    shifted = {**truth, "f3": at(0, 320, 0)}
    assert neighbour_share(shifted, truth, contacts, squares(4)) == 1, "a fifth of its size off: 80 / 120 is above 0.65"
    assert neighbour_share({**truth, "f3": at(0, 325, 0)}, truth, contacts, squares(4)) == pytest.approx(4 / 6)
    assert neighbour_share({}, truth, contacts, squares(4)) == 0
    assert neighbour_share(truth, truth, frozenset(), squares(4)) is None


def test_pairs_are_found_however_they_lie() -> None:
    truth = row_of([0, 1, 2, 3], [0, 0, 0, 0])
    contacts = frozenset({("f0", "f1"), ("f1", "f2"), ("f2", "f3")})
    backwards = row_of([3, 2, 1, 0], [0, 90, 0, 270])
    pieces = squares(4)
    claimed = contacts_of_poses(pieces, backwards, sizes_of(pieces))
    assert claimed == contacts
    assert pair_shares(claimed, contacts) == (1.0, 1.0)
    assert registration_recall(backwards, truth, contacts, sizes_of(pieces), pieces) == 0
    assert pair_shares(frozenset(), contacts) == (None, 0.0)


def test_a_registered_pair_may_be_fifteen_pixels_off() -> None:
    truth = row_of([0, 1], [0, 0])
    contacts, pieces = frozenset({("f0", "f1")}), squares(2)
    for off, want in ((0, 1), (15.5, 1), (16.5, 0)):
        answer = {**truth, "f1": at(0, 100 + off, 0)}
        assert registration_recall(answer, truth, contacts, sizes_of(pieces), pieces) == want, "sqrt of a mean distance"


def test_all_of_them_and_what_a_guess_reaches() -> None:
    pieces = squares(4)
    truth = row_of([0, 1, 2, 3], [0, 0, 0, 0])
    contacts = frozenset({("f0", "f1"), ("f1", "f2"), ("f2", "f3")})
    both = Posed(truth, truth, sizes_of(pieces), contacts, contacts)
    found = their_scores(both, pieces)
    assert list(found) == list(THEIRS)
    assert [found[name] for name in THEIRS] == [1, 0, 0, 1, 1, 1, 1, 1, 1]
    guess = their_chance(both, pieces, 3)
    assert guess == their_chance(both, pieces, 3)
    assert guess != their_chance(both, pieces, 4)
    assert 0 < guess["pair recall (ShreddingNet)"] < 1, "pairs meet by chance"
    assert guess["Q_pos (RePAIR)"] < 0.9


def test_score_shows_them_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rgb = np.asarray(Image.open(data.picture("coffee")).convert("RGB").resize((160, 120)))
    fragments, truth = tear_picture(rgb, TearOptions(3, 40), 1)
    save_cut(tmp_path / "p", fragments, truth)
    save_solution(tmp_path / "s.json", Solution("ok", "", FREE, truth.placement))
    arguments = ["score", str(tmp_path / "s.json"), str(tmp_path / "p" / "truth.json")]
    assert main([*arguments, "--others"]) == 0
    shown = capsys.readouterr().out
    assert "Q_pos (RePAIR)" in shown
    assert "chance" in shown
    assert main([*arguments, "--others", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["others"]) == list(THEIRS)
    assert told["others"]["neighbours (Derech)"] == 1
    assert main([*arguments, "--json"]) == 0
    assert "others" not in json.loads(capsys.readouterr().out)
    (tmp_path / "p" / "puzzle").rename(tmp_path / "elsewhere")
    assert main([*arguments, "--others"]) == 2
