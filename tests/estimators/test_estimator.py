"""The estimator: what a fit means, in features, labels, methods and options."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gdpa
from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier, classify
from gdpa.errors import UnreachedWarning
from gdpa.estimators import GraphOptions


@pytest.fixture(scope="module")
def blobs():
    X, truth = make_blobs(150, centers=3, cluster_std=0.8, random_state=0)
    y = np.where(np.arange(150) % 6 == 0, truth, -1)
    return X, y, truth


def test_attributes_of_a_fit(blobs):
    X, y, truth = blobs
    model = GraphClassifier().fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.transduction_ == truth).mean() > 0.9
    known = y >= 0
    assert (model.transduction_[known] == y[known]).all()
    np.testing.assert_allclose(model.label_scores_.sum(axis=1), 1)
    assert model.graph_.shape == (150, 150)
    assert model.n_features_in_ == 2
    assert model.unreached_.size == 0
    assert model.n_iter_ >= 1
    assert model.n_neighbors_ in (10, 15, 20)
    assert model.tuning_.source == "leave-one-out"
    assert len(model.solution_) == 3
    assert not hasattr(model, "feature_names_in_")
    x = np.where(model.transduction_[:, None] == model.classes_, 1, -1)
    problems = [
        gdpa.GraphProblem(model.graph_, np.where(known, x[:, c], 0), laplacian="normalized")
        for c in range(3)
    ]
    expected = 0.5 * sum(p.objective(x[:, c]) for c, p in enumerate(problems))
    assert model.objective_ == pytest.approx(expected)


def test_two_classes_have_one_solution_with_the_binary_objective():
    X, truth = make_moons(100, noise=0.05, random_state=0)
    y = np.where(np.arange(100) % 10 == 0, truth, -1)
    model = CommitteeClassifier().fit(X, y)
    x = np.where(model.transduction_ == 1, 1, -1)
    problem = gdpa.GraphProblem(model.graph_, np.where(y >= 0, x, 0), laplacian="normalized")
    assert model.solution_.labels.tolist() == x.tolist()
    assert model.solution_.objective == pytest.approx(problem.objective(x))
    assert model.objective_ == pytest.approx(problem.objective(x))
    assert (model.transduction_ == truth).mean() > 0.95


def test_scores_solve_the_stated_system(blobs):
    X, y, _ = blobs
    given = {"n_neighbors": 7, "label_weight": 3.0, "self_loop": 0.2}
    model = GraphClassifier(**given, options=GraphOptions(tol=1e-10)).fit(X, y)
    L = gdpa.graph.laplacian(model.graph_, "normalized").toarray()
    a = np.where(y >= 0, 3.0, 0.0)
    Y = np.where((y >= 0)[:, None], np.eye(3)[np.maximum(y, 0)], 0.0)
    F = np.linalg.solve(L + np.diag(a + 0.2), a[:, None] * Y)
    np.testing.assert_allclose(model.ensemble_.first.scores, F, atol=1e-8)
    np.testing.assert_allclose(model.label_scores_, F / F.sum(axis=1, keepdims=True), atol=1e-7)


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_a_new_row_is_one_more_row_of_the_system(blobs, laplacian):
    """Its equation, with all fitted scores held, is satisfied."""
    X, y, _ = blobs
    gamma = 0.3
    model = GraphClassifier(
        n_neighbors=7,
        self_loop=gamma,
        label_weight=np.inf,
        options=GraphOptions(laplacian=laplacian),
    ).fit(X, y)
    rows = np.random.default_rng(0).normal(0, 4, (20, 2))
    w = model.ensemble_.first.graph.attach(rows)[0].toarray()
    F, d = model.ensemble_.first.scores, np.asarray(model.graph_.sum(axis=1)).ravel()
    own = w.sum(axis=1)
    if laplacian == "combinatorial":
        expected = (w @ F) / (own + gamma)[:, None]
    else:
        expected = (w / np.sqrt(np.outer(own, d))) @ F / (1 + gamma)
    shares = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.ensemble_.predict(rows), shares, atol=1e-9)
    assert (model.predict(rows) == model.classes_[expected.argmax(axis=1)]).all()


def test_fitted_rows_are_predicted_as_they_were_labelled(blobs):
    X, y, _ = blobs
    model = GraphClassifier(label_weight=np.inf).fit(X, y)
    assert (model.predict(X) == model.transduction_).all()
    p = model.predict_proba(X)
    assert (model.classes_[p.argmax(axis=1)] == model.transduction_).all()
    assert (np.argmax(model.decision_function(X), axis=1) == p.argmax(axis=1)).all()


def test_every_kind_of_features_gives_the_same_labels(blobs):
    X, y, _ = blobs
    X = np.round(X, 3)
    expected = CommitteeClassifier().fit(X, y).transduction_
    single = GraphClassifier().fit(X, y).transduction_
    wide = np.zeros((150, 6))
    wide[:, ::3] = X
    kinds = [
        sp.csr_array(X),
        sp.coo_matrix(X),
        np.asfortranarray(X),
        wide[:, ::3],
        X.tolist(),
    ]
    sparse = CommitteeClassifier().fit(sp.csr_array(X), y).transduction_  # some members need dense
    for kind in kinds:
        same = sparse if sp.issparse(kind) else expected
        assert (CommitteeClassifier().fit(kind, y).transduction_ == same).all()
        assert (GraphClassifier().fit(kind, y).transduction_ == single).all()
    rounded = CommitteeClassifier().fit(X.astype(np.float32), y).transduction_
    assert (rounded == expected).mean() > 0.98
    integers = sp.csr_array((10 * X).astype(np.int64))
    assert np.isin(CommitteeClassifier().fit(integers, y).predict(integers), [0, 1, 2]).all()


def test_feature_names_are_kept_and_compared(blobs):
    X, y, _ = blobs
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = CommitteeClassifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.zeros((2, 3)))


@pytest.mark.parametrize("labels", [["x", "y", "z"], [-1, 5, 9]])
def test_labels_of_other_kinds(blobs, labels):
    """Names of classes, -1 among them, do not change what is learnt."""
    X, y, _ = blobs
    named = np.array([None if c < 0 else labels[c] for c in y], dtype=object)
    model = CommitteeClassifier(unlabeled=None).fit(X, named)
    plain = CommitteeClassifier().fit(X, y)
    assert model.classes_.tolist() == labels
    assert (model.transduction_ == np.array(labels)[plain.transduction_]).all()
    assert set(model.predict(X).tolist()) <= set(labels)
    assert model.score(X, named) == plain.score(X, y)


@pytest.mark.parametrize("rescale", ["minmax", "standard"])
def test_rescaling_makes_units_irrelevant(blobs, rescale):
    X, y, _ = blobs
    model = CommitteeClassifier(options=GraphOptions(rescale=rescale)).fit(X, y)
    other = CommitteeClassifier(options=GraphOptions(rescale=rescale)).fit(
        X * [1000.0, 0.01] + [5.0, -3.0], y
    )
    assert (model.transduction_ == other.transduction_).all()
    rows = X[:20] + 0.01
    assert (model.predict(rows) == other.predict(rows * [1000.0, 0.01] + [5.0, -3.0])).all()


def test_full_graph_is_the_kernel_of_all_pairs(blobs):
    X, y, truth = blobs
    model = GraphClassifier(graph="full", options=GraphOptions(bandwidth=1.5)).fit(X, y)
    d2 = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    W = np.exp(-d2 / 1.5**2)
    np.fill_diagonal(W, 0)
    np.testing.assert_allclose(model.graph_.toarray(), W, atol=1e-12)
    assert (model.predict(X) == model.transduction_).mean() > 0.95
    tuned = GraphClassifier(graph="full").fit(X, y)
    assert (tuned.transduction_ == truth).mean() > 0.9
    assert np.isfinite(tuned.predict_proba(X + 100)).all()


def test_precomputed_graph_networkx_and_edges(blobs):
    X, y, _ = blobs
    W = CommitteeClassifier(n_neighbors=8).fit(X, y).graph_
    options = {"graph": "precomputed", "self_loop": 0.05, "label_weight": np.inf}
    expected = GraphClassifier(**options).fit(W, y)
    assert expected.n_features_in_ == 150
    coo = sp.triu(W).tocoo()
    edges = [
        (int(i), int(j), float(w))
        for i, j, w in zip(coo.coords[0], coo.coords[1], coo.data, strict=True)
    ]
    G = nx.Graph()
    G.add_nodes_from(range(150))
    G.add_weighted_edges_from(edges)
    for graph in (W.toarray(), sp.csr_matrix(W), G, edges):
        found = GraphClassifier(**options).fit(graph, y)
        assert (found.transduction_ == expected.transduction_).all()
    rows = W[:5]
    assert (expected.predict(rows) == expected.transduction_[:5]).mean() >= 0.8


@pytest.mark.parametrize("bad", [np.ones((3, 2)), np.array([[0, 1.0], [2.0, 0]])])
def test_bad_precomputed_graphs(bad):
    with pytest.raises(ValueError, match=r"square|symmetric"):
        GraphClassifier(graph="precomputed").fit(bad, [0, 1, 1][: len(bad)])


@pytest.mark.parametrize("multiclass", ["one-vs-rest", "tree"])
def test_both_ways_for_several_classes(blobs, multiclass):
    X, y, truth = blobs
    model = GDPAClassifier(multiclass=multiclass).fit(X, y)
    assert (model.transduction_ == truth).mean() > 0.9
    assert len(model.solution_) == (3 if multiclass == "one-vs-rest" else 2)
    assert len(GraphClassifier().fit(X, y).solution_) == 3


def test_one_against_rest_takes_the_largest_score(blobs):
    X, y, _ = blobs
    model = GraphClassifier(method="min-cut").fit(X, y)
    scores = np.column_stack([record.scores for record in model.solution_])
    top = np.sort(scores, axis=1)
    clear = (y < 0) & (top[:, -1] > top[:, -2])
    assert clear.sum() > 50
    assert (model.transduction_[clear] == scores.argmax(axis=1)[clear]).all()


def test_the_papers_classifier_is_its_program_on_its_graph():
    pytest.importorskip("clarabel")
    X, truth = make_blobs(60, centers=2, cluster_std=2.0, random_state=3)
    y = np.where(np.arange(60) % 3 == 0, truth, -1)
    model = GDPAClassifier(graph="full", variant="published", rescale="minmax").fit(X, y)
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    squares = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    W = np.exp(-squares) - np.eye(60)
    np.testing.assert_allclose(model.graph_.toarray(), W, atol=1e-12)
    problem = gdpa.GraphProblem(W, np.where(y < 0, 0, 2 * y - 1), laplacian="normalized")
    solved = gdpa.solve(problem, "gdpa-published")
    assert (model.transduction_ == (solved.labels > 0)).all()
    assert model.solution_.method == "gdpa-published"


@pytest.mark.parametrize("method", ["vote", "harmonic", "poisson"])
def test_methods_of_the_registry(blobs, method):
    X, y, truth = blobs
    binary = np.where(y == 2, -1, y)
    keep = truth < 2
    model = GraphClassifier(method=method, n_neighbors=15).fit(X[keep], binary[keep])
    assert (model.transduction_ == truth[keep]).mean() > 0.85
    three = GraphClassifier(method=method, n_neighbors=15).fit(X, y)
    assert (three.transduction_ == truth).mean() > 0.8


def test_method_vote_is_the_sign_of_the_labelled_neighbours():
    X, truth = make_blobs(80, centers=2, cluster_std=1.0, random_state=2)
    y = np.where(np.arange(80) % 2 == 0, truth, -1)
    model = GraphClassifier(
        method="vote", n_neighbors=9, options=GraphOptions(laplacian="combinatorial")
    ).fit(X, y)
    signs = np.where(y < 0, 0, 2 * y - 1)
    vote = model.graph_ @ signs
    decided = (y < 0) & (vote != 0)
    assert (model.transduction_[decided] == (vote[decided] > 0)).all()


def test_unreached_nodes_get_the_prior_class_and_are_listed():
    W = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * 3).tocsr()
    y = np.array([1, 1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1])
    combinatorial = {"options": GraphOptions(laplacian="combinatorial")}
    for options in ({}, {"method": "vote"}, {"self_loop": 0}, combinatorial):
        with pytest.warns(UnreachedWarning, match="4 of 12"):
            model = GraphClassifier(graph="precomputed", **options).fit(W, y)
        assert model.unreached_.tolist() == [8, 9, 10, 11]
        assert model.transduction_.tolist() == [1] * 4 + [0] * 4 + [1] * 4
        np.testing.assert_allclose(model.label_scores_[8:], [[1 / 3, 2 / 3]] * 4)
        assert np.isfinite(model.label_scores_).all()
    with pytest.warns(UnreachedWarning):
        model = GraphClassifier(graph="precomputed", class_prior=[0.9, 0.1]).fit(W, y)
    assert model.transduction_[8:].tolist() == [0] * 4
    alone = model.predict_proba(sp.csr_array((1, 12)))
    assert np.isfinite(alone).all()


def test_labels_reach_the_end_of_a_long_path():
    """Scores decay below rounding on the way; the labels must not become noise."""
    n = 3000
    W = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()
    y = np.full(n, -1)
    y[0], y[n - 1] = 0, 1
    model = GraphClassifier(graph="precomputed").fit(W, y)
    assert (model.transduction_[: n // 2 - 60] == 0).all()
    assert (model.transduction_[n // 2 + 60 :] == 1).all()
    assert model.unreached_.size == 0


def test_abstaining(blobs):
    X, y, _ = blobs
    model = CommitteeClassifier(abstain_below=0.9).fit(X, y)
    rows = X.mean(axis=0) + np.random.default_rng(0).normal(0, 2, (200, 2))
    p = model.predict_proba(rows).max(axis=1)
    found = model.predict(rows)
    assert 0 < (found == -1).sum() < 200
    assert ((found == -1) == (p < 0.9)).all()
    assert not model.unsure_[y >= 0].any()
    labels = classify(X, y, abstain_below=0.9)
    assert ((labels == -1) == model.unsure_).all()
    named = np.array([None if c < 0 else "abc"[c] for c in y], dtype=object)
    found = CommitteeClassifier(unlabeled=None, abstain_below=0.9).fit(X, named).predict(rows)
    assert None in found.tolist()
    assert (CommitteeClassifier(abstain_below=1.0).fit(X, y).score(X, y)) <= 1


def test_function_twin(blobs):
    X, y, _ = blobs
    found = classify(X, y, n_neighbors=7)
    assert (found == CommitteeClassifier(n_neighbors=7).fit(X, y).transduction_).all()


def test_progress_is_reported_and_can_stop_the_solve(caplog):
    X, truth = make_blobs(600, centers=3, random_state=0)
    y = np.where(np.arange(600) % 100 == 0, truth, -1)
    events = []
    CommitteeClassifier(n_neighbors=6, options=GraphOptions(callback=events.append)).fit(X, y)
    stages = [e["stage"] for e in events]
    assert [s for s in ("graph", "tuning", "solve") if s in stages] == ["graph", "tuning", "solve"]
    residuals = [e["residual"] for e in events if e["stage"] == "solve"]
    assert residuals[-1] < residuals[0]
    with pytest.warns(gdpa.errors.ConvergenceWarning, match="stopped by the callback"):
        CommitteeClassifier(options=GraphOptions(callback=lambda e: e["stage"] == "solve")).fit(
            X, y
        )
    with caplog.at_level("INFO", logger="gdpa.estimators"):
        CommitteeClassifier(verbose=1).fit(X, y)
    assert "stage: graph" in caplog.text


def test_repeats_whatever_the_number_of_jobs(blobs):
    X, y, _ = blobs
    one = CommitteeClassifier(n_jobs=1).fit(X, y)
    two = CommitteeClassifier(n_jobs=2).fit(X, y)
    assert (one.label_scores_ == two.label_scores_).all()


def test_copies_and_pickles(blobs):
    X, y, _ = blobs
    for make in (CommitteeClassifier, GraphClassifier, partial(GraphClassifier, method="vote")):
        model = make().fit(X, y)
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert (other.predict_proba(X[:9]) == model.predict_proba(X[:9])).all()
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_pipeline_set_output_and_metadata_routing(blobs):
    X, y, _ = blobs
    pipeline = make_pipeline(StandardScaler(), CommitteeClassifier())
    with config_context(transform_output="pandas", enable_metadata_routing=True):
        assert pipeline.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("y", [[None] * 10, [-1] * 10, ["a", "b"], np.zeros((3, 1))])
def test_lengths_are_compared_before_the_labels_are_read(blobs, y):
    X, _, _ = blobs
    with pytest.raises(ValueError, match=f"X has {len(X)} rows, y has {len(y)}"):
        CommitteeClassifier().fit(X, y)


def test_score_leaves_out_unlabelled_rows(blobs):
    X, y, _ = blobs
    model = CommitteeClassifier().fit(X, y)
    known = y >= 0
    assert model.score(X, y) == model.score(X[known], y[known])
    with pytest.raises(ValueError, match="no known label"):
        model.score(X[~known], y[~known])


def test_the_papers_algorithm_is_a_method_of_one_graph():
    X, truth = make_blobs(40, centers=2, random_state=0)
    y = np.where(np.arange(40) < 10, truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GraphClassifier(method="gdpa").fit(X, y)
    assert model.solution_.method == "gdpa"
    np.testing.assert_array_equal(model.transduction_[:10], truth[:10])
