"""Tearing: pieces that tile the picture, poses that put them back, contacts, damage, and what is refused."""

from __future__ import annotations

import hashlib
import itertools

import cv2
import numpy as np
import pytest
from compositing import composite, psnr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import jigsync
from jigsync.cutting.edges import across, wear
from jigsync.cutting.knobs import knob_grid
from jigsync.cutting.nearest import NearestSite
from jigsync.cutting.pieces import contacts, join_islands
from jigsync.cutting.tear import check_tear, divide, scaled_picture, tear_picture
from jigsync.cutting.tear_options import STYLES, TearOptions
from jigsync.cutting.torn import displacement, draw_sites
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.values.errors import ImageError, JigsyncError, OptionError
from jigsync.values.layout import FREE, Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

RGB = read_rgb(picture("coffee"))[:, :500]
SMALL = {"pieces": 12, "size": 40}


def digest(puzzle: Puzzle, truth: Truth) -> str:
    state = hashlib.sha256(repr([sorted(truth.placement.items()), sorted(truth.contacts or ())]).encode())
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        state.update(f"{name} {pixels.shape}".encode() + pixels.tobytes())
    return state.hexdigest()


# ------------------------------------------------------------------------------------------------------------ pieces


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("pieces", "size"), [(2, 60), (12, 40), (40, 24), (150, 16)])
def test_undamaged_pieces_tile_the_picture(style: str, pieces: int, size: int) -> None:
    """All alphas of a pixel sum to 255, every piece is one part, and none is a crumb."""
    options = TearOptions(pieces, size, style)  # type: ignore[arg-type]
    canvas = scaled_picture(RGB, options)
    for seed in range(3):
        divided = divide(canvas, options, seed).pieces
        assert len(divided.masks) == pieces
        total = np.zeros(canvas.shape[:2], dtype=np.int64)
        for number, mask in enumerate(divided.masks):
            height, width = mask.alpha.shape
            box = slice(mask.top, mask.top + height), slice(mask.left, mask.left + width)
            total[box] += mask.alpha
            parts, _ = cv2.connectedComponents((mask.alpha > 0).astype(np.uint8), connectivity=4)
            assert parts == 2, "background and one part"
            assert 0.15 * size**2 < mask.area < 4 * size**2
            assert (mask.alpha[divided.owner[box] == number] > 0).all()
        assert (total == 255).all()


def test_the_nearest_site_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(3)
    sites = draw_sites((200, 300), 30, rng)
    found = NearestSite.of(sites, (200, 300), 45.0, reach=20.0)
    points = rng.uniform([-20, -20], [320, 220], (5000, 2)).astype(np.float32)
    distance = np.linalg.norm(points[:, None].astype(np.float64) - sites, axis=-1)
    chosen = distance[np.arange(5000), found(points[:, 0], points[:, 1])]
    np.testing.assert_allclose(chosen, distance.min(axis=1), atol=1e-3)


def test_torn_pieces_belong_to_the_nearest_site_of_the_displaced_pixel() -> None:
    """owner(x) = argmin |x + u(x) - site|, by brute force, but for pixels of islands that were given away."""
    options = TearOptions(12, 48)
    canvas = scaled_picture(RGB, options)
    shape = canvas.shape[0], canvas.shape[1]
    owner = divide(canvas, options, 4).pieces.owner
    from jigsync.cutting.streams import Stage, stream

    rng = stream(4, Stage.TEAR)
    sites = draw_sites(shape, 12, rng)
    moved = displacement(shape, 48, rng)
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    apart = np.stack([x, y], axis=-1) + moved
    nearest = np.linalg.norm(apart[:, :, None] - sites, axis=-1).argmin(axis=-1)
    assert (nearest != owner).mean() < 0.002
    assert np.abs(moved).max() > 0.1 * 48, "it is displaced at all"


