"""The folder of an evaluation: predictions as they come, and everything scores are computed from.

    RUN/eval.json                                    what was asked for last
    RUN/puzzles.jsonl                                its puzzles, one a line
    RUN/truths/<puzzle>.json                         truth.json of every puzzle
    RUN/shapes/<puzzle>.json                         its fragments' outlines, by which placements are scored
    RUN/predictions/<puzzle>/<method>-<key>.jsonl    a line about the answer, then one row a fragment
    RUN/claims/<puzzle>.lock                         held by the process that works on it

<puzzle> ends in a hash of all that the puzzle depends on, <key> is one of all that the prediction depends on, so a
changed configuration has another name and finds nothing. Files are whole or absent and hold a checksum. A claim is a
lock that falls with its process, however it ends; it saves double work and nothing rests on it, for two that work on
the same puzzle write the same file. RUN may be a URL; there nothing can be claimed, and two runs on one RUN would do
the same work.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from jigsync.evaluate.fingerprint import digest, method_identity, takes_weights
from jigsync.evaluate.spec import Method, Spec
from jigsync.io.files import read_json, read_jsonl, write_json, write_jsonl
from jigsync.io.remote import Place, Remote
from jigsync.io.schema import Node
from jigsync.io.seal import SEAL, check_seal, checksum, sealed
from jigsync.io.shapes_file import load_shapes, save_shapes
from jigsync.io.solution_file import parse_solution, solution_json
from jigsync.io.truth_file import parse_truth, truth_json
from jigsync.solution import Solution
from jigsync.values.errors import FormatError, InputError, OptionError, bad_value
from jigsync.values.puzzle import Puzzle
from jigsync.values.truth import Truth

FORMAT: Final = "jigsync-prediction/1"
REQUEST_FILE: Final = "eval.json"
PUZZLES_FILE: Final = "puzzles.jsonl"
PREDICTIONS: Final = "predictions"
KEY_DIGITS: Final = 24
AGAIN: Final = "delete it and run the evaluation again to have it made anew"

Outcome = Literal["answered", "refused", "crashed"]
"""refused: the solver does not take such puzzles; crashed: a defect, counted as a failed answer."""


@dataclass(frozen=True)
class Config:
    """How the solvers are run.

    Attributes:
        known_grid: tell them rows and cols.
        time_limit: seconds of solving a puzzle, or None.
        methods: every method with what its answers depend on, `fingerprint.method_identity`.
        weights: a file for the measurers that take one; its hash is part of their identity.
    """

    methods: Mapping[Method, Mapping[str, Any]]
    known_grid: bool = False
    time_limit: float | None = None
    weights: Path | None = None

    @classmethod
    def of(
        cls,
        methods: tuple[Method, ...],
        known_grid: bool = False,
        time_limit: float | None = None,
        weights: Path | None = None,
    ) -> Config:
        """With the code and the weights as they are now."""
        if time_limit is not None and not 0 < time_limit < 1e9:
            raise bad_value("time_limit", "an evaluation", "a number of seconds above 0", time_limit)
        if weights is not None and not weights.is_file():
            raise InputError(f"The weights '{weights}' must be a file. There is none.")
        if weights is not None and not any(takes_weights(method.measurer) for method in methods):
            raise OptionError(f"None of the measurers takes weights: '{weights}' would not be used.")
        identities = {method: method_identity(method.solver, method.measurer, weights) for method in methods}
        return cls(identities, known_grid, time_limit, weights)

    def key(self, spec: Spec, method: Method) -> str:
        """A hash of all that a prediction depends on."""
        asked = {"known_grid": self.known_grid, "time_limit": self.time_limit, "upright": spec.upright}
        return digest({"puzzle": spec.name, "seed": spec.seed, **asked, "method": self.methods[method]})[:KEY_DIGITS]


@dataclass(frozen=True)
class Prediction:
    """A method's answer to a puzzle.

    Attributes:
        seconds: measuring and solving.
        measured: seconds of them for measuring.
        threads: that the solver had.
        note: what the measurer has to say, such as that another one stood in for it.
    """

    solution: Solution
    outcome: Outcome
    seconds: float
    measured: float
    threads: int
    note: str = ""


def _name(spec: Spec, method: Method, config: Config) -> str:
    return f"{spec.name}/{method.name}-{config.key(spec, method)}.jsonl"


class Cache:
    """The predictions of an evaluation, on disk or at a URL."""

    def __init__(self, root: Place) -> None:
        self.root = root

    def path(self, spec: Spec, method: Method, config: Config) -> Place:
        """The file of a prediction."""
        return self.root / PREDICTIONS / _name(spec, method, config)

    def truth_path(self, spec: Spec) -> Place:
        """The file of a puzzle's truth."""
        return self.root / "truths" / f"{spec.name}.json"

    def shapes_path(self, spec: Spec) -> Place:
        """The file of its fragments' outlines."""
        return self.root / "shapes" / f"{spec.name}.json"

    def has(self, spec: Spec, method: Method, config: Config) -> bool:
        """Is there a prediction, and what it is scored by?"""
        files = self.path(spec, method, config), self.truth_path(spec), self.shapes_path(spec)
        return all(path.is_file() for path in files)

    def lacking(self, specs: Sequence[Spec], config: Config) -> list[Spec]:
        """Those of which a prediction is missing; at a URL by one listing instead of a question each."""
        if not isinstance(self.root, Remote):
            return [spec for spec in specs if not all(self.has(spec, method, config) for method in config.methods)]
        folder = self.root / PREDICTIONS
        there = folder.below()

        def whole(spec: Spec) -> bool:
            return all(_name(spec, method, config) in there for method in config.methods)

        return [spec for spec in specs if not whole(spec)]

    def write(self, spec: Spec, method: Method, config: Config, prediction: Prediction) -> None:
        """Keeps a prediction."""
        head = solution_json(prediction.solution)
        fragments = head.pop("fragments")
        about = {
            **head,
            "format": FORMAT,
            "solution": head["format"],
            "puzzle": spec.name,
            "outcome": prediction.outcome,
            "seconds": round(prediction.seconds, 4),
            "measured": round(prediction.measured, 4),
            "threads": prediction.threads,
            "note": prediction.note,
            "fragments": len(fragments),
            "method": {**config.methods[method], "known_grid": config.known_grid, "time_limit": config.time_limit},
        }
        rows = [{"id": name, **placed} for name, placed in fragments.items()]
        seal = {SEAL: checksum([about, *rows])}
        write_jsonl(self.path(spec, method, config), [{**about, **seal}, *rows])

    def read(self, spec: Spec, method: Method, config: Config) -> Prediction | None:
        """A prediction, or None when there is none yet."""
        path = self.path(spec, method, config)
        if not path.is_file():
            return None
        about, *rows = read_jsonl(path) or [{}]
        head = Node(about, os.fspath(path))
        head.format(FORMAT)
        seal = about.pop(SEAL, None)  # predictions from before there were checksums have none
        if seal is not None and seal != checksum([about, *rows]):
            raise FormatError(f"The file '{path}' is damaged: it is not what its own checksum says; {AGAIN}.")
        outcome = head.key("outcome")
        if outcome.value not in get_args(Outcome):
            raise outcome.refuse(f"one of {', '.join(get_args(Outcome))}")
        if len(rows) != head.key("fragments").integer(0, 10**6):
            raise FormatError(
                f"The file '{path}' must have {about['fragments']} rows after the first. Got {len(rows)}."
            )
        placed = {Node(row, f"{path}:{k}").key("id").fragment_id(): row for k, row in enumerate(rows, start=2)}
        if len(placed) != len(rows):
            raise FormatError(f"The file '{path}' must have one row a fragment. Some fragment has two.")
        whole = {**about, "format": about.get("solution", "jigsync-solution/1"), "fragments": placed}
        seconds, measured = (head.key(name).number(0.0, 1e12) for name in ("seconds", "measured"))
        solution = parse_solution(Node(whole, os.fspath(path)))
        threads, note = head.key("threads").integer(1, 10**6), head.key("note").text()
        return Prediction(solution, outcome.value, seconds, measured, threads, note)

    def write_truth(self, spec: Spec, truth: Truth, puzzle: Puzzle) -> None:
        """Keeps a puzzle's truth, and its fragments' outlines."""
        if not self.truth_path(spec).is_file():
            write_json(self.truth_path(spec), sealed(truth_json(truth)))
        if not self.shapes_path(spec).is_file():
            save_shapes(self.shapes_path(spec), puzzle)

    def read_shapes(self, spec: Spec) -> Puzzle:
        """A puzzle's fragments as black shapes."""
        return load_shapes(self.shapes_path(spec))

    def read_truth(self, spec: Spec) -> Truth:
        """A puzzle's truth."""
        path = self.truth_path(spec)
        node = Node(read_json(path), os.fspath(path))
        if SEAL in node.object():
            check_seal(node.object(), node.file)
        return parse_truth(node)

    @contextmanager
    def claimed(self, spec: Spec) -> Iterator[bool]:
        """Claims a puzzle; False when another process has it. Where files cannot be locked, everyone gets it."""
        if isinstance(self.root, Remote):
            yield True
            return
        path = self.root / "claims" / f"{spec.name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:
                yield True
                return
            try:
                yield True
            finally:
                # Whoever holds an older file of this name finds the predictions there once it gets the lock.
                path.unlink(missing_ok=True)
