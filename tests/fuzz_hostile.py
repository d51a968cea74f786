"""Files made to harm: each must be refused in a sentence, with little memory and time, and without running anything.

As a script it reads every case in a child of its own (fuzz_child) and prints what became of them as JSON: pytest's own
process may have threads, and a process with threads must not fork.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import fuzz_seeds as seeds  # noqa: E402
import numpy as np  # noqa: E402
from fuzz_child import run  # noqa: E402
from fuzz_mutations import Case  # noqa: E402
from fuzz_readers import get  # noqa: E402
from web import zipped  # noqa: E402

DEEP = 100_000
EXECUTED = 66
"""Exit code of a process in which a hostile file could run something."""


class Evil:
    """Unpickled, it ends the process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (EXECUTED,)


PICKLE = pickle.dumps(Evil(), protocol=2)


# ---------------------------------------------------------------------------------------------- pictures


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """A PNG that claims its size, with whatever pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def png_text_bomb() -> bytes:
    """A small picture with a comment that unpacks to 1 GB."""
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(bytes(1 << 24)) for _ in range(64)) + packer.flush()
    data = b"Comment\0\0" + packed
    chunk = struct.pack(">I", len(data)) + b"zTXt" + data + struct.pack(">I", zlib.crc32(b"zTXt" + data))
    whole = png(8, 8, bytes(8 * 33))
    return whole[:33] + chunk + whole[33:]


def tiff_pages() -> bytes:
    """A TIFF whose directory points to itself: pages without end."""
    tags = [(256, 4, 1, 8), (257, 4, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8)]
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return struct.pack("<2sHI", b"II", 42, 8) + struct.pack("<H", len(tags)) + body + struct.pack("<I", 8) + bytes(99)


# ---------------------------------------------------------------------------------------------- JSON


def with_json(case: Case, name: str, **changes: Any) -> Case:
    """The case with other values in one of its JSON files."""
    return {**case, name: json.dumps({**json.loads(case[name]), **changes}).encode()}


def many_fragments(count: int = 100_000) -> bytes:
    """A puzzle.json that lists so many fragments."""
    listed = ",".join(f'{{"id":"f{k}","file":"f{k}"}}' for k in range(count))
    return f'{{"format":"jigsync-puzzle/1","cell":null,"container":null,"fragments":[{listed}]}}'.encode()


def many_keys(count: int = 200_000) -> bytes:
    """An object of many keys, the last of them twice."""
    return b"{" + b",".join(b'"%d":0' % k for k in (*range(count), count - 1)) + b"}"


# ---------------------------------------------------------------------------------------------- archives


def tar(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "", data: bytes = b"") -> Case:
    """A shard of one member."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size or len(data), link
    return {"s.tar": info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512 + 1024)}


def tar_with_pickle() -> Case:
    """A shard with a member that WebDataset would unpickle."""
    buffer = io.BytesIO(seeds.shard()["s.tar"])
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        info = tarfile.TarInfo("a-2.pyd")
        info.size = len(PICKLE)
        archive.addfile(info, io.BytesIO(PICKLE))
    return {"s.tar": buffer.getvalue()}


