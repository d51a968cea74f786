"""Which side is up, at any angle: borders, turned pictures, the gauge of a free assembly."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jigsync
from jigsync import data, gauge
from jigsync.gauge import border_angle, fix_gauge, turned_picture
from jigsync.io.images import read_rgb
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
    found = border_angle(lying[..., 3])
    assert found is not None
    assert math.degrees(found) == pytest.approx(degrees, abs=0.5)


def test_a_disc_has_no_straight_border() -> None:
    y, x = np.mgrid[:200, :200] - 99.5
    assert border_angle(np.where(np.hypot(x, y) < 95, 255, 0).astype(np.uint8)) is None
    assert border_angle(np.zeros((9, 9), np.uint8)) is None


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

    monkeypatch.setattr(gauge, "load_unary", missing)
    puzzle, draft = halves(20.0)
    fixed, remark = fix_gauge(puzzle, draft, None, (True,) * 4, False)
    assert "onnxruntime cannot be imported." in remark
    assert not fixed.gauge.determined
    assert fixed.placement == draft.placement


def test_a_given_gauge_is_sure() -> None:
    puzzle, draft = halves(20.0)
    fixed, _ = fix_gauge(puzzle, draft, None, (True,) * 4, True)
    assert fixed.gauge.confidence == 1.0
    assert fixed.placement == draft.placement