def test_sites_keep_apart_and_off_the_border() -> None:
    sites = draw_sites((300, 400), 30, np.random.default_rng(0))
    apart = np.linalg.norm(sites[:, None] - sites, axis=-1)[np.triu_indices(30, 1)]
    # The best of 32 candidates: uniform points come as near as a few pixels.
    assert apart.min() > 0.5 * np.sqrt(300 * 400 / 30)
    assert np.minimum(sites, [400, 300] - sites).min() > 0.15 * np.sqrt(300 * 400 / 30)


def test_islands_go_to_the_piece_around_them() -> None:
    owner = np.zeros((12, 12), dtype=np.int32)
    owner[:, 6:] = 1
    owner[2:4, 2:4] = 1  # an island of 1 in 0
    owner[8, 8:10] = 2  # piece 2, inside 1
    owner[5, 0] = 2  # an island of 2 in 0
    boxes = join_islands(owner, 4)
    assert (owner[:, :6] == 0).all()
    assert (owner[8, 8:10] == 2).all()
    assert (owner == 2).sum() == 2
    assert boxes[2] == (slice(8, 9), slice(8, 10))
    assert boxes[3] is None


@pytest.mark.parametrize("style", STYLES)
def test_contacts_are_the_pairs_with_a_seam(style: str) -> None:
    """By brute force over all pairs of pixels side by side."""
    options = TearOptions(20, 32, style)  # type: ignore[arg-type]
    canvas = scaled_picture(RGB, options)
    owner = divide(canvas, options, 1).pieces.owner
    length: dict[tuple[int, int], int] = {}
    for row, col in itertools.product(range(owner.shape[0]), range(owner.shape[1])):
        for beside in (owner[row, col + 1 : col + 2], owner[row + 1 : row + 2, col]):
            for other in beside:
                if other != owner[row, col]:
                    pair = (int(min(other, owner[row, col])), int(max(other, owner[row, col])))
                    length[pair] = length.get(pair, 0) + 1
    assert contacts(owner, 32) == sorted(pair for pair, seam in length.items() if seam >= 3)
    puzzle, truth = tear_picture(RGB, options, 1)
    assert truth.contacts is not None
    assert len(truth.contacts) == len(contacts(owner, 32))
    # Ids, not piece numbers: fragments that touch lie side by side.
    for one, other in truth.contacts:
        here, there = truth.placement[one].pose, truth.placement[other].pose
        assert here is not None
        assert there is not None
        reach = sum(np.hypot(*puzzle.fragments[name].shape[:2]) for name in (one, other)) / 2
        assert np.hypot(here.xy[0] - there.xy[0], here.xy[1] - there.xy[1]) < reach


@pytest.mark.parametrize(
    ("shape", "pieces", "grid"),
    [((300, 400), 12, (3, 4)), ((400, 300), 12, (4, 3)), ((300, 300), 3, (1, 3)), ((100, 250), 10, (2, 5))],
)
def test_jigsaw_grids_suit_the_picture(shape: tuple[int, int], pieces: int, grid: tuple[int, int]) -> None:
    assert knob_grid(shape, pieces).shape == grid


def test_a_jigsaw_has_cells_and_a_tear_has_none() -> None:
    _, truth = tear_picture(RGB, TearOptions(12, 40, "knobs"), 3)
    assert truth.layout == Grid(3, 4)
    assert truth.pitch is not None
    for placed in truth.placement.values():
        assert placed.cell is not None
        assert placed.pose is not None
        middle = (placed.cell[1] + 0.5) * truth.pitch[1], (placed.cell[0] + 0.5) * truth.pitch[0]
        assert np.hypot(placed.pose.xy[0] - middle[0], placed.pose.xy[1] - middle[1]) < 0.3 * 40
    _, truth = tear_picture(RGB, TearOptions(12, 40), 3)
    assert truth.layout == FREE
    assert {placed.cell for placed in truth.placement.values()} == {None}


# ------------------------------------------------------------------------------------------------------------- poses


