"""RUN/report.html: the whole evaluation on one page that needs no other file and no network."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from PIL import Image

from jigsync.evaluate.chart import Series, chart, key
from jigsync.evaluate.gallery import Shown
from jigsync.evaluate.run import Evaluation
from jigsync.evaluate.style import STYLE
from jigsync.evaluate.table import ALL_KINDS, LEAD, Line
from jigsync.evaluate.words import MEANING, POSES_SHOWN, SLOTS_SHOWN, ends, figure, theirs_shown, weights_told
from jigsync.io.files import write_bytes
from jigsync.render.gallery import Panel, gallery
from jigsync.score.intervals import Interval

REPORT_FILE: Final = "report.html"
GALLERY_FILE: Final = "gallery.jpg"
CHARTED: Final = ("right", "contacts")
FEW: Final = 5
"""Of fewer puzzles no interval is shown: the bootstrap has nothing to draw from."""


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
        "Slots": _slots(found),
        "Metrics of others": _theirs(found),
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
    return (
        f"<h1>{_listed([method.label for method in found.methods])}</h1>"
        f'<p class="lead">{len(found.specs)} puzzles of {pictures} pictures in {settings} settings. {told}{lacking}</p>'
    )


def _charts(found: Evaluation) -> str:
    """Two charts a form and presentation; sets of fragments share theirs."""
    whole = [line for line in found.lines if line.kind == ALL_KINDS]
    parts = [f"{key([method.label for method in found.methods])}"]
    groups: dict[str, list[Line]] = {}
    for line in whole:
        setting = line.setting
        groups.setdefault(f"{setting.form} {setting.presentation}" if setting.severity else "fragments", []).append(
            line
        )
    for title, lines in groups.items():
        names = list(dict.fromkeys(line.setting.severity or line.setting.form for line in lines))
        drawn = (chart(f"{title}: {m}, per cent", names, _series(found, lines, names, m)) for m in CHARTED)
        figures = "".join(f"<figure>{one}</figure>" for one in drawn)
        parts.append(f'<div class="charts">{figures}</div>')
    return "\n".join(parts)


def _series(found: Evaluation, lines: Sequence[Line], names: Sequence[str], measure: str) -> list[Series]:
    values = {(line.setting.severity or line.setting.form, line.method): line.poses for line in lines}
    return [
        Series(method.label, [values.get((name, method), {}).get(measure) for name in names])
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
    rows = _Rows("n", *(_head_of(name) for name in POSES_SHOWN), "s")
    setting = None
    for line in _whole(found):
        if line.setting != setting and line.puzzles:
            setting = line.setting
            rows.add(setting.label, "<em>chance</em>", "<td></td>", *_guesses(line, POSES_SHOWN), "<td></td>")
        label = escape(line.method.label)
        if line.remarks:
            label += f" <small>({escape(line.remarks)})</small>"
        if not line.puzzles:
            rows.add(line.setting.label, label, "<td>0</td>", f"<td colspan={len(POSES_SHOWN) + 1}></td>")
            continue
        values = _figures(line.poses, POSES_SHOWN, line.puzzles)
        rows.add(line.setting.label, label, f"<td>{line.puzzles}</td>", *values, f"<td>{line.seconds:.2f}</td>")
    told = (
        "Per cent, with 95 % intervals, after the one rigid motion that makes most fragments right; angle in degrees,"
        " centre in pixels; seconds are the median a puzzle, measuring included. Chance is what a guess reaches."
    )
    return f"<p>{told}</p>{rows.html()}"


def _slots(found: Evaluation) -> str:
    """Where there is a grid: slots and turns, in the leading gauge."""
    lines = [line for line in _whole(found) if line.by_gauge]
    if not lines:
        return ""
    gauge = '<th title="puzzles answered in the best of the four global turns">gauge right</th>'
    rows = _Rows("n", *(_head_of(name) for name in SLOTS_SHOWN), gauge)
    setting = None
    for line in lines:
        if line.setting != setting and found.lead == "model":
            setting = line.setting
            rows.add(setting.label, "<em>chance</em>", "<td></td>", *_guesses(line, SLOTS_SHOWN), "<td></td>")
        values = _figures(line.by_gauge[found.lead], SLOTS_SHOWN, line.puzzles)
        right = "<td>-</td>" if line.gauge_right is None else _share("PA", line.gauge_right)
        rows.add(line.setting.label, escape(line.method.label), f"<td>{line.puzzles}</td>", *values, right)
    told = {
        "model": "as answered, which is what a user gets",
        "best4": "in the best of the four global turns, which only the truth can choose",
    }[found.lead]
    return f"<p>Puzzles of rows and columns, in the <em>{found.lead}</em> gauge: {told}.</p>{rows.html()}"


def _theirs(found: Evaluation) -> str:
    names = theirs_shown(_whole(found))
    if not names:
        return ""
    rows = _Rows("n", *(_head_of(name) for name in names))
    setting = None
    for line in (line for line in _whole(found) if line.puzzles):
        if line.setting != setting:
            setting = line.setting
            rows.add(setting.label, "<em>chance</em>", "<td></td>", *_guesses(line, names))
        values = _figures(line.poses, names, line.puzzles)
        rows.add(line.setting.label, escape(line.method.label), f"<td>{line.puzzles}</td>", *values)
    told = "As their authors compute them, with what is odd about them; docs/metrics.md says what that is."
    return f"<p>{told}</p>{rows.html()}"


def _whole(found: Evaluation) -> list[Line]:
    return [line for line in found.lines if line.kind == ALL_KINDS]


def _head_of(measure: str) -> str:
    return f'<th title="{escape(MEANING[measure])}">{escape(measure)}</th>'


def _guesses(line: Line, measures: Sequence[str]) -> list[str]:
    return [f"<td>{figure(m, line.chance[m])}</td>" if m in line.chance else "<td></td>" for m in measures]


def _figures(values: Mapping[str, Interval], measures: Sequence[str], puzzles: int) -> list[str]:
    """Cells; those of measures that leave puzzles out say of how many they are."""
    return [_share(m, values[m], values[m].n != puzzles) if m in values else "<td>-</td>" for m in measures]


def _kinds(found: Evaluation) -> str:
    kinds = sorted({line.kind for line in found.lines} - {ALL_KINDS})
    if not kinds:
        return ""
    values = {(line.setting, line.method, line.kind): line for line in found.lines}
    rows = _Rows(*kinds)
    for setting, method in dict.fromkeys((line.setting, line.method) for line in found.lines):
        of = [values.get((setting, method, kind)) for kind in kinds]
        shares = (_share(LEAD, line.poses[LEAD], True) if line and line.puzzles else "<td>-</td>" for line in of)
        rows.add(setting.label, escape(method.label), *shares)
    return f"<p>Fragments right in per cent, 95 % intervals, number of puzzles.</p>{rows.html()}"


def _pairs(found: Evaluation) -> str:
    if not found.pairs:
        return ""
    rows = _Rows("n", "difference", "better", "equal", "worse")
    for pair in found.pairs:
        interval, signs = pair.poses[LEAD]
        told = f"{100 * interval.estimate:+.1f}<small>{100 * interval.low:+.1f} to {100 * interval.high:+.1f}</small>"
        sure = interval.low > 0 or interval.high < 0
        rows.add(
            pair.setting.label,
            f"{escape(pair.first.label)} - {escape(pair.second.label)}",
            f"<td>{interval.n}</td><td>{f'<strong>{told}</strong>' if sure else told}</td>",
            *(f"<td>{count}</td>" for count in (signs.better, signs.equal, signs.worse)),
        )
    return (
        "<p>Differences in fragments right on the same puzzles, in points, with 95 % intervals; bold where the"
        f" interval leaves out 0. Better, equal and worse count puzzles.</p>{rows.html()}"
    )


def _gallery(found: Evaluation, shown: Sequence[Shown]) -> str:
    if not shown:
        return ""
    rows = "\n".join(_shown(one) for one in shown)
    return (
        "<p>Chosen by rank: of every setting the puzzles at evenly spaced ranks of"
        f" {escape(found.methods[0].label)}'s share of fragments right. A red line is a fragment in the wrong"
        f" place, a tape of amber and black stripes one in its place but turned wrong.</p>{rows}"
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
    lines = _whole(found)
    named = (*POSES_SHOWN, *(SLOTS_SHOWN if any(line.by_gauge for line in lines) else ()), *theirs_shown(lines))
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(MEANING[name])}</dd>" for name in named)
    versions = "".join(f"<li><code>{escape(line)}</code></li>" for line in _identities(found))
    return (
        f"<dl>{terms}<dt>gauge right</dt><dd>puzzles answered in the best of the four"
        " global turns; ties count as right</dd></dl>"
        "<p>Intervals are Wilson's for perfect, upright, PA, PA+rot and gauge right, and the percentile bootstrap over"
        " puzzles for the others; where all puzzles have the same value the bootstrap gives a point, and the interval"
        " of perfect tells what so many puzzles allow. Failed and crashed answers count as wrong, refused puzzles do"
        " not count. Where fewer puzzles than the row's have a case, n says how many. All figures,"
        " in both gauges, are in table.csv, pairs.csv and scores.csv beside this page.</p>"
        f"<ul>{versions}</ul>"
    )


def _identities(found: Evaluation) -> Iterator[str]:
    for identity in found.config.methods.values():
        libraries = " ".join(f"{name} {version}" for name, version in identity.get("libraries", {}).items() if version)
        yield (
            f"{identity.get('solver')} + {identity.get('measurer')}: jigsync {identity.get('version')},"
            f" code {str(identity.get('code'))[:12]}, {weights_told(identity)}, {libraries}"
        )
    yield f"seed {found.seed}"


def _share(measure: str, interval: Interval, count: bool = False) -> str:
    """A cell: the estimate, its interval below it, the number of puzzles when it is not that of the row."""
    low, high = ends(measure, interval)
    told = f"{low} to {high}" if interval.n >= FEW else ""
    size = f"n = {interval.n}" if count else ""
    below = ", ".join(part for part in (told, size) if part)
    return f"<td>{figure(measure, interval.estimate)}<small>{below}</small></td>"


def _listed(names: Sequence[str]) -> str:
    shown = [escape(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
