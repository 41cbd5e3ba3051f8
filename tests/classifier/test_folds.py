"""One fold in place of all: its scores are those of a fit without its labels, its choice theirs."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa import GDPAClassifier
from gdpa.classifier import fitting, folds, tuning
from gdpa.classifier.calibration import fit_sharpness
from gdpa.classifier.folds import FirstFold
from gdpa.classifier.model_selection import stratified_folds
from gdpa.classifier.tuning import LabeledGraph, left_out_loss, tune
from gdpa.graph import laplacian_parts, neighbor_graph
from gdpa.report.evaluation import confusion, left_out_labels
from gdpa.solvers import implicit_system
from gdpa.solvers.recovery import shared_operand

FREE = {"label_weight": None, "self_loop": None, "evidence_weight": None}


def regions(n_classes: int, n: int = 1500, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square, classes in stripes, some labels wrong."""
    rng = np.random.default_rng(4)
    X = rng.uniform(0, n_classes, size=(n, 2))
    truth = X[:, 0].astype(np.int32)
    wrong = rng.random(n) < noise
    return X, np.where(wrong, rng.integers(0, n_classes, n), truth).astype(np.int32)


def labelled(n_classes: int, **options) -> LabeledGraph:
    X, truth = regions(n_classes, **options)
    A, d = laplacian_parts(neighbor_graph(X, 8), "normalized")
    labeled = np.sort(np.random.default_rng(5).permutation(truth.size)[:300])
    return LabeledGraph(A, d, labeled, truth[labeled], n_classes, operand=shared_operand(A))


@pytest.fixture
def large(monkeypatch):
    """Everything is done as for a million nodes."""
    monkeypatch.setattr(tuning, "LARGE_NODES", 100)
    monkeypatch.setattr(tuning, "HUGE_NODES", 100)
    monkeypatch.setattr(tuning, "SCREENED_LABELS", 50)
    monkeypatch.setattr(tuning, "MOST_LABELS", 0)
    monkeypatch.setattr(fitting, "LARGE_NODES", 100)
    monkeypatch.setattr(implicit_system, "IMPLICIT_NODES", 100)


def without(graph: LabeledGraph, loop: float, out: np.ndarray) -> np.ndarray:
    """Scores of labels that the system does not know, densely."""
    n = graph.diagonal.size
    K = np.diag(graph.diagonal + loop) - graph.adjacency.toarray()
    known = graph.labeled[~out]
    K[known] = np.eye(n)[known]
    b = np.zeros((n, graph.n_classes))
    b[known] = graph.targets()[~out]
    return np.linalg.solve(K, b)[graph.labeled[out]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_the_fold_do_not_know_its_labels(large, n_classes):
    graph = labelled(n_classes)
    found = tune([graph], **FREE)
    assert found.source == "one fold"
    out = stratified_folds(graph.codes, 3) == 0
    np.testing.assert_array_equal(found.checked, np.flatnonzero(out))
    expected = without(graph, found.setting.self_loop, out)
    assert found.left_out.shape == (out.sum(), n_classes)
    scale = np.linalg.norm(expected)
    assert np.linalg.norm(found.left_out - expected) < 10 * folds.FOLD_TOL * scale
    assert found.loss == left_out_loss(graph.targets()[out], found.left_out)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.6])
def test_one_fold_chooses_what_the_exact_losses_say(large, n_classes, noise):
    graph = labelled(n_classes, noise=noise)
    found = tune([graph], **FREE)
    out = stratified_folds(graph.codes, 3) == 0
    losses = {
        loop: left_out_loss(graph.targets()[out], without(graph, loop * graph.unit, out))
        for loop in tuning.LARGE_SELF_LOOPS
    }
    assert found.tried == len(losses)
    assert losses[found.setting.self_loop / graph.unit] <= min(losses.values()) + 1e-3


def test_two_classes_are_screened_by_their_difference(large):
    graph = labelled(2)
    fold = FirstFold(graph, np.inf)
    loops = [0.01, 0.1, 1.0]
    for (_, two), (_, one) in zip(fold.screened(loops), fold.differences(loops), strict=True):
        target = fold.targets
        assert left_out_loss(target, one) == pytest.approx(left_out_loss(target, two), abs=5e-3)


