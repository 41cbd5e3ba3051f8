"""Search for good signs of ``max x' P x`` by annealing and recombination of replicas.

*Sparse couplings.* Nodes of one colour of the graph are not coupled to each other, so a sweep of
Metropolis annealing is one sparse product per colour for all replicas. The temperature of a node is
proportional to the norm of its row, because hubs would otherwise freeze early. In every generation
each replica is heated and cooled again, then combined with its old state and with another replica.
The nodes in which two replicas differ form connected parts that can be flipped independently, so
the best combination is known exactly (:func:`crossover`). Several parents are recombined by merging
neighbours whose relative sign is the same in all of them, and annealing the remaining small problem
(genetic renormalisation; Houdayer, Martin 1999). The last population consists of the best replicas
of all others.

*Dense couplings.* Discrete simulated bifurcation (Goto et al. 2021),

    Y += dt (-(1 - a) X + c P sign(X)),   X += dt Y,   walls at +-1,   a from 0 to 1,

followed by tabu search by single flips on the same block of replicas, and recombination as above.

Both also start from roundings of a factor V of the semidefinite relaxation (Goemans, Williamson
1995). Memory is O(nnz + n * replicas). Results depend on the seed but not on `n_jobs`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..arrays import FloatArray, NDArray
from ..threads import effective_jobs, in_threads

Replicas = NDArray[np.float32]
Report = Callable[[float], None]

# Temperatures in units of the norm of a node's row. Chosen on G36 and G64.
_HOT = 0.5
_WARM = 0.2
_COLD = 0.02
_REHEATED = (0.1, 0.6)
_RECOMBINATIONS = 4  # of several parents, in each generation


@dataclass(frozen=True)
class Limits:
    """Limits of the search.

    Parameters
    ----------
    generations : int
        Generations of each population.
    sweeps : int
        Sweeps of the first annealing; later ones use a third of them, recombinations a quarter.
    replicas : int
        Size of a population.
    populations : int
        Number of populations; the last one consists of the best of the others.
    deadline : float
        Value of ``time.monotonic()`` at which to stop with the best signs so far.
    """

    generations: int
    sweeps: int
    replicas: int
    populations: int
    deadline: float = np.inf

    @classmethod
    def for_size(cls, n: int, nnz: int, effort: float = 1.0, deadline: float = np.inf) -> Limits:
        """Choose limits so that the work grows about linearly with the number of couplings."""
        share = min(1.0, 1e5 / (n + nnz))
        effort *= float(np.clip(np.sqrt(n / 700), 0.7, 1.0))
        return cls(
            generations=max(int(16 * effort * share), 2),
            sweeps=max(int(1500 * effort * share**0.5), 60),
            replicas=int(np.clip(4_000_000 // n, 4, 32)),
            populations=1 + max(min(round(3 * effort * share**0.5), 3), 1),
            deadline=deadline,
        )

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.deadline


def color_classes(P: sp.csr_array, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Partition the nodes into independent sets (Luby's maximal independent sets)."""
    n = P.shape[0]
    priority = sp.csr_array((np.empty(P.nnz, dtype=np.float32), P.indices, P.indptr), shape=P.shape)
    rank = (rng.permutation(n) + 1).astype(np.float32)
    degree = np.diff(P.indptr)
    left = np.ones(n, dtype=bool)
    classes = []
    while left.any():
        candidates = left.copy()
        chosen = np.zeros(n, dtype=bool)
        while candidates.any():
            active = np.where(candidates, rank, 0.0).astype(np.float32)
            priority.data = active[P.indices]
            highest = priority.max(axis=1).toarray().ravel()
            winners = candidates & (active > highest)
            chosen |= winners
            candidates &= ~winners
            candidates[P.indices[np.repeat(winners, degree)]] = False
        classes.append(np.flatnonzero(chosen))
        left &= ~chosen
    return classes


