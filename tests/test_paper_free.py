"""The ladder of `jigsync-paper` with a free layout: noise-free, noisy, outliers, several parts, pins.

Scored modulo the gauge, part by part, and absolutely where pins give the frame. Angles are no multiples of 15 degrees,
sizes unlike, ids not consecutive, hypotheses said from either side.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jigsync import data
from jigsync.api import cut_with_truth, solve, tear_with_truth
from jigsync.measure import registry
from jigsync.score.poses import score_poses
from jigsync.solvers.base import Assignment, Progress, SolveRequest, layouts_of
from jigsync.solvers.lattice import lattice_of
from jigsync.solvers.paper import Paper
from jigsync.studies.planted_poses import Damage, Exists, PlantedPoses, plant_poses
from jigsync.studies.synthetic import measured, random_solved, true_relations
from jigsync.sync.poses import PLAIN, PoseOptions, synchronize_poses
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.layout import FREE, Grid
from jigsync.values.measurements import Measurements
from jigsync.values.pose import Pose

SIZES = (2, 3, 5, 9, 16, 36, 100)
HONEST = Damage(noise=1.0)
LIGHT = Damage(noise=1.0, replaced=0.05, rivals=0.2, strays=0.2)
HEAVY = Damage(noise=1.0, replaced=0.2, rivals=1.0, strays=1.0)


def planted(n: int, damage: Damage, seed: int = 0, components: int = 1) -> PlantedPoses:
    return plant_poses(Exists(n, components), damage, np.random.default_rng([n, seed, 1]))


def solved(made: PlantedPoses, **options: object) -> Assignment:
    return Paper().solve(SolveRequest(made.ids, made.measurements, layout=FREE, **options))  # type: ignore[arg-type]


def right(answer: Assignment, made: PlantedPoses) -> float:
    """Share of fragments right, each part of the truth by its own best motion."""
    assert answer.poses is not None
    parts = [np.flatnonzero(made.component == part) for part in range(made.component.max() + 1)]
    found = answer.poses
    return sum(
        made.right(found.angle, found.xy, members) * len(members)
        for members in parts
        if np.all(found.component[members] >= 0)
    ) / len(made.ids)


def absolutely(answer: Assignment, made: PlantedPoses) -> float:
    assert answer.poses is not None
    placed = np.flatnonzero(answer.poses.component >= 0)
    return made.stands(answer.poses.angle, answer.poses.xy, placed) * len(placed) / len(made.ids)


@pytest.mark.parametrize("n", SIZES)
def test_noise_free(n: int) -> None:
    made = planted(n, Damage(blur=0.0))
    answer = solved(made)
    assert answer.status == "ok"
    assert answer.reason == ""
    assert answer.layout == FREE
    assert answer.poses is not None
    assert not answer.poses.component.any()
    assert answer.confidences is not None
    np.testing.assert_allclose(answer.confidences, 1.0)
    turn = made.angle[0] - answer.poses.angle[0]
    np.testing.assert_allclose(angles.wrap(answer.poses.angle + turn - made.angle), 0, atol=1e-5)
    shift = angles.act(turn, answer.poses.xy) - made.xy
    np.testing.assert_allclose(shift - shift[0], 0, atol=1e-2)
    assert answer.energy is not None
    assert answer.energy < 0


@pytest.mark.parametrize("n", SIZES)
def test_noise(n: int) -> None:
    made = planted(n, HONEST)
    answer = solved(made)
    assert answer.status == "ok"
    assert right(answer, made) == 1.0


@pytest.mark.parametrize("n", [9, 16, 36, 100])
def test_a_few_outliers(n: int) -> None:
    made = planted(n, LIGHT)
    answer = solved(made)
    assert right(answer, made) >= 0.94
    assert answer.confidences is not None
    assert answer.poses is not None
    assert answer.confidences[answer.poses.component >= 0].mean() > 0.8


def test_more_wrong_hypotheses_than_true_ones() -> None:
    share: dict[str, list[float]] = {"default": [], "no loops": [], "plain": []}
    every = {"default": PoseOptions(), "no loops": PoseOptions(loops=False), "plain": PLAIN}
    for seed in range(6):
        made = planted(36, HEAVY, seed)
        assert made.true.mean() < 0.35
        for name, options in every.items():
            found = synchronize_poses(made.hypotheses, options)
            share[name].append(made.right(found.angle, found.xy))
    mean = {name: float(np.mean(values)) for name, values in share.items()}
    assert mean["default"] > 0.75
    assert mean["default"] > mean["no loops"] + 0.1
    assert mean["plain"] < 0.2


def test_confidences_tell_right_from_wrong() -> None:
    told, is_right = [], []
    for seed in range(8):
        made = planted(25, replace(HEAVY, blur=0.9), seed)
        answer = solved(made)
        assert answer.poses is not None
        assert answer.confidences is not None
        told.append(answer.confidences)
        is_right.append(made.which(answer.poses.angle, answer.poses.xy))
    confidence, hit = np.concatenate(told), np.concatenate(is_right)
    assert confidence[hit].mean() > confidence[~hit].mean() + 0.15


@pytest.mark.parametrize("n", [9, 36])
def test_a_measurer_that_is_too_sure(n: int) -> None:
    made = planted(n, replace(LIGHT, noise=2.0))
    found = synchronize_poses(made.hypotheses)
    assert found.scale > 1.2
    assert made.right(found.angle, found.xy) >= 0.75
    assert 1.0 <= synchronize_poses(planted(n, HONEST).hypotheses).scale < 1.2


@pytest.mark.parametrize(("n", "components"), [(5, 2), (16, 3), (60, 4)])
def test_several_parts(n: int, components: int) -> None:
    made = planted(n, HONEST, components=components)
    answer = solved(made)
    assert answer.status == "partial"
    assert f"{components} parts" in answer.reason
    assert "nothing is claimed" in answer.reason
    assert right(answer, made) == 1.0
    assert answer.poses is not None
    component = answer.poses.component
    for part in range(components):
        assert len(set(component[made.component == part])) == 1
        own = answer.poses.xy[component == part]
        np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-6)  # each in a frame of its own
    assert np.all(np.diff(np.bincount(component)) <= 0)  # 0 is the largest


def test_a_hypothesis_that_is_hardly_believed_joins_nothing() -> None:
    made = planted(12, HONEST, components=2)
    first, second = (int(np.flatnonzero(made.component == part)[0]) for part in range(2))
    bridge = PairHypotheses(
        12,
        *np.array([[first], [second]]),
        *np.array([[0.3]]),
        np.array([[90.0, 5]]),
        *np.array([[-3.0]]),
        np.eye(3)[None],
    )
    for log_odds, status in ((-3.0, "partial"), (3.0, "ok")):
        joined = made.hypotheses.joined(replace(bridge, log_odds=np.array([log_odds])))
        answer = solved(replace(made, hypotheses=joined))
        assert answer.status == status


def test_pins_are_where_they_are_said_to_be() -> None:
    made = planted(30, LIGHT)
    for k in (3, 17):
        pin = made.pose(k)
        answer = solved(made, pins={made.ids[k]: pin})
        assert answer.poses is not None
        assert answer.poses.angle[k] == pin.angle
        assert tuple(answer.poses.xy[k]) == pin.xy
        assert absolutely(answer, made) >= 0.7  # a tilt of one seam moves what is far from the pin
        assert right(answer, made) >= 0.94
    elsewhere = Pose.of_degrees(-77.3, (1000.0, -3.5))
    answer = solved(made, pins={made.ids[5]: elsewhere})
    assert answer.poses is not None
    moved = elsewhere.compose(made.pose(5).inverse())
    want = replace(made, angle=angles.wrap(made.angle + moved.angle), xy=moved.act(made.xy))
    assert absolutely(answer, want) >= 0.7


def test_pins_join_parts() -> None:
    made = planted(20, HONEST, components=3)
    pinned = [int(k) for part in range(3) for k in np.flatnonzero(made.component == part)[[0, -1]]]
    pins = {made.ids[k]: made.pose(k) for k in pinned}
    answer = solved(made, pins=pins)
    assert answer.status == "ok"
    assert absolutely(answer, made) == 1.0
    assert answer.poses is not None
    assert not answer.poses.component.any()
    first = {name: pin for name, pin in pins.items() if made.component[made.ids.index(name)] == 2}
    some = solved(made, pins=first)
    assert some.poses is not None
    assert "3 parts" in some.reason
    assert made.stands(some.poses.angle, some.poses.xy, np.flatnonzero(made.component == 2)) == 1.0


def test_excluded_fragments_and_fragments_that_nothing_holds() -> None:
    made = planted(16, HONEST)
    out = made.ids[4]
    answer = solved(made, excluded=frozenset({out}))
    assert answer.poses is not None
    assert answer.confidences is not None
    assert answer.poses.component[4] == -1
    assert answer.confidences[4] == 0
    kept = np.flatnonzero(np.arange(16) != 4)
    assert made.right(answer.poses.angle, answer.poses.xy, kept) == 1.0
    lone = made.hypotheses.keep((made.hypotheses.i != 4) & (made.hypotheses.j != 4))
    answer = solved(replace(made, hypotheses=lone))
    assert answer.status == "partial"
    assert "1 of 16" in answer.reason
    assert answer.poses is not None
    assert answer.poses.component[4] == -1
    answer = solved(replace(made, hypotheses=lone), pins={out: made.pose(4)})
    assert answer.poses is not None
    assert answer.poses.component[4] >= 0  # a pin places it


def test_nothing_to_go_by() -> None:
    made = planted(4, HONEST)
    for hopeless in (PairHypotheses.none(4), replace(made.hypotheses, log_odds=np.full(len(made.hypotheses), -8.0))):
        answer = solved(replace(made, hypotheses=hopeless))
        assert not answer
        assert answer.reason.endswith(".")
    one = Measurements(("f9",), Hypothesised(PairHypotheses.none(1), 100.0))
    assert Paper().solve(SolveRequest(("f9",), one, layout=FREE)).status == "ok"


def test_upright() -> None:
    made = planted(16, LIGHT)
    forth = angles.matrix(made.angle[made.hypotheses.i])
    spin = np.zeros((len(made.hypotheses), 3, 3))
    spin[:, :2, :2], spin[:, 2, 2] = forth, 1.0
    relative = made.angle[made.hypotheses.j] - made.angle[made.hypotheses.i]
    flat = replace(
        made.hypotheses,
        angle=angles.wrap(made.hypotheses.angle - relative),
        xy=angles.act(made.angle[made.hypotheses.i], made.hypotheses.xy),
        information=spin @ made.hypotheses.information @ spin.transpose(0, 2, 1),
    )
    upright = replace(made, hypotheses=flat, angle=np.zeros(16))
    answer = solved(upright, upright=True)
    assert answer.poses is not None
    assert not answer.poses.angle.any()
    assert right(answer, upright) >= 0.93


def test_a_mirrored_sign_passes_on_half_turns_and_fails_on_mixed_angles() -> None:
    mixed = planted(16, Damage())
    half_turns = np.where(np.random.default_rng(0).random(16) < 0.5, 0.0, -np.pi)
    for angle, blind in ((half_turns, True), (mixed.angle, False)):
        i, j = mixed.hypotheses.i, mixed.hypotheses.j
        made = replace(
            mixed,
            angle=angle,
            hypotheses=replace(
                mixed.hypotheses,
                angle=angles.wrap(angle[j] - angle[i]),
                xy=angles.act(-angle[i], mixed.xy[j] - mixed.xy[i]),
            ),
        )
        assert right(solved(made), made) == 1.0
        negated = replace(made, hypotheses=replace(made.hypotheses, angle=angles.wrap(-made.hypotheses.angle)))
        answer = solved(negated)
        whole = answer.poses is not None and made.right(answer.poses.angle, answer.poses.xy) == 1.0
        assert whole == blind


def test_the_answer_does_not_depend_on_who_says_it_or_when() -> None:
    made = planted(25, LIGHT)
    first = solved(made)
    order = np.random.default_rng(3).permutation(len(made.hypotheses))
    for other in (made.hypotheses, made.hypotheses.keep(order), made.hypotheses.reversed()):
        again = solved(replace(made, hypotheses=other))
        assert first.poses is not None
        assert again.poses is not None
        turn = first.poses.angle[0] - again.poses.angle[0]
        np.testing.assert_allclose(angles.wrap(again.poses.angle + turn - first.poses.angle), 0, atol=2e-3)
        np.testing.assert_allclose(angles.act(turn, again.poses.xy), first.poses.xy, atol=0.5)
    repeated = solved(made)
    assert repeated.poses is not None
    np.testing.assert_array_equal(repeated.poses.xy, first.poses.xy)


def test_measurements_of_a_grid_are_hypotheses_too() -> None:
    solved = random_solved(Grid(4, 6), np.random.default_rng(5))
    made = measured(solved, true_relations(solved))
    answer = Paper().solve(SolveRequest(solved.ids, made, layout=FREE))
    assert answer.poses is not None
    lattice = lattice_of(answer.poses.xy)
    assert lattice is not None
    assert {lattice.grid, lattice.grid.turned(1)} == {Grid(4, 6), Grid(6, 4)}


def test_any_measurer_goes_with_it() -> None:
    puzzle, truth = cut_with_truth(data.picture("coffee"), (3, 4), "light", cell=64, seed=4)
    assert set(layouts_of(Paper())) == {"grid", "free"}
    found = solve(puzzle, "jigsync-paper", measurer=registry.get("boundary"), layout="free")
    assert score_poses(found, truth, puzzle).right >= 0.9


@pytest.mark.parametrize(("picture", "pieces", "erosion"), [("chelsea", 12, 0.0), ("rocket", 16, 0.02)])
def test_torn_pictures(picture: str, pieces: int, erosion: float) -> None:
    puzzle, truth = tear_with_truth(data.picture(picture), pieces, 1, size=96, erosion=erosion)
    found = solve(puzzle, "jigsync-paper", layout="free")
    assert score_poses(found, truth, puzzle).right >= 0.9


def test_a_cancel_is_heard_between_the_rounds() -> None:
    made = planted(9, HEAVY)
    stages: list[str] = []

    def watch(step: Progress) -> bool:
        stages.append(step.stage)
        return True

    assert not solved(made, progress=watch).note
    assert list(dict.fromkeys(stages)) == ["loops", "angles", "places", "poses"]
    for most in (1, 3, stages.index("places") + 1, len(stages)):
        asked = 0

        def stop(step: Progress, most: int = most) -> bool:
            nonlocal asked
            asked += 1
            return asked < most

        answer = solved(made, progress=stop)
        assert asked == most
        assert "It was cancelled." in (answer.note or answer.reason)
        assert answer.poses is None or np.all(np.isfinite(answer.poses.xy))


def test_the_time_limit_ends_all_rounds() -> None:
    answer = solved(planted(9, HEAVY), time_limit=1e-9)
    assert "The time limit came first." in (answer.note or answer.reason)
