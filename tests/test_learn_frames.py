"""The frame network's training: true frames, the mirror, what votes are worth, a tiny run that is exported and read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from learn_quick import QUICK
from PIL import Image

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.learn.contours_mixture import Swept, Torn
from jigsync.learn.export import export_run
from jigsync.learn.frames import FrameOptions, errors_of
from jigsync.learn.frames_data import batch_of, mirrored, sample_of
from jigsync.learn.frames_task import FrameTask
from jigsync.learn.loop import train
from jigsync.learn.mixture import pictures_of
from jigsync.measure.framed import Framed
from jigsync.measure.frames import VOTES, counted
from jigsync.measure.outline import read_outlines
from jigsync.values import angles
from jigsync.values.layout import Grid
from jigsync.values.outlines import Floats, Outlines

TINY = FrameOptions(width=8, dilations=(1, 64))
FEW = {"light": Swept(1.0, (4, 8), rows=(2, 2), cells=(24, 32)), "torn": Torn(1.0, pieces=(3, 4), size=(20, 24))}


def made() -> tuple[dict[str, Floats], Outlines]:
    options = CutOptions(Grid(2, 3), 60, SEVERITIES["light"], presentation="any")
    puzzle, truth = cut_picture(read_rgb(picture("coffee")), options, seed=1)
    return sample_of(puzzle, truth), read_outlines(puzzle)[0]


def perfect(sample: dict[str, Floats]) -> Floats:
    """The votes that say the truth."""
    owner = np.repeat(np.arange(len(sample["angle"])), np.diff(sample["start"]))
    normal = sample["normal"].astype(np.float64)
    tangent = np.stack([-normal[:, 1], normal[:, 0]], axis=1)
    tau = np.arctan2(-tangent[:, 1], tangent[:, 0])
    votes = np.zeros((len(owner), VOTES))
    centre = sample["centre"][owner]
    votes[:, 0], votes[:, 1] = (centre * normal).sum(axis=1), (centre * tangent).sum(axis=1)
    axis = np.exp(4j * (sample["angle"][owner] - tau))
    votes[:, 2], votes[:, 3] = axis.real, axis.imag
    votes[:, 6] = sample["pitch"][owner]
    votes[:, 8:11] = -3
    votes[:, 11] = 5
    return votes


def test_votes_that_say_the_truth_have_no_errors_and_are_counted_alike() -> None:
    sample, outlines = made()
    votes = perfect(sample)
    found = errors_of(torch.from_numpy(votes), batch_of([sample]))
    assert float(found.centre.max()) < 1e-3
    assert float(found.angle.max()) < 1e-3
    assert float(found.pitch.max()) < 1e-3
    frames = counted(outlines, votes.astype(np.float32))
    assert frames.pitch == pytest.approx(60, rel=1e-3)
    assert np.abs(angles.wrap(4 * (frames.angle - sample["angle"]))).max() < 1e-3


def test_the_pitch_is_one_for_a_puzzle_and_not_for_two() -> None:
    sample, _ = made()
    other = {**sample, "pitch": sample["pitch"] + 0.2}
    votes = np.concatenate([perfect(sample), perfect(other)])
    found = errors_of(torch.from_numpy(votes), batch_of([sample, other]))
    assert float(found.pitch.max()) < 1e-3
    votes[:3, 6] += 1.0
    moved = errors_of(torch.from_numpy(votes), batch_of([sample, other])).pitch
    n = len(sample["angle"])
    assert float(moved[:n].min()) > 1e-3
    assert float(moved[n:].max()) < 1e-3


def test_in_a_mirror_the_mirrored_votes_are_right() -> None:
    sample, _ = made()
    seen = mirrored(sample)
    votes = perfect(sample)
    back = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in pairwise(sample["start"])])
    votes = votes[back]
    votes[:, 1] *= -1
    votes[:, 3] *= -1
    found = errors_of(torch.from_numpy(votes), batch_of([seen]))
    assert float(found.centre.max()) < 1e-3
    assert float(found.angle.max()) < 1e-3


def test_a_run_is_exported_and_measures(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.fromarray(read_rgb(picture("coffee"))[:120, 150:300]).save(folder / "a.png")
    pictures = pictures_of([folder])
    task = FrameTask(pictures, pictures, seed=1, options=TINY, mixture=FEW)
    validated = train(task, tmp_path / "run", replace(QUICK, steps=2, validate_every=2))
    assert np.isfinite(list(validated.values())).all()
    out = tmp_path / "tiny.onnx"
    assert export_run([tmp_path / "run"], out, {}) < 1e-4
    options = CutOptions(Grid(2, 2), 32, SEVERITIES["light"], presentation="cropped")
    puzzle, _ = cut_picture(read_rgb(picture("coffee")), options, seed=1)
    assert Framed(weights=out).measure(puzzle).n == 4