class Annealer:
    """Annealing and descent of replicas, colour by colour.

    Parameters
    ----------
    P : csr_array of shape (n, n)
        Couplings, zero diagonal.
    rng : Generator
        Source of randomness.
    """

    def __init__(self, P: sp.csr_array, rng: np.random.Generator) -> None:
        self.P = P
        self.rng = rng
        classes = color_classes(P, rng)
        self.order = np.concatenate(classes)
        ordered = P[self.order][:, self.order].astype(np.float32)
        ends = np.cumsum([0, *(c.size for c in classes)])
        self.parts = [(slice(a, b), ordered[a:b]) for a, b in itertools.pairwise(ends)]
        self.norms = np.sqrt(np.asarray(ordered.power(2).sum(axis=1))).astype(np.float32)

    def anneal(self, S: Replicas, sweeps: int, hot: FloatArray, limits: Limits) -> Replicas:
        """Cool the replicas (columns of S) from `hot`, then descend to a local optimum."""
        x = np.ascontiguousarray(S[self.order])
        n, replicas = x.shape
        # Thresholds of the Metropolis rule, reused with random offsets.
        pool = self.rng.standard_exponential(n * replicas + 4096, dtype=np.float32)
        offsets = self.rng.integers(0, 4096, size=(sweeps, len(self.parts)))
        for t in range(sweeps):
            if t % 16 == 0 and limits.over:
                break
            temperature = hot + (_COLD - hot) * (t / sweeps)
            for k, (rows, P) in enumerate(self.parts):
                part = x[rows]
                gain = P @ x
                gain *= part
                first = rows.start * replicas + offsets[t, k]
                threshold = pool[first : first + part.size].reshape(part.shape)
                threshold = threshold * self.norms[rows, None]
                threshold *= temperature.astype(np.float32)
                np.negative(part, out=part, where=gain <= threshold)
        self._descend(x)
        result = np.empty_like(x)
        result[self.order] = x
        return result

    def renew(self, S: Replicas, sweeps: int, limits: Limits) -> Replicas:
        """Heat and cool all replicas, and combine each with its old state and with another."""
        replicas = S.shape[1]
        heated = self.anneal(S, sweeps, np.geomspace(*_REHEATED, replicas), limits)
        S = crossover(self.P, S, heated)
        S = self.descend(crossover(self.P, S, S[:, self.rng.permutation(replicas)]))
        return S[:, self.rng.permutation(replicas)]

    def descend(self, S: Replicas) -> Replicas:
        """Flip single signs while that improves the value."""
        return self.anneal(S, 0, np.zeros(1), Limits(1, 0, 1, 1))

    def _descend(self, x: Replicas) -> None:
        floor = -1e-5 * self.norms  # ignores gains below single precision, so the loop ends
        for _ in range(1000):
            flips = 0
            for rows, P in self.parts:
                part = x[rows]
                uphill = (P @ x) * part < floor[rows, None]
                np.negative(part, out=part, where=uphill)
                flips += int(np.count_nonzero(uphill))
            if not flips:
                return


def crossover(P: sp.csr_array, S: Replicas, T: Replicas) -> Replicas:
    """Combine pairs of replicas (columns of S and T) optimally.

    Where a pair differs, connected parts are taken from T unless that lowers the value. No column
    of the result has a smaller value than either of its parents.
    """
    upper = sp.triu(P, 1).tocoo()
    replicas = S.shape[1]
    relative = S * T
    differs = relative * np.where(relative.sum(axis=0) < 0, -1, 1) < 0
    edge, replica = np.nonzero(differs[upper.coords[0]] & differs[upper.coords[1]])
    flat = np.flatnonzero(differs)
    position = np.zeros(differs.size, dtype=np.intp)
    position[flat] = np.arange(flat.size)
    i, j = (position[ends[edge].astype(np.intp) * replicas + replica] for ends in upper.coords)
    links = sp.coo_array((np.ones(i.size, dtype=np.int8), (i, j)), shape=(flat.size, flat.size))
    count, part = connected_components(links, directed=False)
    # A flip of a part only affects its couplings to neighbours, which agree in both replicas.
    felt = (S * (P @ np.where(differs, 0.0, S))).ravel()[flat]
    loss = np.bincount(part, weights=felt, minlength=count)
    result = S.copy()
    result.reshape(-1)[flat[loss[part] <= 0]] *= -1
    return result


def contract(P: sp.csr_array, parents: Replicas) -> tuple[sp.csr_array, sp.csr_array]:
    """Merge coupled nodes whose relative sign is the same in all parents.

    Returns C and ``Q = C' P C`` without its diagonal. ``x = C z`` expands the signs z of the merged
    nodes, and ``z = 1`` is the first parent.
    """
    n = P.shape[0]
    rows = np.repeat(np.arange(n), np.diff(P.indptr))
    # Only strong couplings merge nodes, so that clusters stay local.
    size = np.abs(P.data)
    largest = abs(P).max(axis=1).toarray().ravel()
    agree = size >= 0.1 * np.minimum(largest[rows], largest[P.indices])
    relative = parents * parents[:, :1]
    for column in relative.T[1:]:
        agree &= column[rows] == column[P.indices]
    links = sp.csr_array((agree.astype(np.int8), P.indices.copy(), P.indptr.copy()), shape=P.shape)
    links.eliminate_zeros()
    m, merged = connected_components(links, directed=False)
    C = sp.csr_array((parents[:, 0].astype(np.float64), merged, np.arange(n + 1)), shape=(n, m))
    Q = sp.csr_array(C.T @ P @ C)
    Q.setdiag(0.0)
    Q.eliminate_zeros()
    return C, Q


