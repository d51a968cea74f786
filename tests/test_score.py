"""Scores: cases worked out by hand, a slow second implementation, and the laws of the two gauges."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsync.score.cells import GAUGES, MEASURES, score, score_batch
from jigsync.score.intervals import bootstrap_mean, paired_difference, wilson
from jigsync.solution import Solution
from jigsync.values.errors import InputError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.truth import Truth


def truth_of(rows: int, cols: int, turns: list[int] | None = None) -> Truth:
    """Ids are not consecutive and not sorted; turns default to a pattern with odd ones."""
    cells = list(Grid(rows, cols).cells())
    turns = turns or [(3 * k + 1) % 4 for k in range(len(cells))]
    return Truth(
        Grid(rows, cols),
        {f"f{97 - 7 * k}": Placed.at(*cell, t) for k, (cell, t) in enumerate(zip(cells, turns, strict=True))},
    )


def solution_of(truth: Truth, grid: Grid | None = None, **changed: Placed) -> Solution:
    return Solution("ok", "", grid or truth.grid, {**truth.placement, **changed})


def ids(truth: Truth) -> list[str]:
    return list(truth.placement)


def values(solution: Solution, truth: Truth, gauge: str) -> dict[str, float]:
    return dict(score(solution, truth).to_json()[gauge])


def measures(*parts: object) -> dict[str, float]:
    return {name: float(Fraction(str(part))) for name, part in zip(MEASURES, parts, strict=True)}


# ------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (2, 3), (3, 2), (4, 4)])
def test_the_truth_itself_scores_one(shape: tuple[int, int]) -> None:
    truth = truth_of(*shape)
    for gauge in GAUGES:
        assert values(solution_of(truth), truth, gauge) == measures(1, 1, 1, 1, 1, 1)


def test_two_swapped_fragments() -> None:
    """2 x 3, the ends of the upper row swapped:  c b a / d e f."""
    truth = truth_of(2, 3)
    a, c = ids(truth)[0], ids(truth)[2]
    ta, tc = truth.placement[a].turns, truth.placement[c].turns
    answer = solution_of(truth, **{a: Placed.at(0, 2, ta), c: Placed.at(0, 0, tc)})
    # 7 true pairs: ab bc de ef / ad be cf. Kept: de ef be.
    assert values(answer, truth, "model") == measures(0, "4/6", "3/7", 1, "4/6", 0)


def test_turned_in_place() -> None:
    """Right slot and wrong turn: only the measures with rotation see it."""
    truth = truth_of(2, 3)
    a = ids(truth)[0]
    answer = solution_of(truth, **{a: Placed.at(0, 0, (truth.placement[a].turns + 1) % 4)})
    assert values(answer, truth, "model") == measures(1, 1, 1, "5/6", "5/6", 0)


def test_unplaced_and_missing_are_wrong_everywhere() -> None:
    """2 x 2: one fragment unplaced, though with the right turns; one is not in the file at all."""
    truth = truth_of(2, 2)
    first, second, *rest = ids(truth)
    kept = {name: truth.placement[name] for name in rest}
    answer = Solution("partial", "", truth.grid, {**kept, first: Placed.nowhere()})
    assert second not in answer.placement
    # 4 true pairs; only the lower two fragments still have each other.
    assert values(answer, truth, "model") == measures(0, "2/4", "1/4", "2/4", "2/4", 0)
    assert score(answer, truth).placed == 2


def test_shifted_by_one_row() -> None:
    """A 3 x 2 truth put one row too low in a 4 x 2 grid: no slot is right, every pair is."""
    truth = truth_of(3, 2)
    lower = {name: Placed.at(p.row + 1, p.col, p.turns) for name, p in truth.placement.items() if p.row is not None}
    answer = Solution("ok", "", Grid(4, 2), lower)
    assert values(answer, truth, "model") == measures(0, 0, 1, 1, 0, 0)
    # Turned once within the 4 x 2 grid, the fragment of (r, c) stands at (1 - c, r + 1): at home for (0, 1) alone.
    assert values(answer, truth, "best4") == measures(0, "1/6", 1, 1, 0, 0)


def test_half_turn_of_a_rectangle() -> None:
    """2 x 3 upside down: the model gauge sees nothing right, best4 sees everything right."""
    truth = truth_of(2, 3)
    answer = solution_of(truth).turned(2)
    assert values(answer, truth, "model") == measures(0, 0, 0, 0, 0, 0)
    assert values(answer, truth, "best4") == measures(1, 1, 1, 1, 1, 1)
    assert score(answer, truth).best_turns == 2


def test_quarter_turn_of_a_rectangle() -> None:
    """2 x 3 turned once is 3 x 2:  c f / b e / a d. Cells are compared as they are."""
    truth = truth_of(2, 3)
    answer = solution_of(truth).turned(1)
    assert answer.grid == Grid(3, 2)
    # At home by chance: nobody is at (0,0) or (0,1); e is at (1,1), which is its own cell.
    assert values(answer, truth, "model") == measures(0, "1/6", 0, 0, 0, 0)
    assert values(answer, truth, "best4") == measures(1, 1, 1, 1, 1, 1)
    assert score(answer, truth).best_turns == 3


def test_best4_takes_each_measure_on_its_own() -> None:
    """Slots right and every turn off by one: cells are best at g = 0, rotation at g = 3, the joint nowhere."""
    truth = truth_of(2, 2)
    answer = solution_of(truth, **{n: Placed.at(p.row, p.col, (p.turns + 1) % 4) for n, p in truth.placement.items()})
    assert values(answer, truth, "model") == measures(1, 1, 1, 0, 0, 0)
    assert values(answer, truth, "best4") == measures(1, 1, 1, 1, 0, 0)


def test_single_fragment_has_sra_equal_to_aa() -> None:
    truth = truth_of(1, 1)
    name = ids(truth)[0]
    assert values(solution_of(truth), truth, "model")["SRA"] == 1.0
    elsewhere = Solution("ok", "", Grid(1, 2), {name: Placed.at(0, 1, truth.placement[name].turns)})
    assert values(elsewhere, truth, "model") == measures(0, 0, 0, 1, 0, 0)


def test_truth_with_holes_counts_only_pairs_that_exist() -> None:
    """3 x 3 truth of four fragments: a b . / . . . / c . d. One pair, ab; the ends of two lines are no pair."""
    cells = {"a": (0, 0), "b": (0, 1), "c": (2, 0), "d": (2, 2)}
    truth = Truth(Grid(3, 3), {name: Placed.at(*cell, 1) for name, cell in cells.items()})
    moved = {**truth.placement, "b": Placed.at(1, 0, 1)}
    assert values(Solution("ok", "", Grid(3, 3), moved), truth, "model") == measures(0, "3/4", 0, 1, "3/4", 0)
    moved = {**truth.placement, "c": Placed.at(1, 1, 1)}
    assert values(Solution("ok", "", Grid(3, 3), moved), truth, "model") == measures(0, "3/4", 1, 1, "3/4", 0)


def test_failed_solution_scores_zero() -> None:
    truth = truth_of(2, 3)
    failed = Solution("failed", "no reason", None, {name: Placed.nowhere() for name in truth.placement})
    for gauge in GAUGES:
        assert values(failed, truth, gauge) == measures(0, 0, 0, 0, 0, 0)
    assert score(failed, truth).best_turns == 0  # as given, when nothing speaks for another turn


def test_mixed_up_files_are_refused() -> None:
    truth = truth_of(2, 2)
    wrong = Solution("ok", "", Grid(3, 2), {**truth.placement, "stranger": Placed.at(2, 0, 0)})
    with pytest.raises(InputError, match="'stranger'"):
        score(wrong, truth)
    extra = Solution("partial", "", Grid(2, 2), {**truth.placement, "stranger": Placed.nowhere()})
    assert score(extra, truth).model.pa == 1.0


def test_empty_truth_is_refused() -> None:
    with pytest.raises(InputError, match="no fragment"):
        score(Solution("failed", "", None, {}), Truth(Grid(1, 1), {}))


def test_scores_are_plain_json() -> None:
    truth = truth_of(2, 3)
    out = score(solution_of(truth).turned(1), truth).to_json()
    assert json.loads(json.dumps(out)) == out
    assert list(out["model"]) == list(MEASURES)
    assert out["fragments"] == out["placed"] == 6


# ------------------------------------------------------------------------------------------- a second opinion


@st.composite
def answers(draw: st.DrawFn, shape: tuple[int, int] | None = None) -> tuple[Solution, Truth]:
    """A truth (perhaps with holes) and an answer in some other grid: nearly right, or anything, or not there."""
    rows, cols = shape or (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    full = truth_of(rows, cols, draw(st.lists(st.integers(0, 3), min_size=rows * cols, max_size=rows * cols)))
    names = ids(full)
    if shape is None:
        names = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    truth = Truth(full.grid, {name: full.placement[name] for name in names})
    grid = Grid(max(rows, draw(st.integers(1, 5))), max(cols, draw(st.integers(1, 5))))
    free = set(grid.cells())
    placement = {}
    for name in names:
        home = truth.placement[name]
        cell = home.cell if draw(st.booleans()) else draw(st.sampled_from(sorted(free)))
        turns = home.turns if draw(st.booleans()) else draw(st.integers(0, 3))
        if cell not in free or draw(st.integers(0, 9)) == 0:
            if draw(st.booleans()):
                placement[name] = Placed.nowhere()
            continue
        free.discard(cell)
        placement[name] = Placed.at(*cell, turns)
    answer = Solution("partial", "", grid, placement)
    return answer.turned(draw(st.integers(0, 3))), truth


def brute_force(solution: Solution, truth: Truth) -> dict[str, float]:
    """The definitions, one fragment and one pair at a time."""
    at, n = solution.placement, len(truth.placement)
    right_cell = right_turn = right_both = pairs = kept = 0
    for name, home in truth.placement.items():
        here = at.get(name)
        if here is None or here.cell is None:
            continue
        right_cell += here.cell == home.cell
        right_turn += here.turns == home.turns
        right_both += (here.cell, here.turns) == (home.cell, home.turns)
    for one, p in truth.placement.items():
        for two, q in truth.placement.items():
            step = (q.row - p.row, q.col - p.col)
            if step not in {(0, 1), (1, 0)}:
                continue
            pairs += 1
            u, v = at.get(one), at.get(two)
            if u is not None and v is not None and u.cell is not None and v.cell is not None:
                kept += (v.row - u.row, v.col - u.col) == step
    aa = right_cell / n
    return measures(
        int(right_cell == n), aa, kept / pairs if pairs else aa, right_turn / n, right_both / n, int(right_both == n)
    )


@given(answers())
def test_agrees_with_brute_force(case: tuple[Solution, Truth]) -> None:
    answer, truth = case
    by_turn = [brute_force(answer.turned(g), truth) for g in range(4)]
    assert values(answer, truth, "model") == pytest.approx(by_turn[0], abs=1e-12)
    best = {name: max(one[name] for one in by_turn) for name in MEASURES}
    assert values(answer, truth, "best4") == pytest.approx(best, abs=1e-12)


@given(answers(), st.integers(0, 3))
def test_best4_is_blind_to_the_gauge(case: tuple[Solution, Truth], turns: int) -> None:
    answer, truth = case
    assert values(answer.turned(turns), truth, "best4") == values(answer, truth, "best4")


@given(answers())
def test_best_turns_shows_the_best_assembly(case: tuple[Solution, Truth]) -> None:
    answer, truth = case
    scores = score(answer, truth)
    assert values(answer.turned(scores.best_turns), truth, "model")["AA+rot"] == scores.best4.aa_rot
    if scores.model.aa_rot == scores.best4.aa_rot == 1.0:
        assert scores.best_turns == 0


@given(st.lists(answers(shape=(2, 3)), min_size=1, max_size=5))
def test_batch_equals_single(cases: list[tuple[Solution, Truth]]) -> None:
    """Puzzles of one N, each with its own grid and truth."""
    names = ids(cases[0][1])
    nowhere = Placed.nowhere()
    cells, turns, shapes = [], [], []
    for answer, _ in cases:
        placed = [answer.placement.get(name, nowhere) for name in names]
        cells.append([p.cell or (-1, -1) for p in placed])
        turns.append([p.turns for p in placed])
        shapes.append(answer.grid.shape if answer.grid else (1, 1))
    homes = [[truth.placement[name] for name in names] for _, truth in cases]
    batch = score_batch(
        cells, turns, shapes, [[h.cell for h in t] for t in homes], [[h.turns for h in t] for t in homes]
    )
    for gauge in GAUGES:
        table = batch.table(gauge)
        for k, (answer, truth) in enumerate(cases):
            assert dict(zip(MEASURES, table[k], strict=True)) == values(answer, truth, gauge)
    for g in range(4):
        for k, (answer, truth) in enumerate(cases):
            assert dict(zip(MEASURES, batch.by_gauge[g, k], strict=True)) == values(answer.turned(g), truth, "model")


# ------------------------------------------------------------------------------------------- many puzzles at once


def test_hundred_thousand_puzzles() -> None:
    """Uniform shuffles and turns of 3 x 3: the means are what chance says, in both gauges' simplest measures."""
    rng = np.random.default_rng(5)
    m, n = 100_000, 9
    homes = np.array(list(Grid(3, 3).cells()))
    order = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)
    batch = score_batch(homes[order], rng.integers(0, 4, (m, n)), (3, 3), homes, np.arange(n) % 4)
    assert len(batch) == m
    assert batch.of("AA").mean() == pytest.approx(1 / 9, abs=0.002)
    assert batch.of("rotation").mean() == pytest.approx(1 / 4, abs=0.002)
    assert batch.of("AA+rot").mean() == pytest.approx(1 / 36, abs=0.001)
    assert batch.of("SRA").mean() == pytest.approx(6 / 72, abs=0.002)  # 6 of the 72 ordered pairs of cells fit
    assert (batch.of("AA", "best4") >= batch.of("AA")).all()
    # The blocks it is cut into do not show.
    alone = score_batch(homes[order[-3:]], np.zeros((3, n), dtype=int), (3, 3), homes, 0)
    assert (alone.of("AA", "best4") == batch.of("AA", "best4")[-3:]).all()


