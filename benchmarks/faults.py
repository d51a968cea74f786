"""Kills, full disks, unreadable and damaged files: what the commands leave, and what a restart makes of it.

python benchmarks/faults.py [--kills 200] [--seed 0] [--only sweep,eval,train,serve] [--json]

Every command is first run undisturbed. Then it is killed with SIGKILL at random moments (the process alone, so that
its workers have to notice, or its whole group) and started again, up to 6 times in a row, until it ends by itself: its
output must be that of the undisturbed run, byte by byte where no clock is in it, and no process may be left. Commands
that start quickly are killed more often (SHARES). Then their output goes to a disk of a few hundred KiB (root only),
files are made unreadable, and single bits of them are flipped: each time a command must end well and say what it
repaired, or end with code 2 and name the file, and come to the same output afterwards. Commands are attacked side by
side.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from kept_server import serve_damage, serve_full, serve_kills
from victims import (
    Ended,
    Outcome,
    Victim,
    alive,
    eval_victim,
    obey_modes,
    pictures,
    run,
    start,
    sweep_victim,
    train_victim,
)

IN_A_ROW: Final = 6
"""Kills of one run before it is left to end."""
ORPHANS: Final = 60.0
"""Seconds in which workers have to notice that they are alone."""
MAKERS: Final = {"sweep": (sweep_victim, 300), "eval": (eval_victim, 200), "train": (train_victim, 600)}
"""Command -> what makes the victim, and the KiB of a disk that fills up in the middle of it."""
SHARES: Final = {"sweep": 7, "eval": 7, "train": 2, "serve": 4}
"""Command -> its share of the kills."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        done: how many faults.
        wrong: what went wrong, empty when nothing did.
    """

    command: str
    fault: str
    done: int
    outcome: str
    wrong: str = ""


def undisturbed(victim: Victim, folder: Path) -> tuple[Outcome, float]:
    """The outcome and the seconds of a run that nothing happens to."""
    ended = run(victim.command(folder))
    if ended.code != 0:
        raise RuntimeError(f"{victim.name} fails without any fault: {ended.said}")
    return victim.outcome(folder), ended.seconds


def differs(reference: Outcome, found: Outcome) -> str:
    """What is lost, more than it should be, or other; empty when the outcomes are the same."""
    lost, more = sorted(set(reference) - set(found)), sorted(set(found) - set(reference))
    other = sorted(name for name in reference if name in found and found[name] != reference[name])
    told = ((what, names) for what, names in (("lost", lost), ("too many", more), ("other", other)) if names)
    return "; ".join(f"{what}: {', '.join(names[:3])} ({len(names)})" for what, names in told)


# ---------------------------------------------------------------------------------------------- kills


def kill_at(victim: Victim, folder: Path, seconds: float, group: bool) -> int | None:
    """Starts a run and kills it after a while; its process group, or None when it ended before."""
    process = start(victim.command(folder))
    try:
        process.communicate(timeout=seconds)
        return None
    except subprocess.TimeoutExpired:
        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
        process.communicate()
    return process.pid


def orphans(groups: list[int]) -> str:
    """Workers of killed runs that still live after ORPHANS seconds; empty when there are none."""
    end = time.monotonic() + ORPHANS
    while (left := [group for group in groups if alive(group)]) and time.monotonic() < end:
        time.sleep(0.1)
    return f"{len(left)} killed runs left processes behind" if left else ""


def kills(victim: Victim, folder: Path, reference: Outcome, seconds: float, count: int, seed: int) -> Row:
    """At least so many kills, over as many runs as it takes."""
    rng = np.random.default_rng(seed)
    killed: list[int] = []
    runs, wrong = 0, ""
    while len(killed) < count and not wrong:
        out = folder / f"{victim.name}-killed-{runs}"
        runs += 1
        for _ in range(min(IN_A_ROW, count - len(killed))):
            begun = time.monotonic()
            group = kill_at(victim, out, float(rng.uniform(0.1, 1.0)) * seconds, bool(rng.integers(2)))
            if group is None:  # it ended before: the machine has become quicker
                seconds = min(seconds, time.monotonic() - begun)
                break
            killed.append(group)
        ended = run(victim.command(out))
        wrong = f"code {ended.code} after a kill: {ended.said[-500:]}" if ended.code else ""
        wrong = wrong or differs(reference, victim.outcome(out)) or orphans(killed)
        if not wrong:
            shutil.rmtree(out)
            print(f"  {len(killed)} of {count} kills of {victim.name}", file=sys.stderr, flush=True)
    return Row(victim.name, "SIGKILL", len(killed), f"{runs} runs, each ended like the undisturbed one", wrong)


# ---------------------------------------------------------------------------------------------- full disk


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[Callable[[], None]]:
    """A disk of its own at `folder`; calling what it yields makes it large. PermissionError when we may not mount."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PermissionError(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=256m", str(folder)], check=True) and None
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def full_disk(victim: Victim, folder: Path, reference: Outcome, kib: int) -> Row:
    """The disk fills up in the middle; with more room the run goes on."""
    disk = folder / f"{victim.name}-disk"
    with small_disk(disk, kib) as enlarge:
        ended = run(victim.command(disk / "out"))
        wrong = _named(ended, str(disk), "No space left on device")
        enlarge()
        again = run(victim.command(disk / "out"))
        wrong = wrong or (f"code {again.code}: {again.said[-500:]}" if again.code else "")
        wrong = wrong or differs(reference, victim.outcome(disk / "out"))
    return Row(victim.name, f"full disk, {kib} KiB", 1, "code 2, named; goes on with more room", wrong)


