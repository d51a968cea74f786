"""Photographs of fragments on a table: what lay.json says is what the pixels show, and zero is the identity."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from jigsync.cli import main
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.lay import lay_puzzle
from jigsync.cutting.lay_options import LayOptions
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.palettes import KINDS, PALETTES
from jigsync.data import picture
from jigsync.io.cut_folder import save_cut
from jigsync.io.images import read_rgb
from jigsync.io.lay_file import lay_json, load_lay, parse_lay
from jigsync.io.schema import Node
from jigsync.values import angles
from jigsync.values.errors import FormatError, ImageError, InputError, OptionError
from jigsync.values.lay import Lay, project
from jigsync.values.layout import Grid
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Fragments, Puzzle

BARE: dict[str, Any] = {
    "texture": 0.0,
    "shadow": 0.0,
    "falloff": 0.0,
    "tilt": 0.0,
    "balance": 0.0,
    "exposure": 0.0,
    "blur": 0.0,
    "noise": 0.0,
}
"""Nothing spoils the photograph."""
SMALL = LayOptions(width=640, height=480)


@pytest.fixture(scope="module")
def puzzle() -> Puzzle:
    """Six fragments in containers, of very different shapes."""
    options = CutOptions(Grid(2, 3), cell=96, damage=SEVERITIES["heavy"])
    return cut_picture(read_rgb(picture("coffee")), options, seed=3)[0]


def inside(outline: NDArray[np.float64], lay: Lay, scale: int = 4) -> NDArray[np.bool_]:
    """Pixels of which an outline holds at least a half."""
    fine = np.zeros((lay.height * scale, lay.width * scale), dtype=np.uint8)
    cv2.fillPoly(fine, [np.rint((outline * scale - 0.5) * 16).astype(np.int32)], 255, shift=4)
    return cv2.resize(fine, (lay.width, lay.height), interpolation=cv2.INTER_AREA) >= 128


def half_white(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where white fragments on a table of one colour, which the corner shows, cover at least half of a pixel."""
    table = pixels[0, 0].astype(np.float64)
    cover = (pixels - table) @ (255 - table) / np.square(255 - table).sum()
    return np.asarray(cover >= 0.5)


# ---------------------------------------------------------------------------------------------- the truth is true


@pytest.mark.parametrize("tilt", [0.0, 12.0])
@pytest.mark.parametrize("width", [400, 1200])
def test_outlines_and_boxes_are_where_the_pixels_are(puzzle: Puzzle, tilt: float, width: int) -> None:
    options = LayOptions(**{**BARE, "tilt": tilt}, width=width, height=width * 3 // 4, tone="green")
    white = Fragments(puzzle.ids, tuple(np.repeat(pixels[..., 3:], 4, axis=-1) for pixels in puzzle.fragments.pixels))
    pixels, lay = lay_puzzle(Puzzle(white), options, seed=2)
    seen = half_white(pixels)
    told = np.zeros_like(seen)
    for laid in lay.fragments.values():
        own = inside(laid.outline, lay)
        told |= own
        # The first shoelace sum is positive for what runs clockwise where y points down.
        x, y = laid.outline.T
        assert np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) > 0
        top, left, height, wide = laid.box
        part = seen[max(0, top - 4) : top + height + 4, max(0, left - 4) : left + wide + 4] & cv2.dilate(
            own.astype(np.uint8), np.ones((9, 9), np.uint8)
        )[max(0, top - 4) : top + height + 4, max(0, left - 4) : left + wide + 4].astype(bool)
        rows, cols = np.flatnonzero(part.any(axis=1)), np.flatnonzero(part.any(axis=0))
        found = (rows[0] + max(0, top - 4), cols[0] + max(0, left - 4), np.ptp(rows) + 1, np.ptp(cols) + 1)
        assert np.abs(np.array(found) - laid.box).max() <= 2
    assert (seen & told).sum() / (seen | told).sum() > 0.97


