"""95 % intervals: every figure JigSync reports carries its number of puzzles and one of these."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jigsync.values.errors import bad_value

Z95: Final = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""

_NUMBERS_AT_ONCE: Final = 1 << 22  # bounds the bootstrap's memory at 32 MB


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval and the number of puzzles behind it."""

    estimate: float
    low: float
    high: float
    n: int

    def to_json(self) -> dict[str, float | int]:
        """Plain JSON values."""
        return asdict(self)

    def percent(self) -> str:
        """As people read it: '63.8 % [60.1, 67.2]'."""
        return f"{100 * self.estimate:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def wilson(successes: int, n: int) -> Interval:
    """Wilson's score interval of a share, for yes/no measures such as PA.

        (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n),   p = successes / n, z = 1.96

    Unlike the bootstrap it does not shrink to a point when all puzzles succeed, or none.
    """
    if n < 1:
        raise bad_value("n", "an interval", "at least 1 puzzle", n)
    if not 0 <= successes <= n:
        raise bad_value("successes", "an interval", f"between 0 and {n}", successes)
    p, z2n = successes / n, Z95**2 / n
    centre = (p + z2n / 2) / (1 + z2n)
    half = Z95 * float(np.sqrt(p * (1 - p) / n + z2n / (4 * n))) / (1 + z2n)
    # At the ends the formula gives exactly 0 and 1; rounding must not put the estimate outside its interval.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(p, low, high, n)


def bootstrap_mean(values: ArrayLike, rng: np.random.Generator, resamples: int = 2000) -> Interval:
    """Percentile bootstrap of a mean over puzzles, for shares within a puzzle such as AA and SRA.

    A resample of n values with replacement is the same thing as a multinomial draw over the distinct values, which
    are few (AA of a 3 x 3 puzzle has ten), so 100 000 puzzles cost no more than a hundred.
    """
    sample = _sample("values", values)
    distinct, counts = np.unique(sample, return_counts=True)
    n = sample.size
    means = np.empty(resamples)
    step = max(1, _NUMBERS_AT_ONCE // distinct.size)
    for first in range(0, resamples, step):
        block = means[first : first + step]
        block[:] = rng.multinomial(n, counts / n, size=block.size) @ distinct / n
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(sample.mean()), float(low), float(high), n)


def bootstrap_median(values: ArrayLike, rng: np.random.Generator, resamples: int = 2000) -> Interval:
    """Percentile bootstrap of a median over puzzles, for errors that are huge where an answer is wrong."""
    sample = _sample("values", values)
    medians = np.empty(resamples)
    step = max(1, _NUMBERS_AT_ONCE // sample.size)
    for first in range(0, resamples, step):
        block = medians[first : first + step]
        block[:] = np.median(rng.choice(sample, (block.size, sample.size)), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return Interval(float(np.median(sample)), float(low), float(high), sample.size)


def paired_difference(a: ArrayLike, b: ArrayLike, rng: np.random.Generator, resamples: int = 2000) -> Interval:
    """Mean of a - b over the *same* puzzles with its bootstrap interval: how two solvers are compared.

    Pairing takes the difficulty of the puzzles out: an interval that excludes 0 is a difference at the 95 % level.
    """
    first, second = _sample("a", a), _sample("b", b)
    if first.shape != second.shape:
        raise bad_value("b", "a paired difference", f"of {first.size} puzzles like 'a'", second.size)
    return bootstrap_mean(first - second, rng, resamples)


def _sample(name: str, values: ArrayLike) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size == 0 or not np.isfinite(sample).all():
        raise bad_value(name, "an interval", "a non-empty list of finite numbers", f"shape {sample.shape}")
    return sample