def _named(ended: Ended, *words: str) -> str:
    """What is wrong with the way a command refused; empty when it is one sentence with these words and code 2."""
    if ended.code != 2 or "Traceback" in ended.said:
        return f"code {ended.code}: {ended.said[-500:]}"
    last = ended.sentences[-1] if ended.sentences else ""
    return "" if all(word in last for word in words) else f"the sentence is '{last}'"


# ---------------------------------------------------------------------------------------------- damaged files


def flipped(path: Path, rng: np.random.Generator) -> str:
    """Flips one bit."""
    content = bytearray(path.read_bytes())
    place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place}"


def cut_off(path: Path, rng: np.random.Generator) -> str:
    """Loses the end of a file."""
    content = path.read_bytes()
    kept = int(rng.integers(len(content)))
    path.write_bytes(content[:kept])
    return f"cut off at {kept}"


def unreadable(path: Path, rng: np.random.Generator) -> str:
    """No one may read or write it; needs `obey_modes`."""
    path.chmod(0)
    return "mode 0"


def a_folder(path: Path, rng: np.random.Generator) -> str:
    """A folder in its place."""
    path.unlink()
    path.mkdir()
    return "a folder in its place"


def dangling(path: Path, rng: np.random.Generator) -> str:
    """A link to nothing in its place."""
    path.unlink()
    path.symlink_to(path.with_name("nothing-there"))
    return "a link to nothing in its place"


Damage = Callable[[Path, np.random.Generator], str]


def damaged(
    victim: Victim,
    finished: Path,
    folder: Path,
    reference: Outcome,
    pattern: str,
    damage: Damage,
    seed: int = 0,
    drop: str = "",
) -> Row:
    """Damages a file of a finished run, and runs the command again.

    Args:
        pattern: which file, the first that fits.
        drop: files that are taken away before, so that there is something left to do.
    """
    rng = np.random.default_rng(seed)
    out = folder / f"{victim.name}-damaged"
    shutil.copytree(finished, out)
    try:
        for path in out.glob(drop) if drop else ():
            path.unlink()
        path = sorted(out.glob(pattern))[0]
        name = str(path.relative_to(out))
        how = damage(path, rng)
        ended = run(victim.command(out), preexec_fn=obey_modes)
        if ended.code == 0:
            told = "repaired and named" if path.name in ended.said else "made anew, no use was made of it"
            wrong = f"a traceback: {ended.said[-500:]}" if "Traceback" in ended.said else ""
        else:
            told, wrong = "code 2, named; made anew after it was deleted", _named(ended, path.name)
            _delete(path)
            again = run(victim.command(out))
            wrong = wrong or (f"code {again.code} after it was deleted: {again.said[-300:]}" if again.code else "")
        wrong = wrong or differs(reference, victim.outcome(out))
        return Row(victim.name, f"{pattern}: {damage.__name__}", 1, told, f"{name}, {how}: {wrong}" if wrong else "")
    finally:
        shutil.rmtree(out)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


