"""Every error JigSync raises on purpose.

    JigsyncError                 catch this one to catch them all
    ├── InputError               a file, folder or picture that cannot be used
    │   ├── ImageError           ... because of its pixels or its encoding
    │   └── FormatError          ... because of its structure (JSON, HDF5, tar)
    ├── OptionError              a value that is out of range or of the wrong kind
    └── MissingExtraError        an optional part of JigSync is not installed

The command line turns each of them into one sentence on stderr and exit code 2. A *failed solve* is not an
error: it is a `Solution` whose status says so and which is falsy.
"""

from __future__ import annotations


class JigsyncError(Exception):
    """Base class; its message is one sentence that a person can act on."""


class InputError(JigsyncError):
    """A file, folder or picture cannot be used."""


class ImageError(InputError):
    """A picture cannot be decoded or has unusable pixels."""


class FormatError(InputError):
    """A structured file does not have the structure it must have."""


class OptionError(JigsyncError):
    """An option is out of range or of the wrong kind."""


class MissingExtraError(JigsyncError):
    """An optional dependency is needed and not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package '{package}', which is not installed: pip install 'jigsync[{extra}]'."
        )
        self._told = feature, package, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        # A worker process sends it home pickled.
        return type(self), self._told


def is_of_memory(error: BaseException) -> bool:
    """Did memory (or threads, whose stacks are memory) run out? Libraries have their own words for it."""
    if isinstance(error, MemoryError):
        return True
    words = ("bad_alloc", "bad alloc", "nsufficient memory", "t allocate memory", "t start new thread", "ut of memory")
    return any(word in str(error) for word in words)


def bad_value(name: str, owner: str, allowed: str, got: object) -> OptionError:
    """The one way an out-of-range option is worded."""
    shown = repr(got)
    shown = shown if len(shown) <= 200 else shown[:197] + "..."
    return OptionError(f"The '{name}' of {owner} must be {allowed}. Got {shown} instead.")