def test_no_puzzles_is_an_empty_batch() -> None:
    empty = score_batch(np.zeros((0, 4, 2), int), np.zeros((0, 4), int), (2, 2), np.zeros((4, 2), int), 0)
    assert len(empty) == 0
    assert empty.table("best4").shape == (0, 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": np.zeros((4, 2), int)}, "cells"),
        ({"cells": np.zeros((1, 4, 2))}, "integers"),
        ({"cells": np.array([[[0, 0], [0, -1], [1, 0], [1, 1]]])}, "both"),
        ({"turns": np.zeros((1, 3), int)}, "turns"),
        ({"shapes": [2, 2, 2]}, "shapes"),
        ({"true_cells": np.full((4, 2), -1)}, "places every fragment"),
    ],
)
def test_bad_batches_are_refused(change: dict[str, object], message: str) -> None:
    good = {
        "cells": np.zeros((1, 4, 2), int),
        "turns": np.zeros((1, 4), int),
        "shapes": (2, 2),
        "true_cells": np.zeros((4, 2), int),
        "true_turns": 0,
    }
    with pytest.raises(OptionError, match=message):
        score_batch(**{**good, **change})  # type: ignore[arg-type]


def test_unknown_measure_and_gauge_are_refused() -> None:
    batch = score_batch([[[0, 0]]], [[0]], (1, 1), [[0, 0]], 0)
    with pytest.raises(OptionError, match="measure"):
        batch.of("aa")
    with pytest.raises(OptionError, match="gauge"):
        batch.table("best")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- intervals


