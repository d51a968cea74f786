"""The contour network's training: true mates, augmentation, the loss, a tiny run that is exported and measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from learn_quick import QUICK
from PIL import Image

from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.learn.contours import IGNORED, NO_MATE, ContourOptions, losses
from jigsync.learn.contours_data import augmented, sample_of, true_mates
from jigsync.learn.contours_mixture import MIXTURE, Torn, draw_puzzle
from jigsync.learn.contours_task import ContourTask, batch_of
from jigsync.learn.export import export_run
from jigsync.learn.fit.odds import fit
from jigsync.learn.loop import train
from jigsync.learn.mixture import Pictures, pictures_of
from jigsync.measure.contours import Contours
from jigsync.measure.outline import read_outlines
from jigsync.score.hypotheses import poses_of
from jigsync.values import angles

TINY = ContourOptions(width=8, dilations=(1, 2), code=4, anchors=64)
FEW = {"torn": Torn(1.0, pieces=(3, 4), size=(20, 24))}


@pytest.fixture
def pictures(tmp_path: Path) -> Pictures:
    """Two small pictures, quickly read."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    rgb = read_rgb(picture("coffee"))
    for k in range(2):
        Image.fromarray(rgb[100 * k : 100 * k + 120, 150 : 150 + 150]).save(folder / f"{k}.png")
    return pictures_of([folder])


def torn(erosion: float = 0.0):  # type: ignore[no-untyped-def]
    return tear_picture(read_rgb(picture("coffee")), TearOptions(7, 80, erosion=erosion), seed=2)


@pytest.mark.parametrize(("erosion", "apart"), [(0.0, 0.7), (0.03, 3.0)])
def test_mates_lie_across_the_seam_and_the_border_has_none(erosion: float, apart: float) -> None:
    puzzle, truth = torn(erosion)
    poses = poses_of(truth.placement, puzzle.ids)
    outlines, _ = read_outlines(puzzle)
    mates = true_mates(outlines, poses)
    xy = np.concatenate([pose.act(outlines.of(i)) for i, pose in enumerate(poses)])
    turn = np.repeat([pose.angle for pose in poses], np.diff(outlines.start))
    normal = angles.act(turn, outlines.normal)
    has = np.flatnonzero(mates >= 0)
    away = np.hypot(*(xy[has] - xy[mates[has]]).T) / outlines.step
    assert np.median(away) < apart
    assert (outlines.owner[has] != outlines.owner[mates[has]]).all()
    assert np.median((normal[has] * normal[mates[has]]).sum(axis=1)) < -0.95
    low, high = xy.min(axis=0), xy.max(axis=0)
    rim = ((xy < low + 2 + 80 * erosion) | (xy > high - 2 - 80 * erosion)).any(axis=1)
    assert (mates[rim] == NO_MATE).mean() > 0.85
    assert (mates[~rim] >= 0).mean() > 0.9


def test_what_is_seen_another_way_has_the_same_mates() -> None:
    sample = sample_of(*torn())
    for seed in range(4):
        seen = augmented(sample, np.random.default_rng(seed))
        start, mate = seen["start"], seen["mate"]
        assert seen["features"].shape[0] == start[-1] == len(mate)
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        has = np.flatnonzero(mate >= 0)
        assert (owner[has] != owner[mate[has]]).all()
        back = mate[mate[has]]
        assert np.median(np.abs(back - has)[back >= 0]) <= 1
        assert mate.min() >= IGNORED


def test_the_loss_takes_the_mate_or_one_next_to_it_and_counts_no_mate() -> None:
    rng = np.random.default_rng(0)
    start = np.array([0, 5, 9, 15])
    mate = np.array([6, NO_MATE, IGNORED, 14, 9, NO_MATE, 0, 1, 2, 4, 3, 3, 3, NO_MATE, 0])
    sample = {"features": rng.standard_normal((15, 34)).astype(np.float32), "start": start, "mate": mate}
    batch = batch_of([sample], TINY, None)
    f, g = (torch.from_numpy(rng.standard_normal((15, 4))) for _ in range(2))
    none = torch.from_numpy(rng.standard_normal(15))
    loss, _, has = losses(f, g, none, batch, 0)
    owner = np.repeat(np.arange(3), np.diff(start))
    scores = (f @ g.T + g @ f.T).numpy()
    scores[owner[:, None] == owner] = -np.inf
    asked = [s for s in range(15) if mate[s] != IGNORED]
    for k, s in enumerate(asked):
        all_ = np.logaddexp.reduce([*scores[s], float(none[s])])
        t = mate[s]
        if t == NO_MATE:
            true = float(none[s])
        else:
            first, count = start[owner[t]], start[owner[t] + 1] - start[owner[t]]
            true = np.logaddexp.reduce([scores[s, first + (t - first + d) % count] for d in (-1, 0, 1)])
        assert float(loss[k]) == pytest.approx(all_ - true, abs=1e-9)
        assert bool(has[k]) == (t >= 0)


def test_every_kind_of_the_mixture_is_cut(pictures: Pictures) -> None:
    for name in ("cuts", "knobs", "severe"):
        puzzle, truth, kind = draw_puzzle(pictures, {name: MIXTURE[name]}, 3, 0)
        again, _, _ = draw_puzzle(pictures, {name: MIXTURE[name]}, 3, 0)
        assert kind == name
        assert set(truth.placement) == set(puzzle.ids)
        assert puzzle.cell is None, "a hint that people's fragments do not have"
        assert all(np.array_equal(a, b) for a, b in zip(puzzle.fragments.pixels, again.fragments.pixels, strict=True))


def test_a_run_is_exported_and_measures(pictures: Pictures, tmp_path: Path) -> None:
    task = ContourTask(pictures, pictures, seed=1, options=TINY, mixture=FEW)
    options = replace(QUICK, steps=2, validate_every=2)
    validated = train(task, tmp_path / "run", options)
    assert np.isfinite(list(validated.values())).all()
    out = tmp_path / "tiny.onnx"
    assert export_run([tmp_path / "run"], out, {}) < 1e-4
    puzzle, _ = torn()
    assert Contours(weights=out).measure(puzzle).n == len(puzzle)


def test_odds_are_those_that_made_the_hypotheses_true() -> None:
    rng = np.random.default_rng(3)
    odds = np.array([-1.0, 2.0, 0.5])
    seen = np.concatenate([np.ones((4000, 1)), rng.standard_normal((4000, 2))], axis=1)
    true = rng.random(4000) < 1 / (1 + np.exp(-seen @ odds))
    assert fit(seen, true, np.zeros(3)) == pytest.approx(odds, abs=0.25)
