"""load, cut, solve: the public interface, on small puzzles cut from bundled pictures."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sides import cut

import jigsync
from jigsync import Grid, Puzzle, Solution, Truth, data
from jigsync.api import as_grid
from jigsync.io.puzzle_folder import save_puzzle
from jigsync.measure.boundary import Boundary
from jigsync.measure.upright import Looker
from jigsync.score.cells import score
from jigsync.score.touching import neighbour_accuracy
from jigsync.solvers import base
from jigsync.solvers.base import Assignment, Progress, SolveRequest
from jigsync.values.errors import FormatError, ImageError, InputError, JigsyncError, OptionError
from jigsync.values.gauge import evidence, probabilities, votes
from jigsync.values.measurements import Measurements
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments

PUBLIC = {
    *("FormatError", "Fragments", "Gauge", "Grid", "ImageError", "InputError", "JigsyncError", "MissingExtraError"),
    *("OptionError", "Placed", "Pose", "Puzzle", "Solution", "Truth", "__version__"),
    *("candidates", "cut", "cut_with_truth", "extract", "load", "solve", "tear", "tear_with_truth"),
}


def some(puzzle: Puzzle, keep: list[int]) -> Puzzle:
    """A puzzle of some of the fragments."""
    ids, pixels = puzzle.ids, puzzle.fragments.pixels
    return replace(puzzle, fragments=Fragments(tuple(ids[k] for k in keep), tuple(pixels[k] for k in keep)))


def right(solution: Solution, truth: Truth) -> float:
    """Share of the fragments with the right cell and turns, in the best of the four gauges."""
    return score(solution, truth).best4.aa_rot


def test_the_public_names() -> None:
    assert set(jigsync.__all__) == PUBLIC
    assert len(jigsync.__all__) == len(PUBLIC)
    assert files("jigsync").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_everything_public_is_documented(name: str) -> None:
    thing = getattr(jigsync, name)
    assert inspect.getdoc(thing)
    for member, value in vars(thing).items() if inspect.isclass(thing) else []:
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | classmethod)):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_five_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_puzzle("puzzle", jigsync.cut(data.picture("chelsea"), grid=2, severity="light", cell=48))
    lines = """
import jigsync
puzzle = jigsync.load("puzzle/")
solution = jigsync.solve(puzzle)
if not solution: raise SystemExit(solution.reason)
solution.assemble().save("assembled.png")
"""
    names: dict[str, object] = {}
    exec(lines, names)
    with Image.open("assembled.png") as assembled:
        assert assembled.size == (96, 96)
    solution = names["solution"]
    assert isinstance(solution, Solution)
    placed = solution.placement["f003"]
    assert placed.cell in Grid(2, 2).cells()
    assert placed.turns in range(4)
    assert placed.confidence is not None


@pytest.mark.parametrize("name", data.names())
@pytest.mark.parametrize(
    ("severity", "grid", "cell"), [("clean", (3, 3), 40), ("light", (3, 2), 64), ("medium", (3, 4), 96)]
)
def test_small_puzzles_are_solved(name: str, severity: str, grid: tuple[int, int], cell: int) -> None:
    """Neither grid nor turns are told."""
    puzzle, truth = cut(severity, grid, cell, name, seed=8)
    solution = jigsync.solve(puzzle)
    assert (solution.status, solution.reason) == ("ok", "")
    assert right(solution, truth) == 1.0
    assert solution.solver == "jigsync"
    assert solution.puzzle is puzzle
    assert solution.energy is not None
    assert solution.grid in (Grid(*grid), Grid(*grid[::-1]))


MEDIUM = ("medium", (3, 4), 48)


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the head that tells which side of a picture is up."""

    def missing() -> None:
        raise JigsyncError("it is not here.")

    monkeypatch.setattr(Looker, "shipped", missing)


