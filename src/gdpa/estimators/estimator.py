"""GDPAClassifier: the estimator, and :func:`classify`, its function twin.

Features or a graph, labels for some rows, labels for all of them. The scores of the classes solve

    (L + diag(a + gamma + e)) F = a Y + e T

on a neighbour graph: labels Y with weight a, a self-loop gamma that keeps their influence local,
evidence T of other classifiers with weight e. By default several graphs, some of them learned from
the labels, and other models vote (:mod:`gdpa.estimators.committee`), each with the weight that it
earns by predicting labels left out. A single graph chooses its weights in the same way.
"""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from ..graph.features import check_features, warn_about_scales
from ..policy import DEFAULT_POLICY, Policy
from ..solvers.registry import METHODS
from .checking import Checking
from .committee import fit_committee, votes
from .evidence import check_models
from .fitting import fit_state
from .frames import encoded_rows
from .labeling import Labeling
from .labels import encode_labels
from .options import FitOptions
from .predicting import Predicting
from .probabilities import check_prior
from .showing import Showing
from .state import FittedState

__all__ = ["GDPAClassifier", "classify"]

FloatArray = NDArray[np.float64]

_POSITIVE = Interval(Real, 0, None, closed="neither")
_POSITIVE_INT = Interval(Integral, 1, None, closed="left")
_WEIGHT = Interval(Real, 0, None, closed="left")


