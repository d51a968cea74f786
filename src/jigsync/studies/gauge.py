"""Study `gauge`: no residual sees the global turn.

Theorem 1: for any R in O(2), measurements R d_e with weights R W_e R^T have the minimum of the original ones, edge by
edge, and the minimizer R x*. Checked for the four turns and for random angles and reflections, on synthetic graphs and
on graphs measured on real pictures, with isotropic, anisotropic and truncated least squares; and on pair hypotheses,
planted and measured on torn pictures (`gauge_poses`), where all poses are fitted together as well. The four residuals
then "choose" a gauge by round-off: how often they choose the right one is counted, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.evaluate.progress import Progress
from jigsync.studies.figure import COLOURS, MARKERS, figure
from jigsync.studies.gauge_poses import PoseCase, planted_cases, torn_cases
from jigsync.studies.result import Compared, StudyResult
from jigsync.studies.synthetic import Floats, random_solved
from jigsync.sync.decode import DecodeOptions
from jigsync.sync.graph import Graph, Ints
from jigsync.sync.pipeline import synchronize
from jigsync.sync.translation import L_PERP, L_R, Displacements, Fit, edge_weights, fit, fit_truncated
from jigsync.values import angles, z4
from jigsync.values import vocabulary as v
from jigsync.values.layout import Grid
from jigsync.values.measurements import Measurements

SOLVES: Final = ("isotropic", "anisotropic", "truncated")
GRAPHS: Final = ("direct neighbours", "all pairs", "random third", "two parts")
SIZES: Final = (3, 5, 8)
SEEDS: Final = 5
FULL_SEEDS: Final = 40
ORTHOGONAL: Final = 6
"""Random angles tried beside the four turns, and as many reflections."""
MIRROR: Final = np.diag([1.0, -1.0])


@dataclass(frozen=True, eq=False)
class Case:
    """A graph with displacements in some frame, which of them are exact, and the turn that would set them upright."""

    source: str
    graph_name: str
    n: int
    graph: Graph
    xy: Floats
    exact: NDArray[np.bool_]
    true_turn: int | None
    solves: tuple[str, ...] = SOLVES
    unit: float = 1.0

    @cached_property
    def components(self) -> Ints:
        """(N,)"""
        return self.graph.components()

    def reflects(self, solve: str) -> bool:
        """Always."""
        return True

    def fitted(self, solve: str, turn: Floats) -> Fit:
        """The fit of R d with R W R^T."""
        l_r = L_PERP if solve == "isotropic" else L_R
        weight = edge_weights(self.xy, self.exact, self.graph.weight, L_PERP, l_r)
        solver = fit_truncated if solve == "truncated" else fit
        return solver(self.graph, Displacements(self.xy, weight).turned(turn), self.components)


def synthetic_case(graph_name: str, n: int, rng: np.random.Generator) -> Case:
    """A layout's displacements, a third of them corrupted, turned by an unknown number of turns."""
    solved = random_solved(Grid(n, n + 1), rng)
    i, j = np.triu_indices(solved.n, 1)
    step = np.abs(solved.cells[j] - solved.cells[i])
    keep = {
        "direct neighbours": step.sum(axis=1) == 1,
        "all pairs": step.max(axis=1) >= 1,
        "random third": rng.random(len(i)) < 1 / 3,
        "two parts": (solved.cells[i, 1] < 2) == (solved.cells[j, 1] < 2),
    }[graph_name]
    i, j = i[keep], j[keep]
    d = solved.cells[j] - solved.cells[i]
    bucket = v.bucket_of_offset(d[:, 0], d[:, 1])
    wrong = rng.random(len(i)) < 1 / 3
    bucket[wrong] = rng.integers(0, v.NEAR_BUCKETS, int(wrong.sum()))
    true_turn = int(rng.integers(0, z4.ORDER))
    xy = z4.act(z4.inverse(true_turn), v.nominal_xy(solved.grid)[bucket]) + rng.normal(0, 0.1, (len(i), 2))
    graph = Graph(solved.n, i, j, rng.uniform(0.5, 1.5, len(i)))
    return Case("synthetic", graph_name, n, graph, xy, v.TIER[bucket] == v.NEAR, true_turn)


def real_case(name: str, measurements: Measurements, grid: Grid) -> Case:
    """The graph that the pipeline builds from real measurements; its frame is as good as any."""
    found = synchronize(measurements, grid, DecodeOptions(rho="joint", symmetrized=True, confidence_weights=True))
    edges = found.edges
    frame = v.nominal_xy(grid)[edges.bucket]
    turned = np.stack([z4.act(k, frame) for k in range(z4.ORDER)])
    xy = turned[found.turns[edges.i], np.arange(len(frame))]
    return Case(
        "real",
        name,
        grid.rows,
        edges.graph(measurements.n, edges.place_weight),
        xy,
        v.TIER[edges.bucket] == v.NEAR,
        None,
    )


