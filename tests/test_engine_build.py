"""The compiled decoder is found, told from a stale one, and built without a system compiler too."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jigsync.engine import build
from jigsync.engine import library as engine_library
from jigsync.values.errors import JigsyncError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def fresh_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_library, "library", engine_library.library.__wrapped__)


@pytest.mark.usefixtures("fresh_library")
def test_a_missing_library_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "library_path", lambda: tmp_path / "none.so")
    with pytest.raises(JigsyncError, match=r"missing.*python -m jigsync\.engine\.build"):
        engine_library.library()


@pytest.mark.usefixtures("fresh_library")
def test_a_file_that_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    monkeypatch.setattr(build, "library_path", lambda: tmp_path / "text.so")
    with pytest.raises(JigsyncError, match="cannot be loaded"):
        engine_library.library()


@pytest.mark.usefixtures("fresh_library")
def test_a_stale_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "source_hash", lambda: "0" * 16)
    with pytest.raises(JigsyncError, match="older than its sources"):
        engine_library.library()


def test_the_hash_sees_every_source(tmp_path: Path) -> None:
    copy = tmp_path / "engine"
    shutil.copytree(build.HERE / "src", copy / "src")
    shutil.copy(build.HERE / "engine.c", copy)
    before = build.source_hash(copy)
    assert before == build.source_hash()
    for path in build.sources(copy):
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\n/* changed */\n", encoding="utf-8")
        assert build.source_hash(copy) != before, path.name
        path.write_text(text, encoding="utf-8")
    assert build.source_hash(tmp_path) == ""


@pytest.mark.skipif(build.system_compiler() is None, reason="no system C compiler")
def test_a_compiler_error_is_shown(tmp_path: Path) -> None:
    (tmp_path / "engine.c").write_text("this is not C")
    with pytest.raises(SystemExit, match="could not be compiled"):
        build.build(tmp_path)
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.skipif(build.system_compiler() is None, reason="no system C compiler")
def test_sources_compile_without_a_warning(tmp_path: Path) -> None:
    command = [*(build.system_compiler() or ()), *build.FLAGS, "-O0", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", str(tmp_path / "x.so"), str(build.HERE / "engine.c"), "-lm"], check=True)


@pytest.mark.skipif(not (ROOT / "hatch_build.py").is_file(), reason="not a source checkout")
def test_without_a_system_compiler_the_wheel_asks_for_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook_module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hatch_build", hook_module)
    spec.loader.exec_module(hook_module)
    hook = hook_module.EngineBuildHook(str(ROOT), {}, None, None, str(ROOT), "wheel")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    assert [requirement.partition(">")[0] for requirement in hook.dependencies()] == ["ziglang"]
    sdist = hook_module.EngineBuildHook(str(ROOT), {}, None, None, str(ROOT), "sdist")
    assert sdist.dependencies() == []
