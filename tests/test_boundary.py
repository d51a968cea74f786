"""The training-free measurers as a whole: probabilities, symmetries, and the two forms they come in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sides import cut, partners, turned_sides

from jigsync.cutting.options import Damage
from jigsync.engine.search import solve_map
from jigsync.measure import boundary, probabilities, registry
from jigsync.measure.boundary import Boundary, make_costs, regime_of
from jigsync.measure.calibration import Calibration, shipped
from jigsync.measure.contour import read_contours
from jigsync.score.touching import neighbour_accuracy
from jigsync.values import z4
from jigsync.values.errors import ImageError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.listing import SIDES_OF_UNIT, Listing
from jigsync.values.measurements import Measurements
from jigsync.values.pairs import TouchingSides
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Fragments, Puzzle

SMALL = {"clean": ("clean", (3, 4), 32), "medium": ("medium", (3, 4), 48)}


def log_p_of(measurements: Measurements) -> np.ndarray:
    """(4N, 4N), 0 between sides of one fragment."""
    assert isinstance(measurements.pairs, TouchingSides)
    own = np.arange(4 * measurements.n) // 4
    return np.where(own[:, None] == own, 0, measurements.pairs.side_log_p)


def with_pixels(puzzle: Puzzle, change: Callable[[list[np.ndarray]], None]) -> Puzzle:
    pixels = [p.copy() for p in puzzle.fragments.pixels]
    change(pixels)
    return replace(puzzle, fragments=Fragments(puzzle.ids, tuple(pixels)))


@pytest.mark.parametrize("name", registry.names())
def test_the_registry_makes_measurers_that_say_their_name(name: str) -> None:
    assert registry.get(name).name == name
    assert registry.summary(name)
    assert registry.names()[0] == registry.DEFAULT


def test_an_unknown_measurer_is_refused_with_the_names() -> None:
    with pytest.raises(OptionError, match=r"no measurer 'mgcc'; the measurers are learned, boundary, "):
        registry.get("mgcc")


@pytest.mark.parametrize("which", SMALL)
@pytest.mark.parametrize("name", boundary.MEASURERS)
def test_probabilities_of_a_pair_leave_room_for_not_touching(name: str, which: str) -> None:
    puzzle, _ = cut(*SMALL[which])
    measured = Boundary(name).measure(puzzle)
    assert measured.unit_only
    assert measured.ids == puzzle.ids
    log_p = log_p_of(measured)
    np.testing.assert_array_equal(log_p, log_p.T)
    n = len(puzzle)
    mass = np.exp(log_p.astype(np.float64)).reshape(n, 4, n, 4).sum(axis=(1, 3))[~np.eye(n, dtype=bool)]
    assert 0 < mass.min() <= mass.max() <= probabilities.MAX_MASS + 1e-5


@pytest.mark.parametrize("which", SMALL)
def test_true_neighbours_are_the_likely_ones(which: str) -> None:
    puzzle, truth = cut(*SMALL[which])
    partner = partners(puzzle, truth)
    inner = np.flatnonzero(partner >= 0)
    log_p = log_p_of(Boundary().measure(puzzle)) - 100 * np.kron(np.eye(len(puzzle)), np.ones((4, 4)))
    assert np.mean(log_p[inner].argmax(axis=1) == partner[inner]) > 0.8
    assert log_p[inner, partner[inner]].mean() > -1.5


@pytest.mark.parametrize("which", SMALL)
def test_the_order_of_the_fragments_tells_nothing(which: str) -> None:
    puzzle, _ = cut(*SMALL[which])
    order = np.random.default_rng(1).permutation(len(puzzle))
    sides = (4 * order[:, None] + np.arange(4)).ravel()
    measured, again = (Boundary().measure(p) for p in (puzzle, puzzle.permute(order)))
    assert again.ids == tuple(puzzle.ids[k] for k in order)
    np.testing.assert_allclose(log_p_of(again), log_p_of(measured)[np.ix_(sides, sides)], atol=1e-3)


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("which", SMALL)
def test_storing_a_fragment_turned_moves_its_scores_to_other_sides(which: str, turns: int) -> None:
    puzzle, _ = cut(*SMALL[which])

    def turn(pixels: list[np.ndarray]) -> None:
        pixels[5] = z4.turn_pixels(pixels[5], turns)

    sides = turned_sides(len(puzzle), 5, turns)
    measured, again = (Boundary().measure(p) for p in (puzzle, with_pixels(puzzle, turn)))
    # The contours are equal bit for bit (test_contour); sums over rows in another order round differently.
    np.testing.assert_allclose(log_p_of(again), log_p_of(measured)[np.ix_(sides, sides)], atol=1e-3)


def test_logits_are_the_weighted_features() -> None:
    """The closed form that measuring uses against the features that the weights were fitted on."""
    puzzle, _ = cut(*SMALL["medium"])
    contours = read_contours(puzzle)
    names = boundary.MEASURERS["boundary"]["damaged"]
    weights = np.random.default_rng(0).normal(0, 1, 3 * len(names))
    log_cost, stats = probabilities.dense_log_costs(make_costs(contours, names), len(puzzle))
    with np.errstate(invalid="ignore"):
        feature = probabilities.dense_features(log_cost, stats)
    calibration = Calibration(names, weights, np.array([0.4, 0.0, 0.0]))
    apart = np.isfinite(log_cost[0])
    expected = calibration.logits(np.where(apart[..., None], feature, 0))
    for block in (slice(0, 48), slice(4, 21)):
        logits = probabilities._logits([value[block].copy() for value in log_cost], block, stats, calibration)
        assert np.isneginf(logits[~apart[block]]).all()
        np.testing.assert_allclose(logits[apart[block]], expected[block][apart[block]], rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("damage", "cell", "regime"),
    [
        (Damage(), 32, "flush"),
        (Damage(shape=12), 32, "damaged"),
        (Damage(erosion=0.1), 48, "damaged"),
        (Damage(shape=8, erosion=0.05, photo=0.05), 64, "damaged"),
    ],
)
def test_the_regime_is_read_off_the_fragments(damage: Damage, cell: int, regime: str) -> None:
    puzzle, _ = cut(damage, (3, 3), cell)
    assert regime_of(read_contours(puzzle)) == regime
    assert regime_of(read_contours(replace(puzzle, cell=None))) == regime


@pytest.mark.parametrize("shape", [(40, 50), (60, 30), (48, 52)])
def test_rectangles_fill_their_cells_though_a_cell_is_a_square(shape: tuple[int, int]) -> None:
    """Odd turns, too: the longer axis of a fragment says nothing of the picture's."""
    rng = np.random.default_rng(3)
    pixels = tuple(
        z4.turn_pixels(np.dstack([rng.integers(0, 256, (*shape, 3)), np.full(shape, 255)]).astype(np.uint8), k)
        for k in (0, 1, 3, 2, 1)
    )
    puzzle = Puzzle(Fragments(("a", "c", "d", "g", "k"), pixels), None, None)
    assert regime_of(read_contours(puzzle)) == "flush"