@pytest.mark.parametrize("tilt", [0.0, 14.0])
def test_poses_say_where_the_fragments_pixels_went(tilt: float) -> None:
    # One bright spot on a dark fragment that is not centred in its PNG: its place follows from the pose alone.
    pixels = np.zeros((80, 120, 4), dtype=np.uint8)
    pixels[10:70, 30:110] = (30, 30, 30, 255)
    pixels[20:26, 90:96, :3] = 255
    options = LayOptions(**{**BARE, "tilt": tilt}, width=500, height=400, scale=1.7, turn=70.0)
    photo, lay = lay_puzzle(Puzzle(Fragments(("a",), (pixels,))), options, seed=5)
    spot = np.array([93.0, 23.0]) - np.array([60.0, 40.0])
    pose = lay.fragments["a"].table_from_frag
    exact = project(lay.photo_from_table, pose.act(lay.scale * spot))
    weight = (photo[..., 0].astype(np.float64) > 150) * inside(lay.fragments["a"].outline, lay)
    y, x = np.nonzero(weight)
    np.testing.assert_allclose(exact, [x.mean() + 0.5, y.mean() + 0.5], atol=0.4)
    near, scale = lay.photo_from_frag("a")
    np.testing.assert_allclose(near.act(scale * spot), exact, atol=0.05 if tilt == 0 else 3.0)
    assert (near.xy == pose.xy and near.angle == pytest.approx(pose.angle)) == (tilt == 0)


def test_the_similarity_is_the_nearest_one(puzzle: Puzzle) -> None:
    _, lay = lay_puzzle(puzzle, replace(SMALL, tilt=15.0, texture=0.0), seed=11)
    assert not np.array_equal(lay.photo_from_table, np.eye(3))
    grid = np.radians(np.arange(0, 360, 0.1))
    for name, laid in lay.fragments.items():
        pose, scale = lay.photo_from_frag(name)
        steps = 1e-3 * np.eye(2)
        there = laid.table_from_frag.act(lay.scale * steps)
        slopes = (project(lay.photo_from_table, there) - pose.xy) / 1e-3
        turned = np.stack([angles.act(grid, step) for step in np.eye(2)], axis=1)
        off = np.square(slopes - scale * turned).sum(axis=(1, 2))
        best = grid[np.argmin(off)]
        assert abs(angles.wrap(pose.angle - best)) < math.radians(0.1)
        assert off.min() < 0.01 * scale**2


def test_fragments_lie_apart_by_the_gap_and_touching_pairs_touch(puzzle: Puzzle) -> None:
    options = LayOptions(width=900, height=700, texture=0.0, touching=2, gap=5.0, table_mm=300.0)
    _, lay = lay_puzzle(puzzle, options, seed=4)
    assert len(lay.touching) == 2
    masks = {name: inside(laid.outline, lay) for name, laid in lay.fragments.items()}
    away = {
        n: cv2.distanceTransform((~m).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE) for n, m in masks.items()
    }
    gap = 5.0 / lay.mm_per_pixel
    names = sorted(masks)
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            least = away[one][masks[other]].min()
            if (one, other) in lay.touching:
                assert 0 < least <= 2.5
            else:
                assert least >= gap - 1
            assert not (masks[one] & masks[other]).sum() > 8


