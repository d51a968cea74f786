"""Met-Sweep's stages one by one, against independent slow versions."""

from __future__ import annotations

import itertools

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jigsync.cutting.blob import blob_outline
from jigsync.cutting.erosion import erode, inward_normals, largest_part, perlin, resample
from jigsync.cutting.fracture import SEGMENTS, Tessellation, tessellate
from jigsync.cutting.options import CutOptions, Damage
from jigsync.cutting.photometry import boundary_distance, fade, jpeg_quality, jpeg_round_trip, premultiply, sensor
from jigsync.cutting.raster import coverage, positive_winding, snap
from jigsync.values.layout import Grid

SQUARE = np.array([[10.0, 10.0], [74.0, 10.0], [74.0, 74.0], [10.0, 74.0]])


def all_curves(tessellation: Tessellation) -> NDArray[np.float64]:
    points = tessellation.across.shape[2]
    return np.concatenate([tessellation.across.reshape(-1, points, 2), tessellation.down.reshape(-1, points, 2)])


@pytest.mark.parametrize("seed", range(4))
def test_curves_never_cross(seed: int) -> None:
    """Brute force over all pairs of segments of all curves at the largest A."""
    options = CutOptions(Grid(3, 4), damage=Damage(32))
    curves = all_curves(tessellate(options, np.random.default_rng(seed)))
    a, b = curves[:, :-1].reshape(-1, 2), curves[:, 1:].reshape(-1, 2)

    def turn(p: NDArray[np.float64], q: NDArray[np.float64], r: NDArray[np.float64]) -> NDArray[np.float64]:
        u, v = q - p, r - p
        return np.sign(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])

    for s in range(len(a)):
        apart = turn(a[s], b[s], a) * turn(a[s], b[s], b) < 0
        assert not (apart & (turn(a, b, a[s]) * turn(a, b, b[s]) < 0)).any()


def test_curves_follow_the_formula() -> None:
    """Ends are pinned, the canvas' edge is straight, and the first draw's harmonics have deviation A / k."""
    options = CutOptions(Grid(12, 12), damage=Damage(4))
    tessellation = tessellate(options, np.random.default_rng(0))
    assert (tessellation.across[0, :, :, 1] == 0).all()
    assert (tessellation.down[:, -1, :, 0] == 12 * 128).all()
    curves = tessellation.across[1:-1].reshape(-1, SEGMENTS + 1, 2)
    chord = curves[:, -1] - curves[:, 0]
    normal = np.stack([-chord[:, 1], chord[:, 0]], axis=1) / np.linalg.norm(chord, axis=1, keepdims=True)
    t = np.arange(SEGMENTS + 1) / SEGMENTS
    off = curves - curves[:, :1] - t[None, :, None] * chord[:, None]
    d = np.einsum("etx,ex->et", off, normal)
    for k in range(1, 5):
        amplitude = 2 / SEGMENTS * d @ np.sin(np.pi * k * t)
        assert amplitude.std() == pytest.approx(4 / k, rel=0.2)
    jitter = tessellation.across[1:-1, 1:, 0] - np.stack(
        np.meshgrid(np.arange(1, 12) * 128.0, np.arange(1, 12) * 128.0, indexing="xy"), axis=-1
    )
    assert np.abs(jitter).max() <= 2.0 + 1e-3
    assert np.abs(jitter).max() > 1.5


def test_shape_zero_is_straight_and_unjittered() -> None:
    tessellation = tessellate(CutOptions(Grid(2, 3), cell=32), np.random.default_rng(0))
    np.testing.assert_array_equal(tessellation.outline(1, 2), [[64, 32], [96, 32], [96, 64], [64, 64]])


