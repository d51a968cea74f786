"""Every reader, given mutations of valid files, takes or refuses them in a sentence; benchmarks/fuzz.py goes on."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
from pathlib import Path

import fuzz_readers
import pytest
from fuzz_mutations import mutated
from fuzz_readers import READERS, Defect, Reader, attempt
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsync.values.errors import InputError

ROOT = Path(__file__).parents[1]
NEEDS = {"gap": "h5py", "matcher": "onnx", "card": "onnx", "checkpoint": "torch", "dino": "torch"}
SAVED = sorted((Path(__file__).parent / "fuzz-cases").iterdir())


def usable(reader: Reader) -> Reader:
    if importlib.util.find_spec(NEEDS.get(reader.name, "json")) is None:
        pytest.skip(f"{NEEDS[reader.name]} is not installed")
    return reader


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_mutated_files_are_taken_or_refused(reader: Reader) -> None:
    valid = usable(reader).seeds()

    @settings(max_examples=6 if reader.slow else 20, database=None)
    @given(draw=st.randoms(use_true_random=True))
    def check(draw: random.Random) -> None:
        attempt(reader, mutated(draw.choice(valid), draw))

    check()


@pytest.mark.parametrize("reader", [r for r in READERS if r.name not in ("card", "dino")], ids=lambda r: r.name)
def test_the_valid_files_are_taken(reader: Reader) -> None:
    """Else the mutations would never get past the first check."""
    for case in usable(reader).seeds():
        assert attempt(reader, case) == ""


@pytest.mark.parametrize("folder", SAVED, ids=lambda folder: folder.name)
def test_what_was_found_once(folder: Path) -> None:
    reader = usable(fuzz_readers.get(folder.name.rpartition("-")[0]))
    case = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert attempt(reader, case)


def test_the_fuzzer_sees_defects() -> None:
    def fails(folder: Path) -> None:
        raise KeyError("x")

    def rambles(folder: Path) -> None:
        raise InputError("no " * 1000)

    for read in (fails, rambles):
        with pytest.raises(Defect):
            attempt(Reader("bad", lambda: ({"a": b""},), read), {"a": b""})


READING = re.compile(
    r"^(open|open_plain|read_bytes|read_text|read_json|read_jsonl|load_file|safe_open|File|ZipFile|InferenceSession)$"
)
READ_BY = {
    "api.py": "picture",
    "cli/cut.py": "picture",
    "cli/tear.py": "picture",
    "io/files.py": "truth",
    "io/gap.py": "gap",
    "io/images.py": "picture",
    "io/lay_file.py": "lay",
    "io/puzzle_folder.py": "puzzle",
    "io/shards.py": "shard",
    "io/solution_file.py": "solution",
    "io/truth_file.py": "truth",
    "learn/checkpoint.py": "checkpoint",
    "learn/chunks.py": "checkpoint",
    "learn/curve.py": "checkpoint",
    "measure/pairwise.py": "card",
    "measure/vit.py": "dino",
    "measure/weights.py": "matcher",
    "learn/fit/calibrate.py": "calibration",
    "evaluate/cache.py": "evaluation",
    "evaluate/run.py": "evaluation",
    "evaluate/sources.py": "corpus",
    "io/shapes_file.py": "evaluation",
    "score/kinds.py": "kinds",
    "corpus/sweep.py": "corpus",
    "corpus/manifest.py": "corpus",
    "corpus/met.py": "met",
    "corpus/plan.py": "corpus",
    "corpus/report.py": "corpus",
    "corpus/stats.py": "corpus",
    "web/archive.py": "zip",
    "web/kept.py": "kept",
    "web/tasks.py": "kept",
}
"""Every module that opens files which others may have written -> the reader that fuzzes it."""
OUR_OWN = {
    "cli/__init__.py": "/dev/null",
    "cli/tear.py": "bytes, which read_rgb parses",
    "io/lease.py": "a lock, written only",
    "io/remote.py": "bytes, which the readers above parse",
    "belief.py": "shipped",
    "learn/fit/belief.py": "what this command has written before",
    "learn/turned.py": "pictures, which read_rgb parses, and a table that the command is told of",
    "render/layers.py": "what it has just made",
    "web/photo_tasks.py": "bytes, which read_rgba parses",
    "learn/export.py": "what this command has just written",
    "learn/onnx_file.py": "what this command has just written",
    "gauge.py": "shipped",
    "measure/calibration.py": "shipped",
    "solvers/confidence.py": "shipped",
    "cutting/web.py": "a JPEG that it has just made",
    "evaluate/fingerprint.py": "our own source",
    "corpus/download.py": "bytes, which met parses",
    "corpus/ray_engine.py": "our own source",
    "engine/build.py": "our own source",
    "web/app.py": "our own pages",
    "web/room.py": "a lock",
    "web/answers.py": "what a worker has just written",
    "web/forms.py": "written only",
    "web/pixels.py": "what a worker has just written",
    "web/project.py": "written only",
    "web/puzzles.py": "what a worker has just written",
    "web/store.py": "what a worker has just written",
    "web/worker.py": "/proc",
}


def test_no_reader_is_forgotten() -> None:
    found = set()
    for path in (ROOT / "src" / "jigsync").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if READING.match(name):
                    found.add(path.relative_to(ROOT / "src" / "jigsync").as_posix())
    assert found <= {*READ_BY, *OUR_OWN}, "a module that reads files and is not listed here"
    assert set(READ_BY.values()) <= {reader.name for reader in READERS}


def test_nothing_is_unpickled_or_evaluated() -> None:
    for path in (ROOT / "src" / "jigsync").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                assert not {name.partition(".")[0] for name in modules} & {"pickle", "marshal", "shelve", "yaml"}, path
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("eval", "exec", "pickle.load", "pickle.loads"), path
                kept = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if called == "torch.load":
                    assert kept.get("weights_only") == "True", path
                if called in ("np.load", "numpy.load"):
                    assert kept.get("allow_pickle") == "False", path
