"""What a fitted classifier knows: graph, labels, setting, scores, and how they become labels.

One frozen record, so that fitting, adding labels, saving and loading all end in the same thing. A
fitted :class:`~gdpa.GDPAClassifier` shows it as ``state_``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gershgorin.bounds import class_bounds
from ..problem import ClassProblem
from ..solution import Solution
from ..system import LabeledSystem
from .evidence import Evidence
from .graphs import ClassifierGraph
from .labels import LabelCoding, wider
from .new_rows import NewRows
from .probabilities import sharpen, to_shares, winners
from .tuning import Setting, Tuning

__all__ = ["FitRun", "FittedState"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FitRun:
    """How the scores were solved for.

    Parameters
    ----------
    tol : float
        Relative residual asked for.
    iterations, matvecs, edge_visits : int
        Iterations, products with one vector, and stored entries read in them.
    residual : float
        Largest relative residual.
    converged, exact : bool
        Whether the tolerance was met, and whether by a factorisation.
    method, message : str
        Method, and why it stopped.
    drift : float
        Residual that updates since the last whole solve may have left.
    active : int
        Nodes that the last update relaxed; 0 for a whole solve.
    seconds : mapping of str to float
        Time per stage.
    bounds : ndarray or None
        Certified lower bounds of the classes against the rest; None: not computed yet.
    """

    tol: float = 1e-6
    iterations: int = 0
    matvecs: int = 0
    edge_visits: int = 0
    residual: float = 0.0
    converged: bool = True
    exact: bool = False
    method: str = ""
    message: str = ""
    drift: float = 0.0
    active: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    bounds: FloatArray | None = None


@dataclass(frozen=True)
class FittedState(NewRows):
    """A fitted classifier.

    Parameters
    ----------
    graph : ClassifierGraph
        The graph.
    coding : LabelCoding
        Class numbers of the nodes and the classes.
    tuning : Tuning
        The setting in use, and how it was chosen.
    scores : ndarray of shape (n_nodes, n_classes)
        Solution of the system, column by column; non-negative up to rounding.
    shares : ndarray of shape (n_nodes, n_classes)
        The scores, rows divided by their sums; the prior where nothing is known.
    labels : ndarray of int of shape (n_nodes,)
        Class number of every node; given labels are kept.
    prior : ndarray of shape (n_classes,)
        What unreached nodes get.
    sharpness : float
        Exponent that makes the shares probabilities.
    offset : ndarray of shape (n_classes,)
        Shift of the thresholds that matches the class prior; zeros without one.
    unreached : ndarray of int
        Nodes without a path to a label.
    run : FitRun
        How the scores were solved for.
    evidence : Evidence or None
        Fitted models.
    splits : tuple of Solution
        Records of the binary problems of a tree; empty otherwise.
    committee : Committee or None
        Who votes beside the graph (:mod:`gdpa.estimators.committee`): `shares`, `labels` and
        `sharpness` are theirs too then.
    own_shares : ndarray of shape (n_nodes, n_classes) or None
        What the graph alone says, where there is a committee.
    """

    graph: ClassifierGraph
    coding: LabelCoding
    tuning: Tuning
    scores: FloatArray
    shares: FloatArray
    labels: NDArray[np.intp]
    prior: FloatArray
    sharpness: float
    offset: FloatArray
    unreached: NDArray[np.intp]
    run: FitRun
    evidence: Evidence | None = None
    splits: tuple[Solution, ...] = ()
    committee: Any = None
    own_shares: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Records of single binary problems are large and read-only; they are not carried along.
        return self.__dict__ | {"splits": ()}

    @property
    def setting(self) -> Setting:
        """The setting in use."""
        return self.tuning.setting

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.scores.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.coding.classes.size)

    @property
    def _graph_shares(self) -> FloatArray:
        """What the graph alone says about the nodes."""
        return self.shares if self.own_shares is None else self.own_shares

    def problem(self) -> ClassProblem:
        """What was solved."""
        return self.graph.problem(self.coding, self.evidence, self.setting.evidence_weight)

    def system(self) -> LabeledSystem:
        """The system that the scores solve."""
        setting = self.setting
        return LabeledSystem.of_classes(self.problem(), setting.label_weight, setting.self_loop)

    def probabilities(self, shares: FloatArray | None = None) -> FloatArray:
        """Calibrated probabilities of the nodes, or of the given shares."""
        return sharpen(self.shares if shares is None else shares, self.sharpness, self.offset)

    def winners(self, shares: FloatArray) -> NDArray[np.intp]:
        """Class number of each row of shares."""
        return winners(shares, self.sharpness, self.offset)

    def left_out(self) -> tuple[NDArray[np.intp], FloatArray] | None:
        """Labelled nodes that were left out, and their shares without their own label.

        Returns
        -------
        nodes : ndarray of int
            The nodes.
        shares : ndarray of shape (n_left_out, n_classes)
            Rows that add up to 1; None in place of both where nothing was left out.
        """
        scores, nodes = self.tuning.left_out, self.coding.labeled
        if self.tuning.checked is not None:
            nodes = nodes[self.tuning.checked]
        if scores is None or scores.shape[0] != nodes.size:
            return None
        return nodes, to_shares(scores, self.prior)

    def solutions(self, method: str = "gdpa") -> tuple[Solution, ...]:
        """One record per class against the rest (two classes: one, for the second class)."""
        if self.splits:
            return self.splits
        problem, run = self.problem(), self.run
        bounds = class_bounds(problem) if run.bounds is None else run.bounds
        known = ("residual", "matvecs", "edge_visits", "drift")
        info = MappingProxyType({name: getattr(run, name) for name in known})
        judged = range(1, 2) if self.n_classes == 2 else range(self.n_classes)
        records = []
        for c, bound in zip(judged, bounds.tolist(), strict=True):
            x = np.where(self.labels == c, 1, -1).astype(np.int8)
            certified = bool(np.isfinite(bound)) and method == "gdpa"
            records.append(
                Solution(
                    method=method,
                    labels=x,
                    scores=2.0 * self.scores[:, c] - self.scores.sum(axis=1),
                    objective=problem.against_rest(c).objective(x),
                    lower_bound=bound if certified else -np.inf,
                    bound_status="certified" if certified else "none",
                    iterations=run.iterations,
                    converged=run.converged,
                    message=run.message,
                    unreached=self.unreached,
                    seconds=MappingProxyType(dict(run.seconds)),
                    info=info,
                )
            )
        return tuple(records)

    def objective(self) -> float:
        """Smoothness ``x' L x`` of the labels; with more classes half the sum over classes.

        For each class x is +1 on its nodes and -1 on all others; with two classes both terms are
        equal, and the result is the objective of the binary problem.
        """
        problem = self.problem()
        total = [
            problem.against_rest(c).objective(np.where(self.labels == c, 1.0, -1.0))
            for c in range(self.n_classes)
        ]
        with np.errstate(over="ignore"):
            value = float(np.sum(total) * (0.5 if self.n_classes > 1 else 1.0))
        return min(value, float(np.finfo(float).max))

    def with_classes(self, classes: NDArray[Any]) -> FittedState:
        """The same state with more classes, which nothing speaks for yet.

        Parameters
        ----------
        classes : ndarray
            Sorted; those known among them.

        Returns
        -------
        FittedState
            The state; the columns of new classes are 0.
        """
        place = np.searchsorted(classes, self.coding.classes)
        codes = self.coding.codes
        parts: dict[str, Any] = {}
        for name in ("scores", "shares", "prior", "offset", "own_shares"):
            columns = getattr(self, name)
            parts[name] = None if columns is None else wider(columns, place, classes.size)
        for name in ("evidence", "committee"):
            known = getattr(self, name)
            parts[name] = None if known is None else known.with_classes(classes, place)
        left_out = self.tuning.left_out
        if left_out is not None:
            left_out = wider(left_out, place, classes.size)
        # One class is not solved for: the first label of a second one does it.
        drift = np.inf if self.n_classes == 1 else self.run.drift
        return replace(
            self,
            coding=LabelCoding(np.where(codes < 0, codes, place[codes]).astype(np.int32), classes),
            tuning=replace(self.tuning, left_out=left_out),
            labels=place[self.labels],
            run=replace(self.run, bounds=None, drift=drift),
            splits=(),
            **parts,
        )
