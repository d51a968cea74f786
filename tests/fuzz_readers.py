"""Every reader of JigSync, each with valid files to start from: the one list that fuzzing goes through.

A reader takes a folder that holds the case's files and reads them as a command would, to the last value. It may return
anything or raise `JigsyncError` (or, in the workbench, `Refusal`) with a sentence; everything else is a defect.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import fuzz_seeds as seeds
import numpy as np
from fuzz_mutations import Case
from web import zipped

import jigsync
from jigsync.corpus.met import _present
from jigsync.io.files import json_bytes
from jigsync.io.gap import GapSplit
from jigsync.io.images import picture_size, read_rgb, read_rgba
from jigsync.io.lay_file import load_lay
from jigsync.io.seal import sealed
from jigsync.io.shards import read_shard
from jigsync.io.solution_file import load_solution
from jigsync.io.truth_file import load_truth
from jigsync.score.cells import score
from jigsync.values.errors import JigsyncError
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.web.limits import Limits, Refusal

LONGEST = 1000
"""Characters of the longest sentence that a person is shown."""


@dataclass(frozen=True)
class Reader:
    """A name, valid cases, and what reads them.

    Attributes:
        slow: takes long to start (torch) or to read; the tests of every run draw fewer cases of it.
    """

    name: str
    seeds: Callable[[], tuple[Case, ...]]
    read: Callable[[Path], object]
    slow: bool = False


class Defect(Exception):
    """What a reader must not do."""


def write(case: Case, folder: Path) -> None:
    """Writes the case's files."""
    for name, data in case.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def attempt(reader: Reader, case: Case) -> str:
    """Reads a case; the refusal's sentence, or "" when it was taken. Defect for anything else."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as made:
        write(case, Path(made))
        try:
            reader.read(Path(made))
        except (JigsyncError, Refusal) as error:
            sentence = str(error)
            if not sentence.strip() or len(sentence) > LONGEST + 3 * len(made):
                raise Defect(f"{reader.name} refused in {len(sentence)} characters: {sentence[:200]!r}") from error
            return sentence
        except BaseException as error:
            raise Defect(f"{reader.name} raised {type(error).__name__}: {str(error)[:300]}") from error
        return ""


# ---------------------------------------------------------------------------------------------- what reads


def _picture(folder: Path) -> None:
    data = (folder / "p").read_bytes()
    for read in (read_rgb, read_rgba):
        pixels = read(data, name="p")
        assert pixels.dtype == np.uint8
    assert picture_size(data, "p")[0] * picture_size(data, "p")[1] == pixels.shape[0] * pixels.shape[1]


def _scan(folder: Path) -> None:
    assert len(jigsync.extract(folder / "scan.png").puzzle)


def _solution(folder: Path) -> None:
    answer, truth = load_solution(folder / "solution.json"), load_truth(folder / "truth.json")
    score(answer, truth)


def _tarred(folder: Path) -> None:
    """The members of a shard, put into one."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folder.iterdir(), key=lambda p: (p.name.partition(".")[0], p.name)):
            info = tarfile.TarInfo(path.name)
            info.size = path.stat().st_size
            tar.addfile(info, io.BytesIO(path.read_bytes()))
    (folder / "s.tar").write_bytes(buffer.getvalue())
    list(read_shard(folder / "s.tar"))


def _corpus(folder: Path) -> None:
    from jigsync.corpus.report import corpus_report
    from jigsync.evaluate.plan import from_manifest
    from jigsync.evaluate.wanted import Wanted

    for path in (folder / "out" / "stats").glob("*.json"):
        _reseal(path)
    home = Path.cwd()
    os.chdir(folder)  # sweep.json of the seed names its pictures by a relative path
    try:
        for path in sorted((folder / "out" / "shards").glob("*.tar")):
            list(read_shard(path))
        corpus_report(folder / "out", sample=2).to_json()
        for spec in from_manifest(folder / "out", None, Wanted()):
            spec.source.make()
    finally:
        os.chdir(home)


def _reseal(path: Path) -> None:
    """Whoever writes a hostile file writes the right checksum too."""
    with suppress(ValueError, RecursionError, AttributeError):
        path.write_bytes(json_bytes(sealed(json.loads(path.read_bytes()))))


def _evaluation(folder: Path) -> None:
    from jigsync.evaluate.run import evaluate, reopen, write_tables

    specs, config, seed = reopen(folder)
    write_tables(evaluate(folder, specs, config, seed, "model"))


def _gap(folder: Path) -> None:
    with GapSplit(folder, "test") as split:
        for index in range(min(len(split), 3)):
            split[index]


def _sent(folder: Path, data: bytes, name: str = "x.zip") -> None:
    from jigsync.web.archive import entries_of
    from jigsync.web.uploads import receive

    limits = Limits(pixels=4_000_000, upload_bytes=20_000_000)
    room = folder / "room"
    room.mkdir()
    receive(entries_of([(name, io.BytesIO(data))], limits), "auto", limits, room)
    if list(room.iterdir()):
        raise AssertionError("the private folder is not empty")