def test_squares_with_a_rim_cut_off_are_gapped() -> None:
    puzzle, _ = cut("clean", (3, 3), 32)

    def erode(pixels: list[np.ndarray]) -> None:
        for p in pixels:
            shown = np.flatnonzero(p[..., 3].any(axis=0))
            keep = np.zeros(len(p), dtype=bool)
            keep[shown[2:-2]] = True
            p[~keep] = 0
            p[:, ~keep] = 0

    assert regime_of(read_contours(with_pixels(puzzle, erode))) == "gapped"


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Measurements]:
    """Measures in the sparse form whatever the size."""

    def measure(puzzle: Puzzle, top: int, block: int) -> Measurements:
        with monkeypatch.context() as patch:
            patch.setattr(probabilities, "DENSE_FRAGMENTS", 1)
            patch.setattr(probabilities, "TOP", top)
            patch.setattr(probabilities, "BLOCK", block)
            return Boundary().measure(puzzle)

    return measure


@pytest.mark.parametrize("which", SMALL)
@pytest.mark.parametrize(("top", "block"), [(9, 20), (48, 512)])
def test_the_sparse_form_lists_what_the_dense_form_has(
    forced: Callable[..., Measurements], which: str, top: int, block: int
) -> None:
    puzzle, _ = cut(*SMALL[which])
    dense, sparse = log_p_of(Boundary().measure(puzzle)), forced(puzzle, top, block).pairs
    assert isinstance(sparse, Listing)
    ends = SIDES_OF_UNIT[sparse.relation]
    values = np.full(dense.shape, np.nan, dtype=np.float32)
    values[4 * sparse.i + ends[:, 0], 4 * sparse.j + ends[:, 1]] = sparse.listed
    listed = np.isfinite(values)
    np.testing.assert_array_equal(values, values.T)
    # A pair's mass is bounded over what is listed, which is nearly all of it.
    np.testing.assert_allclose(values[listed], dense[listed], atol=0.03)
    own = np.arange(len(dense))[:, None] // 4 == np.arange(len(dense)) // 4
    assert listed.sum(axis=1).min() >= min(top, len(dense) - 4)
    assert not listed[own].any()
    for row, kept, same in zip(dense, listed, own, strict=True):
        assert row[~kept & ~same].max(initial=-np.inf) < np.sort(row[kept])[-3], "the best are kept"
    assert listed[~own].all() == (top > 9)
    assert sparse.background <= probabilities.MAX_BACKGROUND


