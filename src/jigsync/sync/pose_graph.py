"""A pose graph: all poses at once from pair hypotheses with their full information, by robust Gauss-Newton.

    r_e = (R(-theta_i)(t_j - t_i) - xy_e,  theta_j - theta_i - theta_e)                 the error that hypothesis e made
    minimise  sum_e w_e rho(r_e^T L_e r_e)  +  sum_i p_i^T P_i p_i,     p_i = (t_i - m_i, theta_i - phi_i)
    rho(s) = c s / (c + s),  rho'(s) = (c / (c + s))^2,  c = width^2                    Geman and McClure

The kernel is graduated: it starts wide, where everything counts, and narrows to `width` standard deviations. Steps are
damped (Levenberg, Marquardt) alike in x and y, so that the answer turns along with the frame of the start: every r_e
is the same in all frames, whatever the kernel, which is the gauge theorem for poses.

Without a prior a component is free to move as a whole: its first fragment stays where it starts. `covariances` names no
fragment as fixed: they are what is left when each component's rigid motion is taken out, as its places show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_matrix, diags_array
from scipy.sparse.linalg import splu

from jigsync.sync.graph import Floats, Graph, Ints
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses

DENSE_LIMIT: Final = 1300
"""Unknowns, 3 per fragment, up to which the normal equations may be factorised densely..."""

SPARSE: Final = 4.0
"""...where there are more hypotheses than so many per fragment: the zeros of a sparse factorisation would fill up."""

NARROWING: Final = 4.0
"""Factor on the kernel's c from one step to the next."""

MAX_ROUNDS: Final = 25
"""Steps at the final width after which the fit is left as it is."""

CONVERGED: Final = 1e-7
"""A step that lowers the cost by less than this share of it (plus one) is the last."""

_DAMPING: Final = 1e-6
_MOST_DAMPING: Final = 1e6
_RIDGE: Final = 1e-10
"""Share of each diagonal entry that keeps covariances finite where something is not known at all."""
_LEAST: Final = 1e-6
"""Least diagonal entry of places, and of angles, as a share of the largest: what damps an unknown of which nothing is
known."""


@dataclass(frozen=True, eq=False)
class PosePrior:
    """Where single fragments should be.

    Shapes: angle (N,), xy (N, 2), information (N, 3, 3) of (x, y, angle) in the canvas; 0 for "no opinion".
    """

    angle: Floats
    xy: Floats
    information: Floats

    @cached_property
    def told(self) -> NDArray[np.bool_]:
        """(N, 2) is anything said of a fragment's place, of its angle?"""
        diagonal = np.einsum("naa->na", self.information) > 0
        return np.stack([diagonal[:, :2].any(axis=1), diagonal[:, 2]], axis=1)


@dataclass(frozen=True, eq=False)
class PoseFit:
    """Fitted poses.

    Attributes:
        angle, xy: (N,), (N, 2) canvas_from_frag.
        chi2: (H,) r^T L r of every hypothesis.
        weight: (H,) w rho', what the kernel leaves of each hypothesis.
        cost: the attained minimum.
        rounds: steps taken.
    """

    angle: Floats
    xy: Floats
    chi2: Floats
    weight: Floats
    cost: float
    rounds: int


def chi_squared(found: PairHypotheses, angle: Floats, xy: Floats) -> Floats:
    """(H,) r^T L r: how badly poses fit each hypothesis."""
    r = _residuals(found, angle, xy)
    return np.asarray(np.einsum("ha,hab,hb->h", r, found.information, r))


