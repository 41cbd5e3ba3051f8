"""A forest as arrays: the walk is scikit-learn's, folds are unseen, damaged trees are refused."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier

from gdpa import codec
from gdpa.estimators.forest import Forest, cross_forest
from gdpa.estimators.labels import by_appearance
from gdpa.estimators.options import CheckedOptions


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = (X[:, 1] + 0.3 * rng.normal(size=80) > 0).astype(np.int32) + (X[:, 3] > 1)
    return X, y, np.arange(80) % 4


@pytest.fixture(scope="module")
def grown(data):
    X, y, folds = data
    return cross_forest(X, y, folds, 3, CheckedOptions(), n_trees=20)


def test_walk_and_shares_are_those_of_scikit_learn(data, grown):
    X = np.random.default_rng(1).normal(size=(200, 5))
    leaves = grown.forest.leaves(X)
    assert np.array_equal(leaves, grown.leaves(X))
    assert np.array_equal(leaves, grown.forest.leaves(sp.csr_array(X)))
    rows, y, folds = data
    place = by_appearance(y)  # the order of the classes in which trees are grown
    importances = []
    for f in range(int(folds.max()) + 1):
        peer = ExtraTreesClassifier(grown.group(f).stop - grown.group(f).start, random_state=f)
        peer.fit(rows[folds != f], place[folds != f])
        expected = peer.predict_proba(X)[:, place[[np.argmax(y == c) for c in range(3)]]]
        np.testing.assert_allclose(
            grown.forest.leaf_means(leaves, grown.group(f)), expected, atol=1e-6
        )
        importances.append(peer.feature_importances_)
    np.testing.assert_allclose(grown.forest.importances, np.mean(importances, axis=0))
    assert grown.forest.importances.sum() == pytest.approx(1.0)


def test_a_fold_has_no_part_in_its_trees(data, grown):
    X, y, folds = data
    other = np.where(folds == 1, 2 - y, y)
    again = cross_forest(X, other, folds, 3, CheckedOptions(), n_trees=20)
    leaves = again.leaves(X)
    assert np.array_equal(leaves[:, again.group(1)], grown.leaves(X)[:, grown.group(1)])
    np.testing.assert_array_equal(
        again.forest.leaf_means(leaves, again.group(1)),
        grown.forest.leaf_means(grown.leaves(X), grown.group(1)),
    )
    assert not np.array_equal(leaves[:, again.group(0)], grown.leaves(X)[:, grown.group(0)])


def test_huge_values_are_compared_as_the_largest(data):
    X, y, _ = data
    big = X.copy()
    big[:, 1] *= 1e300
    forest = cross_forest(big, y, None, 3, CheckedOptions(), n_trees=5).forest
    assert np.isfinite(forest.threshold).all()
    assert forest.leaves(big).shape == (80, 5)


def test_arrays_come_back(data, grown):
    X, _, _ = data
    back = codec.unpack(Forest, *codec.pack(grown.forest))
    assert np.array_equal(back.leaves(X), grown.leaves(X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda a: a * 0),  # a child before its parent: a walk would never end
        ("right", lambda a: a + 10**6),
        ("feature", lambda a: np.where(a >= 0, 99, a)),
        ("feature", lambda a: np.where(a >= 0, -7, a)),
        ("value", lambda a: a * np.nan),
        ("value", lambda a: a - 1),
        ("value", lambda a: a[:-1]),
        ("threshold", lambda a: a * np.nan),
        ("threshold", lambda a: a[:-1]),
        ("roots", lambda a: a[::-1]),
        ("roots", lambda a: a + 1),
        ("importances", lambda a: a[:1]),
        ("importances", lambda a: -a),
    ],
)
def test_damaged_trees_are_refused(grown, name, change):
    damaged = replace(grown.forest, **{name: change(getattr(grown.forest, name))})
    with pytest.raises(ValueError, match="forest"):
        codec.unpack(Forest, *codec.pack(damaged))


def test_trees_that_reach_into_the_next_one_are_refused(grown):
    right = grown.forest.right.copy()
    right[0] = grown.forest.roots[1]  # the root of the second tree
    with pytest.raises(ValueError, match="leads out of its tree"):
        codec.unpack(Forest, *codec.pack(replace(grown.forest, right=right)))


@pytest.mark.parametrize("power", [-300, -24, 100, 300])
def test_units_of_the_columns_do_not_matter(data, grown, power):
    X, y, folds = data
    moved = X * 2.0**power
    again = cross_forest(moved, y, folds, 3, CheckedOptions(), n_trees=20)
    for found in (
        again.leaves(moved),
        again.leaves(sp.csr_array(moved)),
        again.forest.leaves(moved),
    ):
        np.testing.assert_array_equal(found, grown.leaves(X))
    np.testing.assert_array_equal(again.forest.threshold, grown.forest.threshold * 2.0**power)
    np.testing.assert_allclose(again.forest.importances, grown.forest.importances)


def test_a_column_of_all_sizes_has_finite_importances(data):
    X, y, _ = data
    big = X * 10.0 ** np.random.default_rng(0).uniform(-300, 300, X.shape)
    found = cross_forest(big, y, None, 3, CheckedOptions(), n_trees=20).forest
    assert np.isfinite(found.importances).all()
    assert found.importances.sum() == pytest.approx(1.0)


def test_the_features_of_one_column_are_drawn_as_one_column():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = np.column_stack([y + 0.3 * rng.normal(size=200), rng.normal(size=(200, 60))])
    groups = np.repeat([0, 1], [1, 60])
    plain = cross_forest(X, y, None, 3, CheckedOptions(), n_trees=30)
    drawn = cross_forest(X, y, None, 3, CheckedOptions(feature_groups=groups), n_trees=30)
    # One column of two decides, so it has most of the importance; alone among 61 it is rarely seen.
    assert drawn.forest.importances[0] > 0.6 > plain.forest.importances[0]
    assert drawn.forest.importances.size == 61
    assert drawn.forest.importances.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(drawn.leaves(X), drawn.forest.leaves(X))
    new = np.column_stack([np.tile([0.0, 1.0, 2.0], 100), rng.normal(size=(300, 60))])
    truth = np.tile([0, 1, 2], 100)
    accuracy = {
        name: (grown.forest.predict(new).argmax(axis=1) == truth).mean()
        for name, grown in (("plain", plain), ("drawn", drawn))
    }
    assert accuracy["drawn"] > 0.9
    assert accuracy["drawn"] >= accuracy["plain"]
    # Groups of other features (rows joined with those of their neighbours) are ignored.
    other = cross_forest(X, y, None, 3, CheckedOptions(feature_groups=groups[:5]), n_trees=30)
    np.testing.assert_array_equal(other.forest.feature, plain.forest.feature)