@pytest.mark.parametrize("which", SMALL)
def test_both_forms_are_solved_alike(forced: Callable[..., Measurements], which: str) -> None:
    puzzle, truth = cut(*SMALL[which])
    for measured in (Boundary().measure(puzzle), forced(puzzle, 12, 20)):
        found = solve_map(measured.sides(), Grid(3, 4), effort=0.3, threads=1)
        places = zip(puzzle.ids, found.slots.tolist(), found.turns.tolist(), strict=True)
        placement = {name: Placed.at(*Grid(3, 4).cell(slot), turns) for name, slot, turns in places}
        assert neighbour_accuracy(placement, truth.placement, puzzle.ids) == 1.0


def test_two_identical_fragments_are_measured(forced: Callable[..., Measurements]) -> None:
    puzzle, _ = cut(*SMALL["clean"])

    def copy(pixels: list[np.ndarray]) -> None:
        pixels[4] = z4.turn_pixels(pixels[7], 1)

    twins = with_pixels(puzzle, copy)
    log_p = log_p_of(Boundary().measure(twins))
    sides = 4 * 7 + np.arange(4)
    others = np.setdiff1d(np.arange(len(log_p)), np.concatenate([sides, 4 * 4 + np.arange(4)]))
    np.testing.assert_allclose(
        log_p[np.ix_(sides, others)], log_p[np.ix_(4 * 4 + (np.arange(4) + 1) % 4, others)], atol=1e-3
    )
    assert isinstance(forced(twins, 9, 20).pairs, Listing)


def test_blank_fragments_know_nothing(forced: Callable[..., Measurements]) -> None:
    """All the same: any way to touch is as likely as any other, in both forms."""
    pixels = tuple(np.full((16, 16, 4), 255, dtype=np.uint8) for _ in range(6))
    puzzle = Puzzle(Fragments(tuple("abcdef"), pixels))
    apart = ~np.kron(np.eye(6), np.ones((4, 4))).astype(bool)
    log_p = log_p_of(Boundary().measure(puzzle))[apart]
    assert np.ptp(log_p) < 1e-4
    assert -4 < log_p[0] < -2.9, "about one of 20 candidates or none"
    assert np.ptp(log_p_of(Boundary("silhouette").measure(puzzle))[apart]) < 1e-4
    assert (
        np.abs(
            Boundary().measure(puzzle).sides().to_dense()[apart] - forced(puzzle, 20, 8).sides().to_dense()[apart]
        ).max()
        < 1e-3
    )


def test_a_blank_fragment_among_others_is_not_sure_of_anything() -> None:
    puzzle, _ = cut(*SMALL["clean"])

    def blank(pixels: list[np.ndarray]) -> None:
        for k in (2, 3, 9):
            pixels[k][..., :3] = pixels[k][..., 3:]

    log_p = log_p_of(Boundary().measure(with_pixels(puzzle, blank)))
    assert np.isfinite(log_p).all()
    assert log_p[np.ix_(4 * 2 + np.arange(4), 4 * 3 + np.arange(4))].max() < np.log(0.5)


def test_one_and_two_fragments() -> None:
    puzzle, _ = cut("clean", (1, 2), 32)
    measured = log_p_of(Boundary().measure(puzzle))
    assert measured.shape == (8, 8)
    assert np.isfinite(measured).all()
    alone = Puzzle(Fragments(puzzle.ids[:1], puzzle.fragments.pixels[:1]), puzzle.cell)
    scores = Boundary().measure(alone).sides()
    np.testing.assert_array_equal(scores.to_dense(), 0)


def test_a_transparent_fragment_is_named() -> None:
    puzzle, _ = cut(*SMALL["clean"])

    def clear(pixels: list[np.ndarray]) -> None:
        pixels[3][:] = 0

    with pytest.raises(ImageError, match=f"'{puzzle.ids[3]}' of 'puzzle' must have opaque pixels"):
        Boundary().measure(with_pixels(puzzle, clear))


def test_given_weights_are_used_instead_of_the_shipped_ones() -> None:
    puzzle, _ = cut(*SMALL["clean"])
    names = boundary.MEASURERS["mgc"]["flush"]
    flat = Calibration(names, np.zeros(3), np.zeros(3))
    log_p = log_p_of(Boundary("mgc", calibration=flat).measure(puzzle))
    np.testing.assert_allclose(log_p[:4, 4:], -np.log(45), atol=1e-4)
    same = Boundary("mgc", calibration=shipped("mgc", "flush", names)).measure(puzzle)
    np.testing.assert_array_equal(log_p_of(same), log_p_of(Boundary("mgc").measure(puzzle)))


def test_reading_at_the_straight_side_is_another_measurement() -> None:
    puzzle, _ = cut(*SMALL["medium"])
    along, straight = (log_p_of(Boundary("seam", straight=way).measure(puzzle)) for way in (False, True))
    assert np.abs(along - straight).max() > 0.1
