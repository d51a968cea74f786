"""Writes docs/results.md from the result files of the studies, or checks that it is fresh.

python tools/results.py --take FOLDER   (what `jigsync reproduce NAME --out FOLDER` wrote goes to docs/results)
python tools/results.py --write         (docs/results.md from docs/results; --take does it too)
python tools/results.py --check         (exit code 1 when docs/results.md is not what --write would write)

No figure of that page is typed: tables, verdicts and commands come from NAME.json, the pictures from NAME.png.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from jigsync.studies.reproduce import STUDIES

DOCS = Path(__file__).parents[1] / "docs"
PEERS = "peers.json"
"""What benchmarks/peers.py --out wrote, beside the studies' files."""
COLOURS = 64
"""Of a picture in the documents: enough for lines and bars with smooth edges, at a third of the bytes."""

HEAD = """# Results

Made by `python tools/results.py --write` from the files in docs/results, which `jigsync reproduce` wrote;
nothing on this page is typed, and a test checks that. To make all of it anew:

```
jigsync reproduce all --images IMAGES --out studies && python tools/results.py --take studies
```

IMAGES is a folder of pictures; without `--images` the studies cut the bundled ones. Intervals are 95 %: Wilson's for
shares of puzzles, the bootstrap over puzzles for the rest. What each study asks and what the paper leaves open is in
[studies](studies.md); where the paper is wrong, in [errata](errata.md).
"""


def stored(docs: Path) -> dict[str, dict[str, Any]]:
    """Name -> summary of every study that has result files, in the order of the registry."""
    found = {}
    for name in STUDIES:
        path = docs / "results" / f"{name}.json"
        if path.is_file():
            found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def page(docs: Path) -> str:
    """The whole page."""
    results = stored(docs)
    parts = [HEAD, "| study | about |\n|---|---|"]
    parts[-1] += "".join(f"\n| [{name}](#{name}) | {_cell(STUDIES[name])} |" for name in results) + "\n"
    for name, result in results.items():
        parts += _section(docs, name, result)
    peers = docs / "results" / PEERS
    if peers.is_file():
        parts += _peers(json.loads(peers.read_text(encoding="utf-8")))
    missing = [name for name in STUDIES if name not in results]
    if missing:
        parts.append(f"No results are stored of: {', '.join(missing)}.\n")
    return "\n".join(parts)


def _section(docs: Path, name: str, result: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}\n\n{result['title'][0].upper()}{result['title'][1:]}.\n"
    if (docs / "images" / "results" / f"{name}.png").is_file():
        yield f"![{result['title']}](images/results/{name}.png)\n"
    if result["compared"]:
        rows = (
            f"| {_cell(row['what'])} | {_number(row['ours'])} | {_number(row['paper'])} | {_cell(row['verdict'])} |"
            for row in result["compared"]
        )
        yield "| | ours | paper | verdict |\n|---|---:|---:|---|\n" + "\n".join(rows) + "\n"
    yield f"{result['verdict']}\n"
    settings = ", ".join(f"{key.replace('_', ' ')} {_setting(value)}" for key, value in result["settings"].items())
    made = f"`{result['command']}`; " if result.get("command") else ""
    yield f"{made}{settings}; [all {result['rows']} rows](results/{name}.csv).\n"


def _peers(told: dict[str, Any]) -> Iterator[str]:
    """The tables of benchmarks/peers.py."""
    yield "## peers\n\nOur solvers beside public ones on the same puzzles, and how our time and memory grow.\n"
    for table in told["tables"]:
        yield f"{table['title'][0].upper()}{table['title'][1:]}:\n"
        rows = [table["heads"], ["---", *["---:"] * (len(table["heads"]) - 1)], *table["rows"]]
        yield "\n".join(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows) + "\n"
        if table["note"]:
            yield f"{table['note'].strip()}\n"
    yield f"`{told['command']}`; times are of the machine and of what else it did.\n"


def _number(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _cell(str(value))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return " ".join("x".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    return str(value)


def take(folder: Path, docs: Path) -> list[str]:
    """Copies a folder's result files into the documents; gives the names of the studies."""
    taken = []
    for name in STUDIES:
        if not (folder / f"{name}.json").is_file():
            continue
        for ending in ("json", "csv"):
            target = docs / "results" / f"{name}.{ending}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / f"{name}.{ending}", target)
        if (folder / f"{name}.png").is_file():
            target = docs / "images" / "results" / f"{name}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_small(folder / f"{name}.png"))
        taken.append(name)
    if (folder / PEERS).is_file():
        shutil.copyfile(folder / PEERS, docs / "results" / PEERS)
        taken.append("peers")
    return taken


def _small(path: Path) -> bytes:
    with Image.open(path) as picture:
        flat = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    flat.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def main(args: list[str], docs: Path = DOCS) -> int:
    """Runs the tool and returns its exit code."""
    target = docs / "results.md"
    if len(args) == 2 and args[0] == "--take":
        taken = take(Path(args[1]), docs)
        print(f"Taken: {', '.join(taken) or 'nothing'}.")
        args = ["--write"]
    if args == ["--write"]:
        target.write_text(page(docs), encoding="utf-8")
        return 0
    if args == ["--check"]:
        if target.read_text(encoding="utf-8") == page(docs):
            return 0
        print("docs/results.md is not fresh: run 'python tools/results.py --write' and commit it.", file=sys.stderr)
        return 1
    print("usage: python tools/results.py --take FOLDER | --write | --check", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
