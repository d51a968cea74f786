"""A chart as SVG text: one line of points with intervals a method, over severities.

Drawn by hand so that a report needs no plotting library and follows the reader's light or dark scheme: colours come
from the page's style (classes s0, s1, ... and `axis`). Methods differ in colour, marker and dashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from jigsync.score.intervals import Interval

WIDTH: Final = 480
HEIGHT: Final = 270
LEFT: Final = 44
RIGHT: Final = 12
TOP: Final = 28
BOTTOM: Final = 30
SPREAD: Final = 0.5
"""Share of a severity's room that its methods are spread over, so that their intervals do not cover each other."""
RADIUS: Final = 4.2
SERIES: Final = 8
"""Looks there are; more methods begin again."""
DASHES: Final = ("", "6 3", "2 3", "8 3 2 3", "12 3 2 3 2 3", "10 4", "4 2", "1 2")
_CORNERS: Final[dict[int, list[tuple[float, float]]]] = {
    1: [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    2: [(0, -1.3), (1.2, 0.9), (-1.2, 0.9)],
    3: [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
    4: [(0, 1.3), (1.2, -0.9), (-1.2, -0.9)],
    5: [(-1.3, 0), (-0.4, 0.4), (0, 1.3), (0.4, 0.4), (1.3, 0), (0.4, -0.4), (0, -1.3), (-0.4, -0.4)],
    6: [(-1.3, -0.5), (1.3, -0.5), (1.3, 0.5), (-1.3, 0.5)],
    7: [(-0.6, -1.4), (0.6, -1.4), (0.6, 1.4), (-0.6, 1.4)],
}
"""look -> corners of its marker, in radii; the others have a circle."""


@dataclass(frozen=True)
class Series:
    """One method: an interval a severity, None where it has none."""

    label: str
    values: Sequence[Interval | None]


def chart(title: str, names: Sequence[str], series: Sequence[Series]) -> str:
    """Per cent over severities.

    Args:
        title: above the chart.
        names: of the severities, from left to right.
        series: values in the same order.
    """
    room = (WIDTH - LEFT - RIGHT) / len(names)

    def x(place: int, number: int) -> float:
        off = (number - (len(series) - 1) / 2) / max(1, len(series)) * SPREAD
        return LEFT + room * (place + 0.5 + off)

    drawn = [_frame(title, names, room)]
    for number, one in enumerate(series):
        points = [(x(place, number), value) for place, value in enumerate(one.values) if value is not None]
        if not points:
            continue
        look = number % SERIES
        path = " ".join(f"{at:.1f},{_y(value.estimate):.1f}" for at, value in points)
        dash = f' stroke-dasharray="{DASHES[look]}"' if DASHES[look] else ""
        drawn.append(f'<g class="s{look}"><polyline class="line" points="{path}"{dash}/>')
        for at, value in points:
            told = f"{one.label}: {100 * value.estimate:.1f} % [{100 * value.low:.1f}, {100 * value.high:.1f}]"
            drawn.append(f"<g><title>{escape(told)}, {value.n} puzzles</title>{_whisker(at, value)}")
            drawn.append(f"{marker(look, at, _y(value.estimate))}</g>")
        drawn.append("</g>")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg>'


def key(labels: Sequence[str]) -> str:
    """The legend of all charts of a report, as HTML."""
    entries = []
    for number, label in enumerate(labels):
        look = number % SERIES
        dash = f' stroke-dasharray="{DASHES[look]}"' if DASHES[look] else ""
        line = f'<line class="line" x1="1" y1="8" x2="35" y2="8"{dash}/>{marker(look, 18, 8)}'
        swatch = f'<svg viewBox="0 0 36 16" class="swatch"><g class="s{look}">{line}</g></svg>'
        entries.append(f"<span>{swatch}{escape(label)}</span>")
    return f'<p class="key">{"".join(entries)}</p>'


def marker(look: int, x: float, y: float) -> str:
    """A shape of its own for each look; every second one is hollow."""
    r = RADIUS
    hollow = ' class="hollow"' if look % 2 else ""
    corners = _CORNERS.get(look)
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"{hollow}/>'
    points = " ".join(f"{x + r * dx:.1f},{y + r * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}"{hollow}/>'


def _frame(title: str, names: Sequence[str], room: float) -> str:
    """Title, grid lines at 0, 25, ... 100 per cent, and the names below."""
    parts = [f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<line class="axis" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{100 * share:.0f}</text>')
    for place, name in enumerate(names):
        at = LEFT + room * (place + 0.5)
        parts.append(f'<text class="tick" x="{at:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(name)}</text>')
    return "".join(parts)


def _whisker(x: float, value: Interval) -> str:
    low, high = _y(value.low), _y(value.high)
    ends = "".join(f"M{x - 3:.1f} {y:.1f}h6" for y in (low, high))
    return f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}{ends}"/>'


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