def _zipped(folder: Path) -> None:
    names = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    _sent(folder, zipped({p.relative_to(folder).as_posix(): p.read_bytes() for p in names}))


def _kept(folder: Path) -> None:
    """What `serve --keep` finds when it starts; what is damaged is left out, and it says so."""
    from jigsync.web.kept import Kept
    from jigsync.web.pixels import PuzzleFile
    from jigsync.web.tasks import Bench, restore_puzzle

    for path in (folder / "kept" / "jobs").glob("*.json"):
        _reseal(path)
    room = folder / "room"
    room.mkdir()
    kept = Kept(folder / "kept")
    bench = Bench(Limits(pixels=4_000_000, upload_bytes=20_000_000), lambda step: None, lambda: False)
    try:
        for path in kept.puzzles():
            with suppress(JigsyncError, Refusal):
                PuzzleFile.of_json(restore_puzzle(bench, str(path), str(room))["puzzle"]).open()
        for job in kept.jobs():
            job.model_dump_json()
    finally:
        kept.close()


def _matcher(folder: Path) -> None:
    from jigsync.measure.learned import Learned
    from jigsync.measure.matcher import load_matcher
    from jigsync.measure.strips import CHANNELS, ROWS

    load_matcher(folder / "m.onnx").encode(np.ones((8, CHANNELS, ROWS), dtype=np.float32))
    Learned(weights=folder / "m.onnx").measure(_puzzle())


def _puzzle() -> Puzzle:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 24, 24, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    return Puzzle(Fragments(("a", "b"), tuple(pixels)), 24, 24)


def _card(folder: Path) -> None:
    from jigsync.measure.pairwise import load_pairwise

    load_pairwise("pairwise", folder / "m.onnx")


def _checkpoint(folder: Path) -> None:
    from jigsync.learn import export
    from jigsync.learn.chunks import SIZE, Chunks

    assert len(Chunks(seeds.Samples(), folder / "chunks-0", 0).window(0, 0)) == SIZE
    config, _, weights = export.load_run(folder)
    export._made(config, weights)


def _dino(folder: Path) -> None:
    from jigsync.measure.vit import load

    load(next(folder.glob("w.*")))


def _kinds(folder: Path) -> None:
    from jigsync.score.kinds import kinds_of

    kinds_of([folder / "a.png"])


def _calibration(folder: Path) -> None:
    from jigsync.learn.fit.calibrate import older

    older(folder / "calibration.json")


CSV = b"file,kind\na.png,painting\nb.png,photo\n"
LICENCE = b'{"object_id":1,"file":"1.jpg","bytes":0}\n{"object_id":2,"file":"2.jpg","bytes":4}\n'

READERS: tuple[Reader, ...] = (
    Reader("picture", lambda: tuple({"p": data} for data in seeds.pictures()), _picture),
    Reader("scan", lambda: ({"scan.png": seeds.scan()},), _scan, slow=True),
    Reader("puzzle", lambda: (seeds.puzzle_folder(),), lambda folder: jigsync.load(folder)),
    Reader(
        "pictures",
        lambda: ({f"{k}.x.png": data for k, data in enumerate(seeds.pictures()[:3])},),
        lambda folder: jigsync.load(folder),
    ),
    Reader("truth", lambda: (seeds.truth(),), lambda folder: load_truth(folder / "truth.json")),
    Reader("lay", lambda: (seeds.laid(),), lambda folder: load_lay(folder / "lay.json")),
    Reader("solution", lambda: ({**seeds.solved(), **seeds.truth()},), _solution),
    Reader("shard", lambda: (seeds.shard(),), lambda folder: list(read_shard(folder / "s.tar"))),
    Reader("members", seeds.members, _tarred),
    Reader("corpus", lambda: (seeds.corpus(),), _corpus),
    Reader("evaluation", lambda: (seeds.evaluation(),), _evaluation),
    Reader("kinds", lambda: ({"manifest.csv": CSV},), _kinds),
    Reader("met", lambda: ({"licences.jsonl": LICENCE, "1.jpg": b"", "2.jpg": b"1234"},), _present),
    Reader("gap", lambda: (seeds.gap(),), _gap),
    Reader("zip", seeds.zips, lambda folder: _sent(folder, (folder / "x.zip").read_bytes())),
    Reader("project", lambda: (seeds.project(),), _zipped),
    Reader("kept", lambda: (seeds.kept(),), _kept),
    Reader("matcher", lambda: (seeds.matcher(),), _matcher, slow=True),
    Reader("card", lambda: (seeds.card(),), _card),
    Reader("calibration", lambda: (seeds.calibration(),), _calibration),
    Reader("checkpoint", lambda: (seeds.checkpoint(),), _checkpoint, slow=True),
    Reader("dino", seeds.dino, _dino, slow=True),
)


def get(name: str) -> Reader:
    """The reader of a name."""
    return next(reader for reader in READERS if reader.name == name)
