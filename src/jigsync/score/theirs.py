"""The metrics of others on one answer, under their names, and what a guess reaches in them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from jigsync.score.contacts import contacts_of_poses
from jigsync.score.derech import neighbour_share
from jigsync.score.pairings import pair_shares, registration_recall
from jigsync.score.posed import Posed
from jigsync.score.repair import repair_pairs, repair_scores
from jigsync.values.placement import Placed, Placement
from jigsync.values.pose import Pose
from jigsync.values.puzzle import Puzzle

Q_POS: Final = "Q_pos (RePAIR)"
RMSE_ROTATION: Final = "RMSE rotation (RePAIR)"
RMSE_TRANSLATION: Final = "RMSE translation (RePAIR)"
PRECISION: Final = "precision (RePAIR)"
RECALL: Final = "recall (RePAIR)"
NEIGHBOURS: Final = "neighbours (Derech)"
PAIR_PRECISION: Final = "pair precision (ShreddingNet)"
PAIR_RECALL: Final = "pair recall (ShreddingNet)"
REGISTRATION: Final = "registration recall (PairingNet)"
THEIRS: Final = {
    Q_POS: "area that lies where it belongs, the whole moved with the largest fragment",
    RMSE_ROTATION: "degrees; a mean absolute error over sqrt 2, not wrapped",
    RMSE_TRANSLATION: "pixels; a mean distance over sqrt 2, the whole shifted but not turned",
    PRECISION: "true pairs that touch in the answer, by area: a recall",
    RECALL: "pairs that touch in the answer and in truth, by area: a precision",
    NEIGHBOURS: "true neighbours whose mask overlaps itself in truth by more than 0.65",
    PAIR_PRECISION: "pairs that touch in the answer and in truth, however they lie",
    PAIR_RECALL: "true pairs that touch in the answer, however they lie",
    REGISTRATION: "true pairs with a root mean distance below 4 along their seam",
}
"""metric -> what it is, in this order."""
THEIR_ERRORS: Final = (RMSE_ROTATION, RMSE_TRANSLATION)
"""Those of which less is better."""
DRAWS: Final = 4
"""Guesses that chance is the mean of; one for more than MANY fragments."""
MANY: Final = 50


def their_scores(both: Posed, puzzle: Puzzle) -> dict[str, float | None]:
    """metric of THEIRS -> value; None where it has no case, or where its authors' script fails."""
    answer, home = both.answer, both.home
    contacts, claimed = both.contacts or frozenset(), both.claimed or frozenset()
    claimed = frozenset(pair for pair in claimed if set(pair) <= set(home))
    repair = repair_scores(answer, home, puzzle)
    areas = {name: size**2 for name, size in both.sizes.items()}
    values = (
        repair.q_pos,
        repair.rmse_rotation,
        repair.rmse_translation,
        *repair_pairs(claimed, contacts, areas),
        neighbour_share(answer, home, contacts, puzzle),
        *pair_shares(claimed, contacts),
        registration_recall(answer, home, contacts, both.sizes, puzzle),
    )
    return dict(zip(THEIRS, values, strict=True))


def their_chance(both: Posed, puzzle: Puzzle, seed: int) -> dict[str, float]:
    """metric -> mean over guesses: the true places dealt out at random, every fragment at a random angle."""
    rng = np.random.default_rng([seed, 0])
    found: dict[str, list[float]] = {name: [] for name in THEIRS}
    for _ in range(DRAWS if len(both.home) <= MANY else 1):
        guess = _guess(both.home, rng)
        claimed = contacts_of_poses(puzzle, guess, both.sizes)
        scores = their_scores(Posed(guess, both.home, both.sizes, both.contacts, claimed), puzzle)
        for name, value in scores.items():
            found[name] += [] if value is None else [value]
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def _guess(home: Placement, rng: np.random.Generator) -> Placement:
    places = [placed.pose.xy for placed in home.values() if placed.pose is not None]
    quarters = all(placed.pose is not None and placed.pose.turns is not None for placed in home.values())
    guess = {}
    for name, k in zip(home, rng.permutation(len(places)).tolist(), strict=True):
        if quarters:
            pose = Pose.of_turns(int(rng.integers(4)), places[k])
        else:
            pose = Pose(float(rng.uniform(0, 2 * math.pi)), places[k])
        guess[name] = Placed(pose)
    return guess
