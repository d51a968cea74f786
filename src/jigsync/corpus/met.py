"""Pictures from the Metropolitan Museum of Art: highlights that the museum put into the public domain (CC0).

    OUT/<object id>.jpg
    OUT/licences.jsonl     one line a picture: object id, title, artist, date, licence, address, file, sha256
    OUT/skipped.jsonl      objects that can never be used, and why, so that they are not asked for again

A picture is written before its line, so a kill costs at most one download, and the same call goes on from there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from jigsync.corpus.download import Client, Refused, host_of
from jigsync.io.files import StrPath, append_jsonl, parse_json, read_jsonl, remove_leftovers, write_bytes
from jigsync.io.images import SUFFIXES, image_bytes_sha256, read_rgb
from jigsync.io.schema import Node
from jigsync.values.errors import FormatError, ImageError, InputError, OptionError, bad_value

BASE_URL: Final = "https://collectionapi.metmuseum.org/public/collection/v1"
IMAGE_HOST: Final = "images.metmuseum.org"
LICENCE: Final = "CC0-1.0"
LICENCE_FILE: Final = "licences.jsonl"
SKIPPED_FILE: Final = "skipped.jsonl"
MAX_JSON: Final = 32 * 2**20
MAX_PICTURE: Final = 64 * 2**20
MAX_LIMIT: Final = 100_000
GIVE_UP: Final = 5
"""Objects in a row without a usable answer before the server counts as gone."""


@dataclass(frozen=True)
class Failure:
    """An object without a picture, and why."""

    object_id: int
    reason: str


@dataclass(frozen=True)
class Fetched:
    """What a call of `fetch` has done.

    Attributes:
        pictures: in the folder now.
        downloaded: of these, by this call.
        failed: objects that this call left out.
        manifest: the licence manifest.
    """

    pictures: int
    downloaded: int
    failed: tuple[Failure, ...]
    manifest: Path

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        failed = [{"object_id": entry.object_id, "reason": entry.reason} for entry in self.failed]
        return {**vars(self), "failed": failed, "manifest": os.fspath(self.manifest)}


def fetch(
    out: StrPath,
    limit: int,
    *,
    base_url: str = BASE_URL,
    client: Client | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Fetched:
    """Downloads pictures until the folder has `limit` of them or the museum has no more.

    Args:
        out: new, empty, or a folder of an earlier call.
        limit: 1 .. 100 000.
        base_url: of the collection API.
        client: how to ask; the default is slow on purpose.
        progress: called with ("pictures", how many, limit).
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise bad_value("limit", "the download", f"an integer from 1 to {MAX_LIMIT}", limit)
    host = host_of(base_url)
    folder = Path(out)
    _check_out(folder)
    client = client or Client(frozenset((host, IMAGE_HOST) if base_url == BASE_URL else (host,)))
    have = _present(folder)
    before = len(have)
    known = have | {row.get("object_id") for row in _rows(folder / SKIPPED_FILE)}
    failed: list[Failure] = []
    lost = 0
    for number in _search(client, base_url) if before < limit else []:
        if len(have) >= limit:
            break
        if number in known:
            continue
        try:
            row, data = _download(client, base_url, number)
        except Refused as error:
            lost = 0
            failed.append(Failure(number, str(error)))
            append_jsonl(folder / SKIPPED_FILE, [{"object_id": number, "reason": str(error)}])
            continue
        except InputError as error:  # no answer, nonsense, or a broken picture: it may be better another day
            failed.append(Failure(number, str(error)))
            lost += 1
            if lost == GIVE_UP:
                raise InputError(f"Stopped after {lost} objects in a row without a usable answer: {error}") from None
            continue
        lost = 0
        write_bytes(folder / row["file"], data)
        append_jsonl(folder / LICENCE_FILE, [row])
        have.add(number)
        if progress:
            progress("pictures", len(have), limit)
    if not have:
        why = f" {failed[0].reason}" if failed else ""
        raise InputError(f"The collection at '{base_url}' gave no picture that can be used.{why}")
    return Fetched(len(have), len(have) - before, tuple(failed), folder / LICENCE_FILE)


def _check_out(folder: Path) -> None:
    """New, empty, or begun by an earlier call."""
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"The output '{folder}' must be a folder. Got a file instead.")
    if not folder.exists():
        return
    remove_leftovers(folder)
    names = os.listdir(folder)
    if names and LICENCE_FILE not in names and SKIPPED_FILE not in names:
        # A kill before the first line leaves one picture with a number for a name.
        strangers = [name for name in names if not re.fullmatch(r"\d+\.[a-z0-9]+", name)]
        if strangers:
            raise OptionError(
                f"The output folder '{folder}' must be empty or hold an earlier download. It holds '{strangers[0]}'."
            )


def _rows(path: Path) -> list[dict[str, Any]]:
    return read_jsonl(path) if path.is_file() else []


def _present(folder: Path) -> set[int]:
    """Object ids of the lines whose picture is still there, whole."""
    have = set()
    for number, row in enumerate(_rows(folder / LICENCE_FILE), start=1):
        node = Node(row, f"{folder / LICENCE_FILE}:{number}")
        file = node.key("file")
        if not re.fullmatch(r"\d{1,20}\.[a-z0-9]{1,8}", file.text()):
            raise file.refuse("a picture of this folder, named by its number")
        picture = folder / file.text()
        if picture.is_file() and picture.stat().st_size == node.key("bytes").integer(0, MAX_PICTURE):
            have.add(node.key("object_id").integer(0, 2**53))
    return have


def _search(client: Client, base_url: str) -> list[int]:
    """Ids of all highlights in the public domain with a picture, in ascending order."""
    query = urlencode({"isHighlight": "true", "isPublicDomain": "true", "hasImages": "true", "q": "*"})
    root = _json(client, f"{base_url}/search?{query}")
    found = root.key("objectIDs").optional()
    return sorted({node.integer(0, 2**53) for node in found.entries()}) if found else []


def _download(client: Client, base_url: str, number: int) -> tuple[dict[str, Any], bytes]:
    """The line of the licence manifest and the picture of one object."""
    root = _json(client, f"{base_url}/objects/{number}")
    if root.key("isPublicDomain").value is not True:
        raise Refused(f"The object {number} is not in the public domain.")
    address = root.key("primaryImage").text()
    if not address:
        raise Refused(f"The object {number} has no picture.")
    data = client.get(address, MAX_PICTURE)
    try:
        read_rgb(data, name=address)
    except ImageError:
        data = client.get(address, MAX_PICTURE)
        read_rgb(data, name=address)
    suffix = PurePosixPath(urlsplit(address).path).suffix.lower()
    row = {
        "object_id": number,
        "title": _text(root, "title"),
        "artist": _text(root, "artistDisplayName"),
        "date": _text(root, "objectDate"),
        "licence": LICENCE,
        "url": _text(root, "objectURL"),
        "image_url": address,
        "file": f"{number}{suffix if suffix in SUFFIXES else '.jpg'}",
        "bytes": len(data),
        "sha256": image_bytes_sha256(data),
    }
    return row, data


def _text(root: Node, key: str) -> str:
    return root.key(key).text() if root.has(key) and root.value[key] is not None else ""


def _json(client: Client, url: str) -> Node:
    root = Node(parse_json(client.get(url, MAX_JSON), url), url)
    if not isinstance(root.value, dict):
        raise FormatError(f"The answer of '{url}' must be a JSON object.")
    return root
