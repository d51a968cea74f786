"""The studies of the paper's pipeline: on relations with a known truth, and end to end at tiny sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jigsync.measure import registry
from jigsync.score.intervals import Interval
from jigsync.studies import ablation, context, decoding, gauge_fix, loops, progression, reproduce, symmetrize
from jigsync.studies.decoding import BASE, Answer, Sample, Setup
from jigsync.studies.kept import kept
from jigsync.studies.result import StudyResult
from jigsync.studies.rows import says
from jigsync.studies.synthetic import Solved, measured, random_solved, true_relations, turn_evidence
from jigsync.values import vocabulary as v
from jigsync.values.errors import InputError
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements, UnaryCells
from jigsync.values.pairs import Relations
from jigsync.values.puzzle import Puzzle

FAMILY = {
    "gauge-fix": gauge_fix,
    "progression": progression,
    "ablation": ablation,
    "symmetrize": symmetrize,
    "loops": loops,
}


def noisy(solved: Solved, rng: np.random.Generator, share: float, told: bool) -> Measurements:
    """Relations of which `share` is wrong, each direction on its own; turns of fragments mostly told, or not."""
    relations = true_relations(solved)
    wrong = rng.random(relations.shape) < share
    relations[wrong] = rng.integers(0, v.RELATIONS, wrong.sum())
    unary = {"unary_turns": turn_evidence(solved, rng, 0.9)} if told else {}
    return measured(solved, relations, **unary)


@pytest.fixture(params=[True, False], ids=["told", "untold"])
def made_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Studies get relations without pixels, of a measurer that is called pairwise."""
    told: bool = request.param

    def task(task: decoding.Task) -> Answer:
        rng = np.random.default_rng(task.seed)
        solved = random_solved(task.options.grid, rng)
        share = 0.5 if task.measurer == "comparator" else 0.25
        return decoding.decode(noisy(solved, rng, share, told), solved, task.setups)

    monkeypatch.setattr(decoding, "run_task", task)
    monkeypatch.setattr(decoding, "available", lambda names=("pairwise",): [n for n in names if n != "learned"])
    return told


# ------------------------------------------------------------------------------------------------ decode, judge


def test_true_relations_are_decoded_and_every_edge_is_right() -> None:
    solved = random_solved(Grid(3, 3), np.random.default_rng(4))
    told = measured(solved, true_relations(solved), unary_turns=turn_evidence(solved, np.random.default_rng(0), 0.97))
    setups = (Setup("C", BASE), Setup("A", replace(BASE, edges="given")), *loops.SETUPS)
    answer = decoding.decode(told, solved, setups)
    assert answer.told
    assert not answer.unit_only
    assert answer.agreement == 1
    for setup in setups:
        found = answer.decoded[setup.name]
        assert found.right == 1, setup.name
        assert found.of("AA+rot", "true") == 1, setup.name
    assert answer.decoded["C"].of("PA+rot", "model") == 1
    assert (answer.decoded["C"].edges, answer.decoded["C"].adjacent) == (72, pytest.approx(24 / 72))
    assert (answer.decoded["A"].edges, answer.decoded["A"].adjacent) == (24, 1)


def test_the_true_gauge_is_found_whatever_was_answered() -> None:
    scores = np.zeros((4, 6))
    scores[2] = (0, 0.5, 0.25, 0.75, 0.5, 0)  # PA, AA, SRA, rotation, ...
    scores[1] = (0, 0.6, 0.3, 0.5, 0.4, 0)
    found = decoding.Decoded(scores, 0, float("nan"), float("nan"), True)
    assert found.true_gauge == 2
    assert found.of("AA", "true") == 0.5
    assert found.of("AA", "model") == 0


def test_the_penalty_is_a_guess_and_evidence_is_not() -> None:
    rng = np.random.default_rng(1)
    hits = {"penalty": 0, "anchor": 0}
    setups = [Setup("penalty", replace(BASE, gauge="residual")), Setup("anchor", BASE)]
    for _ in range(40):
        solved = random_solved(Grid(3, 3), rng)
        answer = decoding.decode(noisy(solved, rng, 0.1, told=True), solved, setups)
        for name in hits:
            hits[name] += answer.decoded[name].true_gauge == 0
    assert hits["anchor"] == 40
    assert 2 <= hits["penalty"] <= 20


