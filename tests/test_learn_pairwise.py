"""The pairwise model: turning or exchanging fragments moves its 192 logits as the vocabulary says, exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
torch.set_num_threads(1)

from sides import cut  # noqa: E402

from jigsync.learn import checkpoint  # noqa: E402
from jigsync.learn.export import check_golden, export_run  # noqa: E402
from jigsync.learn.lite0 import FEATURES  # noqa: E402
from jigsync.learn.pairwise import PairBatch, Pairwise, PairwiseOptions  # noqa: E402
from jigsync.measure.described import HEADS  # noqa: E402
from jigsync.measure.pairwise import Mixing, PairwiseModel  # noqa: E402
from jigsync.score.true_relations import relations_of  # noqa: E402
from jigsync.values import vocabulary as v  # noqa: E402
from jigsync.values.errors import FormatError  # noqa: E402

SMALL = PairwiseOptions(code=16, hidden=16, rounds=1, heads=2)


@pytest.fixture(scope="module")
def model() -> Pairwise:
    torch.manual_seed(0)
    return Pairwise(SMALL).eval()


@pytest.fixture(scope="module")
def features() -> torch.Tensor:
    return torch.randn(5, 4, FEATURES + HEADS, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("turns", [1, 2, 3])
@torch.no_grad()
def test_turning_a_fragment_moves_its_logits(model: Pairwise, features: torch.Tensor, turns: int) -> None:
    before = model.logits(features)
    stored = features.clone()
    stored[2] = features[2].roll(-turns, dims=0)  # view k of what is stored turned is view k + turns of before
    after = model.logits(stored)
    others = [0, 1, 3, 4]
    torch.testing.assert_close(after[2, others][:, v.TURN_I[turns].tolist()], before[2, others])
    torch.testing.assert_close(after[others, 2][:, v.TURN_J[turns].tolist()], before[others, 2])
    assert not torch.allclose(after[2, 0], before[2, 0])
    torch.testing.assert_close(after[0, 1], before[0, 1])


@torch.no_grad()
def test_reversed_pairs_and_other_orders_agree(model: Pairwise, features: torch.Tensor) -> None:
    logits = model.logits(features)
    torch.testing.assert_close(logits[3, 1][v.REVERSE.tolist()], logits[1, 3])
    order = torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(model.logits(features[order]), logits[order][:, order])


@torch.no_grad()
def test_only_context_sees_the_others(model: Pairwise, features: torch.Tensor) -> None:
    alone = Pairwise(PairwiseOptions(code=16, hidden=16, rounds=0)).eval()
    changed = features.clone()
    changed[4] = features[4].flip(1)
    torch.testing.assert_close(alone.logits(changed)[0, 1], alone.logits(features)[0, 1])
    assert not torch.allclose(model.logits(changed)[0, 1], model.logits(features)[0, 1])


def test_relations_are_those_of_the_truth() -> None:
    puzzle, truth = cut("severe", (3, 4), 64)
    relations = relations_of(puzzle, truth)
    apart = ~np.eye(len(puzzle), dtype=bool)
    assert (relations[~apart] == -1).all()
    assert (v.REVERSE[relations.T[apart]] == relations[apart]).all()
    assert v.IS_UNIT[relations[apart]].sum() == 2 * (3 * 3 + 2 * 4)


def test_planted_relations_are_learned() -> None:
    """The unary head's own answer, where it is right, is enough to tell every relation."""
    torch.manual_seed(0)
    puzzle, truth = cut("severe", (3, 4), 64)
    relations = torch.from_numpy(relations_of(puzzle, truth))
    features = torch.zeros(len(puzzle), 4, FEATURES + HEADS)
    for k, fragment in enumerate(puzzle.ids):
        placed = truth.placement[fragment]
        features[k, placed.turns, FEATURES:] = torch.tensor([3.0, placed.col - 1.5, placed.row - 1.0, -2.0])
    network = Pairwise(PairwiseOptions(code=32, hidden=48, rounds=0))
    optimiser = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(60):
        loss, _ = network(PairBatch((features,), (relations,)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    _, log = network.eval()(PairBatch((features,), (relations,)))
    assert float(log["right"]) > 0.8


def test_the_export_takes_any_puzzle_and_only_its_encoder(
    model: Pairwise, features: torch.Tensor, tmp_path: Path
) -> None:
    config = {"model": "pairwise", "network": {**vars(SMALL), "encoder_sha256": "abc"}}
    checkpoint.save(tmp_path / checkpoint.BEST, config, checkpoint.Progress(1), {"average": model.state_dict()})
    out = tmp_path / "p.onnx"
    assert export_run([tmp_path], out, {}) < 0.01
    assert check_golden(out) < 0.01
    data = out.read_bytes()
    deployed = PairwiseModel(data, "p.onnx", "abc", Mixing())
    with torch.no_grad():
        want = model.logits(features).numpy()
    np.testing.assert_allclose(deployed.logits(features.numpy()), want, atol=0.01)
    with pytest.raises(FormatError, match=r"must have encoder_sha256 'other'. They have 'abc'"):
        PairwiseModel(data, "p.onnx", "other", Mixing())
