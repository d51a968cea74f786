"""Muon (Jordan et al. 2024): AdamW, but matrices step along their orthogonalised momentum.

    m <- mu m + (1 - mu) g,   u = (1 - mu) g + mu m,   W <- (1 - rate decay) W - rate SCALE sqrt(max(rows, cols)) U V^T

with u = U diag(s) V^T: every direction that the gradient speaks of goes equally far. SCALE makes the root mean square
of a step that of AdamW's (Liu et al. 2025), so that rate and decay mean the same for both. A convolution is the matrix
(out, in * taps). The boundary matcher learned more from as many puzzles with it (docs/training.md).

torch.optim.Muon takes matrices only: neither convolutions nor the rest of a network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

MOMENTUM: Final = 0.95
SCALE: Final = 0.2
LEAST: Final = 8
"""Matrices of fewer rows or columns are left to AdamW."""
QUINTIC: Final = (3.4445, -4.7750, 2.0315)
"""a, b, c of s <- a s + b s^3 + c s^5, which takes singular values in (0, 1] near 1 in ROUNDS (within some 30 %)."""
ROUNDS: Final = 5


class Muon(torch.optim.AdamW):
    """AdamW for vectors, small matrices and scales; orthogonal steps for the rest."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """One step; the gradients of matrices are gone afterwards, so that AdamW leaves those alone."""
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is None or min(_matrix(weights).shape) < LEAST:
                    continue
                state = self.state[weights]
                if not state:  # AdamW wants to find a step wherever there is a state
                    state.update(step=torch.zeros(()), momentum=torch.zeros_like(weights))
                momentum = state["momentum"]
                momentum.lerp_(weights.grad, 1 - MOMENTUM)
                along = orthogonal(_matrix(weights.grad.lerp(momentum, MOMENTUM)))
                weights.mul_(1 - group["lr"] * group["weight_decay"])
                weights.add_(along.view_as(weights), alpha=-group["lr"] * SCALE * max(along.shape) ** 0.5)
                weights.grad = None
        return super().step(closure)


def orthogonal(u: Tensor) -> Tensor:
    """About U V^T of u = U diag(s) V^T, by Newton-Schulz iteration. Shapes: (R, C) -> (R, C)."""
    a, b, c = QUINTIC
    x: Tensor = u if u.shape[0] <= u.shape[1] else u.T
    x = x / x.norm().clamp_min(1e-7)
    for _ in range(ROUNDS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x if u.shape[0] <= u.shape[1] else x.T


def _matrix(weights: Tensor) -> Tensor:
    """(out, in, ...) -> (out, in * ...); what has less than two axes is one row."""
    return weights.reshape(len(weights), -1) if weights.ndim > 1 else weights.reshape(1, -1)
