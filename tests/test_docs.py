"""Documents that cannot rot: snippets run, the changelog equals the version, generated pages are fresh."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import jigsync
from jigsync.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def snippets(text: str) -> str:
    """The python blocks of a page as one program whose line numbers are the page's."""
    lines = []
    inside = False
    for line in text.splitlines():
        fence = line.strip().startswith("```")
        lines.append(line if inside and not fence else "")
        if fence:
            inside = not inside and line.strip() == "```python"
    return "\n".join(lines)


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if "```python" in p.read_text(encoding="utf-8")],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = snippets(page.read_text(encoding="utf-8"))
    exec(compile(program, str(page), "exec"), {"__name__": "snippet"})


def test_snippets_keep_their_lines_and_leave_other_blocks_out() -> None:
    page = "# Title\n```python\nx = 1\n```\ntext\n```\nnot python\n```\n```python\ny = x + 1\n```\n"
    assert snippets(page) == "\n\nx = 1\n\n\n\n\n\n\ny = x + 1\n"


def test_conventions_state_every_rule() -> None:
    text = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d+)\.", text, re.MULTILINE) == [str(n) for n in range(1, 16)]
    tests = (ROOT / "tests" / "test_conventions.py").read_text(encoding="utf-8")
    pinned = {int(n) for n in re.findall(r"^def test_convention_(\d+)_", tests, re.MULTILINE)}
    assert pinned == set(range(1, 16))


def test_changelog_and_citation_are_of_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert first is not None
    assert first[1] == jigsync.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {jigsync.__version__}\n" in citation


def test_cli_reference_is_fresh() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "cli_reference.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_cli_reference_names_every_command() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\n## jigsync {name}\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_dependency_is_argued() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    argued = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    for requirement in wanted:
        name = re.split(r"[<>=\[;]", requirement)[0]
        assert re.search(rf"\b{re.escape(name)}\b", argued), name


def test_readme_maps_every_folder_of_the_package() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    source = Path(jigsync.__file__).parent
    for folder in sorted(path.parent.name for path in source.glob("*/__init__.py")):
        assert f"`{folder}/`" in readme, folder


def test_ci_is_make_test() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in script if "make" in line] == ["exec make test"]
