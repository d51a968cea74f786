"""How the frame network is trained and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import nn

from jigsync.cutting.seeds import derive_seed
from jigsync.learn.chunks import Sample
from jigsync.learn.contours_mixture import Kind, draw_puzzle
from jigsync.learn.frames import FrameBatch, FrameNetwork, FrameOptions, errors_of
from jigsync.learn.frames_data import MIXTURE, FrameData, batch_of, mirrored, sample_of
from jigsync.learn.mixture import Pictures

VALIDATION: Final = 8
"""Puzzles of each kind."""


@dataclass(frozen=True)
class FrameTask:
    """The frame network as a task of the training loop.

    Attributes:
        pictures: to train on.
        held_out: to validate on.
        seed: of everything.
        options: sizes of the network.
        mixture: kinds of puzzles to train on.
    """

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    options: FrameOptions = field(default_factory=FrameOptions)
    mixture: Mapping[str, Kind] = field(default_factory=lambda: MIXTURE)
    name: str = "frames"
    muon: ClassVar[bool] = True

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        return asdict(self.options)

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        return {name: kind.weight for name, kind in self.mixture.items()}

    def data(self, rank: int) -> FrameData:
        """The stream of samples of one process of a distributed run."""
        return FrameData(self.pictures, derive_seed(self.seed, rank) if rank else self.seed, self.mixture)

    def model(self) -> nn.Module:
        """The network, freshly initialised by torch's generator."""
        return FrameNetwork(self.options)

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> FrameBatch:
        """Some samples, half of them in a mirror, as one batch."""
        return batch_of([mirrored(sample) if rng.random() < 0.5 else sample for sample in samples])

    def validation(self) -> dict[str, list[Sample]]:
        """The fixed puzzles of validation, by kind."""
        return {
            name: [
                sample_of(*draw_puzzle(self.held_out, {name: kind}, derive_seed("held out", name), k)[:2])
                for k in range(VALIDATION)
            ]
            for name, kind in self.mixture.items()
        }

    @torch.no_grad()
    def validate(self, model: nn.Module, sets: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
        """Mean loss, errors of centre (pitches), angle (degrees), pitch of every kind; `score` is to be maximised."""
        assert isinstance(model, FrameNetwork)
        out: dict[str, float] = {}
        mean = []
        for name, samples in sets.items():
            batch = batch_of(samples)
            found = errors_of(model.encoder(batch.features, batch.near), batch)
            mean.append(float(found.loss().mean()))
            out |= {
                f"{name} nll": mean[-1],
                f"{name} centre": float(found.mean(found.centre)),
                f"{name} degrees": float(torch.rad2deg(found.mean(found.angle))),
                f"{name} pitch": float(found.mean(found.pitch)),
                f"{name} wrong": float(found.wrong()),
            }
        return {"score": -float(np.mean(mean)), **out}
