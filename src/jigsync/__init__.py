"""JigSync puts fragments of a picture back together.

Every public name is loaded on first use (PEP 562): `import jigsync` loads no numpy, no torch and no web server.
To add a name, put it under its module in `_MODULES` and into the TYPE_CHECKING block; a test compares the two.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES: dict[str, tuple[str, ...]] = {
    "jigsync.api": ("candidates", "cut", "cut_with_truth", "extract", "load", "solve"),
    "jigsync.values.errors": (
        "FormatError",
        "ImageError",
        "InputError",
        "JigsyncError",
        "MissingExtraError",
        "OptionError",
    ),
    "jigsync.values.gauge": ("Gauge",),
    "jigsync.values.layout": ("Grid",),
    "jigsync.values.placement": ("Placed",),
    "jigsync.values.pose": ("Pose",),
    "jigsync.values.puzzle": ("Fragments", "Puzzle"),
    "jigsync.values.truth": ("Truth",),
    "jigsync.solution": ("Solution",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]

if TYPE_CHECKING:
    from jigsync.api import candidates as candidates
    from jigsync.api import cut as cut
    from jigsync.api import cut_with_truth as cut_with_truth
    from jigsync.api import extract as extract
    from jigsync.api import load as load
    from jigsync.api import solve as solve
    from jigsync.solution import Solution as Solution
    from jigsync.values.errors import FormatError as FormatError
    from jigsync.values.errors import ImageError as ImageError
    from jigsync.values.errors import InputError as InputError
    from jigsync.values.errors import JigsyncError as JigsyncError
    from jigsync.values.errors import MissingExtraError as MissingExtraError
    from jigsync.values.errors import OptionError as OptionError
    from jigsync.values.gauge import Gauge as Gauge
    from jigsync.values.layout import Grid as Grid
    from jigsync.values.placement import Placed as Placed
    from jigsync.values.pose import Pose as Pose
    from jigsync.values.puzzle import Fragments as Fragments
    from jigsync.values.puzzle import Puzzle as Puzzle
    from jigsync.values.truth import Truth as Truth


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'jigsync' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