def zip_link() -> Case:
    """A puzzle whose picture is a link out of the zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in seeds.puzzle_folder().items():
            info = zipfile.ZipInfo(name)
            if name.endswith("f07.png"):
                info.external_attr, data = 0o120777 << 16, b"/etc/passwd"
            archive.writestr(info, data)
    return {"x.zip": buffer.getvalue()}


def zip_named(name: str) -> Case:
    """A zip whose first entry has this name, whatever zipfile thinks of it."""
    picture, stand_in = png(4, 4, bytes(4 * 17)), "n" * len(name.encode())
    data = zipped({stand_in: picture, "b.png": picture}, zipfile.ZIP_STORED)
    return {"x.zip": data.replace(stand_in.encode(), name.encode())}


def zip_overlapping() -> Case:
    """A thousand entries that share the same 10 MB of zeros, packed once."""
    packed = zipped({"a.png": bytes(10_000_000)})
    at = packed.index(b"PK\x01\x02")
    end = packed.index(b"PK\x05\x06")
    entry = packed[at:end]
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1000, 1000, 1000 * len(entry), at, 0)
    return {"x.zip": packed[:at] + 1000 * entry + tail}


# ---------------------------------------------------------------------------------------------- HDF5


def gap(make: Callable[[Any, Any], None]) -> Case:
    """A GAP folder whose puzzles.h5 and labels_indices.h5 are made by `make`."""
    import h5py

    def write(root: Path) -> None:
        (root / "test").mkdir()
        with (
            h5py.File(root / "test" / "puzzles.h5", "w") as a,
            h5py.File(root / "test" / "labels_indices.h5", "w") as b,
        ):
            make(a, b)

    return seeds.files_of(write)


def gap_claims(puzzles: int, fragments: int, chunk: int) -> Case:
    """Datasets of any size in a file of a few kilobytes."""

    def make(a: Any, b: Any) -> None:
        shape = (puzzles, fragments, 128, 128, 4)
        a.create_dataset("puzzles", shape, "u1", chunks=(chunk, 1, 128, 128, 4), compression="gzip")
        b.create_dataset("labels", (puzzles, fragments), "i8", chunks=(1, 1))

    return gap(make)


def gap_elsewhere(kind: str) -> Case:
    """Puzzles that lie in another file."""
    import h5py

    def make(a: Any, b: Any) -> None:
        shape = (1, 1, 128, 128, 4)
        if kind == "raw":
            a.create_dataset("puzzles", shape, "u1", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
        elif kind == "link":
            a["puzzles"] = h5py.ExternalLink("/etc/passwd", "puzzles")
        else:
            layout = h5py.VirtualLayout(shape, "u1")
            layout[0] = h5py.VirtualSource("/tmp/other.h5", "puzzles", shape[1:])
            a.create_virtual_dataset("puzzles", layout)
        b["labels"] = np.zeros((1, 1), dtype=np.int64)

    return gap(make)


# ---------------------------------------------------------------------------------------------- models


def model(change: Callable[[Any], None]) -> Case:
    """The small matcher, changed."""
    import onnx

    made = onnx.load_from_string(seeds.matcher()["m.onnx"])
    change(made)
    return {"m.onnx": made.SerializeToString()}


def numbers_elsewhere(location: str) -> Case:
    """A model whose numbers are in another file."""
    from onnx import TensorProto
    from onnx.external_data_helper import set_external_data

    def change(made: Any) -> None:
        tensor = made.graph.initializer[0]
        set_external_data(tensor, location, offset=0, length=len(tensor.raw_data))
        tensor.data_location = TensorProto.EXTERNAL
        tensor.ClearField("raw_data")

    return model(change)


def endless_model(made: Any) -> None:
    """A loop of 2^62 rounds."""
    from onnx import TensorProto, helper, numpy_helper

    keep = helper.make_node("Identity", ["go"], ["on"])
    infos = [helper.make_tensor_value_info(n, t, []) for n, t in (("k", TensorProto.INT64), ("go", TensorProto.BOOL))]
    body = helper.make_graph([keep], "body", infos, [helper.make_tensor_value_info("on", TensorProto.BOOL, [])])
    made.graph.initializer.append(numpy_helper.from_array(np.array(2**62), "rounds"))
    made.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
    made.graph.node.insert(0, helper.make_node("Loop", ["rounds", "yes"], [], body=body))


def huge_model(made: Any) -> None:
    """An outer product of 200 GB, averaged to one number that every code depends on."""
    from onnx import helper, numpy_helper

    column = np.ones((220_000, 1), dtype=np.float32)
    made.graph.initializer.extend([numpy_helper.from_array(column, "a"), numpy_helper.from_array(column.T.copy(), "b")])
    made.graph.node.append(helper.make_node("MatMul", ["a", "b"], ["huge"]))
    made.graph.node.append(helper.make_node("ReduceMean", ["huge"], ["one"], keepdims=0))
    made.graph.node[3].output[0] = "plain"
    made.graph.node.append(helper.make_node("Mul", ["plain", "one"], ["none"]))


def foreign_model(made: Any) -> None:
    """An operator of somebody's library."""
    made.graph.node[1].domain = "evil"
    made.opset_import.add(domain="evil", version=1)


def torch_zip() -> bytes:
    """A file of torch's present format around the evil pickle."""
    files = {"w/data.pkl": PICKLE, "w/version": b"3\n", "w/byteorder": b"little"}
    return zipped(files, zipfile.ZIP_STORED)


def checkpoint(name: str, data: bytes) -> Case:
    """A run with another file in it."""
    return {**seeds.checkpoint(), name: data}


def torch_of_another_size() -> Case:
    """A checkpoint whose network would have 10^11 numbers."""
    import torch

    from jigsync.learn.checkpoint import BEST, Progress, save

    network = {"fine": 8, "width": 999_999, "dilations": [1], "code": 4}
    config = {"model": "matcher", "network": network, "seed": 3}
    made = seeds.files_of(lambda root: save(root / BEST, config, Progress(), {"average": {"a": torch.zeros(1)}}))
    return {**seeds.checkpoint(), **made}


TAKEN = ("endless pages",)
"""Harmless after all: Pillow counts one page."""

