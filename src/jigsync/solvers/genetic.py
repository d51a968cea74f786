"""Sholomon, David and Netanyahu 2013: a population of placements, bred by kernel growth.

Each generation keeps the fittest few as they are and breeds the others: two parents are drawn by roulette (the
chance of being drawn is proportional to fitness above the worst), and the child grows from one fragment by the
three phases of engine/src/breed.c: fragments the parents agree on, best buddies one parent has, the most
compatible fragment left. Mutation: now and then a random fragment takes the place of an agreed or most compatible one.

An individual is (slots, turns), and for the crossover `touch[s]`, the side that side s touches (-1: none).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jigsync.engine.native import Breeding, breed
from jigsync.solvers.base import Assignment, Budget, Pins, SolveRequest, over_grids
from jigsync.solvers.energy import Ints, energy_of, score_pairs
from jigsync.solvers.table import SideTable
from jigsync.values import z4
from jigsync.values.arrangement import Arrangement
from jigsync.values.errors import bad_value
from jigsync.values.layout import Grid

ELITE = 4
SKIP_AGREED = 0.001  # chance of a random fragment where both parents agree
SKIP_BEST = 0.005  # ... where the most compatible one would go
PATIENCE = 12  # generations without a better individual after which it stops
BATCH = 400_000  # fragments placed between two looks at the clock

Placements = NDArray[np.int32]
"""One row an individual: slots (P, N), turns (P, N) or touching sides (P, 4N)."""


class People(NamedTuple):
    """A population, or a part of one.

    Shapes: slots (P, N), turns (P, N), fitness (P,).
    """

    slots: Placements
    turns: Placements
    fitness: NDArray[np.float64]

    def some(self, which: slice | Ints) -> People:
        """A part of them."""
        return People(self.slots[which], self.turns[which], self.fitness[which])

    @classmethod
    def fittest_first(cls, parts: list[People]) -> People:
        """All of them in falling fitness."""
        people = cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return people.some(np.argsort(-people.fitness, kind="stable"))


@dataclass(frozen=True)
class Genetic:
    """The genetic solver.

    Attributes:
        population: individuals a generation; None: 10 a fragment, at least 100, at most the published 1000.
        generations: at most this many.
    """

    population: int | None = None
    generations: int = 100

    name: ClassVar[str] = "genetic"
    summary: ClassVar[str] = "Population bred by kernel growth (Sholomon 2013)."
    assumes: ClassVar[str] = (
        "Published for known turns and a known grid. With unknown turns the kernel grows over pairs of sides, each"
        " fragment turned as its side demands; of unknown grids each is bred for in turn. Takes pins, holes and"
        " surplus fragments; give a time limit beyond a few hundred fragments."
    )

    def __post_init__(self) -> None:
        if self.population is not None and self.population < ELITE + 2:
            raise bad_value("population", "the solver 'genetic'", f"at least {ELITE + 2}", self.population)
        if self.generations < 1:
            raise bad_value("generations", "the solver 'genetic'", "at least 1", self.generations)

    def solve(self, request: SolveRequest) -> Assignment:
        """One population per grid."""
        table, budget = SideTable.of(request), Budget(request)
        size = self.population or min(1000, max(100, 10 * table.n))

        def attempt(grid: Grid, pins: Pins, to_beat: float) -> Arrangement:
            rng = np.random.default_rng([request.seed, grid.rows, grid.cols])
            return self._evolve(World(table, grid, pins), size, rng, request.threads, budget)

        return over_grids(request, budget, table.scores, attempt)

    def _evolve(self, world: World, size: int, rng: np.random.Generator, threads: int, budget: Budget) -> Arrangement:
        people = world.random(size, rng)
        waited = 0
        with ThreadPoolExecutor(threads) as pool:
            for generation in range(self.generations):
                best, done = float(people.fitness[0]), generation / self.generations
                if waited >= PATIENCE or not budget.go_on("breed", done, energy_of(best)):
                    break
                breed_some = world.plan(people, rng)
                bred = [people.some(slice(ELITE))]
                for part in np.array_split(np.arange(size - ELITE), max(1, size * world.table.n // BATCH)):
                    bred += pool.map(breed_some, [share for share in np.array_split(part, threads) if len(share)])
                    if not budget.go_on("breed", done, energy_of(best)):
                        break
                people = People.fittest_first(bred)
                waited = 0 if people.fitness[0] > best + 1e-6 else waited + 1
        return Arrangement(world.grid, people.slots[0], people.turns[0])


def roulette(fitness: NDArray[np.float64], children: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Two parents a child; the chance of being drawn is proportional to fitness above the worst.

    Shapes: (P,) -> (children, 2).
    """
    weight = fitness - fitness.min() + 1e-9 + 1e-3 * (fitness.max() - fitness.min())
    edges = np.cumsum(weight)
    drawn = np.searchsorted(edges, rng.random((children, 2)) * edges[-1], side="right")
    return np.asarray(np.minimum(drawn, len(fitness) - 1), dtype=np.int32)


