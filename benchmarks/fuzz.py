"""Hostile versions of every file that JigSync reads, as many as you like, in processes of their own.

python benchmarks/fuzz.py [--cases 20000] [--reader NAME]... [--seed 0] [--out build/fuzz] [--json]

A case is a valid file with one to three mutations (tests/fuzz_mutations.py); the readers are those of
tests/fuzz_readers.py, which get as many cases each. A case that is neither taken nor refused in a sentence is saved
under OUT/READER-HASH; moved to tests/fuzz-cases it is a regression test. Exit code 1 when any was found.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import re
import sys
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[threads] = "1"  # before numpy: a process with threads must not fork
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import cv2  # noqa: E402
from fuzz_child import series  # noqa: E402
from fuzz_mutations import Case, mutated  # noqa: E402
from fuzz_readers import READERS, Reader, get, write  # noqa: E402


@dataclass
class Tally:
    """What one reader was given, and what came of it."""

    reader: str
    cases: int = 0
    taken: int = 0
    refused: int = 0
    slowest: float = 0.0
    most_memory: int = 0
    defects: Counter[str] = field(default_factory=Counter)


def fuzz(reader: Reader, count: int, seed: int, out: Path) -> Tally:
    """Draws so many cases; the k-th case of a seed is always the same."""
    tally = Tally(reader.name)
    valid = reader.seeds()

    def make(number: int) -> Case:
        draw = random.Random(f"{reader.name} {seed} {number}")
        return mutated(draw.choice(valid), draw)

    with closing(series(reader, make, count)) as outcomes:
        for number, outcome in enumerate(outcomes):
            tally.cases += 1
            tally.slowest = max(tally.slowest, round(outcome.seconds, 2))
            tally.most_memory = max(tally.most_memory, outcome.memory)
            if outcome.defect:
                # The same defect is told once, whatever the numbers in its words are.
                kind = re.sub(r"(0x)?[0-9a-f]*\d[0-9a-f]*", "N", outcome.defect)
                if not tally.defects[kind]:
                    where = saved(reader, make(number), out)
                    print(f"  {outcome.defect} -> {where}", file=sys.stderr, flush=True)
                tally.defects[kind] += 1
            elif outcome.refused:
                tally.refused += 1
            else:
                tally.taken += 1
    return tally


def saved(reader: Reader, case: Case, out: Path) -> Path:
    """Keeps a case as files in a folder of its own."""
    digest = hashlib.sha256(b"".join(name.encode() + data for name, data in sorted(case.items()))).hexdigest()
    folder = out / f"{reader.name}-{digest[:10]}"
    write(case, folder)
    return folder


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000, help="of all readers together (default 20000)")
    names = [reader.name for reader in READERS]
    parser.add_argument("--reader", action="append", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same cases")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="folder for the cases that failed")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    if options.cases < 1:
        parser.error("--cases must be at least 1")
    cv2.setNumThreads(0)
    logging.getLogger("jigsync").setLevel(logging.ERROR)  # files that are left out are no news here
    readers = [get(name) for name in options.reader or names]
    tallies = []
    for number, reader in enumerate(readers, start=1):
        print(f"{number}/{len(readers)} {reader.name}", file=sys.stderr, flush=True)
        tallies.append(fuzz(reader, -(-options.cases // len(readers)), options.seed, options.out))
    if options.json:
        print(json.dumps([asdict(tally) for tally in tallies], indent=1))
    else:
        print(f"{'reader':12s}  cases  taken  refused  defects  slowest s  memory MiB")
        for t in tallies:
            counts = f"{t.cases:6d} {t.taken:6d} {t.refused:8d} {t.defects.total():8d}"
            print(f"{t.reader:12s} {counts} {t.slowest:10.2f} {t.most_memory >> 20:11d}")
        print(f"{sum(t.cases for t in tallies)} cases, {sum(t.defects.total() for t in tallies)} defects")
    return 1 if any(t.defects for t in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
