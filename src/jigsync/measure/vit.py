"""DINOv2's ViT-S/14 in plain torch, for a local file of its published weights. Nothing is fetched, nothing unpickled.

    x_0 = [cls, patches W_p + b_p] + pos         x <- x + g1 attn(norm(x));  x <- x + g2 mlp(norm(x)),  12 blocks

Two layouts of the same weights are read: the authors' own names (also timm's) and those of Hugging Face's
`transformers`, which keeps query, key and value apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jigsync.io.files import open_plain
from jigsync.values.errors import FormatError, InputError, MissingExtraError

if TYPE_CHECKING:
    import torch

WIDTH: Final = 384
DEPTH: Final = 12
HEADS: Final = 6
SQUARE: Final = 14
EPSILON: Final = 1e-6
SAFETENSORS: Final = ".safetensors"
TORCH: Final = (".pth", ".pt")

_BLOCK: Final[Mapping[str, tuple[int, ...]]] = {
    "norm1.weight": (WIDTH,),
    "norm1.bias": (WIDTH,),
    "attn.qkv.weight": (3 * WIDTH, WIDTH),
    "attn.qkv.bias": (3 * WIDTH,),
    "attn.proj.weight": (WIDTH, WIDTH),
    "attn.proj.bias": (WIDTH,),
    "ls1.gamma": (WIDTH,),
    "norm2.weight": (WIDTH,),
    "norm2.bias": (WIDTH,),
    "mlp.fc1.weight": (4 * WIDTH, WIDTH),
    "mlp.fc1.bias": (4 * WIDTH,),
    "mlp.fc2.weight": (WIDTH, 4 * WIDTH),
    "mlp.fc2.bias": (WIDTH,),
    "ls2.gamma": (WIDTH,),
}
SHAPES: Final[Mapping[str, tuple[int, ...]]] = {
    "cls_token": (1, 1, WIDTH),
    "patch_embed.proj.weight": (WIDTH, 3, SQUARE, SQUARE),
    "patch_embed.proj.bias": (WIDTH,),
    "norm.weight": (WIDTH,),
    "norm.bias": (WIDTH,),
    **{f"blocks.{k}.{name}": shape for k in range(DEPTH) for name, shape in _BLOCK.items()},
}
"""Every tensor but `pos_embed`, (1, 1 + G^2, 384) for a grid of G x G patches."""

_RENAMED: Final = (
    (r"^(dinov2\.)?embeddings\.cls_token$", "cls_token"),
    (r"^(dinov2\.)?embeddings\.position_embeddings$", "pos_embed"),
    (r"^(dinov2\.)?embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^(dinov2\.)?layernorm\.", "norm."),
    (r"^(dinov2\.)?encoder\.layer\.(\d+)\.", r"blocks.\2."),
    (r"\.attention\.attention\.(query|key|value)\.", r".attn.\1."),
    (r"\.attention\.output\.dense\.", ".attn.proj."),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
)
"""transformers' names -> the authors'."""


def load(path: Path) -> dict[str, torch.Tensor]:
    """The weights of a file, by the authors' names, all shapes checked.

    Raises:
        InputError: the file cannot be read, or its name ends neither in .safetensors nor in .pth or .pt.
        FormatError: it does not hold these weights.
    """
    import torch

    if path.suffix not in (SAFETENSORS, *TORCH):
        raise InputError(f"The weights '{path}' must be a {SAFETENSORS}, .pth or .pt file.")
    if not path.is_file():
        raise InputError(f"The weights '{path}' are not a file.")
    state = _read(path)
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise FormatError(f"The weights '{path}' must be one flat dictionary of tensors.")
    named = _by_authors_names(state)
    for name, shape in SHAPES.items():
        got = tuple(named[name].shape) if name in named else None
        if got != shape:
            raise FormatError(
                f"The weights '{path}' are not those of DINOv2 ViT-S/14: '{name}' must be {shape}. Got {got} instead."
            )
    position = named.get("pos_embed")
    side = round((position.shape[1] - 1) ** 0.5) if position is not None and position.ndim == 3 else 0
    if position is None or tuple(position.shape) != (1, 1 + side * side, WIDTH):
        raise FormatError(f"The weights '{path}' have no 'pos_embed' for a square grid of patches.")
    return {name: named[name].float() for name in (*SHAPES, "pos_embed")}


def _read(path: Path) -> Any:
    """What the file holds; a torch file is read without running anything that is in it."""
    import torch

    if path.suffix == SAFETENSORS:
        try:
            from safetensors import SafetensorError
            from safetensors.torch import load_file
        except ImportError:
            raise MissingExtraError("Reading a .safetensors file", "safetensors", "content") from None
        try:
            return load_file(path)
        except SafetensorError as error:
            raise _unreadable(path, error) from None
    open_plain(path).close()
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file leads torch into errors of any kind
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FormatError:
    reason = str(error).partition("\n")[0][:200] or type(error).__name__
    if "weights_only" in str(error):  # torch would advise to run what is in it
        reason = "it holds more than tensors, and nothing else is unpickled"
    return FormatError(f"The weights '{path}' cannot be read: {reason}.")


def _by_authors_names(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    import torch

    named = {}
    for name, value in state.items():
        for pattern, replacement in _RENAMED:
            name = re.sub(pattern, replacement, name)
        named[name] = value
    for k in range(DEPTH):
        for kind in ("weight", "bias"):
            parts = [named.pop(f"blocks.{k}.attn.{part}.{kind}", None) for part in ("query", "key", "value")]
            present = [part for part in parts if part is not None]
            if len(present) == 3:
                named[f"blocks.{k}.attn.qkv.{kind}"] = torch.cat(present)
    return named


def forward(weights: Mapping[str, torch.Tensor], pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The class token and the patch tokens after the last norm.

    Shapes: pictures (B, 3, 14 T, 14 T), normalised -> (B, 384), (B, T, T, 384).
    """
    import torch
    import torch.nn.functional as F

    embedded = F.conv2d(pictures, weights["patch_embed.proj.weight"], weights["patch_embed.proj.bias"], stride=SQUARE)
    side = embedded.shape[2]
    x = torch.cat([weights["cls_token"].expand(len(embedded), -1, -1), embedded.flatten(2).transpose(1, 2)], dim=1)
    x = x + _positions(weights["pos_embed"], side)
    for k in range(DEPTH):
        w = {name: weights[f"blocks.{k}.{name}"] for name in _BLOCK}
        x = x + w["ls1.gamma"] * _attention(_norm(x, w["norm1.weight"], w["norm1.bias"]), w)
        hidden = F.gelu(F.linear(_norm(x, w["norm2.weight"], w["norm2.bias"]), w["mlp.fc1.weight"], w["mlp.fc1.bias"]))
        x = x + w["ls2.gamma"] * F.linear(hidden, w["mlp.fc2.weight"], w["mlp.fc2.bias"])
    x = _norm(x, weights["norm.weight"], weights["norm.bias"])
    return x[:, 0], x[:, 1:].reshape(len(x), side, side, WIDTH)


def _norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as F

    return F.layer_norm(x, (WIDTH,), weight, bias, EPSILON)


def _attention(x: torch.Tensor, w: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Shapes: (B, 1 + T^2, 384) -> the same."""
    import torch.nn.functional as F

    qkv = F.linear(x, w["attn.qkv.weight"], w["attn.qkv.bias"])
    query, key, value = qkv.reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(query, key, value)
    return F.linear(mixed.transpose(1, 2).flatten(2), w["attn.proj.weight"], w["attn.proj.bias"])


def _positions(pos_embed: torch.Tensor, side: int) -> torch.Tensor:
    """Position vectors for T x T patches, resampled as the authors do (bicubic, with their offset of 0.1)."""
    import torch
    import torch.nn.functional as F

    own, grid = pos_embed[:, :1], pos_embed[:, 1:]
    stored = round(grid.shape[1] ** 0.5)
    if stored == side:
        return pos_embed
    grid = grid.reshape(1, stored, stored, WIDTH).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, scale_factor=(side + 0.1) / stored, mode="bicubic")
    return torch.cat([own, grid.permute(0, 2, 3, 1).reshape(1, side * side, WIDTH)], dim=1)
