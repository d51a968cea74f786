"""Solves twenty fixed puzzles and writes their solutions down, or checks that they still come out the same.

python tools/golden.py --write              after new weights, or a change that is meant to change answers
python tools/golden.py --check              (exit code 1 when a solution differs; names the puzzle and what differs)
python tools/golden.py --check --threads 2  the same with another number of threads

tests/golden/solutions.json holds the recipe of every puzzle and its solution by each measurer. Slots and turns must be
equal; energies within ENERGY of each other, because BLAS and onnxruntime add up in another order on another machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from jigsync import api, data
from jigsync.solution import Solution
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth

TARGET: Final = Path(__file__).parents[1] / "tests" / "golden" / "solutions.json"
FORMAT: Final = "jigsync-golden/1"
MEASURERS: Final = ("learned", "boundary")
ENERGY: Final = 1e-2
"""Largest relative difference of two energies that are the same."""


@dataclass(frozen=True)
class Recipe:
    """All that a puzzle and its solve are made from.

    Attributes:
        lost: so many fragments are taken away, the first ones as presented; then the grid is told, and has holes.
    """

    picture: str
    grid: str
    severity: str
    cell: int
    seed: int
    lost: int = 0

    @property
    def name(self) -> str:
        """Short and unique."""
        holes = f"-lost{self.lost}" if self.lost else ""
        return f"{self.picture}-{self.grid}-{self.severity}-{self.cell}-{self.seed}{holes}"

    def make(self) -> tuple[Puzzle, Truth]:
        """The puzzle, and the truth of the whole one."""
        made, truth = api.cut_with_truth(
            data.picture(self.picture), self.grid, self.severity, cell=self.cell, seed=self.seed
        )
        kept = Fragments(made.ids[self.lost :], made.fragments.pixels[self.lost :])
        return Puzzle(kept, made.cell, made.container, self.name), truth


# Solved by both measurers with a clear margin, so that a cosmetic change of the weights or another machine's rounding
# changes nothing. At the severity `eroded` the measurer `boundary` has no such puzzle.
RECIPES: Final = tuple(
    Recipe(*given)
    for given in (
        ("astronaut", "2x3", "clean", 48, 11),
        ("astronaut", "3x3", "medium", 48, 12),
        ("astronaut", "3x4", "heavy", 64, 13),
        ("astronaut", "2x5", "severe", 64, 56),
        ("astronaut", "4x4", "light", 48, 15, 2),
        ("chelsea", "3x2", "light", 48, 55),
        ("chelsea", "3x3", "heavy", 64, 22),
        ("chelsea", "1x4", "medium", 64, 23),
        ("chelsea", "5x4", "clean", 32, 24),
        ("chelsea", "3x4", "medium", 64, 51, 1),
        ("coffee", "2x2", "heavy", 64, 55),
        ("coffee", "3x3", "medium", 64, 32),
        ("coffee", "4x3", "light", 48, 33),
        ("coffee", "2x4", "heavy", 64, 34),
        ("coffee", "3x5", "clean", 48, 35, 3),
        ("rocket", "3x3", "clean", 48, 41),
        ("rocket", "4x2", "medium", 64, 42),
        ("rocket", "3x4", "heavy", 64, 43),
        ("rocket", "5x5", "light", 40, 44),
        ("rocket", "3x3", "light", 64, 45, 1),
    )
)


def solve(recipe: Recipe, puzzle: Puzzle, measurer: str, threads: int) -> Solution:
    """The solution of a puzzle by one measurer."""
    grid = recipe.grid if recipe.lost else None
    return api.solve(puzzle, measurer=measurer, grid=grid, seed=recipe.seed, threads=threads)


def answer(solution: Solution, truth: Truth) -> dict[str, Any]:
    """What is kept of a solution; slots and turns in the order of the puzzle's fragments, -1 is unplaced."""
    assert solution.grid is not None, solution.reason
    sure = [placed.confidence for placed in solution.placement.values() if placed.confidence is not None]
    return {
        "grid": list(solution.grid.shape),
        "slots": [-1 if p.cell is None else solution.grid.slot(*p.cell) for p in solution.placement.values()],
        "turns": [placed.turns for placed in solution.placement.values()],
        "energy": None if solution.energy is None else round(float(solution.energy), 3),
        "least_confidence": round(min(sure), 3) if sure else None,
        "gauge_confidence": round(max(solution.gauge.probabilities), 3),
        "right": any(_equals(solution.turned(turns), truth) for turns in range(4)),
    }


def _equals(solution: Solution, truth: Truth) -> bool:
    """Does every fragment stand where it belongs?"""
    found, true = solution.placement, truth.placement
    return all((found[name].cell, found[name].turns) == (true[name].cell, true[name].turns) for name in found)


def solutions(threads: int = 1) -> Iterator[dict[str, Any]]:
    """Every puzzle's entry of the file, one after the other."""
    for recipe in RECIPES:
        puzzle, truth = recipe.make()
        answers = {name: answer(solve(recipe, puzzle, name, threads), truth) for name in MEASURERS}
        yield {"recipe": asdict(recipe), "answers": answers}


def read_golden() -> dict[Recipe, dict[str, dict[str, Any]]]:
    """recipe -> measurer -> answer, from the file."""
    held = json.loads(TARGET.read_text(encoding="utf-8"))
    if held["format"] != FORMAT:
        raise ValueError(f"The file '{TARGET}' must have the format {FORMAT}. Got {held['format']} instead.")
    return {Recipe(**entry["recipe"]): entry["answers"] for entry in held["puzzles"]}


def differences(golden: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What of an answer is not as it was; empty when it is the same."""
    told = [f"{key} {golden[key]}, now {found[key]}" for key in ("grid", "slots", "turns") if golden[key] != found[key]]
    if not np.isclose(golden["energy"], found["energy"], rtol=ENERGY):
        told.append(f"energy {golden['energy']}, now {found['energy']}")
    return told


def check(threads: int) -> list[str]:
    """One line for every puzzle and measurer that gives another solution than the file says."""
    golden = read_golden()
    wrong = []
    for entry in solutions(threads):
        recipe = Recipe(**entry["recipe"])
        for measurer, found in entry["answers"].items():
            told = differences(golden[recipe][measurer], found) if recipe in golden else ["not in the file"]
            wrong += [f"{recipe.name} by {measurer}: {'; '.join(told)}"] if told else []
    return wrong


def write() -> None:
    """Solves everything and writes the file; says how many are right."""
    entries = list(solutions())
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(f'{{"format": "{FORMAT}", "puzzles": [\n{lines}\n]}}\n', encoding="utf-8")
    for measurer in MEASURERS:
        right = [entry["answers"][measurer]["right"] for entry in entries]
        print(f"{measurer}: {sum(right)} of {len(right)} puzzles are solved rightly up to the global turn.")


def main(args: list[str]) -> int:
    """Runs the tool and returns its exit code."""
    if args == ["--write"]:
        write()
        return 0
    if args == ["--check"] or (len(args) == 3 and args[:2] == ["--check", "--threads"] and args[2].isdigit()):
        wrong = check(int(args[2]) if len(args) == 3 else 1)
        for line in wrong:
            print(line, file=sys.stderr)
        if wrong:
            print("If that is meant: python tools/golden.py --write, and commit the file.", file=sys.stderr)
        return 1 if wrong else 0
    print("usage: python tools/golden.py --write | --check [--threads N]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
