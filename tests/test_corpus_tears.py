"""Corpora with torn pictures and presentations: rows of either kind, shards that go on after a stop, old manifests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from test_corpus import tree

from jigsync.cli import main
from jigsync.corpus import sweep as corpus
from jigsync.corpus.manifest import Row, plan_rows, read_manifest
from jigsync.corpus.plan import Sweep, SweepOptions, load_sweep, plan_sweep
from jigsync.corpus.report import corpus_report
from jigsync.corpus.sweep import plan_units, write_shards
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.io.images import read_rgb, write_png
from jigsync.io.shards import read_shard
from jigsync.values.errors import FormatError, InputError, OptionError
from jigsync.values.layout import Grid

OPTIONS = SweepOptions(
    (Grid(2, 2),),
    ("clean", "medium"),
    cell=16,
    seed=3,
    presentations=("cell", "cropped", "any"),
    pieces=(6, 9),
    styles=("tear", "cuts", "knobs"),
)
EACH = 2 * (3 + 2 * 3 * 2)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures, one of them half white."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(5)
    for k in range(2):
        write_png(folder / f"p{k}.png", rng.integers(0, 256, (60, 80 + k, 3), dtype=np.uint8))
    white = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    white[:, 24:] = 250
    write_png(folder / "white.png", white)
    return folder


@pytest.fixture(scope="module")
def made(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A whole corpus, made by one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "PER_SHARD", 12)
        sweep = plan_sweep(images, tmp_path_factory.mktemp("corpus") / "out", OPTIONS)
        write_shards(sweep)
    return sweep


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PER_SHARD", 12)


def test_rows_of_either_kind_are_read_back(made: Sweep) -> None:
    rows = read_manifest(made.out / "manifest.jsonl")
    assert tuple(rows) == made.rows == load_sweep(made.out).rows
    assert len(rows) == 3 * EACH == 3 * OPTIONS.each
    assert len({row.key for row in rows}) == len(rows)
    kinds = Counter(type(row.options) for row in rows)
    assert kinds == {CutOptions: 3 * 2 * 3, TearOptions: 3 * 2 * 12}
    torn = next(row for row in rows if row.key.endswith("-cuts9-any-medium-0"))
    assert torn.options == TearOptions(9, 16, "cuts", erosion=0.05, photo=0.1)
    assert (torn.setting, torn.fragments, torn.severity) == ("cuts9 any medium", 9, "medium")
    assert torn.seed == derive_seed(3, torn.image_sha256, "cuts9", "medium", 0)
    with pytest.raises(FormatError, match="is torn: it has no cells"):
        _ = torn.cut


def test_presentations_of_a_cut_share_their_seed(made: Sweep) -> None:
    """The same damage three times over: figures can be compared in pairs."""
    sha = made.rows[0].image_sha256[:16]
    row = {row.key: row for row in made.rows}
    keys = [f"{sha}-2x2-medium-0", f"{sha}-2x2-cropped-medium-0", f"{sha}-2x2-any-medium-0"]
    assert len({row[key].seed for key in keys}) == 1
    assert [row[key].cut.presentation for key in keys] == ["cell", "cropped", "any"]
    assert [row[key].setting for key in keys] == ["2x2 medium", "2x2 cropped medium", "2x2 any medium"]


def test_cells_are_planned_as_before() -> None:
    """Keys, seeds and lines of manifests from before there were tears."""
    (row,) = plan_rows([("a.png", "0" * 64)], [Grid(2, 3)], ["light"], per_image=1, cell=64, seed=5)
    assert (row.key, row.seed) == ("0" * 16 + "-2x3-light-0", derive_seed(5, "0" * 64, "2x3", "light", 0))
    assert json.loads(json.dumps(row.to_json()))["options"] == {
        "grid": [2, 3],
        "cell": 64,
        "damage": {"shape": 8.0, "erosion": 0.05, "photo": 0.05},
        "turns": True,
        "shuffle": True,
        "paper_order": False,
        "preset": "fracture",
    }
    plain = SweepOptions((Grid(2, 3),), ("light",))
    assert set(plain.to_json()) == {"grids", "severities", "per_image", "cell", "seed"}


def test_shards_hold_exactly_the_manifest(made: Sweep, images: Path) -> None:
    read = {key: (puzzle, truth) for unit in plan_units(made) for key, puzzle, truth in read_shard(unit.shard)}
    assert set(read) == {row.key for row in made.rows}
    for row in made.rows:
        puzzle, truth = read[row.key]
        rgb = read_rgb(images / row.image)
        if isinstance(row.options, TearOptions):
            want, want_truth = tear_picture(rgb, row.options, row.seed, row.image_sha256)
        else:
            want, want_truth = cut_picture(rgb, row.options, row.seed, row.image_sha256)
        assert puzzle.ids == want.ids
        assert all(np.array_equal(puzzle.fragments[name], want.fragments[name]) for name in want.ids)
        assert (truth.layout, truth.contacts, truth.options) == (
            want_truth.layout,
            want_truth.contacts,
            want_truth.options,
        )
        for name, placed in truth.placement.items():
            pose, wanted = placed.pose, want_truth.placement[name].pose
            assert pose is not None
            assert wanted is not None
            assert pose.xy == wanted.xy
            assert pose.angle == pytest.approx(wanted.angle, abs=1e-12)


def test_it_goes_on_where_it_was_and_does_not_depend_on_the_workers(made: Sweep, images: Path, tmp_path: Path) -> None:
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    units = plan_units(sweep)
    assert len(units) > 3
    corpus.write_unit(units[1])
    kept = units[1].shard.stat().st_mtime_ns
    write_shards(plan_sweep(images, tmp_path / "out", OPTIONS), workers=2)
    assert tree(sweep.out) == tree(made.out)
    assert units[1].shard.stat().st_mtime_ns == kept
    other = SweepOptions((Grid(2, 2),), ("clean", "medium"), cell=16, seed=3, pieces=(6, 9))
    with pytest.raises(OptionError, match="holds another sweep"):
        plan_sweep(images, tmp_path / "out", other)


def test_the_report_counts_pieces(made: Sweep) -> None:
    report = corpus_report(made.out)
    assert report.sound
    parts = {part.name: part for part in report.parts}
    assert parts["tear9 any medium"].puzzles == 3
    assert parts["tear9 any medium"].fragments == 27
    # Nearly two thirds of one picture of three are white.
    assert parts["knobs9 cropped clean"].blank_share == pytest.approx(3 / 27)
    assert parts["knobs9 cropped clean"].blank_share == parts["knobs9 any medium"].blank_share
    assert parts["tear9 any clean"].gradient is not None
    assert corpus_report(made.out, sample=1000).parts == report.parts


def test_pictures_that_cannot_be_torn_are_skipped(images: Path, tmp_path: Path) -> None:
    options = SweepOptions((), ("clean",), cell=16, pieces=(70,))
    sweep = plan_sweep(images, tmp_path / "out", options)
    assert [entry.image for entry in sweep.skipped] == ["white.png"]
    assert "too small for 70 pieces" in sweep.skipped[0].reason
    with pytest.raises(InputError, match="can be used: 7 jigsaw pieces do not fill"):
        plan_sweep(images, tmp_path / "none", SweepOptions((), ("clean",), cell=16, pieces=(7,), styles=("knobs",)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grids": ()}, "'grids' of a sweep must be a list of different values"),
        ({"pieces": (3, 3)}, "'pieces' of a sweep"),
        ({"pieces": (1,)}, "'pieces' of a torn puzzle"),
        ({"pieces": (4,), "styles": ()}, "'styles' of a sweep"),
        ({"pieces": (4,), "styles": ("rip",)}, "'style' of a torn puzzle"),
        ({"pieces": (4,), "cell": 8}, "'size' of a torn puzzle"),
        ({"presentations": ()}, "'presentations' of a sweep"),
        ({"presentations": ("loose",)}, "'presentation' of the puzzle"),
        ({"pieces": (4,), "presentations": ("cell",)}, "'presentation' of a sweep of torn pieces"),
    ],
)
def test_bad_sweep_options(change: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        SweepOptions(**{"grids": (Grid(2, 2),), "severities": ("clean",), **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"pieces": 1}, {"pieces": 4, "grid": [2, 2]}, {"pieces": "4"}, {"pieces": [4]}])
def test_bad_manifest_lines(made: Sweep, tmp_path: Path, options: dict[str, object]) -> None:
    line = {**made.rows[0].to_json(), "options": options}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(FormatError, match=r"'options' of .* must be generator options"):
        read_manifest(tmp_path / "m.jsonl")


def test_damage_without_a_name_is_named_by_its_axes() -> None:
    torn = TearOptions(9, erosion=0.02, rim=3.0)
    assert Row("k", "a.png", "0" * 64, "train", 0, torn).severity == "0.02/3/0"
    for name, damage in SEVERITIES.items():
        options = TearOptions(9, erosion=damage.erosion / 2, photo=damage.photo)
        assert Row("k", "a.png", "0" * 64, "train", 0, options).severity == name


def test_sweep_command(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["sweep", str(images), f"--out={tmp_path / 'o'}", "--severities=clean", "--cell=16", "--workers=1", "--json"]
    assert main([*args, "--pieces=4,9", "--style=tear,knobs", "--shards"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["puzzles"], result["shards"] > 0) == (3 * 4, True)
    assert {row.options.presentation for row in load_sweep(tmp_path / "o").rows} == {"any"}
    args[2] = f"--out={tmp_path / 'p'}"
    assert main([*args, "--grids=2", "--presentation=cropped,any"]) == 0
    assert json.loads(capsys.readouterr().out)["puzzles"] == 3 * 2
    for wrong in ("--pieces=4,x", "--pieces=1", "--presentation=frame", "--pieces=4 --style=rip"):
        args[2] = f"--out={tmp_path / 'q'}"
        assert main([*args, *wrong.split()]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "q").exists()
