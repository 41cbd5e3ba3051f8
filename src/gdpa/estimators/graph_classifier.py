"""GraphClassifier, which uses one graph and one method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from ..graph.signed import BalanceResult, balance
from ..solvers.registry import METHODS
from .base import BaseClassifier
from .options import GraphOptions
from .single_graph import fit_single_graph


class GraphClassifier(BaseClassifier):
    """Semi-supervised classifier on one graph of the samples, by one method.

    With ``method="harmonic"`` the scores of the classes solve

        (L + diag(a + gamma)) F = a Y

    with the labels Y, their weight a, and a self-loop gamma that keeps their influence local. Other
    methods solve binary problems. With several classes each class is solved against the rest, and
    the largest score wins.

    Parameters
    ----------
    graph : {"knn", "full", "precomputed"}, default="knn"
        k-nearest neighbours, all pairs (small data only), or X is the graph: a symmetric matrix, a
        NetworkX graph or an edge list. A negative weight means that two samples tend to differ. It
        requires exactly two classes, and the signed Laplacian measures smoothness.
    n_neighbors : int or "auto", default="auto"
        Neighbours per sample. "auto" chooses 10, 15 or 20 by cross-validation; it is 10 with more
        than 5,000 samples or too few labels.
    method : str, default="harmonic"
        Name of the method (:func:`gdpa.list_methods`). The held-out accuracy, the loss in
        ``tuning_`` and the calibration belong to this method: it is refitted five times, each time
        without a fifth of the labels (three times with more than 10,000 samples). The settings
        "auto" are chosen by the harmonic function. If the graph has negative weights,
        "harmonic" means the method that :func:`gdpa.solve` chooses: "min-cut" if they are balanced,
        otherwise "branch-and-bound" or "search".
    label_weight : float or "auto", default="auto"
        Weight a of the labels; ``inf`` keeps the scores of the given labels exactly.
    self_loop : float or "auto", default="auto"
        Self-loop gamma. "auto" chooses this and `label_weight` by cross-validation: leave-one-out
        in closed form where that is affordable, otherwise k-fold (one fold above 50,000 samples and
        1,000 labels). If classes with at least 2 labels have fewer than 8 labels in total, the
        values are 0.01 (times the mean diagonal of the Laplacian) and inf.
    class_prior : None, "labeled" or array-like of shape (n_classes,), default=None
        Shifts the probabilities so that the class masses of the unlabelled samples match the class
        shares of the labels ("labeled") or the given shares (in the order of ``classes_``). None
        means no shift.
    unlabeled : object, default=-1
        Marker of an unknown label in y; None or NaN mean all missing values.
    abstain_below : float, optional
        `predict` returns the marker `unlabeled` if the largest probability is below this value.
    n_jobs : int, optional
        Number of threads. None uses all processors up to 8 (or OMP_NUM_THREADS), -1 uses all.
        Results do not depend on it.
    random_state : int, default=0
        Random seed of the approximate neighbour search.
    verbose : int, default=0
        As in :class:`CommitteeClassifier`.
    options : GraphOptions, optional
        Expert options.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n_samples,)
        Label of every sample of `fit`. Given labels are kept, even if `label_weight` is finite and
        another class has a larger score. `predict` keeps them too.
    label_scores_ : ndarray of shape (n_samples, n_classes)
        Share of each class in the sample's scores. Rows add up to 1.
    graph_ : csr_array of shape (n_samples, n_samples)
        The weights.
    solution_ : Solution or tuple of Solution
        Solution with a certified lower bound; with more than two classes one per class against the
        rest.
    balance_ : BalanceResult
        Whether the signs of all weights can be satisfied; see :func:`gdpa.graph.balance`.
    objective_ : float
        Smoothness ``x' L x`` of ``transduction_``; see :class:`~gdpa.GraphProblem`.
    tuning_ : Tuning
        The chosen setting, its held-out loss, and how it was measured.
    label_weight_, self_loop_ : float
        The weights in use.
    n_neighbors_ : int or None
        Neighbours in use.
    n_iter_ : int
        Iterations of the linear solve (1 for a factorisation).
    unreached_ : ndarray of int
        Samples that no label reaches. They get the prior class.
    unsure_ : ndarray of bool of shape (n_samples,)
        Unlabelled samples with a probability below `abstain_below`.
    skipped_ : ndarray of int
        Samples passed to :meth:`skip`.
    columns_ : ColumnList
        After fit on a data frame: how each column was encoded, and why.
    encoder_ : TableEncoder
        After fit on a data frame: the fitted encoder.
    ensemble_ : SingleGraph
        The complete fitted state.
    n_features_in_ : int
        Number of features (columns of a data frame).
    feature_names_in_ : ndarray of str
        Names of the features, if X had names.

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

    def fit(
        self, X: object, y: ArrayLike, *, nodes: Iterable[Any] | None = None
    ) -> GraphClassifier:
        """Label all samples from those whose label is known.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features; with ``graph="precomputed"`` a symmetric matrix of shape (n_samples,
            n_samples), a NetworkX graph or a list of edges.
        y : array-like of shape (n_samples,)
            Labels of any type, with the marker `unlabeled` for unknown ones.
        nodes : iterable of nodes, optional
            For a NetworkX graph: its nodes in the order of y. It is not needed if the nodes are the
            integers 0 to n - 1, which are row numbers, or if they are the index of a pandas y.

        Returns
        -------
        GraphClassifier
            This object. After an error it is unchanged.
        """
        fitted, A, labels, options, rescaler = self._prepare(X, y, nodes)
        if options.method == "harmonic" and options.method_options:
            raise ValueError(
                f"method_options={options.method_options!r} cannot be used with method='harmonic'; "
                "use label_weight and self_loop"
            )
        fitted._adopt(fit_single_graph(A, labels, options, rescaler=rescaler))
        self.__dict__ = fitted.__dict__
        return self

    @property
    def balance_(self) -> BalanceResult:
        """Whether the signs of all weights can be satisfied, ignoring labels."""
        return balance(self.graph_)
