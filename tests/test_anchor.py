"""Which side is up, from content: views that turn exactly, votes and the whole picture added up, the answer's gauge."""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from scipy.special import log_softmax
from sides import cut, stored_turned

import jigsync
from jigsync import data, gauge
from jigsync.io.images import read_rgb
from jigsync.learn.fit import anchor as fitting
from jigsync.measure import unary, views
from jigsync.measure.boundary import Boundary
from jigsync.measure.document import SIZE, document_sha256, load_document
from jigsync.measure.unary import load_unary, measure_fragments
from jigsync.measure.upright import OTHER_WAY, Looker
from jigsync.values import z4
from jigsync.values.errors import FormatError, JigsyncError
from jigsync.values.gauge import probabilities, votes
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Pixels, Puzzle


def opaque(name: str) -> Pixels:
    """A bundled upright picture, cut to a square."""
    rgb = read_rgb(data.picture(name))
    side = min(rgb.shape[:2])
    rgb = rgb[:side, :side]
    return np.concatenate([rgb, np.full((side, side, 1), 255, np.uint8)], axis=2)


def test_views_of_a_turned_fragment_are_the_same_views_in_another_order() -> None:
    puzzle, _ = cut("heavy", (2, 3), 48)
    turns = [1, 2, 3, 0, 3, 1]
    plain, turned = (views.fragment_views(p, 48) for p in (puzzle, stored_turned(puzzle, turns)))
    assert plain.shape == (6, 4, views.FRAGMENT, views.FRAGMENT, 3)
    for i, k in enumerate(turns):
        for j in range(4):
            # A rounding may tip over: averages are summed in another order.
            difference = turned[i, j].astype(int) - plain[i, (j + k) % 4].astype(int)
            assert np.abs(difference).max() <= 3


def test_gaps_are_filled_from_nearby_and_the_rest_is_grey() -> None:
    pixels = np.zeros((96, 96, 4), np.uint8)
    pixels[:, :40] = pixels[:, 44:80] = (200, 40, 90, 255)
    view = views.filled(pixels, (96, 96), 96)
    assert np.abs(view[:, 42].astype(int) - (200, 40, 90)).max() <= 1
    assert np.abs(view[48, 95].astype(int) - views.GREY).max() < np.abs(np.array((200, 40, 90)) - views.GREY).max()
    assert (view[:, :40] == (200, 40, 90)).all()
    empty = views.filled(np.zeros((10, 10, 4), np.uint8), (32, 32), 32)
    assert (empty == views.GREY).all()


@pytest.mark.parametrize("shape", [(30, 50), (51, 20), (7, 7)])
def test_a_centred_window_keeps_the_middle(shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(1, 256, (*shape, 4), dtype=np.uint8)
    large = views.centred(pixels, 60)
    assert large[large[..., 3] > 0].sum(dtype=int) == pixels.sum(dtype=int)
    small = views.centred(pixels, 5)
    top, left = (shape[0] - 5) // 2, (shape[1] - 5) // 2
    assert (small == pixels[top : top + 5, left : left + 5]).all()


def test_the_head_turns_with_the_fragment() -> None:
    puzzle, _ = cut("medium", (2, 2), 64)
    model = load_unary()
    turns = [1, 3, 2, 0]
    plain, cells = measure_fragments(puzzle, 64, model)
    turned, same_cells = measure_fragments(stored_turned(puzzle, turns), 64, model)
    assert np.exp(plain).sum(axis=1) == pytest.approx(np.ones(4))
    for i, k in enumerate(turns):
        assert turned[i] == pytest.approx(np.roll(plain[i], -k), abs=0.02)
    assert same_cells.xy == pytest.approx(cells.xy, abs=0.01)
    assert (cells.sigma > 0).all()


@pytest.mark.parametrize("name", data.names())
def test_the_whole_picture_turns_with_its_answer(name: str) -> None:
    picture, looker = opaque(name), Looker.shipped()
    upright = looker.look(picture)
    assert upright.shape == (2, 4)
    for k in range(4):
        turned = looker.look(z4.turn_pixels(picture, k))
        assert turned == pytest.approx(np.roll(upright, -k, axis=1), abs=0.02)


def test_the_mirror_image_says_the_same_to_the_head() -> None:
    picture, looker = opaque("rocket")[:, 40:], Looker.shipped()
    mirrored = np.ascontiguousarray(picture[:, ::-1])
    assert looker.look(mirrored)[0, OTHER_WAY] == pytest.approx(looker.look(picture)[0], abs=1e-3)


def test_the_document_network_reads() -> None:
    page = np.full((300, 300, 3), 235, dtype=np.uint8)
    for line in range(9):
        cv2.putText(page, "which side is up", (12, 40 + 30 * line), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (40, 30, 30), 2)
    opaque_page = np.concatenate([page, np.full((300, 300, 1), 255, np.uint8)], axis=2)
    said = load_document().upright(views.four_turns(views.picture_view(opaque_page, SIZE)))
    assert int(np.argmax(said)) == 0
    assert said[0] > np.log(0.5)


def test_gaps_of_a_whole_picture_vanish() -> None:
    """Across a seam between two colours the one becomes the other, and nothing else."""
    pixels = np.zeros((192, 192, 4), np.uint8)
    pixels[:, :92], pixels[:, 100:] = (200, 40, 90, 255), (40, 160, 200, 255)
    view = views.picture_view(pixels, 192).astype(int)
    assert (view[:, :92] == (200, 40, 90)).all()
    assert (np.diff(view[96, 91:101, 0]) <= 0).all()
    assert (np.diff(view[96, 91:101, 1]) >= 0).all()
    assert (views.picture_view(np.zeros((10, 10, 4), np.uint8), 32) == views.GREY).all()


def test_votes_by_hand() -> None:
    log_p = np.log([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]])
    found = votes(np.array([1, 3]), log_p)
    assert found == pytest.approx([np.log(0.1 * 0.4), np.log(0.1 * 0.1), np.log(0.1 * 0.2), np.log(0.7 * 0.3)])
    assert probabilities(found, (True, False, True, False))[1::2].tolist() == [0, 0]
    assert (votes(np.array([1, 3]), None) == 0).all()


