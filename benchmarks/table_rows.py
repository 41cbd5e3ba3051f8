"""The classifiers that ``benchmarks.tables`` compares.

Each entry of ``ROWS`` takes features and classes (-1: unknown) and returns predicted classes of all
rows and, where the classifier has them, probabilities. Nothing is tuned for these tables: defaults
of each package, but for what a sentence beside it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Answer = tuple[Any, Any]
NEIGHBORS = 10


def _ours(estimator: str) -> Callable[[Any, Any], Answer]:
    def run(X: Any, codes: Any) -> Answer:
        import gdpa

        model = getattr(gdpa, estimator)().fit(X, codes)
        return model.transduction_, model.predict_proba(X)

    return run


def _spreading(kernel: str) -> Callable[[Any, Any], Answer]:
    def run(X: Any, codes: Any) -> Answer:
        from sklearn.semi_supervised import LabelSpreading

        # The default gamma of 20 makes every standardised row an island: take that of SVC.
        model = LabelSpreading(kernel=kernel, gamma=1.0 / X.shape[1], max_iter=200).fit(X, codes)
        return model.transduction_, model.label_distributions_

    return run


def _graphlearning(name: str) -> Callable[[Any, Any], Answer]:
    def run(X: Any, codes: Any) -> Answer:
        import graphlearning as gl

        # Its own approximate search is not the same in every run; an exact one is.
        found = gl.weightmatrix.knnsearch(X, NEIGHBORS + 1, method="kdtree")
        W = gl.weightmatrix.knn(X, NEIGHBORS, knn_data=found)
        labeled = np.flatnonzero(codes >= 0)
        return getattr(gl.ssl, name)(W).fit_predict(labeled, codes[labeled]), None

    return run


def _supervised(make: Callable[[], Any]) -> Callable[[Any, Any], Answer]:
    def run(X: Any, codes: Any) -> Answer:
        known = codes >= 0
        model = make().fit(X[known], codes[known])
        return model.predict(X), model.predict_proba(X) if hasattr(model, "predict_proba") else None

    return run


def _self_training(X: Any, codes: Any) -> Answer:
    from sklearn.semi_supervised import SelfTrainingClassifier

    model = SelfTrainingClassifier(_logistic()).fit(X, codes)
    return model.predict(X), model.predict_proba(X)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2000)


def _svc() -> Any:
    from sklearn.svm import SVC

    return SVC()


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(300, random_state=0)


def _extra_trees() -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(300, random_state=0)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # With a few labels a class no leaf could hold the default of 20 samples.
    return HistGradientBoostingClassifier(random_state=0, min_samples_leaf=2)


ROWS: dict[str, Callable[[Any, Any], Answer]] = {
    "gdpa": _ours("CommitteeClassifier"),
    'gdpa, graph="knn"': _ours("GraphClassifier"),
    "GDPAClassifier": _ours("GDPAClassifier"),
    "LabelSpreading knn": _spreading("knn"),
    "LabelSpreading rbf": _spreading("rbf"),
    "SelfTraining (logistic)": _self_training,
    "graphlearning Laplace": _graphlearning("laplace"),
    "graphlearning Poisson": _graphlearning("poisson"),
    "logistic regression": _supervised(_logistic),
    "SVC": _supervised(_svc),
    "random forest, 300": _supervised(_forest),
    "extra trees, 300": _supervised(_extra_trees),
    "histogram boosting": _supervised(_boosting),
}
OURS = ("gdpa", 'gdpa, graph="knn"')
