"""Corpora and evaluations at a URL: the bytes of a local folder, whole or absent, resumed after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import fsspec
import numpy as np
import pytest
import s3_server
from fsspec.implementations.memory import MemoryFileSystem

from jigsync.cli import main
from jigsync.corpus import sweep as corpus
from jigsync.corpus.plan import SweepOptions, load_sweep, plan_sweep
from jigsync.corpus.report import corpus_report
from jigsync.corpus.sweep import plan_units, write_shards
from jigsync.evaluate import plan, predict, run
from jigsync.evaluate.cache import Cache, Config
from jigsync.evaluate.progress import silent
from jigsync.evaluate.scores import score_cache
from jigsync.evaluate.spec import Method
from jigsync.io import lease
from jigsync.io.files import read_json, remove_leftovers, write_bytes, write_json
from jigsync.io.images import write_png
from jigsync.io.lease import only_writer
from jigsync.io.remote import Remote, place
from jigsync.io.shards import read_shard
from jigsync.values.errors import InputError, MissingExtraError, OptionError
from jigsync.values.layout import Grid

OPTIONS = SweepOptions((Grid(2, 3),), ("clean", "medium"), per_image=2, cell=16, seed=3)
ASKED = ["--grids=2x3", "--severities=clean,medium", "--per-image=2", "--cell=16", "--seed=3", "--shards"]
OWN = (".lock", "report.json")
"""Not part of a corpus."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my pictures é")
    rng = np.random.default_rng(5)
    for k in range(4):
        write_png(folder / f"p {k}.png", rng.integers(0, 256, (40, 56 + k, 3), dtype=np.uint8))
    return folder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PER_SHARD", 3)


@pytest.fixture(scope="module")
def made(images: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a whole corpus in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "PER_SHARD", 3)
        sweep = plan_sweep(images, tmp_path_factory.mktemp("corpus") / "out", OPTIONS)
        write_shards(sweep)
    assert isinstance(sweep.out, Path)
    files = (path for path in sweep.out.rglob("*") if path.is_file() and path.name not in OWN)
    return {path.relative_to(sweep.out).as_posix(): path.read_bytes() for path in files}


def objects(root: Any) -> dict[str, bytes]:
    return {name: (root / name).read(10**8) for name in root.below() if name not in OWN}


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with s3_server.s3_server() as env:
        yield env


