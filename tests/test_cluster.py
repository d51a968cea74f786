"""Engines: the same bytes and scores on processes and on Ray, and nothing lost or doubled when workers or nodes die."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cluster_work
import numpy as np
import pytest
import s3_server
from s3fs import S3FileSystem

import jigsync
from jigsync.corpus import ray_engine
from jigsync.corpus import sweep as corpus
from jigsync.corpus.engines import open_engine
from jigsync.corpus.plan import Sweep, SweepOptions, plan_sweep
from jigsync.corpus.pool import run_units
from jigsync.corpus.ray_engine import RayEngine, check_identity, identity_here
from jigsync.corpus.sweep import plan_units, write_shards
from jigsync.evaluate import plan, predict
from jigsync.evaluate.cache import Cache, Config
from jigsync.evaluate.progress import silent
from jigsync.evaluate.scores import score_cache
from jigsync.evaluate.spec import Method
from jigsync.io.images import write_png
from jigsync.io.remote import Remote
from jigsync.values.errors import InputError, MissingExtraError, OptionError
from jigsync.values.layout import Grid

OPTIONS = SweepOptions((Grid(2, 3),), ("clean", "medium"), per_image=2, cell=16, seed=3)
ASKED = ["--grids=2x3", "--severities=clean,medium", "--per-image=2", "--cell=16", "--seed=3", "--shards", "--json"]
STORE = 80 * 2**20


@dataclass(frozen=True)
class TwoNodes:
    """A Ray of two nodes on this machine."""

    cluster: Any
    second: Any
    address: str
    engine: RayEngine


@pytest.fixture(scope="module")
def ray_nodes() -> Iterator[TwoNodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        # Nodes are processes of their own: what is not installed comes to them this way.
        folders = (Path(__file__).parent, Path(jigsync.__file__).parents[1], os.environ.get("PYTHONPATH", ""))
        patch.setenv("PYTHONPATH", os.pathsep.join(str(folder) for folder in folders))
        with s3_server.s3_server() as env:
            for name, value in env.items():
                patch.setenv(name, value)
            cluster, second = started()
            try:
                with ray_engine.ray_engine(cluster.address, 4) as engine:
                    yield TwoNodes(cluster, second, cluster.address, engine)
            finally:
                cluster.shutdown()


def started() -> tuple[Any, Any]:
    """A cluster and its second node. A node gives up when a busy machine does not start its helpers in 15 s."""
    from ray.cluster_utils import Cluster

    # No more helpers than Ray needs: each is a process of Python.
    node = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    for left in (2, 1, 0):
        cluster = Cluster()
        try:
            return cluster, [cluster.add_node(num_cpus=1, object_store_memory=STORE, **node) for _ in range(2)][1]
        except Exception:
            cluster.shutdown()
            if not left:
                raise
    raise AssertionError


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my pictures é")
    rng = np.random.default_rng(5)
    for k in range(6):
        write_png(folder / f"p {k}.png", rng.integers(0, 256, (40, 56 + k, 3), dtype=np.uint8))
    return folder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PER_SHARD", 3)


@pytest.fixture(scope="module")
def made(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A whole corpus, made by one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "PER_SHARD", 3)
        sweep = plan_sweep(images, tmp_path_factory.mktemp("corpus") / "out", OPTIONS)
        write_shards(sweep)
    return sweep


def tree(folder: Any) -> dict[str, str]:
    """Relative name -> hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ---------------------------------------------------------------------------------------------- processes here


def test_a_process_that_dies_loses_nothing(made: Sweep, images: Path, tmp_path: Path) -> None:
    (tmp_path / "signs").mkdir()
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    write_shards(sweep, workers=cluster_work.Spoiled(2, cluster_work.die_while_writing, tmp_path / "signs"))
    assert (tmp_path / "signs" / "death").exists()
    assert tree(sweep.out) == tree(made.out), "also no half shard of the dead"


def test_a_unit_that_kills_every_process_is_given_up(tmp_path: Path) -> None:
    engine = cluster_work.Spoiled(2, cluster_work.always_die, tmp_path)
    with pytest.raises(InputError, match="A worker process died 3 times, most likely for want of memory: try fewer"):
        list(engine.run(cluster_work.double, [1, 2]))
    assert len(list(tmp_path.iterdir())) >= 3


