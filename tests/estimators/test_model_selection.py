"""Folds over labelled rows only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gdpa import GraphClassifier, SemiSupervisedKFold


@given(
    st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=12, max_size=60),
    st.integers(2, 5),
    st.booleans(),
)
def test_test_folds_partition_the_labelled_rows(y, n_splits, shuffle):
    y = np.array([*y, 0, 0, 1, 1, 2])
    folds = SemiSupervisedKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    seen = []
    for train, test in folds.split(np.zeros((y.size, 1)), y):
        assert (y[test] != -1).all()
        assert set(train) | set(test) == set(range(y.size))
        assert not set(train) & set(test)
        assert set(np.flatnonzero(y == -1)) <= set(train)
        seen.append(test)
        for c in range(3):
            share = (y == c).sum() / n_splits
            assert abs((y[test] == c).sum() - share) < 1 + 1e-9
    assert sorted(np.concatenate(seen)) == np.flatnonzero(y != -1).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_splits": 1}, "n_splits=1"),
        ({"shuffle": "yes"}, "shuffle='yes'"),
        ({"random_state": 3}, "shuffle=True"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        SemiSupervisedKFold(**options)


def test_too_few_labels_for_the_folds():
    with pytest.raises(ValueError, match="y has 2"):
        next(SemiSupervisedKFold(3).split(np.zeros((4, 1)), [0, 1, -1, -1]))


def test_grid_search_pipeline_and_clone():
    X, y = make_blobs(120, centers=3, cluster_std=1.0, random_state=0)
    y = np.where(np.arange(120) % 4 == 0, y, -1)
    pipeline = make_pipeline(StandardScaler(), GraphClassifier())
    search = GridSearchCV(
        pipeline,
        {"graphclassifier__n_neighbors": [3, 8], "graphclassifier__self_loop": [0.01, 0.5]},
        cv=SemiSupervisedKFold(3),
    ).fit(X, y)
    assert search.best_score_ > 0.8
    scores = cross_val_score(clone(pipeline), X, y, cv=SemiSupervisedKFold(3))
    assert scores.shape == (3,)
    assert scores.min() > 0.6
