"""Inputs that break methods at scale: too many points, duplicates, one blob, many components."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa import memory
from gdpa.errors import UnreachedWarning
from gdpa.estimators import CommitteeClassifier, GraphClassifier
from gdpa.graph import neighbor_graph
from gdpa.graph.neighbors import NeighborIndex
from gdpa.policy import Policy
from gdpa.system import LabeledSystem


def some_labels(n: int, share: float, truth: np.ndarray, seed: int = 0) -> np.ndarray:
    codes = np.full(n, -1)
    known = np.random.default_rng(seed).permutation(n)[: max(2, int(share * n))]
    codes[known] = truth[known]
    return codes


@pytest.mark.parametrize("graph", ["knn", "full"])
def test_more_points_than_memory_are_refused_before_work_starts(graph, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(NeighborIndex, "neighbors", None)  # searching would fail
    X = np.zeros((30_000, 2), dtype=np.float32)
    y = np.full(30_000, -1)
    y[:2] = 0, 1
    with pytest.raises(MemoryError, match=r"needs about .* GB, but only 0.001 GB are available"):
        GraphClassifier(graph=graph, n_neighbors=10).fit(X, y)


def test_the_estimate_grows_with_the_points(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    amounts = []
    for n in (20_000, 200_000):
        with pytest.raises(MemoryError) as refusal:
            neighbor_graph(np.zeros((n, 2), dtype=np.float32), 10)
        amounts.append(float(str(refusal.value).split("about ")[1].split(" GB")[0]))
    assert amounts[1] == pytest.approx(10 * amounts[0], rel=0.05)


def test_all_points_identical():
    n = 30_000
    y = np.full(n, -1)
    y[:30] = 0
    y[30:40] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most copies have no path to a label
        model = CommitteeClassifier(n_neighbors=10).fit(np.ones((n, 3)), y)
    p = model.predict_proba(np.ones((2, 3)))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.transduction_[:40], y[:40])
    assert set(model.transduction_) <= {0, 1}


def test_heavy_duplicates_take_the_label_of_their_place():
    # Seven places far from each other, thousands of copies each: a point can only be told by
    # labels at its own place. Every tenth point is labelled, so that all are reached.
    n, places = 21_000, 7
    place = np.arange(n) % places
    X = np.stack([1000.0 * place, 1000.0 * place**2], axis=1)
    X += 1e-9 * (np.arange(n) // places % 500)[:, None]  # groups of exact copies
    truth = place % 2
    y = some_labels(n, 0.1, truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedWarning)
        model = GraphClassifier(n_neighbors=10).fit(X, y)
    reached = np.setdiff1d(np.arange(n), model.unreached_)
    assert reached.size > 0.5 * n
    np.testing.assert_array_equal(model.transduction_[reached], truth[reached])


def test_one_huge_cluster_obeys_the_maximum_principle():
    n = 25_000
    X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    W = neighbor_graph(X, 10)
    labels = np.zeros(n, dtype=np.int8)
    labels[:20] = np.where(X[:20, 0] > 0, 1, -1)
    solution = gdpa.solve(gdpa.GraphProblem(W, labels), tol=1e-8)
    assert solution.converged
    assert solution.unreached.size == 0
    assert np.abs(solution.scores).max() <= 1 + 1e-6
    # Harmonic: every unknown score is the mean of its neighbours'.
    free = labels == 0
    mean = (W @ solution.scores) / W.sum(axis=1)
    assert np.abs(mean - solution.scores)[free].max() < 1e-6


@pytest.fixture(scope="module")
def pairs() -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """100,000 components of two nodes; the first node of the first 60,000 has a label."""
    count = 100_000
    left, right = np.arange(0, 2 * count, 2), np.arange(1, 2 * count, 2)
    weights = np.linspace(0.5, 2.0, count)
    W = sp.coo_array(
        (np.concatenate([weights, weights]), (np.r_[left, right], np.r_[right, left])),
        shape=(2 * count, 2 * count),
    ).tocsr()
    sign = np.where(np.arange(count) % 3 == 0, -1, 1).astype(np.int8)
    labels = np.zeros(2 * count, dtype=np.int8)
    labels[left[:60_000]] = sign[:60_000]
    expected = np.repeat(sign, 2)
    expected[2 * 60_000 :] = 1  # the majority
    return W, labels, expected


@pytest.mark.parametrize("method", ["gdpa", "harmonic", "vote"])
def test_a_hundred_thousand_components(pairs, method):
    W, labels, expected = pairs
    problem = gdpa.GraphProblem(W, labels)
    with pytest.warns(UnreachedWarning, match="80000 of 200000"):
        solution = gdpa.solve(problem, method=method)
    np.testing.assert_array_equal(solution.labels, expected)
    assert solution.objective == 0.0
    np.testing.assert_array_equal(solution.unreached, np.arange(120_000, 200_000))
    assert (solution.scores[solution.unreached] == 0).all()


def test_a_hundred_thousand_components_in_the_classifier(pairs):
    W, labels, expected = pairs
    y = np.where(labels == 0, 7, labels)
    with pytest.warns(UnreachedWarning, match="80000 of 200000"):
        model = GraphClassifier(graph="precomputed", unlabeled=7).fit(W, y)
    np.testing.assert_array_equal(model.transduction_, expected)
    assert np.isfinite(model.label_scores_).all()


def test_64_bit_indices_solve_to_the_same_digits(monkeypatch):
    n = 3_000
    X = np.random.default_rng(1).normal(size=(n, 3))
    labels = np.zeros(n, dtype=np.int8)
    labels[:60] = np.where(X[:60, 0] > 0, 1, -1)
    narrow = neighbor_graph(X, 8)
    assert narrow.indices.dtype == np.int32
    for name in ("neighbors", "neighbor_graph"):
        module = importlib.import_module(f"gdpa.graph.{name}")
        monkeypatch.setattr(module, "get_index_dtype", lambda maxval: np.int64)
    wide = neighbor_graph(X, 8)
    assert wide.indices.dtype == wide.indptr.dtype == np.int64
    assert (wide != narrow).nnz == 0
    first, second = (
        gdpa.solve(gdpa.GraphProblem(W, labels), self_loop=0.1) for W in (narrow, wide)
    )
    np.testing.assert_array_equal(first.scores, second.scores)
    model = GraphClassifier(graph="precomputed", unlabeled=0)
    np.testing.assert_array_equal(
        model.fit(wide, labels).transduction_, model.fit(narrow, labels).transduction_
    )


def test_the_solve_does_not_depend_on_threads():
    n = 22_000
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    W = neighbor_graph(X, 6)
    labeled = np.sort(rng.permutation(n)[:200])
    targets = np.eye(3)[rng.integers(0, 3, 200)]
    scores = []
    for count in (1, 2, 5):
        found = LabeledSystem(
            W,
            np.asarray(W.sum(axis=1)),
            labeled,
            targets,
            self_loop=0.2,
            policy=Policy(thread_nnz=0, single_rows=0),
            n_jobs=count,
        ).solve(tol=1e-6)
        assert found.converged
        scores.append(found.x)
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_memory_mapped_features_fit_the_same(tmp_path):
    n = 4_000
    X, y = gdpa.datasets.gaussian_clusters(n, n_features=5, dtype=np.float32, random_state=0)
    codes = some_labels(n, 0.05, (y > 0).astype(int))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    ours = GraphClassifier(n_neighbors=10).fit(mapped, codes)
    np.testing.assert_array_equal(
        ours.transduction_, GraphClassifier(n_neighbors=10).fit(X, codes).transduction_
    )


@pytest.mark.parametrize("regions", [2, 900])
def test_many_labels_choose_the_self_loop_by_one_fold(regions):
    # Two half planes want another reach of the labels than 900 squares of either class. The choice
    # of one fold is that of all folds.
    from gdpa.estimators import tuning
    from gdpa.graph.adjacency import laplacian_parts

    n = 12_000
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 60, size=(n, 2))
    if regions == 2:
        truth = (X[:, 0] > 30).astype(np.int32)
    else:
        cell = (X // 2).astype(int)
        truth = rng.integers(0, 2, (30, 30), dtype=np.int32)[cell[:, 0], cell[:, 1]]
    truth = np.where(rng.random(n) < 0.05, 1 - truth, truth).astype(np.int32)
    labeled = np.sort(rng.permutation(n)[:3_000])
    A, d = laplacian_parts(neighbor_graph(X, 10), "normalized")
    codes = truth[labeled]
    system = LabeledSystem(A, d, labeled, np.eye(2)[codes])
    screened = tuning.tune([system], codes, tuning.Given(np.inf))
    patient = replace(system, policy=Policy(screened_labels=10**9))
    full = tuning.tune([patient], codes, tuning.Given(np.inf))
    assert screened.setting == full.setting
    assert screened.tried == full.tried
    np.testing.assert_allclose(screened.left_out, full.left_out)