def test_wilson_against_worked_values() -> None:
    """7 of 10: centre (0.7 + 0.19207) / 1.38415, half width 1.95996 sqrt(0.021 + 0.0096036) / 1.38415."""
    got = wilson(7, 10)
    assert (got.estimate, got.n) == (0.7, 10)
    assert (got.low, got.high) == pytest.approx((0.39678, 0.89221), abs=2e-5)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_its_estimate_and_mirrors(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    one, other = wilson(k, n), wilson(n - k, n)
    assert 0.0 <= one.low <= one.estimate <= one.high <= 1.0
    assert one.low < one.high
    assert one.low == pytest.approx(1 - other.high, abs=1e-12)


def test_bootstrap_covers_the_true_mean() -> None:
    """Nominal 95 % over 300 samples of the spiky shares that AA gives."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(300):
        got = bootstrap_mean(rng.binomial(9, 0.4, size=60) / 9, rng, resamples=400)
        assert got.low <= got.estimate <= got.high
        hits += got.low <= 0.4 <= got.high
    assert 270 <= hits <= 297


def test_bootstrap_is_a_function_of_its_seed() -> None:
    sample = np.linspace(0, 1, 23) ** 2
    assert bootstrap_mean(sample, np.random.default_rng(3)) == bootstrap_mean(sample, np.random.default_rng(3))


def test_pairing_removes_the_difficulty_of_the_puzzles() -> None:
    """Two solvers, one always 0.1 better: the difference has no spread though both means have a wide interval."""
    rng = np.random.default_rng(2)
    easy = rng.integers(0, 90, 80) / 100
    got = paired_difference(easy + 0.1, easy, rng)
    assert (got.low, got.estimate, got.high) == pytest.approx((0.1, 0.1, 0.1))
    with pytest.raises(OptionError, match="80 puzzles"):
        paired_difference(easy, easy[:-1], rng)


def test_intervals_of_nothing_are_refused() -> None:
    rng = np.random.default_rng(0)
    for bad in ([], [float("nan")], [[1.0]]):
        with pytest.raises(OptionError, match="finite"):
            bootstrap_mean(bad, rng)
    with pytest.raises(OptionError, match="at least 1"):
        wilson(0, 0)
    with pytest.raises(OptionError, match="between"):
        wilson(3, 2)


def test_interval_as_text_and_json() -> None:
    got = wilson(1, 2)
    assert got.percent() == "50.0 % [9.5, 90.5]"
    assert set(got.to_json()) == {"estimate", "low", "high", "n"}
