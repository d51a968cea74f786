"""What `jigsync eval` prints: its tables, as a terminal has room for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from jigsync.io.terminal import console

if TYPE_CHECKING:
    from rich.table import Table

    from jigsync.evaluate.run import Evaluation
    from jigsync.evaluate.table import Line
    from jigsync.score.intervals import Interval

FEW: Final = ("right", "contacts", "claims", "upright")
POSES: Final = ("right", "perfect", "contacts", "claims", "largest", "upright")
"""Shares that a narrow terminal has room for, and a wide one."""
SLOTS: Final = ("PA", "AA", "AA+rot", "SRA")
WIDE: Final = 110
"""Columns of a terminal from which on an interval stands beside its estimate instead of below it."""
WRITTEN: Final = (".csv", ".html", ".jpg")


def show(found: Evaluation) -> None:
    """Prints an evaluation."""
    from jigsync.evaluate.words import theirs_shown
    from jigsync.io.files import list_names

    screen = console()
    beside = screen.width >= WIDE
    lines = whole(found)
    screen.print(_pose_table(found, lines, beside))
    if slots := [line for line in lines if line.by_gauge]:
        screen.print(_slot_table(found, slots, beside))
    if names := theirs_shown(lines):
        screen.print(_their_table(found, lines, names))
    if len({line.kind for line in found.lines}) > 1:
        screen.print(_kind_table(found))
    if found.pairs:
        screen.print(_pair_table(found))
    for line in lines:
        if line.remarks:
            screen.print(f"{line.method.label} on {line.setting.label}: {line.remarks}", markup=False)
    for told in _weights(found):
        screen.print(told, markup=False, soft_wrap=True)
    if found.missing:
        screen.print(f"{found.missing} predictions are not there yet.")
    files = ", ".join(name for name in list_names(found.root) if name.endswith(WRITTEN))
    screen.print(f"Written to {found.root}: {files}", soft_wrap=True, markup=False)


def whole(found: Evaluation) -> list[Line]:
    """The lines over all kinds of pictures."""
    from jigsync.evaluate.table import ALL_KINDS

    return [line for line in found.lines if line.kind == ALL_KINDS]


def _weights(found: Evaluation) -> Iterable[str]:
    """Once for all methods that may run the same networks."""
    from jigsync.evaluate.words import weights_told

    told: dict[str, list[str]] = {}
    for method, identity in found.config.methods.items():
        told.setdefault(weights_told(identity), []).append(method.label)
    return [f"{', '.join(labels)}: {weights}." for weights, labels in told.items()]


class _Sections:
    """A table with a heading wherever the setting changes."""

    def __init__(self, title: str, *columns: str) -> None:
        from rich import box
        from rich.table import Table

        self.table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title=title)
        self.table.title_justify = "left"
        for name in columns:
            self.table.add_column(name, justify="left" if not name else "right", no_wrap=True)
        self._setting = ""

    def add(self, setting: str, *values: str) -> None:
        """A row."""
        self.begins(setting)
        self.table.add_row(*values)

    def begins(self, setting: str) -> bool:
        """Writes the setting's heading if this is another one; says whether it is."""
        if setting == self._setting:
            return False
        if self._setting:
            self.table.add_section()
        self.table.add_row(f"[bold]{setting}[/bold]")
        self._setting = setting
        return True


def _pose_table(found: Evaluation, lines: Sequence[Line], beside: bool) -> Table:
    """All kinds together; intervals beside their estimates, or below them."""
    title = f"Per cent of {len(found.specs)} puzzles with 95 % intervals, the whole moved as one"
    shown = POSES if beside else FEW
    errors = ("angle", "centre") if beside else ("angle",)
    table = _Sections(title, "", "n", *shown, *errors, "s")
    for line in lines:
        if table.begins(line.setting.label) and line.puzzles:
            table.table.add_row(
                *(f"[dim]{text}[/dim]" for text in ("chance", "", *_guesses(line, shown), *("" for _ in errors), ""))
            )
        if not line.puzzles:
            table.add(line.setting.label, line.method.label, "0", "refused")
            continue
        shares = _shares(line.poses, shown, beside)
        away = [f"{line.poses[name].estimate:.1f}" if name in line.poses else "-" for name in errors]
        table.add(line.setting.label, line.method.label, str(line.puzzles), *shares, *away, _seconds(line.seconds))
    return table.table


