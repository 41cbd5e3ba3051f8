"""Every method on small problems, against all labellings one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

import gdpa
from gdpa.gershgorin.bounds import rounding_margin

from .outcome import RIGHT, generator, must, quiet, refused

# Methods whose memory or time is that of a general conic solver: seldom.
SLOW = ("sdr-admm", "modified-dual-interior-point", "modified-dual-admm", "gdpa-lp")


def problem_of(rng: np.random.Generator) -> Any:
    """A random problem of at most ten free variables."""
    n = int(rng.integers(2, 11))
    decades = float(rng.choice([0.5, 0.5, 0.5, 3, 10, 40, 150]))
    W = 10.0 ** rng.uniform(-decades, decades, (n, n)) * (rng.random((n, n)) < rng.uniform(0.2, 1))
    if rng.random() < 0.2:
        W = np.round(3 * rng.random((n, n)))  # ties
    W = np.triu(W, 1)
    if rng.random() < 0.05:  # up to the largest number, which is refused
        W *= 10.0 ** rng.uniform(250, 308) / max(W.max(), 1.0)
    W = W + W.T
    if rng.random() < 0.25:
        signs = rng.choice([-1.0, 1.0], (n, n))
        P = np.triu(W * signs)
        return gdpa.BinaryQuadratic(P + P.T, anchor=int(rng.integers(n)))
    labels = np.zeros(n, dtype=int)
    known = rng.permutation(n)[: int(rng.integers(0, n))]
    labels[known] = rng.choice([-1, 1], known.size)
    bias = None
    if rng.random() < 0.4 or known.size == 0:
        bias = rng.normal(size=n) * 10.0 ** rng.uniform(-decades, decades, n)
        if rng.random() < 0.05:  # sums beyond the largest number, which are refused
            bias = np.sign(bias) * 10.0 ** rng.uniform(300, 308)
    return gdpa.GraphProblem(
        W, labels, bias=bias, laplacian=str(rng.choice(["normalized", "combinatorial"]))
    )


def best_of(problem: Any) -> tuple[float, float]:
    """Smallest objective over all labellings, and how far rounding can have moved it."""
    form = problem.reduced()
    P = form.P.toarray().astype(np.longdouble)
    n = P.shape[0]
    free = np.delete(np.arange(n), form.apex)
    X = np.ones((2 ** (n - 1), n), dtype=np.longdouble)
    X[:, free] = ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)) & 1) * 2 - 1
    values = np.longdouble(form.constant) - ((X @ P) * X).sum(axis=1)
    # Weights between labelled nodes cancel in the constant; what they leave of it is rounded.
    return float(values.min()), 2.0 * rounding_margin(problem)


def run(seed: int) -> str:
    """One problem, one method."""
    rng = generator("solves", seed)
    names = [m if isinstance(m, str) else m.name for m in gdpa.list_methods()]
    method = str(rng.choice(names))
    if method in SLOW and rng.random() < 0.8:
        method = str(rng.choice(names))
    with quiet():
        try:
            problem = problem_of(rng)
            options = {}
            if method in ("harmonic", "gdpa") and rng.random() < 0.1:
                options["label_weight"] = float(10.0 ** rng.uniform(-308, 308))
            solution = gdpa.solve(problem, method, **options)
        except (ValueError, MemoryError) as error:
            return refused(error)
        best, slack = best_of(problem)
        check(problem, solution, best, slack)
        if rng.random() < 0.3:
            certificate = gdpa.certify(problem, solution.labels)
            must(
                certificate.bound_status != "certified" or certificate.lower_bound <= best + slack,
                f"false certificate {certificate.lower_bound!r} > {best!r}",
            )
            if certificate.exact:
                found = problem.objective(certificate.optimal_labels)
                must(
                    found <= best + slack + 1e-8 * abs(best),
                    f"called optimal: {found!r}, but there is {best!r}",
                )
    return RIGHT


def check(problem: Any, solution: Any, best: float, slack: float) -> None:
    """What must hold of every solution."""
    must(np.isin(solution.labels, (-1, 1)).all(), "labels other than -1 and 1")
    must(np.isfinite(solution.scores).all(), "scores that are not finite")
    must(not np.isnan(solution.objective), "objective NaN")
    must(not np.isnan(solution.lower_bound), "bound NaN")
    must(not np.isnan(solution.gap), "gap NaN")
    must(np.isfinite(solution.objective), f"objective {solution.objective}")
    if isinstance(problem, gdpa.GraphProblem):
        known = problem.labeled
        must((solution.labels[known] == problem.labels[known]).all(), "a known label was changed")
    must(solution.objective >= best - slack, f"objective {solution.objective!r} below {best!r}")
    if solution.bound_status == "certified":
        must(
            solution.lower_bound <= best + slack,
            f"false bound {solution.lower_bound!r} > {best!r} by {solution.method}",
        )
