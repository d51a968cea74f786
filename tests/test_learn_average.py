"""Two processes that train on half of the samples each end where one that trains on all of them does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytest.importorskip("safetensors")

from learn_average import ALONE, EACH, Regression  # noqa: E402

from jigsync.learn import checkpoint  # noqa: E402
from jigsync.learn.loop import train  # noqa: E402

TOLERANCE = 2e-6
"""Sums in another order, six steps."""


def weights(run: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(run / checkpoint.LAST)[2]["model"]


def test_gradients_are_averaged_over_processes(tmp_path: Path) -> None:
    alone, half, both = tmp_path / "alone", tmp_path / "half", tmp_path / "both"
    train(Regression(), alone, ALONE)
    train(Regression(), half, EACH)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29581"]
    command += [str(Path(__file__).with_name("learn_average.py")), str(both)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, value in weights(alone).items():
        torch.testing.assert_close(weights(both)[name], value, atol=TOLERANCE, rtol=0)
    # Without averaging, the first process would have ended there.
    apart = max(float((weights(half)[name] - value).abs().max()) for name, value in weights(alone).items())
    assert apart > 100 * TOLERANCE, apart
