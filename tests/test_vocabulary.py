"""The 192 relations and their tables, checked on every pair of poses that a band can hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.layout import Grid
from jigsync.values.pose import Pose
from jigsync.values.sides import touching_side

REACH = 10
TURNS = range(4)


def every_pair() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All canvas offsets within REACH and all turns of both fragments."""
    span = np.arange(-REACH, REACH + 1)
    rows, cols, i, j = (a.ravel() for a in np.meshgrid(span, span, TURNS, TURNS, indexing="ij"))
    keep = (rows != 0) | (cols != 0)
    return rows[keep], cols[keep], i[keep], j[keep]


def test_counts() -> None:
    rows, cols, i, j = every_pair()
    relations = v.relation_of(rows, cols, i, j)
    assert np.array_equal(np.unique(relations), np.arange(192))
    assert (v.RELATIONS, v.BUCKETS) == (192, 48)
    assert [int(np.sum(tier == v.TIER)) for tier in (v.NEAR, v.MID, v.FAR)] == [24, 8, 16]
    assert int(np.sum(np.repeat(v.TIER, 4) == v.NEAR)) == 96


def test_relation_is_read_in_the_presented_frame_of_i() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        (row_i, col_i, row_j, col_j), (k_i, k_j) = rng.integers(0, 12, 4), rng.integers(0, 4, 2)
        if (row_i, col_i) == (row_j, col_j):
            continue
        canvas_from_i, canvas_from_j = Pose.of_cell(row_i, col_i, k_i), Pose.of_cell(row_j, col_j, k_j)
        i_from_j = canvas_from_i.between(canvas_from_j)
        expected = 4 * v.bucket_of_offset(int(i_from_j.xy[1]), int(i_from_j.xy[0])) + i_from_j.turns
        assert v.relation_of(row_j - row_i, col_j - col_i, k_i, k_j) == expected


def test_literals_that_no_symmetry_satisfies() -> None:
    # j two rows up and one column right of i, i turned once, j three times: in i's frame j lies at R(-1)(1, -2).
    relation = v.relation_of(-2, 1, 1, 3)
    assert tuple(v.NEAR_OFFSETS[v.bucket(relation)]) == (1, 2)
    assert v.relative(relation) == 2
    # 6 rows down, 2 right, i upright: sector S, first far band.
    assert v.bucket(v.relation_of(6, 2, 0, 0)) == 32 + 6
    # 3 rows up, 3 right: between E and N.
    assert v.bucket(v.relation_of(-3, 3, 0, 0)) == 24 + 1
    assert v.bucket(v.relation_of(0, -8, 0, 1)) == 40 + 4


def test_turning_i_in_the_canvas_frame() -> None:
    rows, cols, i, j = every_pair()
    before = v.relation_of(rows, cols, i, j)
    for a in TURNS:
        assert np.array_equal(v.relation_of(rows, cols, (i - a) % 4, j), v.TURN_I[a, before])
        assert np.array_equal(v.relation_of(rows, cols, i, (j - a) % 4), v.TURN_J[a, before])


def test_reversing_the_pair() -> None:
    rows, cols, i, j = every_pair()
    assert np.array_equal(v.relation_of(-rows, -cols, j, i), v.REVERSE[v.relation_of(rows, cols, i, j)])
    assert np.array_equal(np.sort(v.REVERSE), np.arange(192))
    assert np.array_equal(v.REVERSE[v.REVERSE], np.arange(192))


@pytest.mark.parametrize("table", [v.TURN_I, v.TURN_J], ids=["turn_i", "turn_j"])
def test_turn_tables_are_group_actions(table: np.ndarray) -> None:
    assert np.array_equal(table[0], np.arange(192))
    for a, b in itertools.product(TURNS, TURNS):
        assert np.array_equal(table[a][table[b]], table[(a + b) % 4])


def test_turning_i_reversed_is_turning_j() -> None:
    for a in TURNS:
        assert np.array_equal(v.REVERSE[v.TURN_I[a]], v.TURN_J[a][v.REVERSE])


def test_turning_i_moves_sectors_by_two() -> None:
    for a, ring, sector in itertools.product(TURNS, range(3), range(8)):
        moved = v.bucket(v.TURN_I[a, 4 * (24 + 8 * ring + sector)])
        assert moved == 24 + 8 * ring + (sector + 2 * a) % 8


def test_sector_borders_are_never_hit() -> None:
    span = np.arange(-60, 61)
    xy = np.stack(np.meshgrid(span, span), axis=-1).reshape(-1, 2)
    xy = xy[np.any(xy != 0, axis=1)]
    dots = np.sort(xy @ v.SECTOR_XY.T, axis=1)
    assert np.min(dots[:, -1] - dots[:, -2]) > 1e-3


def test_unit_table_follows_z4() -> None:
    for bearing, relative in itertools.product(TURNS, TURNS):
        relation = v.UNIT[bearing, relative]
        assert tuple(v.NEAR_OFFSETS[v.bucket(relation)]) == z4.bearing_offset(bearing)
        assert v.REVERSE[relation] == v.UNIT[z4.reverse(bearing, relative)]
        assert v.UNIT_OF_SIDES[bearing, touching_side(bearing, relative)] == relation
    assert np.array_equal(v.REVERSE[v.UNIT_OF_SIDES], v.UNIT_OF_SIDES.T)
    assert int(v.IS_UNIT.sum()) == 16


def test_possible_relations_by_enumeration() -> None:
    for grid in (Grid(3, 3), Grid(2, 6), Grid(1, 4)):
        cells = list(grid.cells())
        for k in TURNS:
            seen = {
                int(v.relation_of(b[0] - a[0], b[1] - a[1], k, turns))
                for a, b in itertools.permutations(cells, 2)
                for turns in TURNS
            }
            assert set(np.flatnonzero(v.possible(grid, k))) == seen
        union = np.any([v.possible(grid, k) for k in TURNS], axis=0)
        assert np.array_equal(v.possible(grid), union)
    assert int(v.possible(Grid(3, 3)).sum()) == 96
    assert int(v.possible(Grid(20, 20)).sum()) == 192


def test_bands_and_nominal_offsets() -> None:
    for grid in (Grid(10, 10), Grid(4, 12), Grid(3, 3)):
        nominal = v.nominal_xy(grid)
        assert np.array_equal(nominal[:24], v.NEAR_OFFSETS[:, ::-1])
        turned = v.nominal_xy(grid.turned(1))
        for a in TURNS:
            moved = v.bucket(v.TURN_I[a, 4 * np.arange(48)])
            assert np.allclose(nominal[moved], z4.act(a, nominal), atol=1e-12)
            assert np.allclose(turned, nominal, atol=1e-12)
    assert v.BAND[24:].tolist() == [[3, 4]] * 8 + [[5, 7]] * 8 + [[8, -1]] * 8
    assert v.BAND[:24].max() == 2
    # On a long row the mid band holds offsets 3 (9 pairs) and 4 (8 pairs).
    assert v.nominal_xy(Grid(1, 12))[24] == pytest.approx([(3 * 9 + 4 * 8) / 17, 0.0])


def test_one_cell_holds_one_fragment() -> None:
    with pytest.raises(ValueError, match="cannot share a cell"):
        v.relation_of(0, 0, 1, 2)
