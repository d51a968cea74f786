"""The compiled decoder under sanitizers: it touches only what is its own, and no two threads touch it at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jigsync.engine import build

HERE = Path(__file__).parent


def _sanitized(script: str, runtime: str, flags: str, folder: Path, environment: dict[str, str]) -> str:
    """What a script says on standard output with a decoder built like this; skips where the compiler cannot."""
    compiler = build.system_compiler()
    if sys.platform != "linux" or compiler is None:
        pytest.skip("There is no system compiler for Linux.")
    # The sanitizer's library must be loaded before Python.
    said = subprocess.run([*compiler, f"-print-file-name={runtime}"], capture_output=True, text=True).stdout.strip()
    if not (os.path.isabs(said) and Path(said).exists()):
        pytest.skip(f"The compiler has no {runtime}.")
    for path in build.sources():
        copy = folder / path.relative_to(build.HERE)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    library = build.build(folder, ("-O1", "-g", f"-fsanitize={flags}"))
    environment = os.environ | {"LD_PRELOAD": said, "OMP_NUM_THREADS": "1"} | environment
    command = [sys.executable, str(HERE / script), str(library)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("This kernel lays memory out as the thread sanitizer cannot bear it.")
    assert done.returncode == 0, done.stderr[:3000]
    assert "runtime error" not in done.stderr, done.stderr[:3000]
    return done.stdout


def test_no_foreign_memory_is_touched(tmp_path: Path) -> None:
    # Python itself leaves things behind, which is no fault of the decoder.
    leaks = {"ASAN_OPTIONS": "detect_leaks=0"}
    assert _sanitized("engine_fuzz.py", "libasan.so", "address,undefined", tmp_path, leaks) == "decoded\n"


def test_no_two_threads_touch_the_same_memory_at_once(tmp_path: Path) -> None:
    races = {"TSAN_OPTIONS": "halt_on_error=1 exitcode=66"}
    assert _sanitized("engine_race.py", "libtsan.so", "thread", tmp_path, races) == "raced\n"
