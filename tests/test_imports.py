"""`import jigsync` and `jigsync --help` stay light, and every public name is where the table says."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import jigsync

OPTIONAL = ["accelerate", "fastapi", "h5py", "matplotlib", "onnx", "onnxruntime", "ray", "safetensors", "torch"]
OPTIONAL += ["uvicorn", "webdataset"]
HEAVY = ["PIL", "cv2", "numpy", "scipy"]

# Looks at what is *asked for*, not at what is found: an optional package that is absent here would otherwise
# hide behind `except ImportError`.
WATCH = """
import json, sys

class Watch:
    asked = set()
    def find_spec(self, name, path=None, target=None):
        self.asked.add(name.partition(".")[0])

sys.meta_path.insert(0, Watch())
{code}
print("\\n" + json.dumps(sorted(Watch.asked)))
"""


def asked_for(code: str) -> set[str]:
    """Top-level packages that the code tries to import, in a process of its own."""
    command = [sys.executable, "-c", WATCH.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import jigsync; jigsync.__version__; dir(jigsync)",
        "from jigsync.cli import main; assert main(['--help']) == 0",
        "from jigsync.cli import main; assert main(['--version']) == 0",
    ],
    ids=["import", "help", "version"],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    asked = asked_for(code)
    assert "jigsync" in asked
    assert not asked & {*OPTIONAL, *HEAVY}


def test_the_watch_sees_imports_that_fail() -> None:
    assert "no_such_package" in asked_for("try:\n    import no_such_package.deep\nexcept ImportError:\n    pass")


def test_using_the_api_needs_no_optional_package() -> None:
    asked = asked_for("import jigsync\nfor name in jigsync.__all__: getattr(jigsync, name)")
    assert "numpy" in asked
    assert not asked & set(OPTIONAL)


def test_public_names_exist_and_are_lazy() -> None:
    for name in jigsync.__all__:
        assert getattr(jigsync, name) is not None
    assert set(jigsync.__all__) <= set(dir(jigsync))
    with pytest.raises(AttributeError, match="no attribute 'puzzles'"):
        jigsync.puzzles  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(jigsync.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module, alias.asname) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {(module, name) for module, names in jigsync._MODULES.items() for name in names}
