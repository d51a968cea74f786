"""The training loop of every model: batches by counter, AdamW or Muon, a running average, checkpoints, a curve.

Resumable: a run killed at any moment goes on from its last checkpoint and gives the same curve, because a step's
samples, augmentation, rate and dropped features are functions of (seed, step) and logged means start afresh at every
checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from jigsync import __version__
from jigsync.cutting.seeds import derive_seed
from jigsync.io.files import remove_leftovers
from jigsync.learn import checkpoint, curve
from jigsync.learn.chunks import SIZE, Chunks, Data, Sample
from jigsync.learn.muon import Muon
from jigsync.values.errors import OptionError

RISE: Final = 100
FALL: Final = 0.3
LEAST: Final = 0.02


class Task(Protocol):
    """A model to train. `model()(batch)` returns the loss and what to log; `muon` says whether Muon trains it."""

    muon: ClassVar[bool]

    @property
    def name(self) -> str: ...

    @property
    def seed(self) -> int: ...

    def config(self) -> dict[str, Any]: ...

    def data_config(self) -> dict[str, Any]: ...

    def data(self, rank: int) -> Data: ...

    def model(self) -> nn.Module: ...

    def batch(self, samples: Sequence[Sample], rng: np.random.Generator) -> Any: ...

    def validation(self) -> Any: ...

    def validate(self, model: nn.Module, sets: Any) -> dict[str, float]: ...


@dataclass(frozen=True)
class LoopOptions:
    """How long and how fast.

    Attributes:
        steps: of the whole run; a run may be resumed with another number until the rate begins to fall.
        samples: a step and process.
        reuse: how often a sample is seen, on average.
        window: chunks that samples are drawn from.
        warm: chunks before the first step: of few samples a network learns the samples, not what they show.
        rate: highest learning rate; it rises over RISE steps and falls to LEAST of itself over the last FALL.
        decay: of the weights.
        clip: largest norm of a gradient.
        average: how much of the running average of the weights a step keeps.
        log_every, validate_every: steps.
        save_minutes: between checkpoints.
        threads: of torch.
        workers: processes that cut puzzles; 0 cuts between the steps.
    """

    steps: int = 10_000
    samples: int = 6
    reuse: float = 4.0
    window: int = 192
    warm: int = 48
    rate: float = 1e-3
    decay: float = 0.01
    clip: float = 1.0
    average: float = 0.998
    log_every: int = 25
    validate_every: int = 500
    save_minutes: float = 4.0
    threads: int = 1
    workers: int = 1

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        rise = min(1.0, (step + 1) / RISE)
        fall = min(1.0, (self.steps - step) / (FALL * self.steps))
        return self.rate * rise * max(fall, LEAST)

    def chunks_at(self, step: int) -> tuple[int, int]:
        """First and last chunk of a step's window."""
        last = self.warm - 1 + int(step * self.samples / (self.reuse * SIZE))
        return max(0, last - self.window + 1), last


@dataclass(frozen=True)
class Report:
    """What a caller is told at every log: finished steps, all steps, samples a second, seconds left, means."""

    step: int
    steps: int
    rate: float
    left: float
    means: Mapping[str, float]


