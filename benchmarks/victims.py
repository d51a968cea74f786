"""Commands that faults are done to: how each is started, and what of its output must not depend on the fault."""

from __future__ import annotations

import csv
import ctypes
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jigsync import data
from jigsync.io.images import read_rgb, write_png

PATIENCE: Final = 900.0
"""Seconds after which a command counts as hung."""
CLOCKS: Final = ("seconds", "seconds_measuring", "measured", "samples_per_s", "sha256", "out")
"""Columns and keys that tell the time, the checksum over them, and where the output is."""

Outcome = Mapping[str, str]
"""What must come out the same: name -> hash."""


@dataclass(frozen=True)
class Victim:
    """A command that works towards a folder.

    Attributes:
        command: folder -> the whole command line.
        outcome: folder -> what must come out the same.
    """

    name: str
    command: Callable[[Path], list[str]]
    outcome: Callable[[Path], Outcome]


@dataclass(frozen=True)
class Ended:
    """A process that ended by itself, or was killed (code -9)."""

    code: int
    said: str
    seconds: float

    @property
    def sentences(self) -> list[str]:
        """What it complained about."""
        return [line for line in self.said.splitlines() if line.startswith("jigsync:")]


def start(command: list[str], **options: Any) -> subprocess.Popen[str]:
    """Starts a command in a process group of its own."""
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    """Waits for it."""
    begun = time.monotonic()
    try:
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise RuntimeError(f"It hung: {process.args!r}") from None
    return Ended(process.returncode, said, time.monotonic() - begun)


def run(command: list[str], **options: Any) -> Ended:
    """Runs a command to its end."""
    return finish(start(command, **options))


def obey_modes() -> None:
    """For `preexec_fn`: root, too, may only read and write what a file's mode allows."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def alive(group: int) -> bool:
    """Does a process of this group run?"""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def pictures(folder: Path, count: int = 3) -> Path:
    """Small pictures to work on."""
    for name in data.names()[:count]:
        write_png(folder / f"{name}.png", read_rgb(data.picture(name))[:200, :260])
    return folder


def jigsync(*args: str) -> list[str]:
    """A command line of ours."""
    return [sys.executable, "-m", "jigsync", *args]


# ---------------------------------------------------------------------------------------------- outcomes


def _hash(value: bytes | str) -> str:
    return hashlib.sha256(value if isinstance(value, bytes) else value.encode()).hexdigest()


def whole_tree(folder: Path) -> Outcome:
    """Every byte of every file; only locks do not count."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): _hash(path.read_bytes()) for path in files}


def _timeless(value: Any) -> Any:
    """JSON values without what the clock says."""
    if isinstance(value, dict):
        return {key: _timeless(part) for key, part in value.items() if key not in CLOCKS}
    return [_timeless(part) for part in value] if isinstance(value, list) else value


def _timeless_csv(path: Path) -> str:
    rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    kept = [{key: value for key, value in row.items() if key not in CLOCKS} for row in rows]
    return json.dumps([row for row in kept if row.get("measure") not in CLOCKS])


def scores(folder: Path) -> Outcome:
    """Scores, results, truths and predictions of an evaluation, and how many there are."""
    found = {"scores.csv": _hash(_timeless_csv(folder / "scores.csv"))}
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    found["results.json"] = _hash(json.dumps(_timeless(results)))
    for path in sorted((folder / "predictions").glob("*/*.jsonl")):
        lines = [_timeless(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
        if lines[0]["outcome"] != "answered":
            raise RuntimeError(f"{path} says: {lines[0]['reason']}")  # comparing failures would prove nothing
        found[str(path.relative_to(folder))] = _hash(json.dumps(lines))
    for path in sorted((folder / "truths").glob("*.json")):
        found[str(path.relative_to(folder))] = _hash(path.read_bytes())
    return found


def trained(folder: Path) -> Outcome:
    """Curves and weights of a training."""
    from jigsync.learn import checkpoint

    found = {name: _hash(_timeless_csv(folder / name)) for name in ("curve.csv", "validation.csv")}
    for name in (checkpoint.LAST, checkpoint.BEST):
        _, progress, groups = checkpoint.load(folder / name)
        flat = {f"{group}/{key}": tensor for group, named in groups.items() for key, tensor in named.items()}
        found[name] = f"step {progress.step} best {progress.best} {checkpoint.tensors_sha256(flat)}"
    found["leftovers"] = str(len(list(folder.glob(".jigsync-*"))))
    return found


# ---------------------------------------------------------------------------------------------- the commands


def sweep_victim(images: Path, per_image: int = 8) -> Victim:
    """`jigsync sweep`: some shards of small puzzles, two workers."""
    options = ("--grids", "2x3,2", "--severities", "clean,medium,heavy", "--per-image", str(per_image))
    more = ("--cell", "16", "--seed", "3", "--workers", "2", "--shards")
    return Victim("sweep", lambda out: jigsync("sweep", str(images), "--out", str(out), *options, *more), whole_tree)


def eval_victim(images: Path, grids: str = "2x3,3") -> Victim:
    """`jigsync eval`: two solvers on small puzzles, one process."""
    options = ("--grids", grids, "--severities", "clean,light", "--cell", "24", "--solvers", "jigsync,greedy")
    more = ("--workers", "1", "--gallery", "1")
    return Victim(
        "eval", lambda out: jigsync("eval", "--images", str(images), "--out", str(out), *options, *more), scores
    )


LESS: Final = """
import sys
from jigsync.learn import loop
whole = loop.LoopOptions
loop.LoopOptions = lambda **options: whole(**{"warm": 4, **options})
from jigsync.cli import main
sys.exit(main())
"""
"""The command line, with 4 chunks of samples instead of 48 before the first step of a training."""


def train_victim(images: Path, steps: int = 50) -> Victim:
    """`jigsync train`: the smallest of the models, a checkpoint at every log."""
    options = ("--steps", str(steps), "--samples", "1", "--reuse", "1000", "--validate-every", "25")
    more = ("--save-minutes", "0", "--workers", "0", "--seed", "3")
    command = [sys.executable, "-c", LESS, "train", "continuous", "--images", str(images), *options, *more]
    return Victim("train", lambda out: [*command, "--out", str(out)], trained)