@pytest.mark.usefixtures("blind")
def test_without_evidence_the_gauge_is_undetermined() -> None:
    puzzle, truth = cut(*MEDIUM)
    free = jigsync.solve(puzzle)
    assert free.gauge.probabilities == (0.25, 0.25, 0.25, 0.25)
    assert not free.gauge.determined
    assert free.gauge.turns == free.placement[puzzle.ids[0]].turns
    for grid in ((3, 4), "4x3"):
        known = jigsync.solve(puzzle, grid=grid)
        assert known.grid == as_grid(grid)
        assert known.gauge.probabilities == (0.5, 0.0, 0.5, 0.0)
        assert not known.gauge.determined
        assert right(known, truth) == 1.0
    square, _ = cut("clean", (3, 3), 32)
    assert jigsync.solve(square, grid=3).gauge.probabilities == (0.25, 0.25, 0.25, 0.25)


@dataclass(frozen=True)
class Upright:
    """A measurer that also knows, a little, which way is up."""

    truth: Truth
    sure: float
    name: str = "upright"

    def measure(self, puzzle: Puzzle) -> Measurements:
        turns = np.array([self.truth.placement[name].turns for name in puzzle.ids])
        p = np.full((len(puzzle), 4), (1 - self.sure) / 3)
        p[np.arange(len(puzzle)), turns] = self.sure
        return replace(Boundary().measure(puzzle), unary_turns=np.log(p))


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("solver", ["jigsync", "tree"])
@pytest.mark.parametrize("grid", [None, (3, 4)])
def test_evidence_about_single_fragments_fixes_the_gauge(grid: tuple[int, int] | None, solver: str) -> None:
    puzzle, truth = cut(*MEDIUM)
    solution = jigsync.solve(puzzle, solver, measurer=Upright(truth, 0.4), grid=grid)
    assert score(solution, truth).model.aa_rot == 1.0, "the truth itself, not a turned one"
    odds = (0.4 / 0.2) ** len(puzzle)
    others = 3 if grid is None else 1
    assert solution.gauge.confidence == pytest.approx(odds / (odds + others))
    assert solution.gauge.determined
    assert sum(solution.gauge.probabilities) == pytest.approx(1)


def test_evidence_cannot_break_the_asked_grid() -> None:
    puzzle, truth = cut(*MEDIUM)
    solution = jigsync.solve(puzzle, measurer=Upright(truth, 0.9), grid=(4, 3))
    assert solution.grid == Grid(4, 3)
    assert solution.gauge.probabilities[1::2] == (0.0, 0.0)
    assert sum(solution.gauge.probabilities) == pytest.approx(1)


def test_evidence_among_possible_turns_does_not_underflow() -> None:
    turns = np.arange(400) % 4
    log_p = np.full((400, 4), -12.0)
    log_p[np.arange(400), (turns + 1) % 4] = 0.0
    log_p[np.arange(400), (turns + 2) % 4] = -11.9
    assert evidence(turns, log_p).tolist() == pytest.approx([0, 1, 0, 0])
    p = probabilities(votes(turns, log_p), [True, False, True, False])
    assert p.tolist() == pytest.approx([np.exp(-40), 0, 1, 0])


def test_pins_are_kept_and_fix_the_gauge() -> None:
    puzzle, truth = cut(*MEDIUM)
    wanted, grid = truth.placement, truth.grid
    name = puzzle.ids[5]
    row, col = wanted[name].cell or (-1, -1)
    solution = jigsync.solve(puzzle, pins={name: (row, col, wanted[name].turns)})
    assert solution.grid == grid
    assert score(solution, truth).model.aa_rot == 1.0, "one pinned fragment says which way is up"
    assert solution.gauge.probabilities == (1.0, 0.0, 0.0, 0.0)
    wrong = jigsync.solve(puzzle, grid=grid, pins={name: (0, 3, 1), puzzle.ids[6]: (2, 0, 2)})
    assert (wrong.placement[name].cell, wrong.placement[name].turns) == ((0, 3), 1)
    assert (wrong.placement[puzzle.ids[6]].cell, wrong.placement[puzzle.ids[6]].turns) == ((2, 0), 2)
    assert wrong.status == "ok"