def test_measurements_of_neighbours_only_choose_their_edges() -> None:
    solved = random_solved(Grid(3, 4), np.random.default_rng(2))
    sides = np.full((48, 48), np.log(1e-4), dtype=np.float32)
    relation = true_relations(solved)
    for i, j in solved.adjacency().tolist():
        for a, b in ((i, j), (j, i)):
            s, t = np.argwhere(relation[a, b] == v.UNIT_OF_SIDES)[0]
            sides[4 * a + s, 4 * b + t] = np.log(0.8)
    near = Measurements.from_sides_log_p(solved.ids, sides)
    setups = (Setup("C", BASE), Setup("all", BASE, every_pair=True))
    answer = decoding.decode(near, solved, setups)
    assert answer.unit_only
    assert answer.decoded["C"].edges == 2 * len(solved.adjacency())
    assert answer.decoded["C"].of("AA+rot", "true") == 1
    assert decoding.for_units(BASE).confidence_threshold == decoding.UNIT_THRESHOLD


# ------------------------------------------------------------------------------------------------ measurers


@dataclass(frozen=True)
class Fake:
    """A measurer that knows turns, or nothing."""

    name: str

    def measure(self, puzzle: Puzzle) -> Measurements:
        n = len(puzzle)
        flat = np.full((n, n, v.RELATIONS), -np.log(v.RELATIONS), dtype=np.float32)
        told = np.log(np.full((n, 4), 0.25)) if self.name == "knows" else None
        return Measurements(puzzle.ids, Relations(flat), unary_turns=told)


def test_rows_come_on_with_the_measurers_that_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty(Fake):
        def measure(self, puzzle: Puzzle) -> Measurements:
            return replace(super().measure(puzzle), note="There are no weights.")

    monkeypatch.setattr(decoding, "_measurer", Fake)
    monkeypatch.setattr(registry, "_REGISTRY", {"learned": ("", "")})
    assert decoding.available() == ["learned"]
    monkeypatch.setattr(registry, "_REGISTRY", {"learned": ("", ""), "pairwise": ("", "")})
    assert decoding.available() == ["pairwise", "learned"]
    assert decoding.available(("pairwise", "comparator")) == ["pairwise"]
    monkeypatch.setattr(decoding, "_measurer", lambda name: (Empty if name == "pairwise" else Fake)(name))
    assert decoding.available() == ["learned"], "weights are missing, so another measurer would stand in"


def test_the_unary_head_is_asked_where_pairs_are_silent(monkeypatch: pytest.MonkeyPatch, sample_puzzle: Puzzle) -> None:
    monkeypatch.setattr(decoding, "_measurer", Fake)
    head = np.log(np.tile([0.7, 0.1, 0.1, 0.1], (6, 1))), UnaryCells(np.full((6, 2), 0.5), np.ones(6))
    monkeypatch.setattr(decoding, "single", lambda puzzle: head)
    silent = decoding.measure(sample_puzzle, "silent")
    assert silent.unary_turns is head[0]
    assert silent.unary_cells is head[1]
    assert np.ptp(decoding.measure(sample_puzzle, "knows").unary_turns) == 0, "its own word comes first"
    monkeypatch.setattr(decoding, "single", lambda puzzle: None)
    assert decoding.measure(sample_puzzle, "silent").unary_turns is None


def test_a_head_that_cannot_be_run_tells_nothing(monkeypatch: pytest.MonkeyPatch, sample_puzzle: Puzzle) -> None:
    def absent() -> None:
        raise InputError("There are no weights.")

    monkeypatch.setattr(decoding, "load_unary", absent)
    assert decoding.single(sample_puzzle) is None


@pytest.fixture
def sample_puzzle() -> Puzzle:
    from jigsync import data
    from jigsync.api import cut

    return cut(data.picture("coffee"), "2x3", "clean", cell=24)