@pytest.mark.parametrize("style", STYLES)
def test_cropped_fragments_at_their_poses_are_the_picture(style: str) -> None:
    options = TearOptions(12, 40, style, presentation="cropped")  # type: ignore[arg-type]
    puzzle, truth = tear_picture(RGB, options, 2)
    canvas = scaled_picture(RGB, options)
    total = composite(puzzle, truth.placement, canvas.shape[:2])
    assert (total[..., 3] == 255).all()
    # Up to four fragments round their share of a pixel.
    assert np.abs(total[..., :3] - canvas).max() <= 2
    assert {placed.turns for placed in truth.placement.values()} == {0, 1, 2, 3}
    assert (puzzle.cell, puzzle.container) == (None, None)


@pytest.mark.parametrize("style", STYLES)
def test_turned_fragments_at_their_poses_are_the_picture(style: str) -> None:
    options = TearOptions(12, 64, style)  # type: ignore[arg-type]
    puzzle, truth = tear_picture(RGB, options, 2)
    canvas = scaled_picture(RGB, options)
    total = composite(puzzle, truth.placement, canvas.shape[:2])
    # Seams blur, twice resampled; half a pixel of error would cost 7 dB.
    assert psnr(total[..., :3], canvas) > 30
    degrees = np.array([placed.pose.degrees for placed in truth.placement.values() if placed.pose])
    assert np.abs((degrees + 45) % 90 - 45).max() > 10, "any angle"
    for pixels in puzzle.fragments.pixels:
        assert pixels[[0, -1], :, 3].any(axis=1).all(), "trimmed"
        assert pixels[:, [0, -1], 3].any(axis=0).all()
        assert (pixels[..., :3] <= pixels[..., 3:]).all(), "premultiplied"


def test_upright_and_in_order() -> None:
    options = TearOptions(**SMALL, turns=False, shuffle=False)
    puzzle, truth = tear_picture(RGB, options, 2)
    assert {placed.turns for placed in truth.placement.values()} == {0}
    division = divide(scaled_picture(RGB, options), options, 2)
    for pixels, mask in zip(puzzle.fragments.pixels, division.pieces.masks, strict=True):
        held = mask.alpha[mask.alpha.any(axis=1)][:, mask.alpha.any(axis=0)]
        np.testing.assert_array_equal(pixels[..., 3], held)


# ------------------------------------------------------------------------------------------------------------ damage


def test_no_wear_is_the_identity() -> None:
    mask = divide(scaled_picture(RGB, TearOptions(**SMALL)), TearOptions(**SMALL), 0).pieces.masks[3]
    rng = np.random.default_rng(0)
    worn, layer = wear(mask.alpha, 0.0, 40, rng, np.zeros(mask.alpha.shape, dtype=np.float32), rng)
    np.testing.assert_array_equal(worn, mask.alpha)
    assert (layer[mask.alpha > 0] == 1).all()


def test_erosion_takes_its_mean_depth_off_every_edge() -> None:
    """Straight cuts have smooth edges: the lost area is the depth times the length, corners aside; borders included."""
    depth = 0.05 * 128
    lost, length = 0.0, 0.0
    for seed in range(3):
        options = TearOptions(6, 128, "cuts", presentation="cropped", turns=False, shuffle=False)
        worn = TearOptions(6, 128, "cuts", 0.05, presentation="cropped", turns=False, shuffle=False)
        before, after = tear_picture(RGB, options, seed)[0], tear_picture(RGB, worn, seed)[0]
        for one, other in zip(before.fragments.pixels, after.fragments.pixels, strict=True):
            outline, _ = cv2.findContours(
                (one[..., 3] > 127).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
            )
            hull = cv2.convexHull(outline[0])
            lost += float(one[..., 3].sum(dtype=np.int64)) / 255 - float(other[..., 3].sum(dtype=np.int64)) / 255
            length += cv2.arcLength(hull, closed=True) - 8 * depth / 2
    assert lost / length == pytest.approx(depth, rel=0.12)


def test_erosion_leaves_one_part_of_everything() -> None:
    puzzle, _ = tear_picture(RGB, TearOptions(40, 24, erosion=0.15), 5)
    for pixels in puzzle.fragments.pixels:
        assert pixels[..., 3].max() == 255


