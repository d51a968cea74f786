"""Ways of reading a puzzle that are measured once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from jigsync.values.measurements import Measurements


class Remembered:
    """Measurements as `jigsync.measure.choice.readings` gives them; each is measured when it is first asked for."""

    def __init__(self, read: Callable[[], Iterator[Measurements]]) -> None:
        self._read, self._left, self._known = read, read(), list[Measurements]()

    def __iter__(self) -> Iterator[Measurements]:
        at = 0
        while True:
            if at == len(self._known):
                try:
                    more = next(self._left, None)
                except BaseException:  # a generator that raised has ended: whoever asks again gets the same answer
                    self._left = islice(self._read(), len(self._known), None)
                    raise
                if more is None:
                    return
                self._known.append(more)
            yield self._known[at]
            at += 1
