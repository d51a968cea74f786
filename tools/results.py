"""Writes docs/results.md from the result files of the studies, or checks that it is fresh.

python tools/results.py --take FOLDER   (what `jigsync reproduce NAME --out FOLDER` wrote goes to docs/results)
python tools/results.py --write         (docs/results.md from docs/results; --take does it too)
python tools/results.py --check         (exit code 1 when docs/results.md is not what --write would write)

No figure of that page is typed: tables, verdicts and commands come from NAME.json, the pictures from NAME.png.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from jigsync.studies.about import ABOUT, QUESTIONS
from jigsync.studies.reproduce import STUDIES

DOCS = Path(__file__).parents[1] / "docs"
PEERS = "peers.json"
"""What benchmarks/peers.py --out wrote, beside the studies' files."""
SENTENCE = re.compile(r"\. (?=[A-Z(])")
"""Between two sentences of a verdict."""
COLOURS = 64
"""Of a picture in the documents: enough for lines and bars with smooth edges, at a third of the bytes."""

HEAD = """# Results

Made by `python tools/results.py --write` from the files in docs/results, which `jigsync reproduce` wrote;
nothing on this page is typed, and a test checks that. To make all of it anew:

```
jigsync reproduce all --images IMAGES --fragments FRAGMENTS --out studies && python tools/results.py --take studies
```

Every study says how its fragments are handed over (presentation) and which weights it may have run (the first digits
of each file's sha256). IMAGES is a folder of pictures; without `--images` the studies cut the bundled ones. FRAGMENTS
is a folder of puzzles that nobody here made; without `--fragments` the study of them is skipped. Intervals are 95 %:
Wilson's for shares of puzzles, the bootstrap over puzzles for the rest. What each study asks and what the paper leaves
open is in [studies](studies.md); where the paper is wrong, in [errata](errata.md).
"""


def stored(docs: Path) -> dict[str, dict[str, Any]]:
    """Name -> summary of every study that has result files, in the order of the page."""
    found = {}
    for name in ABOUT:
        path = docs / "results" / f"{name}.json"
        if path.is_file():
            found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def page(docs: Path) -> str:
    """The whole page: what was found, then every study under the question that it answers."""
    results = stored(docs)
    peers = docs / "results" / PEERS
    parts = [HEAD, "## What was found\n", *_found(results)]
    if peers.is_file():
        parts.append(f"How our time and accuracy compare with others' on the same puzzles: [peers](#{PEERS[:-5]}).\n")
    for question in QUESTIONS:
        of = {name: result for name, result in results.items() if ABOUT[name].question == question}
        if not of:
            continue
        listed = "".join(f"\n| [{name}](#{name}) | {_cell(STUDIES[name])} |" for name in of)
        parts.append(f"## {question}\n\n| study | about |\n|---|---|{listed}\n")
        for name, result in of.items():
            parts += _section(docs, name, result)
    if peers.is_file():
        parts += _peers(json.loads(peers.read_text(encoding="utf-8")))
    missing = [name for name in ABOUT if name not in results]
    if missing:
        parts.append(f"No results are stored of: {', '.join(missing)}.\n")
    return "\n".join(parts)


def _found(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A line a study: the rows that sum it up, or the first sentence of its verdict."""
    for question in QUESTIONS:
        lines = [
            f"- [{name}](#{name}): {_sum(name, r)}" for name, r in results.items() if ABOUT[name].question == question
        ]
        if lines:
            yield f"**{question}**\n\n" + "\n".join(lines) + "\n"


def _sum(name: str, result: dict[str, Any]) -> str:
    rows = [row for row in result["compared"] if row["what"].startswith(ABOUT[name].shown)]
    if not ABOUT[name].shown or not rows:
        return f"{SENTENCE.split(result['verdict'], maxsplit=1)[0].rstrip('.')}."
    return f"{'; '.join(_summed(row) for row in rows)}."


def _summed(row: dict[str, Any]) -> str:
    paper = "" if row["paper"] in ("-", "") else f" (paper {_number(row['paper'])})"
    return f"{_cell(row['what'])} {_number(row['ours'])}{paper}"


def _section(docs: Path, name: str, result: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n\n{result['title'][0].upper()}{result['title'][1:]}.\n"
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
    yield f"{made}{_about(name, result)}{settings}; [all {result['rows']} rows](results/{name}.csv).\n"


def _about(name: str, result: dict[str, Any]) -> str:
    """The presentation and the weights; those of files from before they were written down are not known."""
    about = ABOUT[name]
    text = f"presentation {result.get('presentation', about.presentation)}; "
    if "weights" in result:
        named = ", ".join(f"{network} {sha}" for network, sha in result["weights"].items())
        return f"{text}weights {named or 'none'}; "
    runs = about.measurers or about.networks
    return f"{text}weights {'not written down, run it again' if runs else 'none'}; "


def _peers(told: dict[str, Any]) -> Iterator[str]:
    """The tables of benchmarks/peers.py."""
    yield "## peers\n\nOur solvers beside public ones on the same puzzles, and how our time and memory grow.\n"
    for table in told["tables"]:
        yield f"{table['title'][0].upper()}{table['title'][1:]}:\n"
        rows = [table["heads"], ["---", *["---:"] * (len(table["heads"]) - 1)], *table["rows"]]
        yield "\n".join(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows) + "\n"
        if table["note"]:
            yield f"{table['note'].strip()}\n"
    weights = f" weights {told['weights']};" if told.get("weights") else ""
    yield f"`{told['command']}`;{weights} times are of the machine and of what else it did.\n"


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
