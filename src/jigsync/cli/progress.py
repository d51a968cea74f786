"""A progress bar on stderr for long work; silent when stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jigsync.io.terminal import console


@contextmanager
def progress_bar(period: float = 30.0) -> Iterator[Callable[[str, int, int], None]]:
    """Yields report(what, done, total); each new `what` gets its own bar.

    The time left is told from the speed of the last `period` seconds.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    screen = console(err=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    shown = screen.is_terminal
    with Progress(*columns, console=screen, disable=not shown, speed_estimate_period=period) as progress:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield report
