"""Shares of rows that were not fitted: by their neighbours, their links, and all who vote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system import attached_scores
from .graphs import ClassifierGraph
from .labels import LabelCoding
from .probabilities import to_shares

__all__ = ["NewRows"]

FloatArray = NDArray[np.float64]


class NewRows:
    """What a fitted state says about new rows."""

    graph: ClassifierGraph
    coding: LabelCoding
    scores: FloatArray
    shares: FloatArray
    prior: FloatArray
    run: Any
    evidence: Any
    committee: Any
    setting: Any
    n_classes: Any
    own_shares: FloatArray | None
    labels: NDArray[np.intp]
    _graph_shares: Any

    @property
    def linked(self) -> bool:
        """Whether a given graph and features vote together."""
        return self.committee is not None and self.graph.kind == "precomputed"

    def row_shares(self, X: Any, links: Any = None) -> FloatArray:
        """Shares of new rows.

        A row that coincides with fitted samples is no new node: it takes their labels where they
        have some, else their mean score.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_rows, n_features)
            Checked features; for a precomputed graph the weights to the nodes.
        links : csr_array of shape (n_rows, n_nodes), optional
            Weights to the nodes where a given graph and features vote together; one of the two may
            be None.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Rows that add up to 1.
        """
        graph, setting = self.graph, self.setting
        if self.linked:
            return self._linked_shares(X, links)
        if graph.rescaler is not None:
            X = graph.rescaler.transform(X)
        evidence = self.evidence.predict(X) if self.evidence is not None else None
        weights, same = graph.attach(X)
        scores = attached_scores(
            weights,
            same,
            self.scores,
            self._graph_shares,
            self.coding.codes,
            100.0 * self.run.tol,
            evidence=evidence,
            evidence_weight=setting.evidence_weight,
            degrees=graph.degrees,
            laplacian=graph.laplacian,
            self_loop=setting.self_loop,
        )
        shares = to_shares(scores, self.prior)
        return shares if self.committee is None else self._voted(X, shares, same)

    def _linked_shares(self, X: Any, links: Any) -> FloatArray:
        """Shares of new rows by their features, their links, or both."""
        assert self.committee is not None
        X, own = self._linked_parts(X, links)
        return np.asarray(self.committee.vote_rows(X, own, links))

    def _linked_parts(self, X: Any, links: Any) -> tuple[Any, FloatArray | None]:
        """Features as the members take them, and what the given graph says."""
        graph = self.graph
        if X is not None and graph.rescaler is not None:
            X = graph.rescaler.transform(X)
        if links is None:
            return X, None
        alone: NewRows = replace(  # type: ignore[type-var]
            self,
            graph=replace(graph, rescaler=None),
            committee=None,
            own_shares=None,
            shares=self._graph_shares,
        )
        return X, alone.row_shares(links)

    def graph_share(self) -> FloatArray:
        """Part of the vote for each node's class that comes from members that know a given graph.

        Returns
        -------
        ndarray of shape (n_nodes,)
            0 for nodes without a link; without features beside the graph 1, without a given graph
            0 for all.
        """
        linked = np.diff(self.graph.W.indptr) > 0
        if not self.linked:
            return np.asarray(linked & (self.graph.kind == "precomputed"), dtype=np.float64)
        said = {m.name: m.shares for m in self.committee.members}
        return np.asarray(self.committee.graph_share(self.own_shares, said, self.labels, linked))

    def row_graph_share(self, X: Any, links: Any, codes: NDArray[Any]) -> FloatArray:
        """The same of new rows, whose classes are given.

        Parameters
        ----------
        X, links
            As in :meth:`row_shares`.
        codes : ndarray of int of shape (n_rows,)
            The class that each row got.

        Returns
        -------
        ndarray of shape (n_rows,)
            Parts from 0 to 1.
        """
        if not self.linked or links is None:
            return np.zeros(codes.size)
        X, own = self._linked_parts(X, links)
        said = self.committee.said(X, links)
        return np.asarray(self.committee.graph_share(own, said, codes, np.diff(links.indptr) > 0))

    def _voted(self, X: Any, own: FloatArray, same: Any) -> FloatArray:
        """Shares of new rows by all who vote; a row that is a node has the node's."""
        assert self.committee is not None
        shares = self.committee.vote_rows(X, own)
        if same is not None:
            # Of equal nodes the labelled ones speak, where there are any.
            known = same[:, self.coding.labeled]
            given = np.flatnonzero(np.diff(known.indptr))
            hit = np.setdiff1d(np.flatnonzero(np.diff(same.indptr)), given)
            shares[hit] = (same[hit] @ self.shares) / np.diff(same.indptr)[hit, None]
            shares[given] = own[given]
        return np.asarray(shares)
