"""CommitteeClassifier, an ensemble of different models, and :func:`classify`, its function form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..graph import Links
from ..graph.picture_features import PictureFeatures
from ..graph.rescale import Rescaler
from ..threads import one_thread
from .base import BaseClassifier, Labels
from .committee import fit_committee
from .fitted import FittedClassifier
from .heads.user_models import check_models
from .inputs import check_links, is_graph, refuse_order
from .labels import encode_labels
from .options import GraphOptions
from .pictures import learn_pictures
from .single_graph import fit_single_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sklearn.base import BaseEstimator

    from ..tables import TableEncoder


class CommitteeClassifier(BaseClassifier):
    """Semi-supervised ensemble of different models, weighted by held-out loss.

    The members are a nearest-neighbour graph, the same in whitened columns, a forest, a graph of
    samples that share leaves of the forest, a kernel machine on shared leaves, logistic regression
    (plain and self-trained), Gaussian classes and an RBF kernel machine. If you give a graph of the
    samples (``fit(X, y, adjacency=...)``), members that use its links are added.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Neighbours per sample in the graphs; "auto" uses 6, or 10 with more than 5,000 samples.
    columns : mapping of str to str, or TableEncoder, optional
        For data frames: the kinds of columns ("number", "category", "text", "date" or "drop") that
        should not be detected automatically, or the encoder to use.
    models : classifier or list of classifiers, optional
        Additional members: scikit-learn classifiers with `predict_proba`. Their total weight is
        limited so that the held-out loss is no higher than without them.
    class_prior : None, "labeled" or array-like of shape (n_classes,), default=None
        Class shares that the predictions for unlabelled samples should match: those of the labels,
        or an array in the order of ``classes_``. Give the shares if you know them. Labels drawn
        class by class do not show them, and on 16 tables they lower the error by 1.4 points with 5
        labels per class and by 0.5 points with 20. With None, shares
        are estimated if the classes have equally many labels (the counts differ by at most 1).
        Predictions are shifted half of the way, and less the less sure it is that the shares
        differ from those of the labels.
    unlabeled : object, default=-1
        Marker of unknown labels in y. None and NaN match every missing value.
    abstain_below : float, optional
        If the largest probability of a row is lower, `predict` returns the marker `unlabeled`.
    n_jobs : int, optional
        Number of threads. None uses all processors but at most 8 (or OMP_NUM_THREADS), -1 uses
        all. Results do not depend on it.
    random_state : int, default=0
        Random seed.
    verbose : int, default=0
        1 logs the stages of the fit with the elapsed seconds, 2 also its iterations. 0 logs stages
        only if the fit takes longer than 2 s. The logger is "gdpa.estimators", level INFO. If
        logging is not configured, messages go to stderr; with 0, only if stderr is a terminal.
    options : GraphOptions, optional
        Advanced options.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    transduction_ : ndarray of shape (n_samples,)
        Label of every sample of `fit`; given labels are kept.
    label_scores_ : ndarray of shape (n_samples, n_classes)
        Class shares combined over the members. Rows add up to 1.
    class_shares_ : ndarray of shape (n_classes,)
        Estimated share of each class: the mean probability over all samples.
    committee_ : MemberWeights or None
        Names, weights and held-out losses of the members; None if there is one class or there are
        only two samples.
    feature_importances_ : ndarray of shape (n_columns,)
        Importance of each input column in the forest.
    graph_ : csr_array of shape (n_samples, n_samples)
        Weights of the nearest-neighbour graph, or of your own graph.
    graph_share_ : ndarray of shape (n_samples,)
        After fit with `adjacency`: share of each prediction that comes from members that use the
        links; 0 for samples without links.
    unreached_ : ndarray of int
        Samples that no member can predict. They get the class with the largest prior.
    unsure_ : ndarray of bool of shape (n_samples,)
        Unlabelled samples whose largest probability is below `abstain_below`.
    skipped_ : ndarray of int
        Samples given to :meth:`skip`.
    tuning_ : Tuning
        Held-out scores of the ensemble, their loss, and how the loss was measured.
    solution_ : Solution or tuple of Solution
        Solution on ``graph_`` with its certified lower bound. With more than two classes, there is
        one solution per class against the rest.
    objective_ : float
        Smoothness ``x' L x`` of ``transduction_``; see :class:`~gdpa.GraphProblem`.
    n_iter_ : int
        Iterations of the linear solve (1 for a factorisation).
    label_weight_, self_loop_ : float
        Label weight and self-loop on ``graph_``.
    n_neighbors_ : int or None
        Neighbours per sample in ``graph_``.
    columns_ : ColumnList
        After fit on a data frame: how each column was encoded, and why.
    encoder_ : TableEncoder
        After fit on a data frame: the fitted encoder.
    ensemble_ : Committee or SingleGraph
        The complete fitted state.
    n_features_in_ : int
        Number of features (columns of a data frame).
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    classify : The same as a function.
    GraphClassifier : A single graph and a single method.
    SemiSupervisedKFold : Cross-validation that keeps unlabelled rows in training.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa import CommitteeClassifier
    >>> X = np.array([[0.0], [0.2], [0.4], [3.0], [3.2], [3.4]])
    >>> y = ["low", None, None, None, None, "high"]
    >>> model = CommitteeClassifier(unlabeled=None, n_neighbors=2).fit(X, y)
    >>> model.transduction_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    >>> model.predict([[0.3], [2.9]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        *,
        n_neighbors: int | str = "auto",
        columns: Mapping[str, str] | TableEncoder | None = None,
        models: BaseEstimator | Sequence[BaseEstimator] | None = None,
        class_prior: str | ArrayLike | None = None,
        unlabeled: object = -1,
        abstain_below: float | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        verbose: int = 0,
        options: GraphOptions | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.columns = columns
        self.models = models
        self.class_prior = class_prior
        self.unlabeled = unlabeled
        self.abstain_below = abstain_below
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.options = options

    def fit(
        self,
        X: object,
        y: ArrayLike,
        adjacency: object = None,
        *,
        nodes: Iterable[Any] | None = None,
    ) -> CommitteeClassifier:
        """Label all samples from the labelled ones.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features. A graph alone is given as a NetworkX graph or :class:`~gdpa.graph.Links`, or
            as ``adjacency=`` with X=None.
        y : array-like of shape (n_samples,)
            Labels of any type, with `unlabeled` for unknown ones.
        adjacency : matrix, Graph, list of edges or :class:`~gdpa.graph.Links`, optional
            A graph of the samples, used together with their features: a symmetric non-negative
            matrix, a NetworkX graph or a list of edges.
        nodes : iterable of nodes, optional
            For a NetworkX graph: its nodes in the order of the rows. It is not needed if the nodes
            are the integers 0 to n - 1, which are row numbers, or if they are the index of a pandas
            X or y.

        Returns
        -------
        CommitteeClassifier
            This object. If an error is raised, it is left unchanged.
        """
        models = () if self.models is None else check_models(self.models)
        if is_graph(X):
            if adjacency is not None:
                raise ValueError("X and adjacency are both graphs; pass features as X, or X=None")
            X, adjacency = None, X
        if X is None and adjacency is not None:
            return self._fit_graph(adjacency, y, nodes)
        refuse_order(nodes, adjacency, "adjacency")
        fitted, A, labels, options, rescaler = self._prepare(X, y)
        links = None
        if adjacency is not None:
            links = check_links(adjacency, A.shape[0], nodes=nodes, tables=[X, y])
        fitted._links = adjacency if isinstance(adjacency, Links) else None
        # On few samples, BLAS threads cost more time than they save.
        with one_thread() if A.shape[0] <= options.policy.judged_nodes else nullcontext():
            ensemble: FittedClassifier
            if labels.classes.size == 1 or A.shape[0] < 3:
                ensemble = fit_single_graph(A, labels, options, rescaler=rescaler)
            else:
                seen: Rescaler | PictureFeatures | None = rescaler
                if links is None and rescaler is None and not hasattr(fitted, "encoder_"):
                    seen = learn_pictures(A, labels, options)
                    A = A if seen is None else seen.transform(A)
                ensemble = fit_committee(
                    A, labels, options, links=links, models=models, rescaler=seen
                )
        fitted._adopt(ensemble)
        self.__dict__ = fitted.__dict__
        return self

    def _fit_graph(
        self, adjacency: object, y: Any, nodes: Iterable[Any] | None
    ) -> CommitteeClassifier:
        """Label the nodes of a graph without features."""
        if self.models is not None:
            raise ValueError("models needs features, but X is a graph or None; pass models=None")
        fitted = copy(self)
        fitted._validate_params()
        for name in ("encoder_", "feature_names_in_"):  # of an earlier fit
            fitted.__dict__.pop(name, None)
        labels = encode_labels(y, self.unlabeled)
        n = labels.codes.size
        links = check_links(adjacency, n, alone=True, nodes=nodes, tables=[y])
        fitted._links = adjacency if isinstance(adjacency, Links) else None
        options = fitted._fit_options(labels.classes)
        with one_thread() if n <= options.policy.judged_nodes else nullcontext():
            if labels.classes.size == 1 or n < 3:
                alone = fit_single_graph(links, labels, replace(options, graph="precomputed"))
                solved = replace(alone.solved, knows_links=True)
                ensemble: FittedClassifier = replace(alone, solved=solved, n_features=0)
            else:
                ensemble = fit_committee(np.empty((n, 0)), labels, options, links=links)
        fitted._adopt(ensemble)
        fitted.n_features_in_ = 0
        self.__dict__ = fitted.__dict__
        return self


def classify(
    X: object,
    y: ArrayLike,
    *,
    adjacency: object = None,
    nodes: Iterable[Any] | None = None,
    **options: Any,
) -> Labels:
    """Label all samples from the labelled ones.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Features; or a graph alone, see :meth:`CommitteeClassifier.fit`.
    y : array-like of shape (n_samples,)
        Labels, with -1 (or the marker `unlabeled`) for unknown ones.
    adjacency : matrix, Graph, list of edges or Links, optional
        A graph of the samples, used together with their features.
    nodes : iterable of nodes, optional
        Nodes of a NetworkX graph in the order of the rows; see :meth:`CommitteeClassifier.fit`.
    **options
        Parameters of :class:`CommitteeClassifier`.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels of all samples; given labels are kept. With `abstain_below`, uncertain samples get
        the marker `unlabeled`.

    Examples
    --------
    >>> import gdpa
    >>> gdpa.classify([[0.0], [0.1], [5.0], [5.1]], [0, -1, -1, 1], n_neighbors=1).tolist()
    [0, 0, 1, 1]
    """
    model = CommitteeClassifier(**options).fit(X, y, adjacency, nodes=nodes)
    labels = np.asarray(model.transduction_)
    return labels if model.abstain_below is None else model._abstain(labels, model.unsure_)