FILES: Final[dict[str, tuple[tuple[str, str, tuple[Damage, ...]], ...]]] = {
    "sweep": (
        ("shards/*.tar", "", (flipped, cut_off, unreadable, a_folder)),
        ("stats/*.json", "", (flipped, cut_off, unreadable)),
        ("manifest.jsonl", "", (flipped, cut_off, unreadable, dangling)),
        ("sweep.json", "", (cut_off, unreadable)),
    ),
    "eval": (
        ("predictions/*/*.jsonl", "", (flipped, cut_off, unreadable, a_folder)),
        ("truths/*.json", "", (flipped, cut_off, unreadable, dangling)),
    ),
    "train": (
        ("last.safetensors", "", (flipped, cut_off, unreadable)),
        ("last.safetensors", "previous.safetensors", (flipped, cut_off)),
        ("chunks-0/0000003.safetensors", "*.safetensors", (flipped, cut_off, unreadable)),
        ("curve.csv", "", (cut_off, unreadable)),
    ),
}
"""command -> (file, what to take away first, what to do to it)."""


# ---------------------------------------------------------------------------------------------- the whole


def victim_rows(victim: Victim, folder: Path, count: int, seed: int, disk_kib: int, say: Callable[[Row], None]) -> None:
    """All faults of one command."""
    finished = folder / f"{victim.name}-undisturbed"
    reference, seconds = undisturbed(victim, finished)
    again, _ = undisturbed(victim, folder / f"{victim.name}-again")
    say(Row(victim.name, "none, twice", 0, f"the same, in {seconds:.1f} s", differs(reference, again)))
    if count:
        say(kills(victim, folder, reference, seconds, count, seed))
    try:
        say(full_disk(victim, folder, reference, disk_kib))
    except PermissionError as error:
        say(Row(victim.name, "full disk", 0, f"left out: {error}"))
    for number, (pattern, drop, damages) in enumerate(FILES[victim.name]):
        for damage in damages:
            say(damaged(victim, finished, folder, reference, pattern, damage, seed + number, drop))


def serve_rows(folder: Path, count: int, seed: int, say: Callable[[Row], None]) -> None:
    """All faults of the server."""
    if count:
        say(Row("serve", "SIGKILL", *serve_kills(folder / "serve", count, seed)))
    try:
        with small_disk(folder / "serve-disk", 2000) as enlarge:
            say(Row("serve", "full disk, 2000 KiB", 1, *serve_full(folder / "serve-disk", enlarge)))
    except PermissionError as error:
        say(Row("serve", "full disk", 0, f"left out: {error}"))
    for what, done, outcome, wrong in serve_damage(folder / "serve-damage", seed):
        say(Row("serve", what, done, outcome, wrong))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200, help="of all commands together (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and the damaged bits (default 0)")
    parser.add_argument("--only", default=",".join(SHARES), help=f"some of {','.join(SHARES)}")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    names = options.only.split(",")
    if options.kills < 0 or options.seed < 0 or not set(names) <= set(SHARES):
        parser.error(f"--kills and --seed must not be below 0, --only must be some of {','.join(SHARES)}.")
    rows: list[Row] = []

    def say(row: Row) -> None:
        rows.append(row)
        verdict = f"WRONG: {row.wrong}" if row.wrong else row.outcome
        stamp = time.strftime("%H:%M:%S")
        print(f"{stamp}  {row.command:<6} {row.fault:<44} {row.done:>3}  {verdict}", file=sys.stderr, flush=True)

    ends = np.rint(
        options.kills * np.cumsum([0, *(SHARES[name] for name in names)]) / sum(SHARES[name] for name in names)
    )
    counts = {name: int(count) for name, count in zip(names, np.diff(ends), strict=True)}
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(len(names)) as side_by_side:
        folder = Path(made)
        images = pictures(folder / "pictures")

        def attack(name: str) -> None:
            if name == "serve":
                serve_rows(folder, counts[name], options.seed, say)
            else:
                maker, kib = MAKERS[name]
                victim_rows(maker(images), folder, counts[name], options.seed, kib, say)

        list(side_by_side.map(attack, names))
    print(json.dumps([asdict(row) for row in rows]) if options.json else table(rows))
    return 1 if any(row.wrong for row in rows) else 0


def table(rows: list[Row]) -> str:
    """The rows as text."""
    lines = [f"{'command':<8}{'fault':<46}{'times':>6}  outcome"]
    lines += [f"{row.command:<8}{row.fault:<46}{row.done:>6}  {row.wrong or row.outcome}" for row in rows]
    killed = sum(row.done for row in rows if row.fault == "SIGKILL")
    wrong = sum(bool(row.wrong) for row in rows)
    return "\n".join([*lines, f"{killed} kills, {len(rows)} rows, {wrong} wrong"])


if __name__ == "__main__":
    sys.exit(main())
