"""The results of solvers: one frozen dataclass for all methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .notebook import card
from .problem.dual import DualVariables

__all__ = ["BoundStatus", "DualVariables", "Solution", "relative_gap"]

BoundStatus = Literal["certified", "estimated", "none"]


def relative_gap(objective: float, lower_bound: float) -> float:
    """Return the gap between objective and lower bound, relative to the larger of the two.

    Parameters
    ----------
    objective : float
        Objective of a labelling.
    lower_bound : float
        Lower bound of the objective; -inf if there is none.

    Returns
    -------
    float
        0 if the objective equals its bound, infinite if there is no bound.
    """
    gap = float(max(objective - lower_bound, 0.0))
    if gap == 0.0 or not np.isfinite(gap):
        return gap
    return gap / max(abs(objective), abs(lower_bound))


@dataclass(frozen=True, repr=False)
class Solution:
    """Labels, scores and a bound on the objective.

    Parameters
    ----------
    method : str
        Name of the method.
    labels : ndarray of int8 of shape (n_nodes,)
        +1 or -1 for every node; known labels are kept.
    scores : ndarray of shape (n_nodes,)
        Real-valued scores behind the labels; 0 for unreached nodes. Never NaN.
    objective : float
        Objective of `labels`, which is minimised.
    lower_bound : float
        Lower bound of the objective of any labelling; -inf if there is none.
    bound_status : {"certified", "estimated", "none"}
        "certified" is proved, with rounding accounted for. "estimated" comes from a computation
        that converged, but is not a proof. "none" means that the method gives no bound.
    bound_kind : str
        What the bound is a bound of: "optimum" (of the problem itself), "relaxation"
        (semidefinite), "box" (labels relaxed to [-1, 1]), "eigenvalue", "trivial" (the smaller
        side of every node's vote) or "none".
    iterations : int
        Number of iterations of the outermost loop.
    converged : bool
        Whether the method met its stopping rule.
    message : str
        Why the method stopped.
    dual : DualVariables or mapping of arrays or None
        Dual variables, if the method has any.
    history : tuple of dict
        Values reported by the method, one entry per iteration.
    seconds : mapping of str to float
        Time per stage.
    unreached : ndarray of int
        Nodes in components without label or evidence. They get the majority label and score 0.
    info : mapping
        Additional results of this method.
    sense : {"minimise", "maximise"}
        Direction of `value` and `bound`. The objective is always minimised; for a maximisation
        problem it is minus the value.
    """

    method: str
    labels: NDArray[np.int8]
    scores: NDArray[np.float64]
    objective: float
    lower_bound: float = -np.inf
    bound_status: BoundStatus = "none"
    bound_kind: str = "none"
    iterations: int = 0
    converged: bool = True
    message: str = ""
    dual: DualVariables | Mapping[str, NDArray[np.float64]] | None = None
    history: tuple[Mapping[str, Any], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    unreached: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    info: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    sense: Literal["minimise", "maximise"] = "minimise"

    @property
    def value(self) -> float:
        """Value of the labels in the units and direction of the problem, such as a cut."""
        return self.objective if self.sense == "minimise" else -self.objective

    @property
    def bound(self) -> float:
        """Bound of the value: a lower bound if it is minimised, an upper bound if maximised."""
        return self.lower_bound if self.sense == "minimise" else -self.lower_bound

    @property
    def gap(self) -> float:
        """Objective minus lower bound; infinite if there is no bound."""
        return float(max(self.objective - self.lower_bound, 0.0))

    @property
    def relative_gap(self) -> float:
        """Gap over the larger absolute value of objective and lower bound; 0 where both are 0."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def _value_name(self) -> str:
        return "objective" if self.sense == "minimise" else "value"

    @property
    def _bound_name(self) -> str:
        return "lower bound" if self.sense == "minimise" else "upper bound"

    def __str__(self) -> str:
        bound = (
            "no bound"
            if self.bound_status == "none"
            else f"{self._bound_name} {self.bound:.6g} "
            f"({self.bound_status}, {self.bound_kind}, gap {self.gap:.3g})"
        )
        state = "converged" if self.converged else "NOT converged"
        return (
            f"{self.method}: {self._value_name} {self.value:.6g}, {bound}, {state} in "
            f"{self.iterations} iterations, {sum(self.seconds.values()):.3g} s"
        )

    def __repr__(self) -> str:
        """Return a short description with the number of nodes."""
        return f"<Solution of {self.labels.size} nodes by {self}>"

    def _repr_html_(self) -> str:
        bound = "none" if self.bound_status == "none" else f"{self.bound:.6g}"
        positive = int((self.labels > 0).sum())
        facts = [
            ("nodes", f"{self.labels.size:,} ({positive:,} labelled +1)"),
            (self._value_name, float(self.value)),
            (
                self._bound_name,
                f"{bound} ({self.bound_status}, {self.bound_kind})" if bound != "none" else bound,
            ),
            ("gap", f"{self.gap:.3g}" if bound != "none" else "unknown"),
            ("converged", f"{'yes' if self.converged else 'NO'}, {self.iterations} iterations"),
            ("seconds", f"{sum(self.seconds.values()):.3g}"),
        ]
        if self.unreached.size:
            facts.append(("nodes without a path to a label", f"{self.unreached.size:,}"))
        return card(f"Solution by {self.method}", facts, self.message)


@dataclass(frozen=True)
class ClassSolution:
    """Scores of several classes on one graph, and how they were computed.

    Parameters
    ----------
    method : str
        Name of the method.
    scores : ndarray of shape (n_nodes, n_classes)
        One column per class; 0 on unreached nodes.
    lower_bounds : ndarray or None
        Certified trivial bound of each class against the rest; None if not computed.
    iterations, matvecs : int
        Number of iterations of the linear solver, and of products with the matrix.
    residual : float
        Largest relative residual of a column.
    converged, exact : bool
        Whether the tolerance was met, and whether by a factorisation.
    message : str
        Why the solver stopped.
    seconds : mapping of str to float
        Time per stage.
    """

    method: str
    scores: NDArray[np.float64]
    lower_bounds: NDArray[np.float64] | None = None
    iterations: int = 0
    matvecs: int = 0
    residual: float = 0.0
    converged: bool = True
    exact: bool = False
    message: str = ""
    seconds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
