"""Losses over unknown gauges: they agree with the vocabulary of turns, and the small study shows the plateau."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
torch.set_num_threads(1)

from jigsync.evaluate.progress import silent  # noqa: E402
from jigsync.learn.collapse import Run, TinyPuzzles, train_head  # noqa: E402
from jigsync.learn.gauge_loss import LOSSES, GaugeCache, chosen, turn_branches, turned_centres, under_gauges  # noqa: E402
from jigsync.studies import collapse  # noqa: E402
from jigsync.values import z4  # noqa: E402
from jigsync.values.layout import Grid  # noqa: E402


def test_centres_turn_as_cells_do() -> None:
    cells = np.array([(0, 1), (2, 0), (1, 1)])
    centres = torch.from_numpy((cells[:, ::-1] + 0.5) / 3)
    turned = turned_centres(centres)
    for g in range(4):
        want = (z4.turn_cells(cells, Grid(3, 3).shape, g)[:, ::-1] + 0.5) / 3
        np.testing.assert_allclose(turned[:, g].numpy(), want, atol=1e-12)


def test_branches_are_those_of_turns_plus_gauge() -> None:
    torch.manual_seed(0)
    z, turns = torch.randn(5, 3, 4), torch.randint(0, 4, (5, 3))
    four = turn_branches(z, turns)
    for g in range(4):
        want = torch.nn.functional.cross_entropy(z.flatten(0, 1), (turns.flatten() + g) % 4, reduction="none")
        torch.testing.assert_close(four[..., g].flatten(), want)
    cells = torch.randn(5, 3, 4, 2)
    assert torch.equal(under_gauges(cells, turns)[2, 1, 3], cells[2, 1, (int(turns[2, 1]) + 3) % 4])


def test_losses_choose_as_they_say() -> None:
    branches = torch.tensor([[3.0, 1.0, 2.0, 4.0], [0.5, 0.6, 0.7, 0.8]])
    assert chosen(branches, "fixed").tolist() == [3.0, 0.5]
    assert chosen(branches, "min").tolist() == chosen(branches, "soft-min", 0.0).tolist() == [1.0, 0.5]
    torch.testing.assert_close(chosen(branches, "soft-min", 1e-3), torch.tensor([1.0, 0.5]), atol=1e-4, rtol=0)
    warm = chosen(branches, "soft-min", 2.0)
    torch.testing.assert_close(warm, -2 * torch.log(torch.exp(-branches / 2).sum(dim=1)))
    assert chosen(branches, "cached", remembered=-branches).tolist() == [4.0, pytest.approx(0.8)]
    assert set(LOSSES) == {"fixed", "min", "soft-min", "cached"}


def test_the_cache_is_slow_to_change_its_mind() -> None:
    cache, puzzle = GaugeCache(3), torch.tensor([2])
    first = cache.remember(puzzle, torch.tensor([[1.0, 0.5, 1.0, 1.0]]))
    assert first.tolist() == [[1.0, 0.5, 1.0, 1.0]]
    for _ in range(3):
        later = cache.remember(puzzle, torch.tensor([[0.4, 0.6, 1.0, 1.0]]))
    assert int(later.argmin()) == 1
    for _ in range(20):
        later = cache.remember(puzzle, torch.tensor([[0.4, 0.6, 1.0, 1.0]]))
    assert int(later.argmin()) == 0
    assert "means" in cache.state_dict()


def planted(puzzles: int, seed: int) -> TinyPuzzles:
    """Fragments whose view is a unit vector turned with them: the turn can be read off, the cell is noise."""
    rng = np.random.default_rng(seed)
    up = np.array([0.0, -1.0]) + 0.3 * rng.standard_normal((puzzles, 4, 2))
    views = np.stack([z4.act(k, up) for k in range(4)], axis=2).astype(np.float32)
    cells = np.stack(np.divmod(np.arange(4), 2), axis=1)[:, ::-1].astype(np.float32)
    return TinyPuzzles(np.concatenate([views, np.ones_like(views)], axis=3), np.repeat(cells[None], puzzles, axis=0))


@pytest.mark.parametrize("head", ["plain", "equivariant"])
@pytest.mark.parametrize("loss", ["fixed", "min", "soft-min", "cached"])
def test_what_can_be_read_off_is_learned_under_every_loss(head: str, loss: str) -> None:
    epochs = train_head(planted(48, 0), planted(16, 1), Run(head, loss, "turned", epochs=30, rate=1e-2), 3)
    assert epochs[-1].right > 0.9
    assert epochs[-1].flips < 0.1


def test_random_gauges_leave_a_plain_head_at_the_plateau() -> None:
    epochs = train_head(planted(64, 0), planted(16, 1), Run("plain", "random", "redrawn", epochs=30), 3)
    assert epochs[-1].right < 0.5
    assert epochs[-1].cell == pytest.approx(0.5, abs=0.03)  # (n + 1) / (6 (n - 1)) at n = 2


def test_the_study_writes_predicted_beside_measured(tmp_path: pytest.TempPathFactory) -> None:
    result = collapse.run_cases(collapse.PLATEAUS[:1], 1, 12, (8, 4), 1, 0, silent)
    assert len(result.rows) == 12
    (value,) = result.compared
    assert value.paper == 0.3335
    assert "predicted 0.3333" in value.verdict
    assert "predicted 0.3333" in result.verdict
