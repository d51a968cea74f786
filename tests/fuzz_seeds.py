"""Small valid files of every kind that JigSync reads: what the mutations start from.

All of them are made here, by the product's own writers or by the libraries that others write such files with.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sample
import scans
from fuzz_mutations import Case
from PIL import Image
from web import zipped

from jigsync.corpus.plan import SweepOptions, plan_sweep
from jigsync.corpus.sweep import plan_units, write_unit
from jigsync.cutting.lay import lay_puzzle
from jigsync.cutting.lay_options import LayOptions
from jigsync.io.files import json_bytes, json_line
from jigsync.io.images import image_bytes_sha256, png_bytes
from jigsync.io.lay_file import lay_json
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.io.shards import write_shard
from jigsync.io.solution_file import solution_json
from jigsync.io.truth_file import truth_json
from jigsync.solution import Solution
from jigsync.values.gauge import Gauge
from jigsync.values.layout import Grid

PICTURE = np.random.default_rng(5).integers(0, 256, (19, 23, 4), dtype=np.uint8)


def files_of(make: Callable[[Path], object]) -> Case:
    """All files that `make` writes into a folder."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        make(root)
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def _encoded(mode: str, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(PICTURE).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


@cache
def pictures() -> tuple[bytes, ...]:
    """One small picture of every format and some of its variants."""
    exif = Image.Exif()
    exif[0x0112] = 6
    deep = Image.fromarray(PICTURE[..., 0].astype(np.uint16) * 257)
    real = Image.fromarray(PICTURE[..., 0].astype(np.float32))
    stored = []
    for picture, kind in ((deep, "PNG"), (deep, "TIFF"), (real, "TIFF")):
        buffer = io.BytesIO()
        picture.save(buffer, kind)
        stored.append(buffer.getvalue())
    return (
        _encoded("RGB", "PNG"),
        _encoded("RGBA", "PNG"),
        _encoded("P", "PNG", transparency=3),
        _encoded("1", "PNG"),
        *stored,
        _encoded("RGB", "JPEG", exif=exif),
        _encoded("CMYK", "JPEG", progressive=True),
        _encoded("RGBA", "TIFF", compression="tiff_lzw"),
        _encoded("RGB", "TIFF", compression="tiff_adobe_deflate"),
        _encoded("RGB", "TIFF", compression="jpeg"),
        _encoded("1", "TIFF", compression="group4"),
        _encoded("RGB", "BMP"),
        _encoded("P", "GIF", transparency=1),
        _encoded("RGBA", "WEBP", lossless=True),
        _encoded("RGB", "WEBP"),
        _encoded("RGB", "PPM"),
        _encoded("RGB", "JPEG2000"),
        _encoded("RGB", "MPO"),
    )


@cache
def scan() -> bytes:
    """A scan of six fragments."""
    places = [scans.Laid(row, col) for row in (0.8, 2.2) for col in (0.8, 2.2, 3.6)]
    return png_bytes(scans.lay(scans.cut(cell=24), places))


@cache
def solution() -> Solution:
    """The true one of the sample."""
    gauge = Gauge.of_turns(3, (0.7, 0.1, 0.1, 0.1))
    return Solution("ok", "", sample.GRID, sample.PLACEMENT, gauge, "jigsync", 0.5, puzzle=sample.puzzle())


@cache
def puzzle_folder() -> Case:
    """puzzle.json and six pictures."""
    return puzzle_members(sample.puzzle())


def truth() -> Case:
    """truth.json."""
    return {"truth.json": json_bytes(truth_json(sample.truth()))}


def laid() -> Case:
    """lay.json, with a card and a pair that touches."""
    options = LayOptions(width=160, height=120, card="bank", touching=1, gap=1.0, texture=0.0, share=0.1)
    return {"lay.json": json_bytes(lay_json(lay_puzzle(sample.puzzle(), options, seed=3)[1]))}


def solved() -> Case:
    """solution.json."""
    return {"solution.json": json_bytes(solution_json(solution()))}


def shard() -> Case:
    """A shard of two puzzles."""
    two = [(key, sample.puzzle(), sample.truth()) for key in ("a-1", "b-2")]
    return files_of(lambda root: write_shard(root / "s.tar", two))


def members() -> tuple[Case, ...]:
    """The members of a shard."""
    with tarfile.open(fileobj=io.BytesIO(shard()["s.tar"])) as tar:
        found = {info.name: tar.extractfile(info) for info in tar}
        return ({name: file.read() for name, file in found.items() if file},)


@cache
def corpus() -> Case:
    """A sweep of one picture with its shard and stats; the pictures' folder is in sweep.json."""

    def make(root: Path) -> None:
        (root / "images").mkdir()
        (root / "images" / "a.png").write_bytes(png_bytes(PICTURE[..., :3]))
        sweep = plan_sweep(root / "images", root / "out", SweepOptions((Grid(1, 2),), ("clean",), cell=8))
        for unit in plan_units(sweep):
            write_unit(unit)
        told = json.loads((root / "out" / "sweep.json").read_bytes())
        del told["manifest"]  # a checksum would refuse every change of the manifest
        (root / "out" / "sweep.json").write_bytes(json_bytes({**told, "images": "images"}))

    return files_of(make)


@cache
def evaluation() -> Case:
    """A run with one prediction and its truth."""
    from jigsync.cutting.options import CutOptions
    from jigsync.evaluate.cache import Cache, Config, Prediction
    from jigsync.evaluate.run import begin
    from jigsync.evaluate.sources import PictureSource
    from jigsync.evaluate.spec import Method, Setting, Spec

    def make(root: Path) -> None:
        method = Method("greedy", "mgc")
        options = CutOptions(sample.GRID, 8)
        source = PictureSource(Path("a.png"), image_bytes_sha256(b""), options, 3)
        setting = Setting(str(sample.GRID), "clean", "cell", sample.GRID, sample.GRID.size)
        spec = Spec("a-1-0123456789ab", setting, "a.png", "pictures", 7, False, source)
        config = Config({method: {"solver": "greedy", "measurer": "mgc"}})
        begin(root, [spec], config, 0)
        Cache(root).write(spec, method, config, Prediction(solution(), "answered", 0.5, 0.1, 2))
        Cache(root).write_truth(spec, sample.truth(), sample.puzzle())

    files = files_of(make)
    for name, data in files.items():  # without checksums, as older runs are: they would refuse every change
        lines = [json.loads(line) for line in data.splitlines()] if name.endswith("l") else [json.loads(data)]
        for line in lines:
            for seal in ("sha256", "puzzles"):
                line.pop(seal, None)
        files[name] = b"".join(json_line(line) for line in lines)
    return files


@cache
def gap() -> Case:
    """One split of one 1 x 1 puzzle, in two layouts: packed chunks, and as it is."""
    import h5py

    pixels = np.zeros((2, 1, 128, 128, 4), dtype=np.uint8)
    pixels[:, :, 8:, 5:] = (50, 10, 200, 255)

    def make(root: Path) -> None:
        (root / "test").mkdir()
        with h5py.File(root / "test" / "puzzles.h5", "w") as file:
            file.create_dataset("puzzles", data=pixels, compression="gzip", chunks=(1, 1, 128, 128, 4))
        with h5py.File(root / "test" / "labels_indices.h5", "w") as file:
            file.create_dataset("labels", data=np.zeros((2, 1), dtype=np.int64))

    return files_of(make)


@cache
def project() -> Case:
    """The files of a project: a puzzle folder and the state of the workbench."""
    from jigsync.web.project import PROJECT_FILE

    step = {"solution": solution_json(solution()), "pinned": ["f07"], "excluded": ["f30"]}
    state = {"format": "jigsync-project/1", "name": "sample", "grid": "2x3", "steps": [step], "at": 0}
    return {**puzzle_folder(), PROJECT_FILE: json_bytes(state)}


@cache
def kept() -> Case:
    """What `serve --keep` keeps: a puzzle and a finished job."""
    from jigsync.web.kept import Kept
    from jigsync.web.limits import Limits
    from jigsync.web.models import KeptJob, SolveOptions
    from jigsync.web.tasks import KEPT_ZIP, Bench, receive_upload

    def make(root: Path) -> None:
        folder = Kept(root / "kept")
        with tempfile.TemporaryDirectory() as made:
            sent = zipped(puzzle_folder())
            (Path(made) / "sent").write_bytes(sent)
            bench = Bench(Limits(), lambda step: None, lambda: False)
            receive_upload(bench, f"{made}/sent", [("x.zip", 0, len(sent))], "auto", "x", made, keep=True)
            folder.put_puzzle("p1", Path(made) / KEPT_ZIP)
        told = {"id": "j1", "puzzle": "p1", "state": "done", "stage": "done", "fraction": 1.0}
        folder.put_job(KeptJob.model_validate({**told, "options": SolveOptions(), "number": 1}))
        folder.close()

    return files_of(make)


def zips() -> tuple[Case, ...]:
    """A project packed by deflate, and plain pictures that are only stored."""
    small = {f"{k}.png": png_bytes(PICTURE[k : k + 9, :9]) for k in range(2)}
    return {"x.zip": zipped(project())}, {"x.zip": zipped(small, zipfile.ZIP_STORED)}


# ---------------------------------------------------------------------------------------------- models


@cache
def matcher() -> Case:
    """A matcher of a few numbers, as an ONNX file without a card."""
    from onnx import TensorProto, helper, numpy_helper

    from jigsync.measure.matcher import FORMAT
    from jigsync.measure.strips import CHANNELS, ROWS, VERSION

    def info(name: str, *shape: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    rng = np.random.default_rng(2)
    arrays = {"w": rng.standard_normal((CHANNELS, 3)), "v": rng.standard_normal((CHANNELS, 3)), "u": np.ones(CHANNELS)}
    nodes = [
        helper.make_node("ReduceMean", ["strips", "axis"], ["x"], keepdims=0),
        *(helper.make_node("MatMul", ["x", a], [b]) for a, b in (("w", "left"), ("v", "right"), ("u", "none"))),
    ]
    tensors = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in arrays.items()]
    tensors.append(numpy_helper.from_array(np.array([2]), "axis"))
    outputs = [info("left", "sides", 3), info("right", "sides", 3), info("none", "sides")]
    graph = helper.make_graph(nodes, "matcher", [info("strips", "sides", CHANNELS, ROWS)], outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(model, {"format": FORMAT, "strips": VERSION})
    return {"m.onnx": model.SerializeToString()}


@cache
def card() -> Case:
    """A file of weights with the card of the shipped pairwise model, which names this file's hash."""
    from jigsync.measure.weights import weights_path

    about = json.loads(weights_path("pairwise.onnx", None).with_suffix(".json").read_bytes())
    data = matcher()["m.onnx"]
    return {"m.onnx": data, "m.json": json_bytes({**about, "sha256": hashlib.sha256(data).hexdigest()})}


def calibration() -> Case:
    """The shipped calibration."""
    import jigsync.measure

    return {"calibration.json": (Path(jigsync.__file__).parent / "weights" / "calibration.json").read_bytes()}


class Samples:
    """A stream of training samples."""

    def sample(self, k: int) -> dict[str, Any]:
        """The k-th."""
        return {"strips": np.full((2, 3), k, dtype=np.float32)}


@cache
def checkpoint() -> Case:
    """A run of `jigsync train` with a tiny matcher: both checkpoints, one chunk."""
    import torch
    from learn_quick import TINY

    from jigsync.learn import checkpoint
    from jigsync.learn.chunks import make_chunk
    from jigsync.learn.matcher import Matcher

    def make(root: Path) -> None:
        torch.manual_seed(0)
        config = {"model": "matcher", "network": asdict(TINY), "seed": 3}
        state = Matcher(TINY).state_dict()
        for name in (checkpoint.LAST, checkpoint.BEST):
            rows = [{"step": str(k), "rate": "0.1", "samples_per_s": "5.0", "loss": "0.3"} for k in (1, 2)]
            curves = {"curve.csv": rows, "validation.csv": [{"step": "2", "score": "-0.2"}]}
            checkpoint.save(root / name, config, checkpoint.Progress(5, -0.5, 7.0, curves), {"average": state})
        (root / "chunks-0").mkdir()
        make_chunk(Samples(), root / "chunks-0" / "0000000.safetensors", 0)

    return files_of(make)


@cache
def dino() -> tuple[Case, ...]:
    """Files of named tensors as torch and as safetensors write them; not the whole network."""
    import torch
    from safetensors.torch import save

    state = {"cls_token": torch.zeros(1, 1, 384), "norm.weight": torch.ones(384)}
    new, old = io.BytesIO(), io.BytesIO()
    torch.save(state, new)
    torch.save(state, old, _use_new_zipfile_serialization=False)
    return {"w.pth": new.getvalue()}, {"w.pth": old.getvalue()}, {"w.safetensors": save(state)}
