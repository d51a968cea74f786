"""`jigsync eval` of every layout: presentations, tears, sets of fragments; scored by poses, beside guesses."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jigsync import cli, data
from jigsync.corpus.plan import SweepOptions, plan_sweep
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.evaluate import fingerprint, plan, predict, run
from jigsync.evaluate.cache import Cache, Config, Prediction
from jigsync.evaluate.found import from_fragments
from jigsync.evaluate.progress import silent
from jigsync.evaluate.scores import POSES, score_cache
from jigsync.evaluate.sources import PictureSource
from jigsync.evaluate.spec import Method, Spec
from jigsync.evaluate.table import ALL_KINDS, lines, pairs
from jigsync.evaluate.wanted import Wanted
from jigsync.io.cut_folder import save_cut
from jigsync.io.files import read_json, write_json
from jigsync.io.shapes_file import load_shapes, save_shapes
from jigsync.score.cells import score_batch
from jigsync.score.chance import chance
from jigsync.score.intervals import wilson
from jigsync.score.poses import score_poses
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError, OptionError
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.truth import Truth

PLAIN, OTHER = Method("free", "contours-plain"), Method("jigsync", "boundary")
TORN = Wanted((), ("clean",), 2, cell=40, pieces=(5,))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("astronaut", "coffee"):
        with Image.open(data.picture(name)) as picture:
            picture.resize((180, 140)).save(folder / f"{name}.png")
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DIR/one/{a,b} and DIR/two/c, and a puzzle without its truth."""
    root = tmp_path_factory.mktemp("fragments")
    rgb = np.asarray(Image.open(data.picture("coffee")).convert("RGB").resize((200, 150)))
    for k, (name, pieces) in enumerate({"one/a": 3, "one/B 1": 4, "two/c": 3}.items()):
        folder = root / name
        folder.parent.mkdir(exist_ok=True)
        puzzle, truth = tear_picture(rgb, TearOptions(pieces, 40), k)
        save_cut(folder, puzzle, truth)
    save_cut(root / "two" / "lost", puzzle, truth)
    (root / "two" / "lost" / "truth.json").unlink()
    return root


def specs_of(images: Path, wanted: Wanted) -> list[Spec]:
    return plan.from_pictures(images, wanted, 1, silent)[0]


def quiet(done: int, total: int, elsewhere: int) -> None:
    """Reports nothing."""


# ------------------------------------------------------------------------------------------------ plan


def test_presentations_of_a_puzzle_are_cut_alike(images: Path) -> None:
    wanted = Wanted((Grid(2, 2),), ("light",), 2, cell=40, presentations=("cell", "cropped", "any"))
    specs = specs_of(images, wanted)
    assert [spec.setting.label for spec in specs[:3]] == ["2x2 light cell", "2x2 light cropped", "2x2 light any"]
    assert len({spec.name for spec in specs}) == 6
    sources = [spec.source for spec in specs[:3]]
    assert all(isinstance(source, PictureSource) for source in sources)
    assert len({source.seed for source in sources if isinstance(source, PictureSource)}) == 1
    assert [spec.source.make()[0].container is None for spec in specs[:3]] == [False, True, True]
    assert [spec.setting.label for spec in sorted(specs[:3], key=lambda spec: spec.setting.order)] == [
        "2x2 light cell",
        "2x2 light cropped",
        "2x2 light any",
    ]


def test_tears_by_severity_and_by_erosion(images: Path) -> None:
    wanted = replace(TORN, severities=("clean", "medium"), erosions=(0.0, 0.02), styles=("tear", "cuts"))
    labels = {spec.setting.label for spec in specs_of(images, wanted)}
    assert labels == {f"{style}5 {how} any" for style in ("tear", "cuts") for how in ("clean", "medium", "0.02 off")}
    worn = specs_of(images, replace(TORN, severities=(), erosions=(0.0, 0.03)))
    assert [spec.setting.severity for spec in worn[:2]] == ["clean", "0.03 off"]
    first, second = (spec.source.make()[1] for spec in worn[:2])
    for name, placed in first.placement.items():
        other = second.placement[name].pose
        assert placed.pose is not None
        assert other is not None
        assert math.dist(placed.pose.xy, other.xy) < 4, "the same tear, worn"
    spec = worn[1]
    assert Spec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert spec.source.original() is not None
    assert spec.grid is None