def test_a_card_has_its_size(puzzle: Puzzle) -> None:
    options = LayOptions(**BARE, width=800, height=600, card="bank", tone="dark", table_mm=300.0, share=0.15)
    photo, lay = lay_puzzle(puzzle, options, seed=1)
    assert lay.card is not None
    sides = np.hypot(*np.diff(np.concatenate([lay.card.corners, lay.card.corners[:1]]), axis=0).T)
    np.testing.assert_allclose(sides * lay.mm_per_pixel, [85.6, 53.98, 85.6, 53.98], atol=0.4)
    own = cv2.erode(inside(lay.card.corners, lay).astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    assert (photo[own] == (244, 243, 239)).all()
    assert "" not in lay.fragments


# ---------------------------------------------------------------------------------------------- zero is the identity


def test_all_zero_is_the_fragments_own_pixels_on_one_colour(puzzle: Puzzle) -> None:
    photo, lay = lay_puzzle(puzzle, LayOptions(**BARE, width=1000, height=800, scale=1.0, turn=0.0), seed=9)
    expected = np.tile(photo[0, 0], (800, 1000, 1))
    clear = np.ones((800, 1000), dtype=bool)
    for name, laid in lay.fragments.items():
        pixels = puzzle.fragments[name]
        assert laid.table_from_frag.turns == 0
        left, top = (laid.table_from_frag.xy[k] - pixels.shape[1 - k] / 2 for k in (0, 1))
        assert left == int(left)
        rows, cols = np.nonzero(pixels[..., 3] == 255)
        np.testing.assert_array_equal(photo[rows + int(top), cols + int(left)], pixels[rows, cols, :3])
        rows, cols = np.nonzero(pixels[..., 3])
        clear[rows + int(top), cols + int(left)] = False
    np.testing.assert_array_equal(photo[clear], expected[clear])


def test_shadows_fall_on_the_table_and_never_on_a_fragment(puzzle: Puzzle) -> None:
    options = LayOptions(**{**BARE, "tilt": 5.0}, width=800, height=600, lift=4.0, tone="light", light_from=0.0)
    without, lay = lay_puzzle(puzzle, options, seed=6)
    with_shadow, _ = lay_puzzle(puzzle, replace(options, shadow=1.0), seed=6)
    fragments = np.zeros((600, 800), dtype=np.uint8)
    for laid in lay.fragments.values():
        fragments |= inside(laid.outline, lay)
    core = cv2.erode(fragments, np.ones((7, 7), np.uint8)).astype(bool)
    np.testing.assert_array_equal(without[core], with_shadow[core])
    around = cv2.dilate(fragments, np.ones((9, 9), np.uint8)).astype(bool) & (fragments == 0)
    darker = without.astype(np.int64).sum(-1) - with_shadow.astype(np.int64).sum(-1)
    assert (darker >= 0).all()
    assert np.median(darker[around]) > 30
    # The light comes from the right: left of the fragments it is darker than right of them.
    to_left = np.roll(fragments, -6, axis=1).astype(bool) & (fragments == 0)
    to_right = np.roll(fragments, 6, axis=1).astype(bool) & (fragments == 0)
    assert darker[to_left & ~to_right].mean() > 1.5 * darker[to_right & ~to_left].mean()
    far = ~cv2.dilate(fragments, np.ones((121, 121), np.uint8)).astype(bool)
    assert far.any()
    assert not darker[far].any()


@pytest.mark.parametrize(
    "spoiled", [{"falloff": 0.5}, {"balance": 0.2}, {"exposure": 1.0}, {"blur": 2.0}, {"noise": 2.0}, {"texture": 1.0}]
)
def test_what_spoils_moves_nothing(puzzle: Puzzle, spoiled: dict[str, float]) -> None:
    bare, bare_lay = lay_puzzle(puzzle, LayOptions(**BARE, width=320, height=240, gap=1.0), seed=8)
    photo, lay = lay_puzzle(puzzle, LayOptions(**{**BARE, **spoiled}, width=320, height=240, gap=1.0), seed=8)
    assert not np.array_equal(bare, photo)
    told, bare_told = lay_json(lay), lay_json(bare_lay)
    told.pop("options")
    bare_told.pop("options")
    assert told == bare_told


def test_light_falls_off_as_asked(puzzle: Puzzle) -> None:
    options = LayOptions(**{**BARE, "falloff": 0.5}, width=320, height=240, tone="light", gap=1.0, share=0.02)
    photo, _ = lay_puzzle(puzzle, options, seed=3)
    values = photo[..., 1].astype(np.float64)
    rim = np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])
    assert rim.min() / values.max() == pytest.approx(0.5, abs=0.06)


# ---------------------------------------------------------------------------------------------- a pure function


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_differs_between_seeds_and_can_be_made_again(puzzle: Puzzle, kind: str) -> None:
    options = LayOptions(width=240, height=180, background=kind, gap=1.0, touching=1)
    photo, lay = lay_puzzle(puzzle, options, seed=1)
    again, lay_again = lay_puzzle(puzzle, options, seed=1)
    np.testing.assert_array_equal(photo, again)
    assert lay_json(lay) == lay_json(lay_again)
    other, lay_other = lay_puzzle(puzzle, options, seed=2)
    assert not np.array_equal(photo, other)
    assert lay_json(lay)["fragments"] != lay_json(lay_other)["fragments"]
    empty = replace(options, share=0.002, touching=0, scale=None, noise=0.0, shadow=0.0, falloff=0.0)
    tables = [lay_puzzle(puzzle, empty, seed)[0].astype(np.float64) for seed in (1, 2)]
    assert np.abs(tables[0] - tables[1]).mean() > 2
    assert tables[0].std() > 0.5


