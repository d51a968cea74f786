"""What a prediction depends on besides the puzzle: code, data files, libraries, weights.

The code is that of the modules a solver and a measurer import, directly or through others, read from the source, so a
lazy import inside a function counts and a change to another solver does not. Beside it, every other file in those
modules' folders (C sources, calibrations, weights) and the versions of the libraries they name.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import jigsync
from jigsync.io.files import open_plain, reason_of
from jigsync.measure import registry as measurers
from jigsync.solvers import base as solvers
from jigsync.values.errors import InputError
from jigsync.values.measurements import Measurer

ALGORITHM: Final = 1
"""Raised by hand when a prediction must not be reused although no file says so."""

PACKAGE: Final = Path(jigsync.__file__).parent
AUTO: Final = "auto"
"""The measurer of evaluations when none is named: whatever fits the fragments, as `jigsync solve` has it."""
GENERATOR: Final = ("jigsync.cutting.generate", "jigsync.cutting.tear", "jigsync.io.images")
"""What makes a puzzle from a picture's bytes."""
CHOICE: Final = "jigsync.measure.choice"
SOLVING: Final = (
    "jigsync.solvers.base",
    "jigsync.solvers.lattice",
    "jigsync.solvers.split",
    "jigsync.gauge",
    "jigsync.belief",
    "jigsync.advice",
    "jigsync.pictures",
)
"""What every solve goes through besides the solver and the measurer; jigsync.api counts as a file."""

SHOWN: Final = 12
"""Digits of a sha256 that people are shown."""

_NO_PART: Final = ("jigsync", "jigsync.io.remote")
"""Not followed: the package itself only names what others import, and where a file is kept changes no answer."""
_MADE: Final = (".py", ".pyc", ".so")  # a library is made from its C sources, which count
_DISTRIBUTION: Final = {"cv2": "opencv-python-headless", "PIL": "Pillow"}


def digest(value: Any) -> str:
    """sha256, in hex, of a JSON value with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")).hexdigest()


def generator_identity() -> dict[str, Any]:
    """What the puzzles of a picture depend on."""
    return identity(GENERATOR)


def method_identity(solver: str, measurer: str, weights: Path | None = None) -> dict[str, Any]:
    """What the answers of a solver with a measurer depend on; OptionError when there is no such one."""
    roots, told = roots_of(solver, measurer), ""
    if measurer != AUTO:
        told = _weights(meter_of(measurer, weights))
    own = {"solver": solver, "measurer": measurer, "weights": told, "algorithm": ALGORITHM}
    found = networks(roots, measurer)
    if weights is not None and takes_weights(measurer):
        found["given"] = _file_hash(weights)[:SHOWN]
    return {**own, "networks": found, **identity(roots, extra=(PACKAGE / "api.py",))}


def roots_of(solver: str, measurer: str) -> list[str]:
    """The modules that a method begins with, besides jigsync.api; OptionError when there is no such one."""
    roots = [*SOLVING, type(solvers.get(solver)).__module__]
    if solver == solvers.DEFAULT:  # free puzzles are left to another one
        roots.append(type(solvers.get(solvers.DEFAULT_FREE)).__module__)
    return [*roots, CHOICE if measurer == AUTO else type(measurers.get(measurer)).__module__]


def networks(roots: Sequence[str], measurer: str = "") -> dict[str, str]:
    """Shipped network -> the first digits of its sha256, of all that some modules may run."""
    named = {f"{measurer}.onnx"}
    for path in closure(roots)[0].values():
        named |= set() if path is None else _onnx_named(path)
    folder = PACKAGE / "weights"
    there = [name for name in sorted(named) if (folder / name).is_file()]
    return {name.removesuffix(".onnx"): _file_hash(folder / name)[:SHOWN] for name in there}


def meter_of(name: str, weights: Path | None) -> Measurer:
    """The measurer of this name, with weights of one's own where it takes any."""
    meter: Any = measurers.get(name)
    if weights is not None and takes_weights(name):
        meter = replace(meter, weights=weights)
    found: Measurer = meter
    return found


def takes_weights(name: str) -> bool:
    """Can the measurer of this name be given a file of weights?"""
    if name == AUTO:
        return False
    meter: Any = measurers.get(name)
    return is_dataclass(meter) and any(field.name == "weights" for field in fields(meter))


def _weights(meter: object) -> str:
    """sha256 of a measurer's weights: what its `weights_sha256` says, or of its file `weights`; "" when it has none."""
    told = getattr(meter, "weights_sha256", None)
    if isinstance(told, str):
        return told
    path = getattr(meter, "weights", None)
    return _file_hash(path) if isinstance(path, Path) else ""


def identity(roots: Sequence[str], extra: Sequence[Path] = ()) -> dict[str, Any]:
    """The version, the hash of the code behind some modules, and the versions of the libraries it uses."""
    modules, libraries = closure(roots)
    files = {path for path in modules.values() if path is not None} | set(extra)
    folders = {path.parent for path in files if path.is_relative_to(PACKAGE)} - {PACKAGE}
    files |= {path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix not in _MADE}
    named = sorted((_name(path), _file_hash(path)) for path in files)
    return {
        "version": jigsync.__version__,
        "code": digest(named),
        "libraries": {name: _version(name) for name in sorted(libraries)},
    }


def closure(roots: Sequence[str]) -> tuple[Mapping[str, Path | None], frozenset[str]]:
    """(module -> its file) of all modules of ours that the roots import, and the other libraries they name.

    A root outside the package counts with its own file, and what it imports from the package.
    """
    modules: dict[str, Path | None] = {}
    libraries: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in modules or name in _NO_PART:
            continue
        path = modules[name] = _source(name)
        if path is None:
            continue
        ours, others = _imports(path, name)
        todo += ours
        libraries |= others
    return modules, frozenset(libraries)


@cache
def _imports(path: Path, module: str) -> tuple[tuple[str, ...], frozenset[str]]:
    ours: list[str] = []
    others = set()
    for name, attribute in _imported(ast.parse(path.read_bytes()), module):
        top = name.partition(".")[0]
        if top == "jigsync":
            below = f"{name}.{attribute}"
            ours += [name] + ([below] if attribute and _source(below) is not None else [])
        elif top not in sys.stdlib_module_names:
            others.add(top)
    return tuple(ours), frozenset(others)


@cache
def _onnx_named(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_bytes()))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return frozenset(text for text in texts if re.fullmatch(r"\w+\.onnx", text))


def _imported(tree: ast.AST, module: str) -> Iterator[tuple[str, str]]:
    """(module, attribute or "") of every import statement, wherever it stands.

    Likewise of every string that is just the name of a part of ours, such as `importlib.resources.files` is asked for.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"jigsync(\.\w+)+", node.value):
                yield node.value, ""
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, module.rpartition(".")[0])
            yield from ((base, alias.name) for alias in node.names)


@cache
def _source(module: str) -> Path | None:
    """A module's file; None when there is no such module, or no source."""
    if module.partition(".")[0] == "jigsync":
        path = PACKAGE.joinpath(*module.split(".")[1:])
        return next((found for found in (path.with_suffix(".py"), path / "__init__.py") if found.is_file()), None)
    loaded = sys.modules.get(module)
    origin = getattr(loaded, "__file__", None)
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name


def _file_hash(path: Path) -> str:
    try:
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (InputError, OSError) as error:
        return f"unreadable: {reason_of(error)}"


@cache
def _version(library: str) -> str:
    """An installed library's version, "" when it is not installed."""
    try:
        return metadata.version(_DISTRIBUTION.get(library, library))
    except metadata.PackageNotFoundError:
        return ""
