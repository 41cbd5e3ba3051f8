"""GraphClassifier: one graph, one method; and GDPAClassifier, the paper's."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from ..graph.signed import BalanceResult, balance
from ..solvers.registry import METHODS
from .base import BaseClassifier
from .ensemble import fit_single_graph
from .options import GraphOptions


class GraphClassifier(BaseClassifier):
    """Semi-supervised classifier on one graph of the samples, by one method.

    With ``method="harmonic"`` the scores of the classes solve

        (L + diag(a + gamma)) F = a Y

    with the labels Y, their weight a and a self-loop gamma that keeps their influence local. Other
    methods solve binary problems; with several classes one class against the rest, and the largest
    score wins.

    Parameters
    ----------
    graph : {"knn", "full", "precomputed"}, default="knn"
        Nearest neighbours, all pairs (small data only), or X is the graph: a symmetric matrix, a
        NetworkX graph or a list of edges. A negative weight says that two samples differ; it needs
        labels of two classes, and smoothness is measured by the signed Laplacian.
    n_neighbors : int or "auto", default="auto"
        Neighbours per sample. "auto" takes 10, 15 or 20, whichever predicts held-out labels best;
        10 with more than 5,000 samples or too few labels.
    method : str, default="harmonic"
        Method of the registry (:func:`gdpa.list_methods`). Where the graph has negative weights,
        "harmonic" stands for what :func:`gdpa.solve` chooses: "min-cut" where they are balanced,
        else "branch-and-bound" or "search".
    label_weight : float or "auto", default="auto"
        Weight a of the labels; ``inf`` keeps the given labels' scores exactly.
    self_loop : float or "auto", default="auto"
        Self-loop gamma. "auto" chooses this and `label_weight` by cross-validation: labels are held
        out one by one, in closed form, where that is affordable, else fold by fold (above 50,000
        samples and 1,000 labels: one fold). With fewer than 8 labels in classes of at least 2
        they are 0.01 (times the mean diagonal of the Laplacian) and inf.
    class_prior : None, "labeled" or array-like of shape (n_classes,), default=None
        Shifts the thresholds so that the class masses of the unlabelled samples match the shares
        of the labels, or those given (in the order of ``classes_``). None: no shift.
    unlabeled : object, default=-1
        Marker of an unknown label in y; None or NaN stand for all missing values.
    abstain_below : float, optional
        `predict` returns the marker `unlabeled` where the largest probability is below this.
    n_jobs : int, optional
        Threads: None for all processors, at most 8 (or OMP_NUM_THREADS), -1 for all. Results do not
        depend on it.
    random_state : int, default=0
        Random seed of approximate neighbour search.
    verbose : int, default=0
        As in :class:`CommitteeClassifier`.
    options : GraphOptions, optional
        Options for experts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n_samples,)
        Label of every sample of `fit`; given labels are kept, also where `label_weight` is finite
        and the scores are larger for another class. `predict` keeps them, too.
    label_scores_ : ndarray of shape (n_samples, n_classes)
        Share of each class in the sample's scores. Rows add up to 1.
    graph_ : csr_array of shape (n_samples, n_samples)
        The weights.
    solution_ : Solution or tuple of Solution
        Record of the solve, with its certified lower bound: one for two classes, one per class
        against the rest for more.
    balance_ : BalanceResult
        Whether the signs of the weights can all be satisfied; see :func:`gdpa.graph.balance`.
    objective_ : float
        Smoothness ``x' L x`` of ``transduction_``; see :class:`~gdpa.GraphProblem`.
    tuning_ : Tuning
        What was chosen, its loss on held-out labels, and how it was measured.
    label_weight_, self_loop_ : float
        The weights in use.
    n_neighbors_ : int or None
        Neighbours in use.
    n_iter_ : int
        Iterations of the linear solve (1 for a factorisation).
    unreached_ : ndarray of int
        Samples that no label reaches. They get the prior class.
    unsure_ : ndarray of bool of shape (n_samples,)
        Unlabelled samples that `abstain_below` applies to.
    skipped_ : ndarray of int
        Samples given to :meth:`skip`.
    columns_ : ColumnList
        After fit on a data frame: how each column was encoded, and why.
    encoder_ : TableEncoder
        After fit on a data frame: the fitted encoder.
    ensemble_ : Ensemble
        The whole fitted state.
    n_features_in_ : int
        Number of features (columns of a data frame).
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    See Also
    --------
    CommitteeClassifier : Several models; more accurate on most data.
    GDPAClassifier : The paper's classifier.

    Examples
    --------
    >>> from gdpa import GraphClassifier
    >>> X = [[0.0], [0.2], [0.4], [3.0], [3.2], [3.4]]
    >>> model = GraphClassifier(n_neighbors=2).fit(X, [0, -1, -1, -1, -1, 1])
    >>> model.transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.solution_.bound_status
    'certified'
    """

    _signed: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseClassifier._parameter_constraints,
        "method": [StrOptions(set(METHODS))],
    }

    def __init__(
        self,
        *,
        graph: str = "knn",
        n_neighbors: int | str = "auto",
        method: str = "harmonic",
        label_weight: float | str = "auto",
        self_loop: float | str = "auto",
        class_prior: str | ArrayLike | None = None,
        unlabeled: object = -1,
        abstain_below: float | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        verbose: int = 0,
        options: GraphOptions | None = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.method = method
        self.label_weight = label_weight
        self.self_loop = self_loop
        self.class_prior = class_prior
        self.unlabeled = unlabeled
        self.abstain_below = abstain_below
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.options = options

    def fit(self, X: object, y: ArrayLike) -> GraphClassifier:
        """Label all samples from those whose label is known.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features; with ``graph="precomputed"`` a symmetric matrix of shape (n_samples,
            n_samples), a NetworkX graph or a list of edges.
        y : array-like of shape (n_samples,)
            Labels of any kind, `unlabeled` where they are not known.

        Returns
        -------
        GraphClassifier
            This object. After an error it is as before.
        """
        fitted, A, labels, options, rescaler = self._prepare(X, y)
        if options.method == "harmonic" and options.method_options:
            raise ValueError(
                f"method_options={options.method_options!r} go with another method than "
                "'harmonic', which has label_weight and self_loop"
            )
        fitted._adopt(fit_single_graph(A, labels, options, rescaler=rescaler))
        self.__dict__ = fitted.__dict__
        return self

    @property
    def balance_(self) -> BalanceResult:
        """Whether the signs of the weights can all be satisfied, labels aside."""
        return balance(self.graph_)


class GDPAClassifier(GraphClassifier):
    """The paper's classifier, as its authors ran it.

    Full graph with the weights ``exp(-|f_i - f_j|^2)``, normalised Laplacian, the linear program of
    Gershgorin disc perfect alignment at the authors' tolerances (method "gdpa-published"), and for
    several classes a tree of nested binary splits. On the paper's splits it reproduces the row
    "GDPA" of their Table 2. It is here for comparison: for accuracy use
    :class:`CommitteeClassifier`, for one graph with a certificate :class:`GraphClassifier`. All
    pairs of samples are compared, so it takes a few thousand samples at most.

    Parameters
    ----------
    rescale : {None, "minmax", "standard"}, default=None
        Re-scaling of the features: columns to [0, 1], or standardised columns and rows of unit
        length. The paper reports both.
    multiclass : {"tree", "one-vs-rest"}, default="tree"
        Several classes by nested binary splits, as the paper suggests, or by one class against the
        rest.
    unlabeled : object, default=-1
        Marker of an unknown label in y; None or NaN stand for all missing values.
    abstain_below : float, optional
        `predict` returns the marker `unlabeled` where the largest probability is below this.
    n_jobs : int, optional
        Threads; results do not depend on it.
    random_state : int, default=0
        Random seed of :meth:`query`.
    verbose : int, default=0
        As in :class:`CommitteeClassifier`.

    See Also
    --------
    CommitteeClassifier : The estimator to use for accuracy.
    GraphClassifier : All attributes are as there.

    Examples
    --------
    >>> from gdpa import GDPAClassifier
    >>> X = [[0.0], [0.2], [0.4], [3.0], [3.2], [3.4]]
    >>> GDPAClassifier().fit(X, [0, -1, -1, -1, -1, 1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    graph = "full"
    n_neighbors = label_weight = self_loop = "auto"
    method = "gdpa-published"
    class_prior = None

    def __init__(
        self,
        *,
        rescale: str | None = None,
        multiclass: str = "tree",
        unlabeled: object = -1,
        abstain_below: float | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        verbose: int = 0,
    ) -> None:
        self.rescale = rescale
        self.multiclass = multiclass
        self.unlabeled = unlabeled
        self.abstain_below = abstain_below
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def options(self) -> GraphOptions:  # type: ignore[override]
        """The paper's kernel, of bandwidth 1, and the re-scaling asked for."""
        return GraphOptions(bandwidth=1.0, rescale=self.rescale)  # type: ignore[arg-type]
