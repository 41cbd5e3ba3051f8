"""GDPAClassifier: the paper's system, with the repairs that it needs to classify."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from ..gershgorin import Discs, discs
from ..problem import GraphProblem
from ..problem.dual import DualVariables, build_H_bar
from ..solution import Solution
from .base import BaseClassifier
from .graph_classifier import GraphClassifier
from .options import GraphOptions


class GDPAClassifier(GraphClassifier):
    """The classifier of the paper: similarity graph, balanced dual, aligned discs, labels.

    From the paper come the similarity graph, the dual of the semidefinite relaxation with its
    balanced split H_bar, the linear programs with aligned Gershgorin discs, and labels from the
    first eigenvector of H. Repaired are the weight of the labels, which the paper's start and its
    linear programs leave too small or erase, the sign, which one label decided, and the recovery,
    which falls back to complementary slackness where the eigenvector provably need not classify.
    Complementary slackness at the same dual optimum is the harmonic function of the graph, with
    labels of finite weight.

    Parameters
    ----------
    graph : {"knn", "full", "precomputed"}, default="knn"
        Nearest neighbours (100,000 samples and more), the paper's graph of all pairs (a few
        thousand samples), or X is the graph.
    n_neighbors : int, default=10
        Neighbours per sample of a "knn" graph.
    variant : {"repaired", "published"}, default="repaired"
        "published" runs the program of the paper's authors (method "gdpa-published"): their scale
        and tolerances, at which the result is mostly a vote of the labelled neighbours. It ignores
        `recovery`, `label_weight`, `start` and `sign`. Their graph is ``graph="full"``.
    recovery : {"auto", "eigenvector", "linear"}, default="auto"
        How labels are read off the dual optimum: by the first eigenvector of H, by complementary
        slackness ("linear"), or by the eigenvector where its eigenvalue is provably at most half of
        the smallest eigenvalue of the unlabelled nodes, and by slackness elsewhere ("auto").
    label_weight : float or "auto", default="auto"
        Weight a of the labels in the dual. "auto" is 100 times the largest degree of a labelled
        sample.
    start : {"optimal", "paper"}, default="optimal"
        Where the linear programs start: at the optimum of the dual, which has a closed form, or at
        the paper's point. On the normalised Laplacian the first linear program after the paper's
        start erases the labels.
    sign : {"majority", "first"}, default="majority"
        Whether most labels or the first label determine the sign of the eigenvector.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        The Laplacian of the paper's experiments, or that of its text.
    bandwidth : {"auto", "self-tuning", "median"} or float, default="auto"
        sigma of the weights ``exp(-d^2 / sigma^2)``. "auto" is 1 for a full graph, as in the paper,
        and "self-tuning" for neighbours.
    rescale : {None, "minmax", "standard"}, default=None
        Rescaling of the features: columns to [0, 1], or standardised columns and rows of unit
        length. The paper reports both.
    multiclass : {"tree", "one-vs-rest"}, default="tree"
        How several classes are handled: by nested binary splits, as the paper suggests, or
        one-vs-rest.
    unlabeled : object, default=-1
        Marker of an unknown label in y; None or NaN mean all missing values.
    abstain_below : float, optional
        `predict` returns the marker `unlabeled` if the largest probability is below this value.
    n_jobs : int, optional
        Number of threads; results do not depend on it.
    random_state : int, default=0
        Random seed.
    verbose : int, default=0
        As in :class:`CommitteeClassifier`.

    Attributes
    ----------
    recovery_ : str or tuple of str
        Which recovery was used, "eigenvector" or "linear"; with more than two classes, one per
        binary problem.
    recovery_reason_ : str or tuple of str
        Why.
    dual_ : DualVariables
        Dual point with y and z; two classes only, like the next three.
    H_bar_ : csr_array of shape (n_samples + 2, n_samples + 2)
        The balanced matrix at the dual point, whose last node is split in two.
    discs_ : Discs
        Gershgorin discs of H_bar, aligned by ``(1, ..., 1, 1, -1)`` at the dual optimum.
    n_programs_ : int
        Number of linear programs.
    solution_ : Solution or tuple of Solution
        The solution with its bound; see :class:`GraphClassifier` for all other attributes.

    See Also
    --------
    CommitteeClassifier : Several models; more accurate on most data.
    GraphClassifier : The same graph with any other method, and a certified bound.

    Notes
    -----
    The paper to the letter is ``recovery="eigenvector", label_weight=1, sign="first"`` with
    ``start="paper"``, on the combinatorial Laplacian of its text.

    Examples
    --------
    >>> from gdpa import GDPAClassifier
    >>> X = [[0.0], [0.2], [0.4], [3.0], [3.2], [3.4]]
    >>> model = GDPAClassifier(n_neighbors=2).fit(X, [0, -1, -1, -1, -1, 1])
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.recovery_
    'eigenvector'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseClassifier._parameter_constraints,
        "variant": [StrOptions({"repaired", "published"})],
        "recovery": [StrOptions({"auto", "eigenvector", "linear"})],
        "label_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "start": [StrOptions({"optimal", "paper"})],
        "sign": [StrOptions({"majority", "first"})],
        "laplacian": [StrOptions({"normalized", "combinatorial"})],
        "bandwidth": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto", "self-tuning", "median"}),
        ],
    }
    self_loop = 0.0
    class_prior = None

    def __init__(
        self,
        *,
        graph: str = "knn",
        n_neighbors: int = 10,
        variant: str = "repaired",
        recovery: str = "auto",
        label_weight: float | str = "auto",
        start: str = "optimal",
        sign: str = "majority",
        laplacian: str = "normalized",
        bandwidth: str | float = "auto",
        rescale: str | None = None,
        multiclass: str = "tree",
        unlabeled: object = -1,
        abstain_below: float | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.variant = variant
        self.recovery = recovery
        self.label_weight = label_weight
        self.start = start
        self.sign = sign
        self.laplacian = laplacian
        self.bandwidth = bandwidth
        self.rescale = rescale
        self.multiclass = multiclass
        self.unlabeled = unlabeled
        self.abstain_below = abstain_below
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def method(self) -> str:  # type: ignore[override]
        """Name of the solver."""
        return "gdpa-published" if self.variant == "published" else "gdpa"

    @property
    def options(self) -> GraphOptions:  # type: ignore[override]
        """The options of the graph and of the solver."""
        bandwidth = self.bandwidth
        if bandwidth == "auto":
            bandwidth = 1.0 if self.graph == "full" else "self-tuning"
        given: dict[str, Any] = {}
        if self.variant == "repaired":
            given["method_options"] = {
                "recovery": self.recovery,
                "label_weight": self.label_weight,
                "start": self.start,
                "sign": self.sign,
            }
        return GraphOptions(
            bandwidth=bandwidth,
            rescale=self.rescale,  # type: ignore[arg-type]
            laplacian=self.laplacian,  # type: ignore[arg-type]
            **given,
        )

    def _records(self) -> tuple[Solution, ...]:
        found = self.solution_
        return found if isinstance(found, tuple) else (found,)

    def _facts(self, name: str) -> Any:
        """Return what the solver reports under a name, for each binary problem."""
        found = tuple(str(record.info.get(name, "")) for record in self._records())
        return found[0] if len(found) == 1 else found

    @property
    def recovery_(self) -> str | tuple[str, ...]:
        """Which recovery was used for each binary problem."""
        found: str | tuple[str, ...] = self._facts("recovery")
        return found

    @property
    def recovery_reason_(self) -> str | tuple[str, ...]:
        """Why this recovery was used; empty if it was asked for."""
        found: str | tuple[str, ...] = self._facts("reason")
        return found

    @property
    def n_programs_(self) -> int:
        """Number of linear programs, summed over binary problems."""
        return int(sum(record.iterations for record in self._records()))

    @property
    def dual_(self) -> DualVariables:
        """The dual point."""
        return self._binary_dual()[1]

    @property
    def H_bar_(self) -> sp.csr_array:
        """The balanced matrix at the dual point."""
        return build_H_bar(*self._binary_dual())

    @property
    def discs_(self) -> Discs:
        """Gershgorin discs of H_bar, aligned by the vector that is optimal for the split dual."""
        H_bar = self.H_bar_
        v = np.ones(H_bar.shape[0])
        v[-1] = -1.0
        return discs(H_bar, v=v)

    def _binary_dual(self) -> tuple[GraphProblem, DualVariables]:
        """Return the binary problem and its dual point."""
        solution = self._records()[0]
        dual = solution.dual
        if self.classes_.size != 2 or not isinstance(dual, DualVariables):
            raise AttributeError(
                "dual_, H_bar_ and discs_ exist after fit with exactly two classes, and not after "
                "loading a model; fit one class against the rest"
            )
        labels = np.where(self.ensemble_.labels.codes >= 0, solution.labels, 0)
        problem = GraphProblem(self.graph_, labels, laplacian=self.laplacian)
        part = solution.info.get("solved_nodes")
        if part is not None:  # samples without a path to a label are not part of the dual
            reached = np.zeros(problem.n_nodes, dtype=bool)
            reached[part] = True
            problem = problem.restricted(reached)
        return problem, dual
