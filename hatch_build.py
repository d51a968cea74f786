"""Build hook: compiles the decoder into the wheel, and in place for an editable install."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ENGINE = Path(__file__).resolve().parent / "src" / "jigsync" / "engine"


def _build_module() -> ModuleType:
    """jigsync.engine.build without importing jigsync, whose dependencies are not there yet."""
    spec = importlib.util.spec_from_file_location("_jigsync_build", ENGINE / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class EngineBuildHook(BuildHookInterface[Any]):
    """The wheel holds a library for one platform and no Python ABI: py3-none-<platform>."""

    def dependencies(self) -> list[str]:
        """The C compiler that comes as a wheel, when the system has none."""
        if self.target_name != "wheel" or _build_module().system_compiler():
            return []
        return ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        library = _build_module().build()
        build_data["artifacts"].append(library.relative_to(self.root).as_posix())
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
