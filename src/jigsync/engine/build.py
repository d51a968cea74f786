"""Builds the compiled decoder: `python -m jigsync.engine.build` in a source checkout, or the wheel's build hook.

Standard library only, because hatch_build.py loads this file before any dependency is installed. The library
carries a hash of the sources it was made from, so a stale one is told from a current one wherever it lies.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3", "-std=c11", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-shared", "-D_POSIX_C_SOURCE=200809L")
THREADS = () if sys.platform == "win32" else ("-pthread",)
"""Portable and reproducible: no -march=native, no contraction of a * b + c that would differ between machines."""


def sources(here: Path = HERE) -> list[Path]:
    """Every file the library is made from, engine.c (the one that is compiled) first."""
    return [here / "engine.c", *sorted((here / "src").glob("*.[ch]"))]


def source_hash(here: Path = HERE) -> str:
    """sha256 over names and contents of the sources, 16 hex digits; '' when they are not there."""
    if not (here / "engine.c").is_file():
        return ""
    digest = hashlib.sha256()
    for path in sources(here):
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def library_path(here: Path = HERE) -> Path:
    """Where the shared library belongs on this platform."""
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    return here / f"_engine{suffix}"


def system_compiler() -> list[str] | None:
    """$CC, cc, gcc or clang, or None."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        parts = name.split()
        if parts and shutil.which(parts[0]):
            return parts
    return None


def compiler() -> list[str]:
    """The system's C compiler, else the one of the `ziglang` wheel."""
    found = system_compiler()
    if found:
        return found
    if subprocess.run([sys.executable, "-c", "import ziglang"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise SystemExit("No C compiler: install cc, gcc or clang, or 'pip install ziglang', then build again.")


def build(here: Path = HERE, extra: tuple[str, ...] = ()) -> Path:
    """Compiles engine.c beside itself, under a temporary name first, and returns the library's path."""
    target = library_path(here)
    partial = target.with_name(f"{target.stem}.{os.getpid()}.partial{target.suffix}")
    define = f'-DJIG_SOURCE="{source_hash(here)}"'
    math = [] if sys.platform == "win32" else ["-lm"]
    command = [*compiler(), *FLAGS, *THREADS, *extra, define, "-o", str(partial), str(here / "engine.c"), *math]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"The decoder could not be compiled with {command[0]}:\n{done.stderr.strip()}")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


if __name__ == "__main__":
    print(build(extra=tuple(sys.argv[1:])))
