"""Study `orbit`: a cell's four positions under global turns average to the centre, and where a head collapses to it.

Proposition 1: (1/4) sum_g turn_g(cell) = (1/2, 1/2) in coordinates that put the grid's centre at (1/2, 1/2):

    corners   r / (n - 1)        centres   (r + 1/2) / n        origin   r / n, which does not, and where it fails

At any angle the orbit is a circle about the grid's centre, and its mean the same point.

Corollary 2: a head that cannot tell the gauge does best with the centre for every fragment; its squared error,
summed over both axes, is then the variance of a cell's coordinates,

    corners   (n + 1) / (6 (n - 1))        centres   (n^2 - 1) / (6 n^2)

1/3 at n = 3 for corners. The paper derives that 1/3 from a variance 1/6 of U[0, 1], which is 1/12 (erratum 2).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jigsync.evaluate.progress import Progress
from jigsync.studies.figure import figure, line_style
from jigsync.studies.result import Compared, StudyResult
from jigsync.values import angles, z4

SIZES: Final = (2, 3, 4, 5, 6, 8, 10)
COORDINATES: Final = ("corners", "centres", "origin")
SAMPLES: Final = 200_000
FULL_SAMPLES: Final = 4_000_000
ANGLES: Final = 360
"""Of a circle."""
PAPER_PLATEAU: Final = 1 / 3
PAPER_OBSERVED: Final = 0.3335


def normalized(cells: NDArray[Any], shape: tuple[int, int], coordinates: str) -> NDArray[np.float64]:
    """Cells (row, col) of a grid in [0, 1]^2. Shapes: (..., 2) -> (..., 2)."""
    size = np.array(shape, dtype=np.float64)
    if coordinates == "corners":
        return np.asarray(cells / (size - 1))
    return np.asarray((cells + (0.5 if coordinates == "centres" else 0.0)) / size)


def orbits(n: int, coordinates: str) -> NDArray[np.float64]:
    """(4, n * n, 2): every cell's normalized position in each gauge."""
    cells = np.stack(np.divmod(np.arange(n * n), n), axis=-1)
    turned = [z4.turn_cells(cells, (n, n), g) for g in range(z4.ORDER)]
    return np.stack([normalized(cell, (n, n), coordinates) for cell in turned])


def circles(n: int, coordinates: str) -> NDArray[np.float64]:
    """(ANGLES, n * n, 2): every cell's normalized position after a turn of the grid about its centre by any angle."""
    xy = orbits(n, coordinates)[0][:, ::-1]
    middle = normalized(np.full(2, (n - 1) / 2), (n, n), coordinates)
    phi = np.arange(ANGLES)[:, None] * angles.FULL / ANGLES
    return np.asarray(middle + angles.act(phi, xy - middle)[..., ::-1])


def plateau(n: int, coordinates: str) -> float:
    """Squared error, both axes, of predicting (1/2, 1/2): the closed forms above; with r / n the offset adds."""
    if coordinates == "corners":
        return (n + 1) / (6 * (n - 1))
    variance = (n * n - 1) / (6 * n * n)
    return variance if coordinates == "centres" else variance + 2 * (1 / (2 * n)) ** 2


