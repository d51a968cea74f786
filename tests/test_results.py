"""docs/results.md is made from result files, and what docs/errata.md refers to exists."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

import jigsync
from jigsync.studies.about import ABOUT, QUESTIONS
from jigsync.studies.reproduce import STUDIES, write
from jigsync.studies.result import Compared, StudyResult

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LARGEST = 1_500_000


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", ROOT / "tools" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_stored_files_give(tool: ModuleType) -> None:
    assert (DOCS / "results.md").read_text(encoding="utf-8") == tool.page(DOCS)
    assert tool.main(["--check"]) == 0


def test_stored_files_are_whole_small_and_name_no_folder_of_ours() -> None:
    stored = sorted(path for path in (DOCS / "results").glob("*.json") if path.stem != "peers")
    assert stored
    for path in stored:
        result = json.loads(path.read_text(encoding="utf-8"))
        assert result["name"] == path.stem
        assert path.stem in STUDIES
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            assert len(list(csv.DictReader(file))) == result["rows"]
        assert result["command"].startswith(f"jigsync reproduce {path.stem}")
        assert "/" not in result["command"]
    files = [path for folder in ("results", "images/results") for path in (DOCS / folder).iterdir()]
    assert {path.stem for path in files} <= {*STUDIES, "peers"}
    assert sum(path.stat().st_size for path in files) < LARGEST


def result(verdict: str = "it holds") -> StudyResult:
    def plot(path: Path) -> None:
        Image.effect_noise((90, 40), 50).convert("RGB").save(path, "PNG")

    compared = [Compared("a | b", 0.123456, "12 %", "agrees"), Compared("c", "1.0 % [0.5, 2.0]", 3, "differs: why")]
    return StudyResult(
        "orbit", "a title", [{"x": 1}, {"x": 2}], compared, verdict, {"seed": 3, "sizes": [[3, 64]]}, plot
    )


def test_taking_writes_the_page_and_a_change_is_noticed(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, studies = tmp_path / "docs", tmp_path / "studies"
    docs.mkdir()
    write(result(), studies, "jigsync reproduce orbit --seed 3")
    assert tool.main(["--take", str(studies)], docs) == 0
    text = (docs / "results.md").read_text(encoding="utf-8")
    for told in (
        "| a \\| b | 0.1235 | 12 % | agrees |",
        "| c | 1.0 % [0.5, 2.0] | 3 | differs: why |",
        "\nit holds\n",
        "`jigsync reproduce orbit --seed 3`; presentation none: numbers, not pictures; weights none;"
        " seed 3, sizes 3x64; [all 2 rows](results/orbit.csv).",
        "- [orbit](#orbit): it holds.",
        "\n## Which way is up, and can an answer know?\n",
        "![a title](images/results/orbit.png)",
        "No results are stored of: main, clean,",
    ):
        assert told in text
    assert tool.main(["--check"], docs) == 0
    table = {"title": "squares", "heads": ["solver", "s"], "rows": [["ours", "1.5"]], "note": "alone"}
    (studies / "peers.json").write_text(json.dumps({"command": "python peers.py", "tables": [table]}))
    assert tool.main(["--take", str(studies)], docs) == 0
    text = (docs / "results.md").read_text(encoding="utf-8")
    assert "Squares:\n\n| solver | s |\n| --- | ---: |\n| ours | 1.5 |\n\nalone\n" in text
    write(result("it does not"), docs / "results", "jigsync reproduce orbit --seed 3")
    assert tool.main(["--check"], docs) == 1
    assert "not fresh" in capsys.readouterr().err
    assert tool.main(["--weird"], docs) == 2


def test_a_study_says_which_weights_and_presentation(tool: ModuleType, tmp_path: Path) -> None:
    assert set(ABOUT) == set(STUDIES)
    assert {about.question for about in ABOUT.values()} == set(QUESTIONS)
    docs = tmp_path / "docs"
    write(replace(result(), name="tears"), docs / "results", "jigsync reproduce tears")
    kept = json.loads((docs / "results" / "tears.json").read_text(encoding="utf-8"))
    shipped = Path(jigsync.__file__).parent / "weights" / "contours.onnx"
    assert kept["weights"]["contours"] == hashlib.sha256(shipped.read_bytes()).hexdigest()[:12]
    assert "comparator" not in kept["weights"]
    text = tool.page(docs)
    listed = ", ".join(f"{name} {kept['weights'][name]}" for name in sorted(kept["weights"]))
    assert {"contours", "frames"} <= set(kept["weights"])
    assert f"presentation any; weights {listed}" in text
    del kept["weights"]
    (docs / "results" / "tears.json").write_text(json.dumps(kept), encoding="utf-8")
    assert "weights not written down, run it again" in tool.page(docs), "of files from before they were written down"
    rows = [{"what": "jigsync, tear9: right", "ours": "99 %", "paper": "-", "verdict": ""}]
    rows += [{"what": "other, tear9: right", "ours": "9 %", "paper": "-", "verdict": ""}]
    (docs / "results" / "tears.json").write_text(json.dumps({**kept, "compared": rows}), encoding="utf-8")
    assert "- [tears](#tears): jigsync, tear9: right 99 %.\n" in tool.page(docs)


def test_every_study_is_explained() -> None:
    text = (DOCS / "studies.md").read_text(encoding="utf-8")
    assert [name for name in STUDIES if f"\n| {name} | " not in text] == []


# ------------------------------------------------------------------------------------------------ errata


def test_every_erratum_of_the_specification_is_there_and_shown_by_something() -> None:
    text = (DOCS / "errata.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [section.split(".")[0] for section in sections] == [str(k + 1) for k in range(len(sections))]
    assert len(sections) >= 8
    for section in sections:
        shown = re.findall(r"`(tests/\w+\.py)::(\w+)`|`jigsync reproduce ([\w-]+)`", section)
        assert shown, section.splitlines()[0]
        for file, test, study in shown:
            if study:
                assert study in STUDIES, study
            else:
                source = (ROOT / file).read_text(encoding="utf-8")
                assert re.search(rf"^def {test}\(", source, re.MULTILINE), f"{file}::{test}"
