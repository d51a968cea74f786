"""Costs of whole sides against direct loops over their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from sides import cut, made_up, partners

from jigsync.measure.contour import Contours, read_contours
from jigsync.measure.costs import Cost, Gradients, Plane, Prediction, SeamBand, to_lab

GREY = 1 / 255
DUMMIES = [
    (0, 0, 0),
    (GREY, GREY, GREY),
    (-GREY, -GREY, -GREY),
    (0, 0, GREY),
    (0, GREY, 0),
    (GREY, 0, 0),
    (-GREY, 0, 0),
    (0, -GREY, 0),
    (0, 0, -GREY),
]


def slow_mgc(colour: np.ndarray, s: int, t: int) -> float:
    """Gallagher's D(s, t): how surprising the step across the seam is for the gradients inside s."""
    x, other = colour[s].astype(np.float64), colour[t].astype(np.float64)
    gradients = [x[y, 0] - x[y, 1] for y in range(len(x))]
    mean = sum(gradients) / len(gradients)
    inverse = np.linalg.inv(np.cov(np.array(gradients + [np.array(d) for d in DUMMIES]).T))
    total = 0.0
    for y in range(len(x)):
        step = other[len(x) - 1 - y, 0] - x[y, 0] - mean
        total += float(step @ inverse @ step)
    return total / len(x)


def slow_seam(colour: np.ndarray, s: int, t: int, depth: int) -> float:
    lab = to_lab(colour).astype(np.float64)
    samples = colour.shape[1]
    squares = [
        float(np.sum((lab[s, y, d] - lab[t, samples - 1 - y, d]) ** 2)) for y in range(samples) for d in range(depth)
    ]
    return sum(squares) / (3 * len(squares))


def all_rows(cost: Cost, contours: Contours) -> np.ndarray:
    return cost.rows(slice(0, len(contours.valid)))