def test_screening_takes_one_column_and_the_fold_two(large, monkeypatch):
    graph = labelled(2)
    columns = []
    inner = folds.linear_recovery

    def counted(adjacency, diagonal, labeled, targets, **options):
        columns.append((targets.shape[1], options["tol"]))
        assert options["operand"] is graph.operand
        return inner(adjacency, diagonal, labeled, targets, **options)

    monkeypatch.setattr(folds, "linear_recovery", counted)
    tune([graph], **FREE)
    assert columns == [(1, folds.SCREENING_TOL)] * 3 + [(2, folds.FOLD_TOL)]
    columns.clear()
    given = tune([graph], label_weight=None, self_loop=0.07, evidence_weight=None)
    assert columns == [(2, folds.FOLD_TOL)]
    assert given.setting.self_loop == 0.07
    assert given.tried == 1


def test_a_class_with_one_label_is_not_judged(large):
    graph = labelled(2)
    codes = graph.codes.copy()
    out = stratified_folds(codes, 3) == 0
    codes[np.flatnonzero(out)[0]] = 2
    lonely = LabeledGraph(graph.adjacency, graph.diagonal, graph.labeled, codes, 3)
    found = tune([lonely], **FREE)
    assert np.isfinite(found.left_out).all()
    assert 0 <= found.loss < 1


def test_fewer_labels_or_nodes_are_left_out_in_all_folds(large, monkeypatch):
    graph = labelled(2)
    monkeypatch.setattr(tuning, "SCREENED_LABELS", 301)
    assert tune([graph], **FREE).source == "k-fold"
    monkeypatch.setattr(tuning, "SCREENED_LABELS", 50)
    monkeypatch.setattr(tuning, "HUGE_NODES", 1500)
    found = tune([graph], **FREE)
    assert found.source == "k-fold"
    assert found.checked is None
    assert found.left_out.shape[0] == 300


def test_a_large_fit_is_an_ordinary_one(large, monkeypatch, tmp_path):
    X, truth = regions(2)
    y = np.full(truth.size, -1)
    known = np.random.default_rng(5).permutation(truth.size)[:300]
    y[known] = truth[known]
    W = neighbor_graph(X, 8)
    model = GDPAClassifier(graph="precomputed", tol=1e-8).fit(W, y)
    found = model.tuning_
    assert found.source == "one fold"
    state = model._state
    codes = state.coding.codes[state.coding.labeled]
    assert state.sharpness == fit_sharpness(found.left_out, codes[found.checked])
    # Saved and read again, and in the report.
    other = GDPAClassifier.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(other.tuning_.checked, found.checked)
    checked = left_out_labels(other)
    assert confusion(checked, 2).sum() == found.checked.size
    np.testing.assert_array_equal(checked.truth, truth[checked.rows])
    # The same scores as by the way of small graphs, at the same setting.
    loop = found.setting.self_loop
    monkeypatch.undo()
    small = GDPAClassifier(graph="precomputed", tol=1e-8, self_loop=loop, label_weight=np.inf).fit(
        W, y
    )
    np.testing.assert_allclose(model._state.scores, small._state.scores, atol=1e-6)
    # More labels go on from there.
    model.add_labels(np.flatnonzero(y < 0)[:3], truth[y < 0][:3])
    assert (model.transduction_[np.flatnonzero(y < 0)[:3]] == truth[y < 0][:3]).all()


def test_unreached_nodes_are_found_in_large_graphs(large):
    X, truth = regions(2)
    far = X[:200] + 100.0
    W = neighbor_graph(np.vstack([X, far]), 8)
    y = np.full(1700, -1)
    y[:300] = truth[:300]
    with pytest.warns(UserWarning, match="200 of 1700"):
        model = GDPAClassifier(graph="precomputed").fit(W, y)
    np.testing.assert_array_equal(model.unreached_, np.arange(1500, 1700))
    whole = GDPAClassifier(graph="precomputed").fit(W[:1500][:, :1500], y[:1500])
    assert whole.unreached_.size == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_the_rows_does_not_matter(large, seed):
    X, truth = regions(2)
    y = np.where(np.arange(1500) % 5 == 0, truth, -1)
    W = neighbor_graph(X, 8)
    first = GDPAClassifier(graph="precomputed", self_loop=0.1, tol=1e-8).fit(W, y)
    mixed = np.random.default_rng(seed).permutation(1500)
    other = GDPAClassifier(graph="precomputed", self_loop=0.1, tol=1e-8).fit(
        W[mixed][:, mixed], y[mixed]
    )
    np.testing.assert_allclose(other._state.scores, first._state.scores[mixed], atol=1e-6)
