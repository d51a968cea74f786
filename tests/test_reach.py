"""How far sides are from the picture's border: what is shipped, what poses it likes, how its head is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sides import cut, stored_turned

import jigsync
from jigsync.measure import learned
from jigsync.measure.learned import Learned, Models
from jigsync.measure.reach import FORMAT, NEVER, SHIPPED, apart, load_reach
from jigsync.measure.weights import open_session, weights_path
from jigsync.solvers.evidence import REACH, Evidence
from jigsync.values import z4
from jigsync.values.border import KNOTS, pose_terms
from jigsync.values.errors import FormatError
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

CUT = ("eroded", (3, 4), 64)


def true_ahead(truth: Truth, puzzle: Puzzle) -> np.ndarray:
    """(4N,) cells between each side and the border, by walking there."""
    out = []
    for name in puzzle.ids:
        placed = truth.placement[name]
        for side in range(z4.ORDER):
            d_row, d_col = z4.bearing_offset(side + placed.turns)
            row, col, steps = placed.row, placed.col, 0
            assert row is not None
            assert col is not None
            while truth.grid.contains(row + d_row, col + d_col):
                row, col, steps = row + d_row, col + d_col, steps + 1
            out.append(steps)
    return np.array(out)


def phi_of(ahead: np.ndarray, length: np.ndarray) -> np.ndarray:
    """(4N, KNOTS) of whoever knows: falling with the distance from the true place."""
    place = (ahead + 0.5) / length
    return (-40 * np.square(np.linspace(0, 1, KNOTS) - place[:, None])).astype(np.float32)


def test_the_shipped_weights_are_sealed_small_and_golden() -> None:
    path = weights_path(SHIPPED, None)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert path.stat().st_size == card["bytes"] < 2_000_000
    assert card["format"] == FORMAT
    assert card["networks_sha256"] == Models.sha256(), "trained beside other networks than those that are shipped"
    for key in ("data", "licence", "command", "minutes", "config", "validation_score"):
        assert card[key] not in ("", "not stated"), key
    session = open_session(path.read_bytes(), SHIPPED, {"format": FORMAT})
    with np.load(path.with_suffix(".golden.npz"), allow_pickle=False) as golden:
        feed = {name: golden[name] for name in ("looks", "scores", "none")}
        [found] = session.run({"phi": (len(feed["none"]), KNOTS)}, feed)
        np.testing.assert_allclose(found, golden["phi"], atol=0.02)
        assert golden["phi"].std() > 0


@pytest.mark.parametrize("grid", [(3, 4), (5, 2)])
def test_the_true_pose_is_worth_most(grid: tuple[int, int]) -> None:
    """Of a grid that is not square, with odd turns: every sign counts. The half-turned picture is worth as much."""
    puzzle, truth = cut("eroded", grid, 64)
    ahead = true_ahead(truth, puzzle)
    length = (ahead.reshape(-1, 4) + ahead.reshape(-1, 4)[:, [2, 3, 0, 1]] + 1).ravel()
    assert set(length) == set(grid)
    terms = pose_terms(phi_of(ahead, length), truth.grid)
    assert terms.shape == (len(puzzle), truth.grid.size, 4)
    for i, name in enumerate(puzzle.ids):
        placed = truth.placement[name]
        assert placed.row is not None
        assert placed.col is not None
        true = terms[i, truth.grid.slot(placed.row, placed.col), placed.turns]
        half = truth.grid.size - 1 - truth.grid.slot(placed.row, placed.col)
        assert terms[i, half, (placed.turns + 2) % 4] == pytest.approx(true, abs=1e-4)
        assert true == pytest.approx(terms[i].max(), abs=1e-4)
        assert (terms[i] > true - 1e-3).sum() == 2
    for turns in range(4):
        chances = np.exp(terms[:, :, turns]).mean(axis=1)
        np.testing.assert_allclose(chances, 1, rtol=1e-4)


def test_whoever_says_nothing_likes_every_pose_the_same() -> None:
    np.testing.assert_allclose(pose_terms(np.full((8, KNOTS), 0.7, dtype=np.float32), Grid(2, 5)), 0, atol=1e-5)


def test_sides_of_one_fragment_never_touch() -> None:
    scores = apart(np.ones((8, 8), dtype=np.float32))
    assert (scores[:4, :4] == NEVER).all()
    assert (scores[4:, 4:] == NEVER).all()
    assert (scores[:4, 4:] == 1).all()


def test_turned_fragments_tell_the_same() -> None:
    """Storing fragments turned moves phi with the sides, within what turned views differ by."""
    puzzle, _ = cut(*CUT)
    turns = np.arange(len(puzzle)) % 4
    other = stored_turned(puzzle, turns.tolist())
    phi, turned = _phi(puzzle), _phi(other)
    sides = np.arange(4)
    back = np.stack([turned[i, (sides + k) % 4] for i, k in enumerate(turns)])
    span = phi.max() - phi.min()
    assert np.abs(back - phi).max() < 0.15 * span < 0.3 * np.abs(turned - phi).max() + span


def _phi(puzzle: Puzzle) -> np.ndarray:
    codes = Models.load().encode_alike(puzzle, 64.0)
    assert codes.looks is not None
    return load_reach().phi(codes.looks, codes.logits(slice(0, len(codes.none))), codes.none).reshape(-1, 4, KNOTS)


def test_worn_squares_are_asked_and_others_not(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle, truth = cut(*CUT)
    measured = Learned().measure(puzzle)
    assert measured.reach is not None
    assert measured.reach.shape == (4 * len(puzzle), KNOTS)
    evidence = Evidence.of(measured)
    poses = evidence.poses(truth.grid)
    assert poses is not None
    np.testing.assert_allclose(poses, REACH * pose_terms(measured.reach, truth.grid), rtol=1e-5)
    assert not evidence.sees_the_gauge
    part = measured.select(np.array([3, 1]))
    np.testing.assert_array_equal(part.reach, measured.reach.reshape(-1, 4, KNOTS)[[3, 1]].reshape(8, KNOTS))
    assert Evidence.of(replace(measured, reach=None)).poses(truth.grid) is None
    assert Learned().measure(cut("severe", (3, 4), 64)[0]).reach is None
    assert Learned().measure(cut("eroded", (3, 3), 64)[0]).reach is None
    monkeypatch.setattr(learned, "MOST_REACHED", len(puzzle) - 1)
    assert Learned().measure(puzzle).reach is None


def test_what_is_known_of_the_border_puts_blank_fragments_in_order() -> None:
    """Scores that say nothing leave the order to the reach, of each fragment up to half a turn."""
    puzzle, truth = cut("eroded", (4, 3), 64)
    ahead = true_ahead(truth, puzzle)
    length = (ahead.reshape(-1, 4) + ahead.reshape(-1, 4)[:, [2, 3, 0, 1]] + 1).ravel()

    class Silent:
        name = "silent"

        def measure(self, puzzle: Puzzle) -> Measurements:
            sides = np.full((4 * len(puzzle),) * 2, np.log(1e-3), dtype=np.float32)
            told = Measurements.from_sides_log_p(puzzle.ids, sides)
            return replace(told, reach=3 * phi_of(ahead, length))

    solution = jigsync.solve(puzzle, measurer=Silent(), grid=truth.grid)
    right = {0: 0, 2: 0}
    for g in right:
        turned = solution.turned(g).placement
        right[g] = sum(
            (turned[n].row, turned[n].col, turned[n].turns) == (p.row, p.col, p.turns)
            for n, p in truth.placement.items()
        )
    assert sum(right.values()) == len(puzzle)


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(FormatError, match="must have format 'jigsync-reach/1'"):
        load_reach(weights_path("likeness.onnx", None))


def test_a_head_is_trained_and_exported(tmp_path: Path) -> None:
    """It learns where the fragments of one puzzle belong; turning them turns what it says; the file says the same."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from jigsync.learn import checkpoint
    from jigsync.learn.export import check_golden, export_run
    from jigsync.learn.reach import Reach, ReachOptions
    from jigsync.learn.reach_data import sample_of
    from jigsync.learn.reach_task import _tensors
    from jigsync.measure.reach import ReachModel

    torch.manual_seed(0)
    puzzle, truth = cut(*CUT)
    sample = sample_of(puzzle, truth, Models.load())
    np.testing.assert_array_equal(sample["ahead"], true_ahead(truth, puzzle))
    given = _tensors(sample)
    options = ReachOptions(width=16, rounds=1, heads=2, drop=0.0)
    head = Reach(options)
    assert head([given])[0].item() == pytest.approx(0, abs=1e-5)
    optimiser = torch.optim.Adam(head.parameters(), 1e-2)
    for _ in range(40):
        loss, _ = head([given])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < -0.5
    head.eval()
    looks, scores, none = given[:3]
    with torch.no_grad():
        phi = head.knots(looks, scores, none)
        roll = torch.arange(len(none)).view(-1, 4).roll(1, dims=1).flatten()
        rolled = head.knots(looks[roll], scores[roll][:, roll], none[roll])
        order = torch.arange(len(none)).view(-1, 4).flip(0).flatten()
        shuffled = head.knots(looks[order], scores[order][:, order], none[order])
    np.testing.assert_allclose(rolled, phi[roll], atol=1e-4)
    np.testing.assert_allclose(shuffled, phi[order], atol=1e-4)
    gain = head.gains(*given).detach().numpy().sum()
    terms = pose_terms(phi.numpy(), truth.grid)
    slots = [truth.grid.slot(p.row, p.col) for p in map(truth.placement.get, puzzle.ids) if p and p.row is not None]
    turns = [truth.placement[name].turns for name in puzzle.ids]
    assert terms[np.arange(len(puzzle)), slots, turns].sum() == pytest.approx(gain, abs=1e-3)
    config = {"model": "reach", "network": {**vars(options), "networks_sha256": "abc"}}
    checkpoint.save(tmp_path / checkpoint.BEST, config, checkpoint.Progress(1), {"average": head.state_dict()})
    out = tmp_path / "r.onnx"
    assert export_run([tmp_path], out, {}) < 0.05
    assert check_golden(out) < 0.05
    found = ReachModel(out.read_bytes(), "r.onnx").phi(*(value.numpy() for value in (looks, scores, none)))
    np.testing.assert_allclose(found, phi, atol=0.05 * float(phi.max() - phi.min()))
