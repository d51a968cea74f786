"""What the server holds: puzzles and pictures, each under an id that cannot be guessed, until they are let go.

When there is no room, what was not used for a while makes room; when everything is in use, newcomers are refused.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import cv2
import numpy as np

from jigsync.io.images import png_bytes
from jigsync.render.assemble import unpremultiply
from jigsync.values.puzzle import Puzzle
from jigsync.web.limits import Limits, Refusal
from jigsync.web.pixels import PuzzleFile, mapped

MOST_WINDOWS = 64
"""Windows that are remembered to have a puzzle open."""
LARGEST_PHOTOGRAPH = 2400
"""Longer side of a photograph as the page shows it, px."""
LARGEST_SHOWN = 400
"""Longer side of a fragment as the page shows it, px."""


class Held(Protocol):
    """What can be held."""

    @property
    def id(self) -> str: ...

    @property
    def pixels(self) -> int: ...

    @property
    def busy(self) -> bool: ...


@dataclass(eq=False)
class HeldPuzzle:
    """A puzzle, its pixels in a file.

    Attributes:
        pitch: (height, width) of a cell in fragment pixels, before anything is placed.
        notes: sentences for the person who sent it.
        skews: of a scan, id -> degrees or None.
        project: the file of the state to go on from, when it came with one.
        state, version: what a window has kept last, as JSON, and how often one has.
        windows: those that have opened it.
    """

    file: PuzzleFile
    pitch: tuple[int, int]
    notes: tuple[str, ...] = ()
    skews: dict[str, float | None] | None = None
    project: Path | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    jobs: int = 0
    state: bytes | None = None
    version: int = 0
    windows: set[str] = field(default_factory=set)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the fragments."""
        return self.file.ids

    @property
    def puzzle(self) -> Puzzle:
        """The puzzle, its pixels mapped."""
        return self.file.open()

    @property
    def pixels(self) -> int:
        """Of all fragments."""
        return self.file.pixels

    @property
    def busy(self) -> bool:
        """Is a job working on it?"""
        return self.jobs > 0

    def opened_in(self, window: str) -> None:
        """A window has it now."""
        if window and len(self.windows) < MOST_WINDOWS:
            self.windows.add(window)

    def left_by(self, window: str) -> bool:
        """A window does not need it any more; does nobody?"""
        self.windows.discard(window)
        return not (window and self.windows)

    def remove(self) -> None:
        """Removes its files; whoever has them mapped may go on."""
        Path(self.file.path).unlink(missing_ok=True)
        if self.project is not None:
            self.project.unlink(missing_ok=True)

    def shown(self, name: str) -> bytes:
        """A PNG of a fragment as presented, straight colours, no larger than LARGEST_SHOWN."""
        pixels = np.array(self.puzzle.fragments[name])
        height, width = pixels.shape[:2]
        if (longer := max(height, width)) > LARGEST_SHOWN:
            size = (max(1, width * LARGEST_SHOWN // longer), max(1, height * LARGEST_SHOWN // longer))
            pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        unpremultiply(pixels)
        return png_bytes(pixels)


@dataclass(eq=False)
class HeldPicture:
    """A picture to cut, its pixels in a file; one of ours has none."""

    height: int
    width: int
    sha256: str
    name: str
    path: str = ""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    @property
    def pixels(self) -> int:
        """Width x height."""
        return self.height * self.width

    @property
    def busy(self) -> bool:
        """Never: whoever uses it has it."""
        return False

    def to_json(self) -> dict[str, Any]:
        """What a task needs to open it."""
        where = {"path": self.path, "height": self.height, "width": self.width, "sha256": self.sha256}
        return {"name": self.name, **(where if self.path else {})}

    def remove(self) -> None:
        """Removes its file."""
        if self.path:
            Path(self.path).unlink(missing_ok=True)


@dataclass(eq=False)
class HeldPhotograph(HeldPicture):
    """A photograph of fragments, its pixels with their transparency in a file."""

    def shown(self) -> bytes:
        """A JPEG for the page, no larger than LARGEST_PHOTOGRAPH; what is transparent is white."""
        pixels = mapped(Path(self.path), (self.height, self.width, 4), "photograph")
        scale = min(1.0, LARGEST_PHOTOGRAPH / max(self.height, self.width))
        size = max(1, round(scale * self.width)), max(1, round(scale * self.height))
        small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
        alpha = small[..., 3:].astype(np.float32) / 255
        rgb = (small[..., :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)
        return bytes(cv2.imencode(".jpg", np.ascontiguousarray(rgb[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, 88])[1])


Kept = TypeVar("Kept", bound=Held)


class Store(Generic[Kept]):
    """Things by id; safe to use from any thread."""

    def __init__(self, what: str, limits: Limits, let_go: Callable[[Kept], None]) -> None:
        """`let_go` is told of everything that is held no longer."""
        self._what = what
        self._limits = limits
        self._let_go = let_go
        self._held: dict[str, tuple[Kept, float]] = {}
        self._lock = threading.Lock()

    def add(self, thing: Kept) -> Kept:
        """Keeps a thing; Refusal 503 when there is no room and nothing that may go."""
        with self._lock:
            while self._full(thing):
                self._let_one_go()
            self._held[thing.id] = (thing, time.monotonic())
        return thing

    def get(self, name: str) -> Kept:
        """The thing of this id; Refusal 404 when there is none."""
        with self._lock:
            if name not in self._held:
                raise Refusal(404, f"There is no such {self._what}: the server may have been started anew.")
            thing, _ = self._held[name]
            self._held[name] = (thing, time.monotonic())
        return thing

    def drop(self, name: str) -> None:
        """Lets a thing go."""
        with self._lock:
            if (gone := self._held.pop(name, None)) is not None:
                self._let_go(gone[0])

    def __len__(self) -> int:
        return len(self._held)

    def _full(self, newcomer: Kept) -> bool:
        pixels = newcomer.pixels + sum(thing.pixels for thing, _ in self._held.values())
        return bool(self._held) and (len(self._held) >= self._limits.puzzles or pixels > self._limits.held_pixels)

    def _let_one_go(self) -> None:
        idle = time.monotonic() - self._limits.idle_seconds
        free = [(used, name) for name, (thing, used) in self._held.items() if used <= idle and not thing.busy]
        if not free:
            raise Refusal(
                503,
                f"The workbench is full: it holds {len(self._held)} {self._what}s that were used a moment ago."
                " Close one, or try again in some minutes.",
                retry_after=60,
            )
        _, name = min(free)
        gone, _ = self._held.pop(name)
        self._let_go(gone)
