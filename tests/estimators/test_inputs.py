"""The same data gives the same answer in every container, and a wrong order is never assumed."""

import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import gdpa
from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier
from gdpa.graph import Links, from_networkx


def block_graph(seed=0, n=60, inside=0.4, across=0.04):
    """A graph of two blocks whose nodes 0 to n - 1 are added through shuffled edges."""
    rng = np.random.default_rng(seed)
    z = np.repeat([0, 1], n // 2)
    edges = [
        (i, j)
        for i in range(n)
        for j in range(i)
        if rng.random() < (inside if z[i] == z[j] else across)
    ]
    rng.shuffle(edges)
    G = networkx.Graph([tuple(edge) for edge in np.asarray(edges).tolist()])
    G.add_nodes_from(range(n))
    assert list(G.nodes) != sorted(G.nodes)
    y = np.full(n, -1)
    y[[0, 1, 2, 3, n - 1, n - 2, n - 3, n - 4]] = [0] * 4 + [1] * 4
    return G, y, z


def points(n=80, seed=0):
    """Two clusters, with six labels of each."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 2
    X = rng.standard_normal((n, 3)) + 2.5 * z[:, None]
    y = np.where(np.arange(n) < 12, z, -1)
    return X, y, z


# -- order of the nodes ---------------------------------------------------------------------------


def test_numbered_nodes_are_rows_whatever_the_order_of_insertion():
    G, y, z = block_graph()
    W = networkx.to_numpy_array(G, nodelist=range(60))
    X = np.random.default_rng(1).standard_normal((60, 2))
    np.testing.assert_array_equal(from_networkx(G).W.toarray(), W)
    for model in (
        GraphClassifier(graph="precomputed").fit(G, y),
        GraphClassifier().fit(G, y),
        CommitteeClassifier().fit(X, y, adjacency=G),
        CommitteeClassifier().fit(G, y),
    ):
        np.testing.assert_array_equal(model.graph_.toarray(), W)
        assert (model.transduction_ == z).mean() > 0.9


def test_named_nodes_need_an_order():
    G, y, z = block_graph()
    names = [f"node {i}" for i in range(60)]
    H = networkx.relabel_nodes(G, dict(enumerate(names)))
    X = pandas.DataFrame(np.random.default_rng(1).standard_normal((60, 2)), columns=["a", "b"])
    for fit in (
        lambda **order: GraphClassifier(graph="precomputed").fit(H, y, **order),
        lambda **order: CommitteeClassifier().fit(H, y, **order),
        lambda **order: CommitteeClassifier().fit(X, y, adjacency=H, **order),
    ):
        with pytest.raises(ValueError, match="which node belongs to which row: pass nodes="):
            fit()
        with pytest.raises(ValueError, match="must list each of the 60 nodes once"):
            fit(nodes=names[1:])
        with pytest.raises(ValueError, match="twice"):
            fit(nodes=[*names[1:], names[1]])
        want = networkx.to_numpy_array(G, nodelist=range(60))
        np.testing.assert_array_equal(fit(nodes=names).graph_.toarray(), want)
    with pytest.raises(ValueError, match="nodes= is the order of the nodes of a NetworkX graph"):
        GraphClassifier(graph="precomputed").fit(want, y, nodes=names)
    rng = np.random.default_rng(2)
    order = rng.permutation(60)
    shuffled = [names[i] for i in order]
    indexed = pandas.Series(y[order], index=shuffled)
    table = X.set_index(pandas.Index(shuffled))
    for model in (
        GraphClassifier().fit(H, indexed),
        CommitteeClassifier().fit(H, indexed),
        CommitteeClassifier().fit(table, y[order], adjacency=H),
        CommitteeClassifier().fit(X, y[order], adjacency=Links(from_networkx(H, nodes=shuffled))),
    ):
        assert (model.transduction_ == z[order]).mean() > 0.9
    with pytest.raises(ValueError, match="different orders"):
        CommitteeClassifier().fit(table, pandas.Series(y, index=names), adjacency=H)


def test_a_shuffled_index_of_numbers_is_ambiguous():
    G, y, _ = block_graph()
    shuffled = pandas.Series(y).sample(frac=1.0, random_state=0)
    with pytest.raises(ValueError, match="different orders"):
        GraphClassifier().fit(G, shuffled)
    GraphClassifier().fit(G, shuffled, nodes=shuffled.index)


# -- a graph alone --------------------------------------------------------------------------------


def test_a_graph_alone_is_taken_in_every_form_with_one_answer(tmp_path):
    G, y, z = block_graph()
    W = from_networkx(G).W
    first = CommitteeClassifier().fit(G, y)
    for model in (
        CommitteeClassifier().fit(None, y, adjacency=G),
        CommitteeClassifier().fit(None, y, adjacency=W),
        CommitteeClassifier().fit(None, y, adjacency=W.toarray()),
        CommitteeClassifier().fit(None, y, list(G.edges())),
        CommitteeClassifier().fit(Links(W), y),
        CommitteeClassifier().fit(from_networkx(G), y),
    ):
        np.testing.assert_array_equal(model.label_scores_, first.label_scores_)
    np.testing.assert_array_equal(gdpa.classify(G, y), first.transduction_)
    np.testing.assert_array_equal(gdpa.classify(None, y, adjacency=W), first.transduction_)
    assert (first.transduction_ == z).mean() > 0.9
    assert (first.predict(W[:10]) == z[:10]).mean() > 0.8
    np.testing.assert_array_equal(
        first.predict_proba(W[:3]), first.predict_proba(None, adjacency=W[:3])
    )
    assert first.query(2).size == 2
    assert (CommitteeClassifier().query(2, X=G) < 60).all()
    first.save(tmp_path / "m.npz")
    again = CommitteeClassifier.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.predict_proba(W[:9]), first.predict_proba(W[:9]))
    first.report(tmp_path / "report.html")
    first.add_labels([10, 50], [1, 0])
    assert first.transduction_[[10, 50]].tolist() == [1, 0]
    first.add_labels([11], [7])
    assert first.classes_.tolist() == [0, 1, 7]
    GraphClassifier().fit(G, y).save(tmp_path / "g.npz")
    one = GraphClassifier.load(tmp_path / "g.npz")
    assert one.predict(W[:4]).shape == (4,)
    assert (GDPAClassifier().fit(G, y).transduction_ == z).mean() > 0.8


def test_wrong_uses_of_a_graph_alone_have_a_reason():
    from sklearn.linear_model import LogisticRegression

    G, y, _ = block_graph()
    model = CommitteeClassifier()
    with pytest.raises(ValueError, match="y has 59 entries"):
        model.fit(G, y[:59])
    with pytest.raises(ValueError, match="both graphs"):
        model.fit(G, y, adjacency=G)
    with pytest.raises(ValueError, match="models needs features"):
        CommitteeClassifier(models=LogisticRegression()).fit(G, y)
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, 60)))
    with pytest.raises(ValueError, match="without features; pass X or adjacency"):
        model.fit(G, y).predict(np.zeros((1, 60)), adjacency=np.zeros((1, 60)))


def test_tiny_graphs_and_one_class_are_labelled():
    pair = networkx.Graph([(0, 1)])
    assert gdpa.classify(pair, [3, 4]).tolist() == [3, 4]
    with pytest.warns(match="only one class"):
        model = CommitteeClassifier().fit(pair, ["a", None])
    assert model.transduction_.tolist() == ["a", "a"]
    assert model.predict([[0.0, 1.0]]).tolist() == ["a"]


@pytest.mark.parametrize("seed", range(3))
def test_with_one_label_per_class_the_harmonic_function_is_beaten(seed):
    sizes = [80, 50, 110]
    share = np.full((3, 3), 0.02) + 0.10 * np.eye(3)
    G = networkx.stochastic_block_model(sizes, share, seed=seed)
    z = np.repeat([0, 1, 2], sizes)
    W = networkx.to_scipy_sparse_array(G, nodelist=range(z.size), dtype=float)
    accuracies = []
    for draw in range(5):
        rng = np.random.default_rng(draw)
        y = np.full(z.size, -1)
        known = [rng.choice(np.flatnonzero(z == c)) for c in range(3)]
        y[known] = z[known]
        free = y < 0
        by_committee = gdpa.classify(None, y, adjacency=W)
        harmonic = GraphClassifier(graph="precomputed", method="harmonic").fit(W, y).transduction_
        accuracies.append([(by_committee == z)[free].mean(), (harmonic == z)[free].mean()])
    mean = np.mean(accuracies, axis=0)
    assert mean[0] > mean[1] + 0.1


# -- containers of y ------------------------------------------------------------------------------


def containers(labels):
    """The same labels in every container that keeps their types."""
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    yield list(labels)
    yield tuple(labels)
    yield objects
    yield pandas.Series(labels, dtype=object)
    yield pandas.Series(labels, dtype=object, index=range(len(labels), 0, -1))
    yield pandas.Categorical(labels)
    types = {type(label) for label in labels if label is not None and label == label}
    if len(types) == 1:
        yield pandas.Series(labels)
        plain = [None if label != label else label for label in labels]
        yield polars.Series(plain)
        yield pyarrow.array(plain)
        if types == {str}:
            yield pandas.Series(plain, dtype="string")
            if None not in plain:
                yield np.array(plain)
    if types <= {int}:
        yield np.array(labels)


@pytest.mark.parametrize(
    ("labels", "classes", "n_labels"),
    [
        (["a", "b", "-1", "a", "b"], ["a", "b"], 4),
        (["a", "b", -1, "a", "b"], ["a", "b"], 4),
        (["a", "b", None, "a", "b"], ["a", "b"], 4),
        (["a", "b", float("nan"), "a", "b"], ["a", "b"], 4),
        (["a", "b", "", "a", " "], ["a", "b"], 3),
        (["None", "nan", "NA", "-", "?"], ["-", "?", "NA", "None", "nan"], 5),
        ([True, False, -1, True, False], [False, True], 4),
        ([3, 4, -1, 3, 4], [3, 4], 4),
    ],
)
def test_labels_mean_the_same_in_every_container(labels, classes, n_labels):
    X = np.arange(5.0)[:, None]
    tried = 0
    for y in containers(labels):
        model = GraphClassifier(n_neighbors=1).fit(X, y)
        assert model.classes_.tolist() == classes, type(y)
        assert (model.ensemble_.labels.codes >= 0).sum() == n_labels, type(y)
        tried += 1
    assert tried >= 6


@pytest.mark.parametrize("labels", [[1, "a", -1, 1, "a"], [True, 2, -1, True, 2]])
def test_labels_of_several_types_are_refused_in_every_container(labels):
    for y in list(containers(labels))[:5]:
        with pytest.raises(ValueError, match="mixes labels of different types"):
            GraphClassifier(n_neighbors=1).fit(np.arange(5.0)[:, None], y)


@pytest.mark.parametrize("values", [[0, 1] * 20, [0.0, 1.0] * 20, ["a", "b"] * 20])
def test_masked_labels_are_unknown(values):
    mask = np.ones(40, dtype=bool)
    mask[:4] = False
    y = np.ma.masked_array(values, mask=mask)
    X = np.random.default_rng(0).standard_normal((40, 2))
    for unlabeled in (-1, None):
        model = GraphClassifier(unlabeled=unlabeled).fit(X, y)
        assert (model.ensemble_.labels.codes >= 0).sum() == 4


def test_masked_features_and_weights_are_missing():
    X, y, _ = points()
    masked = np.ma.masked_array(X.copy())
    masked[7, 1] = np.ma.masked
    with pytest.raises(ValueError, match="NaN in row 7, column 1"):
        CommitteeClassifier().fit(masked, y)
    model = CommitteeClassifier().fit(np.ma.masked_array(X), y)
    with pytest.raises(ValueError, match="NaN in row 7, column 1"):
        model.predict(masked)
    W = np.ma.masked_array(np.ones((80, 80)))
    W[3, 4] = np.ma.masked
    with pytest.raises(ValueError, match=r"adjacency\[3, 4\] is masked"):
        CommitteeClassifier().fit(X, y, adjacency=W)
    with pytest.raises(ValueError, match=r"W\[3, 4\] is masked"):
        gdpa.graph.laplacian(W)


def test_a_lazy_frame_is_refused_with_a_reason():
    X, y, _ = points()
    frame = polars.DataFrame(X, schema=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"polars LazyFrame.*pass X.collect\(\)"):
        CommitteeClassifier().fit(frame.lazy(), y)
    model = CommitteeClassifier().fit(frame, y)
    with pytest.raises(ValueError, match=r"polars LazyFrame.*pass X.collect\(\)"):
        model.predict(frame.lazy())


# -- matrices -------------------------------------------------------------------------------------


def test_duplicates_of_small_integers_are_added_without_overflow():
    at = ([0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1])
    small = sp.coo_array((np.array([100] * 4 + [1] * 2, dtype=np.int8), at), shape=(3, 3))
    flags = sp.coo_array((np.ones(6, dtype=bool), at), shape=(3, 3))
    for graph, weight in ((small, 200.0), (flags, 2.0)):
        model = GraphClassifier(graph="precomputed").fit(graph, [0, -1, 1])
        assert model.graph_[0, 1] == weight
        alone = CommitteeClassifier().fit(None, [0, -1, 1], adjacency=graph)
        assert alone.graph_[0, 1] == weight
        assert gdpa.graph.laplacian(graph)[0, 1] == -weight
    X = sp.coo_array((np.array([100, 100, 1], dtype=np.int8), ([0, 0, 3], [0, 0, 1])), shape=(4, 2))
    sparse = GraphClassifier(n_neighbors=1).fit(X, [0, -1, -1, 1])
    dense = GraphClassifier(n_neighbors=1).fit([[200, 0], [0, 0], [0, 0], [0, 1]], [0, -1, -1, 1])
    np.testing.assert_array_equal(sparse.label_scores_, dense.label_scores_)


def test_asymmetry_is_judged_by_the_pair_not_by_the_largest_weight():
    for large in (1e12, 1e18, 1e200):
        W = [[0, large, 0], [large, 0, 50], [0, 0, 0]]
        with pytest.raises(ValueError, match=r"W\[1, 2\] = 50 and W\[2, 1\] = 0"):
            gdpa.graph.laplacian(W)
    rng = np.random.default_rng(0)
    F = rng.standard_normal((200, 3))
    W = np.abs(F @ F.T) * (1.0 + 1e-15 * rng.standard_normal((200, 200)))
    L = gdpa.graph.laplacian(W)
    np.testing.assert_array_equal(L.toarray(), L.toarray().T)


# -- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "fortran", "csr", "rows", "memory"])
@pytest.mark.parametrize("estimator", [CommitteeClassifier, GraphClassifier, GDPAClassifier])
def test_changing_X_after_fit_changes_nothing(kind, estimator):
    X, y, _ = points()
    X = X.astype(np.float32) if kind == "float32" else X
    if kind == "fortran":
        X = np.asfortranarray(X)
    elif kind == "csr":
        X = sp.csr_array(np.maximum(X, 0.0))
    elif kind == "rows":
        X = np.vstack([X, X])[:80]
    new = X[20:40].copy()
    model = estimator().fit(memoryview(X) if kind == "memory" else X, y)
    before = model.predict_proba(new)
    if kind == "csr":
        X.data *= -1
        X.indices[:] = 0
    else:
        X *= -1
    np.testing.assert_array_equal(model.predict_proba(new), before)


def test_changing_the_links_after_fit_changes_nothing():
    X, y, _ = points()
    W = sp.csr_array((X @ X.T > 8.0).astype(float))
    rows = W[:5].copy()
    for model in (
        CommitteeClassifier().fit(X.copy(), y, adjacency=W),
        CommitteeClassifier().fit(None, y, adjacency=W),
        GraphClassifier(graph="precomputed").fit(W, y),
    ):
        new = None if model.n_features_in_ != 3 else X[:5]
        given = (rows,) if isinstance(model, GraphClassifier) else (new,)
        links = {} if isinstance(model, GraphClassifier) else {"adjacency": rows}
        before = model.predict_proba(*given, **links)
        data, indices = W.data.copy(), W.indices.copy()
        W.data[:] = 7.0
        W.indices[:] = 0
        np.testing.assert_array_equal(model.predict_proba(*given, **links), before)
        W.data[:], W.indices[:] = data, indices