def refine(
    found: PairHypotheses,
    weight: Floats,
    angle: Floats,
    xy: Floats,
    *,
    width: float = np.inf,
    start_width: float | None = None,
    prior: PosePrior | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> PoseFit:
    """Fits all poses, starting from the given ones.

    Args:
        weight: (H,) w_e >= 0; hypotheses of weight 0 only get a chi2.
        width: of the kernel, in standard deviations; infinite for plain least squares.
        start_width: where the kernel starts; None or less than `width` starts there.
        go_on: asked before every step; once it says False, the poses stay where they are.

    Shapes: angle (N,), xy (N, 2).
    """
    system = _System(found, weight, prior)
    widths = [width**2]
    while start_width is not None and widths[-1] < start_width**2:
        widths.append(widths[-1] * NARROWING)
    poses, damping, rounds = (angle.astype(np.float64), xy.astype(np.float64)), _DAMPING, 0
    for left, c in zip(range(len(widths) - 1, -1, -1), reversed(widths), strict=True):
        for _ in range(1 if left else MAX_ROUNDS):
            if not go_on():
                break
            poses, gain, damping = system.step(*poses, c, damping)
            rounds += 1
            if gain <= CONVERGED:
                break
    chi2 = chi_squared(found, *poses)
    cost = system.cost(*poses, widths[0])
    return PoseFit(angles.wrap(poses[0]), poses[1], chi2, weight * _slope(chi2, widths[0]), cost, rounds)


def covariances(
    found: PairHypotheses, weight: Floats, angle: Floats, xy: Floats, prior: PosePrior | None = None
) -> Floats:
    """(N, 3, 3) of each fragment's (x, y, angle) in the canvas, towards its component or towards the priors.

    Args: weight (H,) w_e, as a fit leaves them; hypotheses of weight 0 are not there.

    With S the inverse of the normal equations while one fragment is held, and G the motions about its middle that a
    component is free to make, (I - G A) S (I - G A)^T with A = (G^T M G)^-1 G^T M and M = diag(1, 1, 0): places decide
    what its motion was. A component of one fragment has no error towards itself.
    """
    system = _System(found, weight, prior)
    whole = np.zeros((3 * found.n, 3 * found.n))
    if len(system.index):
        h, _ = system.normal(angle, xy, np.inf)
        whole[np.ix_(system.index, system.index)] = _solved(h, _RIDGE * system.scale(h), np.eye(len(system.index)))
    out = np.empty((found.n, 3, 3))
    for component, (slides, turns) in enumerate(system.free):
        members = np.flatnonzero(system.components == component)
        own = whole[np.ix_(_unknowns(members), _unknowns(members))]
        out[members] = _towards_middle(own, xy[members], [slides, slides, turns])
    return out


def _towards_middle(covariance: Floats, xy: Floats, free: list[bool]) -> Floats:
    """Blocks (M, 3, 3) of a component's covariance (3M, 3M) after the rigid motions (x, y, turn) that it is free to
    make were taken out."""
    arm = xy - xy.mean(axis=0)
    motion = np.zeros((len(xy), 3, 3))  # rows (x, y, angle), columns the motions
    motion[:, 0, 0] = motion[:, 1, 1] = motion[:, 2, 2] = 1.0
    motion[:, :2, 2] = angles.act(angles.QUARTER, arm)  # R'(0) = R(90 degrees)
    own = np.stack([covariance[k : k + 3, k : k + 3] for k in range(0, len(covariance), 3)])
    spread = float(np.sum(arm**2))
    if spread == 0 and free[2]:
        return np.zeros_like(own)
    motion = motion[:, :, free]
    seen = motion / np.array([len(xy), len(xy), spread])[free]
    seen[:, 2] = 0.0
    moves = seen.reshape(len(covariance), -1)
    along = covariance @ moves
    cross = along.reshape(motion.shape) @ motion.transpose(0, 2, 1)
    return np.asarray(own - cross - cross.transpose(0, 2, 1) + motion @ (moves.T @ along) @ motion.transpose(0, 2, 1))


def _residuals(found: PairHypotheses, angle: Floats, xy: Floats) -> Floats:
    """(H, 3) errors (x, y, angle) that each hypothesis made, in its first fragment's frame."""
    seen = angles.act(-angle[found.i], xy[found.j] - xy[found.i])
    turned = angles.wrap(angle[found.j] - angle[found.i] - found.angle)
    return np.concatenate([seen - found.xy, turned[:, None]], axis=1)


def _slope(chi2: Floats, c: float) -> Floats:
    return np.ones_like(chi2) if np.isinf(c) else np.asarray((c / (c + chi2)) ** 2)


def _rho(chi2: Floats, c: float) -> Floats:
    return chi2 if np.isinf(c) else np.asarray(c * chi2 / (c + chi2))


def _unknowns(members: Ints) -> Ints:
    return np.asarray((3 * members[:, None] + np.arange(3)).ravel())


class _System:
    """The normal equations of a graph; which unknowns there are, and where each entry goes, is worked out once."""

    def __init__(self, found: PairHypotheses, weight: Floats, prior: PosePrior | None) -> None:
        self.found, self.weight, self.prior = found.keep(weight > 0), weight[weight > 0], prior
        n, i, j = found.n, self.found.i, self.found.j
        self.components = Graph(n, np.minimum(i, j), np.maximum(i, j), self.weight).components()
        told = np.zeros((n, 2), dtype=bool) if prior is None else prior.told
        first = np.unique(self.components, return_index=True)[1]
        place, turn = (np.bincount(self.components, told[:, axis]) > 0 for axis in (0, 1))
        self.free = np.stack([~place, ~place & ~turn], axis=1).tolist()
        """Of each component: may it slide, may it turn as a whole?"""
        held = [3 * first[~place], 3 * first[~place] + 1, 3 * first[~place & ~turn] + 2]
        self.index = np.setdiff1d(np.arange(3 * n), np.concatenate(held))
        a, b = (axis.ravel() for axis in np.indices((3, 3)))
        left, right = np.concatenate([i, j, i, j, np.arange(n)]), np.concatenate([i, j, j, i, np.arange(n)])
        self.rows, self.cols = (3 * left[:, None] + a).ravel(), (3 * right[:, None] + b).ravel()
        self.dense = len(self.index) <= DENSE_LIMIT and len(i) > SPARSE * n

    def cost(self, angle: Floats, xy: Floats, c: float) -> float:
        """The sum that is minimised."""
        total = float(self.weight @ _rho(chi_squared(self.found, angle, xy), c))
        if self.prior is not None:
            p = self._off(self.prior, angle, xy)
            total += float(np.einsum("na,nab,nb->", p, self.prior.information, p))
        return total

    def normal(self, angle: Floats, xy: Floats, c: float) -> tuple[Floats | csc_matrix, Floats]:
        """H and minus the gradient of the K unknowns, with the kernel's weights at these poses: (K, K), (K,)."""
        e, n = self.found, self.found.n
        r = _residuals(e, angle, xy)
        chi2 = np.einsum("ha,hab,hb->h", r, e.information, r)
        # In the canvas: M r and M L M^T with M = (R(theta_i), 1), where d r / d j = 1 and d r / d i = -T,
        # T = 1 but for its last column (R'(0)(t_j - t_i), 1), and R'(0) = R(90 degrees).
        turn = np.zeros((len(e), 3, 3))
        turn[:, :2, :2], turn[:, 2, 2] = angles.matrix(angle[e.i]), 1.0
        at_j = turn @ ((self.weight * _slope(chi2, c))[:, None, None] * e.information) @ turn.transpose(0, 2, 1)
        arm = angles.act(angles.QUARTER, xy[e.j] - xy[e.i])
        across = at_j.copy()  # T^T L
        across[:, 2] += np.einsum("ha,hab->hb", arm, at_j[:, :2])
        at_i = across.copy()  # T^T L T
        at_i[:, :, 2] += np.einsum("hab,hb->ha", across[:, :, :2], arm)
        r = (turn @ r[..., None])[..., 0]
        g = np.zeros((n, 3))
        for ends, pull in ((e.i, -across), (e.j, at_j)):
            for axis in range(3):
                g[:, axis] -= np.bincount(ends, np.einsum("hb,hb->h", pull[:, axis], r), n)
        own = np.zeros((n, 3, 3)) if self.prior is None else self.prior.information
        blocks = np.concatenate([at_i, at_j, -across, -across.transpose(0, 2, 1), own]).ravel()
        if self.prior is not None:
            g -= np.einsum("nab,nb->na", own, self._off(self.prior, angle, xy))
        size, k = 3 * n, self.index
        if self.dense:
            h = np.bincount(self.rows * size + self.cols, blocks, size * size).astype(np.float64).reshape(size, size)
            return h[np.ix_(k, k)], g.flat[k]
        sparse = csc_matrix((blocks, (self.rows, self.cols)), shape=(size, size))
        return csc_matrix(sparse[k][:, k]), g.flat[k]

    def step(self, angle: Floats, xy: Floats, c: float, damping: float) -> tuple[tuple[Floats, Floats], float, float]:
        """One damped step that does not raise the cost: the poses, the gain as a share of the cost, the damping."""
        if len(self.index) == 0:
            return (angle, xy), 0.0, damping
        before = self.cost(angle, xy, c)
        h, g = self.normal(angle, xy, c)
        scale = self.scale(h)
        while damping <= _MOST_DAMPING:
            move = np.zeros((self.found.n, 3))
            move.flat[self.index] = _solved(h, damping * scale, g)
            turned, shifted = angle + move[:, 2], xy + move[:, :2]
            after = self.cost(turned, shifted, c)
            if after <= before:
                return (turned, shifted), (before - after) / (before + 1.0), max(damping / 10, _DAMPING)
            damping *= 10
        return (angle, xy), 0.0, _DAMPING

    def scale(self, h: Floats | csc_matrix) -> Floats:
        """(K,) what each unknown is damped by: the diagonal, alike in x and y, and never 0."""
        scale = np.zeros((self.found.n, 3))
        scale.flat[self.index] = h.diagonal()
        scale[:, :2] = scale[:, :2].mean(axis=1, keepdims=True)
        for kind in (scale[:, :2], scale[:, 2]):
            np.maximum(kind, _LEAST * kind.max() if kind.max() > 0 else 1.0, out=kind)
        return scale.flat[self.index]

    @staticmethod
    def _off(prior: PosePrior, angle: Floats, xy: Floats) -> Floats:
        return np.concatenate([xy - prior.xy, angles.wrap(angle - prior.angle)[:, None]], axis=1)


def _solved(h: Floats | csc_matrix, extra: Floats, g: Floats) -> Floats:
    """(H + diag(extra))^-1 g; NaN when that is singular in floating point."""
    try:
        if isinstance(h, np.ndarray):
            damped = h.copy()
            damped.flat[:: len(extra) + 1] += extra
            return np.asarray(cho_solve(cho_factor(damped, check_finite=False), g, check_finite=False))
        sparse = csc_matrix(h + diags_array(extra))
        factor = splu(sparse, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return np.asarray(factor.solve(g))
    except (LinAlgError, RuntimeError):
        return np.full_like(g, np.nan)