def test_holes_extra_fragments_and_strangers() -> None:
    puzzle, truth = cut("clean", (3, 3), 32)
    fewer = jigsync.solve(some(puzzle, [0, 1, 2, 3, 4, 6, 7, 8]), grid="3x3")
    assert (fewer.status, fewer.grid) == ("ok", Grid(3, 3))
    assert len({placed.cell for placed in fewer.placement.values()}) == 8
    assert (
        neighbour_accuracy(fewer.placement, truth.placement, [name for name in puzzle.ids if name != puzzle.ids[5]])
        == 1
    )
    tight = jigsync.solve(puzzle, grid=(2, 4))
    unplaced = [name for name, placed in tight.placement.items() if placed.cell is None]
    assert tight.status == "partial"
    assert tight.reason == f"The fragment {unplaced[0]} found no cell in the 2x4 grid, which is full."
    assert len(unplaced) == 1
    assert tight.placement[unplaced[0]].confidence == 0
    assert tight


def test_excluded_fragments_stay_out() -> None:
    puzzle, truth = cut("clean", (3, 3), 32)
    stranger, _ = cut("clean", (2, 2), 32, "rocket")
    ids = ("zz", *puzzle.ids)
    mixed = replace(puzzle, fragments=Fragments(ids, (stranger.fragments.pixels[1], *puzzle.fragments.pixels)))
    for exclude in (["zz"], "zz", iter(("zz",))):
        solution = jigsync.solve(mixed, exclude=exclude)
        assert (solution.status, solution.grid) == ("ok", Grid(3, 3))
        assert solution.placement["zz"].cell is None
        assert solution.placement["zz"].confidence == 0
        assert neighbour_accuracy(solution.placement, truth.placement, puzzle.ids) == 1


def test_upright_fragments_are_not_turned() -> None:
    puzzle, truth = cut("clean", (3, 2), 32)
    pixels = (
        np.rot90(p, truth.placement[name].turns).copy()
        for name, p in zip(puzzle.ids, puzzle.fragments.pixels, strict=True)
    )
    solution = jigsync.solve(replace(puzzle, fragments=Fragments(puzzle.ids, tuple(pixels))), upright=True)
    assert {placed.turns for placed in solution.placement.values()} == {0}
    assert solution.gauge.probabilities == (1.0, 0.0, 0.0, 0.0)
    assert all(solution.placement[name].cell == truth.placement[name].cell for name in puzzle.ids)


def test_the_answer_depends_on_the_seed_and_not_on_threads_or_order() -> None:
    puzzle, truth = cut("severe", (3, 4), 48)
    first, again, alone = (jigsync.solve(puzzle, grid=(3, 4), threads=threads, seed=7) for threads in (2, 2, 1))
    assert first.placement == again.placement == alone.placement
    assert first.energy == again.energy == alone.energy
    easy, truth = cut(*MEDIUM)
    mixed = jigsync.solve(easy.permute([3, 1, 0, 7, 8, 2, 5, 4, 11, 9, 6, 10]))
    assert neighbour_accuracy(mixed.placement, truth.placement, easy.ids) == 1


