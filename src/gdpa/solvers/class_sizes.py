"""Threshold dynamics with class sizes, for very few labels per class.

    minimise  sum of w_ij over edges between different labels
    subject to the given labels, and class shares within [low_c, high_c]

The relaxations ignore that labels are integers, and with one label per class they lose the class
sizes too. With both constraints the problem is NP-hard (bisection is a special case). This method
starts from Poisson learning and from the harmonic function with a self-loop. It repeats (Merriman,
Bence, Osher; with volumes Jacobs, Merkurjev, Esedoglu 2018): take one-hot labels, do a few steps of
the random walk with the given labels fixed, scale each class so that the class shares lie within
their intervals, and assign every node to its largest score. The start with the smaller cut wins.

The rounds only move borders between classes. If two classes share two clusters, they keep sharing
them. Therefore pairs of classes with a large cut between them are joined and split again from
random starts, and splits with a smaller cut are kept (:func:`resplit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import default_rng
from numpy.typing import ArrayLike, NDArray

from ..arrays import FloatArray
from ..gershgorin.bounds import relaxation_bound
from ..graph.adjacency import degrees
from ..policy import DEFAULT_POLICY, Policy
from ..problem import ClassProblem, GraphProblem
from ..system import LabeledSystem
from .base import STOPPED, Outcome, Run, Solver
from .poisson import Poisson, positive_scores, refuse_bias, unit_weights

Codes = NDArray[np.intp]
Block = NDArray[np.float32]
Mask = NDArray[np.bool_]
Interval = tuple[FloatArray, FloatArray]


# Stability compares the labellings with these two slacks.
TIGHT = 1.05
LOOSE = 1.6
# Random starts of a split, steps of the random walk that smooth them, rounds, and the factor by
# which the cut must shrink. Seen on MNIST with one label per class, seeds 0 and 7.
STARTS = 8
SMOOTHING = 60
SPLIT_ROUNDS = 8
SMALLER = 0.98
# After this many rounds a split is given up if all cuts exceed the present one by this factor, and
# else this many starts go on. Chosen on MNIST with one label per class, seeds 0 to 4.
TRIAL_ROUNDS = 2
HOPELESS = 2.0
KEPT = 4


class Rounds(NamedTuple):
    """Labels and scores after the rounds.

    `stability` is the smaller of two shares of nodes that keep their label: between the two starts,
    and between tight and loose class sizes. It is NaN if it was not measured.
    """

    labels: NDArray[np.intp]
    scores: FloatArray
    rounds: int
    settled: bool
    stability: float = np.nan


@dataclass(frozen=True, kw_only=True)
class ClassSizes(Solver):
    """Volume-constrained threshold dynamics.

    Parameters
    ----------
    shares : array-like of shape (n_classes,), optional
        Expected share of each class among all nodes; by default the shares of the labels.
    slack : float or array-like of shape (n_classes,), default=1.2
        The share of a class may be 1 / slack to slack times its expected share. Chosen on MNIST
        with 1 and 5 labels per class.
    steps : int, default=10
        Steps of the random walk per round.
    max_iter : int, default=15
        Maximum number of rounds.
    trial : int, default=15
        Number of rounds after which the start with the larger cut is dropped.
    sweeps : int, default=3
        Maximum number of times that pairs of classes are joined and split again; 0: never.
    policy, n_jobs
        Options of the linear solves.
    tol : float, default=1e-3
        The rounds end when less than this share of the labels changes.
    x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`; `x0` is not used.
    """

    name: ClassVar[str] = "class-sizes"
    summary: ClassVar[str] = "threshold dynamics with class sizes, for very few labels per class"
    kind: ClassVar[str] = "heuristic"
    bytes_per_edge: ClassVar[float] = 137.0
    whole: ClassVar[dict[str, int]] = {"steps": 1, "trial": 1, "sweeps": 0}

    shares: ArrayLike | None = None
    slack: ArrayLike = 1.2
    steps: int = 10
    max_iter: int = 15
    trial: int = 15
    sweeps: int = 3
    tol: float = 1e-3
    policy: Policy = DEFAULT_POLICY
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        """Check the options of this method."""
        super().__post_init__()
        slack = np.asarray(self.slack, dtype=np.float64)
        if slack.ndim > 1 or not (np.isfinite(slack).all() and (slack >= 1.0).all()):
            raise ValueError(f"slack={self.slack!r} must be one or more numbers of at least 1")
        if self.shares is not None:
            shares = np.asarray(self.shares, dtype=np.float64)
            if shares.ndim != 1 or not (np.isfinite(shares).all() and (shares > 0).all()):
                raise ValueError(f"shares={self.shares!r} must be one positive number per class")

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        refuse_bias(problem, self.name)
        known = problem.labeled
        signs = problem.labels[known]
        targets = np.column_stack([signs < 0, signs > 0]).astype(np.float64)
        found, scores, rounds, converged, _ = self.rounds(problem, targets, run)
        labels = np.where(found == 1, 1, -1).astype(np.int8)
        bound = relaxation_bound(problem, scores[:, 1] - scores[:, 0])
        message = f"labels {'settled' if converged else 'still change'} after {rounds} rounds"
        return Outcome(
            scores=scores[:, 1] - scores[:, 0],
            labels=labels,
            lower_bound=bound,
            bound_status="certified" if np.isfinite(bound) else "none",
            iterations=rounds,
            converged=converged,
            message=STOPPED if run.stopped else message,
            info={"cut": cut_share(problem.W, found)},
        )

    def rounds(
        self,
        problem: GraphProblem | ClassProblem,
        targets: FloatArray,
        run: Run,
        *,
        stability: bool = False,
    ) -> Rounds:
        """Run the rounds from both starts, and continue from the smaller cut."""
        known = problem.labeled
        k = targets.shape[1]
        shares = targets.sum(axis=0) if self.shares is None else np.asarray(self.shares, float)
        if shares.size != k:
            raise ValueError(f"shares has {shares.size} entries, there are {k} classes")
        shares = shares / shares.sum()
        slack = np.broadcast_to(np.asarray(self.slack, dtype=np.float64), k)
        interval = shares / slack, np.minimum(shares * slack, 1.0)
        poisson = Poisson(policy=self.policy, n_jobs=self.n_jobs, tol=self.tol)
        system = LabeledSystem(
            problem.adjacency,
            problem.diagonal,
            known,
            targets,
            self_loop=0.03 * float(problem.diagonal.mean()),
            policy=self.policy,
            n_jobs=self.n_jobs,
        )
        with run.stage("starts"):
            starts = [
                positive_scores(poisson.potential(problem, targets).x),
                np.maximum(system.solve(tol=self.tol).x, 1e-300),
            ]
        W = unit_weights(problem.W)
        walk = sp.csr_array(sp.diags_array(1.0 / np.maximum(degrees(W), 1e-300)) @ W)
        walk = walk.astype(np.float32)
        with run.stage("rounds"):
            found = [self._settle(walk, s, known, targets, interval, run, 0) for s in starts]
            cuts = [cut_share(problem.W, one.labels) for one in found]
            best = found[int(np.argmin(cuts))]
            if not best.settled and not run.stopped:
                rounds = best.rounds
                best = self._settle(walk, best.scores, known, targets, interval, run, rounds)
        if self.sweeps and not run.stopped:
            with run.stage("splits"):
                labels = resplit(problem, best.labels, interval, self.sweeps, self.steps)
                start = np.eye(k)[labels] + 1e-12
                again = self._settle(walk, start, known, targets, interval, run, 0)
            if cut_share(problem.W, again.labels) < cut_share(problem.W, best.labels):
                best = again
        if not stability:
            return best
        with run.stage("stability"):
            agreement = [float((found[0].labels == found[1].labels).mean())]
            found = []
            for factor in TIGHT, LOOSE:
                bounds = shares / factor, np.minimum(shares * factor, 1.0)
                found.append(self._settle(walk, starts[0], known, targets, bounds, run, 0))
            agreement.append(float((found[0].labels == found[1].labels).mean()))
        return best._replace(stability=min(agreement))

    def _settle(
        self,
        walk: sp.csr_array,
        scores: FloatArray,
        known: NDArray[np.intp],
        targets: FloatArray,
        interval: Interval,
        run: Run,
        first: int,
    ) -> Rounds:
        """Repeat assignment and random walk until labels settle or the trial rounds are over."""
        n, k = scores.shape
        codes = targets.argmax(axis=1)
        held = targets.astype(np.float32)
        labels = np.full(n, -1)
        rounds = first
        settled = False
        last = self.max_iter if first else min(self.trial, self.max_iter)
        for rounds in range(first, last + 1):
            scores = scores * match_shares(scores, *interval)
            found = scores.argmax(axis=1)
            found[known] = codes
            changed = float((found != labels).mean())
            labels = found
            settled = changed <= self.tol
            if run.stopped or run.watch({"iteration": rounds, "changed": changed}):
                settled = False
                break
            if settled or rounds == last:
                break
            block = np.zeros((n, k), dtype=np.float32)
            block[np.arange(n), labels] = 1.0
            for _ in range(self.steps):
                block = walk @ block
                block[known] = held
            scores = block.astype(np.float64) + 1e-12
        scores[known] = targets
        return Rounds(labels, scores / scores.sum(axis=1, keepdims=True), rounds, settled)


def resplit(
    problem: GraphProblem | ClassProblem, labels: Codes, interval: Interval, sweeps: int, steps: int
) -> Codes:
    """Join and split pairs of classes, those with the largest cuts first, while cuts shrink."""
    W = unit_weights(problem.W)
    known = problem.labeled
    k = interval[0].size
    tried = set()
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    labels = labels.copy()
    given = labels[known]
    for _ in range(sweeps):
        pairs = labels[rows] * k + labels[W.indices]
        before = labels.copy()
        weight = np.bincount(pairs, weights=W.data, minlength=k * k).reshape(k, k)
        volume = np.maximum(weight.sum(axis=1), 1e-300)
        ratio = np.triu(weight / np.minimum.outer(volume, volume), 1)
        for pair in np.argsort(-ratio, axis=None, kind="stable")[:k].tolist():
            i, j = divmod(pair, k)
            nodes = np.flatnonzero((labels == i) | (labels == j))
            content = (pair, nodes.size, int(nodes.sum()))
            if ratio[i, j] <= 0 or content in tried:
                continue
            tried.add(content)
            low, high = (labels.size / nodes.size * bound[[i, j]] for bound in interval)
            limits = np.sort([max(low[0], 1.0 - high[1]), min(high[0], 1.0 - low[1])])
            now = labels[nodes] == i
            side = bisect(W[nodes][:, nodes], now, np.clip(limits, 0.0, 1.0), steps)
            if side is not None:
                at = np.isin(known, nodes[side])
                votes = float(at[given == i].mean() - at[given == j].mean())
                same = votes or float((side == now).mean()) - 0.5
                labels[nodes] = np.where(side == (same >= 0), i, j)
        if np.array_equal(labels, before):
            break
    return labels


def bisect(W: sp.csr_array, now: Mask, limits: FloatArray, steps: int) -> Mask | None:
    """Split a graph in two parts, the first with a share of the nodes between two limits.

    Threshold dynamics from smoothed random starts. Returns None if no cut is clearly smaller than
    that of the present split, `now`.
    """
    d = np.maximum(degrees(W), 1e-300)
    walk = sp.csr_array(sp.diags_array(1.0 / d) @ W).astype(np.float32)
    stationary = (d / d.sum()).astype(np.float32)
    V = default_rng(0).standard_normal((now.size, STARTS), dtype=np.float32)
    middle = 0.0
    V = walk_steps(walk, V, SMOOTHING)
    V -= stationary @ V
    present = cut_weight(W, now[:, None])[0]
    for t in range(SPLIT_ROUNDS + 1):
        low, high = np.quantile(V, 1.0 - limits[::-1], axis=0)
        sides = np.clip(middle, low, high) < V
        if t == TRIAL_ROUNDS:
            cuts = cut_weight(W, sides)
            if cuts.min() > HOPELESS * present:
                return None
            sides = sides[:, np.argsort(cuts, kind="stable")[:KEPT]]
        if t < SPLIT_ROUNDS:
            V = sides.astype(np.float32)
            middle = 0.5
            V = walk_steps(walk, V, steps)
    cuts = cut_weight(W, sides)
    return np.asarray(sides[:, cuts.argmin()]) if cuts.min() < SMALLER * present else None


def walk_steps(walk: sp.csr_array, V: Block, n: int) -> Block:
    """Return walk^n V with an error of a few percent, in at most ``2 sqrt(n) + 1`` products.

    The power is expanded in Chebyshev polynomials. Their coefficients are those of a binomial
    distribution with standard deviation sqrt(n), whose tails are left out.
    """
    degree = min(n, int(2.0 * np.sqrt(n)) // 2 * 2 + n % 2)
    c = np.polynomial.chebyshev.poly2cheb([0.0] * n + [1.0])[: degree + 1].astype(V.dtype)
    before = V
    now = walk @ V
    total = c[0] * V + c[1] * now
    for j in range(2, degree + 1):
        before, now = now, 2.0 * (walk @ now) - before
        if c[j] != 0:
            total += c[j] * now
    return np.asarray(total)


def cut_weight(W: sp.csr_array, sides: Mask) -> FloatArray:
    """Return the weight between the two sides of each column."""
    X = sides.astype(np.float64)
    return np.asarray(((W @ X) * (1.0 - X)).sum(axis=0))


def match_shares(
    scores: FloatArray, low: FloatArray, high: FloatArray, *, max_rows: int = 20_000
) -> FloatArray:
    """Return one factor per class such that the class shares lie between `low` and `high`.

    The share of a class is the share of rows whose largest scaled score it has. The factors are
    found by multiplicative updates on an even subsample of at most `max_rows` rows. If no factors
    meet the bounds, the best ones found are returned.
    """
    step = -(-scores.shape[0] // max_rows)
    logs = np.log(np.maximum(scores[::step], 1e-300))
    k = low.size
    shift = np.zeros(k)
    best = np.zeros(k)
    least = np.inf
    for t in range(100):
        share = np.bincount((logs + shift).argmax(axis=1), minlength=k) / logs.shape[0]
        share = np.maximum(share, 1e-6)
        pull = np.log(np.clip(share, low, high) / share)
        miss = float(np.abs(pull).max())
        if miss < least:
            best = shift.copy()
            least = miss
        if miss < 0.01:
            break
        shift += (0.5 if t < 30 else 0.2) * np.clip(pull, -1.0, 1.0)
    return np.asarray(np.exp(best - best.max()))


def cut_share(W: sp.csr_array, labels: NDArray[np.intp]) -> float:
    """Return the share of the edge weight that joins nodes of different labels."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    total = float(W.data.sum())
    across = float(W.data[labels[rows] != labels[W.indices]].sum())
    return across / total if total > 0 else 0.0
