"""Seeds and splits by hash: the same on every machine, in every order, whatever else is in the corpus."""

from __future__ import annotations

import hashlib
import json
from typing import Final, Literal

Split = Literal["train", "val", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "val", "test")
TRAIN_SHARE: Final = 0.70
VAL_SHARE: Final = 0.15


def derive_seed(*parts: str | int | float) -> int:
    """A seed in 0 .. 2^63 - 1 from any parts: the first 63 bits of sha256 of their JSON."""
    digest = hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def split_of(image_sha256: str) -> Split:
    """70 / 15 / 15 by the picture's hash, so that no picture is ever in two splits."""
    share = int(image_sha256[:12], 16) / 16**12
    return "train" if share < TRAIN_SHARE else "val" if share < TRAIN_SHARE + VAL_SHARE else "test"
