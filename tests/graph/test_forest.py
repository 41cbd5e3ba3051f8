"""Forest graphs beside their definition: shares of leaves in common, pair by pair."""

import numpy as np
import pytest

from gdpa.graph import forest, forest_graph
from gdpa.graph.forest import LeafEmbedding, balanced_columns, leaf_weights


def shares(rows, leaves):
    return (rows[:, None, :] == leaves[None, :, :]).mean(axis=2)


@pytest.fixture
def leaves():
    return np.random.default_rng(0).integers(0, 7, (120, 40))


def test_weights_are_shares_of_common_leaves(leaves):
    W = forest_graph(leaves, 6).toarray()
    S = shares(leaves, leaves)
    assert np.array_equal(W, W.T)
    assert not W.diagonal().any()
    np.testing.assert_allclose(W[W > 0], S[W > 0], rtol=1e-15)
    np.fill_diagonal(S, -1.0)
    kth = np.sort(S, axis=1)[:, -6]
    # What is clearly among the six strongest is there; what is weaker for both ends is not.
    assert (W[kth[:, None] < S] > 0).all()
    weaker = (kth[:, None] > S) & (kth[None, :] > S)
    assert not W[weaker].any()


def test_blocks_and_many_trees_change_nothing(leaves, monkeypatch):
    many = np.hstack([leaves] * 8)  # more trees than a byte counts
    whole = forest_graph(many, 5)
    monkeypatch.setattr(forest, "BLOCK", 7 * 120)
    assert abs(forest_graph(many, 5) - whole).max() == 0
    # The same weights; ties depend on the leaves.
    few, more = (np.sort(leaf_weights(a, a, 5).toarray(), axis=1) for a in (leaves, many))
    np.testing.assert_allclose(few, more, rtol=1e-15)


def test_equal_similarities_make_no_hubs():
    W = forest_graph(np.zeros((50, 3), dtype=int), 4)
    degree = np.diff(W.indptr)
    assert degree.max() <= 8
    assert degree.min() >= 4


def test_new_rows_attach_to_the_strongest(leaves):
    rows = np.random.default_rng(1).integers(0, 7, (9, 40))
    W = leaf_weights(rows, leaves, 5).toarray()
    S = shares(rows, leaves)
    assert ((W > 0).sum(axis=1) <= 5).all()
    np.testing.assert_allclose(W.max(axis=1), S.max(axis=1), rtol=1e-15)
    np.testing.assert_allclose(np.sort(W, axis=1)[:, -5:], np.sort(S, axis=1)[:, -5:], rtol=1e-15)
    assert (
        leaf_weights(leaves[:3], leaves, 1).toarray()[np.arange(3), np.arange(3)].tolist()
        == [1.0] * 3
    )


def test_embedding_keeps_inner_products():
    rng = np.random.default_rng(2)
    group = rng.integers(0, 6, 200)
    leaves = (group[:, None] + (rng.random((200, 30)) < 0.1)) % 6
    S = shares(leaves, leaves)
    P = LeafEmbedding.fit(leaves, 64).transform(leaves)
    # 64 of 180 columns: what is lost is the small part of the spectrum.
    values = np.sort(np.linalg.eigvalsh(S))[::-1]
    lost = np.linalg.norm(S - P @ P.T)
    assert lost <= 1.1 * np.linalg.norm(values[64:]) + 1e-5
    full = LeafEmbedding.fit(leaves, 200).transform(leaves)
    np.testing.assert_allclose(full @ full.T, S, atol=1e-5)


def test_embedding_of_a_sample_and_of_unknown_leaves(monkeypatch, leaves):
    monkeypatch.setattr(forest, "EMBEDDED_ROWS", 60)
    E = LeafEmbedding.fit(leaves, 16, random_state=1)
    assert np.array_equal(E.vectors, LeafEmbedding.fit(leaves, 16, random_state=1).vectors)
    P = E.transform(np.full((1, 40), 99))
    assert np.array_equal(P, np.zeros((1, 16)))


def test_small_and_bad_input(leaves):
    assert forest_graph([[1, 2]]).nnz == 0
    assert forest_graph([[1, 2], [3, 4]]).nnz == 0
    with pytest.raises(ValueError, match="leaves must be integers"):
        forest_graph([[0.5, 1.0]])
    with pytest.raises(ValueError, match="negative leaf"):
        forest_graph([[0, -1], [0, 1]])
    with pytest.raises(ValueError, match="n_neighbors=0"):
        forest_graph(leaves, 0)
    with pytest.raises(ValueError, match="trees"):
        leaf_weights(leaves[:, :3], leaves)
    with pytest.raises(ValueError, match="trees"):
        LeafEmbedding.fit(leaves, 8).transform(leaves[:, :3])


def test_refused_before_memory_is_gone(leaves, monkeypatch):
    monkeypatch.setattr("gdpa.memory.available_memory", lambda: 10_000)
    monkeypatch.setattr("gdpa.memory.MIN_CHECKED_BYTES", 0)
    with pytest.raises(MemoryError, match="forest graph of 120 nodes"):
        forest_graph(leaves)


def test_every_group_is_drawn_equally_often():
    groups = np.repeat([0, 1, 2, 3], [1, 30, 1, 15])
    columns = balanced_columns(groups)
    share = np.bincount(groups[columns]) / columns.size
    np.testing.assert_allclose(share, 0.25, atol=0.01)
    assert set(columns.tolist()) == set(range(groups.size))
    assert balanced_columns(np.arange(5)).tolist() == [0, 1, 2, 3, 4]
    assert balanced_columns([7, 7, 7]).tolist() == [0, 1, 2]
    wide = balanced_columns(np.concatenate([np.arange(3000), np.full(400, 3000)]))
    assert wide.size <= 4096 + 400
    with pytest.raises(ValueError, match="groups must be integers"):
        balanced_columns([[0, 1]])


def test_trees_on_balanced_columns_see_a_number_beside_many_features():
    rng = np.random.default_rng(0)
    n = 200
    y = rng.integers(0, 4, n)
    X = np.column_stack([y + 0.1 * rng.normal(size=n), rng.normal(size=(n, 200))])
    columns = balanced_columns(np.repeat([0, 1], [1, 200]))
    trees = pytest.importorskip("sklearn.tree")
    right = {}
    for name, kept in (("plain", np.arange(201)), ("balanced", columns)):
        votes = np.zeros((n // 2, 4))
        for seed in range(30):
            tree = trees.ExtraTreeClassifier(max_features="sqrt", random_state=seed)
            tree.fit(X[: n // 2, kept], y[: n // 2])
            votes += tree.predict_proba(X[n // 2 :, kept])
        right[name] = np.mean(votes.argmax(axis=1) == y[n // 2 :])
    assert right["balanced"] > right["plain"] + 0.1
