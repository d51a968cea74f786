"""How the likeness head is trained and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.cutting.seeds import derive_seed
from jigsync.learn.chunks import Sample
from jigsync.learn.likeness import Likeness, LikenessOptions
from jigsync.learn.likeness_data import KINDS, LikenessData, sample_of
from jigsync.learn.matcher import placing_losses, side_losses
from jigsync.learn.matcher_task import VALIDATION, validation_puzzles
from jigsync.learn.mixture import Kind, Pictures
from jigsync.measure.matcher import load_matcher, weights_sha256

VALIDATED: Final = ("eroded", "gap2", "gap5", "eroded 10x10", "gap5 10x10")
"""Of the matcher's sets, those that it is asked of: squares with wide gaps."""


@dataclass(frozen=True)
class LikenessTask:
    """The likeness head as a task of the training loop.

    Attributes:
        pictures: to train on.
        held_out: to validate on.
        seed: of everything.
        matcher: a file of the boundary matcher that it is trained beside; None is the shipped one.
        options: sizes of the head.
        mixture: kinds of puzzles to train on.
        placing: what `placing_losses` count beside those of the sides.
    """

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    matcher: Path | None = None
    options: LikenessOptions = field(default_factory=LikenessOptions)
    mixture: Mapping[str, Kind] = field(default_factory=lambda: KINDS)
    placing: float = 0.0
    name: str = "likeness"
    muon: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        placing = {"placing": self.placing} if self.placing else {}
        return {**asdict(self.options), "matcher_sha256": weights_sha256(self.matcher)} | placing

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        return {name: kind.weight for name, kind in self.mixture.items()}

    def data(self, rank: int) -> LikenessData:
        """The stream of samples of one process of a distributed run."""
        seed = derive_seed(self.seed, rank) if rank else self.seed
        return LikenessData(self.pictures, seed, self.mixture, self.matcher)

    def model(self) -> nn.Module:
        """The head, freshly initialised by torch's generator."""
        return Likeness(self.options, self.placing)

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> list[tuple[Tensor, ...]]:
        """Some puzzles as they are: their maps were made once."""
        return [_tensors(sample) for sample in samples]

    def validation(self) -> dict[str, list[Sample]]:
        """The matcher's puzzles of validation, by name."""
        matcher = load_matcher(self.matcher)
        chosen = {name: VALIDATION[name] for name in VALIDATED}
        return {
            name: [sample_of(*cut, matcher) for cut in cuts]
            for name, cuts in validation_puzzles(self.held_out, chosen).items()
        }

    def validate(self, model: nn.Module, sets: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
        """Mean -log p of all sides and of all fragments among their neighbours, by set; `score`, of the sides, is to be
        maximised.
        """
        assert isinstance(model, Likeness)
        out: dict[str, float] = {}
        losses = []
        with torch.no_grad():
            for name, samples in sets.items():
                said = [model.said(*_tensors(sample)) for sample in samples]
                losses.append(float(torch.cat([side_losses(*puzzle) for puzzle in said]).mean()))
                out[f"{name} nll"] = losses[-1]
                out[f"{name} placing"] = float(torch.cat([placing_losses(*puzzle) for puzzle in said]).mean())
        return {"score": -float(np.mean(losses)), **out}


def _tensors(sample: Sample) -> tuple[Tensor, ...]:
    """What `Likeness.said` takes."""
    maps = torch.from_numpy(sample["maps"].astype(np.float32))
    return maps, *(torch.from_numpy(sample[name]) for name in ("scores", "none", "partner"))