CASES: dict[str, tuple[str, Callable[[], Case]]] = {
    "picture of 3.6 gigapixels": ("picture", lambda: {"p": png(60_000, 60_000)}),
    "picture of 2^62 pixels": ("picture", lambda: {"p": png(2**31 - 1, 2**31 - 1)}),
    "picture that ends early": ("picture", lambda: {"p": png(9_000, 9_000)}),
    "comment of 1 GB": ("picture", lambda: {"p": png_text_bomb()}),
    "endless pages": ("picture", lambda: {"p": tiff_pages()}),
    "scan of 3.6 gigapixels": ("scan", lambda: {"scan.png": png(60_000, 60_000)}),
    "nested lists": ("truth", lambda: {"truth.json": b"[" * DEEP + b"]" * DEEP}),
    "nested objects": ("solution", lambda: {"solution.json": b'{"a":' * DEEP, **seeds.truth()}),
    "nested options": ("truth", lambda: {"truth.json": seeds.truth()["truth.json"].replace(b"{}", b"[" * DEEP, 1)}),
    "integer of a million digits": ("truth", lambda: {"truth.json": b'{"seed": ' + b"9" * 10**6 + b"}"}),
    "not a number": ("truth", lambda: {"truth.json": b'{"seed": NaN}'}),
    "infinite": ("solution", lambda: {"solution.json": b'{"seconds": 1e999}', **seeds.truth()}),
    "200 000 keys": ("truth", lambda: {"truth.json": many_keys()}),
    "grid of 10^10 cells": ("truth", lambda: with_json(seeds.truth(), "truth.json", grid=[10**5, 10**5])),
    "100 000 fragments": ("puzzle", lambda: {"puzzle.json": many_fragments()}),
    "line without end": ("evaluation", lambda: {**seeds.evaluation(), "puzzles.jsonl": b"[" * (1 << 24)}),
    "tar member of 1 TB": ("shard", lambda: tar("a-1.puzzle.json", size=10**12)),
    "tar member of 8 GB": ("shard", lambda: tar("a-1.puzzle.json", size=8 * 10**9)),
    "tar link": ("shard", lambda: tar("a-1.puzzle.json", tarfile.SYMTYPE, link="/etc/passwd")),
    "tar device": ("shard", lambda: tar("a-1.puzzle.json", tarfile.CHRTYPE)),
    "tar path": ("shard", lambda: tar("../../a-1.puzzle.json", data=b"{}")),
    "tar header of 1 GB": ("shard", lambda: tar("x", tarfile.XHDTYPE, size=10**9)),
    "tar with a pickle": ("shard", tar_with_pickle),
    "zip bomb": ("zip", lambda: {"x.zip": zipped({"a.png": bytes(60_000_000), "b.png": b""})}),
    "zip entries that overlap": ("zip", zip_overlapping),
    "zip link": ("zip", zip_link),
    "zip path": ("zip", lambda: zip_named("../../../tmp/evil.png")),
    "zip path of Windows": ("zip", lambda: zip_named("..\\..\\evil.png")),
    "zip absolute path": ("zip", lambda: zip_named("/etc/evil.png")),
    "GAP of 10^12 puzzles": ("gap", lambda: gap_claims(10**12, 9, 1)),
    "GAP of 10^12 fragments": ("gap", lambda: gap_claims(1, 10**12, 1)),
    "GAP with chunks of 4 GB": ("gap", lambda: gap_claims(65_000, 1, 65_000)),
    "GAP in a raw file": ("gap", lambda: gap_elsewhere("raw")),
    "GAP behind a link": ("gap", lambda: gap_elsewhere("link")),
    "GAP of another file": ("gap", lambda: gap_elsewhere("virtual")),
    "numbers in /etc/passwd": ("matcher", lambda: numbers_elsewhere("/etc/passwd")),
    "numbers in ../etc/passwd": ("matcher", lambda: numbers_elsewhere("../../../../../../../etc/passwd")),
    "numbers beside the model": ("matcher", lambda: {**numbers_elsewhere("m.bin"), "m.bin": bytes(4096)}),
    "model without end": ("matcher", lambda: model(endless_model)),
    "model of 200 GB": ("matcher", lambda: model(huge_model)),
    "model with a foreign operator": ("matcher", lambda: model(foreign_model)),
    "model of another format": ("matcher", lambda: {"m.onnx": b"\x18\0\0\0ORTM" + bytes(500)}),
    "card that is a list": ("card", lambda: {**seeds.card(), "m.json": b"[]"}),
    "checkpoint that is a pickle": ("checkpoint", lambda: checkpoint("best.safetensors", PICKLE)),
    "checkpoint that is torch's": ("checkpoint", lambda: checkpoint("best.safetensors", torch_zip())),
    "checkpoint with a header of 1 EB": ("checkpoint", lambda: checkpoint("best.safetensors", b"\xff" * 7 + b"\x0f{}")),
    "checkpoint of a huge network": ("checkpoint", torch_of_another_size),
    "weights that are a pickle": ("dino", lambda: {"w.pth": PICKLE}),
    "weights with a pickle inside": ("dino", lambda: {"w.pth": torch_zip()}),
}


def main() -> None:
    """Prints what became of every case."""
    import cv2

    cv2.setNumThreads(0)
    # Some of the cases are large: they are made, read and forgotten one by one.
    done = {name: asdict(run(get(reader), make(), seconds=120)) for name, (reader, make) in CASES.items()}
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as room:
        tempfile.tempdir = room
        main()
