"""Places outside this machine's file system: any fsspec URL, as a folder of whole objects.

    s3://bucket/corpus        with the extra `remote`; credentials and endpoint come from the usual environment (AWS_*)
    gs://, az://, sftp://     with that store's own fsspec package
    memory://corpus           the memory of this process, for tests

An object is written whole or not at all. Object stores promise that themselves: what is put appears when all of it has
arrived. Elsewhere it goes to a hidden temporary name first and is moved. Every refusal, whatever library it comes
from, is one sentence (`InputError`) that names the URL.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from jigsync.io.refusals import StrPath, cannot
from jigsync.values.errors import InputError, MissingExtraError, OptionError

T = TypeVar("T")

URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
LOCAL: Final = ("file", "local")
MEMORY: Final = "memory"
WHOLE: Final = frozenset({MEMORY, "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "r2"})
"""Stores in which an object appears when all of it has arrived."""
S3: Final = ("s3", "s3a")
S3_OPTIONS: Final[dict[str, Any]] = {
    "config_kwargs": {
        "connect_timeout": 10,
        "read_timeout": 30,
        "retries": {"total_max_attempts": 3, "mode": "standard"},
    },
    # Other processes write too: what was listed a moment ago says nothing.
    "use_listings_cache": False,
}
"""Bounded waits, in seconds. For other stores their own library's limits hold."""
S3_ATTEMPTS: Final = 2
"""s3fs tries again around what botocore has tried again; its default is 5."""
PREFIX: Final = ".jigsync-"
SUFFIX: Final = ".tmp"


def temporary_name() -> str:
    """A hidden name that nobody uses."""
    return f"{PREFIX}{uuid.uuid4().hex}{SUFFIX}"


@dataclass(frozen=True, order=True)
class Remote(os.PathLike[str]):
    """A folder or an object at a URL; `/` goes below it, as with pathlib."""

    url: str

    def __fspath__(self) -> str:
        return self.url

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Remote:
        """The folder it is in."""
        return Remote(self.url.rstrip("/").rpartition("/")[0])

    @property
    def protocol(self) -> str:
        """What stands before ://"""
        return self.url.partition("://")[0]

    def is_file(self) -> bool:
        """Is there an object of this name?"""

        def ask(fs: Any, path: str) -> bool:
            # fs.isfile would take a network that is down for "no".
            try:
                return bool(fs.info(path)["type"] == "file")
            except FileNotFoundError:
                return False

        return self._call("read", ask)

    def read(self, limit: int) -> bytes:
        """The object's bytes; InputError when there is none, or it has more than `limit` bytes."""
        data: bytes = self._call("read", lambda fs, path: fs.cat_file(path, start=0, end=limit + 1))
        if len(data) > limit:
            raise InputError(f"The file '{self.url}' must have at most {limit} bytes. It has more.")
        return data

    def write(self, data: bytes) -> None:
        """Makes or replaces the object, whole."""
        if self.protocol in WHOLE:
            self._call("written", lambda fs, path: fs.pipe_file(path, data))
            return

        def move(fs: Any, path: str) -> None:
            folder = path.rpartition("/")[0]
            fs.makedirs(folder, exist_ok=True)
            beside = f"{folder}/{temporary_name()}"
            try:
                fs.pipe_file(beside, data)
                fs.mv(beside, path)
            except BaseException:
                if fs.exists(beside):
                    fs.rm_file(beside)
                raise

        self._call("written", move)

    def create(self, data: bytes) -> bool:
        """Makes the object unless there is one: then False."""

        def put(fs: Any, path: str) -> bool:
            try:
                fs.pipe_file(path, data, mode="create")
            except Exception:
                if fs.exists(path):
                    return False
                # Not every store can compare while it writes; one that refuses for another reason says so again.
                fs.pipe_file(path, data)
            return True

        return self._call("written", put)

    def unlink(self) -> None:
        """Removes the object; it may be gone already."""

        def remove(fs: Any, path: str) -> None:
            try:
                fs.rm_file(path)
            except FileNotFoundError:
                return

        self._call("removed", remove)

    def names(self) -> set[str]:
        """What is in this folder; nothing when it does not exist, for in an object store no folder does."""
        return {name.partition("/")[0] for name in self._listed(lambda fs, path: fs.ls(path, detail=False))}

    def below(self) -> set[str]:
        """Every object below this folder, by its path from here: one request a thousand objects."""
        return self._listed(lambda fs, path: fs.find(path))

    def _listed(self, ask: Callable[[Any, str], list[str]]) -> set[str]:
        def find(fs: Any, path: str) -> set[str]:
            folder = path.strip("/") + "/"
            try:
                found = ask(fs, path)
            except FileNotFoundError:
                return set()
            plain = (name.strip("/") for name in found)
            return {name.removeprefix(folder) for name in plain if name.startswith(folder)}

        return self._call("listed", find)

    def _call(self, verb: str, ask: Callable[[Any, str], T]) -> T:
        """What the file system answers; whatever it raises becomes one sentence."""
        fs, path = _system(self.url)
        try:
            return ask(fs, path)
        except InputError:
            raise
        except Exception as error:  # every store has exceptions of its own
            raise cannot(verb, self.url, error) from error


Place = Path | Remote


def place(path: StrPath) -> Place:
    """A local path, or the folder or object at a URL; file:// is a local path too."""
    if isinstance(path, Remote):
        return path
    text = os.fspath(path)
    found = URL.fullmatch(text)
    if found is None:
        return Path(path)
    protocol, rest = found.groups()
    if protocol in LOCAL:
        return Path(rest)
    if "::" in text:
        raise OptionError(f"The URL '{text}' must name one store: in a chain of them nothing can be written whole.")
    if not rest.strip("/"):
        raise OptionError(f"The URL '{text}' must name a folder, such as {protocol}://bucket/corpus.")
    return Remote(text.rstrip("/"))


def only_here(path: Place) -> bool:
    """Can no other process reach it?"""
    return isinstance(path, Remote) and path.protocol == MEMORY


def _system(url: str) -> tuple[Any, str]:
    """(file system, path in it) of a URL; fsspec keeps file systems and hands out the same one again."""
    protocol = url.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError(f"The URL '{url}'", "fsspec", "remote") from None
    try:
        fs, path = url_to_fs(url, **(S3_OPTIONS if protocol in S3 else {}))
    except ImportError as error:
        if protocol in S3:
            raise MissingExtraError(f"The URL '{url}'", "s3fs", "remote") from None
        raise OptionError(f"The URL '{url}' needs a package that is not installed: {error}.") from None
    except ValueError as error:
        raise OptionError(f"The URL '{url}' cannot be used: {error}.") from None
    if protocol in S3:
        fs.retries = S3_ATTEMPTS
    return fs, path
