"""Presentations of a cut: the same puzzle in its container, cropped, and at any angle; nothing but pixels leaks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compositing import composite, psnr
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reframe import reframed

from jigsync.cutting import turned as turned_module
from jigsync.cutting.canvas import make_canvas
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.handed import PRESENTATIONS
from jigsync.cutting.options import SEVERITIES, CutOptions, Damage
from jigsync.cutting.tear import tear_picture
from jigsync.cutting.tear_options import TearOptions
from jigsync.cutting.turned import content_box, premultiplied, trimmed, turn_fragment, turn_quarters
from jigsync.data import picture
from jigsync.io.images import read_rgb
from jigsync.io.puzzle_folder import load_puzzle, save_puzzle
from jigsync.io.schema import Node
from jigsync.io.truth_file import parse_truth, truth_json
from jigsync.values.errors import OptionError
from jigsync.values.layout import Grid
from jigsync.values.placement import Placed
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

RGB = read_rgb(picture("coffee"))


def cut(presentation: str, damage: Damage, cell: int = 48, seed: int = 3, **more: object) -> tuple[Puzzle, Truth]:
    options = CutOptions(Grid(2, 3), cell, damage, presentation=presentation, **more)  # type: ignore[arg-type]
    return cut_picture(RGB, options, seed)


@pytest.mark.parametrize("name", [*SEVERITIES, "paper"])
def test_cropped_is_the_content_of_the_cell(name: str) -> None:
    """The same damage, turns and order; poses that differ by where the content's centre is."""
    more = {"paper_order": True} if name == "paper" else {}
    damage = SEVERITIES["medium" if name == "paper" else name]
    (framed, cells), (cropped, truth) = (cut(p, damage, **more) for p in ("cell", "cropped"))
    assert cropped.ids == framed.ids
    for fragment in framed.ids:
        whole, content = framed.fragments[fragment], cropped.fragments[fragment]
        rows, cols = np.nonzero(whole[..., 3])
        box = slice(rows.min(), rows.max() + 1), slice(cols.min(), cols.max() + 1)
        np.testing.assert_array_equal(content, whole[box])
        shift = np.array([(cols.min() + cols.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2])
        before, after = cells.placement[fragment], truth.placement[fragment]
        assert before.pose is not None
        assert after.pose is not None
        assert after.cell == before.cell
        assert after.turns == before.turns
        np.testing.assert_allclose(after.pose.xy, before.pose.act(shift - np.array(whole.shape[1::-1]) / 2))


@pytest.mark.parametrize("presentation", PRESENTATIONS)
def test_fragments_at_their_poses_are_the_picture(presentation: str) -> None:
    """Without erosion and photometry: exact for quarter turns, and within the blur of two resamplings otherwise."""
    puzzle, truth = cut(presentation, Damage(shape=16), cell=64)
    canvas = make_canvas(RGB, CutOptions(Grid(2, 3), 64))
    margin = 48  # containers reach beyond the canvas
    total = composite(puzzle, truth.placement, canvas.shape[:2], margin)
    inside = total[margin:-margin, margin:-margin]
    if presentation == "any":
        assert psnr(inside[..., :3], canvas) > 30
    else:
        assert (inside[..., 3] == 255).all()
        assert np.abs(inside[..., :3] - canvas).max() <= 2
    outside = total.copy()
    outside[margin:-margin, margin:-margin] = 0
    assert outside[..., 3].max() < 160, "half a pixel along the border at most"


@pytest.mark.parametrize("name", SEVERITIES)
def test_any_angle_has_the_same_damage(name: str) -> None:
    """Area and mean colour of every fragment are those of `cell`; noise and JPEG come after another turn."""
    (framed, _), (turned, _) = (cut(p, SEVERITIES[name], cell=96) for p in ("cell", "any"))
    for fragment in framed.ids:
        one, other = (puzzle.fragments[fragment].astype(np.float64).sum(axis=(0, 1)) for puzzle in (framed, turned))
        assert other[3] == pytest.approx(one[3], rel=0.01)
        np.testing.assert_allclose(other[:3] / other[3], one[:3] / one[3], atol=0.02)


def test_angles_are_uniform_and_exact_where_upright() -> None:
    options = CutOptions(Grid(20, 20), 8, presentation="any")
    _, truth = cut_picture(RGB, options, 1)
    degrees = np.array([placed.pose.degrees % 360 for placed in truth.placement.values() if placed.pose])
    counts = np.histogram(degrees, 8, (0, 360))[0]
    assert counts.min() > 25
    assert counts.max() < 80
    upright = CutOptions(Grid(2, 3), 48, SEVERITIES["medium"], presentation="any", turns=False)
    cropped = CutOptions(Grid(2, 3), 48, SEVERITIES["medium"], presentation="cropped", turns=False)
    one, other = cut_picture(RGB, upright, 1), cut_picture(RGB, cropped, 1)
    assert {placed.turns for placed in one[1].placement.values()} == {0}
    assert {name: p.pose for name, p in one[1].placement.items()} == {
        name: p.pose for name, p in other[1].placement.items()
    }
    for a, b in zip(one[0].fragments.pixels, other[0].fragments.pixels, strict=True):
        np.testing.assert_array_equal(a[..., 3], b[..., 3])


def test_nothing_but_cells_has_a_frame(tmp_path: object) -> None:
    """No hint of cell or container, no empty margin, no size that two fragments share because of a frame."""
    puzzle, truth = cut("cell", SEVERITIES["medium"])
    assert (puzzle.cell, puzzle.container) == (48, 120)
    assert "presentation" not in truth.options
    for presentation in ("cropped", "any"):
        puzzle, truth = cut(presentation, SEVERITIES["medium"])
        assert (puzzle.cell, puzzle.container) == (None, None)
        assert truth.options["presentation"] == presentation
        folder = f"{tmp_path}/{presentation}"
        save_puzzle(folder, puzzle)
        read = load_puzzle(folder)
        assert (read.cell, read.container) == (None, None)
        assert len({pixels.shape for pixels in puzzle.fragments.pixels}) > 1
        for pixels in puzzle.fragments.pixels:
            assert trimmed(pixels)[0].shape == pixels.shape
            assert (pixels[..., :3] <= pixels[..., 3:]).all()


def test_truths_of_any_angle_are_read_back() -> None:
    for _, truth in (cut("any", SEVERITIES["light"]), tear_picture(RGB, TearOptions(6, 32), 1)):
        back = parse_truth(Node(truth_json(truth), "truth.json"))
        assert (back.layout, back.pitch, back.contacts) == (truth.layout, truth.pitch, truth.contacts)
        for name, placed in truth.placement.items():
            assert placed.pose is not None
            read = back.placement[name]
            assert read.pose is not None
            assert read.cell == placed.cell
            assert read.pose.xy == placed.pose.xy
            assert read.pose.angle == pytest.approx(placed.pose.angle, abs=1e-12)


def test_the_paper_turns_by_quarters() -> None:
    with pytest.raises(OptionError, match=r"paper's order .* cell or cropped"):
        CutOptions(Grid(2, 2), paper_order=True, presentation="any")
    with pytest.raises(OptionError, match=r"'presentation' .* one of cell, cropped, any"):
        CutOptions(Grid(2, 2), presentation="loose")  # type: ignore[arg-type]


@given(st.sampled_from(PRESENTATIONS), st.booleans(), st.integers(8, 64))
def test_options_are_read_back(presentation: str, turns: bool, cell: int) -> None:
    options = CutOptions(Grid(2, 3), cell, turns=turns, presentation=presentation)  # type: ignore[arg-type]
    assert CutOptions.from_json(options.to_json()) == options
    old = {key: value for key, value in options.to_json().items() if key != "presentation"}
    assert CutOptions.from_json(old).presentation == "cell", "manifests from before there was another one"


# --------------------------------------------------------------------------------------------------- turning by itself


def blob(height: int = 41, width: int = 58) -> NDArray[np.float32]:
    """A fragment without symmetry, smooth inside, off the centre of its picture."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    inside = ((x - 25) / 17) ** 2 + ((y - 20) / 13) ** 2 < 1
    inside |= (x > 25) & (x < 52) & (y > 15) & (y < 22)
    colour = np.stack([x / width, y / height, 0.5 + 0.4 * np.sin(x / 9)], axis=-1).astype(np.float32)
    return premultiplied(colour, np.where(inside, 255, 0).astype(np.uint8))


def centroid(rgba: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of alpha, from the picture's centre. Shapes: -> (2,) as (x, y)."""
    height, width = rgba.shape[:2]
    y, x = np.mgrid[:height, :width] + 0.5
    weight = rgba[..., 3] / rgba[..., 3].sum()
    return np.array([(x * weight).sum() - width / 2, (y * weight).sum() - height / 2])


def test_angle_zero_changes_nothing() -> None:
    turned, offset = turn_fragment(blob(), 0.0)
    rows, cols = content_box(blob()[..., 3])
    np.testing.assert_allclose(turned, blob()[rows, cols], atol=1e-6)
    assert offset == turn_quarters(blob(), 0)[1]


@pytest.mark.parametrize("turns", range(4))
def test_quarter_turns_agree_with_any_angle(turns: int) -> None:
    """cv2 turns as np.rot90 does: counter-clockwise as displayed."""
    exact, at = turn_quarters(blob(), turns)
    turned, offset = turn_fragment(blob(), turns * math.pi / 2)
    np.testing.assert_allclose(offset, at, atol=1.0)  # the trimmed box may differ by a pixel of faint alpha
    shift = centroid(turned) - centroid(exact)
    assert np.abs(shift).max() < 0.5
    if turned.shape == exact.shape:
        assert np.abs(turned - exact).mean() < 0.01


@pytest.mark.parametrize("degrees", [0.0, 17.0, 90.0, 133.0, 246.5, 359.0])
def test_the_offset_puts_the_fragment_back(degrees: float) -> None:
    """x_upright - c = R(-angle)(x_stored - c) + offset, at the centroid; colours stay inside alpha."""
    turned, offset = turn_fragment(blob(), math.radians(degrees))
    back = Pose(-math.radians(degrees), offset).act(centroid(turned))
    np.testing.assert_allclose(back, centroid(blob()), atol=0.03)
    assert turned.dtype == np.float32
    assert turned.min() >= 0
    assert turned.max() <= 1
    assert (turned[..., :3] <= turned[..., 3:]).all()
    assert turned[..., 3].sum() == pytest.approx(blob()[..., 3].sum(), rel=0.01)


def test_empty_corners_are_left_out_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thin diagonals are warped in bands: the same as warping the whole picture."""
    y, x = np.mgrid[:300, :270]
    line = (np.abs(x - y) < 2) | (np.abs(x + y - 269) < 1.5)
    rgba = premultiplied(np.ones((300, 270, 3), np.float32), np.where(line, 255, 0).astype(np.uint8))
    for degrees in (0.0, 10.0, 45.0, 77.0, 200.0):
        banded, offset = turn_fragment(rgba, math.radians(degrees))
        with monkeypatch.context() as patch:
            patch.setattr(turned_module, "FULL", -1.0)
            whole, same = turn_fragment(rgba, math.radians(degrees))
        assert offset == same
        np.testing.assert_allclose(banded, whole, atol=0.05)
        assert np.abs(banded - whole).mean() < 1e-3


# ------------------------------------------------------------------------------------------------------------ reframing


@pytest.mark.parametrize("angles", [False, True])
def test_reframed_puzzles_are_the_same_puzzle(angles: bool) -> None:
    """canvas_from_new = canvas_from_old o old_from_new puts every fragment of the new puzzle back."""
    options = TearOptions(9, 64, presentation="cropped")
    old, truth = tear_picture(RGB, options, 3)
    new, poses = reframed(old, 5, angles)
    assert (new.cell, new.container, new.ids) == (None, None, old.ids)
    assert len({pixels.shape for pixels in new.fragments.pixels}) > 1
    placement = {}
    for name, placed in truth.placement.items():
        assert placed.pose is not None
        placement[name] = Placed(placed.pose.compose(poses[name].inverse()))
    shape = 157, 236
    before, after = composite(old, truth.placement, shape, 20), composite(new, placement, shape, 20)
    if angles:
        assert psnr(after[..., :3], before[..., :3].astype(np.uint8)) > 28
        assert any(pose.turns is None for pose in poses.values())
    else:
        np.testing.assert_array_equal(after, before)
        assert {pose.turns for pose in poses.values()} == {0, 1, 2, 3}
