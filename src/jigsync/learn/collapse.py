"""A small unary head trained in seconds under every loss of `gauge_loss`, for the study `collapse`.

A head sees fragments as tiny pictures. Puzzle p stands in a gauge of its own, g_p: its picture was turned by -g_p
before it was cut; every epoch turns every fragment anew, by r_i. Two heads:

    plain         one view -> four turn logits and a cell, as the paper's
    equivariant   each of the four views -> a score and a cell, as ours (learn/unary.py)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jigsync.learn.gauge_loss import GaugeCache, chosen, turn_branches, turned_centres, under_gauges
from jigsync.values import z4

HEADS: Final = ("plain", "equivariant")
Provision = Literal["upright", "turned", "redrawn"]
"""All puzzles upright; each in a random gauge of its own; in a new random gauge every epoch."""
CELLS: Final = 1.0
BATCH: Final = 16
"""Puzzles a step."""


@dataclass(frozen=True, eq=False)
class TinyPuzzles:
    """Upright fragments in their four turns.

    Shapes: views (P, N, 4, D), view k is the upright one turned by k; centres (P, N, 2) in [0, 1], (x, y).
    """

    views: NDArray[np.float32]
    centres: NDArray[np.float32]


@dataclass(frozen=True)
class Run:
    """How a head is trained.

    Attributes:
        loss: one of `gauge_loss.LOSSES`, or "random": labels are taken as they are.
        told: share of the puzzles whose gauge is known.
        temperature: of soft-min at the beginning; it falls to 0 at `cold` of the epochs.
    """

    head: str
    loss: str
    provision: Provision
    told: float = 0.0
    epochs: int = 60
    width: int = 64
    rate: float = 2e-3
    decay: float = 1e-2
    temperature: float = 0.5
    cold: float = 2 / 3


@dataclass(frozen=True)
class Epoch:
    """What an epoch was.

    Attributes:
        loss, cell: mean loss, and mean squared error of the cell in the gauge that was trained.
        flips: share of the puzzles whose winning gauge is not that of the epoch before.
        right: of unseen puzzles, turns right, up to one turn for all of them.
        relative: of unseen puzzles, pairs of fragments whose relative turns are right.
    """

    loss: float
    cell: float
    flips: float
    right: float
    relative: float


class TinyHead(nn.Module):
    """Views (..., 4, D), the presented one first -> turn logits (..., 4) and centres (..., 4, 2)."""

    def __init__(self, head: str, inputs: int, width: int) -> None:
        super().__init__()
        self.equivariant = head == "equivariant"
        turns = 1 if self.equivariant else z4.ORDER
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, turns + 2))

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        if self.equivariant:
            out = self.layers(views)
            return out[..., 0], 0.5 + out[..., 1:]
        out = self.layers(views[..., 0, :])
        centre = 0.5 + out[..., z4.ORDER :]
        return out[..., : z4.ORDER], centre[..., None, :].expand(*centre.shape[:-1], z4.ORDER, 2)


def train_head(
    seen: TinyPuzzles, unseen: TinyPuzzles, run: Run, seed: int, report: Callable[[int], None] = lambda _: None
) -> list[Epoch]:
    """Trains one head; everything random is of the seed."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(int(rng.integers(2**31)))
    head = TinyHead(run.head, seen.views.shape[-1], run.width)
    optimiser = torch.optim.AdamW(head.parameters(), lr=run.rate, weight_decay=run.decay)
    puzzles = len(seen.views)
    cache = GaugeCache(puzzles)
    gauges = np.zeros(puzzles, np.int64) if run.provision == "upright" else rng.integers(0, z4.ORDER, puzzles)
    before = np.full(puzzles, -1)
    epochs = []
    for epoch in range(run.epochs):
        if run.provision == "redrawn":
            gauges = rng.integers(0, z4.ORDER, puzzles)
        temperature = run.temperature * max(0.0, 1 - epoch / (run.cold * run.epochs))
        winners, losses, cells = np.empty(puzzles, np.int64), np.empty(puzzles), np.empty(puzzles)
        for part in np.array_split(rng.permutation(puzzles), -(-puzzles // BATCH)):
            views, turns, centres = _presented(seen, part, gauges[part], rng)
            z, where = head(views)
            square = (under_gauges(where, turns) - turned_centres(centres)).square().sum(dim=-1)
            branches = (turn_branches(z, turns) + CELLS * square).mean(dim=1)
            remembered = cache.remember(torch.from_numpy(part), branches) if run.loss == "cached" else None
            best = (branches if remembered is None else remembered).argmin(dim=1)
            own = torch.from_numpy(gauges[part])
            known = torch.from_numpy(part) < (1.0 if run.loss == "fixed" else run.told) * puzzles
            # Branch g_p is the true one; `random` takes the labels as they are.
            picked = torch.zeros_like(own) if run.loss == "random" else torch.where(known, own, best)
            at = picked[:, None]
            loss = branches.gather(1, at).squeeze(1)
            if run.loss == "soft-min":
                loss = torch.where(known, loss, chosen(branches, run.loss, temperature))
            optimiser.zero_grad(set_to_none=True)
            loss.mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            winners[part] = (picked.numpy() - gauges[part]) % z4.ORDER
            losses[part] = loss.detach().numpy()
            cells[part] = square.mean(dim=1).gather(1, at).squeeze(1).detach().numpy()
        right, relative = evaluate(head, unseen, rng)
        epochs.append(Epoch(losses.mean(), cells.mean(), float((winners != before).mean()), right, relative))
        before = winners
        report(epoch + 1)
    return epochs


def _presented(
    puzzles: TinyPuzzles, part: NDArray[np.int64], gauges: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Some puzzles, each turned by -g, their fragments turned once more by r.

    Shapes: -> views (P, N, 4, D), turns (P, N) = -r in the turned canvas, centres (P, N, 2) there.
    """
    turns = rng.integers(0, z4.ORDER, puzzles.centres[part].shape[:2])
    first = -turns - gauges[:, None]
    order = (first[..., None] + np.arange(z4.ORDER)) % z4.ORDER
    views = np.take_along_axis(puzzles.views[part], order[..., None], axis=2)
    centres = turned_centres(torch.from_numpy(puzzles.centres[part]))
    at = torch.from_numpy(-gauges % z4.ORDER)[:, None, None, None].expand(*turns.shape, 1, 2)
    return torch.from_numpy(views), torch.from_numpy(turns), centres.gather(2, at).squeeze(2)


@torch.no_grad()
def evaluate(head: TinyHead, puzzles: TinyPuzzles, rng: np.random.Generator) -> tuple[float, float]:
    """Turns right up to one turn for all puzzles, and pairs of one puzzle whose relative turns are right."""
    count = len(puzzles.views)
    views, turns, _ = _presented(puzzles, np.arange(count), np.zeros(count, dtype=np.int64), rng)
    off = (head(views)[0].argmax(dim=-1) - turns).numpy() % z4.ORDER
    right = np.bincount(off.ravel(), minlength=z4.ORDER).max() / off.size
    i, j = np.triu_indices(off.shape[1], 1)
    return float(right), float((off[:, i] == off[:, j]).mean())