def test_everything_asked_for_reaches_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[SolveRequest] = []

    class Spy:
        def solve(self, request: SolveRequest) -> Assignment:
            requests.append(request)
            return Assignment.failure(len(request.ids), "It only listens.")

    monkeypatch.setattr(base, "get", lambda name: Spy())
    puzzle, _ = cut("clean", (3, 3), 32)
    pins = {puzzle.ids[2]: (1, 0, 0)}
    solution = jigsync.solve(
        puzzle, "spy", grid=(3, 3), pins=pins, exclude=puzzle.ids[3], upright=True, time_limit=60, seed=5, threads=3
    )
    (request,) = requests
    assert (solution.status, solution.reason, solution.solver) == ("failed", "It only listens.", "spy")
    assert (request.ids, request.grid, request.pins) == (puzzle.ids, Grid(3, 3), {puzzle.ids[2]: Pose.of_cell(1, 0, 0)})
    assert (request.excluded, request.upright) == (frozenset({puzzle.ids[3]}), True)
    assert (request.seed, request.threads) == (5, 3)
    assert request.time_limit is not None
    assert 0 < request.time_limit < 60, "measuring took some"


def test_a_time_limit_and_a_cancel_return_the_best_so_far() -> None:
    puzzle, _ = cut("severe", (4, 5), 32)
    hurried = jigsync.solve(puzzle, time_limit=1e-6)
    assert hurried.status == "ok"
    assert len({placed.cell for placed in hurried.placement.values()}) == 20
    steps: list[Progress] = []

    def cancel(step: Progress) -> bool:
        steps.append(step)
        return step.stage == "measuring"

    stopped = jigsync.solve(puzzle, progress=cancel)
    assert stopped.status == "ok"
    assert steps[0] == Progress("measuring", 0.0)
    assert len(steps) == 2
    never = jigsync.solve(puzzle, progress=lambda step: False)
    assert (never.status, never.reason) == ("failed", "It was cancelled before anything was measured.")
    assert not never


def test_progress_runs_from_0_to_1() -> None:
    puzzle, _ = cut("severe", (4, 4), 32)
    steps: list[Progress] = []
    jigsync.solve(puzzle, progress=lambda step: steps.append(step) is None)
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] <= 1
    assert all(step.energy is None or np.isfinite(step.energy) for step in steps)


@pytest.mark.parametrize("solver", ["greedy", "tree", "genetic", "exact", "jigsync-paper"])
@pytest.mark.parametrize("measurer", ["boundary", "mgc", "seam", "silhouette"])
def test_any_measurer_goes_with_any_solver(solver: str, measurer: str) -> None:
    puzzle, _ = cut("light", (2, 3), 32)
    solution = jigsync.solve(puzzle, solver, measurer=measurer, grid=(2, 3))
    assert solution.solver == solver
    assert set(solution.placement) == set(puzzle.ids)


def test_one_two_and_blank_fragments() -> None:
    puzzle, truth = cut("clean", (1, 2), 32)
    both = jigsync.solve(puzzle)
    assert both.grid in (Grid(1, 2), Grid(2, 1))
    assert right(both, truth) == 1.0
    one = jigsync.solve(some(puzzle, [1]))
    assert (one.status, one.grid) == ("ok", Grid(1, 1))
    assert one.assemble().size == (32, 32)
    white = np.full((16, 16, 4), 255, dtype=np.uint8)
    blank = jigsync.solve(Puzzle(Fragments(tuple("abcdef"), (white,) * 6)))
    assert blank.status == "unsure"
    assert len({placed.cell for placed in blank.placement.values()}) == 6


def test_two_identical_fragments() -> None:
    puzzle, truth = cut("clean", (3, 3), 32)
    pixels = list(puzzle.fragments.pixels)
    pixels[2] = np.rot90(pixels[6], 3).copy()
    solution = jigsync.solve(replace(puzzle, fragments=Fragments(puzzle.ids, tuple(pixels))))
    assert solution.status == "ok"
    others = [name for k, name in enumerate(puzzle.ids) if k not in (2, 6)]
    assert neighbour_accuracy(solution.placement, truth.placement, others) > 0.5


@dataclass(frozen=True)
class Fixed:
    """A measurer that always gives the same."""

    measurements: Measurements
    name: str = "fixed"

    def measure(self, puzzle: Puzzle) -> Measurements:
        return self.measurements


