"""A graph and features together."""

import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gdpa
from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.errors import DegenerateProblemWarning
from gdpa.estimators.columns import FewerWords
from gdpa.estimators.committee import MEMBERS, fit_committee
from gdpa.estimators.labels import encode_labels
from gdpa.estimators.options import CheckedOptions
from gdpa.estimators.weights import WeightRule
from gdpa.graph import Links
from gdpa.graph.smoothing import Smoother


def planted(n=300, k=3, *, inside=0.06, across=0.006, shift=1.5, seed=0):
    """Classes that show in links and in features, both with noise; an eighth of labels known."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, k, n)
    p = np.where(z[:, None] == z, inside, across)
    upper = np.triu(rng.random((n, n)) < p, 1)
    W = sp.csr_array((upper | upper.T).astype(float))
    X = shift * np.eye(k, 5)[z] + rng.standard_normal((n, 5))
    y = np.where(rng.random(n) < 0.125, z, -1)
    return X, y, W, z


def error(labels, z, y):
    return float((labels != z)[y < 0].mean())


@pytest.fixture
def fitted():
    X, y, W, z = planted()
    return CommitteeClassifier().fit(X, y, adjacency=W), X, y, W, z


def test_both_together_beat_each_alone(fitted):
    model, X, y, W, z = fitted
    both = error(model.transduction_, z, y)
    features = error(CommitteeClassifier().fit(X, y).transduction_, z, y)
    links = error(GraphClassifier(graph="precomputed").fit(W, y).transduction_, z, y)
    assert both < features
    assert both < links
    assert model.graph_.nnz == W.nnz
    assert model.committee_.names[0] == "links"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_links_of_noise_and_features_of_noise_cost_little(seed):
    X, y, W, z = planted(n=400, seed=seed)
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(z.size)
    noise = sp.csr_array(W[shuffled][:, shuffled])
    alone = error(CommitteeClassifier().fit(X, y).transduction_, z, y)
    assert (
        error(CommitteeClassifier().fit(X, y, adjacency=noise).transduction_, z, y) <= alone + 0.03
    )
    alone = error(GraphClassifier(graph="precomputed").fit(W, y).transduction_, z, y)
    useless = rng.standard_normal(X.shape)
    assert (
        error(CommitteeClassifier().fit(useless, y, adjacency=W).transduction_, z, y)
        <= alone + 0.03
    )


def test_new_nodes_by_features_by_links_or_both(fitted):
    model, X, _, W, z = fitted
    rows = W[:40]
    for answer in (
        model.predict_proba(X[:40], adjacency=rows),
        model.predict_proba(X[:40]),
        model.predict_proba(None, adjacency=rows),
    ):
        assert answer.shape == (40, 3)
        np.testing.assert_allclose(answer.sum(axis=1), 1.0)
        assert (answer.argmax(axis=1) == z[:40]).mean() > 0.6
    empty = sp.csr_array((40, W.shape[0]))
    np.testing.assert_allclose(
        model.predict_proba(X[:40], adjacency=empty), model.predict_proba(X[:40])
    )


def test_files_pickles_clones_and_further_labels(fitted, tmp_path):
    model, X, y, W, z = fitted
    model.save(tmp_path / "m.npz")
    for other in (CommitteeClassifier.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(
            other.predict_proba(X[:9], adjacency=W[:9]),
            model.predict_proba(X[:9], adjacency=W[:9]),
            atol=1e-10,
        )
    again = clone(model).fit(X, y, adjacency=W)
    np.testing.assert_array_equal(again.label_scores_, model.label_scores_)
    unknown = np.flatnonzero(y < 0)[:5]
    again.add_labels(unknown, z[unknown])
    np.testing.assert_array_equal(again.transduction_[unknown], z[unknown])
    assert again.query(3).size == 3
    assert gdpa.classify(X, y, adjacency=W).shape == y.shape


def test_sparse_features_stay_sparse_and_isolated_nodes_get_a_label():
    X, y, W, z = planted(n=200, inside=0.12)
    cut = W.tolil()
    cut[:10] = 0
    cut[:, :10] = 0
    words = sp.csr_array(np.maximum(X, 0.0))
    model = CommitteeClassifier().fit(words, y, adjacency=sp.csr_array(cut))
    assert np.isfinite(model.label_scores_).all()
    assert model.unreached_.size == 0
    assert error(model.transduction_, z, y) < 0.4
    assert model.predict(words[:3]).shape == (3,)


@pytest.mark.slow
def test_no_dense_copy_of_sparse_features_is_made():
    rng = np.random.default_rng(0)
    n, d, length = 600, 20_000, 12
    z = np.arange(n) // 2 % 3  # linked in pairs: smoothing fills no more than two rows' words
    pairs = np.arange(n).reshape(-1, 2)
    W = sp.coo_array((np.ones(n), (pairs.ravel(), pairs[:, ::-1].ravel())), shape=(n, n)).tocsr()
    own = rng.integers(0, 300, (n, length)) + 300 * z[:, None]
    words = np.where(rng.random((n, length)) < 0.5, own, rng.integers(0, d, (n, length)))
    at = np.repeat(np.arange(n), length), words.ravel()
    X = sp.csr_array(sp.coo_array((np.ones(n * length), at), shape=(n, d)))
    y = np.where(np.arange(n) < 60, z, -1)
    CommitteeClassifier().fit(X[:90], y[:90], adjacency=W[:90][:, :90])  # what is loaded late
    tracemalloc.start()
    try:
        model = CommitteeClassifier().fit(X, y, adjacency=W)
        model.predict(X[:9], adjacency=W[:9])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert {"smoothed", "links and features"} <= set(model.committee_.names)
    assert peak < 0.5 * 8 * n * d


def test_features_and_links_with_wide_indices_are_taken(fitted):
    _, X, y, W, _ = fitted

    def wide(A):
        A = sp.csr_array(A)
        A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
        return A

    words = sp.csr_array(np.maximum(X, 0.0))
    narrow = CommitteeClassifier().fit(words, y, adjacency=W)
    same = CommitteeClassifier().fit(wide(words), y, adjacency=wide(W))
    np.testing.assert_array_equal(same.label_scores_, narrow.label_scores_)
    np.testing.assert_array_equal(
        same.predict(wide(words)[:5], adjacency=wide(W)[:5]),
        narrow.predict(words[:5], adjacency=W[:5]),
    )


def test_weights_of_any_size_give_the_same_answer(fitted):
    model, X, y, W, _ = fitted
    small = CommitteeClassifier().fit(X, y, adjacency=1e-9 * W)
    np.testing.assert_allclose(small.label_scores_, model.label_scores_, atol=1e-5)


@pytest.mark.slow
def test_metadata_goes_through_pipelines_and_grid_search(fitted):
    _, X, y, W, _ = fitted
    links = Links(W)
    with sklearn.config_context(enable_metadata_routing=True):
        request = CommitteeClassifier().set_fit_request(adjacency=True)
        request = request.set_score_request(adjacency=True)
        pipe = make_pipeline(StandardScaler(), request).fit(X, y, adjacency=W)
        assert pipe[-1].committee_.names[0] == "links"
        search = GridSearchCV(
            request,
            {"n_neighbors": [4, 6]},
            cv=gdpa.SemiSupervisedKFold(2),
            error_score="raise",
        )
        search.fit(X, y, adjacency=links)
    assert 0.5 < search.best_score_ <= 1.0


def test_bad_input_is_named(fitted):
    model, X, y, W, _ = fitted
    with pytest.raises(ValueError, match="adjacency has 299 nodes, but X has 300 rows"):
        CommitteeClassifier().fit(X, y, adjacency=W[:299][:, :299])
    directed = W.tolil()
    directed[0, 1], directed[1, 0] = 5.0, 1.0
    with pytest.raises(ValueError, match=r"adjacency.*symmetric"):
        CommitteeClassifier().fit(X, y, adjacency=directed.tocsr())
    with pytest.raises(ValueError, match=r"adjacency.*negative|adjacency\["):
        CommitteeClassifier().fit(X, y, adjacency=-W)
    with pytest.raises(ValueError, match=r"adjacency has shape \(3, 7\)"):
        model.predict(X[:3], adjacency=np.ones((3, 7)))
    with pytest.raises(ValueError, match="both None"):
        model.predict(None)
    with pytest.raises(ValueError, match="fitted with adjacency"):
        CommitteeClassifier().fit(X, y).predict(X[:3], adjacency=W[:3])
    loops = W + 3.0 * sp.eye_array(W.shape[0])
    same = CommitteeClassifier().fit(X, y, adjacency=sp.csr_array(loops))
    np.testing.assert_array_equal(same.transduction_, model.transduction_)
    with pytest.warns(DegenerateProblemWarning, match="no links"):
        nothing = CommitteeClassifier().fit(X, y, adjacency=sp.csr_array(W.shape))
    assert np.isfinite(nothing.label_scores_).all()
    assert not nothing.graph_share_.any()
    with pytest.raises(ValueError, match="Links"):
        CommitteeClassifier().fit(X[:200], y[:200], adjacency=W[:200])


@pytest.mark.slow
def test_graphs_of_any_form_and_nodes_without_an_edge():
    X, y, W, _ = planted(n=80)
    cut = W.tolil()
    cut[-1] = 0
    cut[:, -1] = 0  # the last node has no edge
    W = sp.csr_array(cut)
    wanted = CommitteeClassifier().fit(X, y, adjacency=W).label_scores_
    edges = np.stack(sp.triu(W, 1).tocoo().coords, axis=1)
    forms = [edges, edges.astype(float), [tuple(e) for e in edges.tolist()], W.toarray()]
    forms += [np.column_stack([edges, np.ones(len(edges))])]
    for form in forms:
        found = CommitteeClassifier().fit(X, y, adjacency=form).label_scores_
        np.testing.assert_allclose(found, wanted, atol=1e-10)
    with pytest.raises(ValueError, match="adjacency has 81 nodes"):
        CommitteeClassifier().fit(X, y, adjacency=[*forms[2], (0, 80)])
    repeated = np.vstack([edges, edges[:1]])  # the same edge again counts once
    found = CommitteeClassifier().fit(X, y, adjacency=repeated).label_scores_
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_share_of_the_graph_in_the_answer(fitted, tmp_path):
    model, X, _, W, _ = fitted
    share = model.graph_share_
    assert share.shape == (300,)
    assert ((share >= 0) & (share <= 1)).all()
    assert (share[np.diff(W.indptr) == 0] == 0).all()
    names = np.array(model.committee_.names)
    alone = {"neighbours", "kernel"}
    knows = ~np.isin(names, list(alone))
    mean = float(model.committee_.weights[knows].sum())
    assert abs(share[np.diff(W.indptr) > 0].mean() - mean) < 0.1
    new = model.graph_share(X[:5], adjacency=sp.vstack([W[:4], sp.csr_array((1, 300))]).tocsr())
    assert (new[:4] > 0).all()
    assert new[4] == 0.0
    model.save(tmp_path / "m.npz")
    np.testing.assert_allclose(CommitteeClassifier.load(tmp_path / "m.npz").graph_share_, share)
    with pytest.raises(ValueError, match="fitted with adjacency"):
        GraphClassifier(graph="precomputed").fit(W, np.arange(300) % 2).graph_share(X, adjacency=W)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_links_of_any_weight_and_rows_as_far_as_a_number_can_be(weight, sparse):
    X, y, W, _ = planted(n=80)
    X = sp.csr_array(X * (np.abs(X) > 1)) if sparse else X
    model = CommitteeClassifier().fit(X, y, adjacency=weight * W)
    rows = np.vstack([np.full(5, 1.7e308), np.full(5, -1e200), np.full(5, 1e-310), np.zeros(5)])
    rows = sp.csr_array(rows) if sparse else rows
    links = W[:4].toarray() * [[weight], [1e308 / 80], [1e-320], [0.0]]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for given in ((rows, links), (rows, None), (None, links)):
            found = model.predict_proba(given[0], adjacency=given[1])
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_units_of_the_links_do_not_matter_to_smoothed_features():
    X, _, W, _ = planted(n=80)
    one = Smoother(W, X)
    for power in (-1000, 900):
        other = Smoother(sp.csr_array(W * 2.0**power), X)
        np.testing.assert_allclose(other.points(1.0, 2), one.points(1.0, 2), rtol=1e-9)
        new = W[:9] * 2.0**power
        found = other.new_points(X[:9], sp.csr_array(new), 1.0, 2)
        np.testing.assert_allclose(found, one.new_points(X[:9], W[:9], 1.0, 2), rtol=1e-9)


def test_features_smoothed_to_one_point_are_not_blown_up():
    X = np.random.default_rng(0).normal(size=(40, 3))
    complete = sp.csr_array(np.ones((40, 40)) - np.eye(40))
    assert np.abs(Smoother(complete, X).points(1.0, 30)).max() < 1e-9


def test_links_alone_where_only_features_carry_weight():
    X, y, W, _ = planted()
    two = [member for member in MEMBERS if member.name in ("links", "kernel")]
    found = fit_committee(
        X,
        encode_labels(y),
        CheckedOptions(),
        links=sp.csr_array(W),
        members=two,
        rule=WeightRule(prior={"kernel": 99.0}),
    )
    assert found.weighting.of("kernel") == 1.0
    by_links = found.first.predict(None, W[:5], found.labels)
    np.testing.assert_array_equal(found.predict(None, W[:5]), by_links)
    assert not np.allclose(found.predict(X[:5], W[:5]), by_links)


def test_one_class_takes_links_of_new_rows_too():
    X, _, W, _ = planted(n=30)
    y = np.where(np.arange(30) < 3, 7, -1)
    model = CommitteeClassifier().fit(X, y, adjacency=W)
    np.testing.assert_array_equal(model.predict(None, adjacency=W[:4]), 7)
    np.testing.assert_array_equal(model.predict_proba(X[:4], adjacency=W[:4]), 1.0)
    with pytest.raises(ValueError, match="shape"):
        model.predict(X[:4], adjacency=W[:3])


@pytest.mark.slow
def test_a_citation_network_as_well_as_graph_networks_do():
    path = Path(os.environ.get("GDPA_DATA_HOME", ""), "cora.npz")
    if not path.is_file():
        pytest.skip("needs cora.npz in $GDPA_DATA_HOME")
    data = np.load(path)
    shape = tuple(data["shape"])
    ones = np.ones(data["feature_indices"].size)
    X = sp.csr_array((ones, data["feature_indices"], data["feature_indptr"]), shape=shape)
    train, test, z = data["public_train"], data["public_test"], data["labels"]
    y = np.full(z.size, -1)
    y[train] = z[train]
    model = CommitteeClassifier().fit(X, y, adjacency=data["edges"])
    assert (model.transduction_ == z)[test].mean() >= 0.84
    assert model.graph_share_[test].mean() > 0.9


def test_two_samples_go_by_their_features_and_say_so():
    model = CommitteeClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1], adjacency=np.ones((2, 2)))
    assert model.predict([[0.1, 0.9]]).tolist() == [0]
    for ask in (model.predict, model.graph_share):
        with pytest.raises(ValueError, match="on at least three samples"):
            ask([[0.1, 0.9]], adjacency=[[1.0, 0.0]])


def unlike_classes(n=400, seed=0):
    """A bipartite-like network: neighbours are mostly of the other class, features are weak."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    p = np.where(z[:, None] == z, 0.004, 0.03)
    upper = np.triu(rng.random((n, n)) < p, 1)
    W = sp.csr_array((upper | upper.T).astype(float))
    X = 0.3 * np.eye(2, 4)[z] + rng.standard_normal((n, 4))
    return X, np.where(rng.random(n) < 0.25, z, -1), W, z


