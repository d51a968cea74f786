"""Costs of worn sides against direct loops over their formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sides import cut, made_up, partners

from jigsync.measure import worn
from jigsync.measure.contour import Contours, read_contours
from jigsync.measure.costs import to_lab
from jigsync.measure.worn import Worn


def prepared(contours: Contours) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lab colour just inside the contour, offset and validity, rows averaged in pairs where there are 64."""
    sides, samples = contours.valid.shape
    step = max(1, samples // 32)
    depth = max(1, round(0.03 * contours.cell))
    lab = to_lab(contours.colour[:, :, :depth].mean(axis=2))
    colour, offset = np.zeros((sides, samples // step, 3)), np.zeros((sides, samples // step))
    valid = np.zeros((sides, samples // step), dtype=bool)
    for s, y in np.ndindex(valid.shape):
        have = [k for k in range(step * y, step * y + step) if contours.valid[s, k]]
        if have:
            valid[s, y] = True
            colour[s, y] = np.mean([lab[s, k] for k in have], axis=0)
            offset[s, y] = np.mean([contours.offset[s, k] for k in have])
    return colour, offset, valid


def slow(colour: np.ndarray, offset: np.ndarray, valid: np.ndarray, s: int, t: int) -> tuple[float, float, float]:
    """fit, edge, texture of one pair, row by row."""
    usual = -2 * float(np.median(offset[valid]))
    rows = valid.shape[1]
    fit, weights, differences = 0.0, [], []
    for y in range(rows):
        across = rows - 1 - y
        both = valid[s, y] and valid[t, across]
        gap = -(offset[s, y] + offset[t, across])
        r = abs(gap - usual) if both else 0.15
        fit += min(r + max(0.0, -gap), 0.15) / rows
        weights.append((math.exp(-((r / 0.05) ** 2)) + 0.02) if both else 0.0)
        differences.append(colour[t, across] - colour[s, y])
    total, prior = sum(weights), 0.4 * rows
    mean = sum((w * d for w, d in zip(weights, differences, strict=True)), np.zeros(3)) / (total + 1e-6)

    def limited(shift: np.ndarray) -> float:
        norms = [min(float(np.linalg.norm(d - shift)), 40.0) for d in differences]
        return (sum(w * d for w, d in zip(weights, norms, strict=True)) + prior * 20.0) / (total + prior)

    return fit, limited(np.zeros(3)), limited(mean)


@pytest.mark.parametrize(
    "contours",
    [made_up(seed=1), made_up(2, samples=64, seed=2, cell=80.0), made_up(2, samples=33, depth=7, seed=3, cell=100.0)],
    ids=["small", "rows in pairs", "odd"],
)
def test_worn_costs_row_by_row(contours: Contours) -> None:
    sides = len(contours.valid)
    fit, edge, texture = Worn(contours).rows(slice(0, sides))
    rows = prepared(contours)
    for s, t in np.ndindex(sides, sides):
        expected = slow(*rows, s, t)
        assert (fit[s, t], edge[s, t], texture[s, t]) == pytest.approx(expected, rel=2e-4)


def test_symmetric_and_the_same_block_by_block_and_one_by_one() -> None:
    contours = made_up(4, seed=8)
    measured = Worn(contours)
    whole = measured.rows(slice(0, 16))
    for value in whole:
        np.testing.assert_allclose(value, value.T, rtol=1e-4)
    costs = measured.costs()
    assert tuple(costs) == worn.NAMES == ("fit", "edge", "texture")
    for block in (slice(5, 9), slice(0, 3), slice(5, 9)):
        for cost, value in zip(costs.values(), whole, strict=True):
            np.testing.assert_allclose(cost.rows(block), value[block], rtol=1e-5)


def test_a_constant_change_of_colour_is_no_change_of_texture() -> None:
    contours = made_up(2, samples=16, seed=5)
    everywhere = replace(contours, valid=np.ones_like(contours.valid), offset=np.zeros_like(contours.offset))
    faded = everywhere.colour.copy()
    # Seen from across: rows the other way round, and every one a little darker.
    faded[4] = faded[0, ::-1] * np.float32(0.9)
    _, edge, texture = Worn(replace(everywhere, colour=faded)).rows(slice(0, 1))
    least = 0.4 * 20 / (1.02 + 0.4)
    assert edge[0, 4] > least + 2
    assert least <= texture[0, 4] < least + 1


def test_overlapping_fits_worse_than_standing_apart() -> None:
    contours = made_up(2, samples=16, seed=5)
    offset = np.zeros((8, 16), dtype=np.float32)
    offset[1], offset[2] = 0.04, -0.04
    straight = replace(contours, valid=np.ones((8, 16), dtype=bool), offset=offset)
    fit = Worn(straight).rows(slice(0, 1))[0][0]
    assert fit[4] == pytest.approx(0, abs=1e-6)
    assert fit[2] == pytest.approx(0.04, abs=1e-6)
    assert fit[1] == pytest.approx(0.08, abs=1e-6)


def test_a_side_without_fragment_fits_nothing_and_says_nothing_of_colour() -> None:
    contours = made_up(2, seed=6)
    contours.valid[3] = False
    contours.offset[3] = 0
    fit, edge, texture = Worn(contours).rows(slice(3, 4))
    np.testing.assert_allclose(fit, worn.TAU, rtol=1e-6)
    np.testing.assert_allclose(edge, worn.CAP / 2, rtol=1e-6)
    np.testing.assert_allclose(texture, worn.CAP / 2, rtol=1e-6)
    contours.valid[:] = False
    assert np.isfinite(Worn(contours).rows(slice(0, 8))).all()


def test_each_of_the_three_finds_neighbours_of_a_worn_puzzle() -> None:
    puzzle, truth = cut("medium", cell=64)
    partner = partners(puzzle, truth)
    inner = np.flatnonzero(partner >= 0)
    own = np.arange(len(partner))[:, None] // 4 == np.arange(len(partner)) // 4
    shares = [
        np.mean(np.where(own, np.inf, value)[inner].argmin(axis=1) == partner[inner])
        for value in Worn(read_contours(puzzle)).rows(slice(0, len(partner)))
    ]
    assert min(shares) > 0.25, "chance is 1 of 44"
    assert shares[0] > 0.5