def test_a_manifest_of_tears(images: Path, tmp_path: Path) -> None:
    options = SweepOptions((Grid(2, 2),), ("clean",), cell=40, presentations=("any",), pieces=(5, 6))
    plan_sweep(images, tmp_path, options)
    found = plan.from_manifest(tmp_path, None, Wanted())
    assert {spec.setting.label for spec in found} == {"2x2 clean any", "tear5 clean any", "tear6 clean any"}
    assert {spec.name for spec in found if spec.setting.form == "tear5"} == {
        spec.name for spec in specs_of(images, TORN)
    }
    assert {spec.setting.form for spec in plan.from_manifest(tmp_path, None, Wanted(pieces=(6,)))} == {"tear6"}
    with pytest.raises(InputError, match="no puzzle of the grids"):
        plan.from_manifest(tmp_path, None, Wanted(pieces=(5,), styles=("knobs",)))


def test_sets_of_fragments(sets: Path) -> None:
    specs, skipped = from_fragments(sets, None, 0)
    assert sorted((spec.setting.form, spec.picture) for spec in specs) == [("one", "B 1"), ("one", "a"), ("two", "c")]
    assert [entry.reason for entry in skipped] == [
        f"The puzzle '{sets / 'two' / 'lost'}' has no truth.json: it cannot be scored."
    ]
    assert all(spec.name.startswith(("one-", "two-")) for spec in specs)
    again = Spec.from_json(json.loads(json.dumps(specs[0].to_json())))
    assert again == specs[0]
    assert len(again.source.make()[0]) in (3, 4)
    assert {spec.setting.form for spec in from_fragments(sets / "one", None, 0)[0]} == {"one"}
    assert len(from_fragments(sets / "one" / "a", None, 0)[0]) == 1
    few = {spec.name for spec in from_fragments(sets, 1, 0)[0]}
    assert len(few) == 2
    assert few < {spec.name for spec in specs}
    with pytest.raises(InputError, match="no puzzle that can be scored"):
        from_fragments(sets / "two" / "lost", None, 0)
    with pytest.raises(InputError, match="must be a folder"):
        from_fragments(sets / "none", None, 0)


