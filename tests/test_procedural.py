"""Procedural pictures: pure, of the asked-for spectrum, stationary, and without a border that fits another one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jigsync.corpus.procedural import BETAS, procedural_picture, write_procedural
from jigsync.io.images import list_images, read_rgb
from jigsync.values.errors import OptionError


def ensemble(beta: float, size: int = 48, count: int = 60) -> NDArray[np.float64]:
    return np.stack([procedural_picture(size, beta, seed) for seed in range(count)]).astype(float) - 127.5


def test_pure_function() -> None:
    first = procedural_picture(32, 1.5, 3)
    assert first.shape == (32, 32, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, procedural_picture(32, 1.5, 3))
    assert not np.array_equal(first, procedural_picture(32, 1.5, 4))
    assert not np.array_equal(first, procedural_picture(32, 1.0, 3))


@pytest.mark.parametrize("beta", BETAS)
def test_power_spectrum_falls_as_asked(beta: float) -> None:
    pictures = ensemble(beta, size=64)
    window = np.hanning(64)[:, None] * np.hanning(64)[None, :]
    power = np.mean(np.abs(np.fft.fft2(pictures[..., 1] * window)) ** 2, axis=0)
    f = np.hypot(np.fft.fftfreq(64)[:, None], np.fft.fftfreq(64)[None, :])
    band = (f > 4 / 64) & (f < 0.35)
    slope = np.polyfit(np.log(f[band]), np.log(power[band]), 1)[0]
    assert slope == pytest.approx(-beta, abs=0.12)


@pytest.mark.parametrize("beta", [0.5, 2.0, 3.0])
def test_mean_and_spread_are_the_same_everywhere(beta: float) -> None:
    pictures = ensemble(beta, size=32, count=300)
    # Blocks of 8 x 8: the mean and spread over the ensemble do not depend on the place.
    blocks = pictures.reshape(300, 4, 8, 4, 8, 3).mean(axis=(2, 4))
    spread = blocks.std(axis=0)
    assert np.abs(blocks.mean(axis=0) / (spread / np.sqrt(300))).max() < 4.5
    assert spread.max() / spread.min() < 1.45
    # Neither direction is special: turning the ensemble changes nothing it can be told by.
    across, down = (np.abs(np.diff(pictures, axis=axis)).mean() for axis in (2, 1))
    assert across == pytest.approx(down, rel=0.02)


def test_opposite_borders_do_not_fit() -> None:
    pictures = ensemble(2.0)
    left, right, inner = pictures[:, :, 0], pictures[:, :, -1], pictures[:, :, 1]
    # On a torus the two borders would be as close as neighbours: a ratio of 1.
    assert np.abs(left - right).mean() > 1.8 * np.abs(left - inner).mean()


def test_colours_differ_but_go_together() -> None:
    pictures = ensemble(1.0)
    red, green, _ = (pictures[..., k].ravel() for k in range(3))
    assert np.corrcoef(red, green)[0, 1] == pytest.approx(0.64, abs=0.06)


@pytest.mark.parametrize(
    ("size", "beta", "seed"),
    [(8, 1.0, 0), (5000, 1.0, 0), (True, 1.0, 0), (32, 0.4, 0), (32, 3.1, 0), (32, float("nan"), 0), (32, 1.0, -1)],
)
def test_bad_options(size: int, beta: float, seed: int) -> None:
    with pytest.raises(OptionError, match="of a procedural picture must be"):
        procedural_picture(size, beta, seed)


def test_folder_of_pictures(tmp_path: Path) -> None:
    seen: list[int] = []
    options = {"count": 2, "size": 16, "seed": 5}
    names = write_procedural(tmp_path / "a", (0.5, 3.0), progress=lambda _, done, total: seen.append(done), **options)
    assert names == ["beta0.5-00000.png", "beta0.5-00001.png", "beta3-00000.png", "beta3-00001.png"]
    assert [path.name for path in list_images(tmp_path / "a")] == sorted(names)
    assert seen == [1, 2, 3, 4]
    # Adding a beta leaves the pictures of the others as they were.
    write_procedural(tmp_path / "b", (3.0,), **options)
    assert np.array_equal(read_rgb(tmp_path / "a" / names[3]), read_rgb(tmp_path / "b" / names[3]))
    with pytest.raises(OptionError, match="must be empty"):
        write_procedural(tmp_path / "a", (1.0,), **options)


@pytest.mark.parametrize(
    "change", [{"count": 0}, {"betas": (1.0, 1.0)}, {"betas": (1.0, 9.0)}, {"size": 3}, {"seed": -1}]
)
def test_bad_folder_options_write_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    options = {"betas": (1.0,), "count": 1, "size": 16, "seed": 0, **change}
    with pytest.raises(OptionError):
        write_procedural(tmp_path / "out", **options)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []
