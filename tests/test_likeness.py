"""The likeness of sides: what is shipped, what it adds to the matcher's scores, how its head is trained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sides import cut, partners, stored_turned, turned_sides

from jigsync.measure import learned, likeness
from jigsync.measure.contour import read_contours
from jigsync.measure.learned import Models, bulging
from jigsync.measure.likeness import FORMAT, SHIPPED, SIZE, VERSION, load_likeness, side_views
from jigsync.measure.matcher import load_matcher
from jigsync.measure.strips import prepared, read_strips
from jigsync.measure.weights import open_session, weights_path

CUT = ("eroded", (3, 4), 64)


def test_the_shipped_weights_are_sealed_small_and_golden() -> None:
    path = weights_path(SHIPPED, None)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert path.stat().st_size == card["bytes"] < 4_000_000
    assert (card["format"], card["views"]) == (FORMAT, VERSION)
    for key in ("data", "licence", "command", "minutes", "config", "validation_score"):
        assert card[key] not in ("", "not stated"), key
    session = open_session(path.read_bytes(), SHIPPED, {"format": FORMAT})
    with np.load(path.with_suffix(".golden.npz"), allow_pickle=False) as golden:
        found = session.run_parts(likeness.OUTPUTS, "views", [lambda: golden["views"]])
        for name, codes in zip(likeness.OUTPUTS, found, strict=True):
            np.testing.assert_allclose(codes, golden[name], atol=0.05)
            assert golden[name].std() > 0


def test_every_side_faces_east() -> None:
    """What a side shows is what the fragment stored with that side in the east shows there."""
    puzzle = cut(*CUT)[0]
    views = np.concatenate([make() for make in side_views(puzzle, 64.0)])
    assert views.shape == (4 * len(puzzle), 3, SIZE, SIZE)
    for turns in (1, 2, 3):
        stored = np.concatenate([make() for make in side_views(stored_turned(puzzle, [turns] * len(puzzle)), 64.0)])
        for fragment in (0, 7):
            was = turned_sides(len(puzzle), fragment, turns)[4 * fragment : 4 * fragment + 4]
            np.testing.assert_allclose(stored[4 * fragment : 4 * fragment + 4], views[was], atol=2 / 128)
    assert np.abs(views[0] - views[1]).max() > 0.1


def test_it_is_added_to_the_matcher_of_more_than_a_few_fragments(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = cut(*CUT)[0]
    contours = read_contours(puzzle)
    both = Models.load().encode(puzzle, contours)
    alone = load_matcher().encode_both_ways(prepared(read_strips(puzzle, 64.0)))
    left, right, _ = load_likeness().encode(puzzle, 64.0)
    every = slice(0, 4 * len(puzzle))
    np.testing.assert_allclose(both.logits(every), alone.logits(every) + left @ right.T + right @ left.T, atol=1e-3)
    assert np.abs(both.logits(every) - alone.logits(every)).max() > 0.1
    monkeypatch.setattr(learned, "FEW", len(puzzle))
    np.testing.assert_array_equal(Models.load().encode(puzzle, contours).logits(every), alone.logits(every))


def test_many_squares_are_read_at_two_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = cut(*CUT)[0]
    every, matcher = slice(0, 4 * len(puzzle)), load_matcher()
    views = [prepared(read_strips(puzzle, 64.0 * size)) for size in learned.SIZES]
    one, other = (matcher.encode_both_ways(view) for view in views)
    mean = matcher.encode_both_ways(*views)
    np.testing.assert_allclose(mean.logits(every), (one.logits(every) + other.logits(every)) / 2, atol=1e-3)
    np.testing.assert_allclose(mean.none, (one.none + other.none) / 2, atol=1e-4)
    assert np.abs(one.logits(every) - other.logits(every)).max() > 0.1
    once = Models.load().encode_alike(puzzle, 64.0)
    monkeypatch.setattr(learned, "MANY", len(puzzle) - 1)
    twice = Models.load().encode_alike(puzzle, 64.0)
    expected = once.logits(every) + (other.logits(every) - one.logits(every)) / 2
    np.testing.assert_allclose(twice.logits(every), expected, atol=1e-3)
    monkeypatch.setattr(learned, "MOST_REACHED", len(puzzle) - 1)
    np.testing.assert_array_equal(Models.load().encode_alike(puzzle, 64.0).logits(every), once.logits(every))


def test_fragments_that_bulge_are_not_asked() -> None:
    for name, broken in (("light", True), ("medium", True), ("severe", True), ("eroded", False)):
        assert bulging(read_contours(cut(name, (3, 4), 64)[0])) is broken


def test_blocks_of_fragments_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = cut(*CUT)[0]
    whole = load_likeness().encode(puzzle, 64.0)
    monkeypatch.setattr(likeness, "FRAGMENTS_AT_ONCE", 5)
    for a, b in zip(whole, load_likeness().encode(puzzle, 64.0), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_a_head_is_trained_beside_the_matcher_and_exported(tmp_path: Path) -> None:
    """From nothing to what the matcher says, then to more; the file gives S' / k."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from jigsync.learn import checkpoint
    from jigsync.learn.export import check_golden, export_run
    from jigsync.learn.likeness import Likeness, LikenessOptions
    from jigsync.learn.likeness_data import sample_of
    from jigsync.learn.likeness_task import _tensors
    from jigsync.learn.matcher import placing_losses, side_losses
    from jigsync.measure.likeness import LikenessModel

    torch.manual_seed(0)
    puzzle, truth = cut(*CUT)
    sample = sample_of(puzzle, truth, load_matcher())
    np.testing.assert_array_equal(sample["partner"], partners(puzzle, truth))
    maps, scores, none, partner = _tensors(sample)
    options = LikenessOptions(width=16, code=4)
    head = Likeness(options).eval()
    begin = float(side_losses(scores, none, partner).mean())
    assert head([(maps, scores, none, partner)])[0].item() == pytest.approx(begin, abs=1e-5)
    loss, means = Likeness(options, placing=0.5).eval()([(maps, scores, none, partner)])
    placed = float(placing_losses(scores, none, partner).mean())
    assert (loss.item(), means["placing"].item()) == pytest.approx((begin + 0.5 * placed, placed), abs=1e-5)
    optimiser = torch.optim.Adam(head.parameters(), 3e-3)
    for _ in range(20):  # half precision costs more the larger the products become
        loss, _ = head([(maps, scores, none, partner)])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.7 * begin
    assert abs(head.matcher.item() - 1) > 0.005
    config = {"model": "likeness", "network": {**vars(options), "matcher_sha256": "abc", "placing": 0.5}}
    checkpoint.save(tmp_path / checkpoint.BEST, config, checkpoint.Progress(1), {"average": head.state_dict()})
    out = tmp_path / "l.onnx"
    assert export_run([tmp_path], out, {}) < 0.05
    assert check_golden(out) < 0.05
    left, right, look = LikenessModel(out.read_bytes(), "l.onnx").encode(puzzle, 64.0)
    with torch.no_grad():
        want = [part.numpy() for part in head.sides(maps)]
    np.testing.assert_allclose(left @ right.T * head.matcher.item(), want[0] @ want[1].T, atol=0.1)
    at_the_side = maps[..., 5:].mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(look[:, : maps.shape[1]], at_the_side, atol=0.3)
    assert np.abs(at_the_side - maps[..., :2].mean(dim=(2, 3)).numpy()).max() > 1