def test_changed_fragments_are_noticed(sets: Path, tmp_path: Path) -> None:
    puzzle, truth = from_fragments(sets / "two" / "c", None, 0)[0][0].source.make()
    save_cut(tmp_path / "p", puzzle, truth)
    (spec,) = from_fragments(tmp_path / "p", None, 0)[0]
    save_cut(tmp_path / "p", puzzle, replace(truth, seed=9), overwrite=True)
    with pytest.raises(InputError, match="its files changed"):
        spec.source.make()


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"pieces": (5,), "presentations": ("cell",)}, "cropped or any"),
        ({"erosions": (0.1,)}, "given with pieces"),
        ({"styles": ("cuts",)}, "given with pieces"),
        ({"pieces": (5,), "styles": ("rip",)}, "tear, cuts, knobs"),
        ({"presentations": ("flat",)}, "cell, cropped, any"),
        ({"pieces": (5, 5)}, "different values"),
    ],
)
def test_what_cannot_be_asked_for(wanted: dict[str, object], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        Wanted(**wanted)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ cache


def test_shapes_come_back(images: Path, tmp_path: Path) -> None:
    puzzle, truth = specs_of(images, TORN)[0].source.make()
    path = tmp_path / "shapes.json"
    save_shapes(path, puzzle)
    found = load_shapes(path)
    assert found.ids == puzzle.ids
    for mine, theirs in zip(found.fragments.pixels, puzzle.fragments.pixels, strict=True):
        assert (mine[..., 3] == theirs[..., 3]).all()
        assert not mine[..., :3].any()
    answer = Solution("ok", "", FREE, {**truth.placement, puzzle.ids[0]: Placed.nowhere()})
    assert score_poses(answer, truth, found) == score_poses(answer, truth, puzzle)
    value = read_json(path)
    value["fragments"][puzzle.ids[0]]["size"] = [5, 5]
    write_json(path, value)
    with pytest.raises(FormatError, match="is damaged"):
        load_shapes(path)
    del value["sha256"]
    for size, sentence in (([5, 5], "25 alpha bytes"), ([1 << 16, 1 << 16], "at most")):
        value["fragments"][puzzle.ids[0]]["size"] = size
        write_json(path, value)
        with pytest.raises(FormatError, match=sentence):
            load_shapes(path)


def test_what_fits_the_fragments_is_in_the_key() -> None:
    found = fingerprint.method_identity("jigsync", fingerprint.AUTO)
    assert {"contours", "frames", "matcher"} <= set(found["networks"])
    assert all(len(sha) == fingerprint.SHOWN for sha in found["networks"].values())
    assert found["code"] != fingerprint.method_identity("jigsync", "learned")["code"]
    assert "contours" not in fingerprint.method_identity("tree", "mgc")["networks"]
    modules, _ = fingerprint.closure([*fingerprint.SOLVING, fingerprint.CHOICE])
    assert "jigsync.solvers.lattice" in modules


# ------------------------------------------------------------------------------------------------ scores


def stored(root: Path, specs: list[Spec], config: Config, answers: dict[Method, Pose]) -> None:
    """The truth of every puzzle, but moved as a whole."""
    cache = Cache(root)
    for spec in specs:
        puzzle, truth = spec.source.make()
        cache.write_truth(spec, truth, puzzle)
        for method, motion in answers.items():
            solution = Solution("ok", "", truth.layout, truth.placement, pitch=truth.pitch).moved(motion, Gauge())
            if method == OTHER:  # and one fragment is left out
                first = next(iter(truth.placement))
                solution = replace(solution, placement={**solution.placement, first: Placed.nowhere()})
            cache.write(spec, method, config, Prediction(solution, "answered", 2.0, 1.0, 1))


def test_free_answers_are_scored_by_poses(images: Path, tmp_path: Path) -> None:
    specs, config = specs_of(images, TORN), Config.of((PLAIN, OTHER))
    quarter, none = Pose.of_degrees(90, (7.0, 3.0)), Pose.of_degrees(2, (0.0, 0.0))
    run.begin(tmp_path, specs, config, 0)
    stored(tmp_path, specs, config, {PLAIN: quarter, OTHER: none})
    found = run.evaluate(tmp_path, specs, config, 0, "model", theirs=True)
    run.write_tables(found)
    first, second = found.lines
    assert not first.by_gauge
    assert first.gauge_right is first.right_grid is None
    assert first.poses["right"].estimate == 1.0
    assert first.poses["perfect"] == wilson(2, 2)
    assert first.poses["upright"] == wilson(0, 2)
    assert second.poses["upright"] == wilson(2, 2)
    assert second.poses["right"].estimate == pytest.approx(4 / 5)
    assert second.poses["largest"].estimate <= 4 / 5
    assert second.poses["angle"].estimate == pytest.approx(0, abs=1e-6)
    assert first.chance["right"] == 1 / 5
    assert first.chance["upright"] == pytest.approx(10 / 360)
    assert first.poses["RMSE translation (RePAIR)"].estimate > 10, "turned as a whole"
    (pair,) = found.pairs
    assert pair.poses["right"][0].estimate == pytest.approx(1 / 5)
    assert (pair.poses["right"][1].better, pair.poses["upright"][1].worse) == (2, 2)
    signs = pair.poses["RMSE translation (RePAIR)"][1]  # of puzzles whose largest fragment was not left out
    assert signs.worse > 0 == signs.better, "of errors the smaller one is better"
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["form"], row["severity"], row["presentation"]) for row in rows} == {("tear5", "clean", "any")}
    assert set(POSES) <= {row["measure"] for row in rows if row["gauge"] == "-"}
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        scores = list(csv.DictReader(file))
    assert scores[0]["AA model"] == ""
    assert float(scores[1]["right"]) == pytest.approx(4 / 5)


def test_an_answer_without_a_grid_has_nothing_in_a_slot(images: Path, tmp_path: Path) -> None:
    specs, config = specs_of(images, Wanted((Grid(2, 2),), ("clean",), 2, cell=40)), Config.of((PLAIN,))
    stored(tmp_path, specs, config, {PLAIN: Pose.identity()})
    scored = [one for spec in specs for one in score_cache(spec, config, Cache(tmp_path))]
    (line,) = (line for line in lines(scored, 0) if line.kind == ALL_KINDS)
    assert line.poses["right"].estimate == 1
    assert line.by_gauge["best4"]["AA"].estimate == 0
    assert line.gauge_right is None
    assert line.remarks == "2 answered without a grid, which counts as wrong slots"


