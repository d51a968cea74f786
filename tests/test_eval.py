"""`jigsync eval`: the cache, its keys, its resumption, and figures that are computed from it alone."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from jigsync import cli, data
from jigsync.corpus.plan import SweepOptions, plan_sweep
from jigsync.evaluate import chart, fingerprint, plan, predict, run
from jigsync.evaluate.cache import Cache, Config, Prediction
from jigsync.evaluate.plan import methods_of
from jigsync.evaluate.progress import silent
from jigsync.evaluate.scores import Scored, score_cache
from jigsync.evaluate.sources import PictureSource
from jigsync.evaluate.spec import Method, Spec
from jigsync.evaluate.style import STYLE
from jigsync.evaluate.table import ALL_KINDS, lines, pairs
from jigsync.evaluate.wanted import Wanted
from jigsync.io.files import read_jsonl
from jigsync.measure.boundary import Boundary
from jigsync.score.intervals import wilson
from jigsync.solution import Solution
from jigsync.solvers.greedy import Greedy
from jigsync.solvers.tree import Tree
from jigsync.values.errors import FormatError, InputError, MissingExtraError, OptionError
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.placement import Placed
from jigsync.values.puzzle import Puzzle

GREEDY, TREE = Method("greedy", "boundary"), Method("tree", "mgc")
SMALL = Wanted((Grid(2, 3),), ("clean", "light"), 3, cell=24)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures of one kind, one of another, one that is none."""
    folder = tmp_path_factory.mktemp("corpus") / "test"
    folder.mkdir()
    for name in ("astronaut", "coffee", "chelsea"):
        with Image.open(data.picture(name)) as picture:
            picture.resize((120, 90)).save(folder / f"{name}.png")
    (folder / "broken.jpg").write_bytes(b"no picture")
    rows = ["file,kind", "test/astronaut.png,photo", "test/coffee.png,photo", "test/chelsea.png,cat"]
    (folder.parent / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def specs_of(images: Path, wanted: Wanted = SMALL) -> list[Spec]:
    return plan.from_pictures(images, wanted, 1, silent)[0]


def scored_of(specs: list[Spec], config: Config, root: Path) -> list[Scored]:
    return [one for spec in specs for one in score_cache(spec, config, Cache(root))]


def quiet(done: int, total: int, elsewhere: int) -> None:
    """Reports nothing."""


def predictions(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("predictions/**/*.jsonl")}


# ------------------------------------------------------------------------------------------------ plan


def test_puzzles_are_drawn_alike_for_all_settings_and_more_contain_the_fewer(images: Path) -> None:
    few = specs_of(images, replace(SMALL, puzzles=2))
    many = specs_of(images, replace(SMALL, puzzles=7))
    assert [spec.setting.severity for spec in few] == ["clean", "light"] * 2, "round by round over the settings"
    assert {spec.name for spec in few} < {spec.name for spec in many}
    clean = [spec for spec in many if spec.setting.severity == "clean"]
    assert len(clean) == len({spec.name for spec in clean}) == 7
    assert {spec.picture for spec in clean[:3]} == {"astronaut.png", "coffee.png", "chelsea.png"}, "all, then again"
    assert [spec.picture for spec in clean] == [spec.picture for spec in many if spec.setting.severity == "light"]
    other = specs_of(images, replace(SMALL, puzzles=7, seed=1))
    assert not {spec.name for spec in other} & {spec.name for spec in many}


def test_a_spec_comes_back_from_json_and_makes_its_puzzle(images: Path) -> None:
    spec = specs_of(images)[1]
    again = Spec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    puzzle, truth = again.source.make()
    assert truth.grid == Grid(2, 3)
    assert len(puzzle) == 6
    assert spec.kind in ("photo", "cat")
    assert {other.kind for other in specs_of(images)} == {"photo", "cat"}


def test_cells_and_turns(images: Path) -> None:
    wanted = Wanted((Grid(5, 5), Grid(9, 10)), ("clean",), 1, turns=False)
    small, large = sorted(specs_of(images, wanted), key=lambda spec: spec.setting.fragments)
    assert isinstance(small.source, PictureSource)
    assert isinstance(large.source, PictureSource)
    assert (small.source.options.cell, large.source.options.cell) == (128, 64)
    assert small.upright
    assert not small.source.options.turns


def test_a_changed_picture_is_noticed(tmp_path: Path) -> None:
    with Image.open(data.picture("coffee")) as picture:
        picture.resize((60, 60)).save(tmp_path / "a.png")
        spec = specs_of(tmp_path, Wanted((Grid(2, 2),), ("clean",), 1, cell=24))[0]
        picture.resize((61, 61)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match="its bytes changed"):
        spec.source.make()


def test_a_manifest_gives_the_same_puzzles(images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images, tmp_path / "corpus", SweepOptions((Grid(2, 3),), ("clean", "light"), cell=24))
    found = plan.from_manifest(tmp_path / "corpus" / "manifest.jsonl", None, Wanted(severities=("light",)))
    assert {spec.name for spec in found} == {spec.name for spec in specs_of(images) if spec.setting.severity == "light"}
    assert len(sweep.rows) == 6
    part = tmp_path / "part.jsonl"
    part.write_bytes(b"".join((tmp_path / "corpus" / "manifest.jsonl").read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(InputError, match="name --images"):
        plan.from_manifest(part, None, Wanted())
    assert len(plan.from_manifest(part, images, Wanted())) == 2
    with pytest.raises(InputError, match="no puzzle of the grids, pieces and severities"):
        plan.from_manifest(tmp_path / "corpus", None, Wanted(grids=(Grid(4, 4),)))


def test_gap(tmp_path: Path) -> None:
    folder = tmp_path / "GAP-2" / "test"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    with h5py.File(folder / "puzzles.h5", "w") as file:
        file["puzzles"] = rng.integers(1, 256, (3, 4, 128, 128, 4), dtype=np.uint8)
    with h5py.File(folder / "labels_indices.h5", "w") as file:
        file["labels"] = np.array([[3, 0, 2, 1], [1, 2, 3, 0], [2, 3, 0, 1]])
    for root in (tmp_path, tmp_path / "GAP-2"):
        specs = plan.from_gap(root, Wanted(puzzles=2))
        assert len(specs) == 2
        assert all(spec.upright and spec.setting.severity == "GAP" and spec.grid == Grid(2, 2) for spec in specs)
    assert Spec.from_json(specs[0].to_json()) == specs[0]
    config = Config.of((GREEDY,))
    run.begin(tmp_path / "run", specs, config, 0)
    predict.predict(specs, config, tmp_path / "run", 1, quiet)
    found = run.evaluate(tmp_path / "run", specs, config, 0, "model")
    (line,) = found.lines
    assert line.gauge_right is None, "upright puzzles have no gauge to choose"
    assert line.by_gauge["model"] == line.by_gauge["best4"]


def test_methods() -> None:
    assert methods_of(["jigsync", "tree:mgc"], []) == (Method("jigsync", fingerprint.AUTO), TREE)
    crossed = methods_of(["greedy", "tree:mgc", "tree"], ["mgc", "seam"])
    assert [method.label for method in crossed] == ["greedy+mgc", "greedy+seam", "tree+mgc", "tree+seam"]
    with pytest.raises(OptionError, match="at least one solver"):
        methods_of([], ["mgc"])
    with pytest.raises(OptionError, match="There is no solver 'gredy'"):
        Config.of((Method("gredy", "mgc"),))


# ------------------------------------------------------------------------------------------------ keys


def test_every_part_of_the_configuration_is_in_the_key(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specs_of(images)[0]
    plain = Config.of((GREEDY, TREE))
    keys = [
        plain.key(spec, GREEDY),
        plain.key(spec, TREE),
        replace(plain, known_grid=True).key(spec, GREEDY),
        replace(plain, time_limit=5.0).key(spec, GREEDY),
        plain.key(replace(spec, seed=spec.seed + 1), GREEDY),
        plain.key(replace(spec, upright=True), GREEDY),
        plain.key(replace(spec, name="other"), GREEDY),
    ]
    for part in ("ALGORITHM", "_version", "_file_hash", "_weights"):
        with monkeypatch.context() as patch:
            patch.setattr(fingerprint, part, 99 if part == "ALGORITHM" else lambda *_: "changed")
            keys.append(Config.of((GREEDY,)).key(spec, GREEDY))
    assert len(set(keys)) == len(keys)
    assert Config.of((TREE, GREEDY)).key(spec, GREEDY) == keys[0], "other methods are no part of it"


def test_every_part_of_a_puzzle_is_in_its_name(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(SMALL, severities=("light",), puzzles=1)
    names = [specs_of(images, wanted)[0].name for wanted in (one, replace(one, cell=25), replace(one, turns=False))]
    monkeypatch.setattr(plan, "generator_identity", lambda: {"code": "changed"})
    names.append(specs_of(images, one)[0].name)
    assert len(set(names)) == len(names)


def test_code_that_matters_is_what_is_imported() -> None:
    modules, libraries = fingerprint.closure([Greedy.__module__, Boundary.__module__])
    assert {"jigsync.solvers.greedy", "jigsync.solvers.base", "jigsync.measure.worn", "jigsync.values.z4"} <= set(
        modules
    )
    assert not {"jigsync.solvers.tree", "jigsync.solvers.joint", "jigsync.render.marks", "jigsync.api"} & set(modules)
    assert {"numpy", "cv2"} <= libraries
    assert "json" not in libraries
    assert Tree.__module__ in fingerprint.closure([Tree.__module__])[0]
    solving, _ = fingerprint.closure(["jigsync.solvers.joint"])
    assert "jigsync.engine.library" in solving


def test_changed_files_change_the_code_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "jigsync"
    (package / "solvers" / "src").mkdir(parents=True)
    (package / "other").mkdir()
    module = package / "solvers" / "mine.py"
    (package / "weights").mkdir()
    text = "def f():\n    from jigsync.other import deep\n    return files('jigsync.weights')\n"
    module.write_text(text, encoding="utf-8")
    files = ("solvers/src/engine.c", "solvers/fit.json", "other/deep.py", "weights/a.onnx", "other/stranger.py")
    for name in (*files, "weights/__init__.py"):
        (package / name).write_text("1\n", encoding="utf-8")
    monkeypatch.setattr(fingerprint, "PACKAGE", package)
    seen = []
    for name in ("solvers/mine.py", *files):
        fingerprint._source.cache_clear()
        fingerprint._imports.cache_clear()
        seen.append(fingerprint.identity(["jigsync.solvers.mine"])["code"])
        with (package / name).open("a", encoding="utf-8") as file:
            file.write("#\n")
    fingerprint._source.cache_clear()
    fingerprint._imports.cache_clear()
    seen.append(fingerprint.identity(["jigsync.solvers.mine"])["code"])
    fingerprint._source.cache_clear()  # what is not here is elsewhere
    fingerprint._imports.cache_clear()
    assert len(set(seen[:6])) == 6
    assert seen[6] == seen[5], "a module that nobody imports does not count"


# ------------------------------------------------------------------------------------------------ predictions


def test_a_prediction_comes_back(images: Path, tmp_path: Path) -> None:
    spec, config, cache = specs_of(images)[0], Config.of((GREEDY,)), Cache(tmp_path)
    placement = {"f003": Placed.at(0, 1, 3, 0.25), "f000": Placed.nowhere(), "f017": Placed.at(1, 0, 2, 1.0)}
    solution = Solution("partial", "one is left", Grid(2, 2), placement, solver="greedy")
    assert cache.read(spec, GREEDY, config) is None
    cache.write(spec, GREEDY, config, Prediction(solution, "answered", 1.5, 0.5, 2, "it was dark"))
    found = cache.read(spec, GREEDY, config)
    assert found is not None
    assert found == Prediction(replace(solution, seconds=1.5), "answered", 1.5, 0.5, 2, "it was dark")
    head, *rows = read_jsonl(cache.path(spec, GREEDY, config))
    assert [row["id"] for row in rows] == ["f003", "f000", "f017"], "one row a fragment"
    assert head["method"]["solver"] == "greedy"
    path = cache.path(spec, GREEDY, config)
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:2]) + b"\n")
    with pytest.raises(FormatError, match="is damaged: it is not what its own checksum says"):
        cache.read(spec, GREEDY, config)


def test_measured_once_solved_by_all_and_never_twice(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = specs_of(images)
    measured: list[str] = []
    measure = Boundary.measure

    def counting(self: Boundary, puzzle: Puzzle) -> Measurements:
        measured.append(self.name)
        return measure(self, puzzle)

    monkeypatch.setattr(Boundary, "measure", counting)
    methods = methods_of(["greedy:boundary", "jigsync:boundary", "tree:mgc"], [])
    config = Config.of(methods)
    predict.predict(specs, config, tmp_path, 1, quiet)
    assert measured.count("boundary") == measured.count("mgc") == len(specs)
    before = predictions(tmp_path)
    assert len(before) == 3 * len(specs)
    predict.predict(specs, config, tmp_path, 1, quiet)
    assert len(measured) == 2 * len(specs), "nothing was left to do"
    told = predict.predict(specs, replace(config, known_grid=True), tmp_path, 1, quiet)
    assert told is None
    after = predictions(tmp_path)
    assert len(after) == 6 * len(specs)
    assert all(after[name] == content for name, content in before.items())
    assert not list((tmp_path / "claims").iterdir())


def test_what_a_solver_refuses_and_what_breaks(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = specs_of(images, Wanted((Grid(4, 5),), ("clean",), 2, cell=24))
    exact = Method("exact", "boundary")

    def broken(self: Tree, request: object) -> object:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(Tree, "solve", broken)
    config = Config.of((GREEDY, exact, TREE))
    predict.predict(specs, config, tmp_path, 1, quiet)
    scored = scored_of(specs, config, tmp_path)
    assert [one.outcome for one in scored[:3]] == ["answered", "refused", "crashed"]
    assert "at most 16 fragments" in scored[1].reason
    assert scored[2].reason == "ZeroDivisionError: by nothing"
    table = {line.method: line for line in lines(scored, 0) if line.kind == ALL_KINDS}
    assert table[exact].puzzles == 0
    assert table[exact].refused == 2
    assert not table[exact].by_gauge
    assert table[exact].remarks.startswith("2 refused. The solver 'exact' takes at most 16 fragments")
    assert table[TREE].remarks == "2 crashed. ZeroDivisionError: by nothing"
    assert table[GREEDY].remarks == ""
    assert table[TREE].by_gauge["best4"]["AA"].estimate == 0.0
    assert {(pair.first, pair.second) for pair in pairs(scored, 0)} == {(GREEDY, TREE)}


def test_weights_of_ones_own(tmp_path: Path) -> None:
    weights = tmp_path / "mine.safetensors"
    content = Method("greedy", "content")
    with pytest.raises(InputError, match="must be a file"):
        Config.of((content,), weights=weights)
    weights.write_bytes(b"first")
    with pytest.raises(OptionError, match="None of the measurers takes weights"):
        Config.of((GREEDY,), weights=weights)
    told = []
    for content_of_file in (b"first", b"second"):
        weights.write_bytes(content_of_file)
        config = Config.of((GREEDY, content), weights=weights)
        assert config.methods[GREEDY]["weights"] == ""
        told.append(config.methods[content]["weights"])
    assert len({*told, Config.of((content,)).methods[content]["weights"]}) == 3
    assert getattr(fingerprint.meter_of("content", weights), "weights") == weights  # noqa: B009


def test_what_a_measurer_says_is_passed_on(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs, config = specs_of(images)[:2], Config.of((GREEDY,))
    measure = Boundary.measure

    def noting(self: Boundary, puzzle: Puzzle) -> Measurements:
        found = measure(self, puzzle)
        object.__setattr__(found, "note", "Not learned.")
        return found

    monkeypatch.setattr(Boundary, "measure", noting)
    predict.predict(specs, config, tmp_path, 1, quiet)
    assert {line.remarks for line in lines(scored_of(specs, config, tmp_path), 0)} == {"Not learned."}


def test_a_missing_extra_stops_at_once(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Boundary, puzzle: object) -> object:
        raise MissingExtraError("Measuring", "torch", "content")

    monkeypatch.setattr(Boundary, "measure", missing)
    with pytest.raises(MissingExtraError):
        predict.predict(specs_of(images), Config.of((GREEDY,)), tmp_path, 1, quiet)
    assert not predictions(tmp_path)


def test_a_full_disk_is_no_crash_of_the_solver(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Greedy, request: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Greedy, "solve", full)
    with pytest.raises(OSError, match="No space left"):
        predict.predict(specs_of(images), Config.of((GREEDY,)), tmp_path, 1, quiet)
    assert not predictions(tmp_path)


def test_other_code_in_a_worker_is_refused(images: Path, tmp_path: Path) -> None:
    config = Config({GREEDY: {**Config.of((GREEDY,)).methods[GREEDY], "code": "older"}})
    with pytest.raises(InputError, match="changed while the evaluation was starting"):
        predict.predict(specs_of(images), config, tmp_path, 1, quiet)


def test_a_claimed_puzzle_is_left_to_its_owner(images: Path, tmp_path: Path) -> None:
    specs, config, cache = specs_of(images)[:2], Config.of((GREEDY,)), Cache(tmp_path)
    units = [predict.Unit(spec, config, tmp_path, 1) for spec in specs]
    with cache.claimed(specs[0]) as ours:
        assert ours
        assert not predict.work(units[0])
        assert predict.work(units[1])
    assert predict.work(units[0]), "free again"
    assert len(predictions(tmp_path)) == 2


def test_a_killed_run_goes_on_and_two_runs_share(images: Path, tmp_path: Path) -> None:
    arguments = ["eval", "--images", str(images), "--grids", "2x3", "--severities", "clean,light", "--puzzles", "6"]
    arguments += ["--cell", "24", "--solvers", "jigsync,greedy", "--workers", "1", "--gallery", "0", "--json"]

    def start(out: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "jigsync", *arguments, "--out", str(out)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    first = start(tmp_path / "run")
    deadline = time.monotonic() + 120
    while not predictions(tmp_path / "run") and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    kept = predictions(tmp_path / "run")
    assert kept, "it was killed after it had begun"
    two = [start(tmp_path / "run") for _ in range(2)]
    results = [json.loads(process.communicate(timeout=240)[0]) for process in two]
    assert results[0] == results[1]
    assert results[0]["missing"] == 0
    after = predictions(tmp_path / "run")
    assert len(after) == 2 * 2 * 6
    assert all(after[name] == content for name, content in kept.items()), "what was there is kept"
    assert not list((tmp_path / "run").rglob("*.lock"))


# ------------------------------------------------------------------------------------------------ scores


def answers(spec: Spec, wrong: int, turned: int) -> Solution:
    """The truth with two fragments swapped `wrong` times, turned as a whole."""
    truth = spec.source.make()[1]
    placement = dict(truth.placement)
    names = list(placement)
    for k in range(wrong):
        a, b = names[2 * k], names[2 * k + 1]
        placement[a], placement[b] = placement[b], placement[a]
    return Solution("ok", "", truth.grid, placement, solver="made").turned(turned)


def test_figures_come_from_the_cache(images: Path, tmp_path: Path) -> None:
    specs = specs_of(images)
    config, cache = Config.of((GREEDY, TREE)), Cache(tmp_path)
    run.begin(tmp_path, specs, config, 5)
    for k, spec in enumerate(specs):
        puzzle, truth = spec.source.make()
        cache.write_truth(spec, truth, puzzle)
        # One puzzle of six has two fragments swapped; the second method also turns every picture by 90 degrees.
        for method, turned in ((GREEDY, 0), (TREE, 1)):
            made = Prediction(answers(spec, int(k == 0), turned), "answered", 1.0 + k, 0.5, 1)
            cache.write(spec, method, config, made)
    assert run.reopen(tmp_path) == (specs, config, 5)
    found = run.evaluate(tmp_path, specs, config, 5, "model")
    run.write_tables(found)
    line = {(line.setting.severity, line.kind, line.method): line for line in found.lines}
    clean, light = line["clean", ALL_KINDS, GREEDY], line["light", ALL_KINDS, GREEDY]
    assert clean.by_gauge["model"]["PA"] == wilson(2, 3)
    assert clean.by_gauge["model"]["AA"].estimate == pytest.approx((4 / 6 + 2) / 3)
    assert light.by_gauge["model"]["AA+rot"].estimate == 1.0
    turned = line["light", ALL_KINDS, TREE]
    assert turned.by_gauge["model"]["AA+rot"].estimate == 0.0
    assert turned.by_gauge["best4"]["AA+rot"].estimate == 1.0
    assert turned.gauge_right == wilson(0, 3)
    assert clean.gauge_right == wilson(3, 3)
    assert turned.right_grid == 1.0, "the answer's 3 x 2 is the truth's 2 x 3, turned"
    assert clean.seconds == 3.0, "the median of 1, 3 and 5"
    assert {kind for _, kind, _ in line} == {ALL_KINDS, "photo", "cat"}
    pair = next(pair for pair in found.pairs if pair.setting.severity == "light")
    interval, signs = pair.by_gauge["model"]["AA+rot"]
    assert (interval.estimate, interval.n, signs.better, signs.equal, signs.worse) == (1.0, 3, 3, 0, 0)
    best, even = pair.by_gauge["best4"]["AA+rot"]
    assert (best.estimate, best.low, best.high) == (0.0, 0.0, 0.0)
    assert (even.better, even.equal, even.worse) == (0, 3, 0)
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    (row,) = (
        row
        for row in rows
        if (row["severity"], row["kind"], row["solver"], row["gauge"], row["measure"])
        == ("clean", "all", "greedy", "model", "AA")
    )
    assert float(row["estimate"]) == pytest.approx(clean.by_gauge["model"]["AA"].estimate)
    assert float(row["low"]) <= float(row["estimate"]) <= float(row["high"])


def test_another_method_changes_no_figure(images: Path, tmp_path: Path) -> None:
    specs = specs_of(images)
    both = Config.of((GREEDY, TREE))
    predict.predict(specs, both, tmp_path, 1, quiet)
    together = [line for line in lines(scored_of(specs, both, tmp_path), 0) if line.method == TREE]
    alone = lines(scored_of(specs, Config.of((TREE,)), tmp_path), 0)
    assert alone == together


def test_the_seed_moves_intervals_and_nothing_else(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty answers with scores of many digits, so that two bootstraps cannot agree by chance."""
    specs, config = specs_of(images), Config.of((GREEDY, TREE))
    predict.predict(specs[:1], config, tmp_path, 1, quiet)
    rng = np.random.default_rng(0)
    made = [
        replace(
            one,
            spec=replace(one.spec, name=f"{one.spec.name}-{k}"),
            by_gauge={gauge: {name: float(rng.random()) for name in values} for gauge, values in one.by_gauge.items()},
        )
        for k in range(20)
        for one in scored_of(specs[:1], config, tmp_path)
    ]
    first, again, other = (lines(made, seed) for seed in (5, 5, 6))
    assert first == again
    for a, b in zip(first, other, strict=True):
        for gauge in ("model", "best4"):
            for measure in ("AA", "AA+rot", "SRA", "rotation"):
                mine, theirs = a.by_gauge[gauge][measure], b.by_gauge[gauge][measure]
                assert mine.estimate == theirs.estimate
                assert (mine.low, mine.high) != (theirs.low, theirs.high)
            assert a.by_gauge[gauge]["PA"] == b.by_gauge[gauge]["PA"], "Wilson's interval has no seed"
    (pair,), (same,), (moved,) = (pairs(made, seed) for seed in (5, 5, 6))
    assert pair == same
    mine, theirs = (one.by_gauge["model"]["AA"] for one in (pair, moved))
    assert mine[1] == theirs[1]
    assert mine[0].estimate == theirs[0].estimate
    assert (mine[0].low, mine[0].high) != (theirs[0].low, theirs[0].high)
    seeds = []
    monkeypatch.setattr(run, "lines", lambda scored, seed: seeds.append(seed) or [])
    monkeypatch.setattr(run, "pairs", lambda scored, seed: seeds.append(seed) or [])
    run.evaluate(tmp_path, specs[:1], config, 11, "model")
    assert seeds == [11, 11]


def test_old_figures_stand_when_the_code_has_changed(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    specs, config = specs_of(images), Config.of((GREEDY,))
    run.begin(tmp_path, specs, config, 0)
    predict.predict(specs[:4], config, tmp_path, 1, quiet)
    monkeypatch.setattr(fingerprint, "ALGORITHM", 99)
    assert cli.main(["eval", "--out", str(tmp_path), "--gallery", "0"]) == 0
    assert "2 predictions are not there yet" in capsys.readouterr().out
    with pytest.raises(InputError, match="lacks 2 predictions"):
        run.evaluate(tmp_path, specs, config, 0, "model")


# ------------------------------------------------------------------------------------------------ command


def test_the_command(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    arguments = ["eval", "--images", str(images), "--grids", "2x3", "--severities", "light", "--puzzles", "3"]
    arguments += ["--cell", "24", "--solvers", "greedy,tree:mgc", "--workers", "1", "--gallery", "1", "--out", str(out)]
    assert cli.main([*arguments, "--gauge", "best4"]) == 0
    captured = capsys.readouterr()
    assert "Skipped: The file 'broken.jpg'" in captured.err
    for told in ("gauge: best4", "greedy", "tree+mgc", "by kind of picture", "2x3 light", "report.html"):
        assert told in captured.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/jpeg;base64,') == 4, "source, as presented, two answers"
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert not [link for link in ("http:", "https:", "url(", "@import") if link in page]
    assert cli.main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert result["gauge"] == "model"
    assert [line["puzzles"] for line in result["table"] if line["kind"] == "all"] == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--images", "{images}", "--severities", "mild"], "The 'severities' of an evaluation must be"),
        (["--images", "{images}", "--grids", "3,3"], "must be different values"),
        (["--images", "{images}", "--solvers", "gredy"], "There is no solver 'gredy'"),
        (["--images", "{images}", "--measurers", "look"], "There is no measurer 'look'"),
        (["--images", "{images}", "--gap", "x"], "--gap goes with neither"),
        (["--images", "{images}", "--time-limit", "0"], "The 'time_limit' of an evaluation must be"),
        (["--images", "{images}/none"], "cannot be read as a folder of pictures"),
        (["--gap", "{images}", "--split", "all"], "The 'split' of GAP must be"),
        ([], "holds no evaluation"),
    ],
)
def test_bad_requests_are_one_sentence(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    told = [argument.format(images=images) for argument in arguments]
    assert cli.main(["eval", "--out", str(tmp_path / "run"), *told]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_not_ours_is_left_alone(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    assert cli.main(["eval", "--images", str(images), "--out", str(tmp_path)]) == 2
    assert "thesis.tex" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_no_two_looks_of_a_chart_are_alike() -> None:
    looks = range(chart.SERIES)
    assert len({chart.marker(look, 0, 0) for look in looks}) == chart.SERIES
    assert len({chart.DASHES[look] for look in looks}) == chart.SERIES
    for look in looks:
        assert f".s{look} {{ color: var(--s{look}); }}" in STYLE
        colours = re.findall(rf"--s{look}: (#[0-9a-f]{{6}});", STYLE)
        assert len(set(colours)) == 2, "one for light, one for dark"