def test_neighbours_of_other_classes_are_learned_from():
    X, y, W, z = unlike_classes()
    model = CommitteeClassifier().fit(X, y, adjacency=W)
    assert error(model.transduction_, z, y) < 0.25
    assert error(CommitteeClassifier().fit(X, y).transduction_, z, y) > 0.3
    weights = model.committee_
    assert weights.of("neighbour columns") + weights.of("neighbour forest") > 0.5
    found = model.predict(X[:40], adjacency=W[:40])
    assert (found == model.transduction_[:40]).mean() > 0.8


def bags_of_words(n=240, d=300, length=8, seed=0):
    """Counts of words with topics, and links within topics, as in citation networks."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    own = rng.integers(0, 60, (n, length)) + 60 * z[:, None]
    words = np.where(rng.random((n, length)) < 0.3, own, rng.integers(0, d, (n, length)))
    at = np.repeat(np.arange(n), length), words.ravel()
    X = sp.csr_array(sp.coo_array((np.ones(n * length), at), shape=(n, d)))
    upper = np.triu(rng.random((n, n)) < np.where(z[:, None] == z, 0.03, 0.005), 1)
    return X, np.where(np.arange(n) < 60, z, -1), sp.csr_array((upper | upper.T).astype(float)), z


@pytest.mark.parametrize("linked", [False, True])
def test_dense_and_sparse_arrays_of_the_same_numbers_give_the_same_answer(linked):
    X, y, W, _ = bags_of_words()
    links = {"adjacency": W} if linked else {}
    sparse = CommitteeClassifier().fit(X, y, **links)
    dense = CommitteeClassifier().fit(X.toarray(), y, **links)
    np.testing.assert_array_equal(dense.label_scores_, sparse.label_scores_)
    rows = {"adjacency": W[:9]} if linked else {}
    np.testing.assert_array_equal(
        dense.predict_proba(X[:9], **rows), sparse.predict_proba(X[:9].toarray(), **rows)
    )


def test_many_words_beside_links_are_projected(tmp_path):
    """So many words that smoothing all of them would take too long."""
    X, y, W, z = bags_of_words(n=240, d=300)
    wide = sp.hstack([X, sp.csr_array((240, 90_000))]).tocsr()
    few = CommitteeClassifier().fit(X, y, adjacency=W)
    many = CommitteeClassifier().fit(sp.csr_array(wide), y, adjacency=W)
    assert error(many.transduction_, z, y) < error(few.transduction_, z, y) + 0.05
    rows = sp.csr_array(wide[:9])
    p = many.predict_proba(rows, adjacency=W[:9])
    loaded = CommitteeClassifier.load(many.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(loaded.predict_proba(rows, adjacency=W[:9]), p)
    np.testing.assert_allclose(many.predict_proba(None, adjacency=W[:9]).sum(axis=1), 1.0)


def test_words_are_projected_onto_their_leading_directions():
    X, *_ = bags_of_words()
    few = FewerWords.fit(X, count=40, random_state=0)
    rarity = 1 + np.log(241 / (1 + np.asarray((X > 0).sum(axis=0)).ravel()))
    rows = X.toarray() * rarity
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kept = np.linalg.norm(few.project(X)) ** 2
    best = (np.linalg.svd(rows, compute_uv=False)[:40] ** 2).sum()
    assert 0.9 * best <= kept <= best + 1e-9  # two power iterations