def _slot_table(found: Evaluation, lines: Sequence[Line], beside: bool) -> Table:
    """Puzzles of rows and columns, in the leading gauge."""
    table = _Sections(f"Slots, gauge: {found.lead}", "", "n", *SLOTS, "gauge right" if beside else "gauge")
    for line in lines:
        if table.begins(line.setting.label) and found.lead == "model":
            table.table.add_row(*(f"[dim]{text}[/dim]" for text in ("chance", "", *_guesses(line, SLOTS), "")))
        shares = _shares(line.by_gauge[found.lead], SLOTS, beside)
        right = "-" if line.gauge_right is None else _share(line.gauge_right, beside)
        table.add(line.setting.label, line.method.label, str(line.puzzles), *shares, right)
    return table.table


def _their_table(found: Evaluation, lines: Sequence[Line], names: Sequence[str]) -> Table:
    """A row a metric; the page and the CSV have the intervals."""
    from jigsync.evaluate.words import figure

    labels = [method.label for method in found.methods]
    table = _Sections("Metrics of others, as docs/metrics.md has them", "", "chance", *labels)
    settings: dict[str, dict[str, Line]] = {}
    for line in lines:
        settings.setdefault(line.setting.label, {})[line.method.label] = line
    for setting, of in settings.items():
        guess = next((line.chance for line in of.values() if line.puzzles), {})
        for name in names:
            values = [of[label].poses.get(name) if label in of else None for label in labels]
            told = [figure(name, value.estimate) if value else "-" for value in values]
            table.add(setting, name, f"[dim]{figure(name, guess[name]) if name in guess else ''}[/dim]", *told)
    return table.table


def _kind_table(found: Evaluation) -> Table:
    """The leading measure by kind of picture."""
    from jigsync.evaluate.table import ALL_KINDS, LEAD

    kinds = sorted({line.kind for line in found.lines} - {ALL_KINDS})
    table = _Sections("Fragments right by kind of picture", "", *kinds)
    values = {(line.setting, line.method, line.kind): line for line in found.lines}
    for setting, method in dict.fromkeys((line.setting, line.method) for line in found.lines):
        of = [values.get((setting, method, kind)) for kind in kinds]
        shares = [_share(line.poses[LEAD], True) if line and line.puzzles else "-" for line in of]
        table.add(setting.label, method.label, *shares)
    return table.table


def _pair_table(found: Evaluation) -> Table:
    """The first method against each other one: difference, interval, signs."""
    from jigsync.evaluate.table import LEAD

    title = f"{found.methods[0].label} minus another on the same puzzles, points of fragments right"
    table = _Sections(title, "", "n", "difference", "better", "equal", "worse")
    for pair in (pair for pair in found.pairs if pair.first == found.methods[0]):
        interval, signs = pair.poses[LEAD]
        told = f"{100 * interval.estimate:+.1f} [dim][{100 * interval.low:+.1f}, {100 * interval.high:+.1f}][/dim]"
        counts = (str(count) for count in (signs.better, signs.equal, signs.worse))
        table.add(pair.setting.label, f"- {pair.second.label}", str(interval.n), told, *counts)
    return table.table


def _guesses(line: Line, measures: Sequence[str]) -> list[str]:
    return [f"{100 * line.chance[name]:.1f}" if name in line.chance else "" for name in measures]


def _shares(values: Mapping[str, Interval], measures: Sequence[str], beside: bool) -> list[str]:
    return [_share(values[name], beside) if name in values else "-" for name in measures]


def _share(interval: Interval, beside: bool) -> str:
    low, high = (f"{100 * value:.1f}".removesuffix(".0") for value in (interval.low, interval.high))
    return f"{100 * interval.estimate:.1f}{' ' if beside else chr(10)}[dim]{low}-{high}[/dim]"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