@pytest.mark.parametrize("form", ["relations", "sides"])
def test_measurements_come_back_as_they_were(tmp_path: Path, form: str) -> None:
    solved = random_solved(Grid(2, 3), np.random.default_rng(8))
    unary = {
        "unary_turns": turn_evidence(solved, np.random.default_rng(0), 0.9),
        "unary_cells": UnaryCells(np.full((6, 2), 0.25), np.arange(6.0)),
    }
    if form == "relations":
        made = replace(measured(solved, true_relations(solved), **unary), note="a note")
    else:
        sides = np.full((24, 24), -4.0, dtype=np.float32)
        made = Measurements.from_sides_log_p(solved.ids, sides, border=np.full(24, -1.0, np.float32))
    asked = []

    def make() -> Measurements:
        asked.append(1)
        return made

    first, again = kept(tmp_path, "this", make), kept(tmp_path, "this", make)
    assert len(asked) == 1
    assert first is made
    assert (again.ids, again.note, again.unit_only) == (made.ids, made.note, made.unit_only)
    assert type(made.pairs) is type(again.pairs)
    np.testing.assert_array_equal(made.dense, again.dense)
    for name in ("unary_turns", "border"):
        a, b = getattr(made, name), getattr(again, name)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)
    if form == "relations":
        assert again.unary_cells is not None
        np.testing.assert_array_equal(again.unary_cells.sigma, np.arange(6.0))
    kept(tmp_path, "that", make)
    assert len(asked) == 2


def test_puzzles_are_measured_once_for_all_studies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []
    monkeypatch.setattr(decoding, "available", lambda names=("boundary",): ["boundary"])
    monkeypatch.setattr(decoding, "folder", lambda: tmp_path)
    real = decoding.measure
    monkeypatch.setattr(decoding, "measure", lambda puzzle, name: asked.append(name) or real(puzzle, name))
    sample = Sample(2, (3,), 32)
    symmetrize.run_sample(sample)
    symmetrize.run_sample(sample)
    assert len(asked) == 2
    symmetrize.run_sample(replace(sample, seed=1))
    assert len(asked) == 4


# ------------------------------------------------------------------------------------------------ verdicts


@pytest.mark.parametrize(
    ("ours", "paper", "said"),
    [
        ((0.05, 0.02, 0.08), 8.0, "agrees in sign"),
        ((-0.05, -0.08, -0.02), 8.0, "differs in sign"),
        ((0.05, -0.02, 0.08), 8.0, "open"),
        ((0.05, -0.02, 0.08), 0.1, "agrees: none"),
        ((0.05, 0.02, 0.08), -0.66, "differs: it helps"),
        ((-0.05, -0.08, -0.02), 0.0, "differs: it costs"),
        ((0.005, 0.001, 0.008), 0.0, "agrees: next to none"),
        ((0.05, 0.02, 0.08), None, "the paper has no"),
    ],
)
def test_effects_are_judged(ours: tuple[float, float, float], paper: float | None, said: str) -> None:
    assert says(Interval(*ours, 40), paper).startswith(said)


# ------------------------------------------------------------------------------------------------ the studies


@cache
def small(study: str, made_up: bool) -> StudyResult:
    """Once for all tests; the fixture has seen to where relations come from."""
    return FAMILY[study].run_sample(Sample(6, (3, 4), 32, seed=3))


@pytest.mark.parametrize("study", FAMILY)
def test_tables(study: str, made_up: bool) -> None:
    result = small(study, made_up)
    assert result.name == study
    assert {row["measurer"] for row in result.rows} == {"pairwise"}
    assert {row["n"] for row in result.rows} == {3, 4}
    assert all(row["puzzles"] == 6 for row in result.rows)
    assert "cannot be compared" in result.verdict
    assert result.settings["measurers"] == ["pairwise"]
    assert result.settings["severity"] == decoding.SEVERITY


def test_gauge_fix(made_up: bool) -> None:
    result = small("gauge-fix", made_up)
    of = {(row["n"], row["row"]): row for row in result.rows}
    assert [row for n, row in of if n == 3] == (
        [gauge_fix.PENALTY, gauge_fix.ANCHOR, gauge_fix.CEILING] if made_up else [gauge_fix.PENALTY, gauge_fix.CEILING]
    )
    ceiling = of[3, gauge_fix.CEILING]
    assert ceiling["AA"] == ceiling["AA_true"] > of[3, gauge_fix.PENALTY]["AA"]
    assert (ceiling["paper_AA"], ceiling["gauge_right"]) == (pytest.approx(0.4194), 1)
    assert of[3, gauge_fix.PENALTY]["paper_AA"] == pytest.approx(0.1661)
    assert "paper_AA" not in of[4, gauge_fix.PENALTY]
    assert ("The anchored row is left out" in result.verdict) is not made_up
    gains = [c for c in result.compared if "anchor against penalty" in c.what]
    assert [c.paper for c in gains] == (["+20.11", "-"] if made_up else [])


