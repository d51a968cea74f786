"""How the pairwise model and the comparator are trained and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import evenly_spaced, read_rgb
from jigsync.learn.chunks import Sample
from jigsync.learn.mixture import Pictures
from jigsync.learn.pairwise import PairBatch, Pairwise, PairwiseOptions
from jigsync.learn.pairwise_data import PairwiseData, sample_of
from jigsync.measure.unary import load_unary, weights_sha256
from jigsync.values import vocabulary as v
from jigsync.values.layout import Grid

VALIDATION: Final[Mapping[str, tuple[int, CutOptions]]] = {
    "3x3": (40, CutOptions(Grid(3, 3), 64, SEVERITIES["medium"])),
    "5x5": (16, CutOptions(Grid(5, 5), 64, SEVERITIES["medium"])),
}
"""name -> how many puzzles, and of which kind."""


@dataclass(frozen=True)
class PairwiseTask:
    """The pairwise model as a task of the training loop.

    Attributes:
        pictures: to train on.
        held_out: to validate on.
        seed: of everything.
        encoder: a file of the unary head; None is the shipped one.
        options: sizes of the network; no rounds of attention make the comparator.
    """

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    encoder: Path | None = None
    options: PairwiseOptions = field(default_factory=PairwiseOptions)
    name: str = "pairwise"
    muon: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        return {**asdict(self.options), "encoder_sha256": weights_sha256(self.encoder)}

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        return {"pictures": sum(len(folder) for folder in self.pictures)}

    def data(self, rank: int) -> PairwiseData:
        """The stream of samples of one process of a distributed run."""
        return PairwiseData(self.pictures, derive_seed(self.seed, rank) if rank else self.seed, self.encoder)

    def model(self) -> nn.Module:
        """The network, freshly initialised by torch's generator."""
        return Pairwise(self.options)

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> PairBatch:
        """Some puzzles; the model is equivariant, so that turning them would change nothing."""
        return PairBatch(
            tuple(torch.from_numpy(sample["features"].astype(np.float32)) for sample in samples),
            tuple(torch.from_numpy(sample["relations"]) for sample in samples),
        )

    def validation(self) -> dict[str, list[Sample]]:
        """The fixed puzzles of validation, by name."""
        pictures = [path for folder in self.held_out for path in folder]
        encoder = load_unary(self.encoder)
        made: dict[str, list[Sample]] = {}
        for name, (count, options) in VALIDATION.items():
            paths = evenly_spaced(pictures, count)
            cuts = (cut_picture(read_rgb(path), options, k, redraw=False) for k, path in enumerate(paths))
            made[name] = [sample_of(*cut, encoder) for cut in cuts]
        return made

    def validate(self, model: nn.Module, sets: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
        """Mean -log p, and the share of right relations by distance and of right relative turns; `score` grows."""
        assert isinstance(model, Pairwise)
        out: dict[str, float] = {}
        for name, samples in sets.items():
            measured = [_measure(model, sample) for sample in samples]
            for key in measured[0]:
                out[f"{name} {key}"] = float(torch.cat([one[key] for one in measured]).mean())
        return {"score": -float(np.mean([out[f"{name} nll"] for name in sets])), **out}


@torch.no_grad()
def _measure(model: Pairwise, sample: Sample) -> dict[str, Tensor]:
    """Per pair: -log p; is the likeliest right, of unit steps, diagonal and all farther ones; is the turn right."""
    relations = torch.from_numpy(sample["relations"])
    apart = relations >= 0
    target = relations[apart]
    log_p = torch.log_softmax(model.logits(torch.from_numpy(sample["features"].astype(np.float32)))[apart], dim=1)
    right = (log_p.argmax(dim=1) == target).float()
    unit = torch.from_numpy(v.IS_UNIT)[target]
    ring = torch.from_numpy(v.BAND[:, 0])[target // 4]
    turn = torch.logsumexp(log_p.view(len(log_p), -1, 4), dim=1).argmax(dim=1)
    return {
        "nll": -log_p.gather(1, target[:, None]).squeeze(1),
        "unit top1": right[unit],
        "diagonal top1": right[(ring == 1) & ~unit],
        "far top1": right[ring > 1],
        "turn top1": (turn == target % 4).float(),
    }