class GDPAClassifier(Checking, Showing, Labeling, Predicting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Graph-based semi-supervised classifier.

    Parameters
    ----------
    graph : {"auto", "knn", "full", "precomputed"}, default="auto"
        "auto" lets a committee vote: the graph of nearest neighbours, the same in columns weighted
        by their importance or whitened, the graph of samples that share leaves of a forest, the
        forest, linear models, Gaussian classes and kernel machines. "knn" (also with another
        `method`, with ``multiclass="tree"`` or a number as `evidence_weight`) is the first alone,
        "full" links all pairs (small data only); with "precomputed" X is the graph: a
        symmetric non-negative matrix, a NetworkX graph or a list of edges.
    n_neighbors : int or "auto", default="auto"
        Neighbours per sample. "auto" takes 6 in a committee (10 of many); alone 10, 15 or 20,
        whichever predicts left-out labels best; 10 with more than 5,000 samples or too few labels.
    bandwidth : {"self-tuning", "median"} or float, default="self-tuning"
        sigma in the weights ``exp(-d^2 / (sigma_i sigma_j))``: each sample's distance to its 7th
        neighbour, the median distance, or a number.
    columns : mapping of str to str, or TableEncoder, optional
        For data frames: what some columns are ("number", "category", "text", "date" or "drop"),
        where it should not be found by looking; or the encoder to use.
    rescale : {None, "minmax", "standard"}, default=None
        Re-scaling of the features: columns to [0, 1], or standardised columns and rows of unit
        length.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Which Laplacian measures smoothness.
    algorithm : {"auto", "exact", "approximate", "faiss"}, default="auto"
        Neighbour search; see :func:`gdpa.graph.choose_algorithm`.
    multiclass : {"shared", "tree"}, default="shared"
        One block solve for all classes, or nested binary splits of the classes.
    method : str, default="gdpa"
        Method of the registry (:func:`gdpa.list_methods`). Others than "gdpa" solve binary
        problems; several classes then go through the tree.
    method_options : dict, optional
        Options of the method; they too lead through binary problems.
    label_weight : float or "auto", default="auto"
        Weight a of the labels; ``inf`` keeps the given labels' scores exactly.
    self_loop : float or "auto", default="auto"
        Self-loop gamma. In a committee "auto" for this and for `label_weight` is 0.03 (times the
        mean diagonal of the Laplacian) and inf. In a single graph labels are left out: one by one,
        in closed form, where that is affordable, else fold by fold (above 50,000 nodes and 1,000
        labels: one fold). With fewer than 8 labels in classes of at least 2 both take 0.01 and inf.
    evidence : classifier or list of classifiers, optional
        scikit-learn classifiers with `predict_proba`; they see the re-scaled features. In a
        committee they are members, judged like the others by labels left out, and get no more of
        the vote than makes the loss on these labels no worse. In a single graph their predictions
        (out-of-fold on labelled samples) enter as node biases.
    evidence_weight : float or "auto", default="auto"
        Weight e of the evidence in a single graph; "auto" takes 0 where nothing is gained.
    class_prior : None, "labeled" or array-like of shape (n_classes,), default=None
        Shifts the thresholds so that the class masses of the unlabelled samples match the shares
        of the labels, or those given (in the order of ``classes_``). None: no shift.
    unlabeled : object, default=-1
        What marks an unknown label in y; None or NaN stand for all missing values.
    abstain_below : float, optional
        `predict` says "I don't know", with the marker `unlabeled`, where the largest probability
        is below this.
    tol : float, default=1e-6
        Relative residual of the linear solve.
    max_iter : int, optional
        Most iterations of the linear solve; ten times the number of samples at most by default.
    n_jobs : int, optional
        Threads: None for all processors, at most 8 (or OMP_NUM_THREADS), -1 for all. Same results.
    random_state : int, default=0
        Seed of approximate neighbour search, of the forest, and of evidence models without one.
    callback : callable, optional
        Called with a mapping after each stage and each iteration; returning True during the solve
        stops it.
    verbose : int, default=0
        1 logs stages, 2 iterations too, with the seconds since the fit began; 0 stages only of a
        fit that has lasted 2 s. The logger is "gdpa.estimators", level INFO. Where logging is not
        set up it writes to stderr: always if asked, unasked only to a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n_samples,)
        Label of every sample of `fit`; given labels are kept, also where `label_weight` is finite
        and the scores speak for another class. `predict` keeps them, too.
    label_scores_ : ndarray of shape (n_samples, n_classes)
        Share of each class in the sample's scores, or in the vote. Rows add up to 1.
    graph_ : csr_array of shape (n_samples, n_samples)
        The weights; in a committee those of the nearest neighbours in the columns as they are.
    committee_ : Judgement or None
        Names, weights and left-out losses of the members; None for a single graph.
    graph_share_ : ndarray of shape (n_samples,)
        After fit with `adjacency`: part of the vote for each sample's label that was cast by
        members that know the links; 0 for samples without one.
    feature_importances_ : ndarray of shape (n_features,)
        How much each feature decides in the committee's forest.
    unreached_ : ndarray of int
        Samples that no label reaches, through no member. They get the prior class.
    unsure_ : ndarray of bool of shape (n_samples,)
        Unlabelled samples that `abstain_below` applies to.
    skipped_ : ndarray of int
        Samples that :meth:`skip` was told of; :meth:`query` leaves them out.
    n_iter_ : int
        Iterations of the linear solve (1 for a factorisation).
    objective_ : float
        Smoothness ``x' L x`` of ``transduction_``; see :class:`~gdpa.GraphProblem`.
    solution_ : Solution or tuple of Solution
        Record of the solve, with its certified lower bound: one for two classes, one per class
        against the rest for more (per split with "tree").
    tuning_ : Tuning
        What was chosen, its loss on left-out labels, and how it was measured.
    label_weight_, self_loop_, evidence_weight_ : float
        The weights in use.
    n_neighbors_ : int or None
        Neighbours in use.
    state_ : FittedState
        All of it, as one frozen record.
    columns_ : ColumnList
        After fit on a data frame: what was made of each column, and why.
    encoder_ : TableEncoder
        After fit on a data frame: what makes features of its columns.
    n_features_in_ : int
        Number of features (columns of a data frame).
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    See Also
    --------
    classify : The same as a function.
    SemiSupervisedKFold : Cross-validation that keeps unlabelled rows in training.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa import GDPAClassifier
    >>> X = np.array([[0.0], [0.2], [0.4], [3.0], [3.2], [3.4]])
    >>> y = ["low", None, None, None, None, "high"]
    >>> model = GDPAClassifier(unlabeled=None, n_neighbors=2).fit(X, y)
    >>> model.transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    >>> model.predict([[0.3], [2.9]]).tolist()
    ['low', 'high']
    """

    _policy: ClassVar[Policy] = DEFAULT_POLICY
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "graph": [StrOptions({"auto", "knn", "full", "precomputed"})],
        "n_neighbors": [_POSITIVE_INT, StrOptions({"auto"})],
        "bandwidth": [StrOptions({"self-tuning", "median"}), _POSITIVE],
        "columns": "no_validation",
        "rescale": [None, StrOptions({"minmax", "standard"})],
        "laplacian": [StrOptions({"normalized", "combinatorial"})],
        "algorithm": [StrOptions({"auto", "exact", "approximate", "faiss"})],
        "multiclass": [StrOptions({"shared", "tree"})],
        "method": [StrOptions(set(METHODS))],
        "method_options": [None, dict],
        "label_weight": [Interval(Real, 0, None, closed="right"), StrOptions({"auto"})],
        "self_loop": [_WEIGHT, StrOptions({"auto"})],
        "evidence": "no_validation",
        "evidence_weight": [_WEIGHT, StrOptions({"auto"})],
        "class_prior": [None, StrOptions({"labeled"}), "array-like"],
        "unlabeled": "no_validation",
        "abstain_below": [None, Interval(Real, 0, 1, closed="both")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [None, _POSITIVE_INT],
        "n_jobs": [None, Integral],
        "random_state": [None, Interval(Integral, 0, None, closed="left")],
        "callback": [None, callable],
        "verbose": [Interval(Integral, 0, None, closed="left"), "boolean"],
    }

    def __init__(
        self,
        *,
        graph: str = "auto",
        n_neighbors: Any = "auto",
        bandwidth: Any = "self-tuning",
        columns: Any = None,
        rescale: str | None = None,
        laplacian: str = "normalized",
        algorithm: str = "auto",
        multiclass: str = "shared",
        method: str = "gdpa",
        method_options: dict[str, Any] | None = None,
        label_weight: Any = "auto",
        self_loop: Any = "auto",
        evidence: Any = None,
        evidence_weight: Any = "auto",
        class_prior: Any = None,
        unlabeled: Any = -1,
        abstain_below: float | None = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        callback: Any = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.columns = columns
        self.rescale = rescale
        self.laplacian = laplacian
        self.algorithm = algorithm
        self.multiclass = multiclass
        self.method = method
        self.method_options = method_options
        self.label_weight = label_weight
        self.self_loop = self_loop
        self.evidence = evidence
        self.evidence_weight = evidence_weight
        self.class_prior = class_prior
        self.unlabeled = unlabeled
        self.abstain_below = abstain_below
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.graph == "precomputed"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def fit(self, X: Any, y: Any, *, adjacency: Any = None) -> GDPAClassifier:
        """Fit: label all samples from those whose label is known.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features; with ``graph="precomputed"`` a symmetric matrix of shape (n_samples,
            n_samples), a NetworkX graph or a list of edges.
        y : array-like of shape (n_samples,)
            Labels of any kind, `unlabeled` where they are not known.
        adjacency : matrix, Graph, list of edges or :class:`~gdpa.graph.Links`, optional
            A graph of the samples beside their features, in any form that ``graph="precomputed"``
            takes. Links, features along them and features alone then vote together.

        Returns
        -------
        GDPAClassifier
            This object. A fit takes effect whole or not at all: after an error it is as before.
        """
        fitted = copy(self)
        fitted._validate_params()
        models = () if self.evidence is None else check_models(self.evidence)
        if models and self.graph == "precomputed":
            raise ValueError("evidence needs features; graph='precomputed' has none")
        A = fitted._check_precomputed(X) if self.graph == "precomputed" else fitted._check_X(X)
        coding = encode_labels(y, self.unlabeled)
        n = A.shape[0]
        if coding.codes.size != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n} rows, "
                f"y has {coding.codes.size}"
            )
        options = fitted._options(coding.classes)
        links = None if adjacency is None else fitted._check_links(adjacency, n)
        if self.graph == "auto" and votes(options, models):
            state = fit_committee(A, coding, options, models, adjacency=links)
        elif links is None:
            state = fit_state(A, coding, options, models)
        else:
            raise ValueError(
                "adjacency= goes with graph='auto', method='gdpa' and multiclass='shared'; for the "
                "graph alone use graph='precomputed' and give it as X"
            )
        fitted._take(state)
        self.__dict__ = fitted.__dict__
        return self

    def _options(self, classes: NDArray[Any]) -> FitOptions:
        """The parameters as the fit takes them; "auto" is None."""
        given = self.get_params(deep=False)
        for name in ("columns", "evidence", "unlabeled", "abstain_below"):
            del given[name]
        if hasattr(self, "encoder_"):  # it has put the columns of a frame on one scale
            given["rescale"] = None
        for name in ("n_neighbors", "label_weight", "self_loop", "evidence_weight"):
            given[name] = None if isinstance(given[name], str) else given[name]
        if not (self.class_prior is None or isinstance(self.class_prior, str)):
            given["class_prior"] = check_prior(self.class_prior, classes)
        given["method_options"] = dict(self.method_options or {})
        given["random_state"] = self.random_state or 0
        return FitOptions(**given, policy=self._policy)

    def _check_X(self, X: Any, *, reset: bool = True) -> Any:
        if reset:
            self.__dict__.pop("encoder_", None)
        if not isinstance(X, np.ndarray) or hasattr(self, "encoder_"):
            encoded = encoded_rows(self, X, reset=reset)
            if encoded is not None:
                return encoded
        A = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )
        # Not by scikit-learn: this one names the row and the column.
        A = check_features(A)
        if reset and self.rescale is None:
            warn_about_scales(A)
        return A

    def _take(self, state: FittedState) -> None:
        """Adopt a state and publish what it knows."""
        self._state = state
        self.classes_ = state.coding.classes
        self.transduction_ = state.coding.classes[state.labels]
        self.label_scores_ = state.shares
        self.graph_ = state.graph.W
        self.unreached_ = state.unreached
        self.skipped_ = np.arange(0)
        self.n_iter_ = max(1, state.run.iterations)


def classify(X: Any, y: Any, *, adjacency: Any = None, **options: Any) -> NDArray[Any]:
    """Label all samples from those whose label is known.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Features, or a graph with ``graph="precomputed"``.
    y : array-like of shape (n_samples,)
        Labels, with -1 (or the marker `unlabeled`) where they are not known.
    adjacency : matrix, Graph, list of edges or Links, optional
        A graph of the samples beside their features.
    **options
        Parameters of :class:`GDPAClassifier`.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels of all samples; the given ones are kept. With `abstain_below` the marker where the
        classifier is not sure.

    Examples
    --------
    >>> import gdpa
    >>> gdpa.classify([[0.0], [0.1], [5.0], [5.1]], [0, -1, -1, 1], n_neighbors=1).tolist()
    [0, 0, 1, 1]
    """
    model = GDPAClassifier(**options).fit(X, y, adjacency=adjacency)
    if model.abstain_below is None:
        return np.asarray(model.transduction_)
    return model._abstain(model.transduction_, model.unsure_)
