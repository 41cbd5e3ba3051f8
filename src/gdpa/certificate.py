"""Certificates: the objective of a labelling, and a proved lower bound.

If the couplings are non-negative, or become so by switching signs, a minimum cut gives the optimum
of (P) itself, so the gap is exact. Otherwise small problems are solved by branch and bound, and
large ones are bounded by the semidefinite relaxation.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_vector
from .errors import DegenerateProblemWarning, UnreachedWarning
from .notebook import card
from .problem import BinaryQuadratic, GraphProblem, Problem
from .solution import Bounded, BoundStatus, Solution
from .solvers.registry import choose_method, get_solver


@dataclass(frozen=True)
class Certificate(Bounded):
    """The objective of a labelling, and a lower bound for all labellings.

    Parameters
    ----------
    objective : float
        Objective of the labelling, which is minimised.
    lower_bound : float
        No labelling has a smaller objective, if `bound_status` is "certified".
    bound_status : {"certified", "estimated", "none"}
        Whether the bound is proved.
    method : str
        The method that computed the bound.
    exact : bool
        Whether `optimal_labels` are proved to be optimal (for a minimum cut, to a relative 1e-9).
    optimal_labels : ndarray of int8 or None
        An optimal labelling, if the method is exact.
    """

    objective: float
    lower_bound: float
    bound_status: BoundStatus
    method: str
    exact: bool
    optimal_labels: NDArray[np.int8] | None = None

    def __str__(self) -> str:
        what = "optimum" if self.exact else "lower bound"
        return (
            f"objective {self.objective:.6g}, {what} {self.lower_bound:.6g} "
            f"({self.bound_status}, {self.method}), gap {self.gap:.3g} "
            f"({100.0 * self.relative_gap:.3g} %)"
        )

    def _repr_html_(self) -> str:
        what = "optimum" if self.exact else "lower bound"
        note = (
            "No labelling is better." if self.gap == 0 and self.bound_status == "certified" else ""
        )
        return card(
            "Certificate",
            [
                ("objective", float(self.objective)),
                (what, f"{self.lower_bound:.6g} ({self.bound_status}, by {self.method})"),
                ("gap", f"{self.gap:.3g} ({100.0 * self.relative_gap:.3g} %)"),
            ],
            note,
        )


def certify(problem: Problem, labels: ArrayLike, *, method: str | None = None) -> Certificate:
    """Bound how far a labelling is from the optimum.

    Parameters
    ----------
    problem : GraphProblem or BinaryQuadratic
        The problem.
    labels : array-like of shape (n_nodes,)
        +1 or -1 for every node, in agreement with the known labels.
    method : str, optional
        Method for the bound: "min-cut", "branch-and-bound", "search", "sdr-interior-point" or
        "sdr-low-rank". The default is the exact minimum cut if it is valid, else branch and bound
        for up to 60 variables, else the semidefinite relaxation of "search".

    Returns
    -------
    Certificate
        Objective, bound and gap.

    Raises
    ------
    ValueError
        If `labels` is not a labelling of the problem.

    Examples
    --------
    >>> import gdpa
    >>> problem = gdpa.GraphProblem([[0, 1, 0], [1, 0, 2], [0, 2, 0]], [1, 0, -1])
    >>> certificate = gdpa.certify(problem, [1, 1, -1])
    >>> certificate.objective, round(certificate.gap, 6), certificate.optimal_labels.tolist()
    (8.0, 4.0, [1, -1, -1])
    """
    if not isinstance(problem, GraphProblem | BinaryQuadratic):
        raise TypeError(
            "problem must be a gdpa.GraphProblem or a gdpa.BinaryQuadratic, "
            f"got {type(problem).__name__}"
        )
    x = _check_labeling(problem, labels)
    objective = problem.objective(x)
    if method is None:
        method = choose_method(problem) if problem.signed else "min-cut"
    solution = _bound(problem, method)
    # An exact method that stopped early has proved a bound, not the optimum.
    exact = get_solver(solution.method).kind == "exact" and solution.converged
    return Certificate(
        objective=objective,
        # A bound that is the optimum itself may exceed the objective by a rounding error.
        lower_bound=min(solution.lower_bound, objective),
        bound_status=solution.bound_status,
        method=solution.method,
        exact=exact,
        optimal_labels=solution.labels if exact else None,
    )


def _bound(problem: Problem, method: str) -> Solution:
    accepted = ("min-cut", "branch-and-bound", "search", "sdr-interior-point", "sdr-low-rank")
    if method not in accepted:
        raise ValueError(f"method={method!r} gives no bound here; accepted: {', '.join(accepted)}")
    # Only the bound of the search is needed.
    options: dict[str, Any] = {"effort": 1e-3} if method == "search" else {}
    with warnings.catch_warnings():
        # These warnings are about the labels of the method, which are not used.
        warnings.simplefilter("ignore", UnreachedWarning)
        warnings.simplefilter("ignore", DegenerateProblemWarning)
        return get_solver(method)(**options).solve(problem)


def _check_labeling(problem: Problem, labels: ArrayLike) -> NDArray[np.int8]:
    x = check_vector(labels, problem.n_nodes, "labels")
    binary = isinstance(problem, BinaryQuadratic) and problem.domain == "binary"
    wrong = np.flatnonzero((x != 1.0) & (x != (0.0 if binary else -1.0)))
    if wrong.size:
        i = int(wrong[0])
        accepted = "0 or 1" if binary else "+1 or -1"
        raise ValueError(f"labels[{i}] is {x[i]:g}; a labelling has {accepted} for every node")
    if isinstance(problem, GraphProblem):
        known = problem.labeled
        broken = known[x[known] != problem.labels[known]]
        if broken.size:
            i = int(broken[0])
            raise ValueError(
                f"labels[{i}] is {x[i]:+g}, but the known label of that node is "
                f"{problem.labels[i]:+d}"
            )
    return x.astype(np.int8)
