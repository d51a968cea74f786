"""How the unary head is trained and validated."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import nn

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.io.images import read_rgb
from jigsync.learn.chunks import Sample
from jigsync.learn.gauge_loss import turned_centres
from jigsync.learn.mixture import Pictures
from jigsync.learn.turned import Turned
from jigsync.learn.unary import Unary, UnaryBatch
from jigsync.learn.unary_data import UnaryData, augmented
from jigsync.learn.unary_export import restored
from jigsync.measure.unary import weights_sha256
from jigsync.measure.views import four_turns, fragment_views, picture_view, prepared
from jigsync.render.assemble import composed
from jigsync.render.layout import layout_of
from jigsync.solution import Solution
from jigsync.values import z4
from jigsync.values.layout import Grid

VALIDATION: Final[Mapping[str, CutOptions]] = {
    "3x3": CutOptions(Grid(3, 3), 128, SEVERITIES["medium"]),
    "5x5": CutOptions(Grid(5, 5), 80, SEVERITIES["medium"]),
}
VALIDATED: Final = 60
"""Most pictures of a validation."""
AT_ONCE: Final = 64


@dataclass(frozen=True)
class UnaryTask:
    """The unary head as a task of the training loop.

    Attributes:
        pictures: to train on, upright.
        held_out: to validate on.
        seed: of everything.
        loss: one of `gauge_loss.LOSSES`; with another than "fixed" a sample is a puzzle in an unknown gauge.
        cold: step at which soft-min has become the minimum.
        turned: pictures to train on that are stored turned.
        weights: an exported head to start from; None: ImageNet's weights.
    """

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    loss: str = "fixed"
    cold: int = 1
    turned: Sequence[Turned] = ()
    weights: Path | None = None
    name: str = "unary"
    muon: ClassVar[bool] = False

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        known = self.loss == "fixed"
        config = {"encoder": "efficientnet-lite0"} | ({} if known else {"loss": self.loss, "cold": self.cold})
        return config | ({} if self.weights is None else {"weights_sha256": weights_sha256(self.weights)})

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        pictures = {"pictures": sum(len(folder) for folder in self.pictures)}
        return pictures | ({"turned": sum(len(one) for one in self.turned)} if self.turned else {})

    def data(self, rank: int) -> UnaryData:
        """The stream of samples of one process of a distributed run."""
        return UnaryData(self.pictures, derive_seed(self.seed, rank) if rank else self.seed, self.turned)

    def model(self) -> nn.Module:
        """The network, from the ImageNet weights or those of a file."""
        count = sum(map(len, self.pictures)) + sum(map(len, self.turned))
        unary = Unary(self.loss, count, self.cold)
        if self.weights is not None:
            unary.load_state_dict(restored(self.weights), strict=False)  # what a loss remembers begins empty
        return unary

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> UnaryBatch:
        """Some samples, augmented, as one batch."""
        mirrored = rng.random(len(samples)) < 0.5
        large = np.stack([augmented(s["large"], m, rng) for s, m in zip(samples, mirrored, strict=True)])
        small = np.stack([augmented(v, m, rng) for s, m in zip(samples, mirrored, strict=True) for v in s["small"]])
        centres = np.stack([s["cells"] for s in samples])
        centres[mirrored, :, 0] = 1 - centres[mirrored, :, 0]
        cells = centres.reshape(-1, 2)
        views = (torch.from_numpy(large), torch.from_numpy(small))
        names = ("large", "small")
        if self.loss == "fixed":
            turns = tuple(torch.zeros(len(part), dtype=torch.int64) for part in (large, small))
            return UnaryBatch(views, turns, (None, torch.from_numpy(cells)), names)
        # Every picture has a gauge of its own, which the loss does not know.
        puzzles = [int(sample["picture"]) for sample in samples]
        gauges = torch.tensor([derive_seed("gauge", self.seed, puzzle) % z4.ORDER for puzzle in puzzles])
        turns = (gauges, gauges.repeat_interleave(len(small) // len(samples)))
        turned = turned_centres(torch.from_numpy(cells))[torch.arange(len(cells)), turns[1]]
        return UnaryBatch(views, turns, (None, turned), names, torch.tensor(puzzles))

    def validation(self) -> list[Sample]:
        """Puzzles of the held-out pictures: single fragments, and put together by the truth."""
        pictures = [path for folder in self.held_out for path in folder]
        count = min(VALIDATED, len(pictures))
        return [_sample(pictures[k * len(pictures) // count], k) for k in range(count)]

    def validate(self, model: nn.Module, sets: Sequence[Sample]) -> dict[str, float]:
        """Share right and mean -log p of whole pictures, of single fragments, and of fragments voting."""
        assert isinstance(model, Unary)
        out: dict[str, list[float]] = {}
        for sample, size in itertools.product(sets, VALIDATION):
            turns = torch.from_numpy(sample[f"{size} turns"])
            for name, true in ((size, turns), (f"{size} whole", torch.zeros(1, dtype=torch.int64))):
                log_p = _log_p(model, sample[f"{name} views"])
                out.setdefault(f"{name} right", []).append(float((log_p.argmax(dim=1) == true).float().mean()))
                out.setdefault(f"{name} nll", []).append(float(-log_p[torch.arange(len(true)), true].mean()))
                if name == size:
                    gauge = torch.stack([log_p[torch.arange(len(true)), (true + g) % 4].sum() for g in range(4)])
                    out.setdefault(f"{name} vote", []).append(float(gauge.argmax() == 0))
        means = {name: float(np.mean(values)) for name, values in out.items()}
        names = (f"{size}{kind} nll" for size in VALIDATION for kind in ("", " whole"))
        return {"score": -float(np.mean([means[name] for name in names])), **means}


def _sample(path: Path, seed: int) -> Sample:
    rgb = read_rgb(path)
    made: dict[str, Any] = {}
    for name, options in VALIDATION.items():
        puzzle, truth = cut_picture(rgb, options, seed, redraw=False)
        solution = Solution("ok", "", truth.grid, truth.placement)
        whole = picture_view(composed(puzzle, solution, layout_of(puzzle, solution)))
        made[f"{name} views"] = fragment_views(puzzle, options.cell)
        made[f"{name} turns"] = np.array([truth.placement[fragment].turns for fragment in puzzle.ids])
        made[f"{name} whole views"] = four_turns(whole)[None]
    return made


@torch.no_grad()
def _log_p(model: Unary, views: np.ndarray[Any, Any]) -> torch.Tensor:
    x = torch.from_numpy(prepared(views))
    z = torch.cat([model.score(x[start : start + AT_ONCE])[0] for start in range(0, len(x), AT_ONCE)])
    return torch.log_softmax(z.view(-1, 4), dim=1)
