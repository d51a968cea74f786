"""How the reach head is trained and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.squares import SquareOptions
from jigsync.learn.chunks import Sample
from jigsync.learn.matcher_task import validation_puzzles
from jigsync.learn.mixture import Pictures
from jigsync.learn.reach import Reach, ReachOptions
from jigsync.learn.reach_data import ReachData, sample_of
from jigsync.measure.learned import Models
from jigsync.measure.reach import apart
from jigsync.values.layout import Grid

VALIDATION: Final[Mapping[str, tuple[int, CutOptions | SquareOptions]]] = {
    "5x5": (30, CutOptions(Grid(5, 5), 64, SEVERITIES["eroded"])),
    "10x10": (45, CutOptions(Grid(10, 10), 64, SEVERITIES["eroded"])),
    "gap5": (30, SquareOptions(50, Grid(10, 10), erode=5)),
}
"""name -> how many puzzles, and of which kind."""


@dataclass(frozen=True)
class ReachTask:
    """The reach head as a task of the training loop.

    Attributes:
        pictures: to train on.
        held_out: to validate on.
        seed: of everything.
        matcher, likeness: files of the networks whose words it reads; None are the shipped ones.
        options: sizes of the network.
    """

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    matcher: Path | None = None
    likeness: Path | None = None
    options: ReachOptions = field(default_factory=ReachOptions)
    name: str = "reach"
    muon: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        return {**asdict(self.options), "networks_sha256": Models.sha256(self.matcher, self.likeness)}

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        return {"pictures": sum(len(folder) for folder in self.pictures)}

    def data(self, rank: int) -> ReachData:
        """The stream of samples of one process of a distributed run."""
        seed = derive_seed(self.seed, rank) if rank else self.seed
        return ReachData(self.pictures, seed, self.matcher, self.likeness)

    def model(self) -> nn.Module:
        """The network, freshly initialised by torch's generator."""
        return Reach(self.options)

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> list[tuple[Tensor, ...]]:
        """Some puzzles as they are: what is seen of them was made once."""
        return [_tensors(sample) for sample in samples]

    def validation(self) -> dict[str, list[Sample]]:
        """The fixed puzzles of validation, by name."""
        models = Models.load(self.matcher, self.likeness)
        return {
            name: [sample_of(*cut, models) for cut in cuts]
            for name, cuts in validation_puzzles(self.held_out, VALIDATION).items()
        }

    def validate(self, model: nn.Module, sets: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
        """Mean gain an axis, nats, by set; `score` is to be maximised."""
        assert isinstance(model, Reach)
        with torch.no_grad():
            out = {
                f"{name} gain": float(torch.cat([model.gains(*_tensors(sample)) for sample in samples]).mean())
                for name, samples in sets.items()
            }
        return {"score": float(np.mean(list(out.values()))), **out}


def _tensors(sample: Sample) -> tuple[Tensor, ...]:
    """What `Reach.gains` takes."""
    scores = apart(sample["scores"].astype(np.float32))
    plain = (sample["looks"].astype(np.float32), scores, *(sample[name] for name in ("none", "ahead", "length")))
    return tuple(torch.from_numpy(value) for value in plain)
