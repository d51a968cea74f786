"""Studies that are a run of `jigsync eval`: predictions first, then scores, in a folder that goes again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jigsync import data
from jigsync.evaluate.cache import Config
from jigsync.evaluate.plan import from_pictures, methods_of
from jigsync.evaluate.predict import predict
from jigsync.evaluate.progress import Progress
from jigsync.evaluate.run import Evaluation, begin, evaluate
from jigsync.evaluate.spec import Spec
from jigsync.evaluate.table import ALL_KINDS, Line
from jigsync.evaluate.wanted import Wanted
from jigsync.studies.figure import figure, line_style


def pictures_folder(images: Path | None) -> Path:
    """A folder of pictures, or the bundled ones."""
    return images if images is not None else data.picture(data.names()[0]).parent


def run_wanted(
    name: str,
    wanted: Wanted,
    solvers: Sequence[str],
    measurers: Sequence[str],
    workers: int,
    progress: Progress,
    images: Path | None,
) -> Evaluation:
    """Puzzles that are cut or torn from pictures; every solver with every measurer, none: what fits the fragments."""
    specs, _ = from_pictures(pictures_folder(images), wanted, workers, progress)
    return run_specs(name, specs, solvers, measurers, wanted.seed, workers, progress)


def run_specs(
    name: str,
    specs: Sequence[Spec],
    solvers: Sequence[str],
    measurers: Sequence[str],
    seed: int,
    workers: int,
    progress: Progress,
    theirs: bool = False,
) -> Evaluation:
    """Any puzzles; `theirs`: scored by the metrics of others too."""
    config = Config.of(methods_of(solvers, measurers))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        begin(root, specs, config, seed)
        predict(specs, config, root, workers, lambda done, total, _: progress(name, done, total))
        return evaluate(root, specs, config, seed, "model", theirs=theirs)


def whole(found: Evaluation) -> list[Line]:
    """The lines over all kinds of pictures that have puzzles."""
    return [line for line in found.lines if line.kind == ALL_KINDS and line.puzzles]


def line_row(line: Line) -> dict[str, Any]:
    """A row of the CSV: every measure of poses with its interval, and chance."""
    setting = line.setting
    head = {"form": setting.form, "severity": setting.severity, "presentation": setting.presentation}
    row: dict[str, Any] = {**head, "method": line.method.label, "puzzles": line.puzzles}
    for measure, interval in line.poses.items():
        row |= {measure: interval.estimate, f"{measure}_low": interval.low, f"{measure}_high": interval.high}
    return {**row, "chance_right": line.chance["right"], "seconds": line.seconds, "failed": line.failed + line.crashed}


def told(line: Line) -> str:
    """What stands beside the share of fragments right."""
    named = [
        f"{name} {100 * line.poses[name].estimate:.0f}"
        for name in ("perfect", "contacts", "claims", "upright")
        if name in line.poses
    ]
    return f"{', '.join(named)} %; chance {100 * line.chance['right']:.0f}; {line.seconds:.1f} s"


def by_method(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    """What `plot_lines` takes for a panel."""
    labels = dict.fromkeys(line.method.label for line in lines)
    return [(label, [line for line in lines if line.method.label == label]) for label in labels]


def plot_lines(
    groups: Mapping[str, Sequence[tuple[str, Sequence[Line]]]], label: str, path: Path, measure: str = "right"
) -> None:
    """A panel a group, a line of points a method: per cent over settings, with intervals."""
    with figure(path, 1, len(groups), (4.6 * len(groups), 3.6), sharey=True, squeeze=False) as (drawn, axes):
        for axis, (title, series) in zip(axes[0], groups.items(), strict=True):
            names = list(dict.fromkeys(_place(line, label) for _, lines in series for line in lines))
            for k, (method, lines) in enumerate(series):
                at = [names.index(_place(line, label)) + 0.08 * (k - (len(series) - 1) / 2) for line in lines]
                values = [line.poses[measure] for line in lines]
                ends = [
                    [100 * abs(value.estimate - getattr(value, end)) for value in values] for end in ("low", "high")
                ]
                shares = [100 * value.estimate for value in values]
                axis.errorbar(at, shares, ends, capsize=2, label=method, **{**line_style(k), "lw": 1.1})
            axis.set(title=title, ylim=(-2, 102))
            axis.set_xticks(range(len(names)), names, fontsize=9)
        axes[0][0].set(ylabel=f"{measure}, per cent")
        drawn.legend(*_handles(axes[0]), loc="outside lower center", ncols=4)


def _place(line: Line, label: str) -> str:
    return str(getattr(line.setting, label))


def _handles(axes: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Of all panels, each method once."""
    known = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    return list(known.values()), list(known)
