"""The contour measurer: outlines and features that do not depend on how fragments lie, matches, poses, what ships."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from reframe import reframed

from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.measure import contours
from jigsync.measure.contour_evidence import FEATURES
from jigsync.measure.contour_matches import SampleCodes, match
from jigsync.measure.contours import Contours, load_contours, odds_of
from jigsync.measure.contours_plain import ContoursPlain
from jigsync.measure.outline import LEAST, STEP, Scan, read_outlines, trace
from jigsync.measure.outline_features import CHANNELS, features, neighbours
from jigsync.measure.weights import weights_path
from jigsync.score.hypotheses import are_true, hypothesis_scores, poses_of
from jigsync.values import angles
from jigsync.values.errors import FormatError, ImageError, JigsyncError
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.outlines import Outlines
from jigsync.values.puzzle import Fragments, Pixels, Puzzle
from jigsync.values.truth import Truth


@cache
def torn(pieces: int = 8, erosion: float = 0.0, presentation: str = "any") -> tuple[Puzzle, Truth]:
    rgb = read_rgb(picture("coffee"))
    return tear_picture(rgb, TearOptions(pieces, 90, erosion=erosion, presentation=presentation), seed=5)  # type: ignore[arg-type]


def puzzle_of(*pixels: Pixels) -> Puzzle:
    return Puzzle(Fragments(tuple(f"p{k}" for k in range(len(pixels))), tuple(pixels)))


def nearest(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every point of a the nearest of b, and how far it is."""
    away = np.hypot(*(a[:, None] - b).transpose(2, 0, 1))
    return away.argmin(axis=1), away.min(axis=1)


def disk(radius: float, side: int) -> Pixels:
    y, x = np.mgrid[:side, :side] + 0.5 - side / 2
    alpha = np.clip(radius - np.hypot(x, y) + 0.5, 0, 1)
    return np.repeat(np.rint(255 * alpha).astype(np.uint8)[..., None], 4, axis=2)


def test_the_outline_of_a_disk_is_its_circle_clockwise_with_normals_outwards() -> None:
    outlines, _ = read_outlines(puzzle_of(disk(40, 95), disk(40, 100)))
    for i in range(2):
        xy = outlines.of(i)
        radius = np.hypot(*xy.T)
        assert np.abs(radius - 40).max() < 0.1
        around = np.roll(xy, -1, axis=0)
        assert np.sum(xy[:, 0] * around[:, 1] - around[:, 0] * xy[:, 1]) > 0  # x right, y down: clockwise
    outward = outlines.xy / np.hypot(*outlines.xy.T)[:, None]
    assert (outlines.normal * outward).sum(axis=1).min() > 0.99
    steps = np.hypot(*(np.roll(outlines.of(0), -1, axis=0) - outlines.of(0)).T)
    assert np.ptp(steps) < 0.02 * outlines.step
    assert np.median(steps) == pytest.approx(outlines.step, rel=0.02)


def test_an_opaque_picture_has_its_own_rectangle() -> None:
    outlines, _ = read_outlines(puzzle_of(np.full((60, 90, 4), 255, dtype=np.uint8)))
    xy = outlines.of(0)
    beyond = np.abs(xy) - np.array([45, 30])
    assert np.abs(beyond.max(axis=1)).max() < 1.0  # corners are a little round
    assert np.median(np.abs(beyond.max(axis=1))) < 0.02


def test_fragments_of_all_sizes_share_one_step_and_the_smallest_still_have_samples() -> None:
    outlines, _ = read_outlines(puzzle_of(disk(40, 100), disk(42, 100), disk(3, 9), disk(200, 420)))
    counts = np.diff(outlines.start)
    assert counts[2] == LEAST
    assert counts[3] == pytest.approx(5 * counts[0], rel=0.05)
    assert outlines.step == pytest.approx(STEP * 41 * np.sqrt(np.pi) / 110, rel=0.02)


def test_only_the_largest_part_counts_and_holes_do_not() -> None:
    whole = disk(40, 160)
    broken = whole.copy()
    broken[75:85, 75:85] = 0
    broken[2:12, 2:12] = 255
    alone, _ = read_outlines(puzzle_of(whole))
    both, _ = read_outlines(puzzle_of(broken))
    assert nearest(both.of(0), alone.of(0))[1].max() < 0.8 * alone.step
    assert np.hypot(*both.of(0).T).max() < 41


