"""One fold in place of all: its scores are those of a fit without its labels, its choice theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gdpa import GraphClassifier
from gdpa.estimators import GraphOptions, tuning
from gdpa.estimators.labels import stratified_folds
from gdpa.estimators.probabilities import fit_sharpness
from gdpa.estimators.tuning import Given, left_out_loss, tune
from gdpa.graph import neighbor_graph
from gdpa.graph.adjacency import laplacian_parts
from gdpa.policy import Policy
from gdpa.system import LabeledSystem, arrange, left_out
from gdpa.system.left_out import FOLD_TOL, SCREENING_TOL, FirstFold

# Everything is done as for a million nodes.
LARGE = Policy(
    large_nodes=100,
    huge_nodes=100,
    screened_labels=50,
    most_labels=0,
    order_rows=100,
    single_rows=100,
)


def classifier(policy: Policy = LARGE, **options) -> GraphClassifier:
    expert = GraphOptions(tol=options.pop("tol", 1e-6))
    model = GraphClassifier(graph="precomputed", options=expert, **options)
    model._policy = policy
    return model


def regions(n_classes: int, n: int = 1500, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square, classes in stripes, some labels wrong."""
    rng = np.random.default_rng(4)
    X = rng.uniform(0, n_classes, size=(n, 2))
    truth = X[:, 0].astype(np.int32)
    wrong = rng.random(n) < noise
    return X, np.where(wrong, rng.integers(0, n_classes, n), truth).astype(np.int32)


def labelled(n_classes: int, policy: Policy = LARGE, **options) -> tuple[LabeledSystem, np.ndarray]:
    X, truth = regions(n_classes, **options)
    A, d = laplacian_parts(neighbor_graph(X, 8), "normalized")
    nodes = np.sort(np.random.default_rng(5).permutation(truth.size)[:300])
    codes = truth[nodes]
    arranged = arrange(A, policy=policy)
    return LabeledSystem(
        A, d, nodes, np.eye(n_classes)[codes], arranged=arranged, policy=policy
    ), codes


def without(system: LabeledSystem, loop: float, out: np.ndarray) -> np.ndarray:
    """Scores of labels that the system does not know, densely."""
    n = system.diagonal.size
    K = np.diag(system.diagonal + loop) - system.adjacency.toarray()
    known = system.labeled[~out]
    K[known] = np.eye(n)[known]
    b = np.zeros((n, system.targets.shape[1]))
    b[known] = system.targets[~out]
    return np.linalg.solve(K, b)[system.labeled[out]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_the_fold_do_not_know_its_labels(n_classes):
    system, codes = labelled(n_classes)
    found = tune([system], codes)
    assert found.source == "one fold"
    out = stratified_folds(codes, 3) == 0
    np.testing.assert_array_equal(found.checked, np.flatnonzero(out))
    expected = without(system, found.setting.self_loop, out)
    assert found.left_out.shape == (out.sum(), n_classes)
    scale = np.linalg.norm(expected)
    assert np.linalg.norm(found.left_out - expected) < 10 * FOLD_TOL * scale
    assert found.loss == left_out_loss(system.targets[out], found.left_out)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.6])
def test_one_fold_chooses_what_the_exact_losses_say(n_classes, noise):
    system, codes = labelled(n_classes, noise=noise)
    found = tune([system], codes)
    out = stratified_folds(codes, 3) == 0
    losses = {
        loop: left_out_loss(system.targets[out], without(system, loop * system.unit, out))
        for loop in tuning.LARGE_SELF_LOOPS
    }
    assert found.tried == len(losses)
    assert losses[found.setting.self_loop / system.unit] <= min(losses.values()) + 1e-3


def test_two_classes_are_screened_by_their_difference():
    system, codes = labelled(2)
    held = stratified_folds(codes, 3) == 0
    fold = FirstFold(system, held)
    for loop, rough in fold.screened([0.01, 0.1, 1.0]):
        exact = left_out_loss(fold.targets, without(system, loop, held))
        assert left_out_loss(fold.targets, rough) == pytest.approx(exact, abs=2e-2)


