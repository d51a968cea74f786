"""The private folder in which uploads are decoded. A killed server leaves its own behind; the next one removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "jigsync-"
LOCK_FILE: Final = ".lock"


class Room:
    """A folder that only we can read, with a lock that falls with its process.

    Attributes:
        inside: where things are put.
    """

    def __init__(self) -> None:
        _remove_abandoned(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))  # mode 0700
        self.inside = self.path / "uploads"
        self.inside.mkdir(mode=0o700)
        # Locked before it has its name, so that nobody finds the lock free in between.
        handle, unnamed = tempfile.mkstemp(dir=self.path)
        self._lock = os.fdopen(handle, "wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(unnamed, self.path / LOCK_FILE)

    def close(self) -> None:
        """Removes the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned(parent: Path) -> None:
    """Folders of ours whose server is gone."""
    for lock in parent.glob(f"{PREFIX}*/{LOCK_FILE}"):
        try:
            # Without waiting: anybody may put a pipe of this name into a folder for temporary files.
            with open(os.open(lock, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    continue
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:  # another server's, alive
            continue