def test_a_saddle_is_one_curve_or_two_as_its_middle_says() -> None:
    alpha = np.zeros((6, 6), dtype=np.float32)
    alpha[1:3, 1:3] = alpha[3:5, 3:5] = 200
    assert len(trace(alpha)) == 8  # the middle is below one half: two squares of 4 edges of 2 crossings
    alpha[1:3, 1:3] = alpha[3:5, 3:5] = 255
    alpha[2, 3] = alpha[3, 2] = 60
    assert len(trace(alpha)) > 8


def test_what_shows_nothing_is_refused_in_a_sentence() -> None:
    with pytest.raises(ImageError, match="opaque"):
        read_outlines(puzzle_of(disk(20, 50), np.zeros((9, 9, 4), dtype=np.uint8)))


@pytest.mark.parametrize(("any_angle", "tolerance"), [(False, 0.02), (True, 0.25)])
def test_features_are_the_same_however_a_fragment_lies(any_angle: bool, tolerance: float) -> None:
    old, _ = torn()
    new, new_from_old = reframed(old, 3, any_angle)
    (a, scans_a), (b, scans_b) = read_outlines(old), read_outlines(new)
    seen_a, seen_b = features(old, a, scans_a), features(new, b, scans_b)
    assert seen_a.shape == (a.start[-1], CHANNELS)
    for i, name in enumerate(old.ids):
        here = slice(a.start[i], a.start[i + 1])
        at, away = nearest(new_from_old[name].act(a.of(i)), b.of(i))
        assert away.max() < 0.51 * a.step + 0.3
        assert np.median(away) < 0.6 * tolerance * a.step
        apart = np.abs(seen_a[here] - seen_b[b.start[i] + at])
        assert np.median(apart) < tolerance
        assert np.mean(apart) < 2 * tolerance


def test_neighbours_run_around_every_outline() -> None:
    near = neighbours(np.array([0, 3, 8]), (-1, 2))
    assert near.tolist() == [[2, 2], [0, 0], [1, 1], [7, 5], [3, 6], [4, 7], [5, 3], [6, 4]]


def test_matches_are_what_the_whole_matrix_says() -> None:
    rng = np.random.default_rng(2)
    start = np.array([0, 20, 45, 61])
    f, g = (4 * rng.standard_normal((61, 5)).astype(np.float32) for _ in range(2))
    none = rng.normal(size=61).astype(np.float32)
    outlines = Outlines(start, np.zeros((61, 2)), np.zeros((61, 2)), 3.0)
    found, log_all = match(SampleCodes(f, g, none), outlines)
    scores = (f @ g.T + g @ f.T).astype(np.float64)
    scores[outlines.owner[:, None] == outlines.owner] = -np.inf
    every = np.logaddexp(np.logaddexp.reduce(scores, axis=1), none)
    np.testing.assert_allclose(log_all, every, rtol=1e-4)
    strength = np.exp(scores - (every[:, None] + every) / 2)
    np.testing.assert_allclose(found.strength, strength[found.s, found.t], rtol=1e-3)
    assert (found.s < found.t).all()
    sure = np.argwhere(np.triu(strength > 0.3))
    assert {tuple(pair) for pair in sure} <= set(zip(found.s, found.t, strict=True))


@pytest.mark.parametrize("measurer", [Contours(), ContoursPlain()])
def test_hypotheses_of_a_torn_picture_are_true(measurer: Contours | ContoursPlain) -> None:
    puzzle, truth = torn()
    pairs = measurer.measure(puzzle).pairs
    assert isinstance(pairs, Hypothesised)
    true = are_true(pairs.found, poses_of(truth.placement, puzzle.ids), pairs.size)
    assert truth.contacts is not None
    touching = [tuple(sorted(puzzle.ids.index(name) for name in pair)) for pair in truth.contacts]
    scores = hypothesis_scores(pairs.found, true, [(pair[0], pair[1]) for pair in touching])
    assert scores.best >= 0.75
    assert scores.recall >= 0.5
    assert (np.diff(pairs.found.log_odds) <= 0).all()
    assert np.linalg.eigvalsh(pairs.found.information).min() > -1e-9


