"""Studies at tiny sizes: their mathematics, their files and their command."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from jigsync.cli import main
from jigsync.evaluate.progress import silent
from jigsync.io.csv_rows import csv_bytes
from jigsync.studies import density, gauge, gauge_poses, orbit, phase, reproduce
from jigsync.studies.planted_poses import Damage, Exists, plant_poses
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.sampled import SampledEdges, frame_xy, solve_and_score
from jigsync.studies.synthetic import measured, random_solved, true_relations
from jigsync.sync.hypotheses import displacements
from jigsync.values import angles
from jigsync.values import vocabulary as v
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orbit, "SAMPLES", 4000)


def test_every_registered_study_exists_and_no_other_name_does() -> None:
    for name in reproduce.STUDIES:
        assert callable(reproduce.get(name))
    with pytest.raises(OptionError, match="There is no study 'collapsed'; the studies are gauge"):
        reproduce.get("collapsed")


# ------------------------------------------------------------------------------------------------ gauge


def test_gauge_on_synthetic_planted_and_given_graphs() -> None:
    solved = random_solved(Grid(3, 4), np.random.default_rng(0))
    real = [("made", measured(solved, true_relations(solved)), solved.grid)]
    loose = plant_poses(Exists(11), Damage(noise=1.0, strays=0.3), np.random.default_rng(5)).hypotheses
    torn = [gauge_poses.hypothesised_case("a measurer", "made", 11, loose)]
    result = gauge.run_cases(1, (3,), 0, silent, real, torn)
    cells, poses = len(gauge.SOLVES), len(gauge_poses.SOLVES)
    assert len(result.rows) == (len(gauge.GRAPHS) + 1) * cells + (len(gauge_poses.GRAPHS) + 1) * poses
    for row in result.rows:
        if row["source"] == "real":
            continue  # consistent measurements: all four residuals are 0 up to round-off, digits say nothing
        assert min(row["digits_turns"], row["digits_angles"], row["digits_edgewise"]) > 10
        assert row["digits_o2"] is None if row["solve"] == "joint" else row["digits_o2"] > 10
        assert row["minimizer_off"] < 1e-8
        assert row["same_edges_kept"]
        assert row["residual_0"] > 1e-3
    assert {row["solve"] for row in result.rows if row["source"] == "planted"} == set(gauge_poses.SOLVES)
    told = {value.what: value for value in result.compared}
    assert told["any angle: equal digits, worst case"].verdict == "agrees"
    assert told["a measurer, joint: equal digits of the four residuals"].verdict == "agrees"


def test_gauge_of_poses_can_fail() -> None:
    """Weights that stay when the angles turn make the gauge visible."""
    case = gauge_poses.planted_case("outliers", 3, np.random.default_rng(2))
    residuals = []
    for by in (0.0, 0.4):
        measured_d = displacements(case.found, case.angle + by, case.graph.weight)
        stiff = gauge.Displacements(measured_d.xy, displacements(case.found, case.angle, case.graph.weight).weight)
        residuals.append(gauge.fit(case.graph, stiff, case.components).residual)
    assert abs(residuals[0] - residuals[1]) > 1e-3 * residuals[0]


def test_gauge_knows_which_turn_is_upright() -> None:
    planted = plant_poses(Exists(12), Damage(), np.random.default_rng([0]))
    case = gauge_poses.planted_case("contacts", 3, np.random.default_rng([0]))
    again = plant_poses(Exists(12), gauge_poses.GRAPHS["contacts"][1], np.random.default_rng([0]))
    np.testing.assert_array_equal(planted.angle, again.angle)
    assert case.true_turn is not None
    off = angles.wrap(case.angle + angles.of_turns(case.true_turn) - again.angle)
    assert np.abs(off).max() < np.radians(10)


def test_gauge_takes_measurers_that_give_free_hypotheses() -> None:
    assert reproduce.takes("gauge") == {"measurer"}
    assert (
        reproduce.command("gauge", False, 0, {"measurer": "contours"}) == "jigsync reproduce gauge --measurer contours"
    )
    with pytest.raises(OptionError, match="'boundary' gives no free hypotheses"):
        next(gauge_poses.torn_cases("boundary", 0))


def test_gauge_study_can_fail() -> None:
    """Weights that do not turn along make the gauge visible: the theorem needs R W R^T."""
    rng = np.random.default_rng(1)
    case = gauge.synthetic_case("all pairs", 4, rng)
    fixed = np.diag([1.0, 0.2])

    class Stiff(gauge.Displacements):
        def turned(self, matrix: np.ndarray) -> gauge.Displacements:
            return gauge.Displacements(self.xy @ np.asarray(matrix, float).T, self.weight)

    stiff = Stiff(case.xy, np.broadcast_to(fixed, (len(case.xy), 2, 2)))
    parts = case.graph.components()
    residuals = [gauge.fit(case.graph, stiff.turned(r), parts).residual for r in (np.eye(2), [[0, 1], [-1, 0]])]
    assert abs(residuals[0] - residuals[1]) > 1e-3


def test_random_orthogonal_maps_cover_rotations_and_reflections() -> None:
    rng = np.random.default_rng(0)
    rotations, reflections = gauge.random_orthogonal(rng)
    assert all(np.allclose(r @ r.T, np.eye(2)) for r in rotations + reflections)
    assert {round(float(np.linalg.det(r))) for r in rotations} == {1}
    assert {round(float(np.linalg.det(r))) for r in reflections} == {-1}


# ------------------------------------------------------------------------------------------------ orbit


@pytest.mark.parametrize("n", orbit.SIZES)
def test_orbit_proposition_and_plateaus(n: int) -> None:
    for coordinates in ("corners", "centres"):
        assert np.allclose(orbit.orbits(n, coordinates).mean(axis=0), 0.5, atol=1e-12)
        circle = orbit.circles(n, coordinates)
        assert np.allclose(circle.mean(axis=0), 0.5, atol=1e-12)
        # The four turns are four points of the circle.
        assert np.allclose(circle[:: orbit.ANGLES // 4], orbit.orbits(n, coordinates), atol=1e-12)
    off = orbit.orbits(n, "origin").mean(axis=0) - 0.5
    assert np.allclose(off, -1 / (2 * n))
    for coordinates in orbit.COORDINATES:
        exact = np.mean(np.sum((orbit.orbits(n, coordinates) - 0.5) ** 2, axis=-1))
        assert orbit.plateau(n, coordinates) == pytest.approx(exact)


def test_orbit_plateau_at_three_and_five() -> None:
    assert orbit.plateau(3, "corners") == pytest.approx(1 / 3)
    assert orbit.plateau(5, "corners") == pytest.approx(1 / 4)
    error, deviation, away = orbit.collapse(3, "corners", 20_000, np.random.default_rng(0))
    assert error == pytest.approx(1 / 3, abs=5 * deviation + 1e-3)
    assert away < 0.05


# ------------------------------------------------------------------------------------------------ density, phase


def test_sampled_truth_is_solved() -> None:
    solved = random_solved(Grid(4, 5), np.random.default_rng(3))
    i, j = np.triu_indices(20, 1)
    turns = (solved.turns[j] - solved.turns[i]) % 4
    edges = SampledEdges(i, j, turns, frame_xy(solved, i, j), np.ones(len(i), dtype=bool))
    score = solve_and_score(solved, edges)
    assert (score.aa, score.aa_best4, score.rotation) == (1.0, 1.0, 1.0)


def test_density_corruption_is_biased_as_measured() -> None:
    rng = np.random.default_rng(0)
    claimed, far = [], 0
    for _ in range(40):
        solved = random_solved(Grid(5, 5), rng)
        edges = density.sample(solved, density.Point(5, 0.13, "tiered", 1, 0), rng)
        true = v.bucket(solved.relation(edges.i, edges.j))
        distant = solved.distance(edges.i, edges.j) >= 2
        said = np.rint(np.abs(edges.xy).max(axis=1)).astype(int)
        right = np.all(np.isclose(edges.xy, v.nominal_xy(solved.grid)[true]), axis=1)
        far += int(distant.sum())
        claimed.append(said[distant & ~right])
    said = np.concatenate(claimed)
    # A wrong claim may hit the truth by chance, which takes about one in a hundred of them out of the count.
    assert len(said) / far == pytest.approx(0.87, abs=0.02)
    assert np.mean(said == 1) == pytest.approx(0.659, abs=0.02)
    assert np.mean(said <= 2) == pytest.approx(0.9988, abs=0.002)


def test_density_study_and_its_crossing() -> None:
    result = density.run_points([0.05, 0.55], 4, 1, 0, silent)
    assert len(result.rows) == 2 + 3 * 2
    assert {row["n"] for row in result.rows} == {3, 5}
    reference = next(row for row in result.rows if row["q_far"] is None and row["n"] == 5)
    high = next(row for row in result.rows if (row["n"], row["q_far"], row["reading"]) == (5, 0.55, "exact"))
    assert high["aa_best4"] > reference["aa_best4"] + 0.3
    assert density.crossing([0.1, 0.2, 0.3], [0.0, 0.4, 0.8], 0.5) == pytest.approx(0.225)
    assert density.crossing([0.1, 0.2], [0.6, 0.7], 0.5) is None
    assert len(density.PAPER) == 17


def test_phase_study() -> None:
    result = phase.run_cells((3, 5), (0.2, 0.3), 3, 1, 0, silent)
    assert len(result.rows) == 4 * 2 * 2
    assert len(result.compared) == 2
    of = {(row["graph"], row["n"], row["q"]): row["aa"] for row in result.rows}
    assert of["all pairs", 5, 0.3] > of["4 around", 5, 0.3]


# ------------------------------------------------------------------------------------------------ files, command


def tiny(plot: object = None) -> StudyResult:
    rows = [{"a": 1, "b": 1 / 3}, {"a": 2, "c": None}, {"a": "x,y"}]
    return StudyResult("tiny", "a title", rows, [Compared("a", 0.5, "1/2", "agrees")], "It holds.", {"seed": 0}, plot)


def test_writing_without_matplotlib_still_writes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = orbit.run(False, 1, 0, silent)
    written = reproduce.write(result, tmp_path)
    assert written.picture is None
    assert "pip install 'jigsync[study]'" in written.missing
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orbit.csv", "orbit.json"]


def test_csv_and_json(tmp_path: Path) -> None:
    text = csv_bytes(tiny().rows).decode()
    assert text == 'a,b,c\n1,0.3333333333,\n2,,\n"x,y",,\n'
    assert tiny().to_json()["compared"] == [{"what": "a", "ours": 0.5, "paper": "1/2", "verdict": "agrees"}]


def test_every_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = [
        orbit.run(False, 1, 0, silent),
        gauge.run_cases(1, (3,), 0, silent, []),
        density.run_points([0.05, 0.55], 2, 1, 0, silent),
        phase.run_cells((3,), (0.2, 0.3), 2, 1, 0, silent),
    ]
    for result in results:
        written = reproduce.write(result, tmp_path)
        assert written.picture is not None
        assert written.picture.read_bytes()[:4] == b"\x89PNG"
        with written.csv.open(newline="") as file:
            assert len(list(csv.DictReader(file))) == len(result.rows)
        assert json.loads(written.json.read_text())["name"] == result.name


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "orbit", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "orbit"
    assert Path(told["csv"]).is_file()
    assert main(["reproduce", "orbit", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "erratum 2" in shown
    assert "Proposition 1 holds" in shown
    assert main(["reproduce", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in reproduce.STUDIES)
    assert main(["reproduce", "nothing"]) == 2
    assert "There is no study 'nothing'" in capsys.readouterr().err


def test_all_goes_on_without_a_study_that_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce, "STUDIES", {"gauge": "", "orbit": ""})

    def broken(full: bool, workers: int, seed: int, progress: object) -> StudyResult:
        raise OptionError("There is no such picture.")

    monkeypatch.setattr(gauge, "run", broken)
    assert main(["reproduce", "all", "--out", str(tmp_path), "--json"]) == 2
    told = capsys.readouterr()
    assert "gauge was left out. There is no such picture." in told.err
    assert "1 of 2 studies could not be run: gauge." in told.err
    assert [one["name"] for one in json.loads(told.out)] == ["orbit"]
    assert json.loads((tmp_path / "orbit.json").read_text())["command"] == "jigsync reproduce orbit"
    assert main(["reproduce", "gauge", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.strip() == "jigsync: There is no such picture."
