"""The locks hold what pyproject.toml asks for, with hashes; the Makefile uses them; the bill of materials too."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("demo", "test", "compiler", "tools")
PINNED_BY_VERSION = "torch"
PYTHONS = ("3.11", "3.12", "3.13")

pytest.importorskip("cyclonedx", reason="the extra 'dev' has it")
from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "tools" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sbom"] = module
    spec.loader.exec_module(module)
    return module


def project() -> dict[str, object]:
    loaded: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return loaded


def asked(extra: str | None) -> list[Requirement]:
    """What pyproject.toml asks for, and what builds the package."""
    about: dict[str, object] = project()["project"]  # type: ignore[assignment]
    listed = list(about["dependencies"])  # type: ignore[call-overload]
    if extra:
        listed += about["optional-dependencies"][extra]  # type: ignore[index]
    build = (ROOT / "locks" / "build.in").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in (*listed, *build) if line and not line.startswith("#")]


def environment(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(("lock", "extra"), [("demo", None), ("test", "dev")])
def test_a_lock_satisfies_pyproject(sbom: ModuleType, lock: str, extra: str | None, python: str) -> None:
    pins = {
        canonicalize_name(requirement.name): sbom.version_of(requirement)
        for requirement, _ in sbom.locked(ROOT / "locks" / f"{lock}.txt")
        if requirement.marker is None or requirement.marker.evaluate(environment(python))
    }
    assert PINNED_BY_VERSION not in pins
    for requirement in asked(extra):
        name = canonicalize_name(requirement.name)
        if name != PINNED_BY_VERSION:
            assert name in pins, f"{name} is not locked: make lock"
            assert requirement.specifier.contains(pins[name], prereleases=True), f"{name}: make lock"


def test_extras_are_part_of_what_is_tested(sbom: ModuleType) -> None:
    pins = {canonicalize_name(requirement.name) for requirement, _ in sbom.locked(ROOT / "locks" / "test.txt")}
    extras: dict[str, list[str]] = project()["project"]["optional-dependencies"]  # type: ignore[index]
    wanted = {canonicalize_name(Requirement(line).name) for lines in extras.values() for line in lines}
    assert wanted - pins == {PINNED_BY_VERSION}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_one_version_and_hashes(sbom: ModuleType, lock: str) -> None:
    entries = sbom.locked(ROOT / "locks" / f"{lock}.txt")
    assert entries
    for requirement, hashes in entries:
        assert [pin.operator for pin in requirement.specifier] == ["=="]
        assert hashes
        assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in hashes)


def test_demo_and_test_agree(sbom: ModuleType) -> None:
    demo, test = (
        {str(requirement): hashes for requirement, hashes in sbom.locked(ROOT / "locks" / f"{lock}.txt")}
        for lock in ("demo", "test")
    )
    versions = {name.partition(";")[0].strip() for name in test}
    assert {name.partition(";")[0].strip() for name in demo} <= versions


def test_torch_is_pinned_alike_everywhere() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pin = re.search(r"^TORCH \?= (\S+)$", makefile, re.MULTILINE)
    assert pin is not None
    extras: dict[str, list[str]] = project()["project"]["optional-dependencies"]  # type: ignore[index]
    found = {line for lines in extras.values() for line in lines if Requirement(line).name == PINNED_BY_VERSION}
    assert found == {pin[1]}


def test_the_makefile_installs_by_hash() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in makefile.splitlines() if " install " in line and not line.startswith("#")]
    assert len(installs) >= 5
    for line in installs:
        local = "--editable" in line
        assert "--require-hashes" in line or "$(TORCH)" in line or "apt-get" in line or local, line
    assert "--no-build-isolation --editable ." in makefile


@pytest.mark.parametrize("lock", ["demo", "test"])
def test_the_bill_of_materials(sbom: ModuleType, lock: str, tmp_path: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    path = ROOT / "locks" / f"{lock}.txt"
    text = sbom.bill(path)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert text == sbom.bill(path)
    document = json.loads(text)
    listed = {(part["name"], part["version"]) for part in document["components"]}
    assert listed >= {(requirement.name, sbom.version_of(requirement)) for requirement, _ in sbom.locked(path)}
    models = {part["name"]: part for part in document["components"] if part["type"] == "machine-learning-model"}
    for name in ("matcher", "unary", "document", "pairwise", "comparator", "continuous"):
        card = json.loads((ROOT / "src" / "jigsync" / "weights" / f"{name}.json").read_bytes())
        assert models[f"{name}.onnx"]["hashes"] == [{"alg": "SHA-256", "content": card["sha256"]}]


def test_a_lock_that_is_not_there_is_one_sentence(
    sbom: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sbom.py", str(tmp_path / "none.txt")])
    assert sbom.main() == 2
    assert "none.txt" in capsys.readouterr().err