def test_the_fit_finds_what_the_evidence_is_worth() -> None:
    """Votes that are four times too sure, a whole that is right as it stands."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 4000)
    parts = []
    for factor in (4.0, 1.0):
        log_odds = rng.normal(0, 1, (4000, 4))
        log_odds[np.arange(4000), true] += 1.0  # a mean shift of the variance: the log-odds of two Gaussians
        turned = np.stack([np.roll(row, -k) for row, k in zip(log_odds, true, strict=True)])
        parts.append(factor * log_softmax(turned, axis=1))
    assert fitting.fit(parts[1], parts[0]) == pytest.approx([1.0, 0.25], rel=0.15)


def test_the_threshold_keeps_its_promise_and_answers_as_many_as_it_can() -> None:
    sure = np.array([0.99, 0.97, 0.9, 0.8, 0.7, 0.6] * 10) - 1e-4 * np.arange(60)
    right = sure > 0.75
    least = fitting.threshold(sure, right)
    answered = sure >= least
    assert right[answered].mean() >= gauge.CLEAR
    assert answered.sum() == 42  # two wrong ones among forty right ones
    assert fitting.threshold(sure, np.zeros(60, dtype=bool)) == 1.0
    assert fitting.threshold(sure, np.ones(60, dtype=bool)) == sure.min()


def test_the_shipped_numbers_belong_to_the_shipped_weights() -> None:
    assert gauge.shipped().head_sha256 == unary.weights_sha256()
    assert gauge.shipped().document_sha256 == document_sha256()
    assert 0.25 < gauge.shipped().clear < 1


def test_a_foreign_file_of_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gauge.shipped.cache_clear()
    monkeypatch.setattr(gauge, "parse_json", lambda data, name: {"format": "other"} | json.loads("{}"))
    with pytest.raises(FormatError, match="jigsync-anchor/3"):
        gauge.shipped()
    monkeypatch.undo()
    gauge.shipped.cache_clear()


def test_an_assembled_picture_is_put_upright() -> None:
    puzzle, truth = cut("light", (3, 4), 64, "astronaut")
    solution = jigsync.solve(puzzle)
    assert solution.gauge.determined
    assert solution.gauge.confidence == max(solution.gauge.probabilities)
    assert solution.gauge.clear == (solution.gauge.confidence >= gauge.shipped().clear)
    assert all(solution.placement[name].cell == truth.placement[name].cell for name in puzzle.ids)


def test_without_the_head_the_gauge_is_undetermined_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise JigsyncError("onnxruntime cannot be imported.")

    monkeypatch.setattr(Looker, "shipped", missing)
    puzzle, _ = cut("clean", (2, 3), 24)
    solution = jigsync.solve(puzzle, measurer=Boundary())
    assert solution
    assert solution.gauge.probabilities == (0.25, 0.25, 0.25, 0.25)
    assert not solution.gauge.clear
    assert "Which side is up is not told by the assembled picture: onnxruntime cannot be imported." in solution.reason


def test_sure_fragments_overrule_the_picture() -> None:
    """Whoever measures may know better: here that the picture lies on its side."""
    puzzle, truth = cut("clean", (2, 3), 24)

    class Knowing:
        name = "knowing"

        def measure(self, puzzle: Puzzle) -> Measurements:
            turns = np.full((len(puzzle), 4), -12.0)
            for i, name in enumerate(puzzle.ids):
                turns[i, (truth.placement[name].turns + 1) % 4] = 0.0
            return replace(Boundary().measure(puzzle), unary_turns=turns)

    solution = jigsync.solve(puzzle, measurer=Knowing())
    assert all(solution.placement[k].turns == (truth.placement[k].turns + 1) % 4 for k in puzzle.ids)
