"""What 100 000 and 10 million puzzles cost in time and bytes on N machines, from rates measured here.

python benchmarks/scale.py [--seconds 10] [--cores 16] [--machines 1,4,16,64] [--engines local,ray] [--json]

Rates are puzzles a second of processor time of one worker, so that other work on the machine counts little. The table
divides by workers, and goes by what one Ray driver can hand out where that is less (marked *). What a store or a
network can take is not in it: docs/scale.md names those limits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import platform
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2

import jigsync
from jigsync import data
from jigsync.corpus.engines import EngineName, open_engine
from jigsync.corpus.manifest import plan_rows
from jigsync.corpus.plan import SweepOptions, plan_sweep, usable_pictures
from jigsync.corpus.pool import Workers, run_units
from jigsync.corpus.sweep import PER_SHARD, Unit, plan_units, write_unit
from jigsync.evaluate import plan, predict
from jigsync.evaluate.cache import Config
from jigsync.evaluate.progress import silent
from jigsync.evaluate.spec import Method
from jigsync.io.images import list_images
from jigsync.values.errors import JigsyncError
from jigsync.values.layout import Grid

TOTALS = (100_000, 10_000_000)
SEVERITIES = ("clean", "medium", "severe")
GRIDS = (3, 5, 10)
SOLVED = (3, 5, 10)
ROWS = 4
"""Puzzles in a shard while measuring: a whole one has PER_SHARD."""
EMPTY = 400
"""Units without work, to measure what handing one out costs."""
FULL = 12
"""Shards, to compare the engines at real work."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="processor seconds a rate, at least")
    parser.add_argument("--cores", type=int, default=16, help="workers of each machine in the table")
    parser.add_argument("--machines", default="1,4,16,64", help="numbers of machines in the table")
    parser.add_argument("--engines", default="local,ray", help="engines to compare; 'local' alone needs no ray")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args()
    machines = _numbers(parser, "--machines", args.machines)
    engines: list[EngineName] = [name.strip() for name in args.engines.split(",")]
    if not set(engines) <= {"local", "ray"}:
        parser.error(f"--engines must be some of local,ray. Got '{args.engines}' instead.")
    if args.cores < 1 or not 0 < args.seconds < 1e6:
        parser.error("--cores must be at least 1 and --seconds above 0.")
    cv2.setNumThreads(1)
    try:
        found = measure(args.seconds, engines)
    except JigsyncError as error:
        parser.error(str(error))
    found["table"] = table(found, machines, args.cores)
    print(json.dumps({"cores": args.cores, **found}) if args.json else shown(found, args.cores, machines))


