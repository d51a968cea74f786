"""A table of bad invocations: each exits with 2, says one line on stderr, shows no traceback and writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_images import without_rights

from jigsync.cli import main
from jigsync.io.images import png_bytes, write_png

CUT = "cut good.png --out=out"
SWEEP = "sweep pictures --out=out --cell=16"

BAD = [
    # the picture
    ("cut none.png --out=out", "The path 'none.png' cannot be read: No such file or directory."),
    ("cut pictures --out=out", "The path 'pictures' cannot be read: Is a directory."),
    ("cut empty.png --out=out", "The picture 'empty.png' is empty: it has 0 bytes."),
    ("cut truncated.png --out=out", "The picture 'truncated.png' is broken or truncated"),
    ("cut text.png --out=out", "The file 'text.png' is not a picture that can be read: PNG, JPEG"),
    ("cut animated.gif --out=out", "The picture 'animated.gif' must have one frame or page. It has more."),
    ("cut huge.pgm --out=out", "The picture 'huge.pgm' must have at most 100,000,000 pixels. It has 20000 x 5001"),
    ("cut one-pixel.png --out=out", "'one-pixel.png' is 1 x 1 pixels"),
    ("cut strip.png --out=out", "'strip.png' is 300 x 2 pixels"),
    ("cut é-ü.png --out=out", "The path 'é-ü.png' cannot be read"),
    # options of cut
    (f"{CUT} --grid=0", "The 'rows' of a grid must be an integer of at least 1. Got 0 instead."),
    (f"{CUT} --grid=-3", "The 'grid' of the puzzle must be a number such as 5 or rows x cols such as 4x6. Got '-3'"),
    (f"{CUT} --grid=4x", "Got '4x' instead."),
    (f"{CUT} --grid=nan", "Got 'nan' instead."),
    (f"{CUT} --grid=201", "must be of at most 40000 fragments. Got '201x201' instead."),
    (f"{CUT} --grid=100 --cell=1024", "at most 200,000,000 are allowed"),
    (f"{CUT} --cell=0", "The 'cell' of the puzzle must be an integer from 8 to 1024 pixels. Got 0 instead."),
    (f"{CUT} --cell=12.5", "--cell"),
    (f"{CUT} --seed=-1", "The 'seed' of the puzzle must be an integer from 0 to 2^63 - 1. Got -1 instead."),
    (f"{CUT} --shape=nan", "The 'shape' of the damage must be a number from 0 to 32. Got nan instead."),
    (f"{CUT} --shape=-1", "The 'shape' of the damage must be from 0 to 32. Got -1.0 instead."),
    (f"{CUT} --erosion=inf", "The 'erosion' of the damage must be a number from 0 to 0.4. Got inf instead."),
    (f"{CUT} --photo=1.01", "The 'photo' of the damage must be from 0 to 1. Got 1.01 instead."),
    (f"{CUT} --photo=much", "--photo"),
    (f"{CUT} --severity=bad", "must be one of clean, light, medium, heavy, severe, eroded. Got 'bad' instead."),
    (f"{CUT} --severity=light --shape=3", "either --severity or single axes. Got --severity light and --shape."),
    (f"{CUT} --preset=square", "The 'preset' of the puzzle must be 'fracture' or 'gap'. Got 'square' instead."),
    (f"{CUT} --preset=gap --shape=8", "The 'shape' of the gap preset must be 0"),
    ("cut good.png", "--out"),
    ("cut", "image"),
    (f"{CUT} --unknown", "--unknown"),
    # the output
    ("cut good.png --out=pictures", "The output folder 'pictures' must be empty or not exist. Got one that holds"),
    ("cut good.png --out=pictures --overwrite", "The output folder 'pictures' is not overwritten: it holds 'a.png'"),
    ("cut good.png --out=text.png", "The output 'text.png' must be a folder. Got a file instead."),
    (
        "cut good.png --out=text.png/below",
        "The path 'text.png/below' cannot be used as the output folder: Not a directory.",
    ),
    ("cut good.png --out=nowhere", "The output 'nowhere' must be a folder. Got a link that leads nowhere."),
    # pipes and links
    ("cut pipe --out=out", "The path 'pipe' cannot be read: it must be a plain file."),
    ("solve pipe", "The path 'pipe' cannot be read: it must be a plain file."),
    ("solve pictures --weights=pipe --out=out", "The path 'pipe' cannot be read: it must be a plain file."),
    ("score pipe pipe", "The path 'pipe' cannot be read: it must be a plain file."),
    ("solve linked", "The file 'b.png' of 'linked' must lie inside the folder. It leads outside."),
    ("sweep linked --out=out", "The file 'b.png' of 'linked' must lie inside the folder. It leads outside."),
    # sweep
    ("sweep none --out=out", "The path 'none' cannot be read as a folder of pictures: No such file or directory."),
    ("sweep nothing --out=out", "The folder 'nothing' must hold pictures"),
    ("sweep unusable --out=out", "None of the 2 pictures in 'unusable' can be used: The picture 'a.png' is empty"),
    ("sweep text.png --out=out", "None of the 1 pictures in 'text.png' can be used"),
    (f"{SWEEP} --grids=", "The 'grid' of the puzzle must be a number such as 5"),
    (f"{SWEEP} --grids=3,0", "The 'rows' of a grid must be"),
    (f"{SWEEP} --grids=3,3x3", "The 'grids' of a sweep must be a list of different values. Got '3x3,3x3' instead."),
    (f"{SWEEP} --severities=light,bad", "must be 'all' or some of clean, light"),
    (f"{SWEEP} --per-image=0", "The 'per_image' of a sweep must be an integer of at least 1. Got 0 instead."),
    (f"{SWEEP} --seed=-5", "The 'seed' of a sweep must be an integer of at least 0. Got -5 instead."),
    (f"{SWEEP} --workers=-2", "The 'workers' of a sweep must be an integer from 1 to 1024. Got -2 instead."),
    ("sweep pictures --out=pictures", "must be empty or hold a sweep. Got one with 'a.png'."),
    ("sweep pictures --out=text.png", "The path 'text.png' cannot be used as the output folder: Not a directory."),
    # corpus
    ("corpus report none", "sweep.json' cannot be read: No such file or directory."),
    ("corpus report pictures", "sweep.json' cannot be read"),
    ("corpus report not-a-corpus", "The 'format' of 'not-a-corpus/sweep.json' must be 'jigsync-sweep/1'. Got 'x'"),
    ("corpus procedural --out=out --beta=9", "The 'beta' of a procedural picture must be a number from 0.5 to 3.0."),
    ("corpus procedural --out=out --beta=a,b", "The 'beta' of a procedural picture must be numbers such as"),
    ("corpus procedural --out=out --beta=nan", "Got nan instead."),
    ("corpus procedural --out=out --count=0", "The 'count' of the procedural corpus must be an integer from 1"),
    ("corpus procedural --out=out --size=1", "The 'size' of a procedural picture must be an integer from 16"),
    ("corpus procedural --out=pictures", "must be empty or not exist"),
    ("corpus fetch-met --out=out --limit=0", "The 'limit' of the download must be an integer from 1 to 100000."),
    ("corpus fetch-met --out=out --base-url=file:///etc", "must be a web address such as https://host/path"),
    ("corpus fetch-met --out=pictures", "must be empty or hold an earlier download. It holds 'a.png'."),
    # files given to the readers of others
    ("show none", "The path 'none' cannot be read"),
    ("show nothing", "The folder 'nothing' must hold pictures"),
    ("show text.png", "text.png' is not valid JSON"),
    ("score text.png text.png", "text.png' is not valid JSON"),
    ("score none.json none.json", "The path 'none.json' cannot be read"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("here")
    good = np.random.default_rng(4).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    data = png_bytes(good)
    files = {
        "good.png": data,
        "empty.png": b"",
        "truncated.png": data[: len(data) // 2],
        "text.png": b"hello",
        "huge.pgm": b"P5 20000 5001 255\n",
        "one-pixel.png": png_bytes(good[:1, :1]),
        "strip.png": png_bytes(np.zeros((2, 300, 3), dtype=np.uint8)),
        "pictures/a.png": data,
        "unusable/a.png": b"",
        "unusable/b.jpg": b"hello",
        "not-a-corpus/sweep.json": b'{"format": "x"}',
    }
    for name, content in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_bytes(content)
    (here / "nothing").mkdir()
    (here / "linked").mkdir()
    (here / "linked" / "b.png").symlink_to(here / "good.png")
    (here / "nowhere").symlink_to(here / "not-there")
    os.mkfifo(here / "pipe")
    first, second = Image.fromarray(good), Image.fromarray(good[::-1].copy())
    first.save(here / "animated.gif", save_all=True, append_images=[second])
    return here


def state(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_bad_invocation(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    monkeypatch.chdir(prepared)
    before = state(prepared)
    code = main(line.split(" "))
    out, err = capfd.readouterr()
    assert code == 2
    assert words in err
    assert err.startswith("jigsync: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert out == ""
    assert state(prepared) == before


@pytest.mark.parametrize("line", ["cut closed/a.png --out=out", "sweep closed --out=out", "show closed"])
def test_folders_without_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_png("closed/a.png", np.zeros((20, 20, 3), dtype=np.uint8))
    main(["--version"])  # everything lazy is loaded while we still have our rights
    capfd.readouterr()
    (tmp_path / "closed").chmod(0o700)
    with without_rights(tmp_path / "closed"):
        code = main(line.split(" "))
    out, err = capfd.readouterr()
    assert code == 2
    assert "Permission denied" in err
    assert (err.count("\n"), out) == (1, "")
    assert os.listdir(tmp_path) == ["closed"]
