"""How the continuous-angle head is trained and validated: round parts of pictures at any angle, frozen features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from jigsync.cutting.photometry import jpeg_round_trip
from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.learn.chunks import Sample
from jigsync.learn.continuous import AngleBatch, Continuous, log_density
from jigsync.learn.mixture import Pictures, draw_picture
from jigsync.measure.continuous import round_views
from jigsync.measure.described import described
from jigsync.measure.unary import load_unary, weights_sha256

PARTS: Final = 6
"""Parts of a picture in a sample."""
SHARES: Final = (0.22, 0.5)
"""Diameter of a part, in shorter sides of the picture; a fragment of 3 x 3 has 0.33."""
VALIDATED: Final = 60


def draw_part(rgb: NDArray[np.uint8], rng: np.random.Generator) -> tuple[NDArray[np.uint8], float]:
    """A round part at a random angle, digitised as it stands: views (4, S, S, 3) and the angle."""
    side = rng.uniform(*SHARES) * min(rgb.shape[:2])
    x, y = (float(rng.uniform(side / 2, length - side / 2)) for length in rgb.shape[1::-1])
    angle = float(rng.uniform(0, 360))
    views = round_views(rgb, (x, y), side, angle)
    quality = int(rng.integers(60, 96))
    return np.stack([jpeg_round_trip(np.ascontiguousarray(view), quality) for view in views]), angle


@dataclass(frozen=True)
class ContinuousData:
    """The stream of samples of a seed; `encoder` is a file of the unary head, None the shipped one."""

    pictures: Pictures
    seed: int
    encoder: Path | None = None

    def sample(self, k: int) -> Sample:
        """PARTS parts of the k-th picture drawn: features (PARTS, 4, F + HEADS) float16 and angles (PARTS,)."""
        rng = np.random.default_rng(derive_seed("continuous", self.seed, k))
        return sample_of(draw_picture(self.pictures, rng), rng, self.encoder)


def sample_of(rgb: NDArray[np.uint8], rng: np.random.Generator, encoder: Path | None) -> Sample:
    """PARTS parts of a picture."""
    views, angles = zip(*(draw_part(rgb, rng) for _ in range(PARTS)), strict=True)
    features = described(np.stack(views), load_unary(encoder))
    return {"features": features, "angles": np.array(angles, dtype=np.float32)}


@dataclass(frozen=True)
class ContinuousTask:
    """The continuous-angle head as a task of the training loop."""

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    encoder: Path | None = None
    name: str = "continuous"
    muon: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        return {"encoder_sha256": weights_sha256(self.encoder)}

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        return {"pictures": sum(len(folder) for folder in self.pictures)}

    def data(self, rank: int) -> ContinuousData:
        """The stream of samples of one process of a distributed run."""
        return ContinuousData(self.pictures, derive_seed(self.seed, rank) if rank else self.seed, self.encoder)

    def model(self) -> nn.Module:
        """The network, freshly initialised by torch's generator."""
        return Continuous()

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> AngleBatch:
        """Some samples."""
        features, angles = (np.concatenate([sample[key] for sample in samples]) for key in ("features", "angles"))
        return AngleBatch(torch.from_numpy(features.astype(np.float32)), torch.from_numpy(angles))

    def validation(self) -> list[Sample]:
        """Parts of the held-out pictures."""
        pictures = evenly_spaced([path for folder in self.held_out for path in folder], VALIDATED)
        return [sample_of(read_rgb(path), np.random.default_rng(k), self.encoder) for k, path in enumerate(pictures)]

    @torch.no_grad()
    def validate(self, model: nn.Module, sets: Sequence[Sample]) -> dict[str, float]:
        """Mean -log p, and the share of angles within 45 degrees; `score` grows."""
        assert isinstance(model, Continuous)
        batch = self.batch(sets, np.random.default_rng(0))
        z, vectors = model.read(batch.features)
        grid = torch.arange(0.0, 360.0, 2.0)
        each = torch.stack([log_density(z, vectors, angle.expand(len(z))) for angle in grid], dim=1)
        off = (grid[each.argmax(dim=1)] - batch.angles + 180) % 360 - 180
        nll = -float(log_density(z, vectors, batch.angles).mean())
        return {"score": -nll, "nll": nll, "45 degrees top1": float((off.abs() <= 45).float().mean())}
