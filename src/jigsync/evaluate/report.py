"""RUN/report.html: the whole evaluation on one page that needs no other file and no network."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from PIL import Image

from jigsync.evaluate.chart import Series, chart, key
from jigsync.evaluate.gallery import Shown
from jigsync.evaluate.run import Evaluation
from jigsync.evaluate.style import STYLE
from jigsync.evaluate.table import ALL_KINDS, Line
from jigsync.io.files import write_bytes
from jigsync.render.gallery import Panel, gallery
from jigsync.score.intervals import Interval
from jigsync.values.layout import Grid

REPORT_FILE: Final = "report.html"
GALLERY_FILE: Final = "gallery.jpg"
CHARTED: Final = ("AA+rot", "PA+rot")
TABLED: Final = ("PA", "AA", "AA+rot", "PA+rot", "SRA", "rotation")
FEW: Final = 5
"""Of fewer puzzles no interval is shown: the bootstrap has nothing to draw from."""
MEANING: Final = {
    "PA": "puzzles with every fragment in its slot",
    "AA": "fragments in their slot",
    "AA+rot": "fragments in their slot and turned right",
    "PA+rot": "puzzles with every fragment in its slot and turned right",
    "SRA": "true neighbours still side by side, as they were",
    "rotation": "fragments turned right",
}


def write_report(found: Evaluation, shown: Sequence[Shown]) -> None:
    """Writes the page, and its gallery as one picture."""
    write_bytes(found.root / REPORT_FILE, report(found, shown).encode("utf-8"))
    rows = [(one.name, one.panels) for one in shown if one.panels]
    if rows:
        write_bytes(found.root / GALLERY_FILE, _jpeg(gallery(rows)))


def report(found: Evaluation, shown: Sequence[Shown]) -> str:
    """The page."""
    sections = {
        "At a glance": _charts(found),
        "Table": _table(found),
        "Gallery": _gallery(found, shown),
        "By kind of picture": _kinds(found),
        "Pairs": _pairs(found),
        "How it was measured": _how(found),
    }
    there = {title: text for title, text in sections.items() if text}
    links = " ".join(f'<a href="#{_anchor(title)}">{title}</a>' for title in there)
    body = "\n".join(f'<h2 id="{_anchor(title)}">{title}</h2>\n{text}' for title, text in there.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>JigSync evaluation</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>\n{_head(found)}\n<nav>{links}</nav>\n{body}\n</main></body></html>\n"
    )


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _head(found: Evaluation) -> str:
    settings = len({spec.setting for spec in found.specs})
    pictures = len({spec.picture for spec in found.specs})
    told = (
        "Rows and columns are told to the solvers."
        if found.config.known_grid
        else "The grid is unknown to the solvers."
    )
    lacking = f" <strong>{found.missing} predictions are missing.</strong>" if found.missing else ""
    gauge = {
        "model": "as answered, which is what a user gets",
        "best4": "in the best of the four global turns, which only the truth can choose",
    }[found.lead]
    return (
        f"<h1>{_listed([method.label for method in found.methods])}</h1>"
        f'<p class="lead">{len(found.specs)} puzzles of {pictures} pictures in {settings} settings. {told}'
        f" Scores in the <em>{found.lead}</em> gauge: {gauge}.{lacking}</p>"
    )


def _charts(found: Evaluation) -> str:
    """Two charts a grid."""
    whole = [line for line in found.lines if line.kind == ALL_KINDS]
    parts = [f"{key([method.label for method in found.methods])}"]
    for grid in dict.fromkeys(line.grid for line in whole):
        names = list(dict.fromkeys(line.severity for line in whole if line.grid == grid))
        drawn = (chart(f"{grid}: {m}, per cent", names, _series(found, whole, grid, names, m)) for m in CHARTED)
        figures = "".join(f"<figure>{one}</figure>" for one in drawn)
        parts.append(f'<div class="charts">{figures}</div>')
    return "\n".join(parts)


def _series(
    found: Evaluation, lines: Sequence[Line], grid: Grid, severities: Sequence[str], measure: str
) -> list[Series]:
    values = {(line.severity, line.method): line.by_gauge for line in lines if line.grid == grid}
    return [
        Series(
            method.label,
            [values.get((severity, method), {}).get(found.lead, {}).get(measure) for severity in severities],
        )
        for method in found.methods
    ]


class _Rows:
    """The rows of a table in which a setting is named where it begins."""

    def __init__(self, *heads: str) -> None:
        self._heads = "".join(head if head.startswith("<th") else f"<th>{escape(head)}</th>" for head in heads)
        self._rows: list[str] = []
        self._setting = ""

    def add(self, setting: str, label: str, *values: str) -> None:
        """A row; values are whole <td> elements."""
        first = setting != self._setting
        self._setting = setting
        named = f"<th>{escape(setting) if first else ''}</th><td>{label}</td>"
        self._rows.append(f"<tr{' class=first' if first else ''}>{named}{''.join(values)}</tr>")

    def html(self) -> str:
        """The table."""
        head = f"<thead><tr><th></th><th></th>{self._heads}</tr></thead>"
        return f'<div class="scroll"><table>{head}<tbody>{"".join(self._rows)}</tbody></table></div>'


def _table(found: Evaluation) -> str:
    heads = [f'<th title="{escape(MEANING[name])}">{name}</th>' for name in TABLED]
    gauge = '<th title="puzzles answered in the best of the four global turns">gauge right</th>'
    rows = _Rows("n", *heads, gauge, "s")
    for line in (line for line in found.lines if line.kind == ALL_KINDS):
        setting, label = f"{line.grid} {line.severity}", escape(line.method.label)
        if line.remarks:
            label += f" <small>({escape(line.remarks)})</small>"
        if not line.by_gauge:
            rows.add(setting, label, "<td>0</td>", f"<td colspan={len(TABLED) + 2}></td>")
            continue
        values = [_share(line.by_gauge[found.lead][name]) for name in TABLED]
        right = "<td>-</td>" if line.gauge_right is None else _share(line.gauge_right)
        rows.add(setting, label, f"<td>{line.puzzles}</td>", *values, right, f"<td>{line.seconds:.2f}</td>")
    told = "Per cent, with 95 % intervals; seconds are the median a puzzle, measuring included."
    return f"<p>{told}</p>{rows.html()}"


def _kinds(found: Evaluation) -> str:
    kinds = sorted({line.kind for line in found.lines} - {ALL_KINDS})
    if not kinds:
        return ""
    values = {(line.grid, line.severity, line.method, line.kind): line for line in found.lines}
    rows = _Rows(*kinds)
    for grid, severity, method in dict.fromkeys((line.grid, line.severity, line.method) for line in found.lines):
        of = [values.get((grid, severity, method, kind)) for kind in kinds]
        shares = (
            _share(line.by_gauge[found.lead]["AA+rot"], True) if line and line.by_gauge else "<td>-</td>" for line in of
        )
        rows.add(f"{grid} {severity}", escape(method.label), *shares)
    return f"<p>AA+rot in per cent, 95 % intervals, number of puzzles.</p>{rows.html()}"


def _pairs(found: Evaluation) -> str:
    if not found.pairs:
        return ""
    rows = _Rows("n", "difference", "better", "equal", "worse")
    for pair in found.pairs:
        interval, signs = pair.by_gauge[found.lead]["AA+rot"]
        told = f"{100 * interval.estimate:+.1f}<small>{100 * interval.low:+.1f} to {100 * interval.high:+.1f}</small>"
        sure = interval.low > 0 or interval.high < 0
        rows.add(
            f"{pair.grid} {pair.severity}",
            f"{escape(pair.first.label)} - {escape(pair.second.label)}",
            f"<td>{interval.n}</td><td>{f'<strong>{told}</strong>' if sure else told}</td>",
            *(f"<td>{count}</td>" for count in (signs.better, signs.equal, signs.worse)),
        )
    return (
        "<p>Differences in AA+rot on the same puzzles, in points, with 95 % intervals; bold where the"
        f" interval leaves out 0. Better, equal and worse count puzzles.</p>{rows.html()}"
    )


def _gallery(found: Evaluation, shown: Sequence[Shown]) -> str:
    if not shown:
        return ""
    rows = "\n".join(_shown(one) for one in shown)
    return (
        "<p>Chosen by rank: of every setting the puzzles at evenly spaced ranks of"
        f" {escape(found.methods[0].label)}'s AA+rot. A red line is a fragment in the wrong slot, a tape of amber and"
        f" black stripes one in its slot but turned wrong.</p>{rows}"
    )


def _shown(one: Shown) -> str:
    if one.missing:
        return f"<h3>{escape(one.name)}</h3><p>{escape(one.missing)}</p>"
    figures = "".join(_figure(panel) for panel in one.panels)
    return f'<h3>{escape(one.name)}</h3><div class="gallery">{figures}</div>'


def _figure(panel: Panel) -> str:
    data = base64.b64encode(_jpeg(panel.picture)).decode("ascii")
    size = f'width="{panel.picture.width}" height="{panel.picture.height}"'
    alt = escape(f"{panel.title}: {panel.caption}")
    return (
        f'<figure><img {size} loading="lazy" alt="{alt}" src="data:image/jpeg;base64,{data}">'
        f"<figcaption><b>{escape(panel.title)}</b><br>{escape(panel.caption)}</figcaption></figure>"
    )


def _jpeg(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=85, optimize=True)
    return buffer.getvalue()


def _how(found: Evaluation) -> str:
    terms = "".join(f"<dt>{name}</dt><dd>{escape(MEANING[name])}</dd>" for name in TABLED)
    versions = "".join(f"<li><code>{escape(line)}</code></li>" for line in _identities(found))
    return (
        f"<dl>{terms}<dt>gauge right</dt><dd>puzzles answered in the best of the four"
        " global turns; ties count as right</dd></dl>"
        "<p>Intervals are Wilson's for PA, PA+rot and gauge right, and the percentile bootstrap over puzzles for the"
        " others; where all puzzles have the same value the bootstrap gives a point, and PA's interval tells what so"
        " many puzzles allow. Failed and crashed answers count as wrong, refused puzzles do not count. All figures,"
        " in both gauges, are in table.csv, pairs.csv and scores.csv beside this page.</p>"
        f"<ul>{versions}</ul>"
    )


def _identities(found: Evaluation) -> Iterator[str]:
    for identity in found.config.methods.values():
        libraries = " ".join(f"{name} {version}" for name, version in identity.get("libraries", {}).items() if version)
        yield (
            f"{identity.get('solver')} + {identity.get('measurer')}: jigsync {identity.get('version')},"
            f" code {str(identity.get('code'))[:12]}, {libraries}"
        )
    yield f"seed {found.seed}"


def _share(interval: Interval, count: bool = False) -> str:
    """A cell: the estimate, its interval below it, the number of puzzles when it is not that of the row."""
    low, high = (f"{100 * value:.1f}".removesuffix(".0") for value in (interval.low, interval.high))
    told = f"{low} to {high}" if interval.n >= FEW else ""
    size = f"n = {interval.n}" if count else ""
    return f"<td>{100 * interval.estimate:.1f}<small>{', '.join(part for part in (told, size) if part)}</small></td>"


def _listed(names: Sequence[str]) -> str:
    shown = [escape(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
