"""The compiled decoder under the address sanitizer: it reads and writes nothing that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jigsync.engine import build

FUZZ = Path(__file__).with_name("engine_fuzz.py")


def _runtime() -> str | None:
    """The sanitizer's library, which must be loaded before Python; None where the compiler has none."""
    compiler = build.system_compiler()
    if sys.platform != "linux" or compiler is None:
        return None
    said = subprocess.run([*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return said if os.path.isabs(said) and Path(said).exists() else None


def test_no_foreign_memory_is_touched(tmp_path: Path) -> None:
    runtime = _runtime()
    if runtime is None:
        pytest.skip("no compiler with an address sanitizer")
    for path in build.sources():
        copy = tmp_path / path.relative_to(build.HERE)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    library = build.build(tmp_path, ("-O1", "-g", "-fsanitize=address,undefined"))
    # Python itself leaves things behind, which is no fault of the decoder.
    environment = os.environ | {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([sys.executable, str(FUZZ), str(library)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    assert done.stdout == "decoded\n"
    assert "runtime error" not in done.stderr, done.stderr[:3000]
