"""A prediction depends on its row only: bit-equal in every batch and in every order."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier
from gdpa.graph.forest import forest_graph, leaf_weights

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "digits": load_digits,
}
N_ROWS = 400  # of which a fifth is new


def table(name, seed=0):
    """Features, labels of the first four fifths of the rows, classes, and where new rows begin."""
    rng = np.random.default_rng(seed)
    X, z = LOADERS[name](return_X_y=True)
    rows = rng.permutation(X.shape[0])[:N_ROWS]
    X, z = X[rows].astype(np.float64), z[rows]
    n = int(0.8 * z.size)
    y = np.where(rng.random(n) < 0.3, z[:n], -1)
    return X, y, z, n


def check_batches(predict, n_rows, seed=0):
    """Compare predictions of single rows, small batches and permuted rows with those of all."""
    rng = np.random.default_rng(seed)
    whole = predict(np.arange(n_rows))
    for row in range(0, n_rows, 3):
        np.testing.assert_array_equal(predict(np.array([row])), whole[[row]])
    for size in (2, 7, 33):
        for start in range(0, n_rows, 3 * size):
            rows = np.arange(start, min(start + size, n_rows))
            np.testing.assert_array_equal(predict(rows), whole[rows])
    for _ in range(3):
        order = rng.permutation(n_rows)
        np.testing.assert_array_equal(predict(order), whole[order])
    several = np.tile(np.arange(n_rows), 3)
    np.testing.assert_array_equal(predict(several), whole[several])


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_tables(name, precision):
    X, y, _, n = table(name)
    X = X.astype(precision)
    model = CommitteeClassifier().fit(X[:n], y)
    check_batches(lambda rows: model.predict_proba(X[n:][rows]), X.shape[0] - n)


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_columns_stored_one_after_another_give_the_same_predictions(name):
    X, y, _, n = table(name)
    model = CommitteeClassifier().fit(X[:n], y)
    new = X[n:]
    columns = np.asfortranarray(new)
    np.testing.assert_array_equal(model.predict_proba(columns), model.predict_proba(new))
    np.testing.assert_array_equal(model.predict_proba(columns[3:9]), model.predict_proba(new[3:9]))


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_links_with_and_without_features(name):
    X, y, z, n = table(name)
    rng = np.random.default_rng(1)
    dense = (z[:, None] == z) & (rng.random((z.size, z.size)) < 0.05)
    dense = np.triu(dense, 1)
    W = sp.csr_array((dense | dense.T).astype(float))
    links = W[n:][:, :n]
    inner = W[:n][:, :n]
    both = CommitteeClassifier().fit(X[:n], y, adjacency=inner)
    alone = CommitteeClassifier().fit(None, y, adjacency=inner)
    one = GraphClassifier(graph="precomputed").fit(inner, y)
    count = z.size - n
    check_batches(lambda rows: both.predict_proba(X[n:][rows], adjacency=links[rows]), count)
    check_batches(lambda rows: both.predict_proba(X[n:][rows]), count)
    check_batches(lambda rows: alone.predict_proba(links[rows]), count)
    check_batches(lambda rows: one.predict_proba(links[rows]), count)


def test_sparse_words_and_dense_embeddings():
    _, y, z, n = table("digits")
    rng = np.random.default_rng(2)
    words = np.where(rng.random((z.size, 300)) < 0.03, 1.0 + (z[:, None] == np.arange(300) % 10), 0)
    S = sp.csr_array(words)
    points = rng.standard_normal((z.size, 120)) * np.linspace(0.5, 1.5, 120)
    points += 3.0 * np.eye(10, 120)[z]
    points /= np.linalg.norm(points, axis=1)[:, None]
    for X in (S, points):
        model = CommitteeClassifier().fit(X[:n], y)
        check_batches(lambda rows, X=X, model=model: model.predict_proba(X[n:][rows]), z.size - n)


@pytest.mark.parametrize(
    "estimator", [GraphClassifier(), GraphClassifier(graph="full"), GDPAClassifier()]
)
def test_single_graphs(estimator):
    X, y, _, n = table("wine")
    model = estimator.fit(X[:n] / X.std(axis=0), y)
    new = X[n:] / X.std(axis=0)
    check_batches(lambda rows: model.predict_proba(new[rows]), new.shape[0])


def test_ties_of_shared_leaves_depend_on_the_leaves_only():
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 3, (120, 8))
    _, first = np.unique(leaves, axis=0, return_index=True)
    leaves = leaves[np.sort(first)]
    new = rng.integers(0, 3, (50, 8))
    order = rng.permutation(new.shape[0])
    whole = leaf_weights(new, leaves, 5).toarray()
    np.testing.assert_array_equal(leaf_weights(new[order], leaves, 5).toarray(), whole[order])
    np.testing.assert_array_equal(leaf_weights(new[[7]], leaves, 5).toarray(), whole[[7]])
    nodes = rng.permutation(leaves.shape[0])
    moved = leaf_weights(new, leaves[nodes], 5).toarray()
    np.testing.assert_array_equal(moved, whole[:, nodes])
    graph = forest_graph(leaves, 5).toarray()
    moved = forest_graph(leaves[nodes], 5).toarray()
    np.testing.assert_array_equal(moved, graph[nodes][:, nodes])
