"""What every study's page says beside its figures: its question, how fragments are handed over, what was run.

The page of results groups studies by question, and begins with what was found: the rows of `shown`, or the first
sentence of the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jigsync.evaluate.fingerprint import AUTO, CHOICE, SOLVING, networks
from jigsync.measure import registry

HOW_WELL: Final = "How well are puzzles solved?"
UPRIGHT: Final = "Which way is up, and can an answer know?"
PAIRS: Final = "What do pairs tell, and what makes a picture of them?"
CUES: Final = "What does each cue tell without learning?"
QUESTIONS: Final = (HOW_WELL, UPRIGHT, PAIRS, CUES)
"""In the order of the page."""
CELL: Final = "cell"
NO_PIXELS: Final = "none: numbers, not pictures"


@dataclass(frozen=True)
class About:
    """One study.

    Attributes:
        question: of QUESTIONS.
        presentation: of its fragments.
        measurers: whose networks it may run, unless its settings name them.
        networks: shipped ones that it runs without a measurer.
        shown: beginnings of the compared rows that sum it up; none: the verdict's first sentence does.
    """

    question: str
    presentation: str
    measurers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


LEARNED: Final = (registry.DEFAULT,)
ABOUT: Final[Mapping[str, About]] = {
    "main": About(HOW_WELL, CELL, LEARNED, (), ("jigsync, ",)),
    "clean": About(HOW_WELL, CELL, ("boundary",), (), ("3 x 3, met:", "5 x 5, met:", "10 x 10, met:")),
    "continuous-puzzles": About(HOW_WELL, "any", (AUTO,), (), ("jigsync, ",)),
    "frame": About(HOW_WELL, "each of them", (), (), ("auto, ", "learned, ", "framed, ")),
    "tears": About(HOW_WELL, "any", (AUTO,), (), ("jigsync, ",)),
    "real": About(HOW_WELL, "as found: any angle, cropped", (AUTO,), (), ("jigsync, ",)),
    "web-pictures": About(HOW_WELL, "cell, upright", LEARNED, (), ("as they are", "small, compressed")),
    "reliability": About(HOW_WELL, "each of them", (AUTO,)),
    "gauge": About(UPRIGHT, "any, of the torn ones", ("contours",)),
    "orbit": About(UPRIGHT, NO_PIXELS),
    "collapse": About(UPRIGHT, CELL),
    "gauge-fix": About(UPRIGHT, CELL, LEARNED, (), ("learned, 5 x 5, unary", "learned, 5 x 5, true")),
    "orientation": About(UPRIGHT, CELL, (), ("unary",), ("learned: accuracy", "frozen probe: accuracy")),
    "leak": About(UPRIGHT, CELL, (), ("unary",), ("re-digitised, as it is", "paper's order, as it is")),
    "continuous": About(UPRIGHT, "any", (), ("continuous", "unary")),
    "density": About(PAIRS, NO_PIXELS),
    "phase": About(PAIRS, NO_PIXELS),
    "progression": About(PAIRS, CELL, LEARNED, (), ("learned, 3 x 3, C + cond", "learned, 5 x 5, A: the same")),
    "ablation": About(PAIRS, CELL, LEARNED, (), ("learned, 5 x 5, + iterated", "learned, 5 x 5, + unary")),
    "symmetrize": About(PAIRS, CELL, LEARNED, (), ("learned, 3 x 3, gain", "learned, 5 x 5, gain")),
    "loops": About(PAIRS, CELL, LEARNED, (), ("learned, 5 x 5, complete, s = 0", "learned, 5 x 5, top 4, s = 0")),
    "context": About(PAIRS, CELL, ("pairwise", "comparator")),
    "energies": About(CUES, CELL, (), (), ("seam, straight", "boundary, contour")),
    "crossover": About(CUES, CELL),
    "procedural": About(CUES, CELL),
}
"""Every study, in the order of the page."""


def told(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a study's file says of itself: presentation, and network -> first digits of its sha256."""
    about = ABOUT[name]
    named = settings.get("measurers") or ([settings["measurer"]] if settings.get("measurer") else about.measurers)
    found: dict[str, str] = {}
    for measurer in named:
        module = CHOICE if measurer == AUTO else type(registry.get(measurer)).__module__
        found |= networks([*SOLVING, module], measurer)
    for network in about.networks:
        found |= networks([], network)
    return {"presentation": about.presentation, "weights": dict(sorted(found.items()))}