def test_screening_takes_one_column_and_the_fold_two(monkeypatch):
    system, codes = labelled(2)
    columns = []
    inner = LabeledSystem.solve

    def counted(self, **options):
        columns.append((self.targets.shape[1], options["tol"]))
        assert self.arranged is system.arranged
        return inner(self, **options)

    monkeypatch.setattr(left_out.LabeledSystem, "solve", counted)
    tune([system], codes)
    assert columns == [(1, SCREENING_TOL)] * 3 + [(2, FOLD_TOL)]
    columns.clear()
    given = tune([system], codes, Given(self_loop=0.07))
    assert columns == [(2, FOLD_TOL)]
    assert given.setting.self_loop == 0.07
    assert given.tried == 1


def test_a_class_with_one_label_is_not_judged():
    system, codes = labelled(2)
    codes = codes.copy()
    out = stratified_folds(codes, 3) == 0
    codes[np.flatnonzero(out)[0]] = 2
    found = tune([replace(system, targets=np.eye(3)[codes])], codes)
    assert np.isfinite(found.left_out).all()
    assert 0 <= found.loss < 1


def test_fewer_labels_or_nodes_are_left_out_in_all_folds():
    system, codes = labelled(2, replace(LARGE, screened_labels=301))
    assert tune([system], codes).source == "k-fold"
    system, codes = labelled(2, replace(LARGE, huge_nodes=1500))
    found = tune([system], codes)
    assert found.source == "k-fold"
    assert found.checked is None
    assert found.left_out.shape[0] == 300


def test_a_large_fit_is_an_ordinary_one(tmp_path):
    X, truth = regions(2)
    y = np.full(truth.size, -1)
    known = np.random.default_rng(5).permutation(truth.size)[:300]
    y[known] = truth[known]
    W = neighbor_graph(X, 8)
    model = classifier(tol=1e-8).fit(W, y)
    found = model.tuning_
    assert found.source == "one fold"
    state = model.ensemble_
    codes = state.labels.codes[state.labels.labeled]
    assert state.sharpness == fit_sharpness(found.left_out, codes[found.checked])
    # Saved and read again, and in the report.
    other = GraphClassifier.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(other.tuning_.checked, found.checked)
    checked = other.evaluate()
    assert checked.truth.size == found.checked.size
    np.testing.assert_array_equal(checked.truth, truth[checked.rows])
    # The same scores as by the way of small graphs, at the same setting.
    loop = found.setting.self_loop
    small = classifier(Policy(), tol=1e-8, self_loop=loop, label_weight=np.inf).fit(W, y)
    np.testing.assert_allclose(
        model.ensemble_.first.scores, small.ensemble_.first.scores, atol=1e-6
    )
    # More labels go on from there.
    model.add_labels(np.flatnonzero(y < 0)[:3], truth[y < 0][:3])
    assert (model.transduction_[np.flatnonzero(y < 0)[:3]] == truth[y < 0][:3]).all()


def test_unreached_nodes_are_found_in_large_graphs():
    X, truth = regions(2)
    far = X[:200] + 100.0
    W = neighbor_graph(np.vstack([X, far]), 8)
    y = np.full(1700, -1)
    y[:300] = truth[:300]
    with pytest.warns(UserWarning, match="200 of 1700"):
        model = classifier().fit(W, y)
    np.testing.assert_array_equal(model.unreached_, np.arange(1500, 1700))
    whole = classifier().fit(W[:1500][:, :1500], y[:1500])
    assert whole.unreached_.size == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_the_rows_does_not_matter(seed):
    X, truth = regions(2)
    y = np.where(np.arange(1500) % 5 == 0, truth, -1)
    W = neighbor_graph(X, 8)
    first = classifier(self_loop=0.1, tol=1e-8).fit(W, y)
    mixed = np.random.default_rng(seed).permutation(1500)
    other = classifier(self_loop=0.1, tol=1e-8).fit(W[mixed][:, mixed], y[mixed])
    np.testing.assert_allclose(
        other.ensemble_.first.scores, first.ensemble_.first.scores[mixed], atol=1e-6
    )