def test_prediction_extrapolates_from_both_sides() -> None:
    contours = made_up(seed=4)
    rows = all_rows(Prediction(contours), contours)
    x = contours.colour.astype(np.float64)
    for s, t in np.ndindex(rows.shape):
        other = x[t, ::-1]
        there = np.abs(2 * x[s, :, 0] - x[s, :, 1] - other[:, 0]).mean()
        back = np.abs(2 * other[:, 0] - other[:, 1] - x[s, :, 0]).mean()
        assert rows[s, t] == pytest.approx(there + back, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_gallaghers_in_both_directions(seed: int) -> None:
    contours = made_up(seed=seed)
    rows = all_rows(Gradients(contours), contours)
    for s, t in np.ndindex(rows.shape):
        forth, back = slow_mgc(contours.colour, s, t), slow_mgc(contours.colour, t, s)
        assert rows[s, t] == pytest.approx(forth + back, rel=1e-4)
    assert slow_mgc(contours.colour, 0, 5) != pytest.approx(slow_mgc(contours.colour, 5, 0), rel=0.01)


@pytest.mark.parametrize(("depth", "used"), [(None, 4), (2, 2), (1, 1)])
def test_the_seam_band_compares_pixels_at_equal_distance_from_the_seam(depth: int | None, used: int) -> None:
    contours = made_up(seed=4)
    rows = all_rows(SeamBand(contours, depth), contours)
    for s, t in np.ndindex(rows.shape):
        assert rows[s, t] == pytest.approx(slow_seam(contours.colour, s, t, used), rel=1e-4, abs=1e-3)


def slow_line(contours: Contours, s: int, y: np.ndarray) -> np.ndarray:
    """Colours of a side at its cell's side, by a plane through the valid rows. Shapes: y (K,) -> (K, 3)."""
    _, samples, depth, _ = contours.colour.shape
    rows = [(k, d) for k in range(samples) for d in range(depth) if contours.valid[s, k]]
    at = [(1, (k + 0.5) / samples - 0.5, (d + 0.5) / contours.cell - contours.offset[s, k]) for k, d in rows]
    colours = 255 * np.array([contours.colour[s, k, d] for k, d in rows], dtype=np.float64)
    plane = np.linalg.lstsq(np.array(at), colours, rcond=None)[0]
    return np.stack([np.ones_like(y), y], axis=1) @ plane[:2]


def test_planes_meet_at_the_cells_side() -> None:
    contours = made_up(seed=4)
    rows = all_rows(Plane(contours), contours)
    y = (np.arange(500) + 0.5) / 500 - 0.5
    for s, t in np.ndindex(rows.shape):
        apart = slow_line(contours, s, y) - slow_line(contours, t, y)[::-1]
        assert rows[s, t] == pytest.approx(np.square(apart).sum(axis=1).mean(), rel=2e-3)


def test_planes_tell_shades_across_a_gap_to_a_fraction_of_a_grey_level() -> None:
    """A slope of one grey level a cell under noise of one level: the next cell is told from the one after it."""
    rng, cell = np.random.default_rng(1), 50
    inwards = 5.5 + np.arange(10)
    x = np.array([[cell * k + cell - inwards] * 2 + [cell * k + inwards] * 2 for k in range(12)]).reshape(48, 1, 10)
    shade = np.round(120 + x / cell + rng.normal(0, 1, (48, 40, 10)))
    colour = np.repeat(shade[..., None], 3, axis=3).astype(np.float32) / 255
    contours = Contours(cell, colour, np.full((48, 40), -0.1, np.float32), np.ones((48, 40), bool))
    rows = all_rows(Plane(contours), contours)
    touching = [rows[4 * k, 4 * k + 6] for k in range(11)]
    next_but_one = [rows[4 * k, 4 * k + 10] for k in range(10)]
    assert np.median(touching) < 0.3
    assert np.median(next_but_one) > 2


@pytest.mark.parametrize("make", [Gradients, Plane, Prediction, SeamBand])
def test_costs_are_symmetric_positive_and_the_same_block_by_block(
    make: type[Gradients] | type[Plane] | type[Prediction] | type[SeamBand],
) -> None:
    contours = made_up(fragments=5, seed=9)
    cost = make(contours)
    whole = all_rows(cost, contours)
    assert whole.dtype == np.float32
    assert whole.min() >= 0
    np.testing.assert_allclose(whole, whole.T, rtol=1e-4, atol=1e-3)
    for block in (slice(0, 3), slice(3, 12), slice(19, 20)):
        np.testing.assert_allclose(cost.rows(block), whole[block], rtol=1e-4, atol=1e-3)


def plain(*colours: tuple[float, float, float]) -> np.ndarray:
    """Sides of one colour each, padded to whole fragments. Shapes: -> (4N, 6, 4, 3)."""
    sides = np.array(colours, dtype=np.float32)
    return np.broadcast_to(sides[:, None, None], (len(sides), 6, 4, 3)).copy()


def test_plain_sides_agree_up_to_the_noise_and_no_further() -> None:
    """Flat colours far from each other, where a sum of squares in float32 would cancel to noise."""
    white, black, sky = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.31, 0.57, 0.93)
    colour = plain(white, white, black, black, sky, sky, white, sky)
    colour[1, 3] -= 1 / 255  # one grey level off in one row: as good as equal
    valid = np.ones(colour.shape[:2], dtype=bool)
    contours = Contours(20.0, colour, np.zeros(valid.shape, dtype=np.float32), valid)
    for cost in (Gradients(contours), Plane(contours), Prediction(contours), SeamBand(contours)):
        rows = all_rows(cost, contours)
        assert np.isfinite(rows).all()
        for group in ([0, 6], [2, 3], [4, 5, 7]):
            assert rows[np.ix_(group, group)].max() < 0.01 * cost.noise
        assert rows[0, 1] < 2 * cost.noise
        for one, other in ((0, 2), (0, 4), (2, 4)):
            assert rows[one, other] > 100 * cost.noise


def test_a_bright_background_is_measured_finely() -> None:
    """Squares of Lab distances around 90 cancel to a few thousandths in float32, unless colours are centred first."""
    rng = np.random.default_rng(0)
    colour = np.clip(0.9 + rng.normal(0, 0.002, (16, 28, 6, 3)), 0, 1).astype(np.float32)
    colour[3] = 0.2
    valid = np.ones(colour.shape[:2], dtype=bool)
    contours = Contours(28.0, colour, np.zeros(valid.shape, dtype=np.float32), valid)
    rows = all_rows(SeamBand(contours), contours)
    for s, t in ((0, 5), (7, 9), (15, 1)):
        assert rows[s, t] == pytest.approx(slow_seam(colour, s, t, 6), abs=1e-5)


@pytest.mark.parametrize("name", ["coffee", "astronaut"])
def test_on_a_picture_true_neighbours_cost_least_and_about_six(name: str) -> None:
    puzzle, truth = cut(name=name)
    contours, partner = read_contours(puzzle), partners(puzzle, truth)
    inner = np.flatnonzero(partner >= 0)
    rows = all_rows(Gradients(contours), contours)
    assert 3 < np.median(rows[inner, partner[inner]]) < 12
    rows[np.arange(len(rows))[:, None] // 4 == np.arange(len(rows)) // 4] = np.inf
    assert np.mean(rows[inner].argmin(axis=1) == partner[inner]) > 0.9


def test_lab() -> None:
    rgb = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.float32)
    np.testing.assert_allclose(to_lab(rgb), [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]], atol=0.05)
    assert to_lab(np.zeros((2, 5, 4, 3), dtype=np.float32)).shape == (2, 5, 4, 3)
