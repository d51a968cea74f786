"""The synchronization ladder: noise-free, noisy, outliers, disconnected, prior; modulo gauge and absolutely.

All layouts have odd turns, rows != cols and ids that are neither consecutive nor in slot order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jigsync.studies.synthetic import Solved, measured, random_solved, true_relations, turn_evidence
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.pipeline import SyncResult, synchronize
from jigsync.values import vocabulary as v
from jigsync.values import z4
from jigsync.values.errors import OptionError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import Grid
from jigsync.values.listing import Listing
from jigsync.values.measurements import Measurements, UnaryCells

GRID = Grid(4, 6)
SWITCHES = [
    DecodeOptions(rho="joint"),
    DecodeOptions(rho="marginal"),
    DecodeOptions(),
    DecodeOptions(symmetrized=True),
    DecodeOptions(mask_impossible=True),
    DecodeOptions(tier_weights=(1.0, 0.5, 0.25)),
    DecodeOptions(loop_weights=True),
    DecodeOptions(loop_support=2),
    DecodeOptions(confidence_threshold=0.5),
    DecodeOptions(confidence_weights=True),
    DecodeOptions(top_k=6),
    DecodeOptions(cycle_filter=False),
    DecodeOptions(bearing_weights=False),
    DecodeOptions(iterated=True),
    DecodeOptions(truncated=True),
]


def solved_of(seed: int, grid: Grid = GRID) -> Solved:
    return random_solved(grid, np.random.default_rng(seed))


def correct(result: SyncResult, solved: Solved, gauge: int = 0) -> float:
    """Share of fragments with the right slot and turn after a further global turn of the answer."""
    placed = result.slots >= 0
    cells = np.stack(np.divmod(result.slots, result.grid.cols), axis=-1)
    turned = z4.turn_cells(cells, result.grid.shape, gauge)
    same_cell = np.all(turned == solved.cells, axis=1) if result.grid.turned(gauge) == solved.grid else False
    return float(np.mean(placed & same_cell & ((result.turns + gauge) % 4 == solved.turns)))


def modulo_gauge(result: SyncResult, solved: Solved) -> float:
    return max(correct(result, solved, g) for g in range(4))


def corrupted(solved: Solved, rng: np.random.Generator, right: float) -> np.ndarray:
    """True relations, each replaced by a random possible one with probability 1 - right."""
    relations = true_relations(solved)
    wrong = rng.choice(np.flatnonzero(v.possible(solved.grid)), relations.shape)
    return np.where(rng.random(relations.shape) < right, relations, wrong)


@pytest.mark.parametrize("options", SWITCHES, ids=lambda o: ",".join(_changed(o)) or "default")
def test_noise_free_dense(options: DecodeOptions) -> None:
    solved = solved_of(1)
    made = measured(solved, true_relations(solved), unary_turns=turn_evidence(solved, np.random.default_rng(2), 0.8))
    result = synchronize(made, GRID, options)
    assert correct(result, solved) == 1.0
    assert result.connected
    assert result.reason == ""
    assert result.gauge.determined
    assert result.confidences.min() == pytest.approx(1.0)
    assert result.turn_confidences.min() == pytest.approx(1.0)


def _changed(options: DecodeOptions) -> list[str]:
    default = DecodeOptions()
    return [k for k in options.__dataclass_fields__ if getattr(options, k) != getattr(default, k)]


def test_given_edges_alone_suffice() -> None:
    solved = solved_of(3)
    relations = np.zeros((24, 24), np.int64)  # everything but the true adjacency is rubbish
    for i, j in solved.adjacency():
        relations[i, j], relations[j, i] = true_relations(solved)[i, j], true_relations(solved)[j, i]
    made = measured(solved, relations, unary_turns=turn_evidence(solved, np.random.default_rng(0), 0.9))
    result = synchronize(made, GRID, DecodeOptions(edges="given"), solved.adjacency())
    assert correct(result, solved) == 1.0
    with pytest.raises(OptionError, match="exactly when"):
        synchronize(made, GRID, DecodeOptions(edges="given"))
    with pytest.raises(OptionError, match="exactly when"):
        synchronize(made, GRID, DecodeOptions(), solved.adjacency())


def test_without_evidence_the_gauge_is_undetermined_and_the_shape_still_tells_the_parity() -> None:
    for seed in range(4):
        solved = solved_of(seed)
        result = synchronize(measured(solved, true_relations(solved)), GRID)
        assert result.gauge.probabilities == (0.25, 0.25, 0.25, 0.25)
        assert not result.gauge.determined
        assert max(correct(result, solved), correct(result, solved, 2)) == 1.0


@pytest.mark.parametrize("grid", [Grid(5, 5), Grid(3, 8), Grid(12, 2)])
def test_noisy(grid: Grid) -> None:
    rng = np.random.default_rng(11)
    solved = solved_of(5, grid)
    made = measured(solved, corrupted(solved, rng, 0.6), unary_turns=turn_evidence(solved, rng, 0.6))
    options = DecodeOptions(truncated=True, mask_impossible=True)
    result = synchronize(made, grid, options)
    assert correct(result, solved) == 1.0
    plain = synchronize(made, grid, replace(options, truncated=False))
    assert modulo_gauge(plain, solved) >= 0.4


def test_robust_switches_beat_plain_least_squares_under_outliers() -> None:
    share = {"plain": [], "truncated": [], "iterated": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        solved = solved_of(seed)
        made = measured(solved, corrupted(solved, rng, 0.35), unary_turns=turn_evidence(solved, rng, 0.9))
        for name, options in (
            ("plain", DecodeOptions()),
            ("truncated", DecodeOptions(truncated=True)),
            ("iterated", DecodeOptions(iterated=True)),
        ):
            share[name].append(modulo_gauge(synchronize(made, GRID, options), solved))
    mean = {name: np.mean(values) for name, values in share.items()}
    assert mean["truncated"] > mean["plain"] + 0.1
    assert mean["iterated"] > mean["plain"] + 0.1


def test_a_mirrored_sign_passes_on_half_turns_and_fails_on_odd_ones() -> None:
    rng = np.random.default_rng(8)
    solved = solved_of(9)
    half = Solved(GRID, solved.slots, 2 * rng.integers(0, 2, 24))
    for case, blind in ((half, True), (solved, False)):
        relations = true_relations(case)
        negated = 4 * v.bucket(relations) + -v.relative(relations) % 4
        assert modulo_gauge(synchronize(measured(case, relations), GRID), case) == 1.0
        score = modulo_gauge(synchronize(measured(case, negated), GRID), case)
        assert (score == 1.0) == blind


def test_disconnected_parts_are_placed_and_said_to_be_parts() -> None:
    solved = solved_of(13)
    left = solved.cells[:, 1] < 3
    i, j = np.triu_indices(24, 1)
    same = left[i] == left[j]
    listing = Listing.of(24, i[same], j[same], solved.relation(i[same], j[same]), np.full(same.sum(), np.log(0.9)))
    evidence = turn_evidence(solved, np.random.default_rng(1), 0.97)
    result = synchronize(Measurements(solved.ids, listing, unary_turns=evidence), GRID)
    assert not result.connected
    assert "2 parts" in result.reason
    assert sorted(result.slots) == list(range(24))
    assert np.array_equal(result.turns, solved.turns)
    for half in (left, ~left):
        (shift,) = {tuple(d) for d in (np.stack(np.divmod(result.slots, 6), axis=-1) - solved.cells)[half]}
        assert shift[0] == 0


def test_cell_prior_puts_disconnected_parts_where_they_belong() -> None:
    solved = solved_of(14)
    left = solved.cells[:, 1] < 2
    i, j = np.triu_indices(24, 1)
    same = left[i] == left[j]
    listing = Listing.of(24, i[same], j[same], solved.relation(i[same], j[same]), np.full(same.sum(), np.log(0.9)))
    rng = np.random.default_rng(0)
    xy = (solved.cells[:, ::-1] + 0.5) / (6, 4) + rng.normal(0, 0.08, (24, 2))
    made = Measurements(
        solved.ids,
        listing,
        unary_turns=turn_evidence(solved, rng, 0.97),
        unary_cells=UnaryCells(xy, np.full(24, 0.08)),
    )
    assert correct(synchronize(made, GRID, DecodeOptions(cell_prior=True)), solved) == 1.0


def test_holes_and_surplus_fragments() -> None:
    solved = solved_of(21)
    kept = np.sort(np.random.default_rng(0).permutation(24)[:19])
    relations = true_relations(solved)[np.ix_(kept, kept)]
    part = Solved(GRID, solved.slots[kept], solved.turns[kept])
    evidence = turn_evidence(part, np.random.default_rng(0), 0.95)
    result = synchronize(measured(part, relations, unary_turns=evidence), GRID)
    assert correct(result, part) == 1.0
    small = Grid(3, 6)
    result = synchronize(measured(part, relations, unary_turns=evidence), small)
    assert np.sum(result.slots >= 0) == 18
    assert "1 of 19 fragments did not fit" in result.reason


def test_pins_and_upright() -> None:
    solved = solved_of(30, Grid(5, 5))
    made = measured(solved, true_relations(solved))
    for g in range(4):
        slot = int(solved.slots[7])
        row, col = z4.turn_cells(np.array(divmod(slot, 5)), (5, 5), g)
        pin = (int(row * 5 + col), int(solved.turns[7] + g) % 4)
        result = synchronize(made, Grid(5, 5), pins={7: pin})
        assert (result.slots[7], result.turns[7]) == pin
        assert correct(result, solved, (-g) % 4) == 1.0
        assert result.gauge.confidence > 0.99
    flat = Solved(GRID, solved_of(1).slots, np.zeros(24, np.int64))
    result = synchronize(measured(flat, true_relations(flat)), GRID, upright=True)
    assert correct(result, flat) == 1.0
    assert result.gauge.probabilities == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("n", [1, 2])
def test_tiny(n: int) -> None:
    solved = solved_of(0, Grid(1, n))
    result = synchronize(measured(solved, true_relations(solved)), Grid(1, n))
    assert sorted(result.slots) == list(range(n))


def test_sparse_and_dense_forms_give_the_same_answer() -> None:
    solved = solved_of(17)
    rng = np.random.default_rng(3)
    relations = corrupted(solved, rng, 0.7)
    i, j = (a.ravel() for a in np.nonzero(~np.eye(24, dtype=bool)))
    listing = Listing.of(24, i, j, relations[i, j], np.full(len(i), np.log(0.9)))
    dense = synchronize(measured(solved, relations), GRID)
    sparse = synchronize(Measurements(solved.ids, listing), GRID)
    assert np.array_equal(dense.slots, sparse.slots)
    assert np.array_equal(dense.turns, sparse.turns)


def test_the_vacuous_rule_is_available_and_vacuous() -> None:
    rng = np.random.default_rng(4)
    solved = solved_of(4, Grid(5, 5))
    made = measured(solved, corrupted(solved, rng, 0.5), unary_turns=turn_evidence(solved, rng, 0.9))
    result = synchronize(made, Grid(5, 5), DecodeOptions(gauge="residual"))
    assert result.residuals is not None
    assert np.ptp(result.residuals) <= 1e-10 * result.residuals.max()
    assert isinstance(result.gauge, Gauge)


def test_large_sparse_graph() -> None:
    rng = np.random.default_rng(6)
    solved = solved_of(6, Grid(24, 55))
    i, j = np.triu_indices(solved.n, 1)
    near = solved.distance(i, j) <= 2
    i, j = i[near], j[near]
    relations = solved.relation(i, j)
    bad = rng.random(len(i)) < 0.15
    relations[bad] = rng.integers(0, 96, int(bad.sum()))
    listing = Listing.of(solved.n, i, j, relations, np.full(len(i), np.log(0.9)))
    made = Measurements(solved.ids, listing, unary_turns=turn_evidence(solved, rng, 0.6))
    options = DecodeOptions(truncated=True, symmetrized=True)
    assert correct(synchronize(made, Grid(24, 55), options), solved) > 0.98
