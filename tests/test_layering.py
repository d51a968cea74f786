"""Data flows one way: a stage imports only from stages before it, and nothing that solves can reach the truth."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jigsync

SOURCE = Path(jigsync.__file__).parent

VALUES = {"values"}
STAGES = VALUES | {
    "solution",
    "io",
    "data",
    "scan",
    "cutting",
    "measure",
    "engine",
    "sync",
    "solvers",
    "render",
    "gauge",
    "pictures",
    "belief",
    "advice",
}
MAY_IMPORT: dict[str, set[str]] = {
    "values": set(),
    "solution": VALUES,
    "data": VALUES,
    "weights": set(),
    "io": VALUES | {"solution"},
    "cutting": VALUES | {"io"},
    "scan": VALUES | {"io"},
    "measure": VALUES | {"io"},
    "engine": VALUES,
    "sync": VALUES,
    "solvers": VALUES | {"engine", "sync"},
    "render": VALUES | {"solution", "score"},
    "gauge": VALUES | {"solution", "io", "measure", "render"},
    "pictures": VALUES | {"solution", "solvers", "gauge"},
    "belief": VALUES | {"solution"},
    "advice": VALUES | {"solution"},
    "score": VALUES | {"solution", "io"},
    "api": STAGES,
    "corpus": VALUES | {"io", "cutting"},
    "evaluate": STAGES | {"api", "score", "corpus"},
    "learn": STAGES | {"api", "score", "corpus"},
    "studies": STAGES | {"api", "score", "corpus", "evaluate", "learn"},
    "web": STAGES | {"api", "score"},
    "cli": STAGES | {"api", "score", "corpus", "evaluate", "learn", "studies", "web"},
    "__main__": {"cli"},
    "__init__": set(),
}
"""What each part may import when it is loaded. Imports inside functions and for type checkers are free..."""

BLIND = ("measure", "engine", "sync", "solvers")
HIDDEN = {"truth", "cutting", "corpus", "score", "evaluate", "studies"}
"""...but no part of BLIND may name HIDDEN anywhere, not even inside a function; `truth` is `values.truth`."""


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def when_loaded(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement that runs when the module is imported: all but function bodies and TYPE_CHECKING blocks."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)


def parts_named(nodes: Iterator[ast.AST], package: str) -> set[str]:
    """Parts of jigsync that import statements among the nodes name; `package` resolves relative imports."""
    found = set()
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        found |= {part_named(name) for name in names if name.startswith("jigsync.")}
    return found - {"__version__"}


def part_named(name: str) -> str:
    """The part of a dotted name; `values.truth` is a part of its own for whoever must not see it."""
    return "truth" if name.startswith("jigsync.values.truth") else name.split(".")[1]


def parts_in_strings(nodes: list[ast.AST]) -> set[str]:
    """Parts named by strings such as "jigsync.sync.rotation:Rotation", from which registries import."""
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {part_named(text.split(":")[0]) for text in texts if re.fullmatch(r"jigsync\.\w+[\w.]*(:\w+)?", text)}


def package_of(path: Path) -> str:
    return ".".join(["jigsync", *path.relative_to(SOURCE).parent.parts])


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_stage_imports_only_earlier_stages(path: Path) -> None:
    part = part_of(path)
    assert part in MAY_IMPORT, f"Say in MAY_IMPORT where '{part}' stands."
    named = parts_named(when_loaded(ast.parse(path.read_text(encoding="utf-8"))), package_of(path))
    seen = {"values" if name == "truth" else name for name in named}
    assert seen - {part} <= MAY_IMPORT[part]


@pytest.mark.parametrize(
    "path", [p for p in MODULES if part_of(p) in BLIND], ids=lambda path: path.relative_to(SOURCE).as_posix()
)
def test_nothing_that_solves_can_reach_the_truth(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    assert not (parts_named(iter(nodes), package_of(path)) | parts_in_strings(nodes)) & HIDDEN
    assert "truth.json" not in text
    assert "truth_file" not in text


def names_imported(tree: ast.Module) -> set[str]:
    """Dotted names that import statements name anywhere but for type checkers."""
    for_types = {
        id(below)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for below in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_files_have_no_cycle() -> None:
    """Not even through imports inside functions."""
    name_of = {".".join(["jigsync", *path.relative_to(SOURCE).with_suffix("").parts]): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in name_of.items() if name != "jigsync.__init__"}
    left = {
        name: {other for other in names_imported(ast.parse(path.read_text(encoding="utf-8"))) if other in names}
        - {name}
        for name, path in names.items()
    }
    packages = {name for name in left if names[name].name == "__init__.py"}
    left = {name: needs - packages for name, needs in left.items()}
    done: set[str] = set(packages)
    while left:
        free = {name for name, needs in left.items() if needs <= done}
        assert free, f"a cycle among {sorted(left)}"
        done |= free
        left = {name: needs for name, needs in left.items() if name not in free}


def test_layers_have_no_cycle() -> None:
    done: set[str] = set()
    left = dict(MAY_IMPORT)
    while left:
        free = {part for part, needs in left.items() if needs <= done}
        assert free, f"a cycle among {sorted(left)}"
        done |= free
        left = {part: needs for part, needs in left.items() if part not in free}


@pytest.mark.parametrize(
    ("source", "loaded", "anywhere"),
    [
        ("import jigsync.values.truth", {"truth"}, {"truth"}),
        ("from jigsync import values, io", {"values", "io"}, {"values", "io"}),
        ("from ..values.truth import Truth", {"truth"}, {"truth"}),
        ("from ..values import truth", {"truth"}, {"truth"}),
        ("from ..values import z4", {"values"}, {"values"}),
        ("from . import sides", {"measure"}, {"measure"}),
        ("def f():\n    from jigsync.values.truth import Truth", set(), {"truth"}),
        ("class A:\n    import jigsync.studies", {"studies"}, {"studies"}),
        ("if TYPE_CHECKING:\n    import jigsync.web\nelse:\n    import jigsync.cli", {"cli"}, {"web", "cli"}),
        ("try:\n    import jigsync.corpus\nexcept ImportError:\n    pass", {"corpus"}, {"corpus"}),
        ("import numpy, jigsync", set(), set()),
    ],
)
def test_the_test_sees_every_kind_of_import(source: str, loaded: set[str], anywhere: set[str]) -> None:
    tree = ast.parse(source)
    assert parts_named(when_loaded(tree), "jigsync.measure") == loaded
    assert parts_named(iter(ast.walk(tree)), "jigsync.measure") == anywhere


def test_the_test_sees_imports_by_name() -> None:
    nodes = list(ast.walk(ast.parse("import_module('jigsync.values.truth'); A = {'x': 'jigsync.score.cells:Score'}")))
    assert parts_in_strings(nodes) == {"truth", "score"}


def test_the_map_of_the_readme_is_in_order() -> None:
    """What the README says: a folder imports only from folders above it."""
    readme = (SOURCE.parents[1] / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| `src/jigsync/` |")[2].partition("\n\n")[0]
    listed = [name.rstrip("/").removesuffix(".py") for name in re.findall(r"^\| `([\w./]+)` \|", table, re.MULTILINE)]
    assert set(listed) == set(MAY_IMPORT) - {"__main__", "__init__"}
    for k, part in enumerate(listed):
        assert MAY_IMPORT[part] <= set(listed[:k]), part
