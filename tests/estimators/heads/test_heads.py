"""Heads: held-out labels have no part in their prediction; new rows are answered alike."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from gdpa import CommitteeClassifier
from gdpa.estimators.columns import standard_scaling
from gdpa.estimators.committee import MEMBERS
from gdpa.estimators.data import (
    FitData,
    different_units,
    folds_of,
    kind_of_columns,
    stratified_subsample,
    subsample,
)
from gdpa.estimators.heads.gaussian import Gaussian, fit_gaussians
from gdpa.estimators.heads.kernel import Kernel, KernelMachine, LeafKernel, ridge_coefficients
from gdpa.estimators.heads.linear import Logistic, fit_logistic
from gdpa.estimators.heads.user_models import user_heads
from gdpa.estimators.labels import LabelCoding, stratified_folds
from gdpa.estimators.options import CheckedOptions
from gdpa.estimators.rbf import rbf
from gdpa.estimators.trials import best_of, cross_validated_loss, try_settings
from gdpa.estimators.views import STANDARDISED, Views
from gdpa.graph.forest import shared_leaves
from gdpa.policy import Policy

GRAPHS = ("neighbours", "forest graph", "whitened")
ON_TABLES = {
    member.name: member.head
    for member in MEMBERS
    if "table" in member.kinds and member.name != "class sizes"  # it does not always apply
}
ALL = {**ON_TABLES, **user_heads([LogisticRegression()], [], 0)}
ON_LINKS = {member.name: member.head for member in MEMBERS if "links" in member.kinds}


def task(seed=0, n=120, m=30, **limits):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 2.0 * rng.integers(0, 2, n)[:, None] * [1, 1, 0, 0]
    y = (X[:, 0] + X[:, 1] > 2).astype(np.int32)
    codes = np.full(n, -1, dtype=np.int32)
    codes[:m] = y[:m]
    policy = Policy(**{"forest_trees": 30, **limits})
    return FitData(X, LabelCoding(codes, np.array([0, 1])), CheckedOptions(policy=policy))


def views_of(data):
    return Views(data, stratified_folds(data.codes, 5))


def trial(head, views):
    folds = folds_of(views.folds)
    settings = head.settings(views)
    held_out = partial(head.held_out, views)
    return try_settings(held_out, settings, folds, views.data.codes, views.data.n_classes)


def flipped(data, fold):
    """The same data with the labels of a fold turned into the other class."""
    codes = data.labels.codes.copy()
    out = data.labeled[fold.held]
    codes[out] = 1 - codes[out]
    return replace(data, labels=LabelCoding(codes, data.labels.classes))


@pytest.mark.parametrize("name", ALL)
def test_held_out_labels_have_no_part_in_their_prediction(name):
    first = views_of(task())
    folds = folds_of(first.folds)
    second = Views(flipped(first.data, folds[2]), first.folds)
    head = ALL[name]
    for setting in head.settings(first):
        a, b = (head.held_out(views, setting, folds[2]) for views in (first, second))
        np.testing.assert_allclose(a, b, atol=1e-9)
    last = head.settings(first)[-1]
    a, b = (head.held_out(views, last, folds[1]) for views in (first, second))
    assert np.abs(a - b).max() > 1e-3


@pytest.mark.parametrize("name", ALL)
def test_a_trial_leaves_nothing_behind(name):
    """A fit is the same whether or not the member was tried before, and on shared views."""
    tried, fresh = views_of(task()), views_of(task())
    for head in ALL.values():
        trial(head, tried)
    setting = ALL[name].settings(fresh)[-1]
    a, b = (ALL[name].fit(views, setting).shares for views in (tried, fresh))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ALL)
def test_shares_of_samples_and_of_the_same_rows(name):
    views = views_of(task())
    data = views.data
    fitted = ALL[name].fit(views, trial(ALL[name], views).setting)
    np.testing.assert_allclose(fitted.shares.sum(axis=1), 1.0)
    assert fitted.shares.min() >= 0
    X = np.random.default_rng(3).normal(size=(7, 4))
    p = fitted.predict(X, None, data.labels)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    if name not in GRAPHS:
        again = fitted.predict(data.X, None, data.labels)
        np.testing.assert_allclose(again, fitted.shares, atol=1e-9)
    right = (fitted.shares.argmax(axis=1) == (data.X[:, 0] + data.X[:, 1] > 2)).mean()
    assert right > 0.8
    assert fitted.predict(None, None, data.labels) is None


@pytest.mark.parametrize("name", ALL)
def test_no_label_needs_to_be_held_out(name):
    views = Views(task(m=2), None)
    fitted = ALL[name].fit(views, ALL[name].settings(views)[-1])
    assert np.isfinite(fitted.shares).all()


def test_kernel_scores_without_a_fold_are_those_of_a_fit_without_it():
    views = views_of(task())
    data = views.data
    fold = folds_of(views.folds)[1]
    found = Kernel().held_out(views, (False, 1.0, 0.3), fold)
    anchors = data.X[data.labeled[fold.kept]]
    gamma = views.gamma(scaled=False, width=1.0)
    assert gamma == pytest.approx(1.0 / (4 * data.X.var()))
    c = ridge_coefficients(rbf(anchors, anchors, gamma), data.targets[fold.kept], 0.3)
    K = rbf(data.X[data.labeled[fold.held]], anchors, gamma)
    np.testing.assert_allclose(found, softmax(4.0 * (K @ c), axis=1), atol=1e-10)


def test_kernel_in_single_precision_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21_000, 5)) + 1e6
    X[-1] = 1e30
    points, c = X[:40], rng.normal(size=(40, 3))
    machine = KernelMachine(points, c, 0.2)
    few = np.r_[:200, 20_999]
    squares = ((X[few, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    expected = softmax(4.0 * (np.exp(-0.2 * squares) @ c), axis=1)
    np.testing.assert_allclose(machine.predict(X[few]), expected, atol=1e-6)
    found = machine.sample_shares(X)  # so many that they are computed in single precision
    np.testing.assert_allclose(found[few], expected, atol=1e-4)
    assert np.isfinite(found).all()


def test_leaves_hold_the_scores_of_the_kernel_machine():
    views = views_of(task())
    data = views.data
    fitted = LeafKernel().fit(views, 0.3)
    own = views.leaves[data.labeled]
    K = shared_leaves(own, own) + 0.3 * np.eye(data.codes.size)
    scores = shared_leaves(views.leaves, own) @ np.linalg.solve(K, data.targets - 0.5)
    np.testing.assert_allclose(fitted.shares, softmax(4.0 * scores, axis=1), atol=1e-5)
    np.testing.assert_allclose(fitted.model.predict(data.X), fitted.shares, atol=1e-12)


@pytest.mark.parametrize("setting", [(1.0, np.inf), (0.3, 2.0)])
def test_gaussian_classes_are_bayes_rule(setting):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3)) * [1.0, 2.0, 0.5]
    codes = np.arange(40) % 3 % 2  # two of three classes have labels
    prior = np.diag([1.0, 2.0, 3.0])
    found = fit_gaussians(Z, codes, 3, prior, setting)
    a, b = 3 * setting[0] + 1, 3 * setting[1] + 1
    means = [Z[codes == c].mean(axis=0) for c in (0, 1)]
    scatter = [(Z[codes == c] - means[c]).T @ (Z[codes == c] - means[c]) for c in (0, 1)]
    W = (scatter[0] + scatter[1] + a * prior) / (40 - 2 + a)
    density = []
    for c in (0, 1):
        m = (codes == c).sum()
        s = (np.trace(scatter[c]) / np.trace(W) + 1) / m
        S = W if np.isinf(b) else (scatter[c] + b * s * W) / (m + b)
        density.append(m / 40 * multivariate_normal(means[c], S).pdf(Z))
    expected = np.stack(density, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.predict(Z)[:, :2], expected, atol=1e-12)
    assert found.predict(Z)[:, 2].max() < 1e-12
    assert np.isfinite(found.predict(np.full((1, 3), 1e200))).all()


def test_five_labels_a_class_are_enough_to_see_that_one_class_spreads_more():
    wrong = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.arange(400, dtype=np.int32) % 2
        X = rng.normal(size=(400, 20)) * np.where(y == 0, 2.0, 1.0)[:, None]  # the same mean
        labels = LabelCoding(np.where(np.arange(400) < 10, y, -1), np.arange(2))
        fitted = Gaussian(STANDARDISED).fit(Views(FitData(X, labels), None), (1.0, 2.0))
        wrong.append(np.mean(fitted.shares.argmax(axis=1) != y))
    assert np.mean(wrong) < 0.1


def test_whitened_columns_are_uncorrelated():
    data = task()
    mix = data.X @ np.random.default_rng(0).normal(size=(4, 4))
    for X in (mix, np.column_stack([mix, mix[:, 0]])):  # the same column again adds no direction
        columns = views_of(replace(data, X=X)).whitened.columns
        C = np.cov(columns.new(X, None).T)
        np.testing.assert_allclose(C, np.diag(np.diag(C)), atol=1e-9)
        assert np.diag(C).max() <= 1.0
    assert np.sort(np.diag(C))[0] < 1e-9


def test_heads_that_do_not_suit_a_task_are_not_tried():
    data = task()
    sparse = replace(data, X=sp.csr_array(data.X))
    wide = replace(data, X=np.random.default_rng(0).normal(size=(120, 300)))
    for name in ("gaussian", "whitened"):
        head = ALL[name]
        assert head.prepared(views_of(data), {}) is head
        assert head.prepared(views_of(sparse), {}) is None
        assert head.prepared(views_of(wide), {}) is None
    assert ALL["whitened"].prepared(views_of(replace(data, X=data.X[:, :1])), {}) is None


def test_a_choice_among_noise_does_not_look_better_than_it_is():
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(20):
        codes, folds = rng.integers(0, 2, 30), np.arange(30) % 5
        noise = {i: rng.dirichlet([2.0, 2.0], 30) for i in range(10)}
        found = best_of(noise, codes, folds)
        honest, flattered = found.held_out, noise[found.setting]
        assert len(found.fold_settings) == 5
        usual = np.mean([cross_validated_loss(p, codes)[0].mean() for p in noise.values()])
        gaps.append([usual - cross_validated_loss(p, codes)[0].mean() for p in (flattered, honest)])
    flattered, honest = np.mean(gaps, axis=0)
    assert flattered > 0
    assert abs(honest) < 0.5 * flattered


def test_a_stratified_subsample_keeps_the_shares_of_the_classes():
    codes = np.repeat([0, 1, 2], [600, 300, 100])[np.random.default_rng(0).permutation(1000)]
    kept = stratified_subsample(codes, 100)
    assert np.bincount(codes[kept]).tolist() == [60, 30, 10]
    assert np.array_equal(stratified_subsample(codes[:5], 10), np.arange(5))


def test_columns_of_their_own_units():
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert not different_units(X)
    X[:, 0] *= 1e4
    X[:, 1] *= 1e4
    assert different_units(X)
    X[:, 5] = 3.0
    labels = LabelCoding(np.zeros(50, dtype=np.int32), np.array([0]))
    Z = Views(FitData(X, labels), None).standardised.points
    assert Z.shape == (50, 5)
    np.testing.assert_allclose(Z.std(axis=0), 1.0)
    S = Views(FitData(sp.csr_array(X), labels), None).standardised.points
    assert sp.issparse(S)
    np.testing.assert_allclose(S.toarray().std(axis=0), 1.0)


def test_skewed_columns_become_logarithms_whatever_their_unit_and_zero():
    rng = np.random.default_rng(0)
    symmetric, two = rng.normal(size=300), np.repeat([0.0, 5.0], [290, 10])
    X = np.column_stack([rng.lognormal(sigma=2.0, size=(300, 2)), symmetric, two])
    Z = standard_scaling(X).transform(X)
    plain = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(Z[:, 2:], plain[:, 2:], atol=1e-12)
    # Skewness of the plain columns is far above 1; distances from the minimum become logarithms.
    far = X[:, :2] - X[:, :2].min(axis=0)
    logs = np.log1p(far / np.array([np.median(x[x > 0]) for x in far.T]))
    np.testing.assert_allclose(Z[:, :2], (logs - logs.mean(axis=0)) / logs.std(axis=0), atol=1e-12)
    for factor in (7.0, -1e-3):
        turned = factor * X + 11.0
        other_units = standard_scaling(turned).transform(turned)
        np.testing.assert_allclose(other_units, np.sign(factor) * Z, atol=1e-9)


@pytest.mark.parametrize("head", [Logistic(STANDARDISED), Gaussian(STANDARDISED)])
def test_a_few_extreme_values_do_not_decide(head):
    wrong = {}
    for skewed in (False, True):
        found = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            y = np.arange(400, dtype=np.int32) % 2
            G = rng.normal(size=(400, 10)) + 0.8 * y[:, None]
            X = np.exp(3.0 * G) if skewed else G
            labels = LabelCoding(np.where(np.arange(400) < 20, y, -1), np.arange(2))
            views = Views(FitData(X, labels), None)
            fitted = head.fit(views, head.settings(views)[-1])
            found.append(np.mean(fitted.shares.argmax(axis=1) != y))
        wrong[skewed] = np.mean(found)
    # Nearly as good as on the Gaussian columns; without logarithms 0.2 worse.
    assert wrong[True] < wrong[False] + 0.1


def test_sample_holds_the_labels_it_can():
    whole = task(n=300, m=40, judged_nodes=100, judged_labels=60)
    sample = subsample(whole)
    part = sample.data
    assert part.n_samples == 100
    assert np.array_equal(sample.positions, np.arange(40))
    assert np.array_equal(part.codes, whole.codes)
    assert np.array_equal(part.X[part.labeled], whole.X[whole.labeled])
    assert np.array_equal(sample.folds, stratified_folds(whole.codes, 5))
    fewer = subsample(task(n=300, m=40, judged_nodes=100, judged_labels=20))
    assert fewer.positions.size == fewer.data.codes.size == fewer.folds.size == 20
    small = task(n=300, m=40)
    assert subsample(small).data is small


def test_the_same_labels_grow_the_same_forest():
    whole = task(n=300, m=40, judged_nodes=100, judged_labels=60)
    views = views_of(whole)
    sample = subsample(whole)
    assert views.on_sample(sample).forest is views.forest
    fewer = subsample(task(n=300, m=40, judged_nodes=100, judged_labels=20))
    assert views.on_sample(fewer).forest is not views.forest
    small = task()
    assert (view := views_of(small)).on_sample(subsample(small)) is view


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ON_TABLES)
def test_rows_as_far_as_a_number_can_be(name, sparse):
    data = task()
    if sparse:
        data = replace(data, X=sp.csr_array(data.X * (np.abs(data.X) > 1)))
    rows = np.array(
        [
            [1e155, -1e155, 0.0, 1e155],
            [1.7e308, 1.7e308, -1.7e308, 0.0],
            [-1.7e308, -1.7e308, -1.7e308, -1.7e308],
            [1e-310, 0.0, 0.0, 0.0],
        ]
    )
    views = views_of(data)
    head = ON_TABLES[name].prepared(views, {})
    if head is None:
        assert sparse
        return
    fitted = head.fit(views, trial(head, views).setting)
    with np.errstate(all="raise", under="ignore"):
        found = fitted.predict(sp.csr_array(rows) if sparse else rows, None, data.labels)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    if name == "linear":  # far out the direction decides: both first columns up, or both down
        assert found[1, 1] > 0.99
        assert found[2, 0] > 0.99


def test_kernel_keeps_its_digits_far_from_the_origin():
    X = np.random.default_rng(0).normal(size=(30, 5))
    far = np.round(X * 2.0**20) / 2.0**20 + 2.0**30  # exact, and so are all differences
    np.testing.assert_allclose(
        rbf(far[:10], far, 0.2), rbf(far[:10] - 2.0**30, far - 2.0**30, 0.2), atol=1e-6
    )


@pytest.mark.parametrize("name", ON_TABLES)
def test_names_of_the_classes_do_not_matter(name):
    first = task(m=47)
    codes = first.labels.codes
    turned = np.where(codes < 0, -1, 1 - codes).astype(np.int32)
    second = replace(first, labels=LabelCoding(turned, first.labels.classes))
    head = ON_TABLES[name]
    a, b = views_of(first), views_of(second)
    np.testing.assert_array_equal(a.folds, b.folds)
    tried = trial(head, a), trial(head, b)
    np.testing.assert_allclose(tried[0].held_out, tried[1].held_out[:, ::-1], atol=1e-6)
    fitted = head.fit(a, tried[0].setting), head.fit(b, tried[1].setting)
    np.testing.assert_allclose(fitted[0].shares, fitted[1].shares[:, ::-1], atol=1e-6)


def test_kernel_of_features_next_to_nothing():
    tiny = replace(task(), X=task().X * 1e-155)  # the variance is a number, its inverse is not
    views = views_of(tiny)
    found = trial(Kernel(), views)
    assert np.isfinite(found.held_out).all()
    assert np.isfinite(Kernel().fit(views, found.setting).shares).all()


def test_kinds_of_data_are_told_apart():
    rng = np.random.default_rng(0)
    n, d = 200, 120
    z = rng.integers(0, 3, n)
    rows = rng.normal(size=(3, d))[z] + 2.0 * rng.normal(size=(n, d))
    rows *= rng.uniform(0.7, 1.3, d)
    embedding = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    y = np.where(np.arange(n) < 24, z, -1)
    cases = {
        "embedding": [embedding],
        "pictures": [np.cumsum(rows, axis=1)],
        "table": [
            (rows - rows.mean(axis=0)) / rows.std(axis=0),
            np.rint(10 * rows),
            embedding[:, :50],
            np.eye(4)[rng.integers(0, 4, (n, 30))].reshape(n, d),  # one column per category
        ],
    }
    for kind, given in cases.items():
        assert [kind_of_columns(X) for X in given] == [kind] * len(given)
    model = CommitteeClassifier().fit(embedding, y)
    assert "smoothed" in model.committee_.names
    assert "forest" not in model.committee_.names
    assert (model.predict(embedding[:50]) == model.transduction_[:50]).mean() > 0.9


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_regression_is_that_of_scikit_learn(n_classes, convert, C):
    rng = np.random.default_rng(n_classes)
    Z = rng.normal(size=(120, 5))
    codes = (Z[:, :n_classes] + rng.normal(size=(120, n_classes))).argmax(axis=1)
    model = fit_logistic(convert(Z), codes, n_classes + 1, C)
    found = model.predict(Z)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found[:, n_classes].max() == 0.0  # a class without a label
    # At the minimum of sum(-log p) + |W|^2 / (2 C) the gradient vanishes, to the tolerance.
    errors = (found - np.eye(n_classes + 1)[codes])[:, n_classes == 2 : n_classes]
    slopes = model.coefficients[:, n_classes == 2 : n_classes]
    assert np.abs(Z.T @ errors + slopes / C).max() <= 1.1e-3 * len(Z)
    assert np.abs(errors.sum(axis=0)).max() <= 1.1e-3 * len(Z)
    reference = LogisticRegression(C=C, max_iter=2_000, tol=1e-8).fit(Z, codes)
    np.testing.assert_allclose(found[:, :n_classes], reference.predict_proba(Z), atol=2e-2)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_the_kernel_is_that_of_scikit_learn(convert):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(20, 6)), rng.normal(size=(9, 6))
    for X in (B, A):
        found = rbf(convert(A.astype(np.float32)), convert(X.astype(np.float32)), 0.3)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, rbf_kernel(A, X, gamma=0.3), rtol=1e-5)


def test_fewer_columns_than_rows_fit_the_same_model():
    rng = np.random.default_rng(0)
    Z, codes = rng.normal(size=(30, 80)), np.arange(30) % 3
    reference = LogisticRegression(C=1.0, max_iter=2_000, tol=1e-8).fit(Z, codes)
    for given in (Z, sp.csr_array(Z)):
        found = fit_logistic(given, codes, 3).predict(Z)
        np.testing.assert_allclose(found, reference.predict_proba(Z), atol=2e-2)


@pytest.mark.parametrize("name", ON_LINKS)
def test_members_on_links_predict_a_fold_without_its_labels(name):
    rng = np.random.default_rng(1)
    upper = np.triu(rng.random((120, 120)) < 0.05, 1)
    data = replace(task(), links=sp.csr_array((upper | upper.T).astype(float)))
    first = views_of(data)
    fold = folds_of(first.folds)[2]
    second = Views(flipped(data, fold), first.folds)
    source = {"smoothed": trial(ON_LINKS["smoothed"], first)}
    head = ON_LINKS[name].prepared(first, source)
    for setting in head.settings(first):
        a, b = (head.held_out(views, setting, fold) for views in (first, second))
        np.testing.assert_array_equal(a, b)


def test_trees_are_tried_on_words_but_not_on_embeddings_or_beside_links():
    rng = np.random.default_rng(0)
    n, d = 150, 200
    z = rng.integers(0, 2, n)
    y = np.where(np.arange(n) < 30, z, -1)
    counts = rng.poisson(np.where((np.arange(d) < 100) == z[:, None], 0.06, 0.03))
    words = sp.csr_array(counts.astype(float))
    dense = rng.normal(size=(n, d)) * rng.uniform(0.7, 1.3, d) + 0.5 * (2 * z - 1)[:, None]
    upper = np.triu(rng.random((n, n)) < np.where(z[:, None] == z, 0.05, 0.01), 1)
    links = sp.csr_array((upper | upper.T).astype(float))
    cases = [(words, None, True), (dense, None, False), (words, links, False)]
    for X, adjacency, forests in cases:
        tried = CommitteeClassifier().fit(X, y, adjacency=adjacency).committee_.names
        assert "smoothed" in tried
        assert [name in tried for name in ("forest", "forest graph", "forest kernel")] == [
            forests
        ] * 3