def test_progression_and_ablation(made_up: bool) -> None:
    steps = small("progression", made_up)
    assert [row["row"] for row in steps.rows[:5]] == [setup.name for setup in progression.SETUPS]
    assert [c.paper for c in steps.compared if "3 x 3, conditioned decoding: points" in c.what] == ["+8.11"]
    grid = small("ablation", made_up)
    names = [row["row"] for row in grid.rows]
    assert ("unary position term" in names) is made_up
    assert ("is left out" in grid.verdict) is not made_up
    loop = next(c for c in grid.compared if "loop weighting" in c.what)
    assert loop.paper == "-0.39"
    where = " in the true gauge" if not made_up else ""
    assert grid.compared[0].what == f"pairwise, 3 x 3, baseline: AA{where}"


def test_symmetrize_counts_signs(made_up: bool) -> None:
    result = small("symmetrize", made_up)
    row = result.rows[0]
    assert row["better"] + row["worse"] + row["unchanged"] == 6
    assert 0.4 < row["agreement"] < 0.75  # 0.75^2 of the pairs are right both ways
    assert any(c.paper == "61.82 %" for c in result.compared)


def test_loops_trade_connectivity_for_precision(made_up: bool) -> None:
    result = small("loops", made_up)
    of = {(row["graph"], row["support"]): row for row in result.rows if row["n"] == 3}
    complete = [of[loops.COMPLETE, s] for s in loops.SUPPORTS]
    assert complete[0]["adjacent"] == pytest.approx(24 / 72)
    assert complete[0]["edges"] == 72
    assert [row["right"] for row in complete] == sorted(row["right"] for row in complete)
    assert complete[3]["right"] > complete[0]["right"] + 0.1
    assert of[loops.STRONGEST, 0]["edges"] < 72
    assert of[loops.STRONGEST, 2]["paper_disconnected"] == pytest.approx(0.895)
    assert "24/72" in result.verdict


def test_context(made_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    result = context.run_sample(Sample(6, (3, 4), 32))
    assert [(row["measurer"], row["n"]) for row in result.rows] == [
        (name, n) for name in ("pairwise", "comparator") for n in (3, 4)
    ]
    gain = next(c for c in result.compared if c.what.startswith("3 x 3, context"))
    assert gain.paper == "+3.1"
    assert str(gain.ours).startswith("+")
    monkeypatch.setattr(decoding, "available", lambda names: ["pairwise"])
    alone = context.run_sample(Sample(2, (3,), 32))
    assert alone.verdict == "Cannot be compared: there are no weights for the measurer comparator."


@pytest.mark.parametrize("made_up", [True], indirect=True)
def test_pictures_are_drawn_twice_and_always_alike(tmp_path: Path, made_up: bool) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'study' (matplotlib), which is not installed")
    results = [*(small(study, made_up) for study in FAMILY), context.run_sample(Sample(2, (3, 4), 32))]
    for result in results:
        written = reproduce.write(result, tmp_path, "jigsync reproduce it")
        assert written.picture is not None
        assert written.drawing is not None
        first = written.drawing.read_bytes()
        assert b"<svg" in first
        assert '"command": "jigsync reproduce it"' in written.json.read_text()
    result.plot(written.drawing)
    assert written.drawing.read_bytes() == first


def test_end_to_end_on_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "RELATIONS", ("boundary",))
    monkeypatch.setattr(decoding, "available", lambda names=("boundary",): [n for n in names if n == "boundary"])
    monkeypatch.setattr(decoding, "SEVERITY", "clean")
    result = progression.run_sample(Sample(2, (3,), 32))
    assert {row["measurer"] for row in result.rows} == {"boundary"}
    assert result.rows[0]["AA_true"] == 1  # given edges, clean squares
    assert result.settings["pictures"] == 2
    assert "Measurements of direct neighbours" in result.verdict


def test_commands_name_no_folder_of_ours() -> None:
    given = {"images": Path("/somewhere/of/mine")}
    assert reproduce.command("main", True, 3, given) == "jigsync reproduce main --full --seed 3 --images IMAGES"
    assert reproduce.command("gauge", False, 0, {}) == "jigsync reproduce gauge"
