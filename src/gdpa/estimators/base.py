"""Base class of the estimators: validation, prediction, further labels, queries and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Sized
from copy import copy
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..errors import any_error_as_value_error
from ..evaluation import METRICS, Accuracy, Evaluation, decide
from ..graph import Links, neighbor_graph
from ..graph.features import Features, check_features, stored_by_density, warn_about_scales
from ..graph.picture_features import PictureFeatures
from ..graph.rescale import Rescaler
from ..notebook import card
from ..policy import DEFAULT_POLICY, Policy
from ..solution import Solution
from ..tables import TableEncoder, is_frame
from ..tables.columns import ColumnList
from .fitted import FittedClassifier
from .frames import encoded_rows
from .inputs import (
    check_new_links,
    exact_numbers,
    given_weights,
    is_graph,
    own_copy,
    refuse_order,
)
from .labels import (
    LabelCoding,
    encode_labels,
    encode_more,
    is_missing,
    known_labels,
    with_more_classes,
)
from .options import CheckedOptions, GraphOptions
from .probabilities import check_prior
from .query import query_nodes
from .storage import load_model, save_model

FloatArray = NDArray[np.float64]
Labels = NDArray[Any]  # strings, numbers or booleans

RESCALE_KINDS = {"minmax": "min-max", "standard": "standard"}
DECISION = "decision"  # what a model file keeps of the decisions
NEEDS_LINKS = "a model fitted with adjacency= on at least three samples"


def unit_rows_only(n_features: int) -> Rescaler:
    """Return the second half of the paper's standardisation: rows of unit length."""
    return Rescaler(
        kind="standard",
        columns=np.ones(n_features, dtype=bool),
        shift=np.zeros(n_features),
        scale=np.ones(n_features),
        unit_norm=True,
    )


class BaseClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; subclasses add parameters and `fit`.

    A fit that fails leaves the estimator unchanged. The result of a fit is one frozen
    :class:`FittedClassifier`, from which all fitted attributes are read.
    """

    unlabeled: object
    abstain_below: float | None
    class_prior: str | ArrayLike | None
    random_state: int | None
    options: GraphOptions | None
    graph: str = "knn"
    _policy: ClassVar[Policy] = DEFAULT_POLICY
    _links: Links | None = None
    _signed: ClassVar[bool] = False  # whether a precomputed graph may have negative weights
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "graph": [StrOptions({"knn", "full", "precomputed"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "label_weight": [Interval(Real, 0, None, closed="right"), StrOptions({"auto"})],
        "self_loop": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "class_prior": [None, StrOptions({"labeled"}), "array-like"],
        "abstain_below": [None, Interval(Real, 0, 1, closed="both")],
        "n_jobs": [None, Integral],
        "random_state": [None, Interval(Integral, 0, None, closed="left")],
        "verbose": [Interval(Integral, 0, None, closed="left"), "boolean"],
        "options": [None, GraphOptions],
        "multiclass": [StrOptions({"tree", "one-vs-rest"})],
        "rescale": [None, StrOptions(set(RESCALE_KINDS))],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.graph == "precomputed"
        return tags

    def _fit_options(self, classes: Labels) -> CheckedOptions:
        """Return the options of the fit; "auto" becomes None."""
        given: dict[str, Any] = dict(vars(self.options or GraphOptions()))
        if hasattr(self, "encoder_"):  # the encoder has already rescaled the columns
            given["rescale"] = None
            given["feature_groups"] = self.columns_.feature_groups
        for f in fields(CheckedOptions):
            if f.name not in given and hasattr(self, f.name):
                value = getattr(self, f.name)
                given[f.name] = None if isinstance(value, str) and value == "auto" else value
        if not (self.class_prior is None or isinstance(self.class_prior, str)):
            given["class_prior"] = check_prior(self.class_prior, classes)
        given["random_state"] = self.random_state or 0
        return CheckedOptions(**given, policy=self._policy)

    def _prepare(
        self, X: object, y: ArrayLike, nodes: Iterable[Any] | None = None
    ) -> tuple[Any, Features, LabelCoding, CheckedOptions, Rescaler | None]:
        """Return a checked copy of the estimator, rescaled features, labels, options, rescaler."""
        fitted = copy(self)
        fitted._validate_params()
        refuse_order(nodes, X, "X")
        on_graph = self.graph == "precomputed" or is_graph(X)
        A = fitted._check_precomputed(X, y, nodes) if on_graph else fitted._check_X(X, y)
        n = A.shape[0]
        if isinstance(y, Sized) and getattr(y, "ndim", 1) != 0 and len(y) != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n} rows, "
                f"y has {len(y)}"
            )
        labels = encode_labels(y, self.unlabeled)
        options = fitted._fit_options(labels.classes)
        rescaler = None
        if on_graph:
            options = replace(options, graph="precomputed")
        elif options.rescale is not None:
            rescaler = Rescaler.fit(A, RESCALE_KINDS[options.rescale])
            A = rescaler.transform(A)
        elif (self.options or GraphOptions()).rescale == "standard" and not sp.issparse(A):
            # The encoder of the data frame has standardised its columns.
            rescaler = unit_rows_only(A.shape[1])
            A = rescaler.transform(A)
        return fitted, own_copy(A, X), labels, options, rescaler

    def _check_X(self, X: object, y: object = None, *, reset: bool = True) -> Features:
        """Return checked features (encoded if X is a data frame), or rows of a graph.

        In a fit, the labels `y` decide how some columns of a data frame are encoded.
        """
        X = exact_numbers(X)
        if reset:
            self.__dict__.pop("encoder_", None)
        if not isinstance(X, np.ndarray) or hasattr(self, "encoder_"):
            encoded: Features | None = encoded_rows(self, X, y, reset=reset)
            if encoded is not None:
                return encoded
        dtypes = (np.float64, np.float32)
        # check_features reports missing and infinite values with their row and column.
        A = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=dtypes, ensure_all_finite=False
        )
        A = check_features(A)
        if reset or self.ensemble_.first.graph.kind != "precomputed" or self.ensemble_.linked:
            by_density = self.options is None or self.options.rescale is None
        else:
            by_density = False  # rows of weights
        if by_density:
            A = stored_by_density(A, None if reset else self.ensemble_.sparse)
            if reset:
                warn_about_scales(A)
        return A

    def _check_precomputed(self, X: object, y: object, nodes: Iterable[Any] | None) -> sp.csr_array:
        if sp.issparse(X) or isinstance(X, np.ndarray) or hasattr(X, "iloc"):
            A = validate_data(self, exact_numbers(X), accept_sparse="csr", dtype=np.float64)
        else:
            A = given_weights(X, signed=self._signed, nodes=nodes, tables=[y])
            self.n_features_in_ = A.shape[1]
        if A.shape[0] != A.shape[1]:
            raise ValueError(
                f"graph='precomputed' needs a square matrix of weights, X has shape {A.shape}"
            )
        return given_weights(A, signed=self._signed)

    def _adopt(self, ensemble: FittedClassifier) -> None:
        """Set the fitted state and its attributes."""
        first = ensemble.first
        tuning = ensemble.tuning
        self.ensemble_ = ensemble
        self.committee_ = ensemble.weighting
        self.tuning_ = tuning
        self.classes_ = ensemble.labels.classes
        self.transduction_ = self.classes_[ensemble.codes]
        self.metric_ = "accuracy"
        self.costs_: FloatArray | None = None
        self.label_scores_ = ensemble.shares
        self.unreached_ = ensemble.unreached
        self.graph_ = first.graph.W
        self.n_neighbors_ = first.graph.n_neighbors
        self.label_weight_ = tuning.setting.label_weight
        self.self_loop_ = tuning.setting.self_loop
        self.skipped_: NDArray[np.intp] = np.arange(0)
        self.n_iter_ = max(1, first.run.iterations)

    # Fitted attributes that are computed on access.

    @property
    def class_shares_(self) -> FloatArray:
        """Estimated share of each class among all samples."""
        return np.asarray(self.ensemble_.probabilities().mean(axis=0))

    @property
    def accuracy_(self) -> Accuracy | None:
        """Accuracy on the labels that `fit` held out, with an interval.

        None if no label was held out; ``tuning_.reason`` says why.
        """
        found = self._held_out()
        return None if found is None else found.accuracy

    @property
    def feature_importances_(self) -> FloatArray:
        """Importance of each input column in the forest; they add up to 1."""
        values = self.ensemble_.importances
        rescaler = self.ensemble_.rescaler
        if values is None:
            raise AttributeError("no forest was grown: only CommitteeClassifier has importances")
        column = np.arange(values.size)  # source column of each feature
        if hasattr(self, "encoder_"):
            column = np.repeat(np.arange(len(self.columns_)), [p.n_features for p in self.columns_])
        elif isinstance(rescaler, PictureFeatures):
            return rescaler.pixel_shares(values)
        elif rescaler is not None:
            column = np.flatnonzero(rescaler.columns)
        sums = np.bincount(column, values, minlength=self.n_features_in_)
        return np.asarray(sums, dtype=np.float64)

    @property
    def graph_share_(self) -> FloatArray:
        """Share of each sample's prediction that comes from links (``adjacency=``)."""
        return self.ensemble_.graph_share()

    @property
    def objective_(self) -> float:
        """Smoothness of the labels on ``graph_``."""
        return self.ensemble_.objective()

    @property
    def solution_(self) -> Solution | tuple[Solution, ...]:
        """Solution of the graph problem, with its certified lower bound."""
        records = self.ensemble_.solutions()
        return records[0] if len(records) == 1 else records

    @property
    def unsure_(self) -> NDArray[np.bool_]:
        """Unlabelled samples whose largest probability is below `abstain_below`."""
        unsure = self.ensemble_.probabilities().max(axis=1) < (self.abstain_below or 0.0)
        return np.asarray(unsure & (self.ensemble_.labels.codes < 0))

    @property
    def columns_(self) -> ColumnList:
        """How each column of the data frame was encoded."""
        if not hasattr(self, "encoder_"):
            raise AttributeError("columns_ exists after fit on a data frame, not on an array")
        columns: ColumnList = self.encoder_.columns_
        return columns

    # Prediction.

    def predict(self, X: object, *, adjacency: object = None) -> Labels:
        """Predict labels of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            New rows; for a model of a graph alone, their weights to the fitted samples. A row equal
            to a fitted sample gets the label of that sample in ``transduction_``, which is the
            label given to `fit` if there was one. If equal samples had different labels, the most
            frequent one is used. Pass None if there are only links.
        adjacency : array-like, sparse matrix or Links of shape (n_rows, n_samples), optional
            Links of the rows to the fitted samples, if `fit` had an adjacency.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels; the marker `unlabeled` where the probability is below `abstain_below`.
        """
        shares = self._row_shares(X, adjacency)
        ensemble = self.ensemble_
        labels = ensemble.labels.classes[self._winners(shares)]
        if self.abstain_below is None:
            return np.asarray(labels)
        unsure = ensemble.probabilities(shares).max(axis=1) < self.abstain_below
        return self._abstain(labels, unsure)

    def predict_proba(self, X: object, *, adjacency: object = None) -> FloatArray:
        """Predict probabilities, calibrated if there are at least 20 held-out labels.

        Parameters
        ----------
        X, adjacency
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows that add up to 1, in the order of ``classes_``.
        """
        shares = self._row_shares(X, adjacency)
        return self.ensemble_.probabilities(shares)

    def decision_function(self, X: object, *, adjacency: object = None) -> FloatArray:
        """Return the log-odds of the classes.

        Parameters
        ----------
        X, adjacency
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Log-probabilities up to a constant; for two classes their difference, which is positive
            for the second class.
        """
        p = np.log(self.predict_proba(X, adjacency=adjacency))
        return np.asarray(p[:, 1] - p[:, 0] if p.shape[1] == 2 else p)

    def score(
        self,
        X: object,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        adjacency: object = None,
    ) -> float:
        """Return the accuracy on the rows whose label is known.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels; rows with the marker `unlabeled` are ignored.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        adjacency : array-like, sparse matrix or Links, optional
            Links of the rows to the fitted samples.

        Returns
        -------
        float
            Share of correct labels.
        """
        from sklearn.metrics import accuracy_score

        predicted = self.predict(X, adjacency=adjacency)
        values, known = known_labels(y, self.unlabeled)
        if not known.any():
            raise ValueError("y has no known label to score against")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        truth = np.asarray(values[known].tolist()) if values.dtype.kind == "O" else values[known]
        if self.abstain_below is not None:
            right = np.array([a == b for a, b in zip(truth, predicted[known], strict=True)])
            return float(np.average(right, weights=weight))
        return float(accuracy_score(truth, predicted[known], sample_weight=weight))

    def evaluate(self, *, level: float = 0.95) -> Evaluation:
        """Return metrics on the labels that `fit` held out.

        Every held-out label was predicted by a model that was fitted without it. The metrics hold
        for rows like the labelled ones.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the interval of the accuracy.

        Returns
        -------
        Evaluation
            Accuracy with interval, precision, recall and F1 of each class, their averages,
            confusion matrix, AUC and log-loss.

        Raises
        ------
        ValueError
            If no label was held out.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> import gdpa
        >>> X, y = load_iris(return_X_y=True)
        >>> y[50:][::2] = -1
        >>> found = gdpa.CommitteeClassifier().fit(X, y).evaluate()
        >>> found.n_labels, found.confusion.sum(axis=1).tolist()
        (100, [50, 25, 25])
        """
        check_is_fitted(self)
        found = self._held_out(level)
        if found is None:
            raise ValueError(f"the accuracy is unknown: {self.tuning_.reason}")
        return found

    def _held_out(self, level: float = 0.95) -> Evaluation | None:
        """Return the held-out labels and their predictions; None if there are none."""
        check_is_fitted(self)
        left_out = self.ensemble_.left_out()
        if left_out is None:
            return None
        rows, shares = left_out
        found = Evaluation(
            classes=self.classes_,
            rows=rows,
            truth=self.ensemble_.labels.codes[rows].astype(np.intp),
            predicted=self._winners(shares),
            probabilities=self.ensemble_.probabilities(shares),
            source=self.tuning_.source,
            level=level,
        )
        return found if self.metric_ == "costs" else found.decided_for(self.metric_)

    def decide_by(self, metric: str = "balanced", *, costs: ArrayLike | None = None) -> Any:
        """Decide predictions for a metric other than accuracy, or by the costs of errors.

        The probabilities stay the same. `predict`, ``transduction_``, ``accuracy_`` and `evaluate`
        use the decisions from then on; a new fit returns to the largest probability.

        Parameters
        ----------
        metric : {"accuracy", "balanced", "f1", "auc"}, default="balanced"
            Metric that held-out labels choose the decisions for: accuracy, balanced accuracy (the
            mean recall of the classes) or macro F1. The AUC does not depend on decisions.
        costs : array-like of shape (n_classes, n_classes), optional
            Cost of predicting the column's class for a row of the row's class, in the order of
            ``classes_``. Predictions have the least expected cost.

        Returns
        -------
        estimator
            This object.

        Examples
        --------
        >>> import gdpa
        >>> X = [[0.0], [0.4], [0.5], [0.6], [0.7], [1.0]]
        >>> model = gdpa.CommitteeClassifier(n_neighbors=2).fit(X, [0, -1, -1, -1, -1, 1])
        >>> model.decide_by(costs=[[0, 1], [50, 0]]).transduction_.tolist()  # do not miss class 1
        [0, 1, 1, 1, 1, 1]
        """
        check_is_fitted(self)
        k = self.classes_.size
        self._decide("accuracy", None)
        if costs is not None:
            C = np.asarray(costs, dtype=np.float64)
            if C.shape != (k, k) or not np.isfinite(C).all() or (C < 0).any():
                raise ValueError(
                    f"costs must be non-negative numbers of shape ({k}, {k}), got shape {C.shape}"
                )
            self._decide("costs", C)
        elif metric != "accuracy":
            self._decide(metric, self.evaluate().costs_for(metric))
        return self

    def _decide(self, metric: str, costs: FloatArray | None) -> None:
        """Set how probabilities become labels; None means the largest probability."""
        self.metric_ = metric
        self.costs_ = costs
        ensemble = self.ensemble_
        codes = ensemble.codes
        if costs is not None:
            given = ensemble.labels.codes
            codes = np.where(given < 0, decide(ensemble.probabilities(), costs), given)
        self.transduction_ = self.classes_[codes]

    def _winners(self, shares: FloatArray) -> NDArray[np.intp]:
        """Return the class number that is predicted for each row of shares."""
        if self.costs_ is None:
            return self.ensemble_.winners(shares)
        return decide(self.ensemble_.probabilities(shares), self.costs_)

    def graph_share(self, X: object, *, adjacency: object) -> FloatArray:
        """Return the share of each new row's prediction that comes from its links.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            New rows; None if there are only links.
        adjacency : array-like, sparse matrix or Links of shape (n_rows, n_samples)
            Links of the rows to the fitted samples.

        Returns
        -------
        ndarray of shape (n_rows,)
            0 for a row without links, 1 if only members that use links contribute. For the fitted
            samples see ``graph_share_``.
        """
        check_is_fitted(self)
        if not self.ensemble_.linked:
            raise ValueError(f"graph_share needs {NEEDS_LINKS}")
        rows, links = self._rows_and_links(X, adjacency)
        if links is None:
            return np.zeros(0 if rows is None else rows.shape[0])
        return self.ensemble_.graph_share(rows, links)

    def _row_shares(self, X: object, adjacency: object) -> FloatArray:
        """Return the shares of rows from their features, links or both."""
        check_is_fitted(self)
        ensemble = self.ensemble_
        if ensemble.linked or (adjacency is not None and self.classes_.size == 1):
            rows, links = self._rows_and_links(X, adjacency)
            if not ensemble.linked and links is not None:  # there is only one class
                return np.ones((links.shape[0], 1))
            return ensemble.predict(rows, links)
        if adjacency is not None:
            raise ValueError(f"adjacency= needs {NEEDS_LINKS} (fewer samples use features only)")
        return ensemble.predict(self._check_X(X, reset=False))

    def _rows_and_links(
        self, X: object, adjacency: object
    ) -> tuple[Features | None, sp.csr_array | None]:
        """Validate new rows for a model that was fitted with links."""
        if X is None and adjacency is None:
            raise ValueError("X and adjacency are both None; pass features, links or both")
        if X is not None and self.ensemble_.n_features == 0:
            if adjacency is not None:
                raise ValueError(
                    "the model was fitted without features; pass X or adjacency, not both"
                )
            X, adjacency = None, X  # the rows are links to the fitted nodes
        rows = None if X is None else self._check_X(X, reset=False)
        if adjacency is None:
            return rows, None
        count = None if rows is None else rows.shape[0]
        n = self.ensemble_.n_samples
        return rows, check_new_links(adjacency, self._links, count, n)

    def _abstain(self, labels: Labels, unsure: NDArray[np.bool_]) -> Labels:
        """Replace uncertain labels by the marker of an unknown label."""
        marker = self.unlabeled
        if labels.dtype.kind in "iuf" and isinstance(marker, int | float | np.number):
            return np.where(unsure, marker, labels)
        if labels.dtype.kind == "f" and is_missing(marker):
            return np.where(unsure, np.nan, labels)
        out = labels.astype(object)
        out[unsure] = marker
        return out

    # Further labels.

    def add_labels(
        self, indices: ArrayLike, labels: Any, *, tol: float = 1e-3, new_classes: bool = True
    ) -> Any:
        """Add or correct labels of fitted samples without refitting.

        Only scores near the changed labels are updated. Graphs, weights, models and calibration do
        not change.

        Parameters
        ----------
        indices : int or array-like of int
            Positions of samples of `fit`.
        labels : label or array-like of labels
            Their labels; the marker `unlabeled` removes a label.
        tol : float, default=1e-3
            Residual that the update may leave, relative to the right-hand side. When updates add up
            to five times this value, the whole system is solved again, starting from the current
            scores.
        new_classes : bool, default=True
            Whether labels may belong to new classes.

        Returns
        -------
        estimator
            This object.
        """
        rows = self._rows(indices)
        ensemble = self.ensemble_
        if rows.size == 0:
            return self
        if not (isinstance(tol, int | float) and 0 < tol < 1):
            raise ValueError(f"tol={tol!r} must be a number between 0 and 1")
        classes = ensemble.labels.classes
        if new_classes:
            classes = with_more_classes(labels, classes, self.unlabeled)
            if classes.size > ensemble.labels.classes.size:
                ensemble = ensemble.with_classes(classes)
        codes = encode_more(labels, classes, self.unlabeled)
        if codes.size != rows.size:
            raise ValueError(f"labels has {codes.size} entries, indices has {rows.size}")
        unique, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
        if (codes[first][inverse] != codes).any():
            twice = rows[codes[first][inverse] != codes][0]
            raise ValueError(f"labels has two classes for sample {twice}")
        skipped = np.setdiff1d(self.skipped_, unique)
        options = self._fit_options(classes)
        decision = (self.metric_, self.costs_)
        self._adopt(ensemble.with_labels(unique, codes[first], options, float(tol)))
        if decision[1] is not None and decision[1].shape[0] == classes.size:
            self._decide(*decision)
        self.skipped_ = skipped
        return self

    def skip(self, indices: ArrayLike) -> Any:
        """Mark samples that cannot be labelled; :meth:`query` does not return them again.

        Parameters
        ----------
        indices : int or array-like of int
            Positions of samples of `fit`. :meth:`add_labels` removes the mark.

        Returns
        -------
        estimator
            This object; ``skipped_`` lists the samples.
        """
        rows = self._rows(indices)
        self.skipped_ = np.union1d(self.skipped_, rows).astype(np.intp)
        return self

    def _rows(self, indices: ArrayLike) -> NDArray[np.intp]:
        check_is_fitted(self)
        n = self.ensemble_.n_samples
        rows = np.atleast_1d(np.asarray(indices))
        if rows.size == 0:
            return np.arange(0)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"indices={indices!r} must be integers, one per label")
        wrong = rows[(rows < 0) | (rows >= n)]
        if wrong.size:
            raise ValueError(
                f"indices has {wrong[0]}; the fitted samples are numbered 0 to {n - 1}"
            )
        return rows.astype(np.intp)

    def query(self, n: int = 1, strategy: str = "auto", *, X: object = None) -> NDArray[np.intp]:
        """List the samples to label next.

        Parameters
        ----------
        n : int, default=1
            Maximum number of samples.
        strategy : {"auto", "representatives", "random"}, default="auto"
            "auto" maximises uncertainty times remaining variance among random candidates, and is
            "representatives" before the first label. "representatives" takes cluster centres.
        X : array-like, sparse matrix or graph, optional
            Data, if the classifier is not fitted because there is no label yet.

        Returns
        -------
        ndarray of int
            Unlabelled samples, most informative first, without skipped ones. Components without a
            label come first.

        Examples
        --------
        >>> from gdpa import CommitteeClassifier
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> sorted(CommitteeClassifier(n_neighbors=2).query(2, X=X).tolist())
        [1, 4]
        """
        seed = self.random_state or 0
        none = np.arange(0)
        if X is not None:
            W, points = self._unlabeled_graph(X, seed)
            return query_nodes(W, points, None, none, none, n, strategy, seed=seed)
        check_is_fitted(self)
        ensemble = self.ensemble_
        graph = ensemble.first.graph
        known = ensemble.labels.labeled
        p = ensemble.probabilities()
        skipped = self.skipped_
        W = abs(graph.W) if graph.signed else graph.W
        return query_nodes(W, graph.features, p, known, skipped, n, strategy, seed=seed)

    def _unlabeled_graph(self, X: object, seed: int) -> tuple[sp.csr_array, Features | None]:
        """Return the graph and the features of data without labels."""
        if self.graph == "precomputed" or is_graph(X):
            return given_weights(X), None
        if is_frame(X):
            X = TableEncoder(random_state=seed).fit(X).transform(X)
        A = check_features(check_array(X, accept_sparse="csr", ensure_all_finite=False))
        expert = self.options or GraphOptions()
        if expert.rescale is not None:
            A = Rescaler.fit(A, RESCALE_KINDS[expert.rescale]).transform(A)
        k = getattr(self, "n_neighbors", "auto")
        if A.shape[0] == 1:
            return sp.csr_array((1, 1)), A
        count = min(10 if k == "auto" else k, A.shape[0] - 1)
        return neighbor_graph(A, count, algorithm=expert.algorithm, random_state=seed), A

    # Files and reports.

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> Path:
        """Save the fitted classifier as arrays and JSON with a checksum, without pickle.

        Parameters
        ----------
        path : path-like
            The file, usually with the extension ".npz".
        extra : dict, optional
            Additional plain data, for example how the features were computed. :meth:`load` restores
            it as the attribute ``extra_``.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If something cannot be stored safely: user-supplied models, options that are not plain
            data, or classes that are neither numbers nor strings.
        """
        check_is_fitted(self)
        kept = dict(extra or {})
        if self.costs_ is not None:
            kept[DECISION] = {"metric": self.metric_, "costs": self.costs_.tolist()}
        return save_model(self, path, kept)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Load a classifier written by :meth:`save`.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        estimator
            The fitted classifier.

        Raises
        ------
        ValueError
            If the file is damaged, has another version, or contains another kind of object.
        """
        model = load_model(cls, path)
        kept = model.extra_.pop(DECISION, None)
        if kept is not None:
            with any_error_as_value_error(f"{path}: the costs of errors are damaged"):
                model.decide_by(costs=kept["costs"])
                if kept["metric"] in METRICS:
                    model.metric_ = str(kept["metric"])
        return model

    def report(
        self,
        path: str | os.PathLike[str],
        X: object = None,
        *,
        title: str = "gdpa report",
        ids: Sequence[object] | None = None,
        sure: float = 0.75,
    ) -> Path:
        """Write a report on the fitted classifier as one HTML file without scripts.

        Parameters
        ----------
        path : path-like
            The file.
        X : DataFrame, optional
            The table given to `fit`, for showing the rows to label next.
        title : str, default="gdpa report"
            Title of the page.
        ids : sequence, optional
            Names of the rows; numbers from 1 by default.
        sure : float, default=0.75
            Predictions with a smaller probability are listed as uncertain.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile, pathlib, gdpa
        >>> X = {"size": [1.0, 1.2, 1.1, 5.0, 5.2, 5.1], "kind": ["a", "b"] * 3}
        >>> y = ["low", None, None, None, None, "high"]
        >>> model = gdpa.CommitteeClassifier(unlabeled=None, n_neighbors=2).fit(X, y)
        >>> page = model.report(pathlib.Path(tempfile.mkdtemp()) / "out.html", X)
        >>> page.read_text()[:15]
        '<!DOCTYPE html>'
        """
        # Imported here because reports depend on the estimators.
        from ..files import written_whole
        from ..report import gather, render
        from ..tables.frames import table_of

        check_is_fitted(self)
        n = self.ensemble_.n_samples
        encoder = getattr(self, "encoder_", None)
        table = X if is_frame(X) else None
        sizes = {"ids": None if ids is None else len(ids)}
        sizes["X"] = None if table is None else table_of(table).n_rows
        for name, size in sizes.items():
            if size is not None and size != n:
                raise ValueError(f"{name} has {size} rows, the classifier has {n}")
        data = gather(
            self,
            None,
            title=title,
            notes=() if encoder is None else encoder.notes_,
            table=table,
            columns=() if encoder is None else encoder.columns_,
            sure=sure,
            ids=None if ids is None else [str(name) for name in ids],
        )
        with written_whole(path) as staged:
            staged.write_text(render(data), encoding="utf-8")
        return Path(path)

    def _card(self) -> str:
        ensemble = self.ensemble_
        tuning = self.tuning_
        k = self.classes_.size
        known = int(ensemble.labels.labeled.size)
        counts = np.array([(self.transduction_ == c).sum() for c in self.classes_])
        listed = ", ".join(f"{c} {n:,}" for c, n in zip(self.classes_[:6], counts, strict=False))
        more = f" and {k - 6} more" if k > 6 else ""
        facts: list[tuple[str, str]] = [
            ("samples", f"{ensemble.n_samples:,}, of which {known:,} labelled"),
            ("predicted labels", listed + more),
            ("graph", f"{self.graph_.nnz // 2:,} edges, {self.n_neighbors_} neighbours"),
            ("accuracy", str(self.accuracy_ or f"unknown: {tuning.reason}")),
            ("settings", f"chosen by {tuning.source}, {tuning.tried} tried"),
        ]
        if getattr(self, "encoder_", None) is not None:
            used = sum(plan.encoding is not None for plan in self.columns_)
            facts.append(("columns", f"{used} of {len(self.columns_)} in use; see columns_"))
        return card(f"{type(self).__name__} (fitted)", facts)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, and after `fit` the accuracy on held-out labels."""
        parameters = str(super().__repr__(N_CHAR_MAX))
        if not hasattr(self, "ensemble_"):
            return parameters
        return f"{parameters}\naccuracy: {self.accuracy_ or f'unknown, {self.tuning_.reason}'}"

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        if hasattr(self, "ensemble_"):
            return {"text/plain": repr(self), "text/html": self._card()}
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return bundle

    def _repr_html_(self) -> str:
        if hasattr(self, "ensemble_"):
            return self._card()
        return str(super()._repr_html_inner())
