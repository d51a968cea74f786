"""A matcher small enough to train in a test; as a script, one process of a distributed run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from jigsync.learn.loop import LoopOptions, train
from jigsync.learn.matcher import MatcherOptions
from jigsync.learn.matcher_task import MatcherTask
from jigsync.learn.mixture import Kind, pictures_of

TINY = MatcherOptions(fine=8, width=8, dilations=(1,), code=4)
QUICK = LoopOptions(steps=6, samples=2, window=2, warm=1, log_every=1, validate_every=3, save_minutes=0.0, workers=0)
FEW = {"gapped": Kind(1.0, rim=(0.02, 0.1)), "worn": Kind(1.0, (0, 10), (0.02, 0.1), (0, 0.1))}


class QuickTask(MatcherTask):
    """The matcher's task with few, small puzzles."""

    def validation(self) -> dict[str, list[Any]]:
        return {"worn": [self.data(0).sample(10_000)]}


def quick_task(images: Path) -> QuickTask:
    pictures = pictures_of([images])
    return QuickTask(pictures, pictures, seed=3, options=TINY, mixture=FEW)


if __name__ == "__main__":
    train(quick_task(Path(sys.argv[1])), Path(sys.argv[2]), replace(QUICK, steps=int(sys.argv[3])))
