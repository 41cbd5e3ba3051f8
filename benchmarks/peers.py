"""The classifiers that are compared: each from features and a few labels to a class per point.

Every entry of ``PEERS`` names the modules it needs and a loader. The loader imports them (imports
are not timed) and returns ``fit(X, codes, n_jobs) -> predicted codes``; in `codes` -1 is unknown.
All use one graph with 10 neighbours and otherwise the defaults of their package, except
``CommitteeClassifier``, which has its defaults, and extra trees, which use no graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NEIGHBORS = 10
DEFAULT = "gdpa CommitteeClassifier (default)"
SINGLE_GRAPH = "gdpa GraphClassifier (single graph)"
SPREADING = "scikit-learn LabelSpreading"

Fit = Callable[[Any, Any, int], Any]


@dataclass(frozen=True)
class Peer:
    """A classifier of another package, or ours."""

    needs: tuple[str, ...]
    load: Callable[[dict[str, Any]], Fit]


def _gdpa(graph: bool = False, **options: Any) -> Callable[[dict[str, Any]], Fit]:
    def load(notes: dict[str, Any]) -> Fit:
        import time

        import gdpa
        from gdpa.estimators import GraphOptions

        def fit(X: Any, codes: Any, n_jobs: int) -> Any:
            start = time.perf_counter()
            stamps: dict[str, float] = {}

            def listen(event: Any) -> None:
                stamps.setdefault(event["stage"], time.perf_counter() - start)

            make = gdpa.GraphClassifier if graph else gdpa.CommitteeClassifier
            model = make(**options, n_jobs=n_jobs, options=GraphOptions(callback=listen))
            model.fit(X, codes)
            total = time.perf_counter() - start
            notes["graph_s"] = stamps["graph"]
            notes["tuning_s"] = stamps["tuning"] - stamps["graph"]
            notes["solve_s"] = total - stamps["tuning"]
            notes["model"] = model
            return model.transduction_

        return fit

    return load


def _spreading(notes: dict[str, Any]) -> Fit:
    from sklearn.semi_supervised import LabelSpreading

    def fit(X: Any, codes: Any, n_jobs: int) -> Any:
        model = LabelSpreading(kernel="knn", n_neighbors=NEIGHBORS, n_jobs=n_jobs)
        return model.fit(X, codes).transduction_

    return fit


def _extra_trees(notes: dict[str, Any]) -> Fit:
    from sklearn.ensemble import ExtraTreesClassifier

    def fit(X: Any, codes: Any, n_jobs: int) -> Any:
        # No graph, and no use of the points without a label.
        known = codes >= 0
        model = ExtraTreesClassifier(300, random_state=0, n_jobs=n_jobs).fit(X[known], codes[known])
        return model.predict(X)

    return fit


def _graphlearning(model: str) -> Callable[[dict[str, Any]], Fit]:
    def load(notes: dict[str, Any]) -> Fit:
        import graphlearning as gl

        def fit(X: Any, codes: Any, n_jobs: int) -> Any:
            # Its search (annoy) uses all cores. k counts the point itself.
            W = gl.weightmatrix.knn(X, NEIGHBORS + 1)
            labeled = np.flatnonzero(codes >= 0)
            return getattr(gl.ssl, model)(W).fit_predict(labeled, codes[labeled])

        return fit

    return load


def _diffusion(notes: dict[str, Any]) -> Fit:
    from sklearn.neighbors import kneighbors_graph
    from sknetwork.classification import DiffusionClassifier

    def fit(X: Any, codes: Any, n_jobs: int) -> Any:
        # It takes a graph only: scikit-learn's neighbours, the most common way to one.
        A = kneighbors_graph(X, NEIGHBORS, n_jobs=n_jobs)
        return DiffusionClassifier().fit_predict(A.maximum(A.T).tocsr(), labels=codes)

    return fit


PEERS: dict[str, Peer] = {
    DEFAULT: Peer((), _gdpa()),
    SINGLE_GRAPH: Peer((), _gdpa(graph=True, n_neighbors=NEIGHBORS)),
    SPREADING: Peer((), _spreading),
    "extra trees": Peer((), _extra_trees),
    "graphlearning Laplace": Peer(("graphlearning", "annoy"), _graphlearning("laplace")),
    "graphlearning Poisson": Peer(("graphlearning", "annoy"), _graphlearning("poisson")),
    "scikit-network diffusion": Peer(("sknetwork",), _diffusion),
}
