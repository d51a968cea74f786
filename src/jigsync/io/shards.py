"""WebDataset shards: puzzles with their truths in tar files, for training and evaluation (never for a solver).

One sample is <key>.puzzle.json, <key>.<fragment id>.png for every fragment, <key>.truth.json, in this order. The
"file" of a fragment in the puzzle.json is its member's name, so that an unpacked shard holds loadable puzzles. The
bytes of a shard are a pure function of its samples: no time, no owner, a fixed order.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, BinaryIO, Final

from jigsync.io.files import StrPath, atomic_file, json_bytes, open_plain, parse_json, reason_of
from jigsync.io.images import png_bytes, read_rgba
from jigsync.io.puzzle_folder import as_fragment, parse_puzzle_json, puzzle_json
from jigsync.io.remote import Remote
from jigsync.io.schema import Node
from jigsync.io.truth_file import parse_truth, truth_json
from jigsync.values.errors import FormatError, InputError
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.values.truth import Truth

Sample = tuple[str, Puzzle, Truth]
"""(key, puzzle, truth)."""

KEY: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
"""What a key may be; WebDataset cuts names at the first dot and lowers the case of what follows."""

MAX_MEMBER: Final = 1 << 28
MAX_FETCHED: Final = 1 << 32
"""Largest shard that is fetched from a URL, in bytes."""
_BLOCK: Final = 512
_PUZZLE: Final = "puzzle.json"
_TRUTH: Final = "truth.json"


class _Hashed:
    """A file that is written to, and the hash of all that was."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.sha256 = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()


def write_shard(path: StrPath, samples: Iterable[Sample]) -> str:
    """Writes a shard, atomically, holding one sample in memory at a time; returns the sha256 of its bytes."""
    with atomic_file(path) as file:
        hashed: Any = _Hashed(file)
        _write_tar(hashed, samples)
    digest: str = hashed.sha256.hexdigest()
    return digest


def _write_tar(file: Any, samples: Iterable[Sample]) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for key, puzzle, truth in samples:
            for name, data in _members(key, puzzle, truth):
                info = tarfile.TarInfo(name)  # mtime, uid and gid are 0, mode is 0644
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def _members(key: str, puzzle: Puzzle, truth: Truth) -> Iterator[tuple[str, bytes]]:
    if not KEY.fullmatch(key):
        raise FormatError(f"The key '{key}' of a sample must be lower-case letters, digits, - and _.")
    head = puzzle_json(puzzle)
    for entry in head["fragments"]:
        name = Node(entry["id"], key, "id").fragment_id()
        if name != name.lower():
            raise FormatError(f"The id '{name}' of sample '{key}' must be in lower case to be kept by WebDataset.")
        entry["file"] = f"{key}.{name}.png"
    yield f"{key}.{_PUZZLE}", json_bytes(head)
    for entry, pixels in zip(head["fragments"], puzzle.fragments.pixels, strict=True):
        yield entry["file"], png_bytes(pixels)
    yield f"{key}.{_TRUTH}", json_bytes(truth_json(truth))


def read_shard(path: StrPath) -> Iterator[Sample]:
    """The samples of a shard, one in memory at a time; a corrupt or cut-off shard is named in the error.

    A shard at a URL is fetched whole first.
    """
    shown = os.fspath(path)
    with _opened(path) as file:
        seen: set[str] = set()
        for key, group in groupby(_entries(file, shown), key=lambda entry: entry[0]):
            if key in seen:
                raise FormatError(f"The shard '{shown}' holds the sample '{key}' twice.")
            seen.add(key)
            yield _sample(key, {rest: data for _, rest, data in group}, shown)


def _opened(path: StrPath) -> BinaryIO:
    if isinstance(path, Remote):
        return io.BytesIO(path.read(MAX_FETCHED))
    return open_plain(path)


def _sample(key: str, members: dict[str, bytes], shown: str) -> Sample:
    for needed in (_PUZZLE, _TRUTH):
        if needed not in members:
            raise FormatError(f"The sample '{key}' of the shard '{shown}' has no '{needed}'.")
    head, answer = (
        Node(parse_json(members[name], f"{shown}: {key}.{name}"), f"{shown}: {key}.{name}")
        for name in (_PUZZLE, _TRUTH)
    )
    cell, container, files = parse_puzzle_json(head)
    pixels = []
    for name, member in files.items():
        data = members.get(member.removeprefix(f"{key}."))
        if data is None:
            raise FormatError(f"The sample '{key}' of the shard '{shown}' has no '{member}'.")
        pixels.append(as_fragment(read_rgba(data, name=f"{shown}: {member}"), container, name, head.file))
    puzzle = Puzzle(Fragments(tuple(files), tuple(pixels)), cell, container, key)
    truth = parse_truth(answer)
    if set(truth.placement) != set(files):
        raise FormatError(f"The puzzle and the truth of sample '{key}' in the shard '{shown}' name other fragments.")
    return key, puzzle, truth


def _entries(file: BinaryIO, shown: str) -> Iterator[tuple[str, str, bytes]]:
    """(key, rest of the name, bytes) of every member, in order."""
    end = 0
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for info in tar:
                data = _data(tar, info, shown)
                end = info.offset_data + -(-info.size // _BLOCK) * _BLOCK
                tar.members = []  # type: ignore[attr-defined]  # tarfile would keep every header it has seen
                key, _, rest = info.name.partition(".")
                yield key, rest, data
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        raise FormatError(f"The shard '{shown}' is corrupt: {reason_of(error)}.") from None
    # tarfile takes a broken header for the end; a whole shard ends in two blocks of zeros and nothing else.
    file.seek(end)
    tail = file.read()
    if len(tail) < 2 * _BLOCK or tail.strip(b"\0"):
        raise FormatError(f"The shard '{shown}' is corrupt or cut off at byte {end}.")


def _data(tar: tarfile.TarFile, info: tarfile.TarInfo, shown: str) -> bytes:
    if not info.isreg():
        raise FormatError(f"The shard '{shown}' must hold plain files only. Got '{info.name}'.")
    if not 0 <= info.size <= MAX_MEMBER:
        raise InputError(f"The member '{info.name}' of '{shown}' must have at most {MAX_MEMBER} bytes: {info.size}.")
    member: Any = tar.extractfile(info)
    data: bytes = member.read()
    if len(data) != info.size:
        raise FormatError(f"The shard '{shown}' is cut off in its member '{info.name}'.")
    return data
