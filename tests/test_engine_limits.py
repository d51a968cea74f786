"""What the decoder refuses, when it stops, and how much it takes: whatever the shape of the grid."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jigsync.engine import library as engine_library
from jigsync.engine.library import Plan
from jigsync.engine.problem import Codes, CompiledProblem, codes_of
from jigsync.engine.search import solve_map
from jigsync.studies.planted import plant
from jigsync.values import z4
from jigsync.values.errors import JigsyncError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

FLT_MAX = float(np.finfo(np.float32).max)


def whole(grid: Grid, score: float = 5.0) -> SideScores:
    """Scores of fragments that belong in the slots of their numbers, nothing else listed."""
    n, slots = grid.size, np.arange(grid.size).reshape(grid.shape)
    first = np.concatenate([4 * slots[:, :-1].ravel() + z4.E, 4 * slots[:-1].ravel() + z4.S])
    second = np.concatenate([4 * slots[:, 1:].ravel() + z4.W, 4 * slots[1:].ravel() + z4.N])
    s, t = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(s)
    indptr = np.searchsorted(s[order], np.arange(4 * n + 1)).astype(np.int64)
    return SideScores(n, None, indptr, t[order].astype(np.int32), np.full(len(s), score, dtype=np.float32), -6.0)


def row_of(n: int, score: float = 5.0) -> SideScores:
    """The same of one row."""
    return whole(Grid(1, n), score)


def ended(by: str) -> tuple[dict[str, Any], Any]:
    """Options of a plan or problem that end it at once, by the clock or by a cancel; and what must be kept alive."""
    flag = ctypes.c_int32(1)
    return ({"cancel": ctypes.addressof(flag)} if by == "cancel" else {"seconds": 1e-9}), flag


BY = pytest.mark.parametrize("by", ["cancel", "clock"])


@BY
def test_links_are_left(by: str) -> None:
    options, _keep = ended(by)
    scores, grid = row_of(400), Grid(1, 400)
    side, _ = CompiledProblem(scores, grid, **options).links()
    assert (side == -1).all()
    assert (CompiledProblem(scores, grid).links()[0][:, 0] >= 0).sum() == 2 * 399


@BY
@pytest.mark.parametrize("grid", [Grid(1, 400), Grid(20, 20)])
def test_growth_is_left_with_a_whole_placement(by: str, grid: Grid) -> None:
    options, _keep = ended(by)
    problem = CompiledProblem(whole(grid), grid)
    poses, report = problem.run(1, Plan(grow=8, noise=0.5, **options))
    assert not report.finished
    assert sorted(poses >> 2) == list(range(400))
    assert report.score == pytest.approx(problem.score(poses), abs=1e-2)
    assert problem.run(1, Plan(grow=8, noise=0.5))[1].score > report.score + 1000
    assert problem.run(1, Plan(grow=8, noise=0.5))[1].finished


def shifted(n: int, by: int) -> Codes:
    return codes_of((np.arange(n) + by) % n, np.zeros(n, dtype=np.int64))


@BY
def test_sliding_is_left(by: str) -> None:
    options, _keep = ended(by)
    scores = row_of(300)
    assert scores.values is not None
    scores.values[[2 * 199 - 1, 2 * 200]] = 4.0  # nowhere else is it as good to cut
    problem = CompiledProblem(scores, Grid(1, 300))
    poses, _ = problem.run(1, Plan(**options), shifted(300, 100))
    np.testing.assert_array_equal(poses, shifted(300, 100))
    poses, report = problem.run(1, Plan(), shifted(300, 100))
    np.testing.assert_array_equal(poses, shifted(300, 0))
    assert report.score == 5.0 * 298 + 4.0


@pytest.mark.parametrize("seed", range(6))
def test_a_slide_along_either_axis_finds_the_seam(seed: int) -> None:
    """However the picture is rolled, and whatever the border says: no slide is overlooked for its estimate."""
    rng = np.random.default_rng(seed)
    grid = Grid(5, 7)
    planted = plant(grid, 0.9, rng)
    border = rng.normal(0, 0.5, 4 * 35).astype(np.float32)
    scores = SideScores(35, dense=planted.scores.to_dense(), border=border)
    problem = CompiledProblem(scores, grid)
    row, col = planted.slots // 7, planted.slots % 7
    rolled = (row + int(rng.integers(5))) % 5 * 7 + (col + int(rng.integers(7))) % 7
    _, report = problem.run(1, Plan(), codes_of(rolled, planted.turns))
    every = max(
        problem.score(codes_of((row + a) % 5 * 7 + (col + b) % 7, planted.turns)) for a in range(5) for b in range(7)
    )
    assert report.score == pytest.approx(every, abs=1e-3)


@BY
def test_neighbourhoods_and_annealing_are_left(by: str) -> None:
    options, _keep = ended(by)
    planted = plant(Grid(12, 12), 0.3, np.random.default_rng(1))
    problem = CompiledProblem(planted.scores, planted.grid)
    start = codes_of(planted.slots[::-1].copy(), planted.turns)
    for plan in ({"moves": 10**9}, {"rounds": 10**6}, {"beliefs": 1000}):
        _, report = problem.run(1, Plan(hot=1.0, cold=0.5, lns=1.0, **plan, **options), start)
        assert not report.finished
        assert report.moves <= 2**14


@BY
def test_marginals_are_left_after_one_draw(by: str) -> None:
    options, _keep = ended(by)
    planted = plant(Grid(6, 6), 0.3, np.random.default_rng(1))
    problem = CompiledProblem(planted.scores, planted.grid)
    best = codes_of(planted.slots, planted.turns)
    kept = problem.marginals(1, best, best, 10**6, 10**9, **({"seconds": 0.0, "cancel": None} | options))
    assert set(kept) <= {0.0, 1.0}


def test_a_cancel_is_heard_before_there_is_any_placement() -> None:
    seen: list[float] = []

    def no(score: float, _: float) -> bool:
        seen.append(score)
        return False

    result = solve_map(row_of(3000), Grid(1, 3000), effort=1000.0, progress=no)
    assert not result.finished
    assert sorted(result.slots) == list(range(3000))
    assert seen


STRIP = """
import resource
import numpy as np
from test_engine_limits import row_of
from jigsync.engine.problem import CompiledProblem, codes_of
from jigsync.engine.search import solve_map
from jigsync.values.layout import Grid
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 400 * 2**20,) * 2)
found = solve_map(row_of(2000), Grid(1, 2000), effort=0.001, threads=1)
best = codes_of(found.slots, found.turns)
assert CompiledProblem(row_of(2000), Grid(1, 2000)).marginals(1, best, best, 2, 1000, 0.0, None).shape == (2000,)
print(int(found.score))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")
def test_memory_goes_with_the_fragments_even_of_a_strip() -> None:
    """A canvas as high as it is long would be 5 GB here, and the votes of the marginals 4 GB."""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", STRIP], capture_output=True, text=True, env=path)
    assert (done.stdout, done.stderr) == (f"{5 * 1999}\n", "")


