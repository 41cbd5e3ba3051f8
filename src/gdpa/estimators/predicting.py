"""Labels and probabilities of rows that were not fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from .attributes import Attributes
from .labels import is_missing, known_labels

__all__ = ["Predicting"]

FloatArray = NDArray[np.float64]

# What `adjacency` at prediction needs.
LINKED = (
    "a model that was fitted with adjacency= on three samples or more (fewer go by their features)"
)


class Predicting(Attributes):
    """What a fitted classifier says about new rows."""

    unlabeled: Any
    _check_X: Any
    _check_new_links: Any

    def decision_function(self, X: Any, *, adjacency: Any = None) -> FloatArray:
        """Log-odds of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            New rows; for a precomputed graph their weights to the fitted samples. None where
            there are only links.
        adjacency : array-like, sparse matrix or Links of shape (n_rows, n_samples), optional
            Links of the rows to the fitted samples, where `fit` had an adjacency.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Logarithms of the probabilities up to a constant; for two classes the difference,
            positive for the second one.
        """
        p = np.log(self.predict_proba(X, adjacency=adjacency))
        return np.asarray(p[:, 1] - p[:, 0] if p.shape[1] == 2 else p)

    def predict_proba(self, X: Any, *, adjacency: Any = None) -> FloatArray:
        """Probabilities of the classes, calibrated on left-out labels where there are 20 or more.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            New rows; for a precomputed graph their weights to the fitted samples. None where
            there are only links.
        adjacency : array-like, sparse matrix or Links of shape (n_rows, n_samples), optional
            Links of the rows to the fitted samples, where `fit` had an adjacency.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows that add up to 1, in the order of ``classes_``.
        """
        state = self.state_
        return state.probabilities(self._row_shares(X, adjacency))

    def predict(self, X: Any, *, adjacency: Any = None) -> NDArray[Any]:
        """Labels of rows, through their neighbours among the fitted samples.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            New rows; for a precomputed graph their weights to the fitted samples. A row equal to
            a fitted sample gets that sample's label, as in ``transduction_``: the label given to
            `fit`, where there was one (where equal samples were given different labels, the most
            frequent). None where there are only links.
        adjacency : array-like, sparse matrix or Links of shape (n_rows, n_samples), optional
            Links of the rows to the fitted samples, where `fit` had an adjacency.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels; the marker `unlabeled` where `abstain_below` says so.
        """
        state = self.state_
        shares = self._row_shares(X, adjacency)
        labels = state.coding.classes[state.winners(shares)]
        if self.abstain_below is None:
            return np.asarray(labels)
        return self._abstain(labels, state.probabilities(shares).max(axis=1) < self.abstain_below)

    def _row_shares(self, X: Any, adjacency: Any) -> FloatArray:
        """Shares of rows by their features, their links, or both."""
        state = self.state_
        if not state.linked:
            if adjacency is not None and state.n_classes == 1:  # there is nothing to weigh
                links = self._rows_and_links(X, adjacency)[1]
                return np.ones((links.shape[0], 1))
            if adjacency is not None:
                raise ValueError(f"adjacency= goes with {LINKED}")
            return state.row_shares(self._check_X(X, reset=False))
        return state.row_shares(*self._rows_and_links(X, adjacency))

    def _rows_and_links(self, X: Any, adjacency: Any) -> tuple[Any, Any]:
        """New rows of a model that was fitted with a graph beside features, checked."""
        if X is None and adjacency is None:
            raise ValueError("X and adjacency are both None; features, links or both are needed")
        rows = None if X is None else self._check_X(X, reset=False)
        links = None
        if adjacency is not None:
            count = None if rows is None else rows.shape[0]
            links = self._check_new_links(adjacency, count, self.state_.n_nodes)
        return rows, links

    def graph_share(self, X: Any, *, adjacency: Any) -> FloatArray:
        """Part of the vote for the labels of new rows that comes from their links.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            New rows; None where there are only links.
        adjacency : array-like, sparse matrix or Links of shape (n_rows, n_samples)
            Links of the rows to the fitted samples.

        Returns
        -------
        ndarray of shape (n_rows,)
            From 0, where a row has no link, to 1, where only members that know the links vote; for
            the fitted samples see ``graph_share_``.
        """
        state = self.state_
        if not state.linked:
            raise ValueError(f"graph_share needs {LINKED}")
        rows, links = self._rows_and_links(X, adjacency)
        codes = state.winners(state.row_shares(rows, links))
        return state.row_graph_share(rows, links, codes)

    def _abstain(self, labels: NDArray[Any], unsure: NDArray[np.bool_]) -> NDArray[Any]:
        marker = self.unlabeled
        if labels.dtype.kind in "iuf" and isinstance(marker, int | float | np.number):
            return np.where(unsure, marker, labels)
        if labels.dtype.kind == "f" and is_missing(marker):
            return np.where(unsure, np.nan, labels)
        out = labels.astype(object)
        out[unsure] = marker
        return out

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, adjacency: Any = None) -> float:
        """Accuracy on the rows whose label is known.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels; rows with the marker `unlabeled` are left out.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        adjacency : array-like, sparse matrix or Links, optional
            Links of the rows to the fitted samples.

        Returns
        -------
        float
            Share of right labels.
        """
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
