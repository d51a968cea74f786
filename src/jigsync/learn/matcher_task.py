"""How the boundary matcher is trained and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn

from jigsync.cutting.generate import cut_picture
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.cutting.squares import SquareOptions, cut_squares
from jigsync.io.images import read_rgb
from jigsync.learn.chunks import Sample
from jigsync.learn.matcher import Batch, Matcher, MatcherOptions, side_logits, side_losses
from jigsync.learn.matcher_data import MatcherData, augmented, sample_of
from jigsync.learn.mixture import MIXTURE, Kind, Pictures
from jigsync.measure.strips import prepared
from jigsync.values.layout import Grid
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

VALIDATION: Final[Mapping[str, tuple[int, CutOptions | SquareOptions]]] = {
    "severe": (20, CutOptions(Grid(5, 5), 64, SEVERITIES["severe"])),
    "eroded": (40, CutOptions(Grid(5, 5), 64, SEVERITIES["eroded"])),
    "heavy": (5, CutOptions(Grid(7, 7), 64, SEVERITIES["heavy"])),
    "medium": (3, CutOptions(Grid(7, 7), 64, SEVERITIES["medium"])),
    "gap2": (12, SquareOptions(50, Grid(7, 8), erode=2)),
    "gap5": (24, SquareOptions(50, Grid(7, 8), erode=5)),
    "eroded 10x10": (6, CutOptions(Grid(10, 10), 64, SEVERITIES["eroded"])),
    "gap5 10x10": (6, SquareOptions(50, Grid(10, 10), erode=5)),
}
"""name -> how many puzzles, and of which kind: most of those that a few tell little about. A run on what large puzzles
are made of (`tenths`, `rims`) gets better at those alone, so they are among what says which step is best."""


@dataclass(frozen=True)
class MatcherTask:
    """The boundary matcher as a task of the training loop.

    Attributes:
        pictures: to train on.
        held_out: to validate on.
        seed: of everything.
        options: sizes of the network.
        mixture: kinds of puzzles to train on.
        placing: what `placing_losses` count beside those of the sides.
        lost: share of the puzzles of rows and columns whose cells are told from outlines; if any, all those of
            validation are.
    """

    pictures: Pictures
    held_out: Pictures
    seed: int = 0
    options: MatcherOptions = field(default_factory=MatcherOptions)
    mixture: Mapping[str, Kind] = field(default_factory=lambda: MIXTURE)
    placing: float = 0.0
    lost: float = 0.0
    name: str = "matcher"
    muon: ClassVar[bool] = True

    def config(self) -> dict[str, Any]:
        """What the run's config says of the network."""
        return asdict(self.options) | ({"placing": self.placing} if self.placing else {})

    def data_config(self) -> dict[str, Any]:
        """What the run's config says of the data."""
        weights = {name: kind.weight for name, kind in self.mixture.items()}
        return weights | ({"lost": self.lost} if self.lost else {})

    def data(self, rank: int) -> MatcherData:
        """The stream of samples of one process of a distributed run."""
        return MatcherData(self.pictures, derive_seed(self.seed, rank) if rank else self.seed, self.mixture, self.lost)

    def model(self) -> nn.Module:
        """The network, freshly initialised by torch's generator."""
        return Matcher(self.options, self.placing)

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> Batch:
        """Some samples, augmented, as one batch."""
        parts, spans, at = [], [], 0
        for sample in samples:
            parts.append(augmented(sample, rng))
            sides = len(parts[-1][1])
            spans.append((at, at + sides))
            at += sides
        return Batch(
            torch.from_numpy(np.concatenate([x for x, _ in parts])),
            torch.from_numpy(np.concatenate([partner for _, partner in parts])),
            tuple(spans),
        )

    def validation(self) -> dict[str, list[Sample]]:
        """The fixed puzzles of validation, by name."""
        cuts = validation_puzzles(self.held_out, _lost(VALIDATION) if self.lost else VALIDATION)
        return {name: [sample_of(*cut) for cut in made] for name, made in cuts.items()}

    def validate(self, model: nn.Module, sets: Mapping[str, Sequence[Sample]]) -> dict[str, float]:
        """Top-1 of the sides that have a neighbour and mean -log p of all sides, by set; `score` is to be maximised."""
        assert isinstance(model, Matcher)
        out: dict[str, float] = {}
        losses = []
        for name, samples in sets.items():
            right, loss = zip(*(_measure(model, sample) for sample in samples), strict=True)
            out[f"{name} top1"] = float(torch.cat(right).mean())
            losses.append(float(torch.cat(loss).mean()))
            out[f"{name} nll"] = losses[-1]
        return {"score": -float(np.mean(losses)), **out}


def validation_puzzles(
    held_out: Pictures, kinds: Mapping[str, tuple[int, CutOptions | SquareOptions]]
) -> dict[str, list[tuple[Puzzle, Truth]]]:
    """The fixed puzzles of each kind, spread over all pictures."""
    pictures = [path for folder in held_out for path in folder]
    return {
        name: [_cut(pictures[k * len(pictures) // count], options, k) for k in range(count)]
        for name, (count, options) in kinds.items()
    }


def _lost(
    kinds: Mapping[str, tuple[int, CutOptions | SquareOptions]],
) -> dict[str, tuple[int, CutOptions | SquareOptions]]:
    return {
        name: (count, replace(options, presentation="any") if isinstance(options, CutOptions) else options)
        for name, (count, options) in kinds.items()
    }


def _cut(path: Path, options: CutOptions | SquareOptions, seed: int) -> tuple[Puzzle, Truth]:
    rgb = read_rgb(path)
    if isinstance(options, SquareOptions):
        return cut_squares(rgb, options, seed)
    return cut_picture(rgb, options, seed, redraw=False)


@torch.no_grad()
def _measure(model: Matcher, sample: Sample) -> tuple[Tensor, Tensor]:
    """Is the likeliest the true one (of sides with a neighbour), and -log p of the truth (of all sides)."""
    left, right, none = model.encoder(torch.from_numpy(prepared(sample["strips"])))
    partner = torch.from_numpy(sample["partner"])
    logits = side_logits(left, right)
    return (logits.argmax(dim=1) == partner)[partner >= 0].float(), side_losses(logits, none, partner)