def test_every_error_comes_home_from_a_process() -> None:
    for error in (MissingExtraError("It", "that", "extra"), OptionError("No."), InputError("No.")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


# ---------------------------------------------------------------------------------------------- Ray


def test_both_nodes_work(ray_nodes: TwoNodes, tmp_path: Path) -> None:
    (tmp_path / "doomed").write_text("none", encoding="utf-8")
    engine = cluster_work.Spoiled(ray_nodes.engine, cluster_work.wait_on_the_second_node, tmp_path)
    results = dict(engine.run(cluster_work.here, range(8)))
    assert sorted(results) == list(range(8))
    assert len({node for node, _ in results.values()}) == 2
    assert os.getpid() not in {pid for _, pid in results.values()}
    assert dict(run_units(cluster_work.double, [3, 1, 2], ray_nodes.engine)) == {1: 2, 2: 4, 3: 6}


def test_a_killed_worker_loses_and_doubles_nothing(
    ray_nodes: TwoNodes, made: Sweep, images: Path, tmp_path: Path
) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    units = plan_units(sweep)
    corpus.write_unit(units[0])  # begun by this process, ended by Ray
    kept = units[0].shard.stat().st_mtime_ns  # type: ignore[union-attr]
    seen: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        seen.extend([done] if what == "puzzles cut" else [])

    engine = cluster_work.Spoiled(ray_nodes.engine, cluster_work.die_while_writing, signs)
    write_shards(sweep, workers=engine, progress=progress)
    assert tree(sweep.out) == tree(made.out)
    assert units[0].shard.stat().st_mtime_ns == kept  # type: ignore[union-attr]
    begun = [path for path in signs.iterdir() if path.name != "death"]
    assert len(begun) == len(units) - 1 + 1, "one was begun a second time"
    assert len(seen) == len(units) - 1, "and each was counted once"
    assert seen[-1] == len(sweep.rows)


def test_ctrl_c_stops_and_the_other_engine_goes_on(
    ray_nodes: TwoNodes, made: Sweep, images: Path, tmp_path: Path
) -> None:
    def stop(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        write_shards(sweep, workers=ray_nodes.engine, progress=stop)
    units = plan_units(sweep)
    assert 1 <= len(corpus.finished(units)) < len(units)
    write_shards(sweep)
    assert tree(sweep.out) == tree(made.out)


def test_scores_are_the_same(ray_nodes: TwoNodes, images: Path, tmp_path: Path) -> None:
    wanted = plan.Wanted((Grid(2, 3),), ("clean", "light"), 3, cell=24)
    specs, _ = plan.from_pictures(images, wanted, 1, silent)
    config = Config.of((Method("greedy", "boundary"), Method("tree", "mgc")))
    signs = tmp_path / "signs"
    signs.mkdir()
    spoiled = cluster_work.Spoiled(ray_nodes.engine, cluster_work.die_while_writing, signs)
    scores = []
    for name, workers in (("local", 1), ("ray", spoiled)):
        predict.predict(specs, config, tmp_path / name, workers, lambda *_: None)  # type: ignore[arg-type]
        found = [one for spec in specs for one in score_cache(spec, config, Cache(tmp_path / name))]
        scores.append([replace(one, seconds=0.0, measured=0.0) for one in found])
    assert (signs / "death").exists()
    assert len(scores[0]) == 12
    assert scores[0] == scores[1]


def test_what_workers_cannot_do_is_named(ray_nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_png(tmp_path / "in" / "a.png", np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8))
    sweep = plan_sweep(tmp_path / "in", tmp_path / "out", replace(OPTIONS, per_image=1))
    (tmp_path / "in" / "a.png").unlink()
    with pytest.raises(InputError, match=r"On the Ray node .*: The path '.*a\.png' cannot be read: No such file"):
        write_shards(sweep, workers=ray_nodes.engine)
    other = replace(ray_nodes.engine, identity={**ray_nodes.engine.identity, "Pillow": "0.1"})
    with pytest.raises(InputError, match=r"On the Ray node .*: This worker has Pillow 1.*, the driver has Pillow 0\.1"):
        list(other.run(cluster_work.double, [1]))
    ghost = types.ModuleType("ghost")
    exec("def work(unit): return unit", ghost.__dict__)
    monkeypatch.setitem(sys.modules, "ghost", ghost)
    with pytest.raises(InputError, match=r"A Ray worker has no module 'ghost': install jigsync 0"):
        list(ray_nodes.engine.run(ghost.work, [1]))


def test_a_unit_that_kills_every_worker_is_given_up(
    ray_nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "ATTEMPTS", 2)
    engine = cluster_work.Spoiled(ray_nodes.engine, cluster_work.always_die, tmp_path)
    with pytest.raises(InputError, match=r"A worker process died .*the last time, Ray said: "):
        list(engine.run(cluster_work.double, [1]))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_lost_node_loses_and_doubles_nothing(ray_nodes: TwoNodes, made: Sweep, images: Path, tmp_path: Path) -> None:
    signs = tmp_path / "signs"
    signs.mkdir()
    (signs / "doomed").write_text(ray_nodes.second.node_id, encoding="utf-8")
    sweep = plan_sweep(images, tmp_path / "out", OPTIONS)
    failed: list[BaseException] = []

    def remove() -> None:
        try:
            until = time.monotonic() + 120
            while not [path for path in signs.iterdir() if path.read_text(encoding="utf-8") == "lost"]:
                assert time.monotonic() < until, "no unit came to the node"
                time.sleep(0.05)
            ray_nodes.cluster.remove_node(ray_nodes.second, allow_graceful=False)
        except BaseException as error:
            failed.append(error)

    killer = threading.Thread(target=remove)
    killer.start()
    engine = cluster_work.Spoiled(ray_nodes.engine, cluster_work.wait_on_the_second_node, signs)
    write_shards(sweep, workers=engine)
    killer.join()
    assert not failed
    assert tree(sweep.out) == tree(made.out)


DRIVER = """
import sys
from pathlib import Path

import cluster_work
from jigsync.cli import main
from jigsync.corpus import sweep as corpus

def with_a_death(work, units, workers):
    return cluster_work.Spoiled(workers, cluster_work.die_while_writing, Path(sys.argv[1])).run(work, units)

corpus.PER_SHARD = 3
corpus.run_units = with_a_death
sys.exit(main(sys.argv[2:]))
"""


def test_the_command_line_writes_to_s3_and_prints_nothing_but_json(
    ray_nodes: TwoNodes, made: Sweep, images: Path, tmp_path: Path
) -> None:
    url = f"s3://{s3_server.BUCKET}/corpus"
    command = [sys.executable, "-c", DRIVER, str(tmp_path), "sweep", str(images), "--out", url, *ASKED]
    ray = ["--engine=ray", f"--address={ray_nodes.address}", "--workers=2"]
    done = subprocess.run([*command, *ray], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"]["sound"], "Ray tells of the dead on stderr"
    assert (tmp_path / "death").exists()
    S3FileSystem.clear_instance_cache()  # of another test's server
    root = Remote(url)
    found = {name: hashlib.sha256((root / name).read(10**8)).hexdigest() for name in root.below() - {"report.json"}}
    assert {**found, ".lock": hashlib.sha256().hexdigest()} == tree(made.out)


# ---------------------------------------------------------------------------------------------- without a cluster


def test_a_ray_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as deaf:
        deaf.bind(("0.0.0.0", 0))
        port = deaf.getsockname()[1]
        with pytest.raises(InputError, match=f"No Ray answers at '127.0.0.1:{port}': Connection refused"):
            open_engine("ray", f"127.0.0.1:{port}", 0).__enter__()
        deaf.listen(50)
        monkeypatch.setattr(ray_engine, "JOIN_SECONDS", 2.0)
        with pytest.raises(InputError, match=rf"No Ray answers at '127.0.0.1:{port}' within 2 seconds"):
            open_engine("ray", f"127.0.0.1:{port}", 0).__enter__()


def test_options_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="--address goes with --engine ray"):
        open_engine("local", "auto", 0).__enter__()
    with pytest.raises(OptionError, match=r"must be 'auto' or HOST:PORT of a Ray head\. Got 'ray://a' instead"):
        open_engine("ray", "ray://a", 0).__enter__()
    with pytest.raises(OptionError, match="'workers' of Ray must be"):
        open_engine("ray", None, -1).__enter__()
    with open_engine("local", None, 3) as workers:
        assert workers == 3
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"'ray', which is not installed: pip install 'jigsync\[cluster\]'"):
        open_engine("ray", None, 0).__enter__()


def test_a_cluster_without_cores_is_no_wait_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    task = types.SimpleNamespace(options=lambda **_: types.SimpleNamespace(remote=lambda *_: object()))
    kinds = ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError", "LocalRayletDiedError")
    ray = types.SimpleNamespace(
        exceptions=types.SimpleNamespace(**dict.fromkeys((*kinds, "RayTaskError"), OSError)),
        remote=lambda _: task,
        cluster_resources=dict,
        wait=lambda refs, **_: ([], refs),
        cancel=lambda *_, **__: None,
    )
    monkeypatch.setattr(ray_engine, "_ray", lambda: ray)
    with pytest.raises(InputError, match="No machine of the Ray cluster has a core left"):
        list(RayEngine(0, {}).run(cluster_work.double, [1]))


def test_identity() -> None:
    mine = identity_here()
    check_identity(mine, dict(mine))
    assert mine["jigsync"]
    assert mine["numpy"] == np.__version__
    with pytest.raises(InputError, match="has code of jigsync old, the driver has code of jigsync "):
        check_identity(mine, {**mine, "code of jigsync": "old"})
    with pytest.raises(InputError, match="has scipy missing, the driver has scipy "):
        check_identity(mine, {**mine, "scipy": ""})