def collapse(n: int, coordinates: str, samples: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """A head that knows every fragment's true cell but not the gauge, fitted and then tested on fresh draws.

    It holds one prediction a cell, the mean of the targets it saw. Returns its test error, the standard error of that,
    and the largest distance of a prediction from the centre of its targets' box.
    """
    table = orbits(n, coordinates)

    def draw() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        cell, gauge = rng.integers(0, n * n, samples), rng.integers(0, z4.ORDER, samples)
        return cell, table[gauge, cell]

    cell, target = draw()
    count = np.bincount(cell, minlength=n * n)
    head = np.stack([np.bincount(cell, weights=target[:, a], minlength=n * n) / count for a in (0, 1)], axis=1)
    cell, target = draw()
    error = np.sum((head[cell] - target) ** 2, axis=1)
    away = float(np.max(np.linalg.norm(head - table.mean(axis=(0, 1)), axis=1)))
    return float(error.mean()), float(error.std() / np.sqrt(samples)), away


def run(full: bool, workers: int, seed: int, progress: Progress) -> StudyResult:
    """All cells of all grids exactly, and the collapse by simulation."""
    samples = FULL_SAMPLES if full else SAMPLES
    rows: list[dict[str, Any]] = []
    for k, n in enumerate(SIZES):
        progress("orbit", k, len(SIZES))
        for coordinates in COORDINATES:
            rng = np.random.default_rng([seed, n, COORDINATES.index(coordinates)])
            centroid = orbits(n, coordinates).mean(axis=0)
            simulated, error, away = collapse(n, coordinates, samples, rng)
            rows.append(
                {
                    "n": n,
                    "coordinates": coordinates,
                    "centroid_off_half": float(np.max(np.abs(centroid - 0.5))),
                    "circle_off_half": float(np.max(np.abs(circles(n, coordinates).mean(axis=0) - 0.5))),
                    "plateau_formula": plateau(n, coordinates),
                    "plateau_exact": float(np.mean(np.sum((orbits(n, coordinates) - 0.5) ** 2, axis=-1))),
                    "plateau_simulated": simulated,
                    "standard_error": error,
                    "head_off_centre": away,
                }
            )
    progress("orbit", len(SIZES), len(SIZES))
    uniform = np.random.default_rng(seed).random(samples)
    variance = float(np.mean((uniform - 0.5) ** 2))
    return StudyResult(
        name="orbit",
        title="the orbit of a cell averages to the centre; the plateau of a collapsed head",
        rows=rows,
        compared=_compare(rows, variance),
        verdict=_verdict(rows, variance),
        settings={"samples": samples, "seed": seed, "sizes": list(SIZES)},
        plot=partial(_plot, rows),
    )


def _at(rows: list[dict[str, Any]], coordinates: str, n: int | None = None) -> list[dict[str, Any]]:
    return [row for row in rows if row["coordinates"] == coordinates and n in (None, row["n"])]


def _compare(rows: list[dict[str, Any]], variance: float) -> list[Compared]:
    worst = {c: max(row["centroid_off_half"] for row in _at(rows, c)) for c in COORDINATES}
    circle = max(row["circle_off_half"] for c in ("corners", "centres") for row in _at(rows, c))
    three, five, ten = (_at(rows, "corners", n)[0] for n in (3, 5, 10))
    return [
        Compared("centroid off (1/2, 1/2), r/(n-1), worst cell", worst["corners"], 0.0, _holds(worst["corners"])),
        Compared("centroid off (1/2, 1/2), (r+1/2)/n, worst cell", worst["centres"], 0.0, _holds(worst["centres"])),
        Compared("centroid off (1/2, 1/2), r/n, worst cell", worst["origin"], 0.0, "fails: off by 1/(2n) (erratum 3)"),
        Compared("centroid of a circle off (1/2, 1/2), any angle, worst cell", circle, "the centre", _holds(circle)),
        Compared("plateau at n = 3, simulated", three["plateau_simulated"], PAPER_OBSERVED, _close(three, 3)),
        Compared("plateau at n = 3, formula", three["plateau_formula"], PAPER_PLATEAU, "agrees"),
        Compared("plateau at n = 5, simulated", five["plateau_simulated"], PAPER_PLATEAU, "1/4, not 1/3: depends on n"),
        Compared("plateau at n = 10, simulated", ten["plateau_simulated"], PAPER_PLATEAU, "11/54, not 1/3"),
        Compared("variance of U[0, 1]", variance, 1 / 6, "1/12, not 1/6 (erratum 2)"),
    ]


def _holds(off: float) -> str:
    return "holds to round-off" if off < 1e-12 else "fails"


def _close(row: dict[str, Any], sigmas: float) -> str:
    gap = abs(row["plateau_simulated"] - row["plateau_formula"])
    return "agrees" if gap <= sigmas * row["standard_error"] + 1e-4 else f"off the formula by {gap:.2g}"


def _verdict(rows: list[dict[str, Any]], variance: float) -> str:
    agree = all(_close(row, 4) == "agrees" for c in ("corners", "centres") for row in _at(rows, c))
    return (
        "Proposition 1 holds for every cell of every grid where the grid's centre is (1/2, 1/2), and fails in r/n by"
        " 1/(2n); at any angle the orbit is a circle about that point. The closed forms"
        f" {'match' if agree else 'do not match'} the simulated collapse: a head that knows"
        " the cell but not the gauge ends at the centre for every fragment. The paper's 1/3 is right for 3 x 3 with"
        f" coordinates r/(n-1) only; its derivation is not, since the variance of U[0, 1] is {variance:.4f}. In general"
        " the plateau is (n+1)/(6(n-1)): 1/4 at n = 5 and 1/6 for large n, or (n^2-1)/(6n^2) with (r+1/2)/n."
    )


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    with figure(path, 1, 2, (9.5, 3.9)) as (_, (left, right)):
        dense = np.arange(2, 11)
        names = {"corners": "r/(n-1)", "centres": "(r+1/2)/n", "origin": "r/n"}
        for k, coordinates in enumerate(("corners", "centres")):
            style = line_style(k)
            formula = [plateau(int(n), coordinates) for n in dense]
            left.plot(
                dense,
                formula,
                color=style["color"],
                linestyle=style["linestyle"],
                label=f"formula, {names[coordinates]}",
            )
            points = _at(rows, coordinates)
            left.errorbar(
                [row["n"] for row in points],
                [row["plateau_simulated"] for row in points],
                yerr=[2 * row["standard_error"] for row in points],
                color=style["color"],
                marker=style["marker"],
                linestyle="none",
                label=f"simulated, {names[coordinates]}",
            )
        left.axhline(PAPER_PLATEAU, color="#555555", linestyle=":", label="paper: 1/3 at any n")
        left.axhline(1 / 6, color="#999999", lw=1)
        left.text(1.7, 1 / 6 + 0.006, "1/6, the limit", ha="left", va="bottom", fontsize=8, color="#666666")
        left.set(
            title="Plateau of a collapsed head",
            xlabel="grid size n",
            ylabel="squared error, both axes",
            ylim=(0.1, 0.55),
        )
        left.legend()
        for k, coordinates in enumerate(COORDINATES):
            points = _at(rows, coordinates)
            off = [max(row["centroid_off_half"], 1e-17) for row in points]
            right.semilogy([row["n"] for row in points], off, label=names[coordinates], **line_style(k))
        right.set(
            title="Orbit centroid off (1/2, 1/2), worst cell", xlabel="grid size n", ylabel="distance", ylim=(3e-18, 3)
        )
        right.legend(loc="center right")