def test_outlines_stay_in_their_containers() -> None:
    options = CutOptions(Grid(4, 4), damage=Damage(32))
    for seed in range(6):
        tessellation = tessellate(options, np.random.default_rng(seed))
        for row, col in options.grid.cells():
            corner = np.array([col, row]) * 128 - options.margin
            local = tessellation.outline(row, col) - corner
            assert local.min() >= 0
            assert local.max() <= options.container


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 9), st.integers(0, 10_000))
def test_coverage_equals_counting_samples(corners: int, seed: int) -> None:
    """Alpha is the number of the 17 x 15 samples inside, by point-in-polygon on each."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * (np.arange(corners) + rng.uniform(0, 0.45, corners)) / corners  # simple: no gap of pi
    radius = rng.uniform(0.6, 3.9, corners)
    points = snap(np.stack([4.0 + radius * np.cos(angle), 4.0 + radius * np.sin(angle)], axis=1))
    alpha = coverage(points, 8, 8)
    y = (np.arange(8 * 15) + 0.5) / 15
    x = (np.arange(8 * 17) + 0.5) / 17
    winding = np.zeros((len(y), len(x)), dtype=int)
    for a, b in itertools.pairwise([*points, points[0]]):
        low, high = (a, b) if a[1] < b[1] else (b, a)
        on = (y >= low[1]) & (y < high[1])
        at = low[0] + (y - low[1]) / np.where(on, high[1] - low[1], 1) * (high[0] - low[0])
        winding += np.where(on[:, None] & (x[None] >= at[:, None]), 1 if b[1] > a[1] else -1, 0)
    count = (winding != 0).reshape(8, 15, 8, 17).sum(axis=(1, 3))
    assert np.abs(alpha.astype(int) - count).max() <= 1  # a sample may sit on the curve to the last bit


def test_positive_winding_drops_what_is_folded_over() -> None:
    plain = positive_winding(SQUARE, 84, 84)
    np.testing.assert_array_equal(plain, coverage(SQUARE, 84, 84))
    inside_out = np.array([[50.0, 50.0], [30.0, 50.0], [30.0, 30.0], [50.0, 30.0]])
    assert positive_winding(inside_out, 84, 84).sum() == 255 * 400, "direction alone does not matter"
    eight = np.array([[10.0, 10.0], [60.0, 10.0], [60.0, 60.0], [70.0, 60.0], [70.0, 50.0], [10.0, 50.0]])
    alpha = positive_winding(eight, 84, 84)
    assert alpha[30, 30] == 255
    assert alpha[55, 65] == 0, "the small loop runs the other way"


@given(st.integers(1, 12), st.integers(0, 1000))
def test_perlin_is_bounded_and_periodic(lattice: int, seed: int) -> None:
    s = np.linspace(0, 1, 501)
    noise = perlin(np.concatenate([s[:-1], s + 1]), lattice, np.random.default_rng(seed))
    assert np.abs(noise).max() <= 1
    np.testing.assert_allclose(noise[:500], noise[500:1000], atol=1e-9)


def test_erosion_depth_follows_the_formula() -> None:
    """On the straight sides of a square the boundary moves inward by eps P (0.5 + eta), eta from the same stream."""
    cell, eps = 128, 0.08  # below 0.10: no bites
    square = np.array([[96.0, 96.0], [224.0, 96.0], [224.0, 224.0], [96.0, 224.0]])
    alpha = coverage(square, 320, 320)
    eroded = erode(alpha, square, eps, cell, np.random.default_rng(8))
    _, s = resample(square, 1.0)
    depth = np.maximum(0, eps * cell * (0.5 + perlin(s, 8, np.random.default_rng(8))))
    top = depth[:128]  # the first side runs along the top
    measured = (255.0 - eroded[96:160, 96:224]).sum(axis=0) / 255
    np.testing.assert_allclose(measured[24:104], top[24:104], atol=0.75)
    assert (eroded <= alpha).all()


def test_inward_normals_of_a_clockwise_square() -> None:
    points, _ = resample(SQUARE, 4.0)
    normals = inward_normals(points)
    np.testing.assert_allclose(normals[5], [0, 1])
    np.testing.assert_allclose(normals[5 + 16], [-1, 0])


def test_bites_start_at_a_tenth() -> None:
    alpha = coverage(SQUARE, 84, 84)

    def bitten(eps: float, seed: int) -> bool:
        """Compared with the same noise without bites, is anything missing?"""
        points, s = resample(SQUARE, 64 / 128)
        depth = np.maximum(0, eps * 64 * (0.5 + perlin(s, 8, np.random.default_rng(seed))))
        smooth = positive_winding(snap(points + depth[:, None] * inward_normals(points)), 84, 84)
        return bool((erode(alpha, SQUARE, eps, 64, np.random.default_rng(seed)) < np.minimum(alpha, smooth)).any())

    assert not any(bitten(0.099, seed) for seed in range(12))
    # Poisson(1): none with probability 0.37.
    assert 3 <= sum(bitten(0.10, seed) for seed in range(12)) <= 11


def test_largest_part_is_kept() -> None:
    alpha = np.zeros((9, 9), dtype=np.uint8)
    alpha[1:3, 1:3] = 255
    alpha[4:8, 4:8] = 90
    kept = largest_part(alpha)
    assert kept[1, 1] == 0
    assert kept[5, 5] == 90


def test_photometry_draws_have_the_papers_deviations() -> None:
    """a ~ N(1, 0.15), b ~ N(0, 0.10) at e = 0.20, recovered from two grey values deep inside the fragment."""
    alpha = np.full((200, 200), 255, dtype=np.uint8)
    dark, light = (np.full((200, 200, 3), v, dtype=np.uint8) for v in (64, 128))
    gains, biases = [], []
    for seed in range(300):
        low = fade(dark, alpha, 0.20, 16, np.random.default_rng(seed))[100, 100].mean()
        high = fade(light, alpha, 0.20, 16, np.random.default_rng(seed))[100, 100].mean()
        gains.append((high - low) * 255 / 64)
        biases.append(low - (high - low))
    tint = np.mean(gains)  # sepia brightens grey a little
    assert tint == pytest.approx(1.0, abs=0.05)
    assert np.std(gains) == pytest.approx(0.15, rel=0.2)
    assert np.std(biases) == pytest.approx(0.10, rel=0.2)


def test_fade_darkens_the_boundary_by_its_formula() -> None:
    alpha = coverage(SQUARE, 84, 84)
    grey = np.full((84, 84, 3), 100, dtype=np.uint8)
    image = fade(grey, alpha, 0.2, 64, np.random.default_rng(1))
    ratio = image[42, 10:42, 0] / image[42, 42, 0]
    d = np.arange(32)
    at = lambda depth: 1 - 0.2 * np.exp(-depth / (0.15 * 64))  # noqa: E731
    np.testing.assert_allclose(ratio, at(d + 0.5) / at(31.5), atol=2e-3)
    np.testing.assert_allclose(boundary_distance(alpha)[42, 10:42], d + 0.5, atol=1e-5)


def test_sensor_noise_and_quality_range() -> None:
    noise = sensor(np.full((100, 100, 3), 0.5, dtype=np.float32), 0.2, np.random.default_rng(0)).astype(float)
    assert noise.std() == pytest.approx(0.02 * 255, rel=0.05)
    rng = np.random.default_rng(0)
    qualities = {jpeg_quality(rng) for _ in range(3000)}
    assert (min(qualities), max(qualities)) == (40, 95)


def test_jpeg_keeps_channels_apart() -> None:
    red = np.zeros((32, 32, 3), dtype=np.uint8)
    red[..., 0] = 200
    out = jpeg_round_trip(red, 90)
    assert out[..., 0].mean() > 190
    assert out[..., 1:].mean() < 10


def test_premultiply_is_exact_at_the_ends() -> None:
    rgb = np.arange(256, dtype=np.uint8).reshape(1, 256, 1).repeat(3, axis=2)
    full, none, half = (np.full((1, 256), a, dtype=np.uint8) for a in (255, 0, 128))
    np.testing.assert_array_equal(premultiply(rgb, full), rgb)
    assert not premultiply(rgb, none).any()
    np.testing.assert_array_equal(premultiply(rgb, half)[0, :, 0], np.rint(np.arange(256) * 128 / 255))


@given(st.integers(0, 500))
def test_blobs_stay_inside_their_cell_and_run_clockwise(seed: int) -> None:
    outline = blob_outline(64, np.random.default_rng(seed))
    assert outline.min() >= 0
    assert outline.max() <= 64
    assert cv2.contourArea(outline.astype(np.float32), oriented=True) > 0
    assert coverage(outline, 64, 64).sum() / 255 > 0.4 * 64 * 64