def train(
    task: Task,
    out: Path,
    options: LoopOptions,
    report: Callable[[Report], None] = lambda _: None,
    start: Sequence[Path] = (),
) -> dict[str, float]:
    """Trains into the folder `out`, or goes on with the run that is there; returns the last validation.

    A new run starts from random weights, or from the best ones of the runs `start`, averaged. Processes that train
    together leave their group at the end: what is trained next needs a new launch.

    Writes last.safetensors, previous.safetensors (the one before it), best.safetensors (best validation of the running
    average), curve.csv, validation.csv and curve.png.
    """
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    torch.set_num_threads(options.threads)
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision="no")
    rank, chief = accelerator.process_index, accelerator.is_main_process
    set_seed(derive_seed("model", task.seed) % 2**31)
    network = task.model()
    make = Muon if task.muon else torch.optim.AdamW
    optimiser = make(network.parameters(), lr=options.rate, weight_decay=options.decay)
    if start:
        checkpoint.restore(network, checkpoint.best_weights(start), start[0] / checkpoint.BEST)
    average = {name: value.detach().clone() for name, value in network.state_dict().items()}
    config = {
        "model": task.name,
        "network": task.config(),
        "data": task.data_config(),
        "loop": asdict(options),
        "optimiser": type(optimiser).__name__,
        "seed": task.seed,
        "processes": accelerator.num_processes,
        "start": [str(run) for run in start] or None,
        "version": __version__,
    }
    if chief:
        remove_leftovers(out)
    progress = checkpoint.Progress()
    found = checkpoint.load_last(out)
    if found is not None:
        old, progress, groups = found
        last = out / checkpoint.LAST
        _check_same(old, config, last)
        checkpoint.restore(network, checkpoint.named_tensors(groups, "model", last), last)
        average = checkpoint.named_tensors(groups, "average", last)
        checkpoint.restore_optimiser(optimiser, network, checkpoint.named_tensors(groups, "optimiser", last))
    model, optimiser = accelerator.prepare(network, optimiser)
    chunks = Chunks(task.data(rank), out / f"chunks-{rank}", options.workers)
    sets = task.validation() if chief else None
    log = curve.Curve(out, progress.curves) if chief else None
    if log is not None:
        log.flush()  # also of a finished run: whoever lost the files gets them again
    begin = time.monotonic() - progress.seconds
    saved, seen_since, clock = time.monotonic(), 0, time.monotonic()
    sums: dict[str, float] = {}
    validated: dict[str, float] = {}
    best = progress.best
    try:
        for step in range(progress.step, options.steps):
            rng = np.random.default_rng(derive_seed("step", task.seed, step, rank))
            torch.manual_seed(derive_seed("network", task.seed, step, rank) % 2**31)  # what the network leaves out
            window = chunks.window(*options.chunks_at(step))
            picked = rng.choice(len(window), options.samples, replace=False)
            batch = task.batch([window[k] for k in picked], rng)
            for group in optimiser.param_groups:
                group["lr"] = options.rate_at(step)
            loss, means = model(batch)
            optimiser.zero_grad(set_to_none=True)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), options.clip)
            optimiser.step()
            with torch.no_grad():
                for name, value in network.state_dict().items():
                    average[name].lerp_(value, 1 - min(options.average, (step + 1) / (step + 10)))
            for name, value in {"loss": loss, **means}.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach())
            seen_since += options.samples
            done = step + 1
            if log is None or (done % options.log_every and done != options.steps):
                continue
            now = time.monotonic()
            since = done - max(progress.step, (done - 1) // options.log_every * options.log_every)
            row = {name: total / since for name, total in sums.items()}
            speed, seen_since, sums, clock = seen_since / (now - clock), 0, {}, now
            log.add(done, options.rate_at(step), speed * accelerator.num_processes, row)
            left = (now - begin) / done * (options.steps - done)
            report(Report(done, options.steps, speed * accelerator.num_processes, left, row))
            final = done == options.steps
            if done % options.validate_every == 0 or final:
                validated = _validate(task, average, sets)
                log.add_validation(done, validated)
                report(Report(done, options.steps, speed * accelerator.num_processes, left, validated))
                if validated["score"] > best:
                    best = validated["score"]
                    state = checkpoint.Progress(done, best, now - begin)
                    checkpoint.save(out / checkpoint.BEST, config, state, {"average": average})
            if final or now - saved > 60 * options.save_minutes:
                state = checkpoint.Progress(done, best, now - begin, log.rows)
                groups = {
                    "model": network.state_dict(),
                    "average": average,
                    "optimiser": checkpoint.optimiser_tensors(optimiser, network),
                }
                log.flush()
                checkpoint.save_last(out, config, state, groups)
                saved = time.monotonic()
    finally:
        chunks.close()
    # A process that leaves while its group stands may be aborted by the group's own threads, and the launcher then
    # kills the chief, who may still be saving.
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return validated


def _validate(task: Task, average: dict[str, Tensor], sets: Any) -> dict[str, float]:
    """Validation of the running average, in evaluation mode."""
    network = task.model()
    network.load_state_dict(average)
    return task.validate(network.eval(), sets)


def _check_same(old: dict[str, Any], new: dict[str, Any], path: Path) -> None:
    """A run goes on only as it began; speed (threads, workers, how often it saves) may differ."""
    free = ("threads", "workers", "save_minutes", "steps")
    for key in ("model", "network", "data", "optimiser", "seed", "processes", "start"):
        if _plain(old.get(key)) != _plain(new[key]):
            raise OptionError(f"The run '{path.parent}' has {key} {old.get(key)}, not {new[key]}: name a new folder.")
    for key, value in new["loop"].items():
        if key not in free and old["loop"].get(key) != value:
            raise OptionError(
                f"The run '{path.parent}' has {key} {old['loop'].get(key)}, not {value}: name a new folder."
            )


def _plain(value: Any) -> Any:
    """Tuples as the lists that JSON makes of them."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