def real_measurements(seed: int) -> Iterator[tuple[str, Measurements, Grid]]:
    """Bundled pictures, cut at medium damage and measured by the default measurer."""
    from jigsync import data
    from jigsync.api import cut
    from jigsync.measure import registry

    measurer = registry.get(registry.DEFAULT)
    for name in data.names():
        for n in (3, 5):
            yield name, measurer.measure(cut(data.picture(name), n, "medium", seed=seed)), Grid(n, n)


def random_orthogonal(rng: np.random.Generator) -> tuple[list[Floats], list[Floats]]:
    """ORTHOGONAL rotations by random angles, and the same after a reflection."""
    rotations = list(angles.matrix(rng.uniform(-np.pi, np.pi, ORTHOGONAL)))
    return rotations, [rotation @ MIRROR for rotation in rotations]


def check(case: Case | PoseCase, solve: str, rng: np.random.Generator) -> dict[str, Any]:
    """One row: how equal the residuals are, in all, edge by edge, and whether the minimizer turns along."""
    rotations, reflections = random_orthogonal(rng)
    maps = [z4.matrix(g).astype(np.float64) for g in range(z4.ORDER)] + rotations
    turnable = len(maps)
    maps += reflections if case.reflects(solve) else []
    start = case.fitted(solve, np.eye(2))
    fits = [case.fitted(solve, r) for r in maps]
    residuals = np.array([found.residual for found in fits])
    scale = max(start.residual, np.finfo(float).tiny)
    # A truncated edge's residual may be far above the sum of those that are kept.
    own = np.maximum(start.residuals, scale)
    per_edge = max(float(np.max(np.abs(found.residuals - start.residuals) / own)) for found in fits)
    along = max(float(np.max(np.abs(found.xy - start.xy @ r.T))) for found, r in zip(fits, maps, strict=True))
    return {
        "source": case.source,
        "graph": case.graph_name,
        "n": case.n,
        "fragments": case.graph.n,
        "edges": len(case.graph),
        "solve": solve,
        **{f"residual_{g}": float(residuals[g]) for g in range(z4.ORDER)},
        "digits_turns": _digits(float(np.ptp(residuals[: z4.ORDER])) / scale),
        "digits_angles": _digits(float(np.ptp(residuals[:turnable])) / scale),
        "digits_o2": _digits(float(np.ptp(residuals)) / scale) if case.reflects(solve) else None,
        "digits_edgewise": _digits(per_edge),
        "minimizer_off": along / case.unit,
        "same_edges_kept": all(np.array_equal(found.kept, start.kept) for found in fits),
        "argmin": int(np.argmin(residuals[: z4.ORDER])),
        "true_turn": case.true_turn,
    }


def _digits(relative_difference: float) -> float:
    """Number of equal digits; 16 when there is no difference at all."""
    return 16.0 if relative_difference <= 1e-16 else float(-np.log10(relative_difference))


def run(full: bool, workers: int, seed: int, progress: Progress, measurer: str | None = None) -> StudyResult:
    """Synthetic graphs, graphs of the bundled pictures, planted poses, hypotheses about the bundled pictures torn.

    Quick enough for one process. `measurer` names who measures what is torn.
    """
    seeds = FULL_SEEDS if full else SEEDS
    torn = list(torn_cases(measurer, seed))  # first: a measurer that does not fit is told at once
    return run_cases(seeds, SIZES, seed, progress, real_measurements(seed), torn)


def run_cases(
    seeds: int,
    sizes: tuple[int, ...],
    seed: int,
    progress: Progress,
    real: Iterable[tuple[str, Measurements, Grid]],
    torn: Iterable[PoseCase] = (),
) -> StudyResult:
    """The study on chosen sizes, with any real measurements: (name, measurements, grid), and any pose graphs."""
    rows = []
    total = len(GRAPHS) * len(sizes)
    for k, (name, n) in enumerate((name, n) for name in GRAPHS for n in sizes):
        progress("gauge, synthetic graphs", k, total)
        for s in range(seeds):
            rng = np.random.default_rng([seed, k, s])
            case = synthetic_case(name, n, rng)
            rows += [check(case, solve, rng) for solve in SOLVES]
    progress("gauge, synthetic graphs", total, total)
    cases: list[tuple[str, Iterable[Case | PoseCase]]] = [
        ("real graphs", (real_case(name, measurements, grid) for name, measurements, grid in real)),
        ("planted poses", planted_cases(sizes, seeds, seed)),
        ("torn pictures", torn),
    ]
    for what, every in cases:
        for k, one in enumerate(every):
            progress(f"gauge, {what}", k, k + 1)
            rows += [check(one, solve, np.random.default_rng([seed, k])) for solve in one.solves]
    return StudyResult(
        name="gauge",
        title="four gauges, one residual",
        rows=rows,
        compared=_compare(rows),
        verdict=_verdict(rows),
        settings={"seeds": seeds, "seed": seed, "sizes": list(sizes), "orthogonal": ORTHOGONAL},
        plot=partial(_plot, rows),
    )