class World:
    """One grid's fixed parts, and what individuals are worth in it."""

    def __init__(self, table: SideTable, grid: Grid, pins: Pins) -> None:
        self.table, self.grid, self.pins = table, grid, pins
        pinned = np.array([(i, slot, turns) for i, (slot, turns) in pins.items()], dtype=np.int32).reshape(-1, 3)
        self.rules = Breeding(
            grid, table.upright, table.rank, table.buddies.astype(np.int32), pinned, SKIP_AGREED, SKIP_BEST
        )
        self._neighbours = grid.neighbour_slots()

    def random(self, size: int, rng: np.random.Generator) -> People:
        """Random individuals: the fragments (all, or as many as fit) on random slots with random turns."""
        n, placed = self.table.n, min(self.table.n, self.grid.size)
        free = np.setdiff1d(np.arange(self.grid.size), [slot for slot, _ in self.pins.values()])
        loose = np.setdiff1d(np.arange(n), list(self.pins))
        slots = np.full((size, n), -1, dtype=np.int32)
        for row in slots:
            count = placed - len(self.pins)
            row[rng.permutation(loose)[:count]] = rng.permutation(free)[:count]
        turns = np.zeros((size, n), np.int32) if self.table.upright else rng.integers(0, 4, (size, n), dtype=np.int32)
        for fragment, (slot, pinned_turns) in self.pins.items():
            slots[:, fragment], turns[:, fragment] = slot, pinned_turns
        return People.fittest_first([People(slots, turns, self.fitness(slots, turns))])

    def plan(self, people: People, rng: np.random.Generator) -> Callable[[Ints], People]:
        """Draws parents and seeds for all but ELITE of the next generation; the result breeds any of them by number.

        Shapes of the result: (C,) -> C individuals.
        """
        count = len(people.fitness) - ELITE
        parents = roulette(people.fitness, count, rng)
        seeds = rng.integers(0, 2**63, count, dtype=np.uint64)
        touch = self.touch(people.slots, people.turns)

        def breed_some(part: Ints) -> People:
            slots, turns = breed(self.rules, touch, people.turns, parents[part], seeds[part])
            return People(slots, turns, self.fitness(slots, turns))

        return breed_some

    def touch(self, slots: Placements, turns: Placements) -> Placements:
        """The side that each side touches, or -1.

        Shapes: (P, N), (P, N) -> (P, 4N).
        """
        size, n = slots.shape
        people = np.arange(size)[:, None]
        occupant = np.full((size, self.grid.size + 1), -1, dtype=np.int64)  # the last column is "nowhere"
        occupant[people, slots] = np.arange(n)
        occupant[:, -1] = -1
        out = np.full((size, 4 * n), -1, dtype=np.int32)
        near = np.vstack([self._neighbours, np.full((1, z4.ORDER), -1)])
        for bearing in range(z4.ORDER):
            other = occupant[people, near[slots, bearing]]
            facing = (bearing + 2 - turns[people, np.maximum(other, 0)]) % 4
            own = 4 * np.arange(n) + (bearing - turns) % 4
            out[people, own] = np.where(other >= 0, 4 * other + facing, -1)
        return out

    def fitness(self, slots: Placements, turns: Placements) -> NDArray[np.float64]:
        """The score of every individual.

        Shapes: (P, N), (P, N) -> (P,).
        """
        touch = self.touch(slots, turns).astype(np.int64)
        person, s = np.nonzero(touch >= 0)
        t: Ints = touch[person, s]
        once = s < t
        scores = score_pairs(self.table.scores, s[once], t[once])
        return np.bincount(person[once], scores, minlength=len(slots)).astype(np.float64)