@pytest.mark.parametrize(("kind", "tone"), [(kind, tone) for kind, tones in PALETTES.items() for tone in tones])
def test_a_table_has_its_tone(kind: str, tone: str) -> None:
    dot = np.full((8, 8, 4), 255, dtype=np.uint8)
    options = LayOptions(
        width=200, height=150, background=kind, tone=tone, scale=1.0, falloff=0.0, exposure=0.0, balance=0.0
    )
    photo, _ = lay_puzzle(Puzzle(Fragments(("a",), (dot,))), options, seed=4)
    grey = float(np.median(photo))
    assert {"light": grey > 130, "dark": grey < 115}.get(tone, 60 < grey < 200)


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "bad",
    [
        {"share": math.nan},
        {"share": 0.0},
        {"scale": -1.0},
        {"scale": math.inf},
        {"gap": -0.1},
        {"touching": -1},
        {"touching": 1.0},
        {"turn": 181.0},
        {"width": 63},
        {"width": 12000, "height": 12000},
        {"height": True},
        {"shadow": 1.1},
        {"lift": "high"},
        {"jpeg": 101},
        {"noise": -math.inf},
        {"background": "sand"},
        {"background": ["wood"]},
        {"tone": "green", "background": "wood"},
        {"card": "a3"},
        {"light_from": math.nan},
        {"tilt": None},
    ],
)
def test_options_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        LayOptions(**bad)


def test_options_go_through_json() -> None:
    options = LayOptions(width=800, height=600, background="cloth", tone="dark", scale=2.0, card="a6", touching=2)
    assert LayOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    with pytest.raises(OptionError, match="'tint'"):
        LayOptions.from_json({"tint": 1})


def test_what_cannot_be_laid_is_refused(puzzle: Puzzle) -> None:
    with pytest.raises(OptionError, match="do not fit apart"):
        lay_puzzle(puzzle, replace(SMALL, share=0.9))
    with pytest.raises(OptionError, match="do not fit apart"):
        lay_puzzle(puzzle, replace(SMALL, scale=30.0))
    with pytest.raises(OptionError, match="a4 card do not fit"):
        lay_puzzle(puzzle, replace(SMALL, card="a4", table_mm=150.0))
    with pytest.raises(OptionError, match="at most 3"):
        lay_puzzle(puzzle, replace(SMALL, touching=4))
    with pytest.raises(OptionError, match="less than 4 pixels"):
        lay_puzzle(puzzle, replace(SMALL, scale=0.02))
    with pytest.raises(OptionError, match="seed"):
        lay_puzzle(puzzle, SMALL, -1)
    clear = np.zeros((9, 9, 4), dtype=np.uint8)
    with pytest.raises(ImageError, match="'a' must have opaque pixels"):
        lay_puzzle(Puzzle(Fragments(("a",), (clear,))), SMALL)
    with pytest.raises(InputError, match="It has 0"):
        lay_puzzle(Puzzle(Fragments((), ())), SMALL)


def test_odd_fragments_can_be_laid() -> None:
    """A speck, a line, a ring and a plain rectangle."""
    speck, line, ring, page = (np.zeros((40, 40, 4), dtype=np.uint8) for _ in range(4))
    speck[20, 20] = 255
    line[20, 3:37] = 255
    cv2.circle(ring, (20, 20), 15, (255, 255, 255, 255), 4)
    page[:] = 255
    photo, lay = lay_puzzle(Puzzle(Fragments(tuple("abcd"), (speck, line, ring, page))), replace(SMALL, scale=6.0))
    assert photo.shape == (480, 640, 3)
    assert all(len(laid.outline) >= 3 and min(laid.box[2:]) >= 1 for laid in lay.fragments.values())