def _worst(rows: list[dict[str, Any]], column: str, **where: str) -> float:
    chosen = (row for row in rows if all(row[key] == value for key, value in where.items()))
    return float(min(row[column] for row in chosen if row[column] is not None))


def _groups(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Every source with every solve it was fitted by."""
    return list(dict.fromkeys((row["source"], row["solve"]) for row in rows))


def _named(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """How often the least residual names the true gauge, and out of how many."""
    known = [row for row in rows if row["true_turn"] is not None]
    return sum(row["argmin"] == row["true_turn"] for row in known), len(known)


def _compare(rows: list[dict[str, Any]]) -> list[Compared]:
    compared = []
    for source, solve in _groups(rows):
        digits = _worst(rows, "digits_turns", source=source, solve=solve)
        said = "agrees" if digits >= 10 else "fails"
        compared.append(
            Compared(f"{source}, {solve}: equal digits of the four residuals", round(digits, 1), "10-12", said)
        )
    for what, column in (
        ("any angle", "digits_angles"),
        ("any R in O(2)", "digits_o2"),
        ("edge by edge", "digits_edgewise"),
    ):
        digits = _worst(rows, column)
        compared.append(
            Compared(
                f"{what}: equal digits, worst case", round(digits, 1), "equal", "agrees" if digits >= 10 else "fails"
            )
        )
    right, known = _named(rows)
    compared.append(
        Compared(
            "true gauge named by the least residual", right / known, "round-off", f"{right} of {known}; chance is 1/4"
        )
    )
    return compared


def _verdict(rows: list[dict[str, Any]]) -> str:
    digits = min(_worst(rows, column) for column in ("digits_angles", "digits_o2", "digits_edgewise"))
    kept = all(row["same_edges_kept"] for row in rows)
    off = max(row["minimizer_off"] for row in rows)
    right, known = _named(rows)
    truncation = "drops the same edges in every gauge" if kept else "dropped different edges in some gauge"
    return (
        f"In all {len(rows)} cases the residuals agree to at least {digits:.1f} digits, for the four turns and for"
        f" random angles and reflections, in all and edge by edge; the minimizer turns along to within {off:.1e}"
        f" cells; truncation {truncation}. Choosing by residual names the true gauge in {right} of {known} cases:"
        " round-off decides."
    )


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    with figure(path, 1, 2, (13.5, 3.9), width_ratios=(4, 1)) as (_, (left, right)):
        groups = _groups(rows)
        columns = {
            "digits_turns": "four turns",
            "digits_angles": "any angle",
            "digits_o2": "any R in O(2)",
            "digits_edgewise": "edge by edge",
        }
        spread = np.random.default_rng(0)
        for k, (column, name) in enumerate(columns.items()):
            x, y = [], []
            for at, (source, solve) in enumerate(groups):
                own = [row[column] for row in rows if (row["source"], row["solve"]) == (source, solve)]
                values = [value for value in own if value is not None]
                x += list(at + 0.22 * (k - 1.5) + spread.uniform(-0.08, 0.08, len(values)))
                y += values
            left.plot(
                x, y, color=COLOURS[k], marker=MARKERS[k], linestyle="none", markersize=3.5, alpha=0.6, label=name
            )
        left.axhline(12, color="#555555", linestyle=":", lw=1.2)
        left.set(title="Equal digits of the residuals", ylim=(8, 16.5), ylabel="digits", xticks=range(len(groups)))
        left.set_xticklabels([f"{source}\n{solve}" for source, solve in groups], fontsize=7)
        left.legend(loc="lower left", ncols=4)
        known = [row for row in rows if row["true_turn"] is not None]
        offset = [(row["argmin"] - row["true_turn"]) % z4.ORDER for row in known]
        right.bar(
            range(z4.ORDER),
            np.bincount(offset, minlength=z4.ORDER) / max(len(known), 1),
            color=["#0072B2"] + ["#bbbbbb"] * 3,
        )
        right.axhline(0.25, color="#555555", linestyle=":", lw=1.2)
        right.text(3.45, 0.255, "chance", ha="right", va="bottom", fontsize=8, color="#555555")
        right.set(title="Gauge of the least residual", ylabel="share of cases", xticks=range(z4.ORDER))
        right.set_xticklabels(["true", "+90°", "+180°", "+270°"])
