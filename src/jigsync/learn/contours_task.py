"""How the contour network is trained and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from jigsync.cutting.seeds import derive_seed
from jigsync.learn.chunks import Sample
from jigsync.learn.contours import IGNORED, Batch, ContourNetwork, ContourOptions, losses
from jigsync.learn.contours_data import ContourData, augmented, sample_of
from jigsync.learn.contours_mixture import MIXTURE, Kind, draw_puzzle
from jigsync.learn.mixture import Pictures
from jigsync.measure.outline_features import DISTANCES, neighbours

VALIDATION: Final = 3
"""Puzzles of each kind."""


@dataclass(frozen=True)
class ContourTask:
    """The contour network as a task of the training loop.

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
    options: ContourOptions = field(default_factory=ContourOptions)
    mixture: Mapping[str, Kind] = field(default_factory=lambda: MIXTURE)
    name: str = "contours"
    muon: ClassVar[bool] = True

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        return asdict(self.options)

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        return {name: kind.weight for name, kind in self.mixture.items()}

    def data(self, rank: int) -> ContourData:
        """The stream of samples of one process of a distributed run."""
        return ContourData(self.pictures, derive_seed(self.seed, rank) if rank else self.seed, self.mixture)

    def model(self) -> nn.Module:
        """The network, freshly initialised by torch's generator."""
        return ContourNetwork(self.options)

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> Batch:
        """Some samples, augmented, as one batch."""
        return batch_of([augmented(sample, rng) for sample in samples], self.options, rng)

    def validation(self) -> dict[str, list[Sample]]:
        """The fixed puzzles of validation, by kind."""
        sets: dict[str, list[Sample]] = {}
        for name, kind in self.mixture.items():
            drawn = (
                draw_puzzle(self.held_out, {name: kind}, derive_seed("held out", name), k) for k in range(VALIDATION)
            )
            sets[name] = [sample_of(puzzle, truth) for puzzle, truth, _ in drawn]
        return sets

    @torch.no_grad()
    def validate(self, model: nn.Module, sets: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
        """Top-1 and border right, and the mean loss of every kind; `score` is to be maximised."""
        assert isinstance(model, ContourNetwork)
        out: dict[str, float] = {}
        mean = []
        for name, samples in sets.items():
            parts = []
            for sample in samples:
                batch = batch_of([sample], self.options, None)
                f, g, none = model.encoder(batch.features, batch.near)
                parts.append(losses(f, g, none, batch, 0))
            loss, hit, has = (torch.cat(part) for part in zip(*parts, strict=True))
            mean.append(float(loss.mean()))
            out |= {f"{name} top1": float(hit[has].mean()), f"{name} nll": mean[-1]}
        return {"score": -float(np.mean(mean)), **out}


def batch_of(samples: Sequence[Sample], options: ContourOptions, rng: np.random.Generator | None) -> Batch:
    """Samples one after the other; with a generator at most `anchors` of each puzzle's samples are asked."""
    starts: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
    mates, anchors, spans = [], [], []
    at = 0
    for sample in samples:
        mate, start = sample["mate"], sample["start"]
        spans.append((at, at + len(mate)))
        starts.append(start[1:] + at)
        asked = np.flatnonzero(mate != IGNORED)
        if rng is not None and len(asked) > options.anchors:
            asked = np.sort(rng.choice(asked, options.anchors, replace=False))
        anchors.append(torch.from_numpy(asked + at))
        mates.append(np.where(mate >= 0, mate + at, mate))
        at += len(mate)
    start = np.concatenate(starts)
    return Batch(
        torch.from_numpy(np.concatenate([sample["features"] for sample in samples]).astype(np.float32)),
        torch.from_numpy(neighbours(start, DISTANCES)),
        torch.from_numpy(np.repeat(np.arange(len(start) - 1), np.diff(start))),
        torch.from_numpy(np.concatenate(mates)),
        torch.from_numpy(neighbours(start, (-1, 1))),
        anchors,
        spans,
    )
