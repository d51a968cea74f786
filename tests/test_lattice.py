"""Rows and columns read off free poses."""

from __future__ import annotations

import numpy as np
import pytest

from jigsync.solvers.base import Assignment
from jigsync.solvers.lattice import gridded, lattice_of
from jigsync.values import angles
from jigsync.values.arrangement import Poses
from jigsync.values.layout import Grid


def planted(rows: int, cols: int, degrees: float, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(N, 2) places on a lattice of pitch 90 that lies turned by `degrees`, shuffled; (N, 2) their cells."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(np.array([(row, col) for row in range(rows) for col in range(cols)]))
    xy = 90.0 * cells[:, ::-1] + 90 * rng.uniform(-noise, noise, (rows * cols, 2))
    return angles.act(np.radians(degrees), xy) + np.array([411.0, -37.0]), cells


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (1, 7), (10, 10), (5, 3)])
@pytest.mark.parametrize("degrees", [0.0, 3.0, 44.0, 46.0, 131.0, -77.0])
def test_a_lattice_is_found(shape: tuple[int, int], degrees: float) -> None:
    xy, cells = planted(*shape, degrees, 0.12, 3)
    found = lattice_of(xy)
    assert found is not None
    assert found.pitch == pytest.approx(90, rel=0.1)
    assert {found.grid.shape, found.grid.shape[::-1]} & {shape}
    # the same cells up to one global turn: neighbours stay neighbours
    step = np.abs(cells[:, None] - cells).sum(axis=2) == 1
    np.testing.assert_array_equal(np.abs(found.cells[:, None] - found.cells).sum(axis=2) == 1, step)
    at = angles.act(found.angle, xy) - found.origin
    np.testing.assert_allclose(at, found.cells[:, ::-1] * found.pitch, atol=0.3 * 90)


@pytest.mark.parametrize("seed", range(20))
def test_torn_pieces_are_no_lattice(seed: int) -> None:
    """Sites as far from each other as they can be."""
    rng = np.random.default_rng(seed)
    sites = [rng.random(2)]
    for _ in range(11):
        fresh = rng.random((40, 2))
        gap = np.min(np.linalg.norm(fresh[:, None] - np.array(sites), axis=2), axis=1)
        sites.append(fresh[gap.argmax()])
    assert lattice_of(300 * np.array(sites)) is None


def test_a_missing_cell_or_a_pile_is_no_lattice() -> None:
    xy, _ = planted(3, 4, 20.0, 0.05, 1)
    assert lattice_of(xy[:-1]) is None
    assert lattice_of(np.zeros((6, 2))) is None
    assert lattice_of(xy[:3]) is None


def answer_of(xy: np.ndarray, angle: np.ndarray) -> Assignment:
    return Assignment.free(Poses(angle, xy, np.zeros(len(xy), np.int64)), None, None)


def test_an_answer_gets_rows_and_columns_and_keeps_its_poses() -> None:
    xy, _ = planted(3, 4, 25.0, 0.1, 2)
    turns = np.random.default_rng(0).integers(0, 4, 12)
    plain = answer_of(xy, angles.wrap(np.radians(25.0) + turns * angles.QUARTER))
    made = gridded(plain)
    assert isinstance(made.layout, Grid)
    assert sorted(made.slots.tolist()) == list(range(12))
    assert made.poses is not None
    assert plain.poses is not None
    assert made.poses.quarter
    moved = made.poses.xy[:, None] - made.poses.xy
    np.testing.assert_allclose(np.linalg.norm(moved, axis=2), np.linalg.norm(xy[:, None] - xy, axis=2), atol=1e-6)
    relative = angles.wrap((made.turns - made.turns[0] - turns + turns[0]) * angles.QUARTER)
    np.testing.assert_allclose(relative, 0, atol=1e-9)


def test_any_angle_in_a_lattice_is_kept() -> None:
    xy, _ = planted(3, 3, -12.0, 0.1, 4)
    angle = np.random.default_rng(1).uniform(-3, 3, 9)
    made = gridded(answer_of(xy, angle))
    assert isinstance(made.layout, Grid)
    assert made.poses is not None
    assert not made.poses.quarter
    np.testing.assert_allclose(angles.wrap(made.poses.angle - made.poses.angle[0] - angle + angle[0]), 0, atol=1e-9)


def test_parts_stay_free() -> None:
    xy, _ = planted(3, 4, 0.0, 0.05, 5)
    part = np.zeros(12, np.int64)
    part[3:] = 1
    answer = Assignment.free(Poses(np.zeros(12), xy, part), None, None)
    assert gridded(answer) is answer