# ---------------------------------------------------------------------------------------------- files, commands


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a puzzle in it."""
    monkeypatch.chdir(tmp_path)
    options = CutOptions(Grid(2, 2), cell=48, damage=SEVERITIES["light"])
    save_cut("cut", *cut_picture(read_rgb(picture("coffee")), options, seed=3))
    return tmp_path


@pytest.mark.usefixtures("cut")
def test_the_command_writes_what_the_function_gives(capsys: pytest.CaptureFixture[str]) -> None:
    from jigsync.io.puzzle_folder import load_puzzle

    args = [
        "lay",
        "cut",
        "-o",
        "out é/x",
        "--width=400",
        "--background=wood",
        "--seed=7",
        "--card=bank",
        "--touching=1",
    ]
    assert main([*args, "--jpeg=0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    options = LayOptions(400, 300, background="wood", card="bank", touching=1, jpeg=0)
    photo, lay = lay_puzzle(load_puzzle("cut"), options, 7)
    assert result["options"] == options.to_json()
    assert result["photo"] == str(Path("out é/x/photo.png"))
    np.testing.assert_array_equal(read_rgb(result["photo"]), photo)
    read = load_lay(result["truth"])
    assert read.photo == "photo.png"
    assert read.touching == lay.touching
    assert (read.height, read.width, read.background, read.seed) == (300, 400, "wood", 7)
    np.testing.assert_array_equal(read.photo_from_table, lay.photo_from_table)
    for name, laid in lay.fragments.items():
        np.testing.assert_array_equal(read.fragments[name].outline, laid.outline)
        assert read.fragments[name].box == laid.box
        assert read.fragments[name].table_from_frag.degrees == pytest.approx(laid.table_from_frag.degrees)
    assert read.card is not None
    assert lay.card is not None
    np.testing.assert_array_equal(read.card.corners, lay.card.corners)

    assert main(args) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main([*args, "--overwrite"]) == 0
    assert sorted(path.name for path in Path("out é/x").iterdir()) == ["lay.json", "photo.jpg"]
    assert np.abs(read_rgb("out é/x/photo.jpg").astype(float) - photo).mean() < 6
    assert capsys.readouterr().out.startswith("Laid 4 fragments on wood: ")


@pytest.mark.parametrize(
    "args", [["--share=0.95"], ["--noise=nan"], ["--width=-5"], ["--background=sea"], ["--touching=3"], ["--seed=-1"]]
)
def test_the_command_refuses_in_one_sentence(cut: Path, args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lay", "cut", "-o", "new/out", "--width=400", *args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("jigsync: ")
    assert said.err.count("\n") == 1
    assert [path.name for path in cut.iterdir()] == ["cut"]


def _broken(change: str) -> dict[str, Any]:
    dot = np.full((20, 30, 4), 255, dtype=np.uint8)
    options = LayOptions(width=200, height=150, card="bank", share=0.05, texture=0.0, touching=1)
    told = lay_json(lay_puzzle(Puzzle(Fragments(("a", "b"), (dot, dot.copy()))), options)[1])
    told = json.loads(json.dumps(told))
    a = told["fragments"]["a"]
    if change == "format":
        told["format"] = "jigsync-lay/2"
    elif change == "photo":
        told["photo"] = "../photo.jpg"
    elif change == "flipped":
        told["photo_from_table"] = [[-1, 0, 0], [0, 1, 0], [0, 0, 1]]
    elif change == "behind":
        told["photo_from_table"] = [[1, 0, 0], [0, 1, 0], [-1.0, 0, 1]]
    elif change == "box":
        a["box"] = [0, 0, 151, 10]
    elif change == "outline":
        a["outline"] = a["outline"][:2]
    elif change == "point":
        a["outline"][0] = [1, 2, 3]
    elif change == "similarity":
        a["photo_from_frag"]["angle"] += 0.5
    elif change == "touching":
        told["touching"] = [["a", "c"]]
    elif change == "card":
        told["card"]["corners"].pop()
    elif change == "scale":
        told["scale"] = 0
    elif change == "none":
        told["fragments"] = {}
    return told


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("format", "format"),
        ("photo", "photo"),
        ("flipped", "photo_from_table"),
        ("behind", r"fragments\.[ab]\.table_from_frag"),
        ("box", r"fragments\.a\.box"),
        ("outline", r"fragments\.a\.outline"),
        ("point", r"fragments\.a\.outline\[0\]"),
        ("similarity", r"fragments\.a\.photo_from_frag"),
        ("touching", r"touching\[0\]"),
        ("card", r"card\.corners"),
        ("scale", "scale"),
        ("none", "fragments"),
    ],
)
def test_a_broken_lay_file_is_refused_by_its_place(change: str, place: str) -> None:
    assert parse_lay(Node(_broken("nothing"), "lay.json")).fragments.keys() == {"a", "b"}
    with pytest.raises(FormatError, match=f"'{place}' of 'lay.json'"):
        parse_lay(Node(_broken(change), "lay.json"))


def test_convention_nearest_angle_has_the_sign_of_the_pose() -> None:
    pose = Pose.of_degrees(37.0, (0.0, 0.0))
    assert angles.nearest(2.5 * pose.matrix[:, :2]) == pytest.approx(math.radians(37.0))
    assert angles.nearest(np.array([[0.0, 1.0], [-1.0, 0.0]])) == pytest.approx(math.pi / 2)