@pytest.mark.parametrize("any_angle", [False, True])
def test_hypotheses_are_the_same_however_fragments_lie(any_angle: bool) -> None:
    puzzle, _ = torn()
    new, new_from_old = reframed(puzzle, 4, any_angle)
    moved = [new_from_old[name] for name in puzzle.ids]
    old, found = Contours().measure(puzzle).hypotheses(), Contours().measure(new).hypotheses()
    sure = [k for k in range(len(old)) if old.log_odds[k] > 2]
    assert len(sure) >= 6
    for k in sure:
        i, j = int(old.i[k]), int(old.j[k])
        expected = moved[i].compose(old.pose(k)).compose(moved[j].inverse())
        same = [found.pose(h) for h in range(len(found)) if (found.i[h], found.j[h]) == (i, j)]
        assert any(
            abs(angles.wrap(pose.angle - expected.angle)) < np.radians(2.5)
            and np.hypot(*(np.array(pose.xy) - expected.xy)) < 3
            for pose in same
        )


def test_worn_edges_leave_a_gap_that_is_found() -> None:
    puzzle, truth = torn(10, 0.03)
    model = load_contours()
    outlines, scans = read_outlines(puzzle)
    codes = model.encode(features(puzzle, outlines, scans), outlines.start)
    found = contours.read(outlines, scans, codes)
    assert 0.02 * found.size < found.gap < 0.09 * found.size  # 0.06 is what was taken off both
    true = are_true(found.judged(model.odds).found, poses_of(truth.placement, puzzle.ids), found.size)
    assert true[: len(puzzle)].mean() > 0.6


def test_blank_fragments_say_that_they_do_not_know() -> None:
    blank = np.full((60, 60, 4), 255, dtype=np.uint8)
    puzzle = puzzle_of(*[blank] * 5)
    for measurer in (Contours(), ContoursPlain()):
        pairs = measurer.measure(puzzle).pairs
        assert isinstance(pairs, Hypothesised)
        assert not (pairs.found.log_odds > 0).any()


def test_a_straight_seam_slides_and_says_so() -> None:
    rgb = read_rgb(picture("coffee"))[100:190, 100:280]
    rgba = np.dstack([rgb, np.full(rgb.shape[:2], 255, dtype=np.uint8)])
    pairs = Contours().measure(puzzle_of(rgba[:, :90], rgba[:, 90:])).pairs
    assert isinstance(pairs, Hypothesised)
    assert len(pairs.found)
    for known in pairs.found.information:
        assert known[0, 0] > 4 * known[1, 1]  # the seam runs along y


def test_one_fragment_and_two_alike_are_measured() -> None:
    puzzle, _ = torn()
    assert len(Contours().measure(puzzle_of(puzzle.fragments.pixels[0])).hypotheses()) == 0
    pixels = puzzle.fragments.pixels[0]
    assert Contours().measure(puzzle_of(pixels, pixels)).n == 2


def test_the_scan_reads_places_in_the_fragments_frame() -> None:
    pixels = np.zeros((2, 2, 4), dtype=np.float32)
    pixels[0, 1] = 100
    scan = Scan(pixels, 3, (1.0, 1.0))
    assert scan.at(np.array([1.5, -1.5]))[0] == pytest.approx(100, abs=1)


def test_what_ships_is_sealed_small_and_golden() -> None:
    from jigsync.io.files import read_bytes
    from jigsync.measure.contours import FORMAT, SHIPPED
    from jigsync.measure.weights import LIMIT, open_session

    path = weights_path(SHIPPED, None)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert path.stat().st_size == card["bytes"] < 6_000_000
    for key in ("data", "licence", "command", "minutes", "config", "validation_score", "held_out"):
        assert card[key] not in ("", "not stated"), key
    assert set(card["odds"]) == set(FEATURES)
    open_session(read_bytes(path, LIMIT), SHIPPED, {"format": FORMAT})
    with np.load(path.with_suffix(".golden.npz"), allow_pickle=False) as golden:
        codes = load_contours().encode(golden["features"], golden["start"])
        for name in ("f", "g", "none"):
            np.testing.assert_allclose(getattr(codes, name), golden[name], atol=1e-3)


def test_odds_of_a_card_are_numbers_for_every_feature() -> None:
    assert odds_of(None, "x") == contours.ODDS
    with pytest.raises(FormatError, match="odds"):
        odds_of({"bias": 1.0}, "x")


def test_without_weights_the_plain_form_answers_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise JigsyncError("onnxruntime, which runs the trained models, cannot be imported: not here")

    monkeypatch.setattr(contours, "load_contours", refuse)
    puzzle, _ = torn()
    measured = Contours().measure(puzzle)
    assert "onnxruntime" in measured.note
    assert len(measured.hypotheses())