def test_cells_beyond_32767_are_where_they_are() -> None:
    grid = Grid(1, 40_000)
    problem = CompiledProblem(row_of(3), grid, pins={1: (39_000, 0)})
    poses, report = problem.run(1, Plan(grow=1))
    assert poses.tolist() == [4 * 38_999, 4 * 39_000, 4 * 39_001]
    assert report.score == 10.0
    kept = problem.marginals(1, poses, poses, 4, 0, 0.0, None)
    np.testing.assert_array_equal(kept, 1.0)


@pytest.mark.parametrize(
    ("n", "grid", "says"),
    [
        (2**27, Grid(2, 2), "at most 67108864 fragments"),
        (2, Grid(40_000, 40_000), "grid 40000x40000 is too large"),
        (2, Grid(2**30, 1), "too large"),
    ],
)
def test_sizes_that_fit_no_int_are_refused(n: int, grid: Grid, says: str) -> None:
    scores = SideScores(n, None, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    with pytest.raises(OptionError, match=says):
        solve_map(scores, grid)


def _dense(value: float) -> NDArray[np.float32]:
    out = np.zeros((16, 16), dtype=np.float32)
    out[0, 5] = value
    return out


BAD = pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, FLT_MAX, -FLT_MAX, 1e7])


@BAD
def test_numbers_that_no_score_can_hold_are_refused(value: float) -> None:
    with pytest.raises(OptionError, match="'dense' of the decoder must be finite numbers of at most 1e"):
        solve_map(SideScores(4, dense=_dense(value)), Grid(2, 2))
    listed = row_of(4, value)
    with pytest.raises(OptionError, match="'values'"):
        solve_map(listed, Grid(2, 2))
    with pytest.raises(OptionError, match="'floor'"):
        solve_map(SideScores(4, None, listed.indptr, listed.indices, np.zeros(6, np.float32), value), Grid(2, 2))
    dense = SideScores(4, dense=_dense(0))
    with pytest.raises(OptionError, match="'border'"):
        solve_map(SideScores(4, dense=_dense(0), border=np.full(16, value, np.float32)), Grid(2, 2))
    shapes = {"unary_turns": (4, 4), "unary_cells": (4, 4), "unary_poses": (4, 4, 4)}
    for name, shape in shapes.items():
        with pytest.raises(OptionError, match=name):
            solve_map(dense, Grid(2, 2), **{name: np.full(shape, value)})  # type: ignore[arg-type]


