"""An evaluation as a folder: begun with a request, scored from its cache, written as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from jigsync.evaluate.cache import PUZZLES_FILE, REQUEST_FILE, Cache, Config
from jigsync.evaluate.progress import Progress, silent
from jigsync.evaluate.scores import Scored, score_cache
from jigsync.evaluate.spec import Method, Spec, file_name
from jigsync.evaluate.table import Line, Pair, lines, pairs
from jigsync.io.csv_rows import csv_bytes
from jigsync.io.files import list_names, read_json, read_jsonl, write_bytes, write_json, write_jsonl
from jigsync.io.remote import Place
from jigsync.io.schema import Node
from jigsync.io.seal import checksum
from jigsync.score.cells import GAUGES, GaugeName
from jigsync.values.errors import FormatError, InputError, OptionError

FORMAT: Final = "jigsync-eval/2"
TABLES: Final = ("scores.csv", "table.csv", "pairs.csv", "results.json")


@dataclass(frozen=True)
class Evaluation:
    """A scored evaluation.

    Attributes:
        planned: number of puzzles; of some there may be no prediction yet.
        lead: the gauge that leads the tables of slots.
        theirs: are the metrics of others among the scores?
    """

    root: Place
    specs: Sequence[Spec]
    config: Config
    scored: Sequence[Scored]
    lines: Sequence[Line]
    pairs: Sequence[Pair]
    lead: GaugeName
    seed: int
    theirs: bool = False

    @property
    def methods(self) -> list[Method]:
        """In the order they were asked for."""
        return list(self.config.methods)

    @property
    def missing(self) -> int:
        """Predictions that are not there yet."""
        return len(self.specs) * len(self.config.methods) - len(self.scored)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: what `--json` prints and results.json holds."""
        return {
            "out": str(self.root),
            "gauge": self.lead,
            "known_grid": self.config.known_grid,
            "time_limit": self.config.time_limit,
            "seed": self.seed,
            "puzzles": len(self.specs),
            "missing": self.missing,
            "methods": [dict(identity) for identity in self.config.methods.values()],
            "table": [line.to_json() for line in self.lines],
            "pairs": [pair.to_json() for pair in self.pairs],
        }


def check_folder(root: Place) -> None:
    """Raises OptionError unless the folder is absent, empty or holds an evaluation."""
    names = list_names(root)
    if names and REQUEST_FILE not in names and names != [PUZZLES_FILE]:  # alone: killed before it had begun
        raise OptionError(f"The output folder '{root}' must be empty or hold an evaluation. Got one with '{names[0]}'.")


def begin(root: Place, specs: Sequence[Spec], config: Config, seed: int) -> None:
    """Writes down what is evaluated; predictions of an earlier request stay."""
    check_folder(root)
    rows = [spec.to_json() for spec in specs]
    write_jsonl(root / PUZZLES_FILE, rows)
    # Last, because its presence says that the list of puzzles is whole.
    methods = [dict(identity) for identity in config.methods.values()]
    asked = {"known_grid": config.known_grid, "time_limit": config.time_limit, "seed": seed}
    write_json(root / REQUEST_FILE, {"format": FORMAT, **asked, "methods": methods, "puzzles": checksum(rows)})


def reopen(root: Place) -> tuple[list[Spec], Config, int]:
    """The puzzles, configuration and seed that a folder was last begun with, whatever the code is by now."""
    path = root / REQUEST_FILE
    if not path.is_file():
        raise InputError(
            f"The folder '{root}' holds no evaluation: name --images, --manifest, --gap or --fragments to begin one."
        )
    head = Node(read_json(path), os.fspath(path))
    head.format(FORMAT)
    methods = {
        Method(file_name(node.key("solver")), file_name(node.key("measurer"))): node.object()
        for node in head.key("methods").entries()
    }
    limit = head.key("time_limit").optional()
    config = Config(methods, bool(head.key("known_grid").value), None if limit is None else limit.number(0.0, 1e9))
    rows = read_jsonl(root / PUZZLES_FILE)
    if head.has("puzzles") and head.key("puzzles").value != checksum(rows):
        raise FormatError(f"The file '{root / PUZZLES_FILE}' is damaged: it is not the one '{REQUEST_FILE}' tells of.")
    specs = [Spec.from_json(row, f"{root / PUZZLES_FILE}:{number}") for number, row in enumerate(rows, start=1)]
    return specs, config, head.key("seed").integer(0, 2**63 - 1)


def evaluate(
    root: Place,
    specs: Sequence[Spec],
    config: Config,
    seed: int,
    lead: GaugeName,
    partial: bool = False,
    progress: Progress = silent,
    theirs: bool = False,
) -> Evaluation:
    """Scores the predictions of some puzzles.

    Args:
        partial: some may be missing.
        theirs: by the metrics of others too.
    """
    if lead not in GAUGES:
        raise OptionError(f"The gauge must be one of {', '.join(GAUGES)}. Got '{lead}' instead.")
    scored: list[Scored] = []
    for number, spec in enumerate(specs, start=1):
        scored += score_cache(spec, config, Cache(root), theirs)
        progress("scores", number, len(specs))
    found = Evaluation(root, specs, config, scored, lines(scored, seed), pairs(scored, seed), lead, seed, theirs)
    if not scored or (found.missing and not partial):
        raise InputError(f"The folder '{root}' lacks {found.missing} predictions: run the evaluation to its end first.")
    return found


def write_tables(found: Evaluation) -> None:
    """scores.csv (one line a puzzle and method), table.csv and pairs.csv (one a figure), results.json (all)."""
    contents = (
        csv_bytes([one.row() for one in found.scored]),
        csv_bytes([row for line in found.lines for row in line.rows()]),
        csv_bytes([row for pair in found.pairs for row in pair.rows()]),
    )
    for name, content in zip(TABLES, contents, strict=False):
        write_bytes(found.root / name, content)
    write_json(found.root / TABLES[-1], found.to_json())
