"""The four ways up of an assembly, side by side, and how likely each is."""

from __future__ import annotations

import math
from typing import Final

from PIL import Image

from jigsync.render.style import PAPER, write
from jigsync.solution import Solution
from jigsync.values import angles, z4
from jigsync.values.gauge import Gauge
from jigsync.values.puzzle import Puzzle

SIDE: Final = 360
"""Longest side of each picture, px."""


def ways(gauge: Gauge) -> list[tuple[int, float]]:
    """Quarter turns further than reported, and the probability of all angles that are nearest to each."""
    nearest = [angles.nearest_turns(angle) for angle in gauge.angles]
    shares = [
        sum(p for k, p in zip(nearest, gauge.probabilities, strict=True) if k == turns) for turns in range(z4.ORDER)
    ]
    return list(enumerate(shares))


def four_ways(puzzle: Puzzle, solution: Solution) -> Image.Image:
    """One opaque RGB picture: the assembly as reported and after one, two and three further quarter turns."""
    whole = solution.assemble(puzzle)
    scale = SIDE / max(whole.size)
    small = whole.resize([max(1, round(side * scale)) for side in whole.size], Image.Resampling.LANCZOS)
    margin, size = SIDE // 15, SIDE // 18
    page = Image.new("RGB", (z4.ORDER * (SIDE + margin) + margin, SIDE + 2 * margin + 2 * size), PAPER)
    for turns, share in ways(solution.gauge):
        picture = small.rotate(math.degrees(angles.of_turns(turns)), expand=True)
        left = margin + turns * (SIDE + margin)
        at = left + (SIDE - picture.width) // 2, margin + 2 * size + (SIDE - picture.height) // 2
        page.paste(picture, at, picture)
        words = "as solved" if turns == 0 else f"turned by {90 * turns} degrees"
        write(page, f"{words}: {share:.0%}", (left + SIDE / 2, margin + size / 2), size, anchor="mm")
    return page