def test_all_scores_at_the_limit_are_decoded() -> None:
    result = solve_map(SideScores(4, dense=np.full((16, 16), 1e6, dtype=np.float32)), Grid(2, 2), effort=0.1)
    assert result.score == 4e6


@pytest.mark.parametrize("effort", [np.nan, np.inf, 1e300, -1.0, 0.0])
def test_efforts_that_nobody_can_make_are_refused(effort: float) -> None:
    with pytest.raises(OptionError, match="'effort' of the decoder must be above 0 and at most"):
        solve_map(SideScores(4, dense=_dense(0)), Grid(2, 2), effort=effort)


def test_a_time_limit_is_a_number() -> None:
    with pytest.raises(OptionError, match="time_limit"):
        solve_map(SideScores(4, dense=_dense(0)), Grid(2, 2), time_limit=np.nan)


@pytest.mark.parametrize(
    ("indptr", "indices", "says"),
    [([0] * 15 + [2], [1, 2], "indptr"), ([0] * 16 + [2], [1, 99], "indices"), ([0, 5] + [2] * 15, [1, 2], "indptr")],
)
def test_sparse_rows_stay_within_their_arrays(indptr: list[int], indices: list[int], says: str) -> None:
    rows = np.array(indptr, np.int64), np.array(indices, np.int32), np.zeros(len(indices), np.float32)
    with pytest.raises(OptionError, match=says):
        solve_map(SideScores(4, None, *rows), Grid(2, 2))


def test_four_threads_run_four_restarts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    met, calls, run = threading.Barrier(4, timeout=60), iter(range(10**6)), CompiledProblem.run

    def together(self: CompiledProblem, *args: Any) -> Any:
        if next(calls) < 4:
            met.wait()  # fewer at once would never meet
        return run(self, *args)

    planted = plant(Grid(4, 5), 0.45, np.random.default_rng(8))
    alone = solve_map(planted.scores, planted.grid, seed=5, effort=0.3, threads=1)
    monkeypatch.setattr(CompiledProblem, "run", together)
    result = solve_map(planted.scores, planted.grid, seed=5, effort=0.3, threads=4)
    assert (result.score, result.starts, result.moves) == (alone.score, alone.starts, alone.moves)
    np.testing.assert_array_equal(result.slots, alone.slots)


@pytest.mark.parametrize(("grid", "effort"), [(Grid(4, 5), 0.3), (Grid(8, 8), 0.02)])
def test_one_two_and_four_threads_find_the_same(grid: Grid, effort: float) -> None:
    planted = plant(grid, 0.4, np.random.default_rng(3))
    one, *others = (solve_map(planted.scores, grid, seed=5, threads=t, effort=effort) for t in (1, 2, 4))
    for other in others:
        assert (other.score, other.starts, other.moves) == (one.score, one.starts, one.moves)
        np.testing.assert_array_equal(other.slots, one.slots)
        np.testing.assert_array_equal(other.turns, one.turns)
        np.testing.assert_array_equal(other.marginals, one.marginals)


def test_whoever_waits_on_a_ladder_sleeps() -> None:
    """A worker that comes late costs the others no processor time."""
    planted = plant(Grid(8, 8), 0.3, np.random.default_rng(5))
    problem = CompiledProblem(planted.scores, planted.grid)
    plan = Plan(tempering=1, replicas=2, top=1.6, low=0.7)
    ladder = problem.ladder(1, plan, codes_of(planted.slots, planted.turns))

    def climb(worker: int) -> float:
        if worker:
            time.sleep(0.6)
        begun = time.thread_time()
        ladder.climb(worker, 2)
        return time.thread_time() - begun

    with ThreadPoolExecutor(2) as pool:
        waiting, _ = pool.map(climb, range(2))
    assert waiting < 0.2


def test_structs_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = engine_library.library.__wrapped__
    fresh()

    class Other(ctypes.Structure):
        _fields_ = [*engine_library.Report._fields_[1:], engine_library.Report._fields_[0]]

    class Longer(ctypes.Structure):
        _fields_ = [*engine_library.Plan._fields_, ("more", ctypes.c_int64)]

    for name, struct in (("Report", Other), ("Plan", Longer)):
        with monkeypatch.context() as patch:
            struct.__name__ = name
            patch.setattr(engine_library, name, struct)
            with pytest.raises(JigsyncError, match="lays out its structs in another way"):
                fresh()
