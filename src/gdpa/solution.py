"""What a solver returns: one frozen record for all methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .notebook import card
from .problem.dual import DualVariables

__all__ = ["BoundStatus", "Bounded", "DualVariables", "Solution"]

BoundStatus = Literal["certified", "estimated", "none"]


class Bounded:
    """An objective and a lower bound of it."""

    objective: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Objective minus lower bound: the largest possible improvement; infinite without one."""
        return float(max(self.objective - self.lower_bound, 0.0))

    @property
    def relative_gap(self) -> float:
        """Gap over the larger absolute value of objective and lower bound; 0 where both are 0."""
        if self.gap == 0.0 or not np.isfinite(self.gap):
            return self.gap
        return self.gap / max(abs(self.objective), abs(self.lower_bound))


@dataclass(frozen=True, repr=False)
class Solution(Bounded):
    """Labels, scores, and how good they are.

    Parameters
    ----------
    method : str
        Name of the method.
    labels : ndarray of int8 of shape (n_nodes,)
        +1 or -1 for every node; known labels are kept.
    scores : ndarray of shape (n_nodes,)
        Real-valued evidence behind the labels; 0 on unreached nodes. Never NaN.
    objective : float
        Objective of the problem at `labels` (to be minimised).
    lower_bound : float
        No labelling can have a smaller objective, if `bound_status` says so; -inf if there is none.
    bound_status : {"certified", "estimated", "none"}
        "certified": proved, up to rounding that is accounted for. "estimated": from a computation
        that converged but is not a proof. "none": the method gives no bound.
    bound_kind : str
        What the bound is a bound of: "optimum" (of the problem itself), "relaxation"
        (semidefinite), "box" (labels relaxed to [-1, 1]), "eigenvalue", "trivial" (the smaller
        side of every node's vote) or "none".
    iterations : int
        Iterations of the outermost loop.
    converged : bool
        Whether the stopping rule of the method was met.
    message : str
        Why it stopped, in words.
    dual : DualVariables or mapping of arrays or None
        Dual variables, where the method has some.
    history : tuple of dict
        One entry per iteration: what the method reports.
    seconds : mapping of str to float
        Time per stage.
    unreached : ndarray of int
        Nodes in components without label or evidence. They get the majority label and score 0.
    info : mapping
        Details specific to the method.
    sense : {"minimise", "maximise"}
        Direction of `value` and `bound`. The objective is always minimised: it is minus the value
        of a problem that is maximised.
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
        """Value of the labels in the units of the problem, such as the size of a cut."""
        return self.objective if self.sense == "minimise" else -self.objective

    @property
    def bound(self) -> float:
        """Bound of the value: from below if it is minimised, from above if it is maximised."""
        return self.lower_bound if self.sense == "minimise" else -self.lower_bound

    @property
    def erased(self) -> bool:
        """Whether the method gave every label the weight 0, so that it ignored the labels."""
        return bool(self.info.get("erased", False))

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
        if self.erased:
            state += ", labels ERASED"
        return (
            f"{self.method}: {self._value_name} {self.value:.6g}, {bound}, {state}, "
            f"iterations: {self.iterations}, {sum(self.seconds.values()):.3g} s"
        )

    def __repr__(self) -> str:
        """Short: arrays by their size."""
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
            ("converged", f"{'yes' if self.converged else 'NO'}, iterations: {self.iterations}"),
            ("seconds", f"{sum(self.seconds.values()):.3g}"),
        ]
        if self.erased:
            facts.append(("labels", "erased: the method gave every label the weight 0"))
        if self.unreached.size:
            facts.append(("nodes without a path to a label", f"{self.unreached.size:,}"))
        return card(f"Solution by {self.method}", facts, self.message)