def bifurcate(
    P: sp.csr_array | FloatArray, X: Replicas, steps: int, rng: np.random.Generator, limits: Limits
) -> Replicas:
    """Return signs found by discrete simulated bifurcation from the positions X."""
    n = P.shape[0]
    dt = 0.5
    squares = float((P * P).sum())  # P is dense, or sparse and multiplied by entries
    force = (P * (dt * 0.5 / np.sqrt(squares / n))).astype(np.float32)
    Y = 0.1 * rng.standard_normal(X.shape, dtype=np.float32)
    X = X.copy()
    for t in range(steps):
        if t % 16 == 0 and limits.over:
            break
        Y += force @ np.sign(X)
        Y -= np.float32(dt * (1.0 - t / steps)) * X
        X += np.float32(dt) * Y
        Y[np.abs(X) > 1.0] = 0.0
        np.clip(X, -1.0, 1.0, out=X)
    return np.where(X < 0, -1, 1).astype(np.float32)


def tabu(
    P: FloatArray, S: Replicas, steps: int, rng: np.random.Generator, limits: Limits
) -> Replicas:
    """Return the best signs of each replica found by tabu search with single flips.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Couplings, zero diagonal.
    S : ndarray of shape (n, replicas)
        Initial signs.
    steps : int
        Flips of each replica.
    rng : Generator
        Random generator for the tenures.
    limits : Limits
        Only the deadline is used.
    """
    x = np.ascontiguousarray(S.T, dtype=np.float64)
    replicas, n = x.shape
    every = np.arange(replicas)
    loss = x * (x @ P)  # flipping i loses 4 loss_i
    value = np.zeros(replicas)
    best = x.copy()
    best_value = value.copy()
    until = np.zeros((replicas, n), dtype=np.int32)
    tenures = rng.integers(n // 20 + 1, n // 20 + 11, size=(steps, replicas), dtype=np.int32)
    slack = 1e-12 * float(np.abs(P).sum())
    for t in range(steps):
        if t % 64 == 0 and limits.over:
            break
        # Aspiration: a flip that gives a new best value is always allowed.
        allowed = (until <= t) | (loss < (value - best_value)[:, None] - slack)
        j = np.where(allowed, loss, np.inf).argmin(axis=1)
        value -= loss[every, j]
        old = x[every, j]
        loss[every, j] *= -1.0
        x[every, j] = -old
        row = P[j] * x
        row *= (2.0 * old)[:, None]
        loss -= row
        # P[j, j] = 0, so the loss of the flipped entry is not changed again.
        until[every, j] = t + tenures[t]
        better = value > best_value + slack
        if better.any():
            best[better], best_value[better] = x[better], value[better]
    return best.T.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Tabu:
    """Simulated bifurcation and tabu search of replicas, with dense couplings P."""

    P: FloatArray
    rng: np.random.Generator

    def anneal(self, S: Replicas, sweeps: int, hot: FloatArray, limits: Limits) -> Replicas:
        """Run simulated bifurcation, near S for low temperatures, then tabu search."""
        noise = 0.1 * self.rng.standard_normal(S.shape, dtype=np.float32)
        X = noise + np.where(hot < _HOT, np.float32(0.1), np.float32(0.0)) * S
        S = bifurcate(self.P, X.astype(np.float32), sweeps // 2 + 1, self.rng, limits)
        return tabu(self.P, S, min(10 * S.shape[0], 5 * sweeps), self.rng, limits)

    def renew(self, S: Replicas, sweeps: int, limits: Limits) -> Replicas:
        """Return the replicas unchanged, because tabu search has explored their neighbourhood."""
        return S

    def descend(self, S: Replicas) -> Replicas:
        """Run a short tabu search."""
        return tabu(self.P, S, S.shape[0], self.rng, Limits(1, 1, 1, 1))


def search(
    P: sp.csr_array,
    *,
    limits: Limits,
    V: FloatArray | None = None,
    starts: Replicas | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
    report: Report | None = None,
) -> NDArray[np.int8]:
    """Search for signs x with a large ``x' P x``.

    Parameters
    ----------
    P : csr_array of shape (n, n)
        Symmetric couplings, zero diagonal, finite.
    limits : Limits
        How much to do.
    V : ndarray of shape (n, rank), optional
        Factor of the semidefinite relaxation, rounded for further starts.
    starts : ndarray of shape (n, k), optional
        Signs to improve.
    random_state : int, default=0
        Random seed.
    n_jobs : int, default=1
        Threads, -1 for all cores; the result does not depend on it.
    report : callable, optional
        Called with the value of each new population.

    Returns
    -------
    ndarray of int8 of shape (n,)
        The best signs found.
    """
    n = P.shape[0]
    P = P.copy()
    # Divide, because the reciprocal of a tiny number would overflow.
    P.data = P.data / np.abs(P.data).max(initial=1e-320)
    seeds = np.random.SeedSequence(random_state).spawn(limits.populations)

    def one(k: int) -> Replicas:
        rng = np.random.default_rng(seeds[k])
        S, hot = _first_signs(n, limits.replicas, V, rng)
        improver = _improver(P, rng)
        return _evolve(P, improver, improver.anneal(S, limits.sweeps, hot, limits), limits, rng)

    best: list[Replicas] = [] if starts is None else [np.asarray(starts, dtype=np.float32)]
    first = range(limits.populations - 1)
    jobs = effective_jobs(n_jobs)
    for start in first[::jobs]:  # in batches, so that the report can stop the search
        for found in in_threads(one, first[start : start + jobs], jobs):
            best.append(found)
            if report is not None:
                report(float(_values(P, found).max()))
    elite = np.concatenate(best, axis=1)
    rng = np.random.default_rng(seeds[-1])
    improver = _improver(P, rng)
    elite = _evolve(P, improver, improver.descend(elite), limits, rng)
    winner = elite[:, 0]
    return np.asarray(winner * winner[0], dtype=np.int8)


def _improver(P: sp.csr_array, rng: np.random.Generator) -> Annealer | Tabu:
    n = P.shape[0]
    return Tabu(P.toarray(), rng) if P.nnz > 0.2 * n * n and n <= 6000 else Annealer(P, rng)


def _first_signs(
    n: int, replicas: int, V: FloatArray | None, rng: np.random.Generator
) -> tuple[Replicas, FloatArray]:
    """Return initial signs, half of them roundings of V, and their initial temperatures."""
    S = np.where(rng.random((n, replicas), dtype=np.float32) < 0.5, -1, 1).astype(np.float32)
    hot = np.full(replicas, _HOT)
    if V is not None:
        half = replicas // 2
        S[:, :half] = np.where(V @ rng.standard_normal((V.shape[1], half)) < 0, -1, 1)
        hot[:half] = _WARM
    return S, hot


def _values(P: sp.csr_array, S: Replicas) -> FloatArray:
    return np.asarray(np.einsum("ir,ir->r", S, P @ S.astype(np.float64)))


def _evolve(
    P: sp.csr_array,
    improver: Annealer | Tabu,
    S: Replicas,
    limits: Limits,
    rng: np.random.Generator,
) -> Replicas:
    """Renew and recombine until nothing changes, and return the best quarter, best first."""
    values = _values(P, S)
    size = S.shape[1]
    unchanged = 0
    for _ in range(limits.generations):
        before = values.sum()
        spread = values.max() - values.min()
        if size < 3 or limits.over or spread <= 1e-9 * abs(values.max()) or unchanged == 2:
            break
        S = improver.renew(S, limits.sweeps // 3 + 1, limits)
        values = _values(P, S)
        for _ in range(_RECOMBINATIONS):
            count = int(np.clip(np.exp(rng.uniform(np.log(3), np.log(size + 1))), 3, size))
            parents = rng.choice(size, count, replace=False)
            C, Q = contract(P, S[:, parents])
            if Q.nnz == 0 or limits.over:
                continue
            Z = np.where(rng.random((Q.shape[0], 4)) < 0.5, -1, 1).astype(np.float32)
            Z[:, 0] = 1.0
            Z = _improver(Q, rng).anneal(Z, limits.sweeps // 4 + 1, np.full(4, _HOT), limits)
            children = improver.descend((C @ Z).astype(np.float32))
            child_values = _values(P, children)
            child = int(np.argmax(child_values))
            worst = parents[int(np.argmin(values[parents]))]
            if child_values[child] > values[worst]:
                S[:, worst], values[worst] = children[:, child], child_values[child]
        unchanged = unchanged + 1 if values.sum() == before else 0
    return S[:, np.argsort(-values, kind="stable")[: max(size // 4, 1)]]