def test_each_damage_moves_alone() -> None:
    """Erosion, rims and photometry leave the division, the angles and the order as they were."""
    _, plain = tear_picture(RGB, TearOptions(**SMALL), 7)
    for more in ({"erosion": 0.05}, {"rim": 3.0}, {"photo": 0.2}):
        _, damaged = tear_picture(RGB, TearOptions.from_json({**SMALL, **more}), 7)
        assert damaged.contacts == plain.contacts
        for name, placed in damaged.placement.items():
            before = plain.placement[name].pose
            assert placed.pose is not None
            assert before is not None
            assert placed.pose.angle == before.angle


def test_a_rim_is_white_on_one_side_of_each_seam() -> None:
    """On a black picture: white pixels along every seam, on one of its two fragments only; none along the border."""
    black = np.zeros((200, 300, 3), dtype=np.uint8)
    options = TearOptions(9, 80, rim=5.0, turns=False, shuffle=False, presentation="cropped")
    canvas = scaled_picture(black, options)
    puzzle, truth = tear_picture(black, options, 3)
    owner = divide(canvas, options, 3).pieces.owner
    total = composite(puzzle, truth.placement, canvas.shape[:2])
    white = total[..., 0] > 120
    assert 0.02 < white.mean() < 0.2
    shown = []
    for pair in contacts(owner, 80):
        near = [cv2.dilate((owner == k).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0 for k in pair]
        # Away from junctions, where the rims of other seams begin.
        only = cv2.erode(np.isin(owner, pair).astype(np.uint8), np.ones((17, 17), np.uint8)) > 0
        rim = [(white & near[1 - k] & only & (owner == pair[k])).sum() for k in (0, 1)]
        if sum(rim) > 20:
            assert min(rim) <= 0.05 * max(rim)
            shown.append(int(np.argmax(rim)))
    assert len(shown) > 8
    assert set(shown) == {0, 1}
    border = np.zeros_like(white)
    border[:3], border[-3:], border[:, :3], border[:, -3:] = True, True, True, True
    assert white[border].mean() < 0.06, "only where seams end"


def test_rims_leave_the_paper_as_it_was() -> None:
    bare, _ = tear_picture(RGB, TearOptions(**SMALL), 7)
    rimmed, _ = tear_picture(RGB, TearOptions(**SMALL, rim=4.0), 7)
    for one, other in zip(bare.fragments.pixels, rimmed.fragments.pixels, strict=True):
        np.testing.assert_array_equal(one[..., 3], other[..., 3])
    assert any((one != other).any() for one, other in zip(bare.fragments.pixels, rimmed.fragments.pixels, strict=True))


def test_across_names_the_neighbour() -> None:
    owner = np.zeros((6, 6), dtype=np.int32)
    owner[:, 3:] = 4
    assert (across(owner, 0)[:, 2] == 4).all()
    assert (across(owner, 4)[:, 3] == 0).all()
    assert (across(owner, 0)[:, 0] == -1).all()


# ------------------------------------------------------------------------------------------- purity and what is refused


def test_a_pure_function_of_picture_options_and_seed() -> None:
    options = TearOptions(**SMALL, erosion=0.03, rim=2.0, photo=0.1)
    first = digest(*tear_picture(RGB, options, 5))
    assert digest(*tear_picture(RGB.copy(), options, 5)) == first
    assert digest(*tear_picture(RGB, options, 6)) != first
    assert digest(*tear_picture(RGB[::-1].copy(), options, 5)) != first


def damage(top: float) -> st.SearchStrategy[float]:
    return st.floats(0, top, allow_nan=False) | st.just(0.0)


@given(st.data())
@settings(max_examples=25)
def test_any_allowed_options_give_a_sound_puzzle(data: st.DataObject) -> None:
    style = data.draw(st.sampled_from(STYLES))
    size = data.draw(st.integers(16, 40))
    options = TearOptions(
        pieces=data.draw(st.sampled_from([2, 3, 4, 6, 8, 9, 12, 15, 20, 24, 30])),
        size=size,
        style=style,
        erosion=data.draw(damage(0.15)),
        rim=data.draw(damage(0.15 * size)) if style == "tear" else 0.0,
        photo=data.draw(damage(1.0)),
        presentation=data.draw(st.sampled_from(["cropped", "any"])),
        turns=data.draw(st.booleans()),
        shuffle=data.draw(st.booleans()),
    )
    assert TearOptions.from_json(options.to_json()) == options
    seed = data.draw(st.integers(0, 2**63 - 30))
    puzzle, truth = tear_picture(RGB, options, seed)
    assert len(puzzle) == options.pieces == len(truth.placement)
    assert truth.contacts
    canvas = scaled_picture(RGB, options)
    for name in puzzle.ids:
        pixels, pose = puzzle.fragments[name], truth.placement[name].pose
        assert pixels[..., 3].any()
        assert (pixels[..., :3] <= pixels[..., 3:]).all()
        assert pose is not None
        assert 0 < pose.xy[0] < canvas.shape[1]
        assert 0 < pose.xy[1] < canvas.shape[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pieces": 1}, "'pieces' .* from 2 to 1000"),
        ({"pieces": 1001}, "'pieces'"),
        ({"pieces": True}, "'pieces'"),
        ({"pieces": 2.0}, "'pieces'"),
        ({"size": 15}, "'size' .* from 16 to 1024"),
        ({"pieces": 1000, "size": 512}, "at most 64,000,000 are allowed"),
        ({"erosion": float("nan")}, "'erosion' .* from 0 to 0.15"),
        ({"erosion": -0.1}, "'erosion'"),
        ({"erosion": 0.2}, "'erosion'"),
        ({"rim": float("inf")}, "'rim' .* from 0 to 19.2"),
        ({"rim": 3, "style": "cuts"}, "only torn paper has rims"),
        ({"photo": "1"}, "'photo'"),
        ({"style": "burn"}, "'style' .* one of tear, cuts, knobs"),
        ({"presentation": "cell"}, "'presentation' .* one of cropped, any"),
        ({"turns": 1}, "'turns'"),
        ({"colour": 1}, "Unknown tearing option 'colour'"),
    ],
)
def test_bad_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        TearOptions.from_json(options)


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ((20, 20), TearOptions(9, 16), "is 20 x 20 pixels: too small for 9 pieces of at least 8 x 8"),
        ((1, 300), TearOptions(2, 16), "at least 2 x 2"),
        ((10, 600), TearOptions(2, 16), "no longer than 50 times"),
        ((300, 400), TearOptions(7, 16, "knobs"), "7 jigsaw pieces do not fill"),
        ((300, 400), TearOptions(22, 16, "knobs"), "22 jigsaw pieces do not fill"),
    ],
)
def test_pictures_that_cannot_be_torn(shape: tuple[int, int], options: TearOptions, words: str) -> None:
    with pytest.raises(JigsyncError, match=words):
        check_tear(*shape, options)
    with pytest.raises(JigsyncError, match=words):
        tear_picture(np.zeros((*shape, 3), dtype=np.uint8), options)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(OptionError, match="'seed'"):
        tear_picture(RGB, TearOptions(**SMALL), seed)  # type: ignore[arg-type]


def test_the_public_function() -> None:
    puzzle, truth = jigsync.tear_with_truth(picture("coffee"), pieces=6, seed=3, size=32, style="cuts")
    assert len(puzzle) == 6
    assert truth.options == TearOptions(6, 32, "cuts").to_json()
    same = jigsync.tear(picture("coffee"), pieces=6, seed=3, size=32, style="cuts")
    assert all(np.array_equal(same.fragments[name], puzzle.fragments[name]) for name in puzzle.ids)
    with pytest.raises(ImageError, match="too small"):
        tear_picture(np.zeros((30, 30, 3), np.uint8), TearOptions(40, 16))


def test_scaling_keeps_the_whole_picture() -> None:
    canvas: NDArray[np.uint8] = scaled_picture(RGB, TearOptions(30, 32))
    assert canvas.shape[1] / canvas.shape[0] == pytest.approx(RGB.shape[1] / RGB.shape[0], rel=0.01)
    assert canvas.shape[0] * canvas.shape[1] == pytest.approx(30 * 32**2, rel=0.02)