@pytest.fixture
def s3(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The environment leads to the server."""
    from s3fs import S3FileSystem

    for name, value in server.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()
    return s3_server.client(server)


@pytest.fixture
def memory() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


# ---------------------------------------------------------------------------------------------- places


def test_places() -> None:
    assert place("a/b") == Path("a/b")
    assert place("file:///a/b") == place("local:///a/b") == Path("/a/b")
    there = place("s3://b/c/")
    assert there == Remote("s3://b/c") == place(there)
    assert isinstance(there, Remote)
    assert (there / "d" / "e.tar").parent.name == "d"
    assert str(there / "d") == "s3://b/c/d"
    for text, words in (
        ("s3://", "must name a folder, such as s3://bucket/corpus"),
        ("zip://a::s3://b/c", "must name one store"),
        ("nosuch://a/b", "cannot be used: Protocol not known: nosuch"),
    ):
        with pytest.raises(OptionError, match=words):
            place(text).is_file()


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_s3fs(*args: Any, **options: Any) -> None:
        raise ImportError("Install s3fs to access S3")  # as fsspec says it

    monkeypatch.setattr("fsspec.core.url_to_fs", no_s3fs)
    with pytest.raises(MissingExtraError, match=r"'s3fs', which is not installed: pip install 'jigsync\[remote\]'"):
        place("s3://b/c").is_file()
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"'fsspec', which is not installed: pip install 'jigsync\[remote\]'"):
        place("memory://b/c").is_file()


@pytest.mark.usefixtures("memory")
def test_objects_in_memory() -> None:
    root = place("memory://a/b")
    assert isinstance(root, Remote)
    assert (root.names(), root.below()) == (set(), set())
    write_json(root / "c" / "d.json", {"x": [1]})
    write_bytes(root / "e", b"12345")
    assert (root.names(), root.below()) == ({"c", "e"}, {"c/d.json", "e"})
    assert read_json(root / "c" / "d.json") == {"x": [1]}
    assert not (root / "c").is_file()
    with pytest.raises(InputError, match="'memory://a/b/e' must have at most 4 bytes"):
        (root / "e").read(4)
    with pytest.raises(InputError, match="'memory://a/b/f' cannot be read"):
        (root / "f").read(4)
    assert [(root / "g").create(b"1"), (root / "g").create(b"2"), (root / "g").read(9)] == [True, False, b"1"]
    (root / "g").unlink()
    (root / "g").unlink()
    assert not (root / "g").is_file()


class Plain(MemoryFileSystem):
    """A file system that is no object store: what is being written can be seen."""

    protocol = "plainmemory"
    fails = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.removeprefix("plain")))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        super().pipe_file(path, value[: len(value) // 2])
        if self.fails:
            raise OSError(28, "No space left on device")
        super().pipe_file(path, value)

    def mv(self, source: str, target: str, **options: Any) -> None:
        assert ".jigsync-" in source
        super().mv(source, target, **options)


@pytest.mark.usefixtures("memory")
def test_elsewhere_a_file_is_moved_into_place(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation("plainmemory", Plain, clobber=True)
    root = place("plainmemory://a")
    write_bytes(root / "b", b"whole")
    assert objects(root) == {"b": b"whole"}
    monkeypatch.setattr(Plain, "fails", True)
    with pytest.raises(InputError, match="'plainmemory://a/b' cannot be written: No space left on device"):
        write_bytes(root / "b", b"second")
    assert objects(root) == {"b": b"whole"}
    MemoryFileSystem().pipe_file("/a/.jigsync-1.tmp", b"left by a kill")
    remove_leftovers(root)
    assert objects(root) == {"b": b"whole"}


# ---------------------------------------------------------------------------------------------- corpora


@pytest.mark.usefixtures("memory")
def test_a_corpus_in_memory(made: dict[str, bytes], images: Path) -> None:
    sweep = plan_sweep(images, "memory://corpus/one", OPTIONS)
    write_shards(sweep)
    assert objects(sweep.out) == made
    assert load_sweep(sweep.out).rows == sweep.rows
    report = corpus_report(sweep.out)
    assert report.sound
    assert report.shards == report.shards_done == len(plan_units(sweep))
    read = [key for unit in plan_units(sweep) for key, _, _ in read_shard(unit.shard)]
    assert sorted(read) == sorted(row.key for row in sweep.rows)
    with pytest.raises(OptionError, match=r"holds another sweep \(other options\)"):
        plan_sweep(images, "memory://corpus/one", replace(OPTIONS, seed=4))
    write_bytes(place("memory://corpus/two/mine.txt"), b"x")
    with pytest.raises(OptionError, match=r"must be empty or hold a sweep. Got one with 'mine\.txt'"):
        plan_sweep(images, "memory://corpus/two", OPTIONS)
    with pytest.raises(OptionError, match="No other process can write to 'memory://corpus/one'"):
        write_shards(sweep, workers=2)


def test_a_sweep_too_large_for_one_manifest(images: Path, tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match=r"may have at most 2500000 puzzles\. Got 8000000: put the pictures into several"
    ):
        plan_sweep(images, tmp_path / "out", replace(OPTIONS, per_image=1_000_000))


def test_a_corpus_in_s3(s3: Any, made: dict[str, bytes], images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"s3://{s3_server.BUCKET}/whole"
    command = ["sweep", str(images), "--out", url, *ASKED, "--workers=2", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["report"]["sound"]
    listed = s3.list_objects_v2(Bucket=s3_server.BUCKET, Prefix="whole/")["Contents"]
    found = {entry["Key"].removeprefix("whole/"): entry for entry in listed}
    assert set(found) == {*made, "report.json"}, "and no lock"
    for name, data in made.items():
        assert s3.get_object(Bucket=s3_server.BUCKET, Key=f"whole/{name}")["Body"].read() == data
    time.sleep(1.1)  # the server's times have seconds
    assert main(command) == 0
    again = s3.list_objects_v2(Bucket=s3_server.BUCKET, Prefix="whole/shards")["Contents"]
    assert [entry["LastModified"] for entry in again] == [
        found[entry["Key"].removeprefix("whole/")]["LastModified"] for entry in again
    ]
    capsys.readouterr()
    assert main(["corpus", "report", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shards_done"] == len([name for name in made if name.endswith(".tar")])


KILLED = """
import os, signal, sys
from jigsync.cli import main
from jigsync.io.remote import Remote
from jigsync.corpus import sweep as corpus

corpus.PER_SHARD = 3
write = Remote.write

def die_before_the_third_stats(self, data):
    if "/stats/" in self.url and len((self.parent).names()) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, data)