def test_what_has_no_case_leaves_the_puzzle_out(images: Path, tmp_path: Path) -> None:
    specs, config = specs_of(images, TORN), Config.of((PLAIN, OTHER))
    stored(tmp_path, specs, config, {PLAIN: Pose.identity(), OTHER: Pose.identity()})
    puzzle, _ = specs[0].source.make()
    failed = Prediction(Solution.failure(puzzle, "free", "It was dark."), "answered", 1.0, 0.0, 1)
    Cache(tmp_path).write(specs[0], PLAIN, config, failed)
    scored = [one for spec in specs for one in score_cache(spec, config, Cache(tmp_path))]
    (line, _) = lines(scored, 0)
    assert (line.poses["right"].n, line.poses["right"].estimate) == (2, 0.5)
    assert line.poses["claims"].n == line.poses["angle"].n == 1
    (pair,) = pairs(scored, 0)
    assert (pair.poses["right"][0].n, pair.poses["claims"][0].n) == (2, 1)


def test_chance_is_what_guesses_reach() -> None:
    grid = Grid(2, 3)
    ids = [f"f{k}" for k in range(6)]
    truth = Truth(grid, {name: Placed.at(*grid.cell(k), 0) for k, name in enumerate(ids)})
    rng = np.random.default_rng(1)
    cells = np.array([grid.cell(k) for k in range(6)])
    orders = np.argsort(rng.random((20_000, 6)), axis=1)
    found = score_batch(cells[orders], rng.integers(0, 4, orders.shape), grid.shape, cells, np.zeros(6, dtype=int))
    want = chance(truth, upright=False)
    for measure in ("AA", "SRA", "rotation", "AA+rot", "PA"):
        assert found.of(measure).mean() == pytest.approx(want[measure], rel=0.05, abs=0.001), measure
    assert want["PA"] == 1 / 720
    assert want["upright"] == 0.25
    assert chance(truth, upright=True)["rotation"] == 1


# ------------------------------------------------------------------------------------------------ command


def test_the_command_on_tears_and_presentations(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    arguments = ["eval", "--images", str(images), "--pieces", "4", "--erosions", "0,0.02", "--puzzles", "1"]
    arguments += ["--presentation", "cropped,any", "--cell", "40", "--solvers", "free:contours-plain,jigsync"]
    assert cli.main([*arguments, "--workers", "1", "--gallery", "1", "--out", str(out), "--others"]) == 0
    told = capsys.readouterr().out
    for text in ("tear4 clean any", "tear4 0.02 off cropped", "chance", "Q_pos (RePAIR)", "weights contours"):
        assert text in told
    assert "Slots" not in told
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/jpeg;base64,') == 4 * 4
    assert "Metrics of others" in page
    assert cli.main(["eval", "--out", str(out), "--gallery", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {(line["form"], line["presentation"]) for line in result["table"]} == {
        ("tear4", "any"),
        ("tear4", "cropped"),
    }
    assert "Q_pos (RePAIR)" not in result["table"][0]["poses"]


def test_the_command_on_fragments(sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    arguments = ["eval", "--fragments", str(sets), "--solvers", "free:contours-plain", "--workers", "1", "--out"]
    assert cli.main([*arguments, str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert "Skipped: The puzzle" in captured.err
    result = json.loads(captured.out)
    assert [(line["form"], line["puzzles"]) for line in result["table"]] == [("one", 2), ("two", 1)]
    assert "two, c" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fragments", "x", "--grids", "3"], "does not go with --grids"),
        (["--fragments", "x", "--images", "y"], "does not go with --images"),
        (["--fragments", "x", "--no-turns"], "does not go with --no-turns"),
        (["--images", "x", "--pieces", "many"], "a list of numbers"),
        (["--images", "x", "--pieces", "5", "--erosions", "-1"], "a list of numbers"),
    ],
)
def test_bad_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    assert cli.main(["eval", "--out", str(tmp_path / "run"), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_the_default_reads_what_fits(images: Path, tmp_path: Path) -> None:
    method = Method("jigsync", fingerprint.AUTO)
    config = Config.of((method,))
    (spec, *_) = specs_of(images, TORN)
    predict.predict([spec], config, tmp_path, 1, quiet)
    (one,) = score_cache(spec, config, Cache(tmp_path))
    assert one.outcome == "answered"
    assert one.measured == 0.0
    assert method.label == "jigsync"
