"""Muon: orthogonal steps for matrices, AdamW for the rest."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from jigsync.learn.muon import LEAST, SCALE, Muon, orthogonal  # noqa: E402

RATE = 0.01


def stepped(shape: tuple[int, ...], optimiser: type[torch.optim.Optimizer], decay: float = 0.0) -> torch.Tensor:
    """What one step adds to weights of a shape; gradients are the same for the same number of weights."""
    torch.manual_seed(0)
    weights = torch.nn.Parameter(torch.ones(shape))
    weights.grad = torch.randn(weights.numel()).view(shape)
    optimiser([weights], lr=RATE, weight_decay=decay).step()
    return weights.detach() - 1


@pytest.mark.parametrize("shape", [(24, 60), (60, 24), (16, 16)])
def test_every_direction_of_a_step_is_equally_long(shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    u = torch.randn(shape) @ torch.diag(torch.logspace(-1, 0, shape[1]))
    lengths = torch.linalg.svdvals(orthogonal(u))
    assert 0.6 < lengths.min() <= lengths.max() < 1.3
    left, _, right = torch.linalg.svd(u, full_matrices=False)
    assert (orthogonal(u) * (left @ right)).sum() > 0.8 * min(shape)


def test_a_convolution_is_the_matrix_of_its_taps() -> None:
    added = stepped((16, 10, 3), Muon)
    assert torch.equal(added.view(16, 30), stepped((16, 30), Muon))
    size = added.square().mean().sqrt()
    assert size == pytest.approx(RATE * SCALE, rel=0.35)


@pytest.mark.parametrize("shape", [(40,), (1, 40), (LEAST - 1, 40), (40, 1, 3)])
def test_the_rest_is_left_to_adamw(shape: tuple[int, ...]) -> None:
    assert torch.equal(stepped(shape, Muon, 0.1), stepped(shape, torch.optim.AdamW, 0.1))


def test_weights_decay_as_those_of_adamw() -> None:
    lost = stepped((16, 30), Muon) - stepped((16, 30), Muon, 0.5)
    assert torch.allclose(lost, torch.full_like(lost, RATE * 0.5), atol=1e-6)


def test_it_finds_a_matrix() -> None:
    torch.manual_seed(2)
    true, found = torch.randn(12, 20), torch.nn.Parameter(torch.zeros(12, 20))
    optimiser = Muon([found], lr=0.05, weight_decay=0.0)
    for _ in range(200):
        loss = (torch.randn(64, 20) @ (found - true).T).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (found - true).norm() < 0.15 * true.norm()
