"""SECURITY.md names tests and limits that exist; what it says of networks and models holds."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from jigsync.cli import LEAST_KILOBYTES
from jigsync.measure.onnx_check import check_model
from jigsync.measure.weights import weights_path
from jigsync.values.errors import FormatError
from jigsync.web.limits import Limits

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
SHIPPED = sorted(path.stem for path in weights_path("matcher.onnx", None).parent.glob("*.onnx"))


def test_every_named_test_exists() -> None:
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", PAGE)
    assert len(named) > 15
    for file, test in named:
        functions = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        assert test in {node.name for node in functions if isinstance(node, ast.FunctionDef)}, f"{file}::{test}"


def test_every_limit_is_the_one_in_the_code() -> None:
    rows = re.findall(r"\| ([\d ]+) \| `([\w.]+)` \|", PAGE)
    assert len(rows) > 10
    for value, name in rows:
        module, _, constant = name.rpartition(".")
        owner, _, kind = module.rpartition(".")
        holder = getattr(importlib.import_module(owner), kind) if kind[0].isupper() else importlib.import_module(module)
        found = getattr(holder, constant)
        assert found == int(value.replace(" ", "")), name


def test_every_limit_of_the_workbench_is_told() -> None:
    told = set(re.findall(r"`jigsync\.web\.limits\.Limits\.(\w+)`", PAGE))
    assert told == {field.name for field in fields(Limits)}


def test_the_least_memory_is_told() -> None:
    for flag, least in LEAST_KILOBYTES.values():
        assert f"{least:,} kB".replace(",", " ") in PAGE
        assert f"`ulimit {flag}`" in PAGE


def test_solving_opens_no_connection(tmp_path: Path) -> None:
    """From a picture to an assembled one, in a process that cannot make a socket."""
    program = (
        "import socket, sys\n"
        "def refuse(*_, **__):\n    raise AssertionError('a socket')\n"
        "socket.socket = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from jigsync import cut, data, solve\n"
        "solution = solve(cut(data.picture('chelsea'), '2x2', 'light', cell=32))\n"
        "solution.assemble()\n"
        "print(solution.status)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.stdout in ("ok\n", "partial\n"), done.stderr


@pytest.mark.parametrize("name", SHIPPED)
def test_our_models_need_no_more_than_is_allowed(name: str) -> None:
    check_model(weights_path(f"{name}.onnx", None).read_bytes(), name)


@pytest.mark.parametrize("cut", [0, 1, 7, 1000])
def test_a_model_that_ends_early_is_none(cut: int) -> None:
    data = weights_path("matcher.onnx", None).read_bytes()
    with pytest.raises(FormatError, match="not a usable ONNX model"):
        check_model(data[:cut], "x")
