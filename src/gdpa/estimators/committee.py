"""CommitteeClassifier: an ensemble of different models, and :func:`classify`, its function twin."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..graph import Links
from ..threads import one_thread
from .base import BaseClassifier, Labels
from .ensemble import fit_ensemble, fit_single_graph
from .inputs import check_links
from .members.user_models import check_models
from .options import GraphOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sklearn.base import BaseEstimator

    from ..tables import TableEncoder


class CommitteeClassifier(BaseClassifier):
    """Semi-supervised ensemble of different models, weighted by held-out loss.

    The members are the graph of nearest neighbours, the same in whitened columns, the graph of
    samples that share leaves of a forest, the forest, a kernel machine on shared leaves, linear
    models (plain and self-trained), Gaussian classes and an RBF kernel machine. A graph of the
    samples (``fit(X, y, adjacency=...)``) adds members that know the links.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Neighbours per sample of the graphs; "auto" takes 6, or 10 with more than 5,000 samples.
    columns : mapping of str to str, or TableEncoder, optional
        For data frames: kinds of some columns ("number", "category", "text", "date" or "drop"),
        where they should not be detected automatically; or the encoder to use.
    models : classifier or list of classifiers, optional
        scikit-learn classifiers with `predict_proba` as further members. Together they get no more
        weight than leaves the held-out loss no worse than without them.
    class_prior : None, "labeled" or array-like of shape (n_classes,), default=None
        Shifts the thresholds so that the class masses of the unlabelled samples match the shares
        of the labels, or those given (in the order of ``classes_``). Give the shares if you know
        them: labels drawn class by class do not tell them, and on 16 tables they are worth 1.4
        points with 5 labels a class, 0.5 with 20. None: no shift, unless every class has 20 labels
        or more and counts differ by at most 1; then shares are estimated, carefully.
    unlabeled : object, default=-1
        Marker of an unknown label in y; None or NaN stand for all missing values.
    abstain_below : float, optional
        `predict` returns the marker `unlabeled` where the largest probability is below this.
    n_jobs : int, optional
        Threads: None for all processors, at most 8 (or OMP_NUM_THREADS), -1 for all. Results do not
        depend on it.
    random_state : int, default=0
        Random seed.
    verbose : int, default=0
        1 logs stages, 2 iterations too, with the seconds since the fit began; 0 logs stages only of
        a fit that takes more than 2 s. The logger is "gdpa.estimators", level INFO. Where logging
        is not set up it writes to stderr: always if asked, otherwise only to a terminal.
    options : GraphOptions, optional
        Options for experts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n_samples,)
        Label of every sample of `fit`; given labels are kept.
    label_scores_ : ndarray of shape (n_samples, n_classes)
        Combined shares of the classes. Rows add up to 1.
    class_shares_ : ndarray of shape (n_classes,)
        Estimated share of each class among all samples: the mean of their probabilities.
    committee_ : MemberWeights or None
        Names, weights and held-out losses of the members; None with one class or two samples.
    feature_importances_ : ndarray of shape (n_columns,)
        Importance of each input column in the forest.
    graph_ : csr_array of shape (n_samples, n_samples)
        Weights of the nearest neighbours, or the given links.
    graph_share_ : ndarray of shape (n_samples,)
        After fit with `adjacency`: part of each sample's answer that comes from members that know
        the links; 0 for samples without one.
    unreached_ : ndarray of int
        Samples that no member knows anything about. They get the prior class.
    unsure_ : ndarray of bool of shape (n_samples,)
        Unlabelled samples that `abstain_below` applies to.
    skipped_ : ndarray of int
        Samples given to :meth:`skip`.
    tuning_ : Tuning
        Held-out scores of the ensemble, their loss, and how it was measured.
    solution_ : Solution or tuple of Solution
        Record of the solve on ``graph_``, with its certified lower bound: one for two classes, one
        per class against the rest for more.
    objective_ : float
        Smoothness ``x' L x`` of ``transduction_``; see :class:`~gdpa.GraphProblem`.
    n_iter_ : int
        Iterations of the linear solve (1 for a factorisation).
    label_weight_, self_loop_ : float
        Weights on ``graph_``.
    n_neighbors_ : int or None
        Neighbours per sample of ``graph_``.
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
    classify : The same as a function.
    GraphClassifier : One graph, one method.
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

    def fit(self, X: object, y: ArrayLike, adjacency: object = None) -> CommitteeClassifier:
        """Label all samples from those whose label is known.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels of any kind, `unlabeled` where they are not known.
        adjacency : matrix, Graph, list of edges or :class:`~gdpa.graph.Links`, optional
            A graph of the samples beside their features: a symmetric non-negative matrix, a
            NetworkX graph or a list of edges.

        Returns
        -------
        CommitteeClassifier
            This object. After an error it is as before.
        """
        models = () if self.models is None else check_models(self.models)
        fitted, A, labels, options, rescaler = self._prepare(X, y)
        links = None if adjacency is None else check_links(adjacency, A.shape[0])
        fitted._links = adjacency if isinstance(adjacency, Links) else None
        # On few samples threads of BLAS cost more than they save, on a busy machine ten times so.
        with one_thread() if A.shape[0] <= options.policy.judged_nodes else nullcontext():
            if labels.classes.size == 1 or A.shape[0] < 3:
                ensemble = fit_single_graph(A, labels, options, rescaler=rescaler)
            else:
                ensemble = fit_ensemble(
                    A, labels, options, links=links, models=models, rescaler=rescaler
                )
        fitted._adopt(ensemble)
        self.__dict__ = fitted.__dict__
        return self


def classify(X: object, y: ArrayLike, *, adjacency: object = None, **options: Any) -> Labels:
    """Label all samples from those whose label is known.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Labels, with -1 (or the marker `unlabeled`) where they are not known.
    adjacency : matrix, Graph, list of edges or Links, optional
        A graph of the samples beside their features.
    **options
        Parameters of :class:`CommitteeClassifier`.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels of all samples; the given ones are kept. With `abstain_below` the marker where the
        classifier is unsure.

    Examples
    --------
    >>> import gdpa
    >>> gdpa.classify([[0.0], [0.1], [5.0], [5.1]], [0, -1, -1, 1], n_neighbors=1).tolist()
    [0, 0, 1, 1]
    """
    model = CommitteeClassifier(**options).fit(X, y, adjacency)
    labels = np.asarray(model.transduction_)
    return labels if model.abstain_below is None else model._abstain(labels, model.unsure_)