Remote.write = die_before_the_third_stats
main(sys.argv[1:])
"""


def test_resume_in_s3_after_sigkill(
    s3: Any, made: dict[str, bytes], images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = f"s3://{s3_server.BUCKET}/killed", "killed/shards/train-000000.tar"
    command = [sys.executable, "-c", KILLED, "sweep", str(images), "--out", url, *ASKED, "--workers=1"]
    killed = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    root = place(url)
    assert isinstance(root, Remote)
    before = root.below()
    assert ".lock" in before, "the dead could not take it away"
    assert len([name for name in before if name.startswith("stats/")]) == 2
    assert len([name for name in before if name.startswith("shards/")]) == 3
    # An upload that was cut off is no object; an object without its stats counts for nothing.
    upload = s3.create_multipart_upload(Bucket=s3_server.BUCKET, Key="killed/shards/half.tar")["UploadId"]
    s3.upload_part(
        Bucket=s3_server.BUCKET, Key="killed/shards/half.tar", UploadId=upload, PartNumber=1, Body=b"x" * 1000
    )
    s3.delete_object(Bucket=s3_server.BUCKET, Key="killed/stats/train-000000.json")
    s3.put_object(Bucket=s3_server.BUCKET, Key=key, Body=b"half")
    monkeypatch.setattr(lease, "LEASE", 1.0)
    write_shards(plan_sweep(images, url, OPTIONS))
    assert objects(root) == made
    assert ".lock" not in root.names()


def test_two_writers_do_not_meet_in_s3(s3: Any, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT", 0.2)
    monkeypatch.setattr(lease, "LEASE", 20.0)
    root = place(f"s3://{s3_server.BUCKET}/two")
    start = time.monotonic()
    with only_writer(root), pytest.raises(OptionError, match="Another process is writing to 's3://jigsync/two'"):
        plan_sweep(images, root, OPTIONS)
    assert time.monotonic() - start < 19, "it saw the other one's beat"
    assert isinstance(root, Remote)
    assert root.names() == set()
    with only_writer(root), only_writer(root / "other"):
        pass


def test_who_was_taken_for_dead_leaves_the_lock_alone(memory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT", 0.01)
    root = place("memory://lock")
    with only_writer(root):
        (root / ".lock").write(b"another 0\n")  # type: ignore[union-attr]
        time.sleep(0.1)
    assert (root / ".lock").read(99) == b"another 0\n"  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------- evaluations


def test_an_evaluation_in_s3(s3: Any, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs, _ = plan.from_pictures(images, plan.Wanted((Grid(2, 3),), ("clean",), 3, cell=24), 1, silent)
    config = Config.of((Method("greedy", "boundary"),))
    scores = []
    for root in (tmp_path / "run", place(f"s3://{s3_server.BUCKET}/run")):
        run.begin(root, specs, config, 0)
        predict.predict(specs[:2], config, root, 1, lambda *_: None)
        assert Cache(root).lacking(specs, config) == specs[2:]
        predict.predict(specs, config, root, 1, lambda *_: None)
        found = [one for spec in specs for one in score_cache(spec, config, Cache(root))]
        scores.append([replace(one, seconds=0.0, measured=0.0) for one in found])
    assert len(scores[0]) == 3
    assert scores[0] == scores[1]
    assert main(["eval", "--out", f"s3://{s3_server.BUCKET}/run", "--json", "--gallery=0"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == 0
    names = Remote(f"s3://{s3_server.BUCKET}/run").names()
    assert {"eval.json", "puzzles.jsonl", "predictions", "truths", "scores.csv", "report.html"} <= names


# ---------------------------------------------------------------------------------------------- refusals


def refused(images: Path, url: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["sweep", str(images), "--out", url, *ASKED]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


def test_no_bucket(s3: Any, images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(images, "s3://no-such-bucket/corpus", capsys)
    assert "'s3://no-such-bucket/corpus/.lock' cannot be written: The specified bucket does not exist." in said


def test_access_denied(s3: Any, server: dict[str, str], images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def let_in(count: bytes) -> None:
        asked = Request(f"{server['AWS_ENDPOINT_URL']}/moto-api/reset-auth", count, {"Content-Type": "text/plain"})
        urlopen(asked, timeout=10).close()

    let_in(b"0")
    try:
        said = refused(images, f"s3://{s3_server.BUCKET}/denied", capsys)
    finally:
        let_in(b"inf")
    assert f"'s3://{s3_server.BUCKET}/denied/.lock' cannot be written: " in said


def test_no_network(s3: Any, images: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert "Could not connect to the endpoint" in refused(images, f"s3://{s3_server.BUCKET}/net", capsys)