def _numbers(parser: argparse.ArgumentParser, name: str, text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        parser.error(f"{name} must be numbers such as 1,4,16. Got '{text}' instead.")
    return found


def measure(seconds: float, engines: Sequence[EngineName]) -> dict[str, Any]:
    """All rates."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        pictures = data.picture("astronaut").parent
        sweeps = [one for n in GRIDS for one in sweep_rates(pictures, root / f"n{n}", n, seconds)]
        solved = [solve_rate(pictures, root / f"e{n}", n, seconds) for n in SOLVED]
        compared = compare(pictures, root / "engines", engines)
        driver = driver_costs(pictures)
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            "jigsync": jigsync.__version__,
        },
        "sweep": sweeps,
        "eval": solved,
        "engines": compared,
        "driver": driver,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


# ---------------------------------------------------------------------------------------------- rates


def sweep_rates(pictures: Path, out: Path, n: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Shards written to a local disk: cutting, PNG, tar, hash, fsync."""
    for severity in SEVERITIES:
        _say(f"sweep {n} x {n} {severity}")
        sweep = plan_sweep(pictures, out / severity, SweepOptions((Grid(n, n),), (severity,), per_image=50))
        (unit, *_) = plan_units(sweep)
        units = (Unit(f"{k}", unit.rows[k * ROWS : (k + 1) * ROWS], unit.images, unit.out) for k in range(10**6))
        start, made, written = time.process_time(), 0, 0
        for one in units:
            if not one.rows or (made and time.process_time() - start > seconds):
                break
            write_unit(one)
            made += len(one.rows)
            written += Path(one.shard).stat().st_size + Path(one.stats).stat().st_size
        spent = time.process_time() - start
        rows = len((Path(sweep.out) / "manifest.jsonl").read_bytes())
        yield {
            "n": n,
            "severity": severity,
            "puzzles": made,
            "rate": made / spent,
            "bytes": written / made,
            "manifest_bytes": rows / len(sweep.rows),
        }


def solve_rate(pictures: Path, out: Path, n: int, seconds: float) -> dict[str, Any]:
    """`jigsync eval` with the default method: cut, measure, solve, write; the grid is unknown."""
    _say(f"eval {n} x {n} medium")
    specs, _ = plan.from_pictures(pictures, plan.Wanted((Grid(n, n),), ("medium",), 200), 1, silent)
    config = Config.of((Method("jigsync", "learned"),))
    units = iter(predict.Unit(spec, config, out, 1) for spec in specs)
    predict.work(next(units))  # loads the networks
    start, made = time.process_time(), 0
    for unit in units:
        if made and time.process_time() - start > seconds:
            break
        predict.work(unit)
        made += 1
    spent = time.process_time() - start
    written = sum(path.stat().st_size for path in out.rglob("*.json*"))
    return {"n": n, "severity": "medium", "puzzles": made, "rate": made / spent, "bytes": written / (made + 1)}


def driver_costs(pictures: Path) -> dict[str, float]:
    """What planning costs the one process that does it."""
    _say("driver")
    files = list_images(pictures)
    start = time.process_time()
    found, _ = usable_pictures(files, 1, None)
    read = time.process_time() - start
    tracemalloc.start()
    rows = plan_rows(found, [Grid(3, 3)], ["medium"], per_image=5000, cell=128, seed=0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    unit = Unit("train-000000", tuple(rows[:PER_SHARD]), pictures, pictures)
    return {
        "pictures_per_second": len(files) / read,
        "bytes_a_row": held / len(rows),
        "bytes_a_unit": float(len(pickle.dumps(unit))),
    }


def nothing(number: int) -> int:
    """A unit without work."""
    return number


def compare(pictures: Path, out: Path, engines: Sequence[EngineName]) -> dict[str, Any]:
    """Each engine with two workers, in turns: seconds to begin, seconds a unit with and without work."""
    found: dict[str, Any] = {}
    for name in engines:
        _say(f"engine {name}")
        start = time.perf_counter()
        with open_engine(name, None, 2) as workers:
            opened = time.perf_counter() - start
            begun, empty = _timed(nothing, range(EMPTY), workers)
            full = []
            for turn in range(3):
                sweep = plan_sweep(pictures, out / name / str(turn), SweepOptions((Grid(3, 3),), ("medium",), FULL * 6))
                rows = [row for unit in plan_units(sweep) for row in unit.rows]
                units = [
                    Unit(f"{k}", tuple(rows[k * 16 : (k + 1) * 16]), sweep.images.resolve(), sweep.out)
                    for k in range(FULL)
                ]
                full.append(_timed(write_unit, units, workers)[1])
        found[name] = {"begin_seconds": opened + begun, "empty_ms": 1000 * empty, "shard_seconds": median(full)}
    if {"local", "ray"} <= set(found):
        found["ray"]["ratio"] = found["ray"]["shard_seconds"] / found["local"]["shard_seconds"]
    return found


def _timed(work: Callable[[Any], Any], units: Sequence[Any], workers: Workers) -> tuple[float, float]:
    """(seconds to the first result, seconds a unit after it)."""
    start = time.perf_counter()
    times = [time.perf_counter() for _ in run_units(work, units, workers)]
    return times[0] - start, (times[-1] - times[0]) / (len(times) - 1)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


# ---------------------------------------------------------------------------------------------- the table


def table(found: dict[str, Any], machines: Sequence[int], cores: int) -> list[dict[str, Any]]:
    """Hours and bytes of so many puzzles; one machine uses processes, more use Ray, with its ratio and one driver."""
    ray = found["engines"].get("ray", {})
    rows = []
    for kind in ("sweep", "eval"):
        for figure in found[kind]:
            for total in TOTALS:
                units = total / (PER_SHARD if kind == "sweep" else 1)
                handing = units * ray.get("empty_ms", 0.0) / 1000 / 3600
                work = total / figure["rate"] / cores / 3600
                hours = {m: max(work / m * ray.get("ratio", 1.0), handing) if m > 1 else work for m in machines}
                rows.append(
                    {
                        "what": f"{kind} {figure['n']} x {figure['n']} {figure['severity']}",
                        "puzzles": total,
                        "bytes": total * figure["bytes"],
                        "hours": hours,
                        "driver_hours": handing,
                    }
                )
    return rows


def shown(found: dict[str, Any], cores: int, machines: Sequence[int]) -> str:
    """For people, as Markdown."""
    about = found["machine"]
    lines = [
        f"{about['processor']}, {about['cores']} threads, load {about['load']:.1f}, jigsync {about['jigsync']}",
        "",
    ]
    lines += ["| work | puzzles/s of one worker | bytes a puzzle | measured on |", "|---|---:|---:|---:|"]
    for kind in ("sweep", "eval"):
        for one in found[kind]:
            name = f"{kind} {one['n']} x {one['n']} {one['severity']}"
            lines.append(f"| {name} | {one['rate']:.3g} | {one['bytes']:,.0f} | {one['puzzles']} puzzles |")
    row = median(one["manifest_bytes"] for one in found["sweep"])
    lines += ["", f"Manifest: {row:.0f} bytes a puzzle. A shard holds {PER_SHARD} puzzles.", ""]
    lines += ["| engine | seconds to begin | ms a unit without work | seconds a shard of 16 | ratio |"]
    lines += ["|---|---:|---:|---:|---:|"]
    for name, one in found["engines"].items():
        ratio = f"{one['ratio']:.2f}" if "ratio" in one else ""
        lines.append(
            f"| {name} | {one['begin_seconds']:.1f} | {one['empty_ms']:.1f} | {one['shard_seconds']:.2f} | {ratio} |"
        )
    driver = found["driver"]
    lines += [
        "",
        f"The driver reads {driver['pictures_per_second']:.0f} pictures a second of processor time when it plans, holds"
        f" {driver['bytes_a_row']:.0f} bytes a puzzle, and sends {driver['bytes_a_unit']:,.0f} bytes a shard.",
    ]
    lines += ["", f"Time with {cores} workers a machine:", ""]
    lines += ["| work | puzzles | bytes |" + "".join(f" {m} machines |" if m > 1 else " 1 machine |" for m in machines)]
    lines += ["|---|---:|---:|" + "---:|" * len(machines)]
    for entry in found["table"]:
        least = entry["driver_hours"]
        times = "".join(
            f" {_time(entry['hours'][m])}{'*' if m > 1 and entry['hours'][m] == least else ''} |" for m in machines
        )
        lines.append(f"| {entry['what']} | {entry['puzzles']:,} | {_size(entry['bytes'])} |{times}")
    return "\n".join(lines)


def _time(hours: float) -> str:
    if hours < 1:
        return f"{60 * hours:.1f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} d"


def _size(count: float) -> str:
    units = ("B", "kB", "MB", "GB", "TB")
    step = min(len(units) - 1, int(math.log10(max(count, 1.0)) // 3))
    return f"{count / 1000**step:.3g} {units[step]}"


if __name__ == "__main__":
    main()
