"""Members: left-out shares never depend on the labels left out; new rows are answered alike."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from gdpa.estimators.committee.evidence import evidence_trials
from gdpa.estimators.committee.fitting import KINDS, sample_of
from gdpa.estimators.committee.kernel import to_probabilities
from gdpa.estimators.committee.member import (
    Task,
    column_scales,
    least_loss,
    log_loss,
    scaled,
    thinned,
    unlike_units,
)
from gdpa.estimators.committee.whitened import whitening
from gdpa.folds import stratified_folds
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression

from gdpa.estimators.committee import forest, gaussian, kernel, linear
from gdpa.estimators.labels import LabelCoding
from gdpa.estimators.options import FitOptions
from gdpa.graph.forest import shared_leaves
from gdpa.policy import Policy

GRAPHS = ("importance", "forest graph", "whitened")
JUDGED_ONLY = ("self-trained", "gaussian", "whitened", "forest kernel")
ALL = {**KINDS, "LogisticRegression": evidence_trials([LogisticRegression()], [])[0]}


def task(seed=0, n=120, m=30, **limits):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 2.0 * rng.integers(0, 2, n)[:, None] * [1, 1, 0, 0]
    y = (X[:, 0] + X[:, 1] > 2).astype(np.int32)
    codes = np.full(n, -1, dtype=np.int32)
    codes[:m] = y[:m]
    policy = Policy(**{"forest_trees": 30, **limits})
    options = FitOptions(graph="auto", policy=policy)
    return Task(X, LabelCoding(codes, np.array([0, 1])), stratified_folds(y[:m], 5), options)


@pytest.fixture
def one_setting(monkeypatch):
    """Each member with one setting: among several, labels of all folds choose."""
    monkeypatch.setattr(forest, "RIDGES", (0.3,))
    monkeypatch.setattr(gaussian, "SETTINGS", ((1.0, 2.0),))
    monkeypatch.setattr(kernel, "WIDTHS", (1.0,))
    monkeypatch.setattr(kernel, "RIDGES", (0.3,))
    monkeypatch.setattr(linear, "STRENGTHS", (1.0,))


@pytest.mark.parametrize("name", ALL)
def test_left_out_labels_have_no_part_in_their_prediction(name, one_setting):
    first = task()
    flipped = first.coding.codes.copy()
    out = first.labeled[first.folds == 2]
    flipped[out] = 1 - flipped[out]
    second = replace(first, coding=LabelCoding(flipped, first.coding.classes))
    a, b = ALL[name](first).left_out, ALL[name](second).left_out
    mine = first.folds == 2
    np.testing.assert_allclose(a[mine], b[mine], atol=1e-9)
    assert np.abs(a[~mine] - b[~mine]).max() > 1e-3


@pytest.mark.parametrize("name", ALL)
def test_shares_of_nodes_and_of_the_same_rows(name):
    full = task()
    member = ALL[name](full).build(full)
    assert member.name == name
    np.testing.assert_allclose(member.shares.sum(axis=1), 1.0)
    assert member.shares.min() >= 0
    X = np.random.default_rng(3).normal(size=(7, 4))
    p = member.predict(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    if name not in GRAPHS:
        np.testing.assert_allclose(member.predict(full.X), member.shares, atol=1e-9)
    right = (member.shares.argmax(axis=1) == (full.X[:, 0] + full.X[:, 1] > 2)).mean()
    assert right > 0.8


@pytest.mark.parametrize("name", ALL)
def test_without_folds_nothing_is_judged(name):
    few = replace(task(m=2), folds=None)
    trial = ALL[name](few)
    if name in JUDGED_ONLY:
        assert trial is None
        return
    assert trial.left_out is None
    assert np.isfinite(trial.build(few).shares).all()


def test_kernel_scores_without_a_fold_are_those_of_a_fit_without_it():
    t = task()
    found = dict(kernel._left_out(t, np.arange(t.codes.size)))[(False, 1.0, 0.3)]
    points, gamma = kernel._points(t, (False, 1.0, 0.3))
    inside = t.folds != 1
    c = kernel._coefficients(points[t.labeled[inside]], t.targets[inside], gamma, 0.3)
    K = kernel._kernel(points[t.labeled[~inside]], points[t.labeled[inside]], gamma)
    np.testing.assert_allclose(found[~inside], to_probabilities(K @ c), atol=1e-10)


def test_kernel_with_more_labels_than_it_compares(monkeypatch):
    monkeypatch.setattr(kernel, "MOST_LABELS", 12)
    monkeypatch.setattr(kernel, "CHOICE_LABELS", 10)
    t = task(m=40)
    trial = kernel.try_kernel(t)
    assert trial.left_out.shape == (40, 2)
    assert trial.build(t).model.points.shape[0] == 12


def test_kernel_in_single_precision_far_from_the_origin(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) + 1e6
    X[-1] = 1e30
    points, c = X[:40], rng.normal(size=(40, 3))
    squares = ((X[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    expected = to_probabilities(np.exp(-0.2 * squares) @ c)
    monkeypatch.setattr(kernel, "SINGLE_ROWS", 10)
    monkeypatch.setattr(kernel, "BLOCK", 700)
    found = kernel.machine_shares(X, points, c, 0.2)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.isfinite(found).all()


def test_leaves_hold_the_scores_of_the_kernel_machine(one_setting):
    t = task()
    machine = forest.try_forest_kernel(t).build(t).model
    own = t.leaves[t.labeled]
    K = shared_leaves(own, own) + 0.3 * np.eye(t.codes.size)
    scores = shared_leaves(t.leaves, own) @ np.linalg.solve(K, t.targets - 0.5)
    np.testing.assert_allclose(machine.shares(t.leaves), to_probabilities(scores), atol=1e-5)
    np.testing.assert_allclose(machine.predict(t.X), machine.shares(t.leaves), atol=1e-12)


@pytest.mark.parametrize("setting", [(1.0, np.inf), (0.3, 2.0)])
def test_gaussian_classes_are_bayes_rule(setting):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3)) * [1.0, 2.0, 0.5]
    codes = np.arange(40) % 3 % 2  # two of three classes have labels
    prior = np.diag([1.0, 2.0, 3.0])
    found = gaussian.fitted_classes(column_scales(Z), Z, codes, 3, prior, setting)
    a, b = 3 * setting[0] + 1, 3 * setting[1] + 1
    means = [Z[codes == c].mean(axis=0) for c in (0, 1)]
    scatter = [(Z[codes == c] - means[c]).T @ (Z[codes == c] - means[c]) for c in (0, 1)]
    W = (scatter[0] + scatter[1] + a * prior) / (40 - 2 + a)
    density = []
    for c in (0, 1):
        m = (codes == c).sum()
        S = W if np.isinf(b) else (scatter[c] + b * W) / (m + b)
        density.append(m / 40 * multivariate_normal(means[c], S).pdf(Z))
    expected = np.stack(density, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.shares(Z)[:, :2], expected, atol=1e-12)
    assert found.shares(Z)[:, 2].max() < 1e-12
    assert np.isfinite(found.shares(np.full((1, 3), 1e200))).all()


def test_whitened_columns_are_uncorrelated():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4))
    C = np.cov((Z @ whitening(Z)).T)
    np.testing.assert_allclose(C, np.diag(np.diag(C)), atol=1e-10)
    assert np.diag(C).max() <= 1.0
    twice = np.column_stack([Z, Z[:, 0]])  # the same column again adds no direction
    assert np.isfinite(whitening(twice)).all()
    assert np.sort(np.cov((twice @ whitening(twice)).T).diagonal())[0] < 1e-10


def test_members_that_do_not_suit_a_task_are_not_tried():
    t = task()
    sparse = replace(t, X=sp.csr_array(t.X))
    wide = replace(t, X=np.random.default_rng(0).normal(size=(120, 300)))
    for name in ("gaussian", "whitened"):
        assert ALL[name](sparse) is None
        assert ALL[name](wide) is None
    assert ALL["whitened"](replace(t, X=t.X[:, :1])) is None


def test_a_choice_among_noise_does_not_look_better_than_it_is():
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(20):
        codes, folds = rng.integers(0, 2, 30), np.arange(30) % 5
        noise = {i: rng.dirichlet([2.0, 2.0], 30) for i in range(10)}
        best, flattered = least_loss(noise, codes)
        same, honest = least_loss(noise, codes, folds)
        assert same == best
        assert flattered is noise[best]
        usual = np.mean([log_loss(shares, codes)[0] for shares in noise.values()])
        gaps.append([usual - log_loss(s, codes)[0] for s in (flattered, honest)])
    flattered, honest = np.mean(gaps, axis=0)
    assert flattered > 0
    assert abs(honest) < 0.5 * flattered


def test_thinned_keeps_the_shares_of_the_classes():
    codes = np.repeat([0, 1, 2], [600, 300, 100])[np.random.default_rng(0).permutation(1000)]
    kept = thinned(codes, 100)
    assert np.bincount(codes[kept]).tolist() == [60, 30, 10]
    assert np.array_equal(thinned(codes[:5], 10), np.arange(5))


def test_columns_of_their_own_units():
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert not unlike_units(X)
    X[:, 0] *= 1e4
    X[:, 1] *= 1e4
    assert unlike_units(X)
    X[:, 5] = 3.0
    Z = scaled(column_scales(X), X)
    assert Z.shape == (50, 5)
    np.testing.assert_allclose(Z.std(axis=0), 1.0)
    S = scaled(column_scales(sp.csr_array(X)), sp.csr_array(X))
    assert sp.issparse(S)
    np.testing.assert_allclose(S.toarray().std(axis=0), 1.0)


def test_sample_holds_the_labels_it_can():
    whole = task(n=300, m=40, judged_nodes=100, judged_labels=60)
    part, kept = sample_of(whole)
    assert part.X.shape[0] == 100
    assert np.array_equal(kept, np.arange(40))
    assert np.array_equal(part.codes, whole.codes)
    assert np.array_equal(part.X[part.labeled], whole.X[whole.labeled])
    assert np.array_equal(part.folds, whole.folds)
    fewer, kept = sample_of(task(n=300, m=40, judged_nodes=100, judged_labels=20))
    assert kept.size == 20
    assert fewer.codes.size == 20
    assert np.array_equal(fewer.X, task(n=300, m=40).X[fewer.nodes])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_rows_as_far_as_a_number_can_be(name, sparse):
    full = task()
    if sparse:
        full = replace(full, X=sp.csr_array(full.X * (np.abs(full.X) > 1)))
    rows = np.array(
        [
            [1e155, -1e155, 0.0, 1e155],
            [1.7e308, 1.7e308, -1.7e308, 0.0],
            [-1.7e308, -1.7e308, -1.7e308, -1.7e308],
            [1e-310, 0.0, 0.0, 0.0],
        ]
    )
    trial = KINDS[name](full)
    if trial is None:
        assert sparse
        return
    member = trial.build(full)
    with np.errstate(all="raise", under="ignore"):
        found = member.predict(sp.csr_array(rows) if sparse else rows)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    if name == "linear":  # far out the direction decides: both first columns up, or both down
        assert found[1, 1] > 0.99
        assert found[2, 0] > 0.99


def test_kernel_keeps_its_digits_far_from_the_origin():
    from gdpa.estimators.committee.kernel import _kernel

    X = np.random.default_rng(0).normal(size=(30, 5))
    far = np.round(X * 2.0**20) / 2.0**20 + 2.0**30  # exact, and so are all differences
    np.testing.assert_allclose(
        _kernel(far[:10], far, 0.2), _kernel(far[:10] - 2.0**30, far - 2.0**30, 0.2), atol=1e-6
    )


@pytest.mark.parametrize("name", KINDS)
def test_names_of_the_classes_do_not_matter(name):
    first = task(m=47)
    codes = first.coding.codes
    turned = np.where(codes < 0, -1, 1 - codes).astype(np.int32)
    labels = turned[:47]
    second = replace(
        first,
        coding=LabelCoding(turned, first.coding.classes),
        folds=stratified_folds(labels, 5),
    )
    np.testing.assert_array_equal(second.folds, first.folds)
    a, b = (KINDS[name](t) for t in (first, second))
    np.testing.assert_allclose(a.left_out, b.left_out[:, ::-1], atol=1e-6)
    np.testing.assert_allclose(a.build(first).shares, b.build(second).shares[:, ::-1], atol=1e-6)


def test_kernel_of_features_next_to_nothing():
    from gdpa.estimators.committee import kernel

    full = task()
    tiny = replace(full, X=full.X * 1e-155)  # the variance is a number, its inverse is not
    shares = kernel.try_kernel(tiny).build(tiny).shares
    assert np.isfinite(shares).all()
