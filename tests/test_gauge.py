"""Which side is up, at any angle: borders, turned pictures, the gauge of a free assembly."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jigsync
from jigsync import data, gauge
from jigsync.gauge import any_angle, fix_gauge
from jigsync.io.images import read_rgb
from jigsync.measure.borders import borders
from jigsync.measure.upright import Looker, turned_picture
from jigsync.solution import Solution
from jigsync.values import angles, z4
from jigsync.values.layout import FREE
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Pixels, Puzzle


def picture() -> Pixels:
    """A bundled upright picture, opaque, oblong."""
    rgb = read_rgb(data.picture("astronaut"))[:400, :300]
    return np.concatenate([rgb, np.full((400, 300, 1), 255, np.uint8)], axis=2)


def test_turning_a_picture_by_quarter_turns_is_exact() -> None:
    for turns in range(4):
        turned = turned_picture(picture(), angles.of_turns(turns))
        np.testing.assert_allclose(turned.astype(int), z4.turn_pixels(picture(), turns).astype(int), atol=1)


@pytest.mark.parametrize("degrees", [7.0, 33.0, 81.0])
def test_straight_borders_tell_the_angle_modulo_a_quarter_turn(degrees: float) -> None:
    lying = turned_picture(picture(), math.radians(-degrees))
    found = borders(lying[..., 3])
    assert math.degrees(found.angle) == pytest.approx(degrees, abs=0.5)
    assert found.sure > 0.99


def test_borders_that_are_partly_gone_tell_it_too_but_less_surely() -> None:
    whole = picture()
    whole[:150, :150] = whole[280:, 200:] = 0
    lying = borders(turned_picture(whole, math.radians(-20.0))[..., 3])
    assert math.degrees(lying.angle) == pytest.approx(20.0, abs=1.0)
    assert lying.share < borders(picture()[..., 3]).share - 0.1


def test_a_disc_has_no_straight_border() -> None:
    y, x = np.mgrid[:200, :200] - 99.5
    assert borders(np.where(np.hypot(x, y) < 95, 255, 0).astype(np.uint8)).sure < 0.05
    assert borders(np.zeros((9, 9), np.uint8)).sure < 0.05


def test_a_disc_is_put_upright_by_what_it_shows() -> None:
    """No border helps: all angles are looked at, and the likeliest again, finer."""
    whole = picture()[:300]
    y, x = np.mgrid[:300, :300] - 149.5
    whole[np.hypot(x, y) > 148] = 0
    lying = turned_picture(whole, math.radians(-40.0))
    angle, p = any_angle(lying, Looker.shipped(), gauge.shipped())
    assert len(angle) == len(p) == 4 * (1 + gauge.STEPS)
    assert p.sum() == pytest.approx(1)
    assert abs(angles.wrap(float(angle[int(np.argmax(p))]) - math.radians(40.0))) < gauge.NEAR


def halves(degrees: float) -> tuple[Puzzle, Solution]:
    """The picture in two halves, assembled as it was but lying turned by `degrees`."""
    whole = picture()
    puzzle = Puzzle(Fragments(("b2", "a7"), (whole[:150].copy(), whole[150:].copy())))
    frame = Pose.of_degrees(degrees, (31.0, -7.0))
    placement = {
        "b2": Placed(frame.compose(Pose.of_turns(0, (150.0, 75.0)))),
        "a7": Placed(frame.compose(Pose.of_turns(0, (150.0, 275.0)))),
    }
    return puzzle, Solution("ok", "", FREE, placement, puzzle=puzzle)


@pytest.mark.parametrize("degrees", [0.0, 37.0, -120.0, 180.0])
def test_a_free_assembly_is_put_upright(degrees: float) -> None:
    puzzle, draft = halves(degrees)
    fixed, remark = fix_gauge(puzzle, draft, None, (True,) * 4, False)
    assert remark == ""
    assert fixed.gauge.angles[0] == 0
    assert sum(fixed.gauge.probabilities) == pytest.approx(1)
    assert fixed.gauge.determined
    for name in puzzle.ids:
        pose = fixed.placement[name].pose
        assert pose is not None
        assert abs(pose.degrees) < 2.0
    one, other = (fixed.placement[name].pose for name in puzzle.ids)
    assert one is not None
    assert other is not None
    assert np.array(one.between(other).xy) == pytest.approx([0, 200], abs=1e-6)


def test_a_free_assembly_without_the_head_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise jigsync.JigsyncError("onnxruntime cannot be imported.")

    monkeypatch.setattr(Looker, "shipped", missing)
    puzzle, draft = halves(20.0)
    fixed, remark = fix_gauge(puzzle, draft, None, (True,) * 4, False)
    assert "onnxruntime cannot be imported." in remark
    assert not fixed.gauge.determined
    assert not fixed.gauge.clear
    assert fixed.placement == draft.placement


def test_a_given_gauge_is_sure() -> None:
    puzzle, draft = halves(20.0)
    fixed, _ = fix_gauge(puzzle, draft, None, (True,) * 4, True)
    assert fixed.gauge.confidence == 1.0
    assert fixed.gauge.clear
    assert fixed.placement == draft.placement
