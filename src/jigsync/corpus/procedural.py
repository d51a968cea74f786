"""The procedural corpus: stationary 1/f^beta colour noise, the control in which there is nothing to find.

A Gaussian random field with power spectrum S(f) = 1 / f^beta, isotropic, without its mean (S(0) = 0). It is drawn on
a torus of twice the side and cropped, because opposite borders of a torus fit each other and would be a cue. Scale
and mean are those of the ensemble, never of the single picture, so that the crop stays stationary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jigsync.cutting.seeds import derive_seed
from jigsync.io.files import StrPath, atomic_folder
from jigsync.io.images import png_bytes
from jigsync.values.errors import bad_value

BETAS: Final = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
MIN_SIDE: Final = 16
MAX_SIDE: Final = 4096
MAX_COUNT: Final = 99_999
_MEAN: Final = 127.5
_DEVIATION: Final = 42.0
_SHARED: Final = 0.8
"""Weight of the field all three colours share; each one's own has sqrt(1 - 0.8^2), as photographs are mostly grey."""


def procedural_picture(size: int, beta: float, seed: int) -> NDArray[np.uint8]:
    """A pure function of its arguments.

    Args:
        size: side in pixels, 16 .. 4096.
        beta: exponent of the power spectrum, 0.5 .. 3; photographs are near 2.
        seed: 0 or more.

    Shapes: -> (size, size, 3) uint8.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not MIN_SIDE <= size <= MAX_SIDE:
        raise bad_value("size", "a procedural picture", f"an integer from {MIN_SIDE} to {MAX_SIDE} pixels", size)
    check_beta(beta)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise bad_value("seed", "a procedural picture", "an integer of at least 0", seed)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    amplitude, scale = _spectrum(2 * size, beta)
    shared, *own = (_field(amplitude, rng)[:size, :size] / scale for _ in range(4))
    rest = math.sqrt(1 - _SHARED**2)
    colours = np.stack([_SHARED * shared + rest * field for field in own], axis=-1)
    return np.clip(np.rint(_MEAN + _DEVIATION * colours), 0, 255).astype(np.uint8)


def check_beta(beta: float) -> None:
    """Raises OptionError for a beta outside 0.5 .. 3."""
    if not BETAS[0] <= beta <= BETAS[-1]:  # false for nan too
        raise bad_value("beta", "a procedural picture", f"a number from {BETAS[0]} to {BETAS[-1]}", beta)


def _spectrum(side: int, beta: float) -> tuple[NDArray[np.float64], float]:
    """(f^(-beta/2) on the half plane of rfft2, standard deviation of the field it makes of unit white noise)."""
    fy, fx = np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :]
    f = np.hypot(fy, fx)
    f[0, 0] = 1.0
    amplitude = f ** (-beta / 2)
    amplitude[0, 0] = 0.0
    # Parseval: the half plane's columns count twice, but for the first and the last one.
    power = 2 * np.sum(amplitude**2) - np.sum(amplitude[:, 0] ** 2) - np.sum(amplitude[:, -1] ** 2)
    return amplitude, math.sqrt(power) / side


def _field(amplitude: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    side = amplitude.shape[0]
    white = np.fft.rfft2(rng.standard_normal((side, side)))
    return np.fft.irfft2(white * amplitude, s=(side, side))


def write_procedural(
    out: StrPath,
    betas: tuple[float, ...],
    *,
    count: int,
    size: int,
    seed: int,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[str]:
    """Writes `count` pictures of every beta into a new folder, all at once; returns their names."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
        raise bad_value("count", "the procedural corpus", f"an integer from 1 to {MAX_COUNT}", count)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise bad_value("seed", "the procedural corpus", "an integer of at least 0", seed)
    if len(set(betas)) != len(betas):
        raise bad_value("beta", "the procedural corpus", "different numbers", betas)
    for beta in betas:
        check_beta(beta)
    names = []
    with atomic_folder(out) as folder:
        for beta in betas:
            for k in range(count):
                name = f"beta{beta:g}-{k:05d}.png"
                picture = procedural_picture(size, beta, derive_seed(seed, beta, k))
                (folder / name).write_bytes(png_bytes(picture))
                names.append(name)
                if progress:
                    progress("pictures made", len(names), count * len(betas))
    return names
