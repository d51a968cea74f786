"""Every study by name, and the one way its results are written: NAME.csv, .json, .png and .svg in a folder."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jigsync.evaluate.progress import Progress, silent
from jigsync.io.csv_rows import csv_bytes
from jigsync.io.files import write_bytes, write_json
from jigsync.studies.about import told
from jigsync.studies.result import Study, StudyResult
from jigsync.values.errors import MissingExtraError, OptionError

STUDIES: Final[dict[str, str]] = {
    "gauge": "no residual sees the global turn, of cells or of free poses: residuals equal to 12 digits",
    "orbit": "a cell's four turned positions average to the centre; the plateau of a collapsed head",
    "density": "all pairs against direct neighbours, over the accuracy of far pairs",
    "phase": "accuracy over graph density, grid size and edge accuracy",
    "energies": "each training-free cue alone, by exact search over 3 x 3",
    "crossover": "seam against content over shape and erosion, read two ways",
    "procedural": "is there nothing to find in 1/f^beta noise?",
    "gauge-fix": "the fitting penalty, what fragments tell, and the truth choose the global turn",
    "progression": "from given edges to the deployable pipeline, step by step",
    "ablation": "one switch of the decoder at a time, both sizes",
    "symmetrize": "each pair averaged with its reverse",
    "loops": "edges that close triangles: precision, connectivity, accuracy",
    "context": "relations read with and without the other fragments, over grid sizes",
    "orientation": "what tells which side of a single fragment is up? coherence, a frozen probe",
    "main": "every solver over the sweep, turns scored",
    "leak": "the unary head on single fragments under every leak control, in both turn orders",
    "collapse": "a unary head that is not told the gauge: the plateau, the flat line, and which losses help",
    "continuous": "the angle of single fragments when it may be any: tolerance curves, measured",
    "reliability": "can answers be believed? confidences against how often fragments are right, for every kind of pile",
    "continuous-puzzles": "clean squares at any angle, n = 3 and 5: fragments right, beside the paper's drawn 6",
    "frame": "what every measurer loses when fragments do not say where their cells are: shifted, cropped, any angle",
    "tears": "torn pictures at any angle, over pieces and erosion",
    "real": "sets of fragments that nobody here made, by our measures and those of others",
    "web-pictures": "squares of small and compressed pictures, in the form of ImageNet-LSEJ: what costs how much",
    "clean": "clean turned puzzles of 3 x 3, 5 x 5 and 10 x 10, nothing learned, grid unknown",
}
"""name -> one line; a study is the function `run` of the module jigsync.studies.<name>."""

INPUTS: Final = ("images", "dino", "measurer", "fragments")
"""What some studies take beside the common arguments: a folder of pictures, weights of DINOv2 ViT-S/14, the name of a
measurer, a folder of puzzles that nobody here made."""

Inputs = Mapping[str, Path | str]
"""Of INPUTS: files and names."""


@dataclass(frozen=True)
class Written:
    """The files of one study; `picture` and `drawing` are None when nothing could be drawn, `missing` says why."""

    csv: Path
    json: Path
    picture: Path | None
    drawing: Path | None = None
    missing: str = ""


def get(name: str) -> Study:
    """The study of this name; OptionError listing the names when there is none."""
    if name not in STUDIES:
        raise OptionError(f"There is no study '{name}'; the studies are {', '.join(STUDIES)}, or all.")
    module = importlib.import_module(f"jigsync.studies.{name.replace('-', '_')}")
    study: Study = module.run
    return study


def takes(name: str) -> frozenset[str]:
    """Which of INPUTS a study takes."""
    return frozenset(inspect.signature(get(name)).parameters) & frozenset(INPUTS)


def lacking(name: str, inputs: Inputs) -> str:
    """A sentence when a study cannot be run without an input that was not given, else ""."""
    needs = inspect.signature(get(name)).parameters
    missing = [key for key in INPUTS if key in needs and needs[key].default is inspect.Parameter.empty]
    left = [f"--{key}" for key in missing if key not in inputs]
    return f"The study '{name}' needs {' and '.join(left)}: there is nothing to measure without." if left else ""


def run(
    name: str,
    *,
    full: bool = False,
    workers: int = 1,
    seed: int = 0,
    progress: Progress = silent,
    inputs: Inputs = MappingProxyType({}),
) -> StudyResult:
    """Runs one study; OptionError when it does not take one of the inputs."""
    for option in inputs:
        if option not in takes(name):
            able = ", ".join(other for other in STUDIES if option in takes(other))
            raise OptionError(f"The study '{name}' takes no --{option}; those that do are {able}.")
    if reason := lacking(name, inputs):
        raise OptionError(reason)
    study: Any = get(name)
    result: StudyResult = study(full, workers, seed, progress, **inputs)
    return result


def write(result: StudyResult, folder: Path, command: str = "") -> Written:
    """Writes a study's table, summary and pictures; without matplotlib the pictures are left out, and it is said.

    `command` is what repeats it, for the summary.
    """
    paths = {ending: folder / f"{result.name}.{ending}" for ending in ("csv", "json", "png", "svg")}
    write_bytes(paths["csv"], csv_bytes(result.rows))
    made = {"command": command} if command else {}
    write_json(paths["json"], {**result.to_json(), **told(result.name, result.settings), **made})
    try:
        result.plot(paths["png"])
        result.plot(paths["svg"])
    except MissingExtraError as missing:
        return Written(paths["csv"], paths["json"], None, missing=str(missing))
    return Written(paths["csv"], paths["json"], paths["png"], paths["svg"])


def command(name: str, full: bool, seed: int, inputs: Inputs) -> str:
    """The command that repeats a study; folders are named by what they hold, not by where they lie here."""
    words = ["jigsync reproduce", name, *(["--full"] if full else []), *([f"--seed {seed}"] if seed else [])]
    named = (f"--{key} {value if isinstance(value, str) else key.upper()}" for key, value in inputs.items())
    return " ".join([*words, *named])
