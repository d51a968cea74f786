"""The solver `free`: poses from pair hypotheses, outlines and matches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from jigsync import data
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.images import read_rgb
from jigsync.measure.outline import read_outlines
from jigsync.score.poses import PoseScores, score_placement
from jigsync.score.sizes import sizes_of
from jigsync.solvers import base
from jigsync.solvers.base import Progress, SolveRequest
from jigsync.studies.planted_pairs import Quality, plant
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.layout import FREE
from jigsync.values.measurements import Measurements
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

GOOD = Quality(found=1.0, false=3.0, apart=6.0, xy=2.0, angle=float(np.radians(1.5)))


class Case(NamedTuple):
    puzzle: Puzzle
    truth: Truth
    measurements: Measurements

    @property
    def known(self) -> Hypothesised:
        assert isinstance(self.measurements.pairs, Hypothesised)
        return self.measurements.pairs

    def request(self, **others: object) -> SolveRequest:
        return SolveRequest(self.puzzle.ids, self.measurements, FREE, **others)  # type: ignore[arg-type]

    def scores(self, answer: base.Assignment) -> PoseScores:
        placed, _ = answer.placed(self.puzzle)
        return score_placement(placed, self.truth.placement, sizes_of(self.puzzle), self.truth.contacts, None)


@cache
def torn(pieces: int = 9, erosion: float = 0.03, seed: int = 3, name: str = "coffee") -> Case:
    puzzle, truth = tear_picture(
        read_rgb(data.picture(name)), TearOptions(pieces=pieces, size=64, erosion=erosion), seed
    )
    outlines, _ = read_outlines(puzzle)
    poses = [pose for i in puzzle.ids if (pose := truth.placement[i].pose) is not None]
    planted = plant(outlines, poses, np.random.default_rng(seed), GOOD, gap=4.0 + 2.5 * erosion * 64)
    known = Hypothesised(planted.hypotheses, 64.0, outlines, planted.matches)
    return Case(puzzle, truth, Measurements(puzzle.ids, known))


def poses_of(answer: base.Assignment) -> NDArray[np.float64]:
    assert answer.poses is not None
    return np.concatenate([answer.poses.xy, answer.poses.angle[:, None]], axis=1)


@pytest.mark.parametrize(("pieces", "erosion"), [(9, 0.0), (9, 0.03), (16, 0.03)])
def test_a_torn_picture_is_put_together_and_its_gap_is_found(pieces: int, erosion: float) -> None:
    case = torn(pieces, erosion)
    answer = base.get("free").solve(case.request())
    assert answer.status == "ok"
    assert case.scores(answer).perfect
    assert answer.confidences is not None
    assert answer.confidences.mean() > 0.8


def test_the_default_solver_takes_it_where_the_layout_is_free() -> None:
    case = torn()
    assert np.array_equal(
        poses_of(base.get("jigsync").solve(case.request())), poses_of(base.get("free").solve(case.request()))
    )


def test_the_same_request_gives_the_same_answer() -> None:
    case = torn()
    first, second = (base.get("free").solve(case.request()) for _ in range(2))
    assert np.array_equal(poses_of(first), poses_of(second))
    assert first.energy == second.energy


def test_the_answer_does_not_depend_on_the_order_of_the_hypotheses() -> None:
    case = torn()
    order = np.random.default_rng(1).permutation(len(case.known.found))
    mixed = replace(case.known, found=case.known.found.keep(order))
    again = Case(case.puzzle, case.truth, Measurements(case.puzzle.ids, mixed))
    assert again.scores(base.get("free").solve(again.request())).perfect


def test_pins_are_kept_to_the_letter_and_the_rest_lies_towards_them() -> None:
    case = torn()
    moved = Pose(0.7, (31.0, -12.0))
    name, other = case.puzzle.ids[2], case.puzzle.ids[5]
    pins = {i: moved.compose(pose) for i in (name, other) if (pose := case.truth.placement[i].pose) is not None}
    answer = base.get("free").solve(case.request(pins=pins))
    placed, _ = answer.placed(case.puzzle)
    for i, pin in pins.items():
        found = placed[i].pose
        assert found is not None
        assert found.xy == pytest.approx(pin.xy)
        assert found.angle == pytest.approx(pin.angle)
        assert placed[i].component == 0
    scores = case.scores(answer)
    assert scores.perfect
    assert scores.motion is not None
    assert scores.motion.compose(moved).angle == pytest.approx(0.0, abs=0.03)


def test_excluded_fragments_are_left_out() -> None:
    case = torn()
    out = case.puzzle.ids[4]
    answer = base.get("free").solve(case.request(excluded=frozenset({out})))
    scores = case.scores(answer)
    assert scores.verdicts[out] == "unplaced"
    assert scores.count("right") == len(case.puzzle) - 1


def test_two_pictures_stay_two_components() -> None:
    one, two = torn(), torn(seed=8, name="rocket")
    n, m = one.known.n, two.known.n
    first, second = one.known, two.known
    assert first.outlines is not None
    assert second.outlines is not None
    outlines = replace(
        first.outlines,
        start=np.concatenate([first.outlines.start, second.outlines.start[1:] + first.outlines.start[-1]]),
        xy=np.concatenate([first.outlines.xy, second.outlines.xy]),
        normal=np.concatenate([first.outlines.normal, second.outlines.normal]),
    )
    h = second.found
    shifted = PairHypotheses(n + m, h.i + n, h.j + n, h.angle, h.xy, h.log_odds, h.information)
    found = replace(first.found, n=n + m).joined(shifted)
    ids = (*(f"a{i}" for i in one.puzzle.ids), *(f"b{i}" for i in two.puzzle.ids))
    measurements = Measurements(ids, Hypothesised(found, 64.0, outlines))
    answer = base.get("free").solve(SolveRequest(ids, measurements, FREE))
    assert answer.poses is not None
    assert answer.status == "partial"
    assert "2 groups" in answer.reason
    assert set(answer.poses.component[:n]).isdisjoint(answer.poses.component[n:])
    assert len(set(answer.poses.component.tolist())) == 2


def test_without_evidence_it_fails_in_one_sentence() -> None:
    ids = ("a", "b", "c")
    answer = base.get("free").solve(
        SolveRequest(ids, Measurements(ids, Hypothesised(PairHypotheses.none(3), 64.0)), FREE)
    )
    assert answer.status == "failed"
    assert answer.reason == "No two fragments could be joined."


def test_a_single_fragment_is_its_own_answer() -> None:
    measurements = Measurements(("a",), Hypothesised(PairHypotheses.none(1), 64.0))
    answer = base.get("free").solve(SolveRequest(("a",), measurements, FREE))
    assert answer.status == "ok"
    assert answer.poses is not None
    assert answer.poses.component.tolist() == [0]


def test_without_outlines_fragments_are_squares() -> None:
    """Two by two squares, all turned by an odd angle and each by quarter turns: three hypotheses join them."""
    cells = ((0, (0, 0)), (1, (64, 0)), (3, (0, 64)), (2, (64, 64)))
    true = [Pose(0.3, (5.0, 7.0)).compose(Pose.of_turns(k, xy)) for k, xy in cells]
    pairs = [(0, 1), (3, 1), (2, 3)]
    said = [true[i].between(true[j]) for i, j in pairs]
    sure = np.diag([1.0, 1.0, 1e3])
    found = PairHypotheses(
        4,
        np.array([i for i, _ in pairs]),
        np.array([j for _, j in pairs]),
        np.array([pose.angle for pose in said]),
        np.array([pose.xy for pose in said]),
        np.full(3, 4.0),
        np.tile(sure, (3, 1, 1)),
    )
    ids = ("a", "b", "c", "d")
    answer = base.get("free").solve(SolveRequest(ids, Measurements(ids, Hypothesised(found, 64.0)), FREE))
    assert answer.poses is not None
    assert answer.poses.component.tolist() == [0, 0, 0, 0]
    x, y, angle = poses_of(answer).T
    lies = Pose(angle[0], (x[0], y[0])).between(Pose(angle[2], (x[2], y[2])))
    right = true[0].between(true[2])
    assert lies.xy == pytest.approx(right.xy, abs=3.0)
    assert lies.angle == pytest.approx(right.angle, abs=0.05)


def test_a_hypothesis_that_would_lay_fragments_on_each_other_is_not_obeyed() -> None:
    true = [Pose.of_turns(0, (0, 0)), Pose.of_turns(1, (64, 0)), Pose(1.0, (80, 5))]
    said = [true[0].between(true[1]), true[0].between(true[2])]
    found = PairHypotheses(
        3,
        np.array([0, 0]),
        np.array([1, 2]),
        np.array([pose.angle for pose in said]),
        np.array([pose.xy for pose in said]),
        np.array([5.0, 4.0]),
        np.tile(np.diag([1.0, 1.0, 1e3]), (2, 1, 1)),
    )
    ids = ("a", "b", "c")
    answer = base.get("free").solve(SolveRequest(ids, Measurements(ids, Hypothesised(found, 64.0)), FREE))
    assert answer.poses is not None
    assert answer.poses.component.tolist() == [0, 0, -1]
    assert answer.status == "partial"
    assert answer.reason == "1 of 3 fragments found no place."


def test_cancelling_keeps_what_was_reached() -> None:
    case = torn()
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) < 6

    answer = base.get("free").solve(case.request(progress=stop))
    assert len(seen) == 6
    assert answer.note == "It was cancelled."
    assert answer.poses is not None
    assert np.bincount(answer.poses.component[answer.poses.component >= 0]).max() >= 2