def test_misuse_is_refused_in_one_sentence() -> None:
    puzzle, _ = cut("clean", (2, 3), 32)
    first = puzzle.ids[0]
    cases: list[tuple[dict[str, object], str]] = [
        ({"solver": "magic"}, "no solver 'magic'; the solvers are jigsync"),
        ({"measurer": "magic"}, "no measurer 'magic'; the measurers are learned"),
        ({"grid": (2, 3, 4)}, r"'grid' must be 5, '4x6' or \(4, 6\). Got \(2, 3, 4\)"),
        ({"grid": 2.5}, r"'grid' must be 5, '4x6' or \(4, 6\). Got 2.5"),
        ({"grid": "2y3"}, "'grid' of the puzzle must be a number such as 5 or rows x cols"),
        ({"grid": 0}, "'rows' of a grid must be an integer of at least 1. Got 0"),
        ({"pins": {first: (0, 1)}}, r"'pins' of a solve must be id -> \(row, col, turns\)"),
        ({"pins": {first: "0,1,2"}}, r"'pins' of a solve must be id -> \(row, col, turns\)"),
        ({"pins": {first: (0, 0, 4)}}, "'turns' of the pin of fragment .* must be 0, 1, 2 or 3. Got 4"),
        ({"pins": {"zz": (0, 1, 2)}}, "pinned fragment 'zz' is not in the puzzle"),
        ({"pins": {first: (7, 7, 0)}}, "No grid holds all the pinned cells"),
        ({"exclude": ["zz"]}, "excluded fragment 'zz' is not in the puzzle"),
        ({"exclude": puzzle.ids}, "nothing to solve: 6 of 6"),
        ({"time_limit": 0}, "'time_limit' of a solve must be a number of seconds above 0"),
        ({"time_limit": float("nan")}, "'time_limit' of a solve"),
        ({"threads": 0}, "'threads' of a solve"),
    ]
    for options, words in cases:
        with pytest.raises(OptionError, match=words):
            jigsync.solve(puzzle, **options)  # type: ignore[arg-type]
    other = Boundary().measure(puzzle.permute([1, 0, 2, 3, 4, 5]))
    with pytest.raises(FormatError, match="must be of its fragments, in their order"):
        jigsync.solve(puzzle, measurer=Fixed(other))
    with pytest.raises(InputError, match="must hold at least one fragment"):
        jigsync.solve(some(puzzle, []))
    hidden = replace(
        puzzle, fragments=Fragments(("a", "b"), (puzzle.fragments.pixels[0], np.zeros((9, 9, 4), np.uint8)))
    )
    with pytest.raises(ImageError, match="'b' of 'puzzle' must have opaque pixels"):
        jigsync.solve(hidden)


def test_grids_in_every_form() -> None:
    assert as_grid(Grid(2, 3)) == as_grid("2x3") == as_grid((2, 3)) == Grid(2, 3)
    assert as_grid(4) == as_grid("4") == as_grid(np.int64(4)) == Grid(4, 4)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'rows' of a grid"):
        as_grid(("2", "3"))  # type: ignore[arg-type]


def test_cut_is_cut_with_truth_without_the_truth() -> None:
    options = {"grid": (2, 3), "severity": "light", "cell": 32, "seed": 4}
    puzzle = jigsync.cut(data.picture("rocket"), **options)  # type: ignore[arg-type]
    same, truth = jigsync.cut_with_truth(data.picture("rocket"), **options)  # type: ignore[arg-type]
    assert puzzle.ids == same.ids == tuple(truth.placement)
    for one, two in zip(puzzle.fragments.pixels, same.fragments.pixels, strict=True):
        np.testing.assert_array_equal(one, two)
    assert truth.grid == Grid(2, 3)
    assert len(truth.source_sha256) == 64
    with pytest.raises(OptionError, match="severity"):
        jigsync.cut(data.picture("rocket"), severity="mild")
    with pytest.raises(InputError, match=r"no-such\.png"):
        jigsync.cut("no-such.png")
