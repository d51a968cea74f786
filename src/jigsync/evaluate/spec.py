"""The values of an evaluation: a method, a setting, and a puzzle that can be made again at any time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from jigsync.cutting.handed import PRESENTATIONS
from jigsync.cutting.options import SEVERITIES
from jigsync.evaluate.fingerprint import AUTO
from jigsync.evaluate.sources import MAX_SEED, Source, parse_source
from jigsync.io.schema import Node
from jigsync.values.layout import Grid

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")
"""What puzzles, solvers and measurers may be called: it is a file name, and never a path."""
MAX_FRAGMENTS: Final = 10**6


def file_name(node: Node) -> str:
    """A name that becomes part of a path; FormatError when it could lead elsewhere."""
    if not NAME.fullmatch(node.text()):
        raise node.refuse("lower-case letters, digits and . _ -")
    return node.text()


@dataclass(frozen=True, order=True)
class Method:
    """A solver with a measurer: one row of the table."""

    solver: str
    measurer: str

    @property
    def name(self) -> str:
        """What files call it."""
        return f"{self.solver}+{self.measurer}"

    @property
    def label(self) -> str:
        """What tables call it: the solver, and the measurer unless it goes by the fragments."""
        return self.solver if self.measurer == AUTO else self.name


@dataclass(frozen=True)
class Setting:
    """What the puzzles of one row of the table share.

    Attributes:
        form: "3x3", "tear9" or the name of a set of fragments.
        severity: the damage; "" for fragments that nobody here made.
        presentation: how fragments are handed over; "" for fragments that nobody here made.
        grid: rows and cols of the true layout; None where it is free.
        fragments: of each puzzle; 0 where they differ.
    """

    form: str
    severity: str
    presentation: str
    grid: Grid | None
    fragments: int

    @property
    def label(self) -> str:
        """What tables call it."""
        return " ".join(part for part in (self.form, self.severity, self.presentation) if part)

    @property
    def order(self) -> tuple[Any, ...]:
        """Small grids, then few pieces, then sets; severities and presentations as their registries have them."""
        known, handed = list(SEVERITIES), list(PRESENTATIONS)
        damage = known.index(self.severity) if self.severity in known else len(known)
        given = handed.index(self.presentation) if self.presentation in handed else len(handed)
        rows = 0 if self.grid is None else self.grid.rows
        return self.grid is None, not self.fragments, self.fragments, rows, self.form, damage, self.severity, given

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        grid = None if self.grid is None else list(self.grid.shape)
        own = {name: getattr(self, name) for name in ("form", "severity", "presentation", "fragments")}
        return {**own, "grid": grid}

    @classmethod
    def from_json(cls, node: Node) -> Setting:
        """The inverse of to_json, checked."""
        form, severity, presentation = (node.key(key).text() for key in ("form", "severity", "presentation"))
        grid = node.key("grid").optional()
        fragments = node.key("fragments").integer(0, MAX_FRAGMENTS)
        return cls(form, severity, presentation, None if grid is None else grid.grid(), fragments)


@dataclass(frozen=True)
class Spec:
    """One puzzle of an evaluation.

    Attributes:
        name: unique, a file name; it ends in a hash of all that the puzzle depends on.
        picture: what it was cut from, or what it is called, for people.
        kind: of the picture.
        seed: of the solvers.
        upright: the solvers are told that nothing is turned.
    """

    name: str
    setting: Setting
    picture: str
    kind: str
    seed: int
    upright: bool
    source: Source

    @property
    def grid(self) -> Grid | None:
        """The true layout's, where it is one."""
        return self.setting.grid

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, of which `from_json` makes the same spec again."""
        own = {name: getattr(self, name) for name in ("name", "picture", "kind", "seed", "upright")}
        return {**own, "setting": self.setting.to_json(), "source": self.source.to_json()}

    @classmethod
    def from_json(cls, data: Any, file: str = "puzzles.jsonl") -> Spec:
        """The inverse of to_json, checked; `file` is where it comes from."""
        node = Node(data, file)
        upright = node.key("upright")
        if not isinstance(upright.value, bool):
            raise upright.refuse("true or false")
        picture, kind = (node.key(key).text() for key in ("picture", "kind"))
        name, seed = file_name(node.key("name")), node.key("seed").integer(0, MAX_SEED)
        setting, source = Setting.from_json(node.key("setting")), parse_source(node.key("source"))
        return cls(name, setting, picture, kind, seed, upright.value, source)
