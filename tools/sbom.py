"""The bill of materials of a lock, as CycloneDX JSON: every package with its hashes, and the weights that we ship.

python tools/sbom.py locks/demo.txt [--out FILE]

Without a time and with a serial number that is a hash of the contents: the same lock and weights give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import uuid
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement

from jigsync import __version__
from jigsync.io.files import write_bytes
from jigsync.values.errors import InputError, JigsyncError

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "src" / "jigsync" / "weights"


def locked(path: Path) -> list[tuple[Requirement, list[str]]]:
    """(requirement, its sha256 hashes) of every package of a lock."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"The lock '{path}' cannot be read: {error}.") from None
    lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
    found = []
    for line in lines:
        if line and not line.startswith("#"):
            requirement, *hashes = (part.strip() for part in line.split("--hash=sha256:"))
            found.append((Requirement(requirement), hashes))
    return found


def version_of(requirement: Requirement) -> str:
    """The one version that a lock allows."""
    (pin,) = requirement.specifier
    return str(pin.version)


def package(requirement: Requirement, hashes: list[str]) -> Component:
    """A package of the lock. The hashes are of its files, of which one is installed."""
    version = version_of(requirement)
    marker = [Property(name="python:marker", value=str(requirement.marker))] if requirement.marker else []
    address = PackageURL("pypi", name=requirement.name, version=version)
    files = [Property(name="python:sha256", value=value) for value in hashes]
    return Component(
        name=requirement.name, version=version, purl=address, bom_ref=str(address), properties=[*marker, *files]
    )


def weights(path: Path) -> Component:
    """A file of weights that ships with the package, and what its card says."""
    card = json.loads(path.with_suffix(".json").read_bytes())
    told = [
        Property(name=f"jigsync:{key}", value=str(card[key])) for key in ("format", "data", "licence") if key in card
    ]
    digest = HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(path.read_bytes()).hexdigest())
    return Component(
        name=path.name,
        version=__version__,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref=f"weights/{path.name}",
        hashes=[digest],
        properties=told,
    )


def bill(lock: Path) -> str:
    """The whole document."""
    parts = [package(*entry) for entry in locked(lock)] + [weights(path) for path in sorted(WEIGHTS.glob("*.onnx"))]
    ours = Component(name="jigsync", version=__version__, type=ComponentType.APPLICATION, bom_ref="jigsync")
    names = " ".join(sorted(f"{part.bom_ref} {[str(h.content) for h in part.hashes]}" for part in parts))
    made = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, names))
    made.metadata.component = ours
    made.register_dependency(ours, parts)
    text = make_outputter(made, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    document = json.loads(text)
    del document["metadata"]["timestamp"]
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def main() -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lock", type=Path, help="locks/demo.txt or locks/test.txt")
    parser.add_argument("--out", type=Path, help="file to write; printed without")
    options = parser.parse_args()
    try:
        text = bill(options.lock)
        if options.out:
            write_bytes(options.out, text.encode())
            print(f"wrote {options.out}")
        else:
            print(text, end="")
    except JigsyncError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
